"""What the last steps tell about the curvature: the memory of quasi-Newton methods."""

from __future__ import annotations

import numpy as np

from structlearn._src.common.arrays import Floats
from structlearn._src.solve.base import State

_FLAT = 1e-12  # curvature along a step, relative to the steepest possible, that counts as none


def empty(memory: int, n_weights: int) -> State:
    r"""Return a memory of `memory` pairs: steps :math:`s`, changes of gradient :math:`y`.

    The dot products :math:`\langle s_i, y_j \rangle` of steps with no older changes are kept, so
    that a direction needs only four products of a matrix with a vector.
    """
    return {
        "steps": np.zeros((memory, n_weights)),
        "changes": np.zeros((memory, n_weights)),
        "dots": np.zeros((memory, memory)),
        "pairs": 0,
    }


def push(state: State, step: Floats, change: Floats) -> None:
    """Put a pair in the place of the oldest one, unless it shows no positive curvature."""
    bend = float(step @ change)
    if not bend > _FLAT * float(np.linalg.norm(step)) * float(np.linalg.norm(change)):
        return
    k = state["pairs"] % len(state["steps"])
    state["steps"][k], state["changes"][k] = step, change
    state["pairs"] += 1
    n = _used(state)
    state["dots"][:n, k] = state["steps"][:n] @ change


def direction(state: State, gradient: Floats, inverse: Floats | None) -> Floats:
    r"""Return :math:`-H g`, where :math:`H` is the inverse Hessian that fits the pairs.

    Parameters
    ----------
    gradient
        The vector :math:`g`.
    inverse
        Diagonal of the inverse Hessian to start from, up to a factor; None for the identity.

    References
    ----------
    J. Nocedal and S. Wright, "Numerical Optimization", 2006, algorithm 7.4.
    """
    n = _used(state)
    steps, changes, dots = state["steps"][:n], state["changes"][:n], state["dots"][:n, :n]
    oldest_first = [(state["pairs"] - n + i) % n for i in range(n)]
    back, forth = np.zeros(n), np.zeros(n)
    along = steps @ gradient
    for i in reversed(oldest_first):  # those still 0 in `back` are older, in `forth` newer
        back[i] = (along[i] - dots[i] @ back) / dots[i, i]
    turned = _scaled(state, gradient - back @ changes, inverse)
    along = changes @ turned
    for i in oldest_first:
        forth[i] = back[i] - (along[i] + forth @ dots[:, i]) / dots[i, i]
    turned += forth @ steps
    return np.negative(turned, out=turned)


def _scaled(state: State, vector: Floats, inverse: Floats | None) -> Floats:
    """Apply the first inverse Hessian to `vector` in place, at the scale of the newest pair."""
    if inverse is not None:
        vector *= inverse
    if state["pairs"]:
        k = (state["pairs"] - 1) % len(state["steps"])
        change = state["changes"][k]
        size = change @ (change if inverse is None else inverse * change)
        vector *= state["dots"][k, k] / size
    return vector


def _used(state: State) -> int:
    return min(state["pairs"], len(state["steps"]))
