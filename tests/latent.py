"""Random examples with hidden variables, together with the features of all their assignments."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

import naive
from structlearn._src.graph.batch import Sequences, assemble
from structlearn._src.graph.wiring import HIDDEN, OUTPUT
from structlearn._src.model.model import Examples, LinearModel
from structlearn._src.model.term import LinearTerm, Sparse, TableTerm
from structlearn._src.text.labels import Forbidden
from structlearn._src.text.rows import from_dense

STATES = 3


@dataclass
class Case:
    """A problem, and for every example the features of all its assignments in a matrix."""

    model: LinearModel
    examples: Examples
    cards: list[tuple[int, ...]]
    features: list[np.ndarray]  #: (assignments, weights) per example
    barred: list[np.ndarray]  #: (assignments,) 0, or -inf where forbidden

    def labels(self, i):
        borders = self.examples.structure.variables
        return self.examples.labels[borders[i] : borders[i + 1]]

    def scores(self, i, weights):
        return self.features[i] @ weights + self.barred[i]

    def loss(self, i, weights, part, matrix, mean=False):
        """Loss of one pair of worlds by enumeration, and its gradient."""
        costs = naive.cost_rows(self.labels(i), matrix, mean) if part.with_cost else None
        value, gradient = naive.two_worlds(
            self.scores(i, weights), self.cards[i], self.labels(i), part.eps_y, part.eps_h, costs
        )
        return value, gradient @ self.features[i]

    def losses(self, weights, loss, matrix, mean=False):
        """Losses of all examples (examples,) and their gradients (examples, weights)."""
        pairs = [
            [self.loss(i, weights, part, matrix, mean) for part in loss.parts]
            for i in range(len(self.cards))
        ]
        shares = [part.share for part in loss.parts]
        values = [sum(s * v for s, (v, _) in zip(shares, p, strict=True)) for p in pairs]
        gradients = [sum(s * g for s, (_, g) in zip(shares, p, strict=True)) for p in pairs]
        return np.array(values), np.array(gradients)


def graph_case(seed, kind="loopy", n_graphs=3, hidden=0.4, least=1, most=5):
    """Random graphs: outputs with `STATES` states, hidden variables with 1 to 3, arity up to 3."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(least, most + 1, n_graphs)
    borders = np.concatenate([[0], np.cumsum(sizes)])
    secret = rng.random(borders[-1]) < hidden
    cards = np.where(secret, rng.integers(1, 4, len(secret)), STATES)
    scopes = [s for a, b in itertools.pairwise(borders) for s in _scopes(rng, a, b, kind)]
    shapes = sorted({tuple(int(cards[v]) for v in scope) for scope in scopes})
    groups = [[s for s in scopes if tuple(int(cards[v]) for v in s) == shape] for shape in shapes]
    graphs = assemble(
        cards, np.where(secret, HIDDEN, OUTPUT), borders, tuple(np.array(g) for g in groups)
    )
    # An output may be unlabelled in one example and labelled in another.
    open_ = secret | (rng.random(len(secret)) < 0.2)
    labels = np.where(open_, -1, rng.integers(0, STATES, len(open_)))
    drawn = [_terms(rng, len(g), int(np.prod(s))) for g, s in zip(groups, shapes, strict=True)]
    model, inputs, dense = _join(drawn)
    examples = Examples(graphs, inputs, labels, rng.uniform(0.2, 2.0, n_graphs))
    rows = [
        (g, r, scope, shapes[g]) for g, group in enumerate(groups) for r, scope in enumerate(group)
    ]
    return _case(model, examples, cards, rows, dense)


def _scopes(rng, first, last, kind):
    """Scopes of one graph; every variable is in at least one."""
    n = last - first
    out = [(v,) for v in range(first, last) if n == 1 or rng.random() < 0.7]
    v = first + 1
    while v < last:
        # In a tree one or two new variables hang on an old one; else one new on one or two old.
        new, old = (int(rng.integers(1, 3)), 1) if kind == "tree" else (1, int(rng.integers(1, 3)))
        before = rng.choice(np.arange(first, v), min(v - first, old), replace=False)
        scope = [*range(v, min(v + new, last)), *before]
        out.append(tuple(int(u) for u in rng.permutation(scope)))
        v += new
    return out


def _terms(rng, n, size):
    """One or two random terms, with dense features for the oracle."""
    out = []
    for kind in rng.permutation(["dense", "sparse", "table", "tied"])[: int(rng.integers(1, 3))]:
        x = rng.normal(size=(n, 2)) * (rng.random((n, 2)) < 0.8)
        every = np.eye(size)
        if kind == "dense":
            out.append((LinearTerm(2, size), x, x, every))
        elif kind == "sparse":
            out.append((LinearTerm(2, size), Sparse(from_dense(x)), x, every))
        elif kind == "table":
            out.append((TableTerm(size), None, np.ones((n, 1)), every))
        else:
            ties = rng.integers(-1, 2, size)
            used = np.array([ties == k for k in range(ties.max() + 1)], float).reshape(-1, size)
            out.append((TableTerm(size, tuple(int(t) for t in ties)), None, np.ones((n, 1)), used))
    return out


