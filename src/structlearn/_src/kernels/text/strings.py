"""Number byte strings and read the cells of column files.

A table of strings is open addressing over integers: `slots` has a power of two places and holds
1 + the number of a string, or 0. Row ``g`` of `keys` has the hash of string ``g``, where it begins
in `base`, and its length. Hashes are kept below 2**40, so that no product wraps around.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.jit import inner, lean, or_python

#: Why `scan` came back.
DONE, FULL, WIDTH = range(3)
#: Places in the state of `scan`; the last holds the number of columns of a line that has too few.
POSITION, LINE, TOKENS, SENTENCES, STRINGS, FOUND, STATE = range(7)
#: Columns of the keys of a table.
HASH, START, LENGTH, KEY = range(4)

_SEED = 8191  # any number but 0, which would hide leading zero bytes
_FACTOR = 8388593  # a prime below 2**23: times 40 bits it stays below 2**63
_MASK = 2**40 - 1  # the 40 bits of a hash
_NEWLINE = 10  # the byte that ends a line
_SKIPPED = np.frombuffer(b"-DOCSTART-", np.uint8)


class StringTable(NamedTuple):
    """Distinct strings and where to find them; the strings' own bytes are in `base`."""

    base: np.ndarray
    slots: np.ndarray  # int32
    keys: np.ndarray  # (strings, 3) int64: what a search reads lies together


@inner
def _blank(byte):
    # Most bytes are above 32; CRLF files end their lines with 13 and 10.
    return byte <= 32 and (byte == 32 or byte == 9 or byte == 13)


@inner
def _ends(byte):
    return byte <= 32 and (byte == _NEWLINE or _blank(byte))


@inner
def _stirred(hashed, byte):
    return ((hashed ^ np.int64(byte)) * _FACTOR) & _MASK


@inner
def _home(hashed):
    return hashed ^ (hashed >> 19)  # the low bits of a product depend on low bits only


@inner
def _same(table, g, data, begin, end, hashed):
    """Whether string ``g`` is ``data[begin:end]``."""
    key = table.keys[np.uint64(g)]
    if key[HASH] != hashed or key[LENGTH] != end - begin:
        return False
    for k in range(end - begin):
        # Unsigned places need no check whether they count from the end, which in such short
        # loops takes as long as all the rest.
        if data[np.uint64(begin + k)] != table.base[np.uint64(key[START] + k)]:
            return False
    return True


@inner
def _seek(table, data, begin, end, hashed):
    """Slot of the string ``data[begin:end]``, or the empty one where it should go."""
    mask = table.slots.size - 1
    slot = _home(hashed) & mask
    while table.slots[np.uint64(slot)]:
        if _same(table, table.slots[np.uint64(slot)] - 1, data, begin, end, hashed):
            break
        slot = (slot + 1) & mask
    return slot


@inner
def _put(table, slot, g, begin, end, hashed):
    table.slots[slot] = g + 1
    table.keys[g, HASH] = hashed
    table.keys[g, START] = begin
    table.keys[g, LENGTH] = end - begin


@inner
def _hashed(text, begin, end):
    """Two sums that do not wait for each other, of every other byte; places as in `_same`."""
    even = odd = np.int64(_SEED)
    for k in range(begin + 1, end, 2):
        even = _stirred(even, text[np.uint64(k - 1)])
        odd = _stirred(odd, text[np.uint64(k)])
    if (end - begin) & 1:
        even = _stirred(even, text[np.uint64(end - 1)])
    return even ^ ((odd << 3) & _MASK)


@or_python
@lean
def borders(text, offsets):
    """Where every line of `text` ends, from ``offsets[1]`` on; the last place is overwritten."""
    line = 1
    for k in range(text.size):
        offsets[line] = k + 1
        line += text[k] == _NEWLINE


@lean
def rehash(table, count):
    """Fill empty slots with the first `count` strings again, which differ from each other."""
    mask = table.slots.size - 1
    for g in range(count):
        slot = _home(table.keys[g, HASH]) & mask
        while table.slots[slot]:
            slot = (slot + 1) & mask
        table.slots[slot] = g + 1


@or_python
@lean
def number(table, offsets, state, out):
    """Number strings in order of appearance, each distinct one once.

    String ``i`` is ``base[offsets[i]:offsets[i + 1] - 1]``. Goes on from `state`, the strings
    done and the distinct ones among them, until the end or until the table is full.
    """
    while state[0] < offsets.size - 1 and state[1] < table.keys.shape[0]:
        begin = offsets[state[0]]
        end = offsets[state[0] + 1] - 1
        hashed = _hashed(table.base, begin, end)
        slot = _seek(table, table.base, begin, end, hashed)
        if table.slots[slot] == 0:
            _put(table, slot, state[1], begin, end, hashed)
            state[1] += 1
        out[state[0]] = table.slots[slot] - 1
        state[0] += 1


