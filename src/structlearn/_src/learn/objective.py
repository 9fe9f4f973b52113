"""What solvers ask of an objective, and the one objective: free less clamped worlds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy, deepcopy
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.document import completed
from structlearn._src.common.watch import heed_time
from structlearn._src.learn.loss import ElasticNet
from structlearn._src.learn.objective_doc import ABILITY, OBJECTIVE
from structlearn._src.learn.world import CONVERGED, Budget, Memory, World, check_fits

#: Which of the two worlds are solved.
BOTH = (True, True)
FREE_ONLY = (True, False)
CLAMPED_ONLY = (False, True)


@completed(ABILITY)
class Ability(Enum):
    """What an objective can do beyond values and gradients; solvers say which they need."""

    BATCHES = "examples that can be taken a few at a time"
    LINEARISE = "a concave part to linearise"
    SOFTEN = "temperatures that can be raised"
    RESUME = "worlds that warm-start inference"


class Hints(NamedTuple):
    """What an objective suggests to solvers and drivers that were given no numbers."""

    sweeps: int = 5  #: of inference between two steps of paired learning
    inner_tol: float = 1e-4  #: of the minimisations of CCCP; 0 takes all their steps
    step: float | None = None  #: size of a weight; None lets solvers try first steps
    C: float = 1.0  #: by which gradients grow
    error: float = 1e-9  #: share of a value below which gains cannot be told from rounding

    def first_step(self, rule: str) -> float | None:
        """Length of the first step; AdaGrad's does not depend on the size of the gradient."""
        if self.step is None:
            return None
        return self.step if rule == "adagrad" else self.step / self.C


class ValueGradient(NamedTuple):
    """Value and gradient of one evaluation of an objective.

    Parameters
    ----------
    value
        The value.
    gradient
        (weights,) The gradient.
    memory
        State of inference, from which the next evaluation may start; None if it is exact.

    Examples
    --------
    >>> import numpy as np
    >>> from structlearn.losses import ValueGradient
    >>> ValueGradient(2.0, np.zeros(3), None).gradient.shape
    (3,)
    """

    value: float
    gradient: Floats
    memory: Memory  #: where inference stands; the next evaluation may go on from it


@completed(OBJECTIVE)
class Objective(ABC):
    r"""Penalty plus C times the summed losses of the examples: a pure function of the weights.

    .. math:: F(w) = \Omega(w) + C \sum_i c_i \ell_i(w)

    Where inference takes many steps, an evaluation may begin with the `memory` of an earlier one,
    whose arrays it updates in place; without one it begins anew.
    """

    penalty: ElasticNet

    @property
    @abstractmethod
    def n_weights(self) -> int:
        """Number of weights."""

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return 1

    @property
    def n_jobs(self) -> int | None:
        """Number of threads that solvers may use beside it; None for all cores."""
        return 1

    @property
    def data(self) -> object:
        """What tells these examples from others, in checkpoints: records of arrays."""
        return None

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it can do beyond values and gradients."""
        return frozenset()

    @property
    def convex(self) -> bool:
        """Whether every minimum is a global one."""
        return False

    @property
    def smooth(self) -> bool:
        """Whether the losses have a gradient everywhere."""
        return False

    @property
    def approximate(self) -> bool:
        """Whether values are only those that messages have got to."""
        return False

    @property
    def zero_is_optimal(self) -> bool:
        """Whether weights of 0 have no loss: then minimising means nothing, and steps all."""
        return False

    @property
    def scales(self) -> float | Floats:
        """What steps are to be multiplied by, one number or one for each weight."""
        return 1.0

    @property
    def hints(self) -> Hints:
        """What it suggests to solvers and drivers."""
        return Hints()

    def diagonal(self, weights: Floats) -> Floats | None:
        """Return a positive estimate of the curvature of every weight, or None."""
        return None

    # ---- values --------------------------------------------------------------------------

    def begin(self) -> Memory:
        """Return the memory before any inference."""
        return None

    @abstractmethod
    def loss_gradient(self, weights: Floats, memory: Memory = None) -> ValueGradient:
        """Return C times the weighted losses of all examples, and their gradient."""

    def value_gradient(self, weights: Floats, memory: Memory = None) -> ValueGradient:
        """Return the objective, and the gradient of all but the non-smooth part of the penalty."""
        loss, gradient, memory = self.loss_gradient(weights, memory)
        value = loss + self.penalty.value(weights)
        return ValueGradient(value, gradient + self.penalty.gradient(weights), memory)

    def loss_value(self, weights: Floats, memory: Memory = None) -> float:
        """Return C times the weighted losses of all examples, where no gradient is needed."""
        return self.loss_gradient(weights, memory).value

    def value(self, weights: Floats, memory: Memory = None) -> float:
        """Return the objective, including the penalty."""
        return self.loss_value(weights, memory) + self.penalty.value(weights)

    # ---- what abilities stand for ----------------------------------------------------------

    def take(self, which: Ints) -> Objective:
        """Return the objective of some of the examples (ability `BATCHES`)."""
        raise NotImplementedError

    def batch_gradient(self, weights: Floats, which: Ints) -> ValueGradient:
        """Return C times the losses of some examples, and their gradient (ability `BATCHES`)."""
        return self.take(which).loss_gradient(weights)

    def linearise(self, weights: Floats, memory: Memory = None) -> Objective:
        """Return the convex bound that touches the objective at `weights` (ability `LINEARISE`)."""
        raise NotImplementedError

    def softened(self, eps: float) -> Objective:
        """Return the objective with no temperature below `eps` (ability `SOFTEN`)."""
        raise NotImplementedError

    def with_budget(self, budget: Budget) -> Self:
        """Return the same objective with limited inference per evaluation (ability `RESUME`)."""
        raise NotImplementedError

    def warmed(self, memory: Memory) -> Self:
        """Return the same objective, whose `begin` is a copy of this memory (ability `RESUME`)."""
        raise NotImplementedError


class Pair(NamedTuple):
    """The two worlds of one part of a loss, and the part's share."""

    share: float
    free: World[Any]
    clamped: World[Any]


