"""Newton steps on the augmented energy: gradients by differences, directions by dense algebra."""

import numpy as np
import pytest

import naive
from structlearn._src.field.admm import Consensus
from structlearn._src.field.hinges import Hinges
from structlearn._src.kernels.field import newton


def _problem(seed):
    rng = np.random.default_rng(seed)
    field, weights = naive.hinge_field(rng)
    forms = Consensus(Hinges(**field), n_jobs=1).forms
    m, n = len(field["constants"]), field["n_variables"]
    return forms, weights, rng.random(m), rng.random(n), rng.uniform(0.1, 1.0)


def _evaluate(forms, weights, softness, bases, point):
    slopes, gradient = np.empty(len(bases)), np.empty(len(point))
    value = newton.evaluate(forms, weights, softness, bases, point, slopes, gradient)
    return value, gradient


@pytest.mark.parametrize("seed", range(30))
def test_the_gradient_is_that_of_the_augmented_energy(seed):
    forms, weights, bases, point, softness = _problem(seed)
    _, gradient = _evaluate(forms, weights, softness, bases, point)
    scale = max(weights.max(), 1.0)
    for j in range(len(point)):
        ends = []
        for sign in (1, -1):
            moved = point.copy()
            moved[j] += sign * 1e-5
            ends.append(_evaluate(forms, weights, softness, bases, moved)[0])
        slope = (ends[0] - ends[1]) / 2e-5
        assert slope == pytest.approx(gradient[j], rel=1e-3, abs=2e-3 * scale)


@pytest.mark.parametrize("seed", range(30))
def test_the_direction_solves_for_the_free_variables(seed):
    forms, weights, bases, point, softness = _problem(seed)
    n = len(point)
    _, gradient = _evaluate(forms, weights, softness, bases, point)
    rng, prox = np.random.default_rng(seed), 0.3
    free = rng.random(n) < 0.7
    rows = newton.ActiveRows(
        np.zeros(len(bases) + 1, np.uint64), np.empty(len(forms.variables), np.uint32),
        np.empty(len(forms.variables)), np.empty(n, np.int64),
    )  # fmt: skip
    diagonal, direction = np.full(n, prox), np.empty(n)
    counts = newton.gather(forms, weights, softness, softness, bases, point, free, rows, diagonal)
    newton.direct(
        rows, counts, diagonal, prox, gradient, free, 1e-12, 200, np.empty((4, n)), direction
    )
    curved = np.zeros((n, n))
    for j in range(n):
        moved = [point + sign * 1e-7 * np.eye(n)[j] for sign in (1, -1)]
        up, down = (_evaluate(forms, weights, softness, bases, there)[1] for there in moved)
        curved[j] = (up - down) / 2e-7
    hessian = (curved + prox * np.eye(n))[np.ix_(free, free)]
    scale = np.abs(hessian).max(initial=1.0)
    np.testing.assert_allclose(
        hessian @ direction[free], -gradient[free], rtol=1e-4,
        atol=1e-5 * scale * max(np.abs(direction).max(), 1.0),
    )  # fmt: skip
    assert (direction[~free] == 0).all()
