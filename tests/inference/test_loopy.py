"""Belief propagation: exact on forests, and what must hold at every fixed point elsewhere."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import naive
from structlearn import FactorGraph, chain, grid, infer, infer_many, pairwise
from structlearn._src.common.errors import QueryError
from structlearn._src.common.watch import Ending
from structlearn._src.graph.joined import join
from structlearn._src.inference.base import Problem
from structlearn._src.inference.messenger import SCHEDULES, Messenger

PAIRS = ((1.0, 1.0), (0.5, 0.5), (0.3, 0.7), (0.7, 0.3), (0.0, 1.0), (0.0, 0.0))
SMOOTH = ((1.0, 1.0), (0.5, 0.5), (0.3, 0.7), (0.7, 0.3))


def bp(graph, query="marginals", eps=None, **options):
    """Belief propagation, run until nothing moves any more unless told otherwise."""
    settings = {
        "factor_marginals": True,
        "tol": 1e-11,
        "max_iter": 2000,
        "restarts": 0,
        "random_state": 0,
        **options,
    }
    return infer(graph, query, method="bp", temperatures=eps, **settings)


def flat(graph, distribution):
    """Marginals of all variables and of all factors, one after the other."""
    scopes = [[v] for v in range(graph.n_variables)]
    scopes += [graph.scope(f).tolist() for f in range(graph.n_factors)]
    return np.concatenate([naive.marginal(distribution, s).ravel() for s in scopes])


def beliefs(answer):
    return np.concatenate([answer.marginals.flat, answer.factor_marginals.flat])


def some_loopy(rng, strength=0.5, zeros=0.0, hidden=0.4, n=6):
    """Loops, weak enough for one fixed point; no ties."""
    graph = naive.random_graph(rng, n, max_arity=4, zeros=zeros, hidden=hidden)
    graph = naive.tied_down(rng, graph)
    return graph.with_potentials(strength * graph.potentials)


def ising(rows, columns, coupling, field=0.0):
    """A grid of two-state variables that like (coupling > 0) to agree."""
    nodes = np.zeros((rows, columns, 2))
    nodes[..., 1] = field
    return grid(nodes, coupling * np.array([[1.0, -1.0], [-1.0, 1.0]]))


def frustrated(rng, n, strength):
    """Everybody wants to differ from everybody, in two states: nobody can be content."""
    edges = list(itertools.combinations(range(n), 2))
    nodes = 0.1 * rng.normal(size=(n, 2))
    return pairwise(nodes, edges, -strength * np.array([[1.0, -1.0], [-1.0, 1.0]]))


def problem_of(graph, eps=(1.0, 1.0)):
    return Problem(graph.wiring, graph.potentials, *eps)


# ---- forests: exact ----------------------------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("eps", [1.0, 0.4, 0.0])
def test_exact_on_forests(schedule, eps):
    rng = np.random.default_rng(1)
    for i in range(30):
        kind = ("tree", "forest", "chain")[i % 3]
        graph = naive.random_graph(rng, 6, max_arity=4, kind=kind, zeros=0.3 * (i % 2), min_card=1)
        naive.tied_down(rng, graph)
        value, distribution = naive.value_and_distribution(graph, eps, eps)
        answer = bp(graph, eps=(eps, eps), schedule=schedule)
        assert answer.converged
        assert answer.exact
        assert answer.lower == answer.upper == answer.value == pytest.approx(value, abs=1e-8)
        np.testing.assert_allclose(beliefs(answer), flat(graph, distribution), atol=1e-8)


@pytest.mark.parametrize("least", [-700.0, -720.0, -740.0, -800.0])
def test_values_do_not_hang_on_probabilities_that_have_few_digits(least):
    """The first state is so unlikely that its probability is a number without all its digits."""
    rng = np.random.default_rng(2)
    graph = FactorGraph()
    for card in (2, 3, 2):
        graph.add_variable(None, card)
    graph.add_factor([0], [least, 0.0])
    graph.add_factor([0, 1], rng.normal(size=(2, 3)))
    graph.add_factor([1, 2], rng.normal(size=(3, 2)))
    value, _ = naive.value_and_distribution(graph)
    assert bp(graph).value == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_best_assignment_of_a_forest(schedule):
    rng = np.random.default_rng(2)
    for _ in range(20):
        graph = naive.random_graph(rng, 7, max_arity=4, kind="forest", zeros=0.2)
        answer = bp(graph, "map", schedule=schedule)
        best = naive.joint(graph).max()
        assert answer.exact
        assert answer.value == pytest.approx(best, abs=1e-9)
        assert graph.score(answer.assignment) == pytest.approx(best, abs=1e-9)


def test_one_sequential_sweep_is_enough_for_a_tree():
    rng = np.random.default_rng(3)
    for _ in range(20):
        graph = naive.random_graph(rng, 8, max_arity=4, kind="tree")
        messenger = Messenger(problem_of(graph))
        messenger.run(1, 0.0)
        value, distribution = naive.value_and_distribution(graph)
        found, marginals, factors = messenger.value(factor_beliefs=True)
        assert found[0] == pytest.approx(value, abs=1e-9)
        both = np.concatenate([marginals, factors])
        np.testing.assert_allclose(both, flat(graph, distribution), atol=1e-9)


def test_a_run_cut_short_in_a_forest_is_not_called_exact():
    graph = naive.random_graph(np.random.default_rng(4), 8, kind="chain")
    answer = bp(graph, schedule="flooding", damping=0.0, max_iter=2)
    assert not answer.exact
    assert not answer.converged
    assert (answer.lower, answer.upper) == (-np.inf, np.inf)


@pytest.mark.parametrize("eps", [1.0, 0.5, 0.0])
def test_hidden_subtrees_behind_a_tree_of_outputs_are_exact(eps):
    """Every hidden part touches one output, so sums and maxima change places freely."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        graph = outputs_with_hidden_subtrees(rng)
        for pair in ((0.0, 1.0), (0.3, 0.7), (0.7, 0.3)):
            value, distribution = naive.value_and_distribution(graph, *pair)
            answer = bp(graph, eps=pair)
            assert answer.value == pytest.approx(value, abs=1e-8)
            np.testing.assert_allclose(beliefs(answer), flat(graph, distribution), atol=1e-7)
        warm_hidden = naive.value_and_distribution(graph, 0.0, eps)[0]
        answer = bp(graph, "marginal_map", (0.0, eps))
        assert answer.value == pytest.approx(warm_hidden, abs=1e-8)
        summed = naive.marginal_map_values(graph, eps)
        assert summed[tuple(answer.assignment.values())] == pytest.approx(summed.max(), abs=1e-9)


