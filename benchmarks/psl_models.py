"""Rule programs of any size, made from a seed, with PSL's files."""

from __future__ import annotations

import json
import pathlib

import numpy as np

_FIRST = ("Trusts(A, B)", "Trusts(B, A)")
_SECOND = ("Trusts(B, C)", "Trusts(C, B)")


def trust(folder: pathlib.Path, groups: int, seed: int = 1) -> pathlib.Path:
    """Write a signed network of many groups: balanced triads, and two latent traits per user."""
    rng = np.random.default_rng(seed)
    sizes = np.clip(np.exp(rng.normal(3.0, 0.35, groups)), 6, 60).astype(int)
    starts = np.append(0, np.cumsum(sizes))
    pairs = [
        np.argwhere(~np.eye(n, dtype=bool) & (rng.random((n, n)) < 0.3)) + start
        for n, start in zip(sizes, starts, strict=False)
    ]
    edges = np.concatenate(pairs)
    users = int(starts[-1])
    traits = rng.beta(3, 1.2, (2, users))
    camp = rng.random(users) < 0.5
    chance = (traits[0, edges[:, 0]] + traits[1, edges[:, 1]]) / 2
    chance += np.where(camp[edges[:, 0]] == camp[edges[:, 1]], 0.25, -0.25)
    values = (rng.random(len(edges)) < chance).astype(float)
    hidden = rng.random(len(edges)) < 0.5
    people = np.arange(users)[:, None]
    return _write(
        folder,
        _trust_rules(),
        {
            "Knows/2": {"observations": edges},
            "Trusts/2": {
                "observations": np.column_stack([edges, values])[~hidden],
                "targets": edges[hidden],
            },
            "Prior/1": {"observations": np.array([[0, round(float(values.mean()), 6)]])},
            "Trusting/1": {"targets": people},
            "Trustworthy/1": {"targets": people},
        },
    )


def _trust_rules() -> list[str]:
    """Triads in four directions with four signs, a prior, and traits; all weights differ."""
    rules = []
    for first in _FIRST:
        for second in _SECOND:
            for signs in ("++", "+-", "-+", "--"):
                literals = [s * (sign == "-") for s, sign in zip("!!", signs, strict=True)]
                head = "" if signs[0] == signs[1] else "!"
                rules.append(
                    f"{first.replace('Trusts', 'Knows')} & {second.replace('Trusts', 'Knows')} & "
                    f"Knows(A, C) & {literals[0]}{first} & {literals[1]}{second} & (A != B) & "
                    f"(B != C) & (A != C) -> {head}Trusts(A, C) ^2"
                )
    rules += [
        "Knows(A, B) & Knows(B, A) & Trusts(A, B) -> Trusts(B, A) ^2",
        "Knows(A, B) & Knows(B, A) & !Trusts(A, B) -> !Trusts(B, A) ^2",
        "Knows(A, B) & Prior('0') -> Trusts(A, B) ^2",
        "Knows(A, B) & Trusts(A, B) -> Prior('0') ^2",
        "Knows(A, B) & Trusting(A) -> Trusts(A, B) ^2",
        "Knows(A, B) & Trusts(A, B) -> Trusting(A) ^2",
        "Knows(A, B) & Trustworthy(B) -> Trusts(A, B) ^2",
        "Knows(A, B) & Trusts(A, B) -> Trustworthy(B) ^2",
    ]
    # PSL mixes up potentials of equal weight and other signs, so no two are equal.
    return [f"{0.6 + 0.025 * i:.3f}: {rule}" for i, rule in enumerate(rules)]


def collective(folder: pathlib.Path, nodes: int, kinds: int = 6, seed: int = 1) -> pathlib.Path:
    """Write nodes with one label each, by links between alike ones and a noisy first guess."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(kinds, size=nodes)
    by_label = np.argsort(labels, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(labels, minlength=kinds)))
    tails = rng.integers(nodes, size=3 * nodes)
    own = labels[tails]
    near = by_label[starts[own] + (rng.random(len(own)) * np.diff(starts)[own]).astype(int)]
    heads = np.where(rng.random(len(own)) < 0.8, near, rng.integers(nodes, size=len(own)))
    links = np.unique(np.column_stack([tails, heads])[tails != heads], axis=0)
    guess = rng.random((nodes, kinds))
    guess[np.arange(nodes), labels] += 0.6
    guess = (guess / guess.sum(axis=1, keepdims=True)).round(6)
    atoms = np.column_stack([np.repeat(np.arange(nodes), kinds), np.tile(np.arange(kinds), nodes)])
    hidden = np.repeat(rng.random(nodes) < 0.5, kinds)
    truth = (atoms[:, 1] == np.repeat(labels, kinds)).astype(float)
    rules = [
        "1.0: Local(A, C) -> HasCat(A, C) ^2",
        "0.5: HasCat(A, C) & Link(A, B) -> HasCat(B, C) ^2",
        "0.45: HasCat(A, C) & Link(B, A) -> HasCat(B, C) ^2",
        "HasCat(A, +C) = 1 .",
        "0.01: !HasCat(A, C) ^2",
    ]
    return _write(
        folder,
        rules,
        {
            "Link/2": {"observations": links},
            "Local/2": {"observations": np.column_stack([atoms, guess.ravel()])},
            "HasCat/2": {
                "observations": np.column_stack([atoms, truth])[~hidden],
                "targets": atoms[hidden],
            },
        },
    )


def _write(folder: pathlib.Path, rules: list[str], predicates: dict) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    listed: dict[str, dict[str, list[str]]] = {}
    for key, parts in predicates.items():
        for part, rows in parts.items():
            name = f"{key.split('/')[0].lower()}_{part}.txt"
            np.savetxt(folder / name, rows, fmt="%.10g", delimiter="\t")
            listed.setdefault(key, {})[part] = [name]
    path = folder / "model.json"
    path.write_text(json.dumps({"rules": rules, "predicates": listed}, indent=1))
    return path
