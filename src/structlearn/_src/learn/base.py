"""What solvers ask of an objective, and what a penalty must know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import NamedTuple, Protocol, Self

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.learn.world import Budget, Memory


class Penalty(Protocol):
    """What large weights cost: a smooth part, and a part that only `prox` can handle."""

    @property
    def smooth(self) -> bool:
        """Whether `gradient` tells everything, so that no `prox` is needed."""
        ...

    def value(self, weights: Floats) -> float:
        """Return the whole penalty."""
        ...

    def gradient(self, weights: Floats) -> Floats:
        """Return the gradient of the smooth part."""
        ...

    def prox(self, weights: Floats, step: float | Floats) -> Floats:
        r"""Return :math:`\arg\min_v \frac{1}{2 s} \|v - w\|^2` plus the other part at ``v``."""
        ...


class Ability(Enum):
    """What an objective can do beyond values and gradients; solvers say which they need."""

    BATCHES = "examples that can be taken a few at a time"
    LINEARISE = "a concave part to linearise"
    SOFTEN = "temperatures that can be raised"
    RESUME = "worlds that go on from where inference stood"


class Hints(NamedTuple):
    """What an objective suggests to solvers and drivers that were given no numbers."""

    sweeps: int = 5  #: of inference between two steps of paired learning
    inner_tol: float = 1e-4  #: of the minimisations of CCCP; 0 takes all their steps
    step: float | None = None  #: size of a weight; None lets solvers try first steps
    C: float = 1.0  #: by which gradients grow

    def first_step(self, rule: str) -> float | None:
        """Length of the first step; AdaGrad's does not depend on the size of the gradient."""
        if self.step is None:
            return None
        return self.step if rule == "adagrad" else self.step / self.C


class ValueGradient(NamedTuple):
    """What one evaluation of an objective brings."""

    value: float
    gradient: Floats
    memory: Memory  #: where inference stands; the next evaluation may go on from it


class Objective(ABC):
    r"""Penalty plus C times the summed losses of the examples: a pure function of the weights.

    .. math:: F(w) = \Omega(w) + C \sum_i c_i \ell_i(w)

    Where inference takes many steps, an evaluation may begin with the `memory` of an earlier one,
    whose arrays it brings up to date in place; without one it begins anew.
    """

    penalty: Penalty

    @property
    @abstractmethod
    def n_weights(self) -> int:
        """Number of weights."""

    @property
    def n_examples(self) -> int:
        """Number of examples."""
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
    def scales(self) -> float | Floats:
        """What steps are to be multiplied by, one number or one for each weight."""
        return 1.0

    @property
    def hints(self) -> Hints:
        """What it suggests to solvers and drivers."""
        return Hints()

    def diagonal(self, weights: Floats) -> Floats | None:
        """Positive estimate of the curvature of every weight; None where there is none."""
        return None

    # ---- values --------------------------------------------------------------------------

    def begin(self) -> Memory:
        """Return the memory before any inference."""
        return None

    @abstractmethod
    def loss_gradient(self, weights: Floats, memory: Memory = None) -> ValueGradient:
        """C times the weighted losses of all examples, and the gradient."""

    def value_gradient(self, weights: Floats, memory: Memory = None) -> ValueGradient:
        """Return the objective and the gradient of all but the non-smooth part of the penalty."""
        loss, gradient, memory = self.loss_gradient(weights, memory)
        value = loss + self.penalty.value(weights)
        return ValueGradient(value, gradient + self.penalty.gradient(weights), memory)

    def value(self, weights: Floats, memory: Memory = None) -> float:
        """Return the objective, penalty included."""
        return self.loss_gradient(weights, memory).value + self.penalty.value(weights)

    # ---- what abilities stand for ----------------------------------------------------------

    def take(self, which: Ints) -> Objective:
        """Return the objective of some of the examples (`BATCHES`)."""
        raise NotImplementedError

    def batch_gradient(self, weights: Floats, which: Ints) -> ValueGradient:
        """C times the weighted losses of some of the examples, and the gradient (`BATCHES`)."""
        return self.take(which).loss_gradient(weights)

    def linearise(self, weights: Floats, memory: Memory = None) -> Objective:
        """Return the convex upper bound that touches the objective at `weights` (`LINEARISE`)."""
        raise NotImplementedError

    def softened(self, eps: float) -> Objective:
        """Return the objective with no temperature below `eps` (`SOFTEN`)."""
        raise NotImplementedError

    def with_budget(self, budget: Budget) -> Self:
        """Return the same objective with so much inference per evaluation (`RESUME`)."""
        raise NotImplementedError

    def warmed(self, memory: Memory) -> Self:
        """Return the same objective, whose `begin` is a copy of this memory (`RESUME`)."""
        raise NotImplementedError
