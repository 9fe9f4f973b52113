"""Sections of the docstring of `run`, which `completed` adds."""

from __future__ import annotations

RUN = {
    "": """\
Parameters
----------
solver
    Solver that takes the steps.
objective
    Objective to minimise.
weights
    Initial weights; they are not modified.
max_iter
    Maximum number of iterations, including those before a restart.
tol
    Relative tolerance; None never stops early.
patience
    Number of iterations with next to no gain that are required; by default the solver's own.
rng
    Random generator; a fresh one if None.
callbacks
    Called with an `Event` after every iteration; one that returns True ends the run.
watch
    Time limit and progress.
checkpoint
    Where (and how often) the run is saved, and resumed from if the file exists. The result is
    then identical, bit for bit, to the result of an uninterrupted run.
tested
    Whether convergence is tested by further steps if the solver cannot certify it.
gradient_tol
    The run also ends when the gradient norm, if steps report it, does not exceed this.

Returns
-------
Fit
    A record: `weights` of shape (weights,), `value`, `history`, `n_iter`, `converged`, the
    `status` as a sentence, how the run `ended`, and the `memory` of inference.

Examples
--------
>>> import numpy as np
>>> from structlearn import SequenceLabeler
>>> from structlearn.solvers import Lbfgs, run
>>> objective = SequenceLabeler().objective([[["the"], ["cat"]]], [["D", "N"]])
>>> fit = run(Lbfgs(), objective, np.zeros(objective.n_weights))
>>> fit.converged, round(fit.value, 3)
(True, 0.881)""",
}