def outputs_with_hidden_subtrees(rng):
    graph = FactorGraph()
    graph.add_variables(4, rng.integers(2, 4, 4))

    def join_by_factor(*scope):
        graph.add_factor(scope, rng.normal(0, 1.5, graph.cards[list(scope)]))

    for v in range(1, 4):
        join_by_factor(v, int(rng.integers(v)))
    for v in range(4):
        hidden = graph.add_variable(None, 2, "hidden")
        join_by_factor(v, hidden)
        if rng.random() < 0.5:
            join_by_factor(graph.add_variable(None, 3, "hidden"), hidden)
    for v in range(graph.n_variables):
        join_by_factor(v)
    return graph


# ---- temperatures ------------------------------------------------------------------------


def test_a_low_temperature_approaches_the_maximum_on_trees():
    rng = np.random.default_rng(6)
    for _ in range(15):
        graph = naive.tied_down(rng, naive.random_graph(rng, 6, kind="tree", zeros=0.2))
        cold, zero = (bp(graph, eps=(t, t)) for t in (1e-3, 0.0))
        assert -1e-9 <= cold.value - zero.value <= 1e-3 * np.log(graph.cards).sum() + 1e-9
        np.testing.assert_allclose(cold.marginals.flat, zero.marginals.flat, atol=0.05)


