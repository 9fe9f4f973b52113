"""Random numbers by their place in a stream: nobody needs those before.

SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014):
the mixed multiples of an odd number, counted from a seed.
"""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.jit import inner

_STEP = np.uint64(0x9E3779B97F4A7C15)  # from one number to the next
_ONE = np.uint64(0xBF58476D1CE4E5B9)  # what bits are mixed by
_TWO = np.uint64(0x94D049BB133111EB)  # the same, a second time
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 2.0**-53  # between two numbers


@inner
def fill(seed, first, out):
    """Set `out` to numbers of a stream from 0 on, below 1, from the place `first` on."""
    for i in range(out.size):
        z = seed + np.uint64(first + i + 1) * _STEP
        z = (z ^ (z >> _SHIFTS[0])) * _ONE
        z = (z ^ (z >> _SHIFTS[1])) * _TWO
        z = z ^ (z >> _SHIFTS[2])
        out[i] = np.int64(z >> _SHIFTS[3]) * _UNIT
