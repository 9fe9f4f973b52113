"""How threads of the pool wait for a moment without the interpreter's lock."""

from __future__ import annotations

from structlearn._src.kernels.atomic import give_way, load, pause
from structlearn._src.kernels.jit import lean

_PAUSES = 20  # a microsecond in which the core is left to the other thread on it


@lean
def linger(counts, value, looks):
    """Look at a count until it has reached a value; returns how many looks are left, or 0."""
    while looks > 0 and load(counts, 0) < value:
        for _ in range(_PAUSES):
            pause()
        give_way()
        looks -= 1
    return looks
