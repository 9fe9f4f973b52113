"""Newton steps that take what ADMM found to the optimum, in the proximal method of multipliers."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from structlearn._src.common.arrays import Bools, Floats
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
_SHORTEST = 1e-6  # share of a step below which no decrease is to be found


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

    def __init__(self, consensus: Consensus, weights: Floats, state: AdmmState) -> None:
        self.consensus = consensus
        self.weights = weights
        self.state = state
        self.scale = consensus.scale(weights)
        self.steps = 0
        hinges = consensus.hinges
        n = hinges.n_variables
        entries = len(hinges.variables)
        self._rows = newton.ActiveRows(
            np.zeros(hinges.n_forms + 1, np.uint64),
            np.empty(entries, np.uint32),
            np.empty(entries),
            np.empty(n, np.int64),
        )
        self._slopes = np.empty(hinges.n_forms)
        self._gradient = np.empty(n)
        self._direction = np.empty(n)
        self._scratch = np.empty((4, n))

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
        diagonal = np.full(len(point), self._prox)
        counts = newton.gather(
            self.consensus.forms, self.weights, self._softness, self._bases, point, free,
            self._rows, diagonal,
        )  # fmt: skip
        tol = min(0.1, max(wrong**0.5, 1e-4))
        newton.direct(
            self._rows, counts, diagonal, self._prox, self._gradient, free, tol, _CONJUGATE,
            self._scratch, self._direction,
        )  # fmt: skip

    def _search(self, point: Floats, value: float) -> tuple[Floats, float]:
        """Go along the direction, bent at the bounds, as far as it brings enough."""
        bounds = self.consensus.bounds
        gradient = self._gradient.copy()
        length = 1.0 / max(float(np.abs(self._direction).max()), 1.0)  # across the box at most
        while True:
            there = np.clip(point + length * self._direction, bounds.lower, bounds.upper)
            new = self._evaluate(there)
            promised = _dot(gradient, there - point)
            if new <= value + _SUFFICIENT * promised + _ROUNDING * abs(value):
                return there, new
            length /= 2
            if length < _SHORTEST:
                return point, self._evaluate(point)


def _dot(left: Floats, right: Floats) -> float:
    """Inner product without BLAS, whose threads would cost more than they bring."""
    return float((left * right).sum())
