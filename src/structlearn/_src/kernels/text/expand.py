"""Expand templates: cells of nearby tokens to whole-number keys, keys to attribute numbers.

A table of keys is open addressing over `keys`: `slots` has a power of two places and holds 1 +
the number of a key, or 0. A negative key stands for none.
"""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.jit import inner, lean, or_python

_LOW = 2**31 - 1  # keys have up to 62 bits, hashed in two halves
_FACTORS = (1540483477, 2135587861)  # odd, below 2**31, so that no product wraps around


@inner
def _seek(slots, keys, key):
    """Slot of a key, or the empty one where it should go."""
    mask = slots.size - 1
    hashed = (key & _LOW) * _FACTORS[0] + (key >> 31) * _FACTORS[1]  # below 2**63
    slot = (hashed ^ (hashed >> 23)) & mask
    while slots[slot] and keys[slots[slot] - 1] != key:
        slot = (slot + 1) & mask
    return slot


@or_python
@lean
def push(cells, offsets, shift, size, radix, keys):
    """Add a digit to the key of every token: the cell `shift` tokens further on.

    Outside the sentence the digit is ``size + d - 1`` for ``d`` tokens before its begin, and
    ``radix - d`` for ``d`` tokens past its end. A key stays or becomes -1 where the cell is.
    """
    for s in range(offsets.size - 1):
        begin = offsets[s]
        end = offsets[s + 1]
        for t in range(begin, end):
            at = t + shift
            if at < begin:
                digit = size + begin - at - 1
            elif at >= end:
                digit = radix - (at - end) - 1
            else:
                digit = np.int64(cells[at])
            if keys[t] >= 0:
                keys[t] = keys[t] * radix + digit if digit >= 0 else -1


@or_python
@lean
def number(new, start, slots, keys, count, out):
    """Number keys from `start` on in order of appearance, adding those not yet in the table.

    Returns how far it came before the table was full, and how many keys it holds.
    """
    t = start
    while t < new.size and count < keys.size:
        out[t] = -1
        if new[t] >= 0:
            slot = _seek(slots, keys, new[t])
            if slots[slot] == 0:
                keys[count] = new[t]
                count += 1
                slots[slot] = count
            out[t] = slots[slot] - 1
        t += 1
    return t, count


@or_python
@lean
def find(new, slots, keys, out):
    """Number of every key in the table, or -1."""
    for t in range(new.size):
        out[t] = -1
        if new[t] >= 0:
            out[t] = slots[_seek(slots, keys, new[t])] - 1


@or_python
@lean
def collect(codes, starts, offsets, columns):
    """Entries of sparse rows from (template rows, tokens) codes, -1 for none; returns how many.

    Template row ``r`` counts its columns from ``starts[r]``.
    """
    entry = 0
    for t in range(codes.shape[1]):
        for r in range(codes.shape[0]):
            if codes[r, t] >= 0:
                columns[entry] = starts[r] + codes[r, t]
                entry += 1
        offsets[t + 1] = entry
    return entry
