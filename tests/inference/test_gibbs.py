from __future__ import annotations

import numpy as np
import pytest

import naive
from structlearn import FactorGraph, grid
from structlearn._src.common import threads
from structlearn._src.common.watch import Watch
from structlearn._src.graph.joined import join
from structlearn._src.inference import gibbs
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.gibbs import Gibbs
from structlearn._src.kernels.graph import local

NOTHING = np.empty(0)


def ask(graph, query="marginals", eps=1.0, seed=0, **options):
    problem = Problem(graph.wiring, graph.potentials, eps, eps)
    options.setdefault("rng", np.random.default_rng(seed))
    return Gibbs().run(problem, query, Options(**options))


def one_sweep(graph, start, uniforms, eps):
    """State after one sweep of the kernel, and the conditionals it drew from."""
    wiring = graph.wiring
    labels, beliefs = np.array(start), np.zeros(wiring.belief_offsets[-1])
    draws, best = np.empty((0, len(labels)), np.int64), np.full(1, -np.inf)
    local.gibbs(
        wiring, graph.potentials, eps, labels, np.asarray(uniforms)[None], 0, 1,
        beliefs, NOTHING, draws, best,
    )  # fmt: skip
    return labels, np.split(beliefs, wiring.belief_offsets[1:-1])


def transition(graph, start, target, eps, rng):
    """Probability that one sweep leads from `start` to `target`, by steering it there.

    A sweep sets every variable once, so the path to `target` is unique and its probability is
    the product of the conditionals on the way; a uniform number inside the right interval of
    each conditional must lead there.
    """
    uniforms, probability = np.full(len(start), 0.5), 1.0
    for v in range(len(start)):
        share_of = one_sweep(graph, start, uniforms, eps)[1][v]
        probability *= share_of[target[v]]
        if probability == 0.0:
            return 0.0
        below = share_of[: target[v]].sum()
        uniforms[v] = below + rng.uniform(0.001, 0.999) * share_of[target[v]]
    end, _ = one_sweep(graph, start, uniforms, eps)
    assert end.tolist() == list(target)
    return probability


@pytest.mark.parametrize("zeros", [0.0, 0.4])
@pytest.mark.parametrize("eps", [1.0, 0.5])
def test_one_sweep_leaves_the_exact_distribution_as_it_is(zeros, eps):
    rng = np.random.default_rng(11)
    for _ in range(3):
        graph = naive.random_graph(rng, 4, zeros=zeros)
        _, exact = naive.value_and_distribution(graph, eps, eps)
        states = [s for s in naive.assignments(graph.cards) if exact[s] > 0]
        moves = np.array([[transition(graph, a, b, eps, rng) for b in states] for a in states])
        weights = np.array([exact[s] for s in states])
        np.testing.assert_allclose(moves.sum(axis=1), 1.0, atol=1e-12)
        np.testing.assert_allclose(weights @ moves, weights, atol=1e-12)


def test_draws_follow_the_conditional_to_one_in_ten_thousand():
    graph = FactorGraph()
    graph.add_variable(None, 5)
    graph.add_factor([0], [0.3, -np.inf, -2.0, 1.1, -800.0])
    n = 10_000
    numbers = (np.arange(n) + 0.5) / n
    drawn = [one_sweep(graph, [0], [u], 0.7)[0][0] for u in numbers]
    _, exact = naive.value_and_distribution(graph, 0.7, 0.7)
    np.testing.assert_allclose(np.bincount(drawn, minlength=5) / n, exact, atol=1.01 / n)
    assert drawn == sorted(drawn)


def flat_marginals(graph, exact):
    return np.concatenate([naive.marginal(exact, [v]) for v in range(graph.n_variables)])


def flat_factor_marginals(graph, exact):
    scopes = [graph.scope(f).tolist() for f in range(graph.n_factors)]
    return np.concatenate([naive.marginal(exact, scope).ravel() for scope in scopes])