@pytest.mark.parametrize("eps_hidden", [1.0, None])
def test_a_low_temperature_approaches_the_maximum_on_loops(eps_hidden):
    """Joint MAP if everything cools, marginal MAP if the outputs do."""
    rng = np.random.default_rng(6)
    checked = 0
    for _ in range(20):
        graph = some_loopy(rng, 0.3)
        cold, zero = (bp(graph, eps=(t, eps_hidden or t)) for t in (1e-3, 0.0))
        if cold.converged and zero.converged:
            assert cold.value == pytest.approx(zero.value, abs=0.01)
            checked += 1
    assert checked >= 12


def test_scaling_potentials_and_temperature_together_scales_the_value():
    rng = np.random.default_rng(7)
    for pair in SMOOTH:
        graph = some_loopy(rng)
        one = bp(graph, eps=pair)
        three = bp(graph.with_potentials(3.0 * graph.potentials), eps=tuple(3 * e for e in pair))
        assert three.value == pytest.approx(3 * one.value, abs=1e-6)
        np.testing.assert_allclose(beliefs(one), beliefs(three), atol=1e-7)


# ---- fixed points ------------------------------------------------------------------------


def check_consistent(graph, answer, atol):
    """Factor beliefs marginalise to variable beliefs."""
    for f in range(graph.n_factors):
        table = answer.factor_marginals[f]
        assert table.sum() == pytest.approx(1.0)
        for axis, v in enumerate(graph.scope(f)):
            rest = tuple(i for i in range(table.ndim) if i != axis)
            np.testing.assert_allclose(table.sum(axis=rest), answer.marginals[int(v)], atol=atol)


@pytest.mark.parametrize("eps", PAIRS)
@pytest.mark.parametrize("zeros", [0.0, 0.25])
def test_converged_beliefs_are_locally_consistent(eps, zeros):
    rng = np.random.default_rng(8)
    checked = 0
    for _ in range(25):
        graph = some_loopy(rng, 0.8, zeros)
        answer = bp(graph, eps=eps)
        # At temperature 0 only beliefs without ties are beliefs of one assignment.
        tied = eps == (0.0, 0.0) and answer.marginals.flat[answer.marginals.flat < 1].max() > 0.0
        if answer.converged and not tied:
            check_consistent(graph, answer, 1e-5)
            checked += 1
    assert checked >= 15


@pytest.mark.parametrize("eps", PAIRS)
def test_both_numerics_agree(eps):
    """Linear messages and the log domain are two ways to the same numbers."""
    rng = np.random.default_rng(9)
    graphs = [some_loopy(rng, zeros=z) for z in (0.0, 0.0, 0.2, 0.2)]
    first = [bp(g, eps=eps) for g in graphs]
    # A span of potentials as irrelevant as it is extreme, on one more variable by itself.
    extreme = []
    for graph in graphs:
        table = np.concatenate([graph.potentials, [0.0, -1e4]])
        wiring = graph.wiring
        extreme.append(
            FactorGraph.from_arrays(
                np.append(wiring.cards, 2),
                np.append(wiring.scope_offsets, len(wiring.scopes) + 1),
                np.append(wiring.scopes, graph.n_variables),
                table,
                np.append(wiring.roles, 0),
            )
        )
    second = [bp(g, eps=eps) for g in extreme]
    for graph, a, b in zip(graphs, first, second, strict=True):
        assert a.value == pytest.approx(b.value, abs=1e-7)
        n = graph.wiring.belief_offsets[-1]
        np.testing.assert_allclose(a.marginals.flat, b.marginals.flat[:n], atol=1e-7)
        n = graph.wiring.table_offsets[-1]
        factors = a.factor_marginals.flat, b.factor_marginals.flat[:n]
        np.testing.assert_allclose(*factors, atol=1e-7)


