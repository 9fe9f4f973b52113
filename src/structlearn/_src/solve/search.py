"""How far to go in one direction."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from structlearn._src.common.arrays import Floats
from structlearn._src.learn.objective import Hints, Objective
from structlearn._src.learn.vectors import dot, moved
from structlearn._src.learn.world import Memory
from structlearn._src.solve.base import Report, State

# Nocedal and Wright, section 3.1: the usual constants of quasi-Newton searches.
_DECREASE = 1e-4  # share of the first-order gain that a step must keep
_CURVATURE = 0.9  # share of the first derivative that a step may leave
_ROUNDING = 1e-12  # relative differences of values below this say nothing
FALLEN = 1e-2  # of the square of the gradient: far less is left than at the steepest point
_FLAT = 1e-10  # share of the first derivative at which a line has its minimum
_EDGE = 1e-3  # share of an interval that every cut takes off at least
_DOUBLINGS = 200  # of the first length: then values are out of bounds
_CUTS = 200  # half of them halve, which is below rounding after 50
_LIMIT = 20  # trials; each at least doubles the length or cuts the bracket by a tenth


class Point(NamedTuple):
    """Weights with the objective and its gradient there, and where inference stands."""

    weights: Floats
    value: float
    gradient: Floats
    memory: Memory = None


def evaluate(objective: Objective, weights: Floats, before: Point) -> Point:
    """Return the point at some weights; inference goes on from that of the point before."""
    return Point(weights, *objective.value_gradient(weights, before.memory))


class _Mark(NamedTuple):
    """What is known at one length along the direction."""

    length: float
    value: float
    along: float  # derivative along the direction


def wolfe(objective: Objective, start: Point, direction: Floats, first: float) -> Point | None:
    r"""Return a point along `direction` that lowers the value enough and is not too near.

    .. math:: F(w + t d) \le F(w) + c_1 t \langle \nabla F(w), d \rangle, \qquad
              \langle \nabla F(w + t d), d \rangle \ge c_2 \langle \nabla F(w), d \rangle

    Lengths that break the first are too long, those that break the second too short; the next
    trial lies between, where a cubic through both ends has its minimum. Kinks do no harm. Where
    rounding hides the decrease, the derivatives alone decide. None if nothing lower was found.

    References
    ----------
    A. Lewis and M. Overton, "Nonsmooth optimization via quasi-Newton methods", 2013, section 4.
    W. Hager and H. Zhang, "A new conjugate gradient method with guaranteed descent", 2005, eq. 4.
    """
    n_jobs = objective.n_jobs
    error = objective.hints.error
    rounding = error if error > Hints().error else _ROUNDING  # of single precision
    low = origin = _Mark(0.0, start.value, dot(start.gradient, direction, n_jobs))
    high: _Mark | None = None
    best, length = None, first
    for _ in range(_LIMIT if origin.along < 0.0 else 0):
        weights = moved(start.weights, length, direction, n_jobs)
        point = evaluate(objective, weights, start)
        mark = _Mark(length, point.value, dot(point.gradient, direction, n_jobs))
        if not _lower(origin, mark, rounding):
            high = mark
        elif mark.along < _CURVATURE * origin.along:
            low, best = mark, point
        else:
            return point
        if high is not None and high.length <= low.length:
            break  # values that are only nearly those of a function left no room between
        length = _farther(origin, low) if high is None else _between(low, high)
    return best


def _lower(origin: _Mark, mark: _Mark, rounding: float) -> bool:
    if _falls(origin.value, mark.value, mark.length * origin.along):
        return True
    level = mark.value <= origin.value + rounding * abs(origin.value)
    return level and mark.along <= (2.0 * _DECREASE - 1.0) * origin.along


def _falls(before: float, after: float, gain: float) -> bool:
    """Tell whether a value has fallen by a share of what the gradient promised, and at all."""
    return after < before and after <= before + _DECREASE * gain


def _farther(origin: _Mark, low: _Mark) -> float:
    """Follow the straight line through both derivatives to 0, within reason."""
    bend = origin.along - low.along
    ratio = origin.along / bend if bend < 0.0 else math.inf
    return low.length * min(max(ratio, 2.0), 10.0)


def _between(low: _Mark, high: _Mark) -> float:
    """Minimum of the cubic through both ends, kept away from them; else the middle."""
    width = high.length - low.length
    chord = low.along + high.along - 3.0 * (high.value - low.value) / width
    root = chord * chord - low.along * high.along
    share = 0.5
    if math.isfinite(root) and root >= 0.0:
        below = high.along - low.along + 2.0 * math.sqrt(root)
        if below != 0.0:
            share = 1.0 - (high.along + math.sqrt(root) - chord) / below
    return low.length + width * min(max(share, 0.1), 0.9)


def backtrack(
    objective: Objective, start: Point, downhill: Floats, move: Callable[[float], Floats],
    first: float,
) -> Point | None:  # fmt: skip
    r"""Halve the length until the value falls by enough; None if it never does.

    .. math:: F(w') \le F(w) + c_1 \langle g, w' - w \rangle, \qquad w' = \text{move}(t)

    with `downhill` the gradient :math:`g` or what takes its place; `move` need not be straight.
    """
    for halvings in range(3 * _LIMIT):
        weights = move(first * 0.5**halvings)
        gain = float(downhill @ (weights - start.weights))
        if not gain < 0.0:
            return None
        point = evaluate(objective, weights, start)
        if _falls(start.value, point.value, gain):
            return point
    return None


class _Spot(NamedTuple):
    """A point on a line, how far along it lies, and the derivative along the line there."""

    point: Point
    length: float
    along: float

    @property
    def value(self) -> float:
        return self.point.value if math.isfinite(self.point.value) else math.inf


def exact(
    objective: Objective, start: Point, direction: Floats, first: float
) -> tuple[Point | None, float]:
    r"""Return the minimum along `direction`, and its length; None if nothing there is lower.

    .. math:: t = \operatorname{argmin}_{t > 0} F(w + t d)

    Lengths are doubled until the derivative along the line is no longer negative. What then lies
    between the last two is cut, by the line through both derivatives or in the middle, until
    nothing is left of it or of the derivative. At a kink the derivative jumps over 0, and the cuts
    close in on it. Along a line that is not convex this is one of the minima.
    """

    def spot(length: float) -> _Spot:
        point = evaluate(objective, start.weights + length * direction, start)
        return _Spot(point, length, float(point.gradient @ direction))

    origin = _Spot(start, 0.0, float(start.gradient @ direction))
    if not origin.along < 0.0:
        return None, first
    low, high = _bracket(spot, origin, first)
    best = low if high is None else _close(spot, low, high, _FLAT * abs(origin.along))
    return (best.point if best.value < origin.value else None), best.length or first


def _bracket(
    spot: Callable[[float], _Spot], low: _Spot, first: float
) -> tuple[_Spot, _Spot | None]:
    """Return the last length at which the line falls and the first at which it does not."""
    for doublings in range(_DOUBLINGS):
        high = spot(first * 2.0**doublings)
        if not high.along < 0.0 or high.value == math.inf:
            return low, high
        low = high
    return low, None


def _close(spot: Callable[[float], _Spot], low: _Spot, high: _Spot, flat: float) -> _Spot:
    """Cut what lies between until the derivative is flat or nothing is left; return the lowest."""
    best = min(low, high, key=lambda each: each.value)
    for trial in range(_CUTS):
        if high.length - low.length <= _ROUNDING * high.length:
            break
        now = spot(_cut(low, high, halve=trial % 2 == 1))
        level = now.value <= best.value + _ROUNDING * abs(best.value)
        if (level and abs(now.along) <= abs(best.along)) or now.value < best.value:
            best = now
        if abs(now.along) <= flat:
            break
        low, high = (now, high) if now.along < 0.0 else (low, now)
    return best


def _cut(low: _Spot, high: _Spot, halve: bool) -> float:
    """Return where the line through both derivatives is 0, or the middle.

    Halving every other time keeps one end from standing still.
    """
    rise = high.along - low.along
    share = 0.5 if halve or not 0.0 < rise < math.inf else -low.along / rise
    return low.length + min(max(share, _EDGE), 1.0 - _EDGE) * (high.length - low.length)


def measure(state: State, gradient: Floats, n_jobs: int | None = 1) -> tuple[float, bool]:
    r"""Return the norm of a gradient, and whether it is not yet far below the steepest one so far.

    That is judged by :math:`g^\top D^{-1} g`, with the diagonal of the curvature where that is
    known: else a column of large numbers hides all others.
    """
    inverse = state.get("inverse")

    square = dot(gradient, gradient, n_jobs)
    steepness = square if inverse is None else dot(gradient, gradient * inverse, n_jobs)
    state["steepest"] = max(state.get("steepest", 0.0), steepness)
    return math.sqrt(square), steepness > FALLEN * state["steepest"]


def final_report(start: Point, gradient: float, arrived: bool) -> Report:
    """Tell that no step lowers the value; where something was to be gained, a kink is at fault."""
    words = (
        "converged: no step lowers the objective beyond rounding"
        if arrived
        else "stuck: no step against the gradient lowers the objective, which may be non-smooth"
    )
    return Report(start.value, gradient=gradient, done=True, words=words, stuck=not arrived)


def norm(gradient: Floats) -> float:
    """Return the Euclidean norm."""
    return float(np.linalg.norm(gradient))