def assert_mean_is(runs, exact):
    """The mean of 30 independent runs lies within six of its own standard errors of `exact`.

    A state too rare to be seen has no standard error; ten of 30000 draws are allowed for it.
    """
    error = np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs))
    assert error.max() < 0.015
    np.testing.assert_array_less(np.abs(np.mean(runs, axis=0) - exact), 6 * error + 10 / 30_000)


@pytest.mark.parametrize("eps", [1.0, 0.5])
@pytest.mark.parametrize("kind", ["loopy", "tree"])
def test_marginals_agree_with_enumeration(kind, eps):
    rng = np.random.default_rng(5)
    graph = naive.random_graph(rng, 5, kind=kind)
    graph = graph.with_potentials(0.6 * graph.potentials)
    value, exact = naive.value_and_distribution(graph, eps, eps)
    results = [
        ask(graph, "samples", eps, seed, n_samples=1000, factor_marginals=True)
        for seed in range(30)
    ]
    assert_mean_is([r.beliefs for r in results], flat_marginals(graph, exact))
    assert_mean_is([r.factor_beliefs for r in results], flat_factor_marginals(graph, exact))
    counts = np.zeros((len(results), *exact.shape))
    for count, result in zip(counts, results, strict=True):
        np.add.at(count, tuple(result.draws.T), 1 / len(result.draws))
    assert_mean_is(counts, exact)
    best, _ = naive.value_and_distribution(graph, 0.0, 0.0)
    for result in results:
        assert result.value[0] == result.lower[0] <= best + 1e-9 <= value + 1e-9
        assert result.upper is None
        assert not result.exact