def test_which_numerics_are_in_use():
    graph = some_loopy(np.random.default_rng(9), hidden=0.0)
    linear = Messenger(problem_of(graph))
    linear.run(1, 0.0)
    assert linear.linear
    for other in (
        problem_of(graph, (0.0, 1.0)),
        problem_of(graph.with_potentials(1e4 * graph.potentials)),
    ):
        log = Messenger(other)
        log.run(1, 0.0)
        assert not log.linear


@pytest.mark.parametrize("eps", SMOOTH)
def test_schedules_and_damping_share_their_fixed_point(eps):
    rng = np.random.default_rng(10)
    for _ in range(5):
        graph = some_loopy(rng, 0.25, zeros=0.1)
        reference = bp(graph, eps=eps)
        assert reference.converged
        ways = [{"schedule": s, "damping": d} for s in SCHEDULES for d in (0.3, 0.6)]
        for way in [*ways, {"start": rng.normal(size=len(reference.messages))}]:
            answer = bp(graph, eps=eps, **way)
            assert answer.converged
            assert answer.value == pytest.approx(reference.value, abs=1e-7)
            np.testing.assert_allclose(beliefs(answer), beliefs(reference), atol=1e-6)


def test_more_damping_takes_more_sweeps():
    graph = some_loopy(np.random.default_rng(11))
    sweeps = [bp(graph, damping=d, tol=1e-8).iterations for d in (0.0, 0.5, 0.9)]
    assert sweeps == sorted(sweeps)
    assert sweeps[0] < sweeps[1] < sweeps[2]


@pytest.mark.parametrize("eps", PAIRS)
def test_a_warm_start_from_rest_needs_one_sweep(eps):
    rng = np.random.default_rng(12)
    firsts = [(g, bp(g, eps=eps, tol=1e-7)) for g in (some_loopy(rng, 0.4, 0.1) for _ in range(8))]
    assert sum(first.converged for _, first in firsts) >= 5
    for graph, first in firsts:
        if first.converged:
            again = bp(graph, eps=eps, tol=1e-6, start=first.messages)
            assert again.converged
            assert again.iterations == 1
            assert again.value == pytest.approx(first.value, abs=1e-5)


def test_hard_constraints_are_never_broken():
    """Colours of neighbours differ; one colour is given, the others follow round the ring."""
    n = 6
    differ = np.where(np.eye(2, dtype=bool), -np.inf, 0.0)
    nodes = np.zeros((n, 2))
    nodes[0] = [0.0, -np.inf]
    graph = pairwise(nodes, [(i, (i + 1) % n) for i in range(n)], differ)
    for eps in PAIRS:
        for schedule in SCHEDULES:
            answer = bp(graph, eps=eps, schedule=schedule)
            assert answer.converged
            assert answer.value == pytest.approx(0.0, abs=1e-9)
            np.testing.assert_allclose(
                answer.marginals.array(), np.eye(2)[np.arange(n) % 2], atol=1e-9
            )
    assert list(bp(graph, "map").assignment.values()) == [0, 1, 0, 1, 0, 1]


def test_a_single_loop_has_the_right_best_states():
    """On one loop the largest sum-product belief of a two-state variable is its largest marginal.

    Y. Weiss, "Correctness of local probability propagation in graphical models with loops", 2000.
    """
    rng = np.random.default_rng(13)
    for _ in range(20):
        n = int(rng.integers(3, 7))
        edges = [(i, (i + 1) % n) for i in range(n)]
        graph = pairwise(rng.normal(size=(n, 2)), edges, rng.normal(0, 1.5, (n, 2, 2)))
        answer = bp(graph)
        assert answer.converged
        exact = naive.value_and_distribution(graph)[1]
        right = np.array([naive.marginal(exact, [v]) for v in range(n)])
        np.testing.assert_array_equal(answer.marginals.array().argmax(1), right.argmax(1))


