"""Model files and checkpoints that were changed: refused by name, or as good as before."""

from __future__ import annotations

import contextlib
import functools
import pathlib
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from campaign.base import expect
from campaign.mutate import Mutator
from campaign.parsers import FILES, folder, fuzz
from structlearn import (
    GraphLabeler,
    GridLabeler,
    InfiniteHMM,
    InfiniteSVM,
    MaxMarginHMM,
    MulticlassClassifier,
    SequenceClassifier,
    SequenceLabeler,
    load,
    save,
)
from structlearn._src.files import store
from structlearn.errors import StructlearnError
from structlearn.solvers import Lbfgs, Stochastic, run
from toys import Kinks, Logistic

TAMPERED = 100


class Saved(NamedTuple):
    """A fitted model as it lies in a file, something to predict, and the answers."""

    name: str
    data: bytes
    X: Any
    answers: list[np.ndarray]


def answers(model: Any, X: Any) -> list[np.ndarray]:
    """What a model says, as arrays that can be compared."""
    found = model.predict(X)
    rows = [np.asarray(row) for row in found]
    for ask in ("predict_marginals", "predict_proba"):
        if hasattr(model, ask):
            rows += [np.asarray(row) for row in getattr(model, ask)(X)]
    return rows


def same(one: list[np.ndarray], two: list[np.ndarray]) -> bool:
    """Whether answers are equal bit for bit."""
    return len(one) == len(two) and all(
        a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for a, b in zip(one, two, strict=True)
    )


def estimators() -> list[tuple[Any, tuple[Any, ...]]]:
    """One of every kind, with its data."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 2)) for n in (3, 2, 4)]
    Y = [x.argmax(axis=1) for x in X]
    words = [[["the"], ["cat", "x"]], [["a"], ["dog"], ["the", "y"]]]
    tags = [["D", "N"], ["D", "N", "D"]]
    rows, labels = rng.normal(size=(12, 2)), np.arange(12) % 3
    grids = [rng.normal(size=(2, 3, 1)) for _ in range(2)]
    marks = [(grid[..., 0] > 0).astype(int) for grid in grids]
    graphs = [(rng.normal(size=(3, 2)), np.array([[0, 1], [1, 2]])) for _ in range(2)]
    colours = [np.array([0, 1, 1]), np.array([1, 0, 0])]
    short = {"max_iter": 5, "n_jobs": 1, "random_state": 0}
    drawn = {"n_chains": 1, "burn_in": 2, "n_draws": 3, "n_jobs": 1, "random_state": 0}
    return [
        (SequenceLabeler(**short), (X, Y)),
        (SequenceLabeler(**short, hidden="node", loss="marginal"), (X, Y)),
        (SequenceLabeler(**short, features="sparse", forbidden=[("N", "N")]), (words, tags)),
        (MulticlassClassifier(**short), (rows, labels)),
        (MulticlassClassifier(**short, loss="hinge"), (csr_array(rows), labels.astype(str))),
        (GridLabeler(**short), (grids, marks)),
        (GraphLabeler(**short), (graphs, colours)),
        (SequenceClassifier(**short), (X, np.array([0, 1, 1]))),
        (InfiniteHMM(**drawn), (X,)),
        (MaxMarginHMM(**drawn), (X, Y)),
        (InfiniteSVM(**drawn), (rows, labels)),
    ]


@functools.cache
def models() -> tuple[Saved, ...]:
    """All of them, fitted and saved."""
    found = []
    with folder() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = place / "model"
        for estimator, data in estimators():
            estimator.fit(*data)
            save(estimator, path)
            told = answers(load(path), data[0])
            name = type(estimator).__name__
            found.append(Saved(name, path.read_bytes(), data[0], told))
    return tuple(found)


# ---- tampering -----------------------------------------------------------------------------


def check_tampered(rng: np.random.Generator) -> None:
    """Models with a few bytes changed, which nobody meant to be read."""
    with folder() as place:
        path = place / "model"
        for _ in range(TAMPERED):
            model = models()[int(rng.integers(len(models())))]
            changed = tamper(rng, model.data)
            path.write_bytes(changed)
            told = f"{model.name}: {where(model.data, changed)}"
            try:
                loaded = load(path)
            except StructlearnError:
                continue
            expect(same(answers(loaded, model.X), model.answers), "answers differently,", told)


def tamper(rng: np.random.Generator, data: bytes) -> bytes:
    """Change a byte or some, cut, append, or write one block over another."""
    out = bytearray(data)
    way = rng.integers(5)
    if way <= 1:
        for _ in range(int(rng.choice([1, 1, 1, 2, 5]))):
            out[int(rng.integers(len(out)))] ^= int(rng.integers(1, 256))
    elif way == 2:
        del out[int(rng.integers(len(out))) :]
    elif way == 3:
        out += rng.integers(0, 256, int(rng.integers(1, 20))).astype(np.uint8).tobytes()
    else:
        start, other = rng.integers(len(out), size=2)
        size = int(rng.integers(1, 64))
        block = out[other : other + size]
        out[start : start + len(block)] = block
    return bytes(out) if bytes(out) != data else bytes(out[:-1])


def where(one: bytes, two: bytes) -> str:
    """In which bytes two files differ."""
    places = [(i, a, b) for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b]
    return f"{len(one)} bytes became {len(two)}; place, before, after: {places[:10]}"


# ---- files that are made to be read -----------------------------------------------------------

WORDS = (
    b'"dtype"', b'"shape"', b'"data_offsets"', b"F64", b"I64", b"BOOL", b"F32", b"[", b"]", b"{", b"}", b",",
    b'\\"kind\\"', b'\\"model\\"', b'\\"mapping\\"', b'\\"record\\"', b"null", b"true", b"__metadata__", b"schema",
    b"structlearn.model/1", b"structlearn.model/2", b'\\"', b'"', b"[" * 200,
)  # fmt: skip


def check_models(rng: np.random.Generator) -> None:
    """Model files with the length of the header set right again, so that more of them is read."""
    model = models()[int(rng.integers(len(models())))]
    with folder() as place:
        path = place / "model"

        def read(data: bytes) -> None:
            path.write_bytes(_joined(data))
            use(load(path), model)

        fuzz(rng, read, [_apart(model.data)], WORDS, FILES // 4)


def _apart(data: bytes) -> bytes:
    """Header and arrays of a file, with a mark between them instead of a length before."""
    size = int.from_bytes(data[:8], "little")
    return data[8 : 8 + size] + b"\n--\n" + data[8 + size :]


def _joined(data: bytes) -> bytes:
    header, _, arrays = data.partition(b"\n--\n")
    return len(header).to_bytes(8, "little") + header + arrays


def use(loaded: Any, model: Saved) -> None:
    """Predict, from whatever a file that somebody made by hand says: compiled code must not crash."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        answers(loaded, model.X)


