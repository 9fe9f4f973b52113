"""Newton steps from where ADMM stands: they end at the optimum that another method finds."""

import numpy as np
import pytest

import naive
from hinge_fields import least_energy, random_field
from structlearn._src.field.consensus import Consensus
from structlearn._src.field.hinges import Hinges
from structlearn._src.field.newton import Polish


def _start(seed, n_steps, **options):
    field, weights = naive.hinge_field(np.random.default_rng(seed), **options)
    hinges = Hinges(**field)
    consensus = Consensus(hinges, relaxation=1.6, stiffness=5.0, n_jobs=1)
    state = consensus.begin(weights)
    consensus.run(weights, state, n_steps)
    return consensus, weights, state


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("n_steps", [1, 50])
def test_rounds_end_at_the_optimum(seed, n_steps):
    consensus, weights, state = _start(seed, n_steps, hard=False)
    polish = Polish(consensus, weights, state)
    placed = sum(polish.rounds(patience=8))
    assert placed > 0
    assert polish.steps <= Polish.most_steps
    found = consensus.appraise(weights, state)
    free = np.full(consensus.hinges.n_variables, np.nan)
    optimum = least_energy(consensus.hinges, weights, free)[0]
    scale = abs(optimum) + consensus.scale(weights)
    assert found.energy == pytest.approx(optimum, abs=1e-4 * scale)
    assert found.lower <= found.energy + 1e-9 * scale
    assert found.energy - found.lower <= 1e-4 * scale


def test_points_stay_within_their_bounds():
    for seed in range(8):
        consensus, weights, state = _start(seed, 5)
        for placed in Polish(consensus, weights, state).rounds(patience=3):
            if placed:
                assert ((state.consensus >= 0) & (state.consensus <= 1)).all()


def test_a_polished_state_is_one_of_admm_again():
    """Placed copies agree with the consensus, so that the next step starts from there."""
    consensus, weights, state = _start(2, 5, hard=False)
    for _ in Polish(consensus, weights, state).rounds(patience=8):
        pass
    np.testing.assert_array_equal(state.ahead, state.consensus)
    assert (state.lags == 0).all()
    before = consensus.appraise(weights, state).energy
    consensus.run(weights, state, 20)
    assert consensus.appraise(weights, state).energy == pytest.approx(before, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_threads_change_no_bit(seed):
    hinges = random_field(np.random.default_rng(seed), n=12, m=60, hard=True)
    weights = np.array([0.5, 1.0, 2.0, 0.1, 0.0])
    found = []
    for n_jobs in (1, 2, 3):
        consensus = Consensus(hinges, relaxation=1.6, stiffness=5.0, n_jobs=n_jobs, grain=3)
        assert consensus.blocks.alone == (n_jobs == 1)
        state = consensus.run(weights, consensus.begin(weights), 7)
        polish = Polish(consensus, weights, state)
        placed = sum(polish.rounds(patience=3))
        found.append((placed, polish.steps, state, consensus.appraise(weights, state)))
    for placed, steps, state, worth in found[1:]:
        assert (placed, steps) == found[0][:2]
        np.testing.assert_array_equal(state.consensus, found[0][2].consensus)
        np.testing.assert_array_equal(state.multipliers, found[0][2].multipliers)
        assert (worth.energy, worth.lower) == (found[0][3].energy, found[0][3].lower)
        np.testing.assert_array_equal(worth.pull, found[0][3].pull)