@pytest.mark.parametrize("eps", [*SMOOTH, (0.0, 1.0)])
def test_the_gradient_of_the_value_is_the_factor_beliefs(eps):
    rng = np.random.default_rng(14)
    step = 1e-4
    for _ in range(3):
        graph = some_loopy(rng, 0.5, zeros=0.1, n=5)
        answer = bp(graph, eps=eps)
        assert answer.converged
        for entry in rng.choice(np.flatnonzero(np.isfinite(graph.potentials)), 12):
            move = np.zeros_like(graph.potentials)
            move[entry] = step
            up, down = (
                bp(graph.with_potentials(graph.potentials + s * move), eps=eps).value
                for s in (1, -1)
            )
            slope = (up - down) / (2 * step)
            assert slope == pytest.approx(answer.factor_marginals.flat[entry], abs=1e-5)


# ---- saying how it went ------------------------------------------------------------------


def test_a_run_that_does_not_rest_says_so():
    rng = np.random.default_rng(15)
    graph = frustrated(rng, 6, 4.0)
    for start in (None, rng.normal(size=72)):
        answer = infer(graph, method="bp", start=start, damping=0.0, max_iter=60, restarts=0)
        assert not answer.converged
        assert not answer.exact
        assert answer.iterations == 60
        assert answer.residual > 0.5
        assert "did not converge: after 60 sweeps" in answer.status
        assert answer.ended is Ending.LIMIT


def test_runs_that_end_apart_say_so():
    graph = ising(4, 4, 1.0)
    answer = infer(graph, method="bp", restarts=4, random_state=0)
    assert "several fixed points" in answer.status
    # Symmetric messages rest, but the magnetised fixed points have the larger value.
    alone = infer(graph, method="bp", restarts=0)
    np.testing.assert_allclose(alone.marginals.array(), 0.5, atol=1e-6)
    assert "fixed points" not in alone.status
    assert answer.value > alone.value + 0.1
    assert abs(answer.marginals[0][0] - 0.5) > 0.3


def test_one_fixed_point_raises_no_alarm():
    answer = infer(some_loopy(np.random.default_rng(16)), method="bp", restarts=3, random_state=0)
    assert "fixed points" not in answer.status
    assert answer.status.startswith("messages converged in")


def test_best_assignment_is_scored_by_the_true_objective():
    rng = np.random.default_rng(17)
    for _ in range(10):
        graph = naive.random_graph(rng, 6, max_arity=4, hidden=0.5)
        joint = infer(graph, "map", method="bp", random_state=0)
        assert joint.value == pytest.approx(graph.score(joint.assignment), abs=1e-9)
        assert joint.value == joint.lower <= naive.joint(graph).max() + 1e-9
        outputs = infer(graph, "marginal_map", method="bp", random_state=0)
        values = naive.marginal_map_values(graph)
        assert outputs.value == pytest.approx(values[tuple(outputs.assignment.values())], abs=1e-8)
        assert outputs.value == outputs.lower


def test_refuses_marginals_that_messages_do_not_determine():
    graph = naive.random_graph(np.random.default_rng(18), 5, hidden=0.5)
    with pytest.raises(QueryError, match="small temperature"):
        bp(graph, eps=(1.0, 0.0))
    with pytest.raises(QueryError, match="not 'samples'"):
        bp(graph, "samples")


