"""Steps on links of states, against steps on whole labellings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import naive
from chain_objectives import KINDS, Dense, chains
from structlearn._src.kernels.chain.frank_wolfe import (
    DualFlow,
    FlowWeights,
    FlowWorkspace,
    frank_wolfe,
    hinge,
)

SMALL = {"n": 5, "longest": 4, "loss": "hinge", "C": 0.4}
ROOM = 20  # paths that every list of links has room for


def workspace(dense, n_weights, longest=4):
    K, links = dense.states, ROOM * longest
    whole, index = np.int64, np.int32
    return FlowWorkspace(
        np.empty((longest, K)),
        np.empty((longest, K)),
        np.empty(longest, whole),
        np.empty(longest + 1, whole),
        np.empty(links, index),
        np.empty(links, index),
        np.empty(links),
        np.empty(links),
        np.empty((longest, K), whole),
        np.empty(longest, whole),
        np.zeros(n_weights),
        np.zeros((K, K)),
    )


def true_flow(dense):
    """Links of the true labels, with room for more."""
    lengths = np.array([b - a for a, b in dense.cuts])
    starts = np.append(0, np.cumsum(ROOM * lengths))
    ends, befores = np.zeros((2, starts[-1]), np.int32)
    shares = np.zeros(starts[-1])
    for start, (a, b) in zip(starts, dense.cuts, strict=False):
        labels = dense.data.labels[a:b]
        ends[start : start + b - a] = np.arange(b - a) * dense.states + labels
        befores[start : start + b - a] = np.append(-1, labels[:-1])
        shares[start : start + b - a] = 1.0
    return DualFlow(starts[:-1].copy(), lengths, ends, befores, shares, np.zeros(len(lengths)))


class Fast:
    """Weights and flow that the kernel keeps."""

    def __init__(self, objective):
        self.chains = objective.chain_arrays
        self.dense = Dense(objective)
        self.dual = true_flow(self.dense)
        self.weights = np.zeros(objective.n_weights)

    def visit(self, order, pairwise):
        inner = self.chains.to_kernel(self.weights)
        table = self.chains.table(inner)
        edges = (table + self.chains.data.bars)[None]
        primal = FlowWeights(inner, edges)
        work = workspace(self.dense, len(inner))
        given = order, self.chains.data, self.chains.loss_weights, primal, self.dual, work
        frank_wolfe(*given, pairwise, 1.0)
        np.copyto(table, edges[0], where=np.isfinite(edges[0]))
        self.chains.from_kernel(self.weights, inner)
        assert not work.pulled.any()

    @property
    def dual_value(self):
        return self.dual.losses.sum() - 0.5 * self.weights @ self.weights

    def links(self, c):
        """Share of every link (position, state before, state) of a sequence."""
        own = slice(self.dual.starts[c], self.dual.starts[c] + self.dual.counts[c])
        places, states = np.divmod(self.dual.ends[own], self.dense.states)
        every = zip(places, self.dual.befores[own], states, self.dual.shares[own], strict=True)
        return {(int(t), int(r), int(s)): share for t, r, s, share in every}


def sequences(dense):
    """What the slow version asks of every sequence."""
    return [sequence(dense, c) for c in range(dense.objective.n_examples)]


def sequence(dense, c):
    factor = dense.objective.chain_arrays.loss_weights[c]
    true = tuple(int(s) for s in dense.potentials(c, np.zeros(dense.objective.n_weights))[2])
    every = list(naive.assignments([dense.states] * len(true)))

    def best(weights):
        scores, edges, _, costs = dense.potentials(c, weights)
        return every[int(np.argmax([naive.path_score(scores + costs, edges, y) for y in every]))]

    def compare(path):
        nodes, steps = np.zeros((len(true), dense.states)), np.zeros((dense.states, dense.states))
        for labels, sign in ((true, 1.0), (path, -1.0)):
            nodes[np.arange(len(true)), labels] += sign
            for step in itertools.pairwise(labels):
                steps[step] += sign
        costs = dense.potentials(c, np.zeros(dense.objective.n_weights))[3]
        cost = sum(costs[t, s] for t, s in enumerate(path))
        return factor * dense.pull(c, nodes, steps), factor * cost

    return best, compare, true


@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_those_on_labellings(kind):
    fast = Fast(chains(**SMALL | KINDS[kind]))
    rng = np.random.default_rng(0)
    orders = [rng.permutation(5) for _ in range(3)]
    for order in orders:
        fast.visit(order, False)
    given = sequences(fast.dense), np.concatenate(orders), len(fast.weights)
    weights, costs, shares = naive.frank_wolfe_steps(*given)
    np.testing.assert_allclose(fast.weights, weights, atol=1e-10)
    np.testing.assert_allclose(fast.dual.losses, costs, atol=1e-10)
    for c in range(5):
        flow = {}
        for path, share in shares[c].items():
            for t, s in enumerate(path):
                link = t, path[t - 1] if t else -1, s
                flow[link] = flow.get(link, 0.0) + share
        flow = {link: share for link, share in flow.items() if share > 1e-13}
        assert fast.links(c) == pytest.approx(flow, abs=1e-10)


@pytest.mark.parametrize("kind", ["dense", "matrix"])
@pytest.mark.parametrize("seed", range(3))
def test_pairwise_steps_take_from_the_worst_path_in_use_as_much_as_is_best(kind, seed):
    """Long steps, as paths then have narrow links in common, which do not limit a step."""
    fast = Fast(chains(**SMALL | KINDS[kind] | {"C": 2.0, "seed": seed}))
    slow = sequences(fast.dense)
    rng = np.random.default_rng(3)
    for _ in range(3):
        fast.visit(rng.permutation(5), False)
    moved = 0
    for c in np.tile(rng.permutation(5), 6):
        best, compare, _ = slow[c]
        weights, flow = fast.weights.copy(), fast.links(c)
        path = best(weights)

        def score(y, compare=compare, weights=weights):
            difference, cost = compare(y)
            return cost - difference @ weights

        def limit(worst, compare=compare, path=path, score=score):
            apart = compare(worst)[0] - compare(path)[0]
            gain = score(path) - score(worst)
            return gain / (apart @ apart) if apart.any() else 0.0

        expected, length = naive.pairwise_step(flow, path, score, limit)
        fast.visit(np.array([c]), True)
        assert fast.links(c) == pytest.approx(expected, abs=1e-10)
        moved += length > 0.0
    assert moved > 5


@pytest.mark.parametrize("kind", ["dense", "pairs", "bars"])
def test_pairwise_steps_raise_the_dual_and_keep_a_flow(kind):
    fast = Fast(chains(**SMALL | KINDS[kind]))
    rng = np.random.default_rng(1)
    values = [fast.dual_value]
    for turn in range(8):
        fast.visit(rng.permutation(5), turn % 2 == 1)
        values.append(fast.dual_value)
    assert (np.diff(values) >= -1e-12).all()
    assert values[-1] <= fast.dense.objective.value(fast.weights) + 1e-12
    for c, (a, b) in enumerate(fast.dense.cuts):
        nodes = np.zeros((b - a, fast.dense.states))
        leaving = np.zeros((b - a, fast.dense.states))
        for (t, r, s), share in fast.links(c).items():
            nodes[t, s] += share
            if t:
                leaving[t - 1, r] += share
        np.testing.assert_allclose(nodes.sum(axis=1), 1.0, atol=1e-9)
        np.testing.assert_allclose(nodes[:-1], leaving[:-1], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_hinge_is_the_best_labelling_less_the_true_one(kind):
    objective = chains(**SMALL | KINDS[kind])
    dense, flat = Dense(objective), objective.chain_arrays
    weights = np.random.default_rng(2).normal(size=objective.n_weights)
    inner = flat.to_kernel(weights)
    edges = (flat.table(inner) + flat.data.bars)[None]
    n = len(flat.loss_weights)
    found = hinge(flat.data, flat.loss_weights, inner, edges, 0, n, workspace(dense, 0))
    losses = []
    for c in range(5):
        scores, table, labels, costs = dense.potentials(c, weights)
        losses.append(naive.chain_loss(scores, table, labels, 0.0, costs)[0])
    assert found == pytest.approx(flat.loss_weights @ losses)
