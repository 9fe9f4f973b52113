"""Small random hinge-loss fields, and an exact solver for them that shares no code with ours."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, minimize

from structlearn._src.field.hinges import AT_MOST, EQUAL, HINGE, Hinges


def random_field(rng, n=6, m=14, groups=4, hard=False, linear=0.3):
    """Hinges over up to three variables; with `hard`, also a sum that must be 1, and an order."""
    forms = []
    for _ in range(m):
        which = rng.choice(n, rng.integers(1, 4), replace=False)
        power = 1 if rng.random() < linear else 2
        forms.append((which, rng.normal(size=len(which)), rng.normal() * 0.5, HINGE, power))
    owners = list(rng.permutation(np.arange(m) % groups))
    if hard:
        forms.append((np.array([0, 1, 2]), np.ones(3), -1.0, EQUAL, 1))
        forms.append((np.array([3, 4]), np.array([1.0, -1.0]), 0.0, AT_MOST, 1))
        owners += [groups, groups]
    variables, coefficients, constants, kinds, powers = zip(*forms, strict=True)
    return Hinges(
        np.append(0, np.cumsum([len(v) for v in variables])),
        np.concatenate(variables),
        np.concatenate(coefficients),
        constants,
        kinds,
        powers,
        owners,
        n,
        groups + bool(hard),
    )


def dense(hinges):
    """Coefficients as a matrix (forms, variables)."""
    matrix = np.zeros((hinges.n_forms, hinges.n_variables))
    owners = np.repeat(np.arange(hinges.n_forms), np.diff(hinges.offsets))
    matrix[owners, hinges.variables] = hinges.coefficients
    return matrix


def least_energy(hinges, weights, fixed, extra=None):
    """Least energy with `fixed` (NaN where free), by SLSQP on slacks; and where it is.

    `extra(y)` returns the value and gradient of a convex term that is added.
    """
    matrix = dense(hinges)
    n = hinges.n_variables
    soft = hinges.kinds == HINGE
    each = np.asarray(weights)[hinges.groups[soft]]
    squared = hinges.powers[soft] == 2
    m = int(soft.sum())

    def energy(point):
        y = point[:n]
        s = point[n:]
        value = each @ np.where(squared, s**2, s)
        slope = np.concatenate([np.zeros(n), each * np.where(squared, 2 * s, 1.0)])
        if extra is not None:
            more, by = extra(y)
            value, slope[:n] = value + more, slope[:n] + by
        return value, slope

    rows = [LinearConstraint(np.hstack([-matrix[soft], np.eye(m)]), hinges.constants[soft])]
    for kind, low in ((AT_MOST, -np.inf), (EQUAL, None)):
        which = hinges.kinds == kind
        if which.any():
            top = -hinges.constants[which]
            wide = np.hstack([matrix[which], np.zeros((which.sum(), m))])
            rows.append(LinearConstraint(wide, top if low is None else low, top))
    known = ~np.isnan(fixed)
    lower = np.concatenate([np.where(known, fixed, 0.0), np.zeros(m)])
    upper = np.concatenate([np.where(known, fixed, 1.0), np.full(m, 1e3)])
    start = np.concatenate([np.where(known, fixed, 0.5), np.zeros(m)])
    start[n:] = np.maximum(matrix[soft] @ start[:n] + hinges.constants[soft], 0.0)
    found = minimize(
        energy,
        start,
        jac=True,
        method="SLSQP",
        bounds=Bounds(lower, upper),
        constraints=rows,
        options={"maxiter": 150, "ftol": 1e-13},
    )
    return found.fun, found.x[:n]