# ---- many graphs, threads, steps ---------------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("eps", [(1.0, 1.0), (0.0, 1.0)])
def test_a_batch_equals_each_alone(schedule, eps):
    rng = np.random.default_rng(19)
    graphs = [some_loopy(rng, 0.5, n=int(rng.integers(2, 7))) for _ in range(12)]
    graphs += [naive.tied_down(rng, naive.random_graph(rng, 5, kind="tree")) for _ in range(4)]
    for graph in graphs:  # one kind of variable alone has one temperature, and a simpler start
        graph.set_roles({0: "output", 1: "hidden"})
    options = {"factor_marginals": True, "tol": 1e-9, "restarts": 0, "schedule": schedule}
    options["damping"] = 0.2  # its default is chosen for the whole batch
    together = infer_many(graphs, method="bp", temperatures=eps, **options)
    assert sum(a.converged for a in together) >= 12
    for graph, mine in zip(graphs, together, strict=True):
        alone = infer(graph, method="bp", temperatures=eps, **options)
        assert mine.converged == alone.converged
        if not mine.converged:
            continue  # rounding grows where messages never rest
        assert mine.value == pytest.approx(alone.value, abs=1e-10)
        assert mine.iterations == alone.iterations
        np.testing.assert_allclose(beliefs(mine), beliefs(alone), atol=1e-10)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_number_of_threads_changes_nothing(schedule):
    rng = np.random.default_rng(20)
    graphs = [grid(rng.normal(size=(5, 5, 4)), rng.normal(size=(40, 4, 4))) for _ in range(50)]
    problem = join([g.wiring for g in graphs])
    assert problem.table_offsets[-1] > 20_000  # enough to be divided
    options = {"method": "bp", "restarts": 1, "max_iter": 30, "schedule": schedule}
    one, two = (
        infer_many(graphs, random_state=0, n_jobs=n, factor_marginals=True, **options)
        for n in (1, 2)
    )
    for a, b in zip(one, two, strict=True):
        assert (a.value, a.iterations, a.residual) == (b.value, b.iterations, b.residual)
        np.testing.assert_array_equal(beliefs(a), beliefs(b))


@pytest.mark.parametrize("schedule", ["sequential", "flooding"])
@pytest.mark.parametrize("eps", PAIRS)
def test_n_sweeps_twice_are_twice_as_many_once(schedule, eps):
    rng = np.random.default_rng(21)
    for sweeps in (1, 3):
        problem = problem_of(some_loopy(rng, 1.0, zeros=0.1), eps)
        twice = Messenger(problem, schedule=schedule, damping=0.2)
        once = Messenger(problem, schedule=schedule, damping=0.2)
        for _ in range(2):
            twice.run(sweeps, 0.0)
        once.run(2 * sweeps, 0.0)
        np.testing.assert_allclose(twice.messages, once.messages, rtol=1e-12, atol=1e-12)
        assert twice.iterations.tolist() == once.iterations.tolist() == [2 * sweeps]


def test_new_potentials_with_old_messages_reach_the_new_fixed_point():
    rng = np.random.default_rng(22)
    for eps in SMOOTH:
        graph = some_loopy(rng, 0.4)
        messenger = Messenger(problem_of(graph, eps))
        messenger.run(500, 1e-12)
        other = graph.with_potentials(
            graph.potentials + 0.2 * rng.normal(size=graph.potentials.size)
        )
        messenger = Messenger(problem_of(other, eps), start=messenger.messages, plan=messenger.plan)
        messenger.run(500, 1e-12)
        fresh = bp(other, eps=eps)
        value, marginals, factors = messenger.value(factor_beliefs=True)
        assert value[0] == pytest.approx(fresh.value, abs=1e-8)
        np.testing.assert_allclose(np.concatenate([marginals, factors]), beliefs(fresh), atol=1e-7)


def test_damped_messages_certify_nothing():
    """With potentials this large messages look at rest while they still move by a tenth."""
    tables = 1e8 * np.random.default_rng(0).normal(size=(4, 3))
    graph = chain(tables, 1e8 * np.eye(3))
    exact = infer(graph, "partition", method="enumeration", temperatures=(0.5, 0.5))
    damped = infer(
        graph, "partition", method="bp", damping=0.9, temperatures=(0.5, 0.5), random_state=0
    )
    assert not damped.exact
    assert damped.upper == np.inf
    plain = infer(graph, "partition", method="bp", temperatures=(0.5, 0.5), random_state=0)
    assert plain.exact
    assert plain.value == pytest.approx(exact.value)
