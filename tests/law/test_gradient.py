"""The value as a function of potentials and temperatures: its gradient and its shape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from structlearn import infer

STEADY = settings(max_examples=40, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**32 - 1)
KINDS = st.sampled_from(["tree", "chain", "loopy"])
WARM = st.floats(0.2, 3.0)


def drawn(seed, kind, hidden=0.4, zeros=0.15):
    rng = np.random.default_rng(seed)
    graph = naive.random_graph(
        rng, int(rng.integers(2, 7)), max_arity=4, kind=kind, zeros=zeros, hidden=hidden
    )
    return rng, naive.tied_down(rng, graph)


def value(graph, eps, potentials=None, method="auto"):
    if potentials is not None:
        graph = graph.with_potentials(potentials)
    return infer(graph, "partition", temperatures=eps, method=method).value


def directions(rng, graph):
    """A change of the potentials that leaves hard constraints alone."""
    return np.where(np.isfinite(graph.potentials), rng.normal(size=graph.potentials.size), 0.0)


def check_gradient(graph, eps, direction, method, step, atol):
    answer = infer(graph, temperatures=eps, method=method, factor_marginals=True)
    up, down = (
        value(graph, eps, graph.potentials + sign * step * direction, method) for sign in (1, -1)
    )
    slope = answer.factor_marginals.flat @ direction
    assert (up - down) / (2 * step) == pytest.approx(slope, abs=atol)


@STEADY
@given(SEEDS, KINDS, WARM, WARM)
def test_gradient_of_the_value_is_the_factor_marginals(seed, kind, eps_output, eps_hidden):
    rng, graph = drawn(seed, kind)
    direction = directions(rng, graph)
    check_gradient(graph, (eps_output, eps_hidden), direction, "auto", 1e-4, 1e-5)


@STEADY
@given(SEEDS, KINDS, st.sampled_from([(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.4)]))
def test_gradient_where_some_temperature_is_zero(seed, kind, eps):
    """The value has kinks there, but a random point does not lie on one."""
    rng, graph = drawn(seed, kind)
    check_gradient(graph, eps, directions(rng, graph), "auto", 1e-6, 1e-5)


@STEADY
@given(SEEDS, st.sampled_from(["tree", "forest"]), WARM)
def test_gradient_by_message_passing(seed, kind, eps):
    rng, graph = drawn(seed, kind)
    direction = directions(rng, graph)
    for method in ("tree", "bp"):
        check_gradient(graph, (eps, eps), direction, method, 1e-4, 1e-5)


@STEADY
@given(SEEDS, KINDS, st.one_of(st.just(0.0), WARM))
def test_convex_in_the_potentials(seed, kind, eps):
    rng, graph = drawn(seed, kind)
    direction = 3.0 * directions(rng, graph)
    low, middle, high = (
        value(graph, (eps, eps), graph.potentials + t * direction) for t in (-1.0, 0.0, 1.0)
    )
    assert middle <= (low + high) / 2 + 1e-9


@STEADY
@given(SEEDS, KINDS, st.lists(st.one_of(st.just(0.0), WARM), min_size=4, max_size=4))
def test_grows_with_temperature(seed, kind, eps):
    _, graph = drawn(seed, kind)
    low = sorted(eps[:2])
    high = sorted(eps[2:])
    cold, warm = (low[0], high[0]), (low[1], high[1])
    assert value(graph, cold) <= value(graph, warm) + 1e-9


@STEADY
@given(SEEDS, KINDS, WARM, st.floats(-5, 5))
def test_a_constant_in_one_table_moves_the_value_by_itself(seed, kind, eps, constant):
    rng, graph = drawn(seed, kind)
    factor = int(rng.integers(graph.n_factors))
    moved = graph.potentials.copy()
    moved[slice(*graph.wiring.table_offsets[factor : factor + 2])] += constant
    one = infer(graph, temperatures=(eps, 1.0))
    two = infer(graph.with_potentials(moved), temperatures=(eps, 1.0))
    assert two.value == pytest.approx(one.value + constant, abs=1e-9)
    np.testing.assert_allclose(one.marginals.flat, two.marginals.flat, atol=1e-9)


@STEADY
@given(SEEDS, KINDS, st.sampled_from([(1.0, 1.0), (0.3, 0.7), (0.0, 1.0)]))
def test_the_order_of_variables_and_axes_means_nothing(seed, kind, eps):
    rng, graph = drawn(seed, kind)
    new_name = rng.permutation(graph.n_variables)
    other = type(graph)()
    for v in np.argsort(new_name):
        role = ("output", "hidden")[graph.roles[v]]
        other.add_variable(None, int(graph.cards[v]), role)
    for f in rng.permutation(graph.n_factors):
        axes = rng.permutation(len(graph.scope(f)))
        scope = new_name[graph.scope(f)][axes]
        other.add_factor(scope.tolist(), graph.table(f).transpose(axes))
    one, two = (infer(g, temperatures=eps) for g in (graph, other))
    assert one.value == pytest.approx(two.value, abs=1e-9)
    for v in range(graph.n_variables):
        np.testing.assert_allclose(one.marginals[v], two.marginals[new_name[v]], atol=1e-9)
