"""Sequences: objectives, gradients, marginals, best labellings and predictions by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
from naive_model import NaiveModel, chain

from campaign.base import expect
from structlearn import SequenceLabeler
from structlearn._src.text.labels import forbidden_transitions

CHAINS = 4
#: Temperatures of labels and of hidden variables, and whether errors cost.
LOSSES = {
    "log": (1.0, 1.0, False),
    "hinge": (0.0, 0.0, True),
    "latent-hinge": (0.0, 0.0, True),
    "marginal": (0.0, 1.0, True),
    "eps": (0.5, 0.5, True),
    "hybrid": (0.0, 1.0, True),
    "perceptron": (0.0, 0.0, False),
}


class Case:
    """Data, an estimator that has not learnt yet, and the model by its equations."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.states = int(rng.integers(2, 4))
        self.width = int(rng.integers(1, 3))
        self.hidden = rng.choice([None, None, None, "node", "layer"])
        longest = 3 if self.hidden else 4
        sizes = [*rng.integers(1, longest + 1, int(rng.integers(1, 4))), longest]
        scale = float(rng.choice([1.0, 1.0, 1e-3, 30.0]))
        self.X = [scale * rng.normal(size=(n, self.width)) for n in sizes]
        self.pairs = [(1, 1), (0, 1)] if rng.random() < 0.25 and not self.hidden else None
        self.Y = [self._labels(rng, n) for n in sizes]
        self.Y[-1][0] = self.states - 1 if self.pairs is None else self.Y[-1][0]
        self.edge_width = self.width if rng.random() < 0.2 and not self.hidden else 0
        self.C = float(rng.choice([0.1, 1.0, 10.0]))
        self.options = {
            "loss": str(rng.choice(list(LOSSES))),
            "alpha": float(rng.random()),
            "cost": "hamming",
            "hidden": self.hidden,
            "forbidden": self.pairs,
            "transitions": "features" if self.edge_width else "table",
            "C": self.C,
            "n_jobs": 1,
            "random_state": 0,
        }
        if self.options["loss"] == "eps":
            self.options["eps_y"] = float(rng.choice([0.1, 0.5, 2.0]))
        self.parts = self._parts()

    def _parts(self):
        """Share, temperatures and cost of every pair of worlds in the loss."""
        name = self.options["loss"]
        eps_y, eps_h, costly = LOSSES[name]
        if name == "eps":
            eps_y = eps_h = self.options["eps_y"]
        if name != "hybrid":
            return [(1.0, eps_y, eps_h, costly)]
        alpha = self.options["alpha"]
        return [(alpha, 1.0, 1.0, False), (1.0 - alpha, eps_y, eps_h, costly)]

    def _labels(self, rng, n):
        """Labels that keep to what is forbidden; sometimes one is not known."""
        while True:
            y = rng.integers(self.states, size=n)
            if not self.pairs or not any(step in self.pairs for step in itertools.pairwise(y)):
                break
        if rng.random() < 0.2 and n > 1 and not self.pairs:
            y[int(rng.integers(1, n))] = -1
        return y

    def naive(self, weights):
        bars = None
        if self.pairs:
            found = forbidden_transitions(list(range(self.states)), self.pairs)
            bars = (found.first, found.last, found.pairs)
        return NaiveModel(
            weights, self.states, edge_width=self.edge_width, hidden=self.hidden, hidden_states=2, bars=bars
        )  # fmt: skip

    def examples(self):
        return [chain(x, x[1:] if self.edge_width else None) for x in self.X]

    def value(self, weights):
        """The objective by its definition."""
        model = self.naive(weights)
        losses = 0.0
        for share, *part in self.parts:
            pairs = zip(self.examples(), self.Y, strict=True)
            losses += share * sum(model.loss(e, y, *part) for e, y in pairs)
        penalty = 0.0 if self.options["loss"] == "perceptron" else 0.5 * weights @ weights
        return penalty + self.C * losses

    def told(self):
        return f"{self.options} X={[x.tolist() for x in self.X]} Y={[y.tolist() for y in self.Y]}"


