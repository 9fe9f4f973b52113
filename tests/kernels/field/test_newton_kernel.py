"""Newton steps on the augmented energy: gradients by differences, directions by dense algebra."""

import numpy as np
import pytest

import naive
from hinge_fields import random_field
from structlearn._src.field.admm import Consensus
from structlearn._src.field.hinges import Hinges
from structlearn._src.field.newton import NewtonSystem
from structlearn._src.kernels.field import newton


def _problem(seed, n_jobs=1):
    rng = np.random.default_rng(seed)
    field, weights = naive.hinge_field(rng)
    consensus = Consensus(Hinges(**field), n_jobs=n_jobs, grain=1)
    m, n = len(field["constants"]), field["n_variables"]
    return consensus, weights, rng.random(m), rng.random(n), rng.uniform(0.1, 1.0)


def _evaluate(consensus, weights, softness, bases, point):
    """Value and gradient of the augmented energy without its last term."""
    blocks, n = consensus.blocks, len(point)
    values, gradient = np.empty(blocks.n_form_blocks), np.zeros(n)
    given = weights, (softness, softness), bases, point, consensus.slopes, values
    blocks.over_forms(newton.evaluate, consensus.forms, *given)
    consensus.add_pull(consensus.slopes, gradient)
    free, wrong = np.empty(n, bool), np.empty(blocks.n_variable_blocks)
    blocks.over_variables(
        newton.descend, blocks.columns, consensus.bounds, consensus.slopes, point, point, 0.0, 1.0,
        gradient, free, wrong, blocks.alone,
    )  # fmt: skip
    return values.sum(), gradient


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("seed", range(30))
def test_the_gradient_is_that_of_the_augmented_energy(seed, n_jobs):
    field, weights, bases, point, softness = _problem(seed, n_jobs)
    _, gradient = _evaluate(field, weights, softness, bases, point)
    scale = max(weights.max(), 1.0)
    for j in range(len(point)):
        ends = []
        for sign in (1, -1):
            moved = point.copy()
            moved[j] += sign * 1e-5
            ends.append(_evaluate(field, weights, softness, bases, moved)[0])
        slope = (ends[0] - ends[1]) / 2e-5
        assert slope == pytest.approx(gradient[j], rel=1e-3, abs=2e-3 * scale)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("seed", range(30))
def test_the_direction_solves_for_the_free_variables(seed, n_jobs):
    field, weights, bases, point, softness = _problem(seed, n_jobs)
    n = len(point)
    _, gradient = _evaluate(field, weights, softness, bases, point)
    rng, prox = np.random.default_rng(seed), 0.3
    free = rng.random(n) < 0.7
    system = NewtonSystem(field)
    system.gather(weights, (softness, softness), field.slopes, free, prox)
    system.solve(gradient, 1e-12, 200)
    direction = system.solution
    curved = np.zeros((n, n))
    for j in range(n):
        moved = [point + sign * 1e-7 * np.eye(n)[j] for sign in (1, -1)]
        up, down = (_evaluate(field, weights, softness, bases, there)[1] for there in moved)
        curved[j] = (up - down) / 2e-7
    hessian = (curved + prox * np.eye(n))[np.ix_(free, free)]
    scale = np.abs(hessian).max(initial=1.0)
    np.testing.assert_allclose(
        hessian @ direction[free], -gradient[free], rtol=1e-4,
        atol=1e-5 * scale * max(np.abs(direction).max(), 1.0),
    )  # fmt: skip
    assert (direction[~free] == 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_columns_hold_the_entries_of_the_forms(seed):
    hinges = random_field(np.random.default_rng(seed), n=9, m=30)
    columns = Consensus(hinges, n_jobs=3, grain=2).blocks.columns
    owners = np.repeat(np.arange(hinges.n_forms), np.diff(hinges.offsets))
    order = np.lexsort((owners, hinges.variables))
    ends = np.cumsum(np.bincount(hinges.variables, minlength=hinges.n_variables))
    assert columns.offsets.tolist() == [0, *ends.tolist()]
    assert columns.forms.tolist() == owners[order].tolist()
    assert columns.coefficients.tolist() == hinges.coefficients[order].tolist()
