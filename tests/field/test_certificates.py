"""Bounds and endings of `solve_map` as proofs, in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from campaign.fields import Field, make_field
from structlearn._src.field.hinges import AT_MOST, EQUAL, HINGE
from structlearn.errors import InfeasibleError
from structlearn.fields import solve_map

ALLOWED = 1e-6  # by how much hard forms may be missed


def bound(field, multipliers):
    """What multipliers prove, as a fraction; they must lie in their cone."""
    total = Fraction(0)
    slopes = [Fraction(0)] * field.A.shape[1]
    for i, given in enumerate(multipliers.tolist()):
        factor, weight = Fraction(given), Fraction(float(field.each[i]))
        assert factor >= 0 or field.kinds[i] == EQUAL
        if field.kinds[i] == HINGE and field.powers[i] == 1:
            assert factor <= weight
        elif field.kinds[i] == HINGE and factor:
            total -= factor * factor / (4 * weight)
        total += factor * Fraction(float(field.b[i]))
        for j in np.flatnonzero(field.A[i]):
            slopes[j] += factor * Fraction(float(field.A[i, j]))
    for slope, ends in zip(slopes, field.box.tolist(), strict=True):
        total += min(slope * Fraction(end) for end in ends)
    return total


def solved(field, **options):
    return solve_map(field.hinges(), field.weights, fixed=field.fixed, n_jobs=1, **options)


def made(A, b, kinds, powers, groups, weights):
    arrays = (np.array(each) for each in (kinds, powers, groups))
    return Field(np.array(A, float), np.array(b, float), *arrays, np.array(weights, float))


@pytest.mark.parametrize("max_iter", [1, 30, 5000])
def test_multipliers_prove_the_bound(max_iter):
    rng = np.random.default_rng(0)
    converged = 0
    for _ in range(250):
        field = make_field(rng)
        try:
            found = solved(field, max_iter=max_iter)
        except InfeasibleError:
            continue
        size = 1e-6 * (abs(found.energy) + (field.each.max(initial=0.0) or 1.0))
        assert found.lower <= bound(field, found.multipliers) + Fraction(1e-3 * size)
        assert found.gap == abs(found.energy - found.lower)
        if found.converged:
            assert found.gap <= size
        if found.violation <= ALLOWED:
            assert found.lower <= found.energy + size
        converged += found.converged
    assert 0 < converged < 250


@pytest.mark.parametrize("apart", [1e-8, 1e-7, 5e-7, 9e-7])
@pytest.mark.parametrize("slope", [0.03, 1.0, 30.0])
@pytest.mark.parametrize(("power", "pull"), [(1, -1.0), (2, -1.0), (1, 1.0), (2, 1.0)])
def test_constraints_that_hold_but_for_rounding(power, pull, slope, apart):
    # The constraint holds below 0, where no value is; the nearest points have nearly its energy.
    rows = [[slope, slope], [pull, 0.0]]
    field = made(rows, [apart, 0.7], [EQUAL, HINGE], [1, power], [0, 0], [100.0])
    found = solved(field)
    size = 1e-6 * (found.energy + 100.0)
    assert found.violation <= ALLOWED
    assert found.violation == field.violations(found.y).max()
    assert found.lower <= bound(field, found.multipliers) + Fraction(1e-3 * size)
    least = 100.0 * (0.7 - max(-pull, 0.0) * (ALLOWED - apart) / slope) ** power
    assert found.energy >= least - size
    assert found.energy <= 100.0 * 0.7**power * (1 + 1e-12)
    if found.converged:
        assert found.gap <= size
    else:
        assert apart > 0.5 * ALLOWED  # half of what is allowed is for rounding
        assert found.status.startswith("the hard constraints cannot all hold exactly: gap ")
        assert found.ended == "limit"
        assert found.lower <= least
    steps = f"after {found.iterations} steps of ADMM and {found.newton_steps} Newton steps"
    assert steps in found.status


@pytest.mark.parametrize("apart", [3e-6, 1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_small_contradictions_are_refused_whatever_the_coefficients(scale, apart):
    field = made(
        [[scale, 2.0 * scale], [1.0, 1.0]], [apart, 0.3], [AT_MOST, HINGE], [1, 2], [0, 1],
        [1.0, 10.0],
    )  # fmt: skip
    with pytest.raises(InfeasibleError, match="contradict each other") as caught:
        solved(field)
    assert caught.value.forms == [0]


@pytest.mark.parametrize("heavy", [1e-30, 1.0, 1e8, 1e60])
def test_weights_that_no_hinge_has_do_not_count(heavy):
    rows = [[1.0, 1.0, -1.0], [0.0, -1.0, -1.0]]
    field = made(rows, [-0.5, 1.3], [EQUAL, EQUAL], [2, 2], [0, 0], [2.0, heavy])
    alone = made(rows, [-0.5, 1.3], [EQUAL, EQUAL], [2, 2], [0, 0], [2.0, 0.0])
    found = solved(field)
    assert found.converged
    assert found.gap <= 1e-6
    assert np.array_equal(found.y, solved(alone).y)
    light = made(rows, [0.5, 0.2], [HINGE, HINGE], [1, 2], [0, 0], [1e-6, heavy])
    assert solved(light).gap <= 1e-6 * (solved(light).energy + 1e-6)
