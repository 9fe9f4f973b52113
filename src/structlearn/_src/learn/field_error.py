"""The error of a field's best values, as a function of its weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from structlearn._src.common.arrays import Floats
from structlearn._src.common.watch import Watch
from structlearn._src.field.admm import solve_map
from structlearn._src.field.consensus import Consensus
from structlearn._src.field.examples import HingeExamples
from structlearn._src.field.newton import NewtonSystem, weight_gradient
from structlearn._src.learn.loss import NonNegative
from structlearn._src.learn.objective import Hints, Objective, ValueGradient
from structlearn._src.learn.world import InferenceSettings, Memory, check_fits

_TOL = 1e-5  # of the gap: ten times finer changes weights by a percent at most
_STEPS = 2000  # of ADMM in one evaluation
_INSTANT = 1e-9  # seconds, in place of none
_LEAST = 0.01  # in place of the variance of labels that are all the same


@dataclass(frozen=True, eq=False)
class Anchored(NonNegative):
    """Half the squared distance from the weights to begin with; no weight falls below 0."""

    anchor: Floats = field(default_factory=lambda: np.zeros(0))

    def value(self, weights: Floats) -> float:
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
class FieldError(Objective):
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

    @property
    def n_weights(self) -> int:
        """Number of weights that are learnt."""
        return len(self.examples.learnt)

    @property
    def start(self) -> Floats:
        """Weights to begin with."""
        return self.examples.weights[self.examples.learnt]

    @cached_property
    def penalty(self) -> Anchored:  # type: ignore[override]
        """What weights cost that leave their start."""
        return Anchored(anchor=self.start, strength=1.0 / self.scale)

    @property
    def scale(self) -> float:
        """Mean weight of the start."""
        return float(self.start.mean()) or 1.0

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
        h = self.examples.hinges
        return Found(np.full(h.n_variables, 0.5), np.zeros(h.n_forms), np.array(0))

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
            tol=_TOL if self.settings.tol is None else self.settings.tol,
            max_iter=self.settings.sweeps or _STEPS,
            time_limit=max(self.watch.left, _INSTANT) if self.watch.left < math.inf else None,
            n_jobs=self.settings.n_jobs,
        )  # fmt: skip
        memory.y[:] = found.y
        memory.multipliers[:] = found.multipliers
        memory.iterations[()] += found.iterations
        missed = np.nan_to_num(found.y - self.examples.labels)
        error = math.inf if found.ended.early else self._factor * float(missed @ missed)
        slope = 2.0 * self._factor * missed
        gradient = weight_gradient(self._system, whole, found.y, found.multipliers, slope)
        return ValueGradient(error, gradient[self.examples.learnt], memory)
