"""Consensus ADMM: a frozen problem, and states that are stepped, stored and placed."""

import numpy as np
import pytest

import naive
from structlearn._src.common.errors import ArgumentError, InfeasibleError
from structlearn._src.field.admm import solve_map
from structlearn._src.field.consensus import AdmmState, Consensus
from structlearn._src.field.hinges import Hinges


def _field(seed, **options):
    field, weights = naive.hinge_field(np.random.default_rng(seed), **options)
    return Hinges(**field), weights


def test_weights_may_change_on_the_way():
    for seed in range(10):
        hinges, weights = _field(seed)
        other = weights[::-1] + 0.5
        consensus = Consensus(hinges, relaxation=1.6)
        state = consensus.run(weights, consensus.begin(weights), 20)
        consensus.change_step(state, consensus.scale(other))
        consensus.run(other, state, 3000)
        energy = consensus.appraise(other, state).energy
        assert energy == pytest.approx(solve_map(hinges, other).energy, rel=1e-3, abs=1e-3)


def test_a_stored_state_goes_on_as_before(tmp_path):
    hinges, weights = _field(5)
    first = Consensus(hinges, step=0.3, relaxation=1.2)
    state = first.run(weights, first.begin(weights), 4)
    np.savez(tmp_path / "state.npz", **state._asdict())
    first.run(weights, state, 3)
    second = Consensus(hinges, relaxation=1.2)
    with np.load(tmp_path / "state.npz") as stored:
        restored = AdmmState(**stored)
    assert restored.iterations == 4
    assert second.run(weights, restored, 3) is restored
    for name, value in state._asdict().items():
        np.testing.assert_array_equal(getattr(restored, name), value, err_msg=name)


def test_states_of_one_problem_know_nothing_of_each_other():
    hinges, weights = _field(5)
    consensus = Consensus(hinges)
    alone = consensus.run(weights, consensus.begin(weights), 6)
    state, other = consensus.begin(weights), consensus.begin(weights + 1.0)
    for _ in range(6):
        consensus.run(weights, state)
        consensus.run(weights + 1.0, other)
    for name, value in alone._asdict().items():
        np.testing.assert_array_equal(getattr(state, name), value, err_msg=name)
    assert (other.consensus != state.consensus).any()


def test_a_new_step_keeps_multipliers_and_optimum():
    hinges, weights = _field(8)
    ours = Consensus(hinges, relaxation=1.5)
    state = ours.run(weights, ours.begin(weights), 5)
    multipliers = state.multipliers.copy()
    alphas = state.step * state.lags
    ours.change_step(state, 7 * float(state.step))
    np.testing.assert_allclose(state.step * state.lags, alphas)
    np.testing.assert_array_equal(state.multipliers, multipliers)


def test_a_state_begins_at_a_point_within_its_bounds():
    hinges, weights = _field(3, hard=False)
    consensus = Consensus(hinges, fixed={0: 0.25}, step=0.7)
    state = consensus.begin(weights, np.ones(hinges.n_variables))
    assert state.consensus[0] == 0.25
    assert (state.consensus[1:] == 1.0).all()
    assert (state.step, state.iterations) == (0.7, 0)
    assert np.isinf(state.residuals).all()
    np.testing.assert_array_equal(state.hinges, hinges.hinges(state.consensus))
    middle = consensus.begin(weights)
    assert middle.consensus.tolist() == [0.25] + [0.5] * (hinges.n_variables - 1)


def test_the_first_step_is_the_mean_weight_of_the_hinges():
    hinges, weights = _field(1, hard=False)
    consensus = Consensus(hinges)
    mean = weights[hinges.groups[~hinges.hard]].mean()
    assert consensus.begin(weights).step == pytest.approx(mean)
    assert consensus.begin(np.zeros_like(weights)).step == 1.0


def test_at_the_optimum_nothing_moves():
    for seed in range(10):
        hinges, weights = _field(seed, hard=False)
        best = solve_map(hinges, weights, tol=1e-9)
        consensus = Consensus(hinges)
        state = consensus.begin(weights)
        consensus.place(weights, state, best.y, best.multipliers)
        found = consensus.appraise(weights, state)
        assert (found.energy, found.lower) == pytest.approx((best.energy, best.lower), abs=1e-6)
        np.testing.assert_allclose(found.hinges, hinges.hinges(best.y))
        consensus.run(weights, state, 30)
        assert consensus.appraise(weights, state).energy == pytest.approx(best.energy, abs=1e-3)


def test_the_step_follows_the_larger_residual():
    hinges, weights = _field(1)
    consensus = Consensus(hinges)
    for primal, dual, factor in [(9.0, 1.0, 3.0), (1.0, 9.0, 1 / 3), (1.5, 1.0, 1.0), (0, 1, 1.0)]:
        state = consensus.begin(weights)
        step = float(state.step)
        state.residuals[:] = primal, dual * step
        consensus.balance(state)
        assert float(state.step) == pytest.approx(factor * step)
    state.residuals[:] = 1e9, float(state.step)
    consensus.balance(state, damped=False)
    assert float(state.step) == pytest.approx(1000.0 * step)


def test_variables_that_are_given_never_move():
    hinges, weights = _field(4, hard=False)
    consensus = Consensus(hinges, fixed=([1, 2], [0.3, 0.9]))
    state = consensus.run(weights, consensus.begin(weights), 50)
    assert state.consensus[[1, 2]].tolist() == [0.3, 0.9]


def test_hard_forms_over_given_variables_must_hold():
    hinges = Hinges(
        [0, 2, 3], [0, 1, 1], [1.0, 1.0, 1.0], [-1.0, 0.0], [2, 0], [1, 1], [0, 0], 2, 1
    )
    Consensus(hinges, fixed={0: 0.25, 1: 0.75})
    with pytest.raises(InfeasibleError) as caught:
        Consensus(hinges, fixed={0: 0.5, 1: 0.75})
    assert caught.value.forms == [0]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"relaxation": 0.0}, "relaxation"),
        ({"relaxation": 2.0}, "relaxation"),
        ({"stiffness": 0.0}, "stiffness"),
        ({"step": -1.0}, "step"),
        ({"fixed": ([0], [0.5, 0.5])}, "fixed"),
    ],
)
def test_wrong_problems_are_refused(options, name):
    with pytest.raises(ArgumentError, match=name):
        Consensus(_field(0)[0], **options)


@pytest.mark.parametrize(("options", "name"), [({"max_iter": 0}, "max_iter"), ({"tol": -1}, "tol")])
def test_wrong_runs_are_refused(options, name):
    hinges, weights = _field(0)
    consensus = Consensus(hinges)
    state = consensus.begin(weights)
    with pytest.raises(ArgumentError, match=name):
        consensus.run(weights, state, **options)
    with pytest.raises(ArgumentError, match="weight"):
        consensus.run(weights[:-1], state)
