"""Pieces of message passing: reductions of tables, beliefs, and what visits prepare."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import naive
from structlearn._src.inference.base import Problem
from structlearn._src.inference.message_plan import MessagePlan
from structlearn._src.inference.messenger import Messenger
from structlearn._src.kernels.graph import domain, message, readout
from structlearn._src.kernels.graph.message import MessageState
from structlearn._src.kernels.graph.schedule import BACK, FORTH
from structlearn._src.kernels.launch import over


@pytest.mark.parametrize("shape", [(1, 3, 1), (4, 2, 3), (2, 3, 14)])
@pytest.mark.parametrize("eps", [1.0, 0.4, 0.0])
def test_reductions_of_the_middle_axis(shape, eps):
    rng = np.random.default_rng(0)
    table = rng.normal(size=shape)
    incoming = rng.normal(size=(2, shape[1]))
    source = np.concatenate([np.full(3, np.nan), table.ravel()])
    out = np.empty(shape[0] * shape[2])
    sizes = np.array(shape)
    message.contract.py_func(source, 3, *sizes, incoming, 1, eps, False, out)
    moved = table + incoming[1][:, None]
    right = moved.max(axis=1) if eps == 0 else eps * logsumexp(moved / eps, axis=1)
    np.testing.assert_allclose(out, right.ravel())
    if eps == 1.0:
        message.contract.py_func(np.exp(source), 3, *sizes, np.exp(incoming), 1, eps, True, out)
        np.testing.assert_allclose(out, np.exp(right).ravel())


def test_impossible_rows_stay_impossible():
    out = np.empty(1)
    source = np.full(2, -np.inf)
    message.contract.py_func(source, 0, 1, 2, 1, np.zeros((1, 2)), 0, 1.0, False, out)
    assert out[0] == -np.inf


@pytest.mark.parametrize("eps", [1.0, 0.5])
def test_probabilities_and_soft_maximum(eps):
    values = np.array([9.0, 0.3, -1.0, 2.0, 9.0])
    out = np.zeros(5)
    assert readout.soften.py_func(values, 1, 4, eps, out) == pytest.approx(
        eps * logsumexp(values[1:4] / eps)
    )
    np.testing.assert_allclose(out, [0, *softmax(values[1:4] / eps), 0])


def test_maximisers_share_the_mass_at_temperature_zero():
    out = np.empty(3)
    assert readout.soften.py_func(np.array([1.0, 2.0, 2.0]), 0, 3, 0.0, out) == 2.0
    assert out.tolist() == [0.0, 0.5, 0.5]
    assert readout.soften.py_func(np.full(3, -np.inf), 0, 3, 0.0, out) == -np.inf
    assert not out.any()


def plans(seed):
    rng = np.random.default_rng(seed)
    for kind in ("tree", "loopy"):
        for _ in range(4):
            graph = naive.random_graph(rng, 6, kind=kind, hidden=0.4)
            problem = Problem(graph.wiring, graph.potentials)
            yield graph, problem, MessagePlan(problem)


def test_turns_follow_the_visiting_order():
    for graph, _, plan in plans(1):
        order = plan.order
        rank = np.argsort(order.variables)
        np.testing.assert_array_equal(np.sort(order.variables), np.arange(graph.n_variables))
        for variable, factor, _, turns in plan.net.slots.tolist():
            others = [u for u in graph.scope(factor) if u != variable]
            later = any(rank[u] > rank[variable] for u in others)
            earlier = any(rank[u] < rank[variable] for u in others)
            assert turns == BACK * later + FORTH * earlier


def test_only_factors_with_company_move():
    for graph, _, plan in plans(2):
        slots = [len(graph.scope(f)) for f in range(graph.n_factors)]
        assert plan.moving.tolist() == [sum(n for n in slots if n > 1)]


def test_factors_of_one_variable_send_their_potentials():
    for graph, problem, plan in plans(3):
        sevens = np.full(int(graph.wiring.message_offsets[-1]), 7.0)
        messages = Messenger(problem, plan=plan, start=sevens).messages
        for s, f in enumerate(graph.wiring.slot_factors):
            block = messages[slice(*graph.wiring.message_offsets[s : s + 2])]
            if len(graph.scope(f)) == 1:
                start, stop = graph.wiring.table_offsets[f : f + 2]
                np.testing.assert_array_equal(block, problem.potentials[start:stop])
            else:
                assert (block == 7.0).all()


def test_linear_messages_have_a_largest_entry_of_one():
    rng = np.random.default_rng(4)
    for graph, problem, plan in plans(4):
        starts = graph.wiring.message_offsets
        messages = rng.normal(size=int(starts[-1]))
        before = messages.copy()
        nothing = np.empty(0)
        weights = 2.0 * plan.weights
        state = MessageState(
            problem.potentials, weights, plan.ratios, messages, nothing, nothing, nothing, True, 0.0
        )
        given = plan.net, state, plan.span, domain.TO_LINEAR, nothing, np.ones(1, np.bool_)
        over(domain.convert_in_threads, plan.pieces, 1, *given)
        for a, b in pairwise(starts.tolist()):
            expected = np.exp((before[a:b] - before[a:b].max()) / 2.0)
            np.testing.assert_allclose(messages[a:b], expected)


def test_weights_follow_the_temperatures_of_their_variables():
    rng = np.random.default_rng(5)
    graph = naive.random_graph(rng, 6, hidden=0.5)
    wiring = graph.wiring
    plan = MessagePlan(Problem(wiring, graph.potentials, 0.5, 2.0))
    hidden = graph.roles == 1
    for f in range(graph.n_factors):
        weight = 2.0 if hidden[graph.scope(f)].any() else 0.5
        assert plan.weights[f] == weight
        slots = slice(*wiring.scope_offsets[f : f + 2])
        eps = np.where(hidden[graph.scope(f)], 2.0, 0.5)
        np.testing.assert_allclose(plan.ratios[slots], weight / eps)


def test_reading_changes_nothing():
    """Beliefs, values and labels can be asked for between runs, in any order."""
    for _, problem, plan in plans(6):
        quiet, asked = (Messenger(problem, plan=plan) for _ in range(2))
        for messenger in (quiet, asked):
            messenger.run(2, 0.0)
        first = asked.value(factor_beliefs=True)
        assert asked.linear
        asked.decode()
        for one, other in zip(first, asked.value(factor_beliefs=True), strict=True):
            np.testing.assert_array_equal(one, other)
        for messenger in (quiet, asked):
            messenger.run(2, 0.0)
        np.testing.assert_array_equal(quiet.messages, asked.messages)


def test_memory_that_is_given_back_is_used_again():
    for _, problem, plan in plans(7):
        alone = Messenger(problem)
        alone.run(3, 0.0)
        for _ in range(2):
            messenger = Messenger(problem, plan=plan)
            messenger.run(3, 0.0)
            messenger.close()
            np.testing.assert_array_equal(messenger.messages, alone.messages)
            for one, other in zip(messenger.value(), alone.value(), strict=True):
                np.testing.assert_array_equal(one, other)
