"""Newton steps that take what ADMM found to the optimum, in the proximal method of multipliers."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from structlearn._src.common.arrays import Bools, Floats
from structlearn._src.common.watch import Pace, Watch
from structlearn._src.field.consensus import AdmmState, Consensus
from structlearn._src.kernels.field import newton

_SOFT = 1e-2  # softness of kinks in the first round, over the mean weight
_HARDER = 5.0  # by how much softness shrinks from round to round
_SOFTER = 10.0  # by how much it grows after a round that failed
_PROX = 1e-2  # weight of the distance to the last round's point, times the mean weight
_ROUNDS = 16  # softness of the last is 1e-2 / 5 ** 16: nothing is left to harden
_STEPS = 25  # Newton steps of a round; one that needs more is too hard yet
_CONJUGATE = 500  # steps of conjugate gradients for one direction, which need not be exact
_COARSEST = 1e-4  # tolerance of the gradient in the first round, over the mean weight
_FINEST = 1e-9  # the same in the last: below, rounding decides
_SUFFICIENT = 1e-4  # share of the promised decrease that a step must bring (Armijo)
_ROUNDING = 1e-13  # relative error of an energy, which may hide a decrease
_AT_BOUND = 1e-6  # distance from a bound within which inference leaves what is held there
_BENT = 1.0  # softness of kinks where gradients by the weights are taken, over the mean weight
_HELD = 1e-5  # the same of hard constraints, which must not give way
_STEADY = 1e-3  # curvature, over the mean weight, where values are not determined at all
_EXACT = 1e-6  # relative error of the linear system behind such a gradient
_SATURATED = 1e-6  # relative distance of a linear hinge's multiplier from its weight
_HALVINGS = 20  # a step of 1e-6 that brings nothing: no decrease is to be found


class NewtonSystem:
    r"""Linear systems :math:`(H + \delta I) x = -g` over free variables, by conjugate gradients.

    :math:`H` is the Hessian of the augmented energy, see `kernels.field.newton`.
    """

    def __init__(self, consensus: Consensus) -> None:
        hinges = consensus.hinges
        n = hinges.n_variables
        entries = len(hinges.variables)
        self.consensus = consensus
        self._rows = newton.ActiveRows(
            np.zeros(hinges.n_forms + 1, np.uint64),
            np.empty(entries, np.uint32),
            np.empty(entries),
            np.empty(n, np.int64),
        )
        self._diagonal = np.empty(n)
        self._scratch = np.empty((4, n))
        self.solution = np.empty(n)

    def gather(
        self, weights: Floats, softness: tuple[float, float], bases: Floats, point: Floats,
        free: Bools, prox: float,
    ) -> None:  # fmt: skip
        """Take :math:`H` at a point; softness is that of kinks, and that of hard constraints."""
        self._free = free
        self._prox = prox
        self._diagonal[:] = prox
        self._counts = newton.gather(
            self.consensus.forms, weights, *softness, bases, point, free, self._rows, self._diagonal
        )

    def solve(self, gradient: Floats, tol: float, max_iter: int) -> int:
        """Write the solution; return the number of steps."""
        steps: int = newton.direct(
            self._rows, self._counts, self._diagonal, self._prox, gradient, self._free, tol,
            max_iter, self._scratch, self.solution,
        )  # fmt: skip
        return steps


def weight_gradient(
    system: NewtonSystem, weights: Floats, y: Floats, multipliers: Floats, slope: Floats
) -> Floats:
    r"""Gradient by the weights of a function of the best values, which has this slope at them.

    What the best values do when weights change follows from their optimality, whatever it is they
    are wanted for; the adjoint needs one linear system for all weights:

    .. math:: \frac{d f(y^*(w))}{d w_g} = \sum_{i \in g} \frac{\partial \lambda_i}{\partial w_g} \,
              a_i^\top x, \qquad H x = -\nabla f(y^*) .

    A linear hinge at its kink holds the values as a constraint does, but gives way a little: best
    values of linear hinges change in jumps, and would have no slope.

    References
    ----------
    B. Amos and J. Kolter, "OptNet: differentiable optimization as a layer in neural networks",
    2017.
    """
    consensus = system.consensus
    hinges = consensus.hinges
    scale = consensus.scale(weights)
    pull = np.bincount(
        hinges.variables,
        np.repeat(multipliers, np.diff(hinges.offsets)) * hinges.coefficients,
        hinges.n_variables,
    )
    low = y <= consensus.bounds.lower + _AT_BOUND
    high = y >= consensus.bounds.upper - _AT_BOUND
    free = ~((low & (pull >= 0)) | (high & (pull <= 0)))
    softness = (_BENT / scale, _HELD / scale)
    system.gather(weights, softness, multipliers, y, free, _STEADY * scale)
    system.solve(slope, _EXACT, _CONJUGATE)
    moved = np.where(free, system.solution, 0.0)
    along = hinges.add_up(hinges.coefficients * moved[hinges.variables])
    values = np.maximum(hinges.values(y), 0.0)
    saturated = multipliers >= (1.0 - _SATURATED) * weights[hinges.groups]
    by_weight = np.where(hinges.powers == 2, 2.0 * values, saturated)
    by_weight[hinges.hard] = 0.0
    return np.bincount(hinges.groups, along * by_weight, hinges.n_groups).astype(np.float64)


class Polish:
    r"""Semismooth Newton steps on the augmented energy of a field, round by round.

    A round minimises the energy over the box, where hard constraints and kinks are replaced by
    quadratics around the multipliers (see `kernels.field.newton`), then takes its slopes as
    new multipliers. Steps solve for the free variables over active forms only, by conjugate
    gradients; hard constraints that share no variable are eliminated by the preconditioner.

    References
    ----------
    R. Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in
    convex programming", 1976.
    D. Bertsekas, "Projected Newton methods for optimization problems with simple constraints",
    1982.
    """

    #: In one call of `rounds`.
    most_steps = _ROUNDS * (_STEPS + 1)

    def __init__(
        self,
        consensus: Consensus,
        weights: Floats,
        state: AdmmState,
        watch: Watch | None = None,
    ) -> None:
        self.consensus = consensus
        self.weights = weights
        self.state = state
        self.scale = consensus.scale(weights)
        self.steps = 0
        self._system = NewtonSystem(consensus)
        self._pace = Pace(watch or Watch())
        self._slopes = np.empty(consensus.hinges.n_forms)
        self._gradient = np.empty(consensus.hinges.n_variables)

    def rounds(self, patience: int) -> Iterator[bool]:
        """Yield after every step; True at the end of a round, when the consensus is placed.

        `patience` is how many rounds may fail.
        """
        self._softness = _SOFT / self.scale
        self._prox = _PROX * self.scale
        self._bases = self.state.multipliers.copy()
        self._point = self.state.consensus.copy()
        tol = _COARSEST
        for _ in range(_ROUNDS):
            done = yield from self._round(tol)
            patience -= not done
            if patience == 0:
                return
            if done:
                self._bases[:] = self._slopes
                self.consensus.place(self.weights, self.state, self._point, self._bases)
                tol = max(tol / 100, _FINEST)
                yield True
            self._softness *= _SOFTER if not done else 1 / _HARDER
            self._prox *= _SOFTER if not done else 1 / _HARDER

    def _round(self, tol: float) -> Generator[bool, None, bool]:
        """Minimise the augmented energy; return whether that came to an end."""
        self._anchor = self._point.copy()
        value = self._evaluate(self._point)
        for _ in range(_STEPS):
            free, wrong = self._slack(self._point)
            if wrong <= tol:
                return True
            self._aim(self._point, free, wrong)
            there, value = self._search(self._point, value)
            if there is self._point:
                return False
            self._point = there
            self.steps += 1
            yield False
        return False

    def _evaluate(self, point: Floats) -> float:
        """Return the augmented energy, and keep its slopes and its gradient."""
        value: float = newton.evaluate(
            self.consensus.forms, self.weights, self._softness, self._bases, point, self._slopes,
            self._gradient,
        )  # fmt: skip
        away = point - self._anchor
        self._gradient += self._prox * away
        return value + 0.5 * self._prox * _dot(away, away)

    def _slack(self, point: Floats) -> tuple[Bools, float]:
        """Which variables no bound holds back, and how far the point is from stationary."""
        bounds = self.consensus.bounds
        gradient = self._gradient
        moved = np.clip(point - gradient / self.scale, bounds.lower, bounds.upper)
        wrong = float(np.abs(moved - point).max(initial=0.0))
        low, high = point <= bounds.lower, point >= bounds.upper
        return ~((low & (gradient >= 0)) | (high & (gradient <= 0))), wrong

    def _aim(self, point: Floats, free: Bools, wrong: float) -> None:
        soft = self._softness
        self._system.gather(self.weights, (soft, soft), self._bases, point, free, self._prox)
        tol = min(0.1, max(wrong**0.5, 1e-4))
        self._pace.some(lambda most: self._system.solve(self._gradient, tol, most), _CONJUGATE)
        self._direction = self._system.solution

    def _search(self, point: Floats, value: float) -> tuple[Floats, float]:
        """Go along the direction, bent at the bounds, as far as it brings enough."""
        bounds = self.consensus.bounds
        gradient = self._gradient.copy()
        length = 1.0 / max(float(np.abs(self._direction).max()), 1.0)  # across the box at most
        for _ in range(_HALVINGS):
            there = np.clip(point + length * self._direction, bounds.lower, bounds.upper)
            new = self._evaluate(there)
            promised = _dot(gradient, there - point)
            if new <= value + _SUFFICIENT * promised + _ROUNDING * abs(value):
                return there, new
            length /= 2
        return point, self._evaluate(point)


def _dot(left: Floats, right: Floats) -> float:
    """Inner product without BLAS, whose threads would cost more than they bring."""
    return float((left * right).sum())