def check(rng: np.random.Generator) -> None:
    """Look at some sequences: the objective first, then a short fit and its answers."""
    for _ in range(CHAINS):
        case = Case(rng)
        if len(np.unique(np.concatenate(case.Y)[np.concatenate(case.Y) >= 0])) < case.states:
            case.Y = [np.arange(len(y)) % case.states if not case.pairs else y for y in case.Y]
        known = np.unique(np.concatenate(case.Y))
        if (known >= 0).sum() < case.states:
            continue
        objective(case, rng)
        answers(case, rng)


def objective(case, rng):
    """Value and gradient at random weights."""
    labeler = SequenceLabeler(**case.options)
    given = labeler.objective(case.X, case.Y)
    weights = rng.normal(size=given.n_weights)
    found = given.value_gradient(weights)
    right = case.value(weights)
    close = 1e-8 * (1.0 + abs(right))
    expect(abs(found[0] - right) <= close, f"objective {found[0]}, not {right}:", case.told())
    if any(0.0 in part[1:3] for part in case.parts):
        # A subgradient: no point lies below its plane; losses less clamped values are not convex.
        return
    along = rng.normal(size=len(weights))
    along /= np.linalg.norm(along)
    step = 1e-5
    slope = (case.value(weights + step * along) - case.value(weights - step * along)) / (2 * step)
    scale = 1.0 + np.abs(found[1]).max() + abs(right)
    expect(
        abs(found[1] @ along - slope) <= 1e-5 * scale,
        f"slope {found[1] @ along}, not {slope}:",
        case.told(),
    )


def answers(case, rng):
    """Predictions, marginals and the k best of a model with given weights."""
    labeler = SequenceLabeler(**case.options, max_iter=2).fit(case.X, case.Y)
    labeler.weights_ = rng.normal(size=len(labeler.weights_)) * float(rng.choice([0.0, 1.0, 20.0]))
    model = case.naive(labeler.weights_)
    eps_h = case.parts[-1][2]
    examples = case.examples()
    tables = [model.table(example) for example in examples]
    for joint in (False, True):
        for found, (scores, rows, _) in zip(
            labeler.predict(case.X, joint=joint), tables, strict=True
        ):
            judge_best(scores, rows, found, 0.0 if joint else eps_h, case)
    for found, example in zip(labeler.predict_marginals(case.X), examples, strict=True):
        expect(np.allclose(found, model.marginals(example), atol=1e-7), "marginals:", case.told())
    if not case.hidden:
        k = int(rng.integers(1, 6))
        for found, (scores, rows, _) in zip(labeler.decode(case.X, k=k), tables, strict=True):
            judge_k_best(scores[:, 0], rows, found, k, case)


def judge_best(scores, rows, found, eps, case):
    """What was found has the best value; ties may go either way."""
    values = [_soft(row, eps) for row in scores]
    mine = values[[tuple(row) for row in rows].index(tuple(int(y) for y in found))]
    size = 1.0 + np.abs(scores[np.isfinite(scores)]).max()
    expect(
        mine >= max(values) - 1e-9 * size,
        f"{found} is worth {mine}, not {max(values)}:",
        case.told(),
    )


def _soft(row, eps):
    top = row.max()
    if eps == 0.0 or top == -np.inf:
        return top
    return top + eps * np.log(np.exp((row - top) / eps).sum())


def judge_k_best(scores, rows, found, k, case):
    right = np.sort(scores[np.isfinite(scores)])[::-1][:k]
    size = 1.0 + np.abs(right).max()
    values = [value for value, _ in found]
    expect(len(values) == len(right), f"{len(values)} of {k} best, not {len(right)}:", case.told())
    expect(
        np.allclose(values, right, atol=1e-9 * size), f"k best {values}, not {right}:", case.told()
    )
    places = [tuple(row) for row in rows]
    paths = [tuple(int(y) for y in labels) for _, labels in found]
    expect(len(set(paths)) == len(paths), "the same labelling twice:", case.told())
    mine = scores[[places.index(path) for path in paths]]
    expect(np.allclose(mine, values, atol=1e-9 * size), "scores of the k best:", case.told())
