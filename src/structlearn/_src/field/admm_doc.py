"""Sections of the docstring of `solve_map`, which `completed` adds."""

from __future__ import annotations

SOLVE_MAP = {
    "": r"""
Parameters
----------
hinges
    The field.
weights : array-like of shape (groups,)
    (groups) At least 0.
fixed : dict, or pair of arrays, optional
    Variables that are given: a mapping from variable to value, or a pair of arrays.
start
    Warm start: the result for other weights, or an initial guess of shape (variables).
tol
    Gap at which to stop, relative to the energy plus the smallest weight.
max_iter
    Maximum number of ADMM steps.
time_limit
    Seconds after which the best values so far are returned.
progress
    Called with the fraction done and a few words; True shows a bar on standard error.
n_jobs
    Number of threads. The result does not depend on it.

Returns
-------
HingeResult
    The values `y` of shape (variables,), their `energy`, a lower bound `lower` on the optimal
    energy, the `gap` between them, the largest `violation` of a hard form, sums of `hinges` of
    shape (groups,), `multipliers` of shape (forms,), and a `status`.

Raises
------
InfeasibleError
    If the hard constraints contradict each other; its `forms` prove it.

Notes
-----
Any multipliers :math:`\lambda` (within 0 and the weight for hinges, at least 0 for squared
hinges and inequalities) prove the lower bound

.. math:: \sum_i \lambda_i b_i - \sum_{i \text{ squared}} \lambda_i^2 / 4 w_i
          + \sum_j \min(0, (A^\top \lambda)_j)

Examples
--------
One variable that is pulled to 0 with weight 1 and to 1 with weight 3, both squared:

>>> from structlearn.fields import Hinges, solve_map
>>> field = Hinges(
...     offsets=[0, 1, 2], variables=[0, 0], coefficients=[1.0, -1.0], constants=[0.0, 1.0],
...     kinds=[0, 0], powers=[2, 2], groups=[0, 1], n_variables=1, n_groups=2,
... )
>>> result = solve_map(field, [1.0, 3.0])
>>> print(result.y.round(4), round(result.energy, 4))
[0.75] 0.75""",
}
