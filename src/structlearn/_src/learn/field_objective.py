"""Objectives of hinge-loss fields: two worlds under ADMM, and the error of the best values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.common.watch import Ending, Watch
from structlearn._src.field.admm import solve_map
from structlearn._src.field.consensus import Consensus, make_consensus
from structlearn._src.field.examples import HingeExamples
from structlearn._src.field.newton import NewtonSystem, weight_gradient
from structlearn._src.kernels.field.admm import AdmmState
from structlearn._src.learn.loss import NonNegative
from structlearn._src.learn.objective import Hints, Objective, Pair, TwoWorlds, ValueGradient
from structlearn._src.learn.world import CONVERGED, Budget, InferenceSettings, Memory, check_fits

_STEPS = 10_000  # of ADMM, where an evaluation is to converge
_TOL = 1e-3  # residuals per local copy: rough inference is enough for weights that still move
_GAP = 1e-5  # of the best values: ten times finer changes weights by a percent at most
_MAP_STEPS = 2000  # of ADMM, to find the best values in one evaluation
_ERROR = 1e-4  # share of its value that residuals of ADMM leave: 2e-5 on a field of 20 variables
_INSTANT = 1e-9  # seconds, in place of none
_LEAST = 0.01  # in place of the variance of labels that are all the same


class _FieldWeights:
    """What objectives of hinge-loss fields share: the weights that they learn."""

    examples: HingeExamples

    @property
    def n_weights(self) -> int:
        """Number of weights that are learnt."""
        return len(self.examples.learnt)

    @property
    def start(self) -> Floats:
        """Weights to begin with."""
        return self.examples.weights[self.examples.learnt]

    @property
    def scale(self) -> float:
        """Mean weight of the start."""
        return float(self.start.mean()) or 1.0


# ---- two worlds ------------------------------------------------------------------------------


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
        self.consensus = make_consensus(
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
        check_fits(self.consensus.fits(memory))
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


@dataclass(frozen=True, eq=False)
class FieldObjective(_FieldWeights, TwoWorlds):
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
        return Hints(sweeps=1, inner_tol=0.0, step=self.scale, C=self.C, error=_ERROR)

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

    def loss_value(self, weights: Floats, memory: Memory = None) -> float:
        """C times the loss; infinite as well where time is up."""
        found = super().loss_value(weights, memory)
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


# ---- errors of the best values ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Anchored(NonNegative):
    """Half the squared distance from the weights to begin with; no weight falls below 0."""

    anchor: Floats = field(default_factory=lambda: np.zeros(0))

    def value(self, weights: Floats, n_jobs: int | None = 1) -> float:
        """Return the whole penalty."""
        return super().value(weights - self.anchor)

    def gradient(self, weights: Floats) -> Floats:
        """Return its gradient."""
        return super().gradient(weights - self.anchor)


class Found(NamedTuple):
    """Where inference stands: the memory of `FieldError`."""

    y: Floats
    multipliers: Floats
    iterations: np.ndarray  #: () steps of ADMM so far


@dataclass(frozen=True, eq=False)
class FieldError(_FieldWeights, Objective):
    r"""Penalty plus C times the squared error of the best values, over the variance of the labels.

    .. math:: F(w) = \frac{1}{2 m} |w - w_0|^2 + \frac{m C}{4 v} \sum_j (y^*_j(w) - \hat y_j)^2,
              \qquad y^*(w) = \operatorname{argmin}_{y, z} w^\top \phi(y, z)

    with the mean weight :math:`m` of the start, so that its scale only scales what is learnt, and
    the variance :math:`v` of the labels, 1/4 for those of a coin: errors count more where one of
    them is rare. Best values do not change when all weights are multiplied by a number, so the
    error does not either, and weights of 0 are no optimum of it; the penalty keeps weights near
    their start where labels do not say otherwise. Hidden variables take their best values with the
    others. The gradient goes through the optimality of the best values, see `weight_gradient`.

    References
    ----------
    C. Dickens, C. Pryor, C. Gao, A. Albalak, E. Augustine, W. Wang, S. Wright and L. Getoor,
    "Convex and bilevel optimization for neural-symbolic inference and learning", ICML 2024, which
    learns weights of such fields by the errors of best values too, with other gradients.
    """

    examples: HingeExamples
    C: float = 1.0
    settings: InferenceSettings = field(default_factory=InferenceSettings)
    watch: Watch = field(default_factory=Watch)

    def __post_init__(self) -> None:
        Consensus(self.examples.hinges, fixed=self.examples.labels)  # refuses those that break it

    @property
    def data(self) -> object:
        """What tells these examples from others, in checkpoints."""
        return self.examples

    @cached_property
    def penalty(self) -> Anchored:  # type: ignore[override]
        """What weights cost that leave their start."""
        return Anchored(anchor=self.start, strength=1.0 / self.scale)

    @property
    def hints(self) -> Hints:
        """Steps as long as a weight."""
        return Hints(step=self.scale, C=self.C)

    @cached_property
    def _system(self) -> NewtonSystem:
        return NewtonSystem(Consensus(self.examples.hinges, fixed=self._given))

    @cached_property
    def _given(self) -> Floats:
        return np.where(self.examples.given, self.examples.labels, np.nan)

    @cached_property
    def _factor(self) -> float:
        """C over the variance of the labels to be predicted, in units of the start."""
        labels = self.examples.labels[~self.examples.given & ~self.examples.hidden]
        return self.scale * self.C / max(4.0 * float(labels.var()), _LEAST)

    def begin(self) -> Found:
        """Return the memory before any inference."""
        consensus = self._system.consensus
        middle = np.full(self.examples.hinges.n_variables, 0.5)
        return Found(middle, consensus.zeros(), np.array(0))

    def loss_gradient(self, weights: Floats, memory: Memory = None) -> ValueGradient:
        """C times the error of the best values, and its gradient.

        Where the time limit ends inference, the error is infinite: other weights are better known.
        """
        memory = self.begin() if memory is None else memory
        hinges = self.examples.hinges
        check_fits(isinstance(memory, Found))
        check_fits((len(memory.y), len(memory.multipliers)) == (hinges.n_variables, hinges.n_forms))
        whole = self.examples.fill_in(weights)
        found = solve_map(
            hinges, whole, fixed=self._given, start=memory if memory.iterations else None,
            tol=_GAP if self.settings.tol is None else self.settings.tol,
            max_iter=self.settings.sweeps or _MAP_STEPS,
            time_limit=max(self.watch.left, _INSTANT) if self.watch.left < math.inf else None,
            n_jobs=self.settings.n_jobs,
        )  # fmt: skip
        if found.ended == Ending.INTERRUPTED:  # the work around must end, too
            raise KeyboardInterrupt
        memory.y[:] = found.y
        self._system.consensus.blocks.copy(found.multipliers, memory.multipliers)
        memory.iterations[()] += found.iterations
        missed = np.nan_to_num(found.y - self.examples.labels)
        error = math.inf if found.ended.early else self._factor * float(missed @ missed)
        slope = 2.0 * self._factor * missed
        gradient = weight_gradient(self._system, whole, found.y, found.multipliers, slope)
        return ValueGradient(error, gradient[self.examples.learnt], memory)
