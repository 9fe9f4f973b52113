"""Worlds of hinge-loss fields: least energy by ADMM that goes on from where it stood."""

from __future__ import annotations

import numpy as np

from structlearn._src.common.arrays import Bools, Floats
from structlearn._src.common.watch import Watch
from structlearn._src.field.consensus import Consensus
from structlearn._src.field.examples import HingeExamples
from structlearn._src.kernels.field.admm import AdmmState
from structlearn._src.learn.world import CONVERGED, Budget, InferenceSettings, check_fits

_STEPS = 10_000  # of ADMM, where an evaluation is to converge
_TOL = 1e-3  # residuals per local copy: rough inference is enough for weights that still move


class FieldWorld:
    r"""The value of a field with some variables fixed, and its gradient by the weights.

    .. math:: \Phi(w) = -\min_y \, [w^\top \phi(y) - h(y)], \qquad
              \nabla \Phi = -\phi(y^*)

    The variables that are `fixed` have their labels here.
    """

    def __init__(
        self, examples: HingeExamples, fixed: Bools, settings: InferenceSettings, watch: Watch
    ) -> None:
        which = np.flatnonzero(fixed)
        self.consensus = Consensus(
            examples.hinges,
            step=settings.step,
            relaxation=settings.relaxation,
            fixed=(which, examples.labels[which]),
            n_jobs=settings.n_jobs,
        )
        self.weights = examples.weights
        self.limit = settings.sweeps or _STEPS
        tol = _TOL if settings.tol is None else settings.tol
        self.tol = tol * np.sqrt(max(len(examples.hinges.variables), 1))
        self.approximate = False
        self.sizes = (examples.hinges.n_forms, examples.hinges.n_variables)
        self.watch = watch
        self.still = bool(fixed.all())  # nothing to infer

    def begin(self) -> AdmmState:
        """Return the state of ADMM before the first step."""
        return self.consensus.begin(self.weights)

    def solve(
        self, parameters: Floats, factors: Floats, memory: AdmmState,
        budget: Budget = CONVERGED, into: Floats | None = None,
    ) -> tuple[Floats, Floats, AdmmState]:  # fmt: skip
        """Value at the weights of all groups, and its gradient times the only factor.

        They are those of the consensus, or under a budget those of the local copies.
        """
        check_fits(isinstance(memory, AdmmState))
        check_fits((len(memory.multipliers), len(memory.consensus)) == self.sizes)
        if not self.still:
            steps = budget.sweeps or self.limit
            self.consensus.run(parameters, memory, steps, self.tol, self.watch)
        hinges = memory.hinges
        if self.still or budget.sweeps is None:
            hinges = self.consensus.appraise(parameters, memory).hinges
        gradient = -factors[0] * hinges
        if into is not None:
            gradient += into
        return np.array([-float(parameters @ hinges)]), gradient, memory
