"""Buckets, their messages and beliefs, against whole tables."""

from __future__ import annotations

import math

import numpy as np
import pytest

import naive
from structlearn._src.inference.base import Problem
from structlearn._src.inference.junction import make_plan, order_for
from structlearn._src.kernels.graph import eliminate

LIMIT = 2**20


def wide_graph(rng):
    """A clique whose first bucket has many blocks: two of its axes are outer ones."""
    graph = naive.clique(rng)
    assert 5 ** (graph.n_variables - 1) > eliminate.BLOCK
    return graph


def small_graph(rng):
    return naive.random_graph(rng, 6, 3, 3, hidden=0.5, zeros=0.1, min_card=2)


class Eliminated:
    """All that the kernels need, and what they wrote."""

    def __init__(self, graph, eps_output=1.0, eps_hidden=1.0):
        problem = Problem(graph.wiring, graph.potentials, eps_output, eps_hidden)
        self.graph, self.eps, self.cards = graph, problem.eps, graph.wiring.cards
        self.plan = make_plan(graph.wiring, order_for(problem, LIMIT))
        self.store = np.full(
            int(self.plan.message_offsets[-1]), np.nan
        )  # as an earlier call left it
        axes = int(np.diff(self.plan.axis_offsets).max())
        inputs = int(np.diff(self.plan.input_offsets).max())
        self.room = axes, inputs, int(self.cards.max())
        self.value = np.zeros(1)
        block = eliminate.make_workspace(*self.room)
        self.frame = self.cards, self.eps, self.plan, graph.wiring.graph_tables
        eliminate.forward(*self.frame, problem.potentials, self.store, block, 0, 1, self.value)

    def axes(self, b):
        return self.plan.axes[self.plan.axis_offsets[b] : self.plan.axis_offsets[b + 1]].tolist()

    def message(self, b):
        own = slice(self.plan.message_offsets[b], self.plan.message_offsets[b + 1])
        return self.store[own].reshape([self.cards[v] for v in self.axes(b)[:-1]])

    def beliefs(self):
        wiring = self.graph.wiring
        beliefs = np.full(len(self.store), np.nan)
        marginals = np.full(int(wiring.belief_offsets[-1]), np.nan)
        block = eliminate.make_workspace(*self.room)
        given = self.store, beliefs, wiring.belief_offsets, block, 0, 1
        eliminate.backward(*self.frame, *given, marginals)
        return beliefs[: len(self.graph.potentials)], marginals

    def decode(self, uniforms=None):
        n = len(self.cards)
        labels = np.full(n, -1, np.int64)
        uniforms = np.full(n, -1.0) if uniforms is None else uniforms
        given = self.store, uniforms, np.empty(int(self.cards.max()))
        eliminate.decode(self.cards, self.eps, self.plan, *given, labels)
        return labels


def soft_max_along(table, axis, eps):
    moved = np.moveaxis(table, axis, -1)
    flat = moved.reshape(-1, moved.shape[-1])
    return np.array([naive.soft_max(row, eps) for row in flat]).reshape(moved.shape[:-1])


def slow_messages(found):
    """Messages of all buckets: tables of their factors and messages, one axis per variable."""
    graph, plan = found.graph, found.plan
    n = graph.n_variables
    left = [(set(graph.scope(f).tolist()), spread(graph, f)) for f in range(graph.n_factors)]
    out, value = [], 0.0
    for b in range(n):
        v = int(plan.variables[b])
        table = np.zeros([1] * n)
        for _, part in (entry for entry in left if v in entry[0]):
            table = table + part
        scope = set().union({v}, *(entry[0] for entry in left if v in entry[0])) - {v}
        left = [entry for entry in left if v not in entry[0]]
        table = np.broadcast_to(
            table, [graph.cards[u] if u in scope | {v} else 1 for u in range(n)]
        )
        message = np.expand_dims(soft_max_along(table, v, found.eps[v]), v)
        out.append((scope, message))
        if scope:
            left.append((scope, message))
        else:
            value += float(message.ravel()[0])
    return out, value