def test_hard_constraints_hold_in_every_draw():
    # Neighbours in a ring must differ by at most one of four states: irreducible and feasible.
    near = np.where(np.abs(np.subtract.outer(range(4), range(4))) <= 1, 0.0, -np.inf)
    graph = FactorGraph()
    graph.add_variables(5, 4)
    graph.add_factors([[0], [2]], [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    graph.add_factors([(i, (i + 1) % 5) for i in range(5)], near)
    _, exact = naive.value_and_distribution(graph)
    results = [ask(graph, "samples", seed=seed, n_samples=1000) for seed in range(30)]
    assert all(exact[tuple(state)] > 0 for r in results for state in r.draws)
    assert_mean_is([r.beliefs for r in results], flat_marginals(graph, exact))


def small_batch():
    rng = np.random.default_rng(2)
    graphs = [naive.random_graph(rng, 1 + i, zeros=0.2) for i in range(6)]
    wiring = join([g.wiring for g in graphs])
    return Problem(wiring, np.concatenate([g.potentials for g in graphs]))


def test_same_seed_same_draws_whatever_the_number_of_threads(monkeypatch):
    monkeypatch.setitem(threads.GRAIN, "graphs", 0)
    problem = small_batch()
    results = [
        Gibbs().run(
            problem,
            "samples",
            Options(n_samples=301, n_jobs=n, factor_marginals=True, rng=np.random.default_rng(8)),
        )
        for n in (1, 1, 2, 5)
    ]
    for other in results[1:]:
        for name in ("draws", "beliefs", "factor_beliefs", "value", "residual"):
            np.testing.assert_array_equal(getattr(other, name), getattr(results[0], name))
    assert results[0].draws.shape == (301, problem.wiring.n_variables)
    assert len(np.unique(results[0].draws, axis=0)) > 10
    different = Gibbs().run(
        problem, "samples", Options(n_samples=301, rng=np.random.default_rng(9))
    )
    assert (different.draws != results[0].draws).any()


def test_two_chains_in_different_modes_are_named():
    # Ten pairs of variables that must almost surely be equal: no chain ever leaves its mode.
    graph = FactorGraph()
    graph.add_variables(20, 2)
    graph.add_factors(np.arange(20).reshape(10, 2), 40 * np.eye(2))
    result = ask(graph)
    assert result.residual[0] > 0.99
    assert not result.converged[0]
    assert "two chains of 500 sweeps differ by 1: not mixed" in result.status


def test_two_chains_that_agree():
    rng = np.random.default_rng(0)
    graph = grid(rng.normal(size=(3, 3, 2)), np.zeros((12, 2, 2)))
    result = ask(graph)
    # Without interaction every conditional is the marginal itself.
    assert result.residual[0] < 1e-12
    assert result.converged[0]
    assert "not mixed" not in result.status
    assert "lower bound" in result.status
    expected = np.exp(graph.potentials[:18].reshape(9, 2))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(result.beliefs, expected.ravel(), atol=1e-12)
    assert len(result.draws) == 0
    assert len(result.factor_beliefs) == 0


def test_the_residual_is_per_graph():
    stuck = FactorGraph()
    stuck.add_variables(20, 2)
    stuck.add_factors(np.arange(20).reshape(10, 2), 40 * np.eye(2))
    free = FactorGraph()
    free.add_variable(None, 2)
    free.add_factor([0], [0.0, 1.0])
    wiring = join([free.wiring, stuck.wiring])
    potentials = np.concatenate([free.potentials, stuck.potentials])
    result = Gibbs().run(
        Problem(wiring, potentials), "marginals", Options(rng=np.random.default_rng(0))
    )
    assert result.residual[0] < 1e-12
    assert result.residual[1] > 0.99
    assert result.converged.tolist() == [True, False]


def stop_after(calls):
    seen = []

    def progress(fraction, words):
        seen.append(words)
        if len(seen) == calls:
            raise KeyboardInterrupt

    return Watch(progress=progress)


def test_an_interrupt_keeps_what_was_collected():
    rng = np.random.default_rng(1)
    graph = naive.random_graph(rng, 6)
    options = {"n_samples": 400, "burn_in": 50, "factor_marginals": True}
    whole = ask(graph, "samples", **options)
    result = ask(graph, "samples", watch=stop_after(30), **options)
    half = len(result.draws) // 2
    assert 0 < half < 200
    assert result.iterations[0] == 50 + half
    np.testing.assert_array_equal(result.draws[:half], whole.draws[:half])
    np.testing.assert_array_equal(result.draws[half:], whole.draws[200 : 200 + half])
    for sums in (
        np.add.reduceat(result.beliefs, graph.wiring.belief_offsets[:-1]),
        np.add.reduceat(result.factor_beliefs, graph.wiring.table_offsets[:-1]),
    ):
        np.testing.assert_allclose(sums, 1.0)
    assert "; interrupted;" in result.status


@pytest.mark.parametrize(
    ("watch", "word"), [(stop_after(1), "interrupted"), (Watch(time_limit=0.0), "time limit")]
)
def test_stopped_during_burn_in_there_is_still_an_answer(watch, word):
    graph = naive.random_graph(np.random.default_rng(1), 6)
    result = ask(graph, "samples", watch=watch)
    assert result.draws.shape == (2, 6)
    np.testing.assert_allclose(
        np.add.reduceat(result.beliefs, graph.wiring.belief_offsets[:-1]), 1.0
    )
    assert word in result.status


def test_progress_runs_to_the_end():
    told = []
    watch = Watch(progress=lambda fraction, words: told.append((fraction, words)))
    ask(naive.random_graph(np.random.default_rng(1), 6), n_samples=101, watch=watch)
    assert told[0][1].endswith("of 100 sweeps of burn-in")
    assert told[-1] == (1.0, "102 of 102 sweeps kept")


def test_a_contradiction_is_named_and_spoils_only_its_graph():
    graph = FactorGraph()
    graph.add_variables(2, 2)
    graph.add_factor([0, 1], np.where(np.eye(2), 0.0, -np.inf))
    graph.add_factor([0, 1], np.where(np.eye(2), -np.inf, 0.0))
    fine = FactorGraph()
    fine.add_variable(None, 2)
    fine.add_factor([0], [0.0, 1.0])
    wiring = join([graph.wiring, fine.wiring])
    problem = Problem(wiring, np.concatenate([graph.potentials, fine.potentials]))
    result = Gibbs().run(problem, "marginals", Options(rng=np.random.default_rng(0)))
    assert result.value[0] == -np.inf
    assert result.value[1] == 1.0
    assert not result.converged[0]
    assert result.converged[1]
    assert result.status.startswith("no state free of forbidden combinations found in 1 of 2")
    assert np.isfinite(result.beliefs).all()
    np.testing.assert_allclose(result.beliefs[4:], np.exp([0, 1]) / np.exp([0, 1]).sum())


def test_sampling_finds_a_way_out_of_a_forbidden_start():
    # A permutation of four: ICM alone often ends with a clash that no single change removes.
    differ = np.where(np.eye(4), -np.inf, 0.0)
    graph = FactorGraph()
    graph.add_variables(4, 4)
    graph.add_factors([(a, b) for a in range(4) for b in range(a)], differ)
    stuck = np.array([0, 0, 1, 2])
    labels, best = stuck.copy(), np.full(1, -np.inf)
    local.gibbs(
        graph.wiring, graph.potentials, 1.0, labels, np.random.default_rng(0).random((50, 4)),
        0, 1, NOTHING, NOTHING, np.empty((0, 4), np.int64), best,
    )  # fmt: skip
    assert sorted(labels) == [0, 1, 2, 3]
    assert best[0] == 0.0
    result = ask(graph, "samples", n_samples=50)
    assert (np.sort(result.draws, axis=1) == np.arange(4)).all()


def test_starts_are_sought_until_lawful_graph_by_graph():
    graphs = [naive.trap() for _ in range(8)]
    wiring = join([g.wiring for g in graphs])
    problem = Problem(wiring, np.concatenate([g.potentials for g in graphs]))
    result = Gibbs().run(problem, "samples", Options(rng=np.random.default_rng(0)))
    assert (result.draws == 1).all()
    assert result.converged.all()


def test_a_chain_in_a_trap_copies_the_other(monkeypatch):
    # The first chain always starts in the trap, the second in half of the cases.
    monkeypatch.setattr(gibbs, "_TRIES", 0)
    seen = set()
    for seed in range(12):
        result = ask(naive.trap(), "samples", seed=seed, n_samples=10)
        lawful = bool(result.converged[0])
        assert (result.draws == lawful).all()
        assert ("mean nothing" in result.status) != lawful
        assert result.value[0] == (0.0 if lawful else -np.inf)
        seen.add(lawful)
    assert seen == {True, False}


def test_what_is_refused():
    graph = naive.random_graph(np.random.default_rng(0), 4)
    graph.set_roles({0: "hidden", 1: "output"})
    sampler = Gibbs()

    def refusal(query, eps=(1.0, 1.0), **options):
        problem = Problem(graph.wiring, graph.potentials, *eps)
        return sampler.refuses(problem, query, Options(**options))

    assert refusal("marginals") == refusal("samples") == refusal("marginals", (0.5, 0.5)) == ""
    assert "partition" in refusal("partition")
    assert "'map'" in refusal("map")
    assert "one temperature" in refusal("marginals", (0.0, 1.0))
    assert "above 0" in refusal("marginals", (0.0, 0.0))


def test_no_variables_and_no_factors():
    empty = ask(FactorGraph(), "samples", n_samples=10)
    assert empty.draws.shape == (10, 0)
    assert empty.value.tolist() == [0.0]
    lone = FactorGraph()
    lone.add_variables(2, [3, 1])
    np.testing.assert_allclose(ask(lone).beliefs, [1 / 3, 1 / 3, 1 / 3, 1.0])
