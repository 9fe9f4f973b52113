"""The objective of hinge-loss fields: two worlds, each with its least energy found by ADMM."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.common.watch import Watch
from structlearn._src.field.consensus import Consensus
from structlearn._src.field.examples import HingeExamples
from structlearn._src.kernels.field.admm import AdmmState
from structlearn._src.learn.loss import NonNegative
from structlearn._src.learn.objective import Hints, Pair, TwoWorlds, ValueGradient
from structlearn._src.learn.world import CONVERGED, Budget, InferenceSettings, Memory, check_fits

_STEPS = 10_000  # of ADMM, where an evaluation is to converge
_TOL = 1e-3  # residuals per local copy: rough inference is enough for weights that still move


class FieldWorld:
    r"""The value of a field with some variables fixed, and its gradient by the weights.

    .. math:: \Phi(w) = -\min_y \, [w^\top \phi(y) - h(y)], \qquad
              \nabla \Phi = -\phi(y^*)

    The variables that are `fixed` have their labels here.
    """

    approximate = False

    def __init__(
        self, examples: HingeExamples, fixed: Bools, settings: InferenceSettings, watch: Watch
    ) -> None:
        self.consensus = Consensus(
            examples.hinges,
            step=settings.step,
            relaxation=settings.relaxation,
            fixed=np.where(fixed, examples.labels, np.nan),
            n_jobs=settings.n_jobs,
        )
        self.weights = examples.weights
        self.limit = settings.sweeps or _STEPS
        tol = _TOL if settings.tol is None else settings.tol
        self.tol = tol * np.sqrt(max(len(examples.hinges.variables), 1))
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

_ERROR = 1e-4  # share of its value that residuals of ADMM leave: 2e-5 on a field of 20 variables


@dataclass(frozen=True, eq=False)
class FieldObjective(TwoWorlds):
    r"""Penalty plus C times how much more energy the labels need than the best of all values.

    .. math:: F(w) = \Omega(w) + C \Bigl(\min_z \, [w^\top \phi(\hat y, z) - h(\hat y, z)]
              - \min_{y, z} \, [w^\top \phi(y, z) - h(y, z)]\Bigr)

    with labels :math:`\hat y` and hidden variables :math:`z`. The second minimum is over more, so
    :math:`F \ge \Omega`; it is convex where nothing is hidden. One weight per group that is
    learnt; its gradient is C times the sum of the group's hinges in the clamped world less that
    in the free one. A budget makes it paired-dual learning, a tangent expectation maximisation.

    References
    ----------
    S. Bach et al., "Paired-dual learning for fast training of latent variable hinge-loss MRFs",
    2015, equation 4, whose energies and entropies have the opposite sign in print.
    """

    examples: HingeExamples
    C: float = 1.0
    penalty: NonNegative = field(default_factory=NonNegative)
    settings: InferenceSettings = field(default_factory=InferenceSettings)
    watch: Watch = field(default_factory=Watch)

    @property
    def n_weights(self) -> int:
        """Number of weights that are learnt."""
        return len(self.examples.learnt)

    @property
    def example_weights(self) -> Floats:
        """The field is one example."""
        return np.ones(1)

    @property
    def scales(self) -> Floats:
        """What steps are to be multiplied by: one over the number of hinges with the weight."""
        return 1.0 / self.examples.hinges.sizes[self.examples.learnt]

    @property
    def hints(self) -> Hints:
        """Steps as long as a weight; projected subgradients waver, so that CCCP takes them all."""
        size = float(self.start.mean()) or 1.0
        return Hints(sweeps=1, inner_tol=0.0, step=size, C=self.C, error=_ERROR)

    @property
    def start(self) -> Floats:
        """Weights to begin with."""
        return self.examples.weights[self.examples.learnt]

    @cached_property
    def pairs(self) -> tuple[Pair]:
        """The free and the clamped world."""
        fixed = self.examples.given, ~self.examples.hidden
        worlds = (FieldWorld(self.examples, each, self.settings, self.watch) for each in fixed)
        return (Pair(1.0, *worlds),)

    def loss_gradient(self, weights: Floats, memory: Memory = None) -> ValueGradient:
        """C times the loss and its gradient; infinite where the time limit ended inference."""
        found = super().loss_gradient(weights, memory)
        return found._replace(value=math.inf) if self._late else found

    def value(self, weights: Floats, memory: Memory = None) -> float:
        """Return the objective, penalty included; infinite as well where time is up."""
        found = super().value(weights, memory)
        return math.inf if self._late else found

    @property
    def _late(self) -> bool:
        return self.budget.sweeps is None and self.watch.expired

    def push(self, weights: Floats) -> Floats:
        """Weights of all groups, the learnt ones being these."""
        return self.examples.fill_in(weights)

    def pull(self, gradient: Floats) -> Floats:
        """Gradient by the weights that are learnt."""
        return gradient[self.examples.learnt]

    def take(self, which: Ints) -> Self:
        """Return the objective of the only example."""
        return self

    def shards(self, n: int) -> list[Self]:
        """Cut the field into at most `n` parts that share no free variable."""
        parts = self.examples.cut(checks.integer("n", n, low=1))
        return [replace(self, examples=part, tangent=None, warm=None) for part in parts]