@or_python
@lean
def find(table, text, offsets, first, last, hashes, out):
    """Number in `table` of the strings `first` to `last` of `text`, or -1.

    Hashes and first slots of all come before the searches, so that these wait less for memory.
    """
    for i in range(first, last):
        hashes[i - first] = _hashed(text, offsets[i], offsets[i + 1] - 1)
    mask = table.slots.size - 1
    for i in range(first, last):
        out[i] = table.slots[_home(hashes[i - first]) & mask]
    for i in range(first, last):
        if out[i]:
            slot = _seek(table, text, offsets[i], offsets[i + 1] - 1, hashes[i - first])
            out[i] = table.slots[slot]
        out[i] -= 1


@lean
def find_lines(table, text, offsets, hashes, out):
    """Cut a text into as many lines as `out` has room for, and number them as `find` does.

    Returns whether it has so many; `offsets` has two places more. All in one call, because threads
    that come back from a kernel wait for those that are busy with Python's own work.
    """
    lines = 0
    for k in range(text.size):
        lines += text[k] == _NEWLINE
    if lines != out.size:
        return False
    borders(text, offsets)
    find(table, text, offsets, 0, lines, hashes, out)
    return True


@inner
def _skipped(data, begin, end):
    same = end - begin == _SKIPPED.size
    k = 0
    while same and k < _SKIPPED.size:
        same = data[begin + k] == _SKIPPED[k]
        k += 1
    return same


@or_python
@lean
def scan(data, state, table, local, sizes, ids, ends, offsets):
    """Read lines of cells and number the distinct strings of every column from 0.

    Goes on from `state` until the end of `data`, the table is full, or a line has another
    number of columns than `sizes`; returns which. `table` has all distinct strings, whatever their
    column, `sizes` how many each column has, and `local` (strings, columns) 1 + the number of a
    string in its column, or 0. `ids` (tokens, columns) and `offsets` of sentences are filled.
    """
    width = sizes.size
    i = state[POSITION]
    tokens = state[TOKENS]
    while i < data.size:
        if state[STRINGS] + width > table.keys.shape[0]:
            state[POSITION] = i
            state[TOKENS] = tokens
            return FULL
        state[LINE] += 1
        found = 0
        while True:
            while i < data.size and _blank(data[i]):
                i += 1
            if i == data.size or data[i] == _NEWLINE:
                break
            begin = i
            hashed = np.int64(_SEED)
            while i < data.size and not _ends(data[i]):
                hashed = _stirred(hashed, data[i])
                i += 1
            if found == 0 and _skipped(data, begin, i):
                while i < data.size and data[i] != _NEWLINE:
                    i += 1
                break
            if found < width:
                slot = _seek(table, data, begin, i, hashed)
                g = table.slots[slot] - 1
                if g < 0:
                    g = state[STRINGS]
                    state[STRINGS] += 1
                    _put(table, slot, g, begin, i, hashed)
                if local[g, found] == 0:
                    sizes[found] += 1
                    local[g, found] = sizes[found]
                ids[tokens, found] = local[g, found] - 1
            found += 1
            ends[tokens] = i
        i += 1
        if found == width:
            tokens += 1
        elif found:
            state[FOUND] = found
            return WIDTH
        elif tokens > offsets[state[SENTENCES]]:
            state[SENTENCES] += 1
            offsets[state[SENTENCES]] = tokens
    if tokens > offsets[state[SENTENCES]]:
        state[SENTENCES] += 1
        offsets[state[SENTENCES]] = tokens
    state[TOKENS] = tokens
    return DONE


@or_python
@lean
def gather(base, starts, lengths, out, offsets):
    """Copy strings one after another, a newline after each."""
    place = 0
    for i in range(starts.size):
        for k in range(lengths[i]):
            out[place + k] = base[starts[i] + k]
        place += lengths[i] + 1
        out[place - 1] = _NEWLINE
        offsets[i + 1] = place


@or_python
@lean
def insert(data, places, ids, text, offsets, separator, out):
    """Copy `data` with a separator and the string ``ids[i]`` of `text` before each of `places`.

    Returns the size of `out`.
    """
    size = 0
    begin = 0
    for i in range(places.size):
        for k in range(begin, places[i]):
            out[size + k - begin] = data[k]
        size += places[i] - begin
        begin = places[i]
        out[size] = separator
        size += 1
        for k in range(offsets[ids[i]], offsets[ids[i] + 1] - 1):
            out[size] = text[k]
            size += 1
    for k in range(begin, data.size):
        out[size + k - begin] = data[k]
    return size + data.size - begin