def _join(drawn):
    model = LinearModel(tuple(tuple(t[0] for t in terms) for terms in drawn))
    inputs = tuple(tuple(t[1] for t in terms) for terms in drawn)
    return model, inputs, [[t[2:] for t in terms] for terms in drawn]


def _case(model, examples, cards, rows, dense, bars=None):
    """Write out the features of all assignments of all examples.

    `rows` are (group, row, scope, shape); `dense` has for every group the features and for every
    weight of a feature the entries that use it.
    """
    borders = examples.structure.variables
    every, features, barred = [], [], []
    for a, b in itertools.pairwise(borders):
        every.append(tuple(int(c) for c in cards[a:b]))
        mine = [row for row in rows if a <= row[2][0] < b]
        phi = []
        for labels in naive.assignments(every[-1]):
            blocks = [[np.zeros(x.shape[1] * len(used)) for x, used in terms] for terms in dense]
            for g, r, scope, shape in mine:
                entry = np.ravel_multi_index([labels[v - a] for v in scope], shape)
                for block, (x, used) in zip(blocks[g], dense[g], strict=True):
                    block += np.outer(x[r], used[:, entry]).ravel()
            phi.append(np.concatenate([block for group in blocks for block in group]))
        features.append(np.array(phi))
        wrong = [bars(labels) if bars else False for labels in naive.assignments(every[-1])]
        barred.append(np.where(wrong, -np.inf, 0.0))
    return Case(model, examples, every, features, barred)


def sequence_case(seed, edges="table", hidden=0.0, bars=False, nodes="linear", n=4, longest=4):
    """Random sequences.

    `edges` is "table" (shared), "features" (a table each), "both" or "none"; `nodes` "linear",
    "sparse" or "table" (all positions alike).
    """
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, longest + 1, n))])
    total, links, size = offsets[-1], offsets[-1] - n, STATES * STATES
    forbidden = _bars(rng) if bars else None
    sequences = Sequences(offsets, STATES, forbidden)
    x, z = rng.normal(size=(total, 2)), rng.normal(size=(links, 2))
    node, every = (np.ones((total, 1)), np.eye(STATES)) if nodes == "table" else (x, np.eye(STATES))
    term = {
        "linear": (LinearTerm(2, STATES), x),
        "sparse": (LinearTerm(2, STATES), Sparse(from_dense(x))),
        "table": (TableTerm(STATES), None),
    }[nodes]
    drawn = [[(*term, node, every)]]
    table = TableTerm(size), None, np.ones((links, 1)), np.eye(size)
    linear = LinearTerm(2, size), z, z, np.eye(size)
    chosen = {"table": [table], "features": [linear], "both": [table, linear], "none": []}[edges]
    drawn += [chosen] if chosen else []
    labels = _allowed(rng, offsets, forbidden)
    labels[rng.random(total) < hidden] = -1
    model, inputs, dense = _join(drawn)
    examples = Examples(sequences, inputs, labels, rng.uniform(0.2, 2.0, n))
    later = [t for t in range(total) if t not in offsets]
    rows = [(0, t, (t,), (STATES,)) for t in range(total)]
    if chosen:
        rows += [(1, r, (t - 1, t), (STATES, STATES)) for r, t in enumerate(later)]

    def wrong(labels):
        return forbidden is not None and _wrong(forbidden, labels)

    return _case(model, examples, np.full(total, STATES), rows, dense, wrong)


def _bars(rng):
    """State 0 may go anywhere, the others not."""
    first, last = rng.random(STATES) < 0.5, rng.random(STATES) < 0.5
    steps = rng.random((STATES, STATES)) < 0.4
    first[0] = last[0] = False
    steps[0] = False
    steps[:, 0] = False
    return Forbidden(first, last, steps)


def _wrong(bars, labels):
    steps = itertools.pairwise(labels)
    return bool(
        bars.first[labels[0]] or bars.last[labels[-1]] or any(bars.pairs[a, b] for a, b in steps)
    )


def _allowed(rng, offsets, bars):
    """Random labels that break no bar."""
    out = []
    for length in np.diff(offsets):
        labels = rng.integers(0, STATES, length)
        while bars is not None and _wrong(bars, labels):
            labels = rng.integers(0, STATES, length)
        out.append(labels)
    return np.concatenate(out)


def as_graphs(case):
    """The same case with its sequences as graphs."""
    structure = case.examples.structure.graphs()
    structure = replace(structure, groups=structure.groups[: len(case.examples.inputs)])
    return replace(case, examples=replace(case.examples, structure=structure))
