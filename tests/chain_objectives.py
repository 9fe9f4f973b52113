"""Small random objectives over sequences."""

from __future__ import annotations

import itertools

import numpy as np

from structlearn._src.graph.batch import Sequences
from structlearn._src.learn.loss import Cost, ElasticNet, make_cost, make_loss
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.model.model import Examples, LinearModel
from structlearn._src.model.term import LinearTerm, PairsTerm, Sparse, TableTerm
from structlearn._src.text.labels import Forbidden
from structlearn._src.text.rows import from_dense

#: What `chains` can be asked for; every compiled solver must cope with all of it.
KINDS = {
    "dense": {},
    "multiclass": {"longest": 1, "edges": "none"},
    "sparse": {"features": "sparse"},
    "pairs": {"features": "pairs", "edges": "seen"},
    "no edges": {"edges": "none"},
    "bars": {"bars": True},
    "matrix": {"cost": "matrix", "weighted": True},
    "mean": {"cost": "hamming-mean", "weighted": True},
}


def chains(
    seed=0,
    n=20,
    states=3,
    width=4,
    longest=5,
    loss="hinge",
    C=0.5,
    features="dense",
    edges="table",
    bars=False,
    cost="hamming",
    weighted=False,
    l1_ratio=0.0,
    **parameters,
):
    """A structured objective; the first sequences are of length 1 and of full length."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, n)
    lengths[:2] = 1, longest
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    forbidden = None
    if bars:
        steps = np.zeros((states, states), bool)
        steps[0, 1] = True
        first, last = np.arange(states) == 1, np.arange(states) == 0
        forbidden = Forbidden(first, last, steps)
    labels = np.concatenate([path(rng, length, states, forbidden) for length in lengths])
    x = rng.normal(size=(len(labels), width)) + rng.normal(size=(states, width))[labels]
    x = np.where(rng.random(x.shape) < 0.3, 0.0, x)
    given = x if features == "dense" else Sparse(from_dense(x if features == "sparse" else x > 0.5))
    nodes = (
        PairsTerm.seen(given, labels, states) if features == "pairs" else LinearTerm(width, states)
    )
    groups, inputs = ((nodes,),), ((given,),)
    if edges != "none":
        groups += (
            (TableTerm(states**2, ties(labels, offsets, states) if edges == "seen" else None),),
        )
        inputs += ((None,),)
    weights = rng.random(n) + 0.5 if weighted else np.ones(n)
    weights[-1] *= 0.0 if weighted else 1.0
    matrix = Cost((1.0 - np.eye(states)) * rng.random((states, states)))
    return StructuredObjective(
        LinearModel(groups),
        Examples(Sequences(offsets, states, forbidden), inputs, labels, weights),
        make_loss(loss, **parameters),
        matrix if cost == "matrix" else make_cost(cost, states),
        C,
        ElasticNet(l1_ratio),
    )


def path(rng, length, states, bars):
    """Random labels that keep to the bars."""
    while True:
        labels = rng.integers(states, size=length)
        steps = itertools.pairwise(labels)
        if bars is None or not (
            bars.first[labels[0]] or bars.last[labels[-1]] or any(bars.pairs[s] for s in steps)
        ):
            return labels


def ties(labels, offsets, states):
    """Weights for the transitions that occur, and for no others."""
    inner = np.setdiff1d(np.arange(1, len(labels)), offsets)
    seen = np.unique(labels[inner - 1] * states + labels[inner])[1:]  # one of them less
    out = np.full(states**2, -1)
    out[seen] = np.arange(len(seen))
    return tuple(int(i) for i in out)


class Dense:
    """The same objective as plain matrices, for slow versions of what kernels do."""

    def __init__(self, objective):
        examples, self.model = objective.examples, objective.model
        self.objective = objective
        self.data = objective.chain_arrays.data
        self.states = examples.structure.states
        given = examples.inputs[0][0]
        self.x = dense_rows(given.rows) if isinstance(given, Sparse) else given
        self.spread = spread(self.model, self.x.shape[1], self.states)
        self.cuts = list(itertools.pairwise(examples.structure.offsets))
        self.blocks = [
            np.flatnonzero(self.spread[d * self.states : (d + 1) * self.states].any(axis=0))
            for d in range(self.x.shape[1])
        ]

    def potentials(self, c, weights):
        """Scores of a sequence, its transitions with bars, labels and costs."""
        own = slice(*self.cuts[c])
        full = self.spread @ weights
        n_nodes = self.x.shape[1] * self.states
        scores = self.x[own] @ full[:n_nodes].reshape(-1, self.states)
        edges = full[n_nodes:].reshape(self.states, self.states) + self.data.bars
        labels = self.data.labels[own]
        costs = self.data.costs[labels] / (len(labels) if self.data.mean else 1)
        costs[0] += self.data.end_bars[0]
        costs[-1] += self.data.end_bars[1]
        return scores, edges, labels, costs

    def pull(self, c, nodes, steps):
        """Gradient by the weights from gradients by nodes and by transitions."""
        by_node = self.x[slice(*self.cuts[c])].T @ nodes
        return self.spread.T @ np.concatenate([by_node.ravel(), steps.ravel()])

    def met(self, c):
        """Features that occur in a sequence."""
        return np.flatnonzero((self.x[slice(*self.cuts[c])] != 0.0).any(axis=0))


def dense_rows(rows):
    """Sparse rows as a matrix."""
    out = np.zeros((rows.n_rows, rows.n_columns))
    owners = np.repeat(np.arange(rows.n_rows), np.diff(rows.offsets))
    out[owners, rows.columns] = rows.values if len(rows.values) else 1.0
    return out


def spread(model, width, states):
    """Matrix from the weights of a model to one for every feature and state, and transition."""
    out = np.zeros((width * states + states**2, model.n_weights))
    term = model.groups[0][0]
    places = np.arange(term.n_weights)
    if isinstance(term, PairsTerm):
        places = np.repeat(np.arange(width), np.diff(term.offsets)) * states + term.states
    out[places, np.arange(term.n_weights)] = 1.0
    for table in (terms[0] for terms in model.groups[1:]):
        for entry, weight in enumerate(table.ties or range(table.size)):
            if weight >= 0:
                out[width * states + entry, term.n_weights + weight] = 1.0
    return out
