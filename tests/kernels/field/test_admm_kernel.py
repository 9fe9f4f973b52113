"""Steps of ADMM against a version that keeps every copy and every multiplier."""

import numpy as np
import pytest

import naive
from structlearn._src.field.admm import AdmmState, Consensus
from structlearn._src.field.hinges import Hinges


@pytest.mark.parametrize("seed", range(60))
def test_one_number_per_form_stands_for_all_its_copies_and_multipliers(seed):
    rng = np.random.default_rng(seed)
    field, weights = naive.hinge_field(rng)
    fixed = {j: rng.random() for j in range(field["n_variables"]) if rng.random() < 0.2}
    free_of_hard = {
        j for kind, form in zip(field["kinds"], naive.hinge_forms(field), strict=True) if kind
        for j in form
    }  # fmt: skip
    fixed = {j: value for j, value in fixed.items() if j not in free_of_hard}
    step, relaxation = rng.exponential() + 0.01, rng.uniform(0.5, 1.9)
    stiffness, n_steps = rng.choice([1.0, 5.0]), int(rng.integers(1, 12))
    ours = Consensus(
        Hinges(**field), step=step, relaxation=relaxation, stiffness=stiffness, fixed=fixed,
        n_jobs=1,
    )  # fmt: skip
    state = ours.run(weights, ours.begin(weights), n_steps)
    y, hinges = naive.hinge_admm(field, weights, step, relaxation, stiffness, n_steps, fixed)
    np.testing.assert_allclose(state.consensus, y, atol=1e-10)
    np.testing.assert_allclose(state.hinges, hinges, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_residuals_measure_disagreement_and_movement(seed):
    """Without relaxation the multipliers change by the step times the disagreement."""
    rng = np.random.default_rng(seed)
    field, weights = naive.hinge_field(rng)
    ours = Consensus(Hinges(**field), step=0.7, n_jobs=1)
    after = ours.run(weights, ours.begin(weights), 3)
    before = AdmmState(*(array.copy() for array in after))
    ours.run(weights, after)
    disagreement, movement = 0.0, 0.0
    for i, form in enumerate(naive.hinge_forms(field)):
        for j, a in form.items():
            alphas = [0.7 * s.lags[j] - s.multipliers[i] * a for s in (before, after)]
            disagreement += ((alphas[1] - alphas[0]) / 0.7) ** 2
            movement += (0.7 * (after.consensus[j] - before.consensus[j])) ** 2
    np.testing.assert_allclose(after.residuals[0], disagreement**0.5, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(after.residuals[1], movement**0.5, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(100))
def test_any_multipliers_prove_a_bound(seed):
    rng = np.random.default_rng(seed)
    field, weights = naive.hinge_field(rng, hard=False)
    ours = Consensus(Hinges(**field), n_jobs=1)
    state = ours.begin(weights)
    multipliers = rng.normal(size=len(field["constants"]))
    ours.place(weights, state, rng.random(field["n_variables"]), multipliers)
    for _ in range(20):
        y = rng.random(field["n_variables"])
        values = np.maximum(naive.hinge_values(field, y), 0.0) ** field["powers"]
        assert (
            ours.appraise(weights, state).lower <= float(weights[field["groups"]] @ values) + 1e-9
        )


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_threads_and_pauses_change_no_bit(n_jobs):
    field, weights = naive.hinge_field(np.random.default_rng(0))
    assert len(field["variables"]) > 25
    whole = Consensus(Hinges(**field), relaxation=1.6, n_jobs=1, grain=1)
    parts = Consensus(Hinges(**field), relaxation=1.6, n_jobs=n_jobs, grain=1)
    expected = whole.run(weights, whole.begin(weights), 27)
    state = parts.run(weights, parts.begin(weights), 3)
    parts.run(weights, state, 24)
    for name, value in expected._asdict().items():
        np.testing.assert_array_equal(getattr(state, name), value, err_msg=name)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_steps_end_at_the_tolerance(n_jobs):
    field, weights = naive.hinge_field(np.random.default_rng(0), hard=False)
    ours = Consensus(Hinges(**field), n_jobs=n_jobs, grain=1)
    state = ours.run(weights, ours.begin(weights), 5000, 1e-3)
    taken = int(state.iterations)
    assert 1 < taken < 5000
    assert state.residuals[0] <= 1e-3
    assert state.residuals[1] <= 1e-3 * state.step
    before = ours.run(weights, ours.begin(weights), taken - 1)
    assert (before.residuals > [1e-3, 1e-3 * before.step]).any()