class Tangent(NamedTuple):
    """A linear function of the weights that takes the place of the clamped worlds."""

    gradient: Floats
    constant: float

    def value(self, weights: Floats) -> float:
        """Return the function at some weights."""
        return self.constant + float(self.gradient @ weights)

    def part(self, share: float) -> Tangent:
        """Return the part that goes with a share of the examples."""
        return Tangent(share * self.gradient, share * self.constant)


class _Fields:
    """What the subclasses of `TwoWorlds` have as fields, each in its own order."""

    examples: Any
    C: float


@dataclass(frozen=True, eq=False)
class TwoWorlds(_Fields, Objective):
    r"""Penalty plus C times how much higher the free worlds lie than the clamped ones.

    .. math:: F(w) = \Omega(w) + C \sum_i c_i \sum_p s_p
              \bigl(\Phi_{ip}^\text{free}(\theta(w)) - \Phi_{ip}^\text{clamped}(\theta(w))\bigr)

    with weights :math:`c_i` of the examples and shares :math:`s_p` of the parts of the loss. The
    parameters :math:`\theta` of the inference problems are a linear function of the weights
    (`push`), so that the gradient is its adjoint (`pull`) of the gradients by the parameters.

    Drivers are two fields. With a `budget`, evaluations spend only so much inference from where
    the memory stands: paired learning. With a `tangent`, the clamped worlds are replaced by their
    linear bound, as CCCP wants:

    .. math:: \Omega(w) + C \sum_i c_i \sum_p s_p \Phi_{ip}^\text{free} - \langle u, w \rangle - b

    which is convex, nowhere below the objective, and equal to it where the tangent touches.

    Subclasses say what the worlds are, and how weights become parameters.
    """

    budget: Budget = field(default=CONVERGED, kw_only=True)
    tangent: Tangent | None = field(default=None, kw_only=True)
    warm: Memory = field(default=None, kw_only=True)

    @property
    def data(self) -> object:
        """What tells these examples from others, in checkpoints."""
        return self.examples

    # ---- what subclasses say ---------------------------------------------------------------

    @property
    @abstractmethod
    def example_weights(self) -> Floats:
        """(examples,) How much each counts."""

    @cached_property
    @abstractmethod
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs of worlds of all parts of the loss, made when they are first needed."""

    @abstractmethod
    def push(self, weights: Floats) -> Any:
        """Return the parameters of the worlds."""

    @abstractmethod
    def pull(self, gradient: Any) -> Floats:
        """Return the gradient by the weights, the adjoint of `push`."""

    @abstractmethod
    def shards(self, n: int) -> list[Self]:
        """Cut the examples into at most `n` objectives whose losses and gradients add up."""

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.example_weights)

    @property
    def convex(self) -> bool:
        """Whether every minimum is global: nothing is hidden, or a tangent stands for it."""
        return self.tangent is not None or not np.any(self.examples.hidden)

    # ---- values ----------------------------------------------------------------------------

    @property
    def approximate(self) -> bool:
        """Whether values are only those that messages have got to."""
        return any(pair.free.approximate or pair.clamped.approximate for pair in self.pairs)

    def begin(self) -> Memory:
        """Return the memories of all worlds: fresh, or a copy of what `warmed` was given."""
        if self.warm is not None:
            return deepcopy(self.warm)
        return tuple((pair.free.begin(), pair.clamped.begin()) for pair in self.pairs)

    def losses(self, weights: Floats, memory: Memory = None) -> Floats:
        """Loss of every example, without its weight and without C."""
        return self.compare(weights, memory)[0]

    def loss_gradient(self, weights: Floats, memory: Memory = None) -> ValueGradient:
        """C times the weighted losses of all examples, and the gradient."""
        losses, difference, memory = self.compare(weights, memory, self._sides)
        gradient = self.pull(difference)
        if self.tangent is not None:
            gradient -= self.tangent.gradient
        return ValueGradient(self._loss(losses, weights), gradient, memory)

    def loss_value(self, weights: Floats, memory: Memory = None) -> float:
        """C times the weighted losses of all examples; no gradient is pulled back."""
        return self._loss(self.compare(weights, memory, self._sides)[0], weights)

    def _loss(self, losses: Floats, weights: Floats) -> float:
        """Return C times the weighted losses, less the tangent."""
        bound = 0.0 if self.tangent is None else self.tangent.value(weights)
        return self._weighed(losses) - bound

    @property
    def _sides(self) -> tuple[bool, bool]:
        return BOTH if self.tangent is None else FREE_ONLY

    def _weighed(self, losses: Floats) -> float:
        return self.C * float(losses @ self.example_weights)

    def compare(
        self,
        weights: Any,
        memory: Memory = None,
        sides: tuple[bool, bool] = BOTH,
        counts: Floats | None = None,
    ) -> tuple[Floats, Any, Memory]:
        """Free less clamped values of every example, with the gradient by the parameters.

        In the gradient every example counts by `counts`, by default C times its weight.
        """
        memory = self.begin() if memory is None else memory
        check_fits(isinstance(memory, tuple) and len(memory) == len(self.pairs))
        parameters = self.push(weights)
        each_counts = self.C * self.example_weights if counts is None else counts
        losses = np.zeros(self.n_examples)
        gradient: Any = None
        for pair, memories in zip(self.pairs, memory, strict=True):
            each = zip((pair.free, pair.clamped), (1.0, -1.0), memories, sides, strict=True)
            for world, sign, mine, wanted in each:
                if wanted:
                    heed_time()
                    factors = (sign * pair.share) * each_counts
                    values, gradient, _ = world.solve(
                        parameters, factors, mine, self.budget, gradient
                    )
                    losses += (sign * pair.share) * values
        return losses, gradient, memory

    # ---- what drivers ask for --------------------------------------------------------------

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it can do beyond values and gradients."""
        return frozenset({Ability.BATCHES, Ability.LINEARISE, Ability.RESUME})

    def linearise(self, weights: Floats, memory: Memory = None) -> Self:
        """Return the convex upper bound that touches the objective at `weights`."""
        losses, difference, memory = self.compare(weights, memory, CLAMPED_ONLY)
        gradient = -self.pull(difference)
        tangent = Tangent(gradient, -self._weighed(losses) - float(gradient @ weights))
        return self.bounded(tangent).warmed(memory)

    def bounded(self, tangent: Tangent) -> Self:
        """Return the same objective with a linear function in place of the clamped worlds."""
        return self._with(tangent=tangent)

    def with_budget(self, budget: Budget) -> Self:
        """Return the same objective with so much inference per evaluation."""
        return self._with(budget=budget)

    def warmed(self, memory: Memory) -> Self:
        """Return the same objective, whose `begin` is a copy of this memory."""
        return self._with(warm=memory)

    def _with(self, **changes: Any) -> Self:
        """Return a copy that shares the worlds, which cost much to make."""
        _ = self.pairs
        other = copy(self)
        for made in ("_singles", "_evaluation"):  # for the fields as they were
            vars(other).pop(made, None)
        vars(other).update(changes)
        return other
