"""Dual solvers in shards: the dual never falls, the optimum is the same, runs can be repeated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chain_objectives import KINDS, chains
from structlearn._src.solve import shards
from structlearn._src.solve.checkpoint import Checkpoint
from structlearn._src.solve.frank_wolfe import FrankWolfe, dual_value
from structlearn._src.solve.loop import run


def in_threads(objective, n_jobs):
    return replace(objective, settings=replace(objective.settings, n_jobs=n_jobs))


def solve(objective, parts, n_jobs=2, **options):
    rng = np.random.default_rng(0)
    start = np.zeros(objective.n_weights)
    solver = FrankWolfe(shards=parts)
    return run(solver, in_threads(objective, n_jobs), start, rng=rng, **options)


def test_a_merge_adds_what_shards_have_done():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=50)
    deltas = rng.normal(size=(4, 50))
    copies = weights + 3.0 * deltas
    after = weights.copy()
    found = shards.merge(after, copies, 3.0, 2)
    total = deltas.sum(axis=0)
    np.testing.assert_allclose(after, weights + total)
    assert found.along == pytest.approx(weights @ total)
    assert found.square == pytest.approx(total @ total)
    assert found.needed == pytest.approx(total @ total / (deltas**2).sum())
    assert found.needed <= 4.0  # by Cauchy and Schwarz


def test_the_coupling_follows_what_was_needed_within_bounds():
    assert shards.next_coupling(8.0, 8.0, 8) == 8.0
    assert 1.0 < shards.next_coupling(8.0, 1.0, 8) < 8.0
    assert shards.next_coupling(1.0, 0.1, 8) == 1.0
    assert shards.next_coupling(1.0, 5.0, 8) > 5.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_of_the_hinge_closes_in_shards(kind):
    objective = chains(n=15, **KINDS[kind])
    whole = solve(objective, 1, 1, max_iter=5000, tol=1e-4)
    for parts in (2, 3, 8):
        fit = solve(objective, parts, 1, max_iter=2000, tol=1e-2)
        assert fit.converged, fit.status
        assert fit.history.gap[-1] <= 1e-2 * fit.value
        assert fit.value == pytest.approx(whole.value, rel=1e-2)
        assert fit.value == pytest.approx(objective.value(fit.weights), rel=1e-10)


@pytest.mark.parametrize("pairwise", [0, 1, 3])
@pytest.mark.parametrize("parts", [2, 8])
def test_the_dual_of_the_hinge_never_falls(parts, pairwise):
    objective = in_threads(chains(5, n=40, C=5.0, features="pairs"), 2)
    solver = FrankWolfe(pairwise=pairwise, shards=parts)
    state = solver.start(objective, np.zeros(objective.n_weights), np.random.default_rng(0))
    assert state["shards"] == parts
    state["coupling"] = 1.0  # too bold: rounds must be taken back
    last = dual_value(state)
    for _ in range(40):
        solver.step(objective, state)
        dual = dual_value(state)
        assert dual >= last - 1e-9 * abs(last)
        assert dual <= objective.value(state["weights"]) + 1e-9
        last = dual


def test_weights_stay_those_of_the_dual_variables():
    """After many rounds, some of them taken back."""
    objective = in_threads(chains(2, n=30, C=3.0), 2)
    solver = FrankWolfe(shards=3)
    state = solver.start(objective, np.zeros(objective.n_weights), np.random.default_rng(0))
    data = objective.chain_arrays.data
    for _ in range(25):
        state["coupling"] = 1.0
        solver.step(objective, state)
    for c, (begin, end) in enumerate(zip(data.offsets[:-1], data.offsets[1:], strict=True)):
        own = slice(state["starts"][c], state["starts"][c] + state["counts"][c])
        shares = np.bincount(state["ends"][own] // 3, state["shares"][own], end - begin)
        np.testing.assert_allclose(shares, 1.0, atol=1e-9)


def test_the_number_of_threads_does_not_matter_to_the_last_bit():
    objective = chains(4, n=40, features="pairs")
    one, two, three = (solve(objective, 3, n_jobs, max_iter=12, tol=None) for n_jobs in (1, 2, 3))
    np.testing.assert_array_equal(one.weights, two.weights)
    np.testing.assert_array_equal(one.weights, three.weights)


def test_a_restart_changes_nothing_in_shards(tmp_path):
    objective = chains(1, n=40, features="sparse")
    whole = solve(objective, 3, max_iter=20, tol=None)
    path = Checkpoint(tmp_path / "run", iterations=1)
    solve(objective, 3, max_iter=7, tol=None, checkpoint=path)
    rest = solve(objective, 3, 1, max_iter=20, tol=None, checkpoint=path)
    np.testing.assert_array_equal(rest.weights, whole.weights)


def test_an_interrupt_keeps_what_there_is():
    objective = chains(1, n=40)

    def stop(event):
        if event.iteration == 3:
            raise KeyboardInterrupt

    fit = solve(objective, 3, max_iter=50, callbacks=(stop,))
    assert fit.ended == "interrupted"
    assert np.isfinite(fit.weights).all()