def spread(graph, f):
    """Table of a factor with one axis per variable of the graph."""
    scope = graph.scope(f).tolist()
    shape = [graph.cards[v] if v in scope else 1 for v in range(graph.n_variables)]
    return graph.table(f).transpose(np.argsort(scope)).reshape(shape)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("eps", [(1.0, 1.0), (0.0, 1.0), (0.3, 0.7), (0.0, 0.0)])
def test_messages_are_soft_maxima_of_what_holds_the_variable(seed, eps):
    found = Eliminated(small_graph(np.random.default_rng(seed)), *eps)
    messages, value = slow_messages(found)
    assert found.value[0] == pytest.approx(value)
    for b, (scope, message) in enumerate(messages):
        order = found.axes(b)[:-1]
        assert set(order) == scope
        moved = message.transpose([*order, *(v for v in range(message.ndim) if v not in order)])
        np.testing.assert_allclose(found.message(b), moved.reshape(found.message(b).shape))


def test_axes_are_those_eliminated_latest_first_and_the_own_variable_last():
    for seed in range(8):
        found = Eliminated(small_graph(np.random.default_rng(seed)))
        rank = {int(v): i for i, v in enumerate(found.plan.variables)}
        for b in range(len(found.cards)):
            *separator, own = found.axes(b)
            assert own == found.plan.variables[b]
            ranks = [rank[v] for v in separator]
            assert ranks == sorted(ranks, reverse=True)
            assert all(r > b for r in ranks)
            parent = found.plan.parents[b]
            assert parent == (min(ranks) if ranks else -1)


@pytest.mark.parametrize("make", [small_graph, wide_graph])
@pytest.mark.parametrize("eps", [1.0, 0.4])
def test_beliefs_are_marginals_of_the_joint_table(make, eps):
    graph = make(np.random.default_rng(9))
    found = Eliminated(graph, eps, eps)
    value, joint = naive.value_and_distribution(graph, eps, eps)
    assert found.value[0] == pytest.approx(value)
    beliefs, marginals = found.beliefs()
    wiring = graph.wiring
    for f in range(graph.n_factors):
        own = beliefs[wiring.table_offsets[f] : wiring.table_offsets[f + 1]]
        expected = naive.marginal(joint, graph.scope(f).tolist())
        np.testing.assert_allclose(own, expected.ravel(), atol=1e-12)
    for v in range(graph.n_variables):
        own = marginals[wiring.belief_offsets[v] : wiring.belief_offsets[v + 1]]
        np.testing.assert_allclose(own, naive.marginal(joint, [v]), atol=1e-12)


@pytest.mark.parametrize("make", [small_graph, wide_graph])
def test_walking_back_finds_the_best_assignment(make):
    graph = make(np.random.default_rng(10))
    found = Eliminated(graph, 0.0, 0.0)
    labels = found.decode()
    assert naive.score(graph, labels) == pytest.approx(naive.joint(graph).max())
    assert found.value[0] == pytest.approx(naive.joint(graph).max())
    beliefs, _ = found.beliefs()
    assert sorted(np.unique(beliefs)) == [0.0, 1.0]
    assert beliefs @ np.where(beliefs > 0, graph.potentials, 0.0) == pytest.approx(found.value[0])


def test_outputs_do_not_depend_on_the_states_of_hidden_variables():
    graph = small_graph(np.random.default_rng(11))
    hidden = graph.wiring.roles == 1
    found = Eliminated(graph, 0.0, 1.0)
    labels = found.decode()
    values = naive.marginal_map_values(graph)
    assert values[tuple(labels[~hidden])] == pytest.approx(values.max())


def test_uniform_numbers_make_exact_draws():
    graph = naive.random_graph(np.random.default_rng(12), 3, 3, 3, min_card=2)
    found = Eliminated(graph)
    _, joint = naive.value_and_distribution(graph)
    rng = np.random.default_rng(13)
    n = 4000
    drawn = np.zeros(joint.shape)
    for _ in range(n):
        drawn[tuple(found.decode(rng.random(graph.n_variables)))] += 1.0 / n
    assert np.abs(drawn - joint).max() < 5.0 * math.sqrt(0.25 / n)
