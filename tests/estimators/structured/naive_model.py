"""Models over nodes and edges by enumeration, straight from their equations."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from naive import soft_max


@dataclass
class Example:
    """Features of nodes, edges of every kind, and perhaps features of the edges."""

    features: np.ndarray
    edges: list[list[tuple[int, int]]]
    edge_features: list[np.ndarray] | None = None
    hidden: list[bool] = field(default_factory=list)

    @property
    def n(self):
        return len(self.features)


@dataclass
class NaiveModel:
    """Weights in the order nodes, edges of every kind, hidden states, pairs with hidden states."""

    weights: np.ndarray
    states: int
    kinds: int = 1
    edge_width: int = 0
    hidden: str | None = None
    hidden_states: int = 1
    bars: tuple | None = None  # first, last, steps

    def blocks(self, width):
        K, H = self.states, self.hidden_states
        L = H if self.hidden == "layer" else K
        sizes = [(width, K)]
        for _ in range(self.kinds):
            sizes.append((L, L))
            if self.edge_width:
                sizes.append((self.edge_width, L, L))
        if self.hidden:
            sizes += [(width, H), (K, H)]
        out, start = [], 0
        for size in sizes:
            out.append(self.weights[start : start + np.prod(size)].reshape(size))
            start += int(np.prod(size))
        assert start == len(self.weights)
        return out

    def score(self, example, y, h):
        blocks = self.blocks(example.features.shape[1])
        total = sum(example.features[i] @ blocks[0][:, y[i]] for i in range(example.n))
        linked, at = h if self.hidden == "layer" else y, 1
        for kind, edges in enumerate(example.edges):
            table = blocks[at]
            total += sum(table[linked[a], linked[b]] for a, b in edges)
            at += 1
            if self.edge_width:
                between = blocks[at]
                for (a, b), x in zip(edges, example.edge_features[kind], strict=True):
                    total += x @ between[:, linked[a], linked[b]]
                at += 1
        if self.hidden:
            total += sum(example.features[i] @ blocks[-2][:, h[i]] for i in range(example.n))
            total += sum(blocks[-1][y[i], h[i]] for i in range(example.n))
        return total - self._barred(y)

    def _barred(self, y):
        if self.bars is None:
            return 0.0
        first, last, steps = self.bars
        bad = first[y[0]] or last[y[-1]] or any(steps[a, b] for a, b in itertools.pairwise(y))
        return np.inf if bad else 0.0

    def table(self, example):
        """Scores (labellings, hidden states), with what rows and columns stand for."""
        masked = _masks(example)
        H = self.hidden_states if self.hidden else 1
        outputs = [i for i in range(example.n) if not masked[i]]
        rows = list(itertools.product(range(self.states), repeat=len(outputs)))
        loose = [self.states if masked[i] else 1 for i in range(example.n)]
        columns = list(
            itertools.product(
                itertools.product(*(range(k) for k in loose)),
                itertools.product(range(H), repeat=example.n),
            )
        )
        scores = np.empty((len(rows), len(columns)))
        for r, given in enumerate(rows):
            for c, (free, h) in enumerate(columns):
                y = np.array(free)
                y[outputs] = given
                scores[r, c] = self.score(example, y, h)
        return scores, np.array(rows), columns

    # ---- queries -------------------------------------------------------------------------

    def predict(self, example, eps_h):
        scores, rows, _ = self.table(example)
        return rows[np.argmax([soft_max(row, eps_h) for row in scores])]

    def joint(self, example):
        scores, rows, _ = self.table(example)
        return rows[scores.max(axis=1).argmax()]

    def hidden_given(self, example, eps_h):
        scores, _, columns = self.table(example)
        best = np.argmax([soft_max(row, eps_h) for row in scores])
        return columns[scores[best].argmax()]

    def marginals(self, example):
        scores, rows, _ = self.table(example)
        p = np.exp(scores - soft_max(scores.ravel(), 1.0)).sum(axis=1)
        return np.array(
            [[p[rows[:, i] == k].sum() for k in range(self.states)] for i in range(rows.shape[1])]
        )

    def loss(self, example, labels, eps_y, eps_h, costly):
        """Loss of labels, -1 where unknown: unknown ones join the hidden variables."""
        scores, rows, _ = self.table(example)
        labels = np.asarray(labels)
        known = labels >= 0
        cost = (rows != labels)[:, known].sum(axis=1) if costly else np.zeros(len(rows))
        free = self._grouped(scores + cost[:, None], rows[:, known], eps_h)
        right = (rows[:, known] == labels[known]).all(axis=1)
        return soft_max(free, eps_y) - soft_max(scores[right].ravel(), eps_h)

    @staticmethod
    def _grouped(scores, keys, eps_h):
        groups = {}
        for key, row in zip(map(tuple, keys), scores, strict=True):
            groups.setdefault(key, []).append(row)
        return [soft_max(np.concatenate(rows), eps_h) for rows in groups.values()]

    def objective(self, examples, labels, C, eps_y, eps_h, costly):
        losses = [
            self.loss(e, y, eps_y, eps_h, costly) for e, y in zip(examples, labels, strict=True)
        ]
        return 0.5 * self.weights @ self.weights + C * sum(losses)


def chain(features, edge_features=None):
    edges = [(t, t + 1) for t in range(len(features) - 1)]
    return Example(features, [edges], None if edge_features is None else [edge_features])


def check_answers(labeler, model, X, examples, eps_h):
    """Everything that a labeler of nodes answers, against enumeration."""
    for name, answer in (("predict", model.predict), ("joint", model.joint)):
        given = labeler.predict(X, joint=name == "joint")
        for found, example in zip(given, examples, strict=True):
            labels = answer(example, eps_h) if name == "predict" else answer(example)
            shown = [
                y for y, masked in zip(np.ravel(found), _masks(example), strict=True) if not masked
            ]
            assert shown == labeler.classes_[labels].tolist()
    for found, example in zip(labeler.predict_marginals(X), examples, strict=True):
        rows = found.reshape(example.n, -1)[[not masked for masked in _masks(example)]]
        np.testing.assert_allclose(rows, model.marginals(example), atol=1e-8)


def _masks(example):
    return example.hidden or [False] * example.n


def sequences(n=6, length=4, width=3, seed=0):
    """Random sequences, each position labelled by its largest feature."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(length, width)) for _ in range(n)]
    return X, [x.argmax(axis=1) for x in X]