def check_model_facts(rng: np.random.Generator) -> None:
    """Model files whose facts and arrays were changed before they were written."""
    model = models()[int(rng.integers(len(models())))]
    with folder() as place:
        path = place / "model"
        path.write_bytes(model.data)
        arrays, meta = store.read(path, "structlearn.model/9")
        schema = meta.pop("schema")
        samples = [str(x).encode() for x in _leaves(meta)]
        mutator = Mutator(int(rng.integers(2**62)), samples or [b"a"], [])

        def read(_: bytes) -> None:
            facts = {name: _changed(rng, fact, mutator) for name, fact in meta.items()}
            store.write(path, _changed_arrays(rng, arrays), facts, schema)
            use(load(path), model)

        fuzz(rng, read, [b"-"], [], FILES // 10)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in _leaves(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in _leaves(inner)]
    return [value]


_ODD = (None, True, False, 0, -1, 1, 2**31, 2**63, 10**40, 0.5, float("nan"), float("inf"), "", "x", [], {}, [[]], [0], {"kind": "mapping"})  # fmt: skip


def _changed(rng: np.random.Generator, value: Any, mutator: Mutator, p: float = 0.02) -> Any:
    """A copy of facts in which a few things are others, more, fewer or none."""
    if rng.random() < p:
        return _ODD[int(rng.integers(len(_ODD)))]
    if isinstance(value, dict):
        inner = {k: _changed(rng, v, mutator, p) for k, v in value.items() if rng.random() > p / 2}
        return inner | ({"extra": 1} if rng.random() < p / 4 else {})
    if isinstance(value, list):
        inner = [_changed(rng, v, mutator, p) for v in value if rng.random() > p / 4]
        return inner * 2 if rng.random() < p / 4 else inner
    if isinstance(value, str) and rng.random() < p:
        return mutator().decode("utf-8", "replace")
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < p:
        return value + int(rng.integers(-2, 3))
    return value


def _changed_arrays(rng: np.random.Generator, arrays: dict[str, Any]) -> dict[str, Any]:
    out = dict(arrays)
    for name, array in arrays.items():
        way = rng.integers(40)
        if way == 0:
            del out[name]
        elif way == 1:
            out[name] = array[:-1] if array.ndim else array
        elif way == 2:
            out[name] = array.reshape(-1)
        elif way == 3:
            out[name] = array.astype(rng.choice(["f8", "i8", "?", "i4"]))
        elif way == 4 and array.size:
            out[name] = array.copy()
            odd = rng.choice([-1, 0, 2**31 - 1, -(2**31)])
            out[name].flat[int(rng.integers(array.size))] = odd if array.dtype.kind != "b" else 1
        elif way == 5 and array.dtype.kind == "f" and array.size:
            out[name] = array.copy()
            out[name].flat[int(rng.integers(array.size))] = rng.choice(
                [np.nan, np.inf, -np.inf, 1e300]
            )
        elif way == 6:
            out[name] = np.concatenate([array, array]) if array.ndim else array[None]
    return out


# ---- checkpoints -----------------------------------------------------------------------------


def runs() -> list[tuple[Any, Any]]:
    """Solvers and what they minimise."""
    return [
        (Lbfgs(memory=4), Logistic(0, spread=30.0)),
        (Stochastic("adagrad"), Kinks(0)),
        (Stochastic("decaying", batch_size=7, average=0.5), Kinks(0)),
    ]


def solve(which: int, path: pathlib.Path, max_iter: int) -> Any:
    """Run from a checkpoint, or from the start where there is none."""
    solver, toy = runs()[which]
    rng = np.random.default_rng(3)
    weights = np.linspace(-0.1, 0.1, toy.n_weights)
    return run(solver, toy, weights, max_iter=max_iter, tol=None, rng=rng, checkpoint=path)


@functools.cache
def checkpoints() -> tuple[tuple[bytes, np.ndarray], ...]:
    """The file after some steps, and the weights after some more."""
    found = []
    for which in range(len(runs())):
        with folder() as place:
            path = place / "run"
            solve(which, path, 4)
            data = path.read_bytes()
            found.append((data, solve(which, path, 7).weights))
    return tuple(found)


def check_tampered_checkpoints(rng: np.random.Generator) -> None:
    """Checkpoints with a few bytes changed: refused, or the run ends as it would have."""
    with folder() as place:
        path = place / "run"
        for _ in range(TAMPERED // 4):
            which = int(rng.integers(len(runs())))
            data, weights = checkpoints()[which]
            changed = tamper(rng, data)
            path.write_bytes(changed)
            try:
                found = solve(which, path, 7).weights
            except StructlearnError:
                continue
            expect(np.array_equal(found, weights), "ends elsewhere,", where(data, changed))


def check_checkpoints(rng: np.random.Generator) -> None:
    """Checkpoints with the length of the header set right again."""
    which = int(rng.integers(len(runs())))
    with folder() as place:
        path = place / "run"

        def read(data: bytes) -> None:
            path.write_bytes(_joined(data))
            solve(which, path, 5)

        fuzz(rng, read, [_apart(checkpoints()[which][0])], WORDS, FILES // 4)


def check_checkpoint_facts(rng: np.random.Generator) -> None:
    """Checkpoints whose facts and arrays were changed before they were written."""
    which = int(rng.integers(len(runs())))
    with folder() as place:
        path = place / "run"
        path.write_bytes(checkpoints()[which][0])
        arrays, meta = store.read(path, "structlearn.checkpoint/9")
        schema = meta.pop("schema")
        mutator = Mutator(int(rng.integers(2**62)), [b"lbfgs"], [])

        def read(_: bytes) -> None:
            facts = {name: _changed(rng, fact, mutator) for name, fact in meta.items()}
            store.write(path, _changed_arrays(rng, arrays), facts, schema)
            with np.errstate(all="ignore"), contextlib.suppress(Exception):
                solve(which, path, 5)

        fuzz(rng, read, [b"-"], [], FILES // 10)
