"""One dictionary of attributes: keys of template rows, and their numbers.

The cells that a template row names are digits of one whole number, its key, so that equal keys
are equal attributes and no string is made. Keys that would need more than 62 bits are built in
stages: the first digits are numbered, and that number is the first digit of the next stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common.arrays import Ints
from structlearn._src.kernels.text import expand as kernels
from structlearn._src.text.strings import Index, Strings
from structlearn._src.text.template import TemplateRow

_KEY_BITS = 62  # keys are int64, of which negative ones stand for none
_NUMBER_BITS = 31  # numbers of strings are int32
_FIRST_ROOM = 2**10  # keys before a table grows


class Dictionary:
    """Attributes of template rows that share them; `rows` are (place in template, row)."""

    def __init__(self, rows: Sequence[tuple[int, TemplateRow]], digits: Digits) -> None:
        self.rows = rows
        self.digits = digits
        self.tables = [KeyTable() for _ in digits.stages(rows[0][1])]

    def __len__(self) -> int:
        return len(self.tables[-1].keys)

    def fill(self, sheet: Sheet, starts: Index, codes: NDArray[np.int32], min_count: int) -> None:
        """Number the attributes of all tokens, in its rows of `codes`; learn if `min_count`."""
        for place, row in self.rows:
            before = starts
            for macros, table in zip(self.digits.stages(row), self.tables, strict=True):
                keys = before.astype(np.int64)
                for shift, column in macros:
                    size = self.digits.sizes[column]
                    radix = self.digits.radix(column)
                    kernels.push(sheet.cells[column], sheet.offsets, shift, size, radix, keys)
                table.number(keys, codes[place], learn=min_count > 0)
                before = codes[place]
        if min_count > 1:
            places = [place for place, _ in self.rows]
            codes[places] = self._pruned(codes[places], min_count)

    def _pruned(self, codes: NDArray[np.int32], min_count: int) -> NDArray[np.int32]:
        """Forget attributes that occur less often than `min_count`; returns the new numbers."""
        counts = np.bincount(codes[codes >= 0], minlength=len(self))
        keep = counts >= min_count
        kept = self.tables[-1].keys[keep]
        renumbered = np.full(len(self) + 1, -1, np.int32)  # the last one is for -1
        self.tables[-1] = KeyTable()
        self.tables[-1].learn(kept)
        renumbered[:-1][keep] = np.arange(len(kept))
        return renumbered[codes]

    def names(self, which: Ints, vocabularies: Sequence[Strings]) -> list[str]:
        """Return the attributes of these numbers as text."""
        row = self.rows[0][1]
        cells: list[list[str]] = []
        codes = which
        stages = list(zip(self.digits.stages(row), self.tables, strict=True))
        for macros, table in reversed(stages):
            codes = table.keys[codes]
            for _, column in reversed(macros):
                codes, digit = np.divmod(codes, self.digits.radix(column))
                cells.append(self.digits.text(column, digit, vocabularies[column]))
        if not cells:
            return [row.fill(())] * len(which)
        return [row.fill(filled) for filled in zip(*reversed(cells), strict=True)]


class KeyTable:
    """Distinct keys, numbered in order of appearance."""

    def __init__(self) -> None:
        self._count = 0
        self._keys = np.empty(_FIRST_ROOM, np.int64)
        self._slots = np.zeros(2 * _FIRST_ROOM, np.int32)

    @property
    def keys(self) -> Ints:
        """Every key, by number."""
        return self._keys[: self._count]

    def number(self, new: Ints, out: Index, learn: bool) -> None:
        """Write the number of every key to `out`, -1 for one that is not there nor learned."""
        if not learn:
            kernels.find(new, self._slots, self._keys, out)
            return
        done = 0
        while done < len(new):
            done, self._count = kernels.number(new, done, self._slots, self._keys, self._count, out)
            if self._count == len(self._keys):
                self._grow()

    def learn(self, keys: NDArray[np.generic]) -> None:
        """Add keys that differ from each other."""
        new = np.require(keys, np.int64, ["C", "W"])
        self.number(new, np.empty(len(new), np.int32), learn=True)

    def _grow(self) -> None:
        kept = self.keys
        self._keys = np.empty(4 * len(kept), np.int64)
        self._slots = np.zeros(8 * len(kept), np.int32)
        kernels.number(kept, 0, self._slots, self._keys, 0, np.empty(len(kept), np.int32))


class Digits(NamedTuple):
    """How cells become digits: their own number, or one of ``2 * reach`` outside the sentence."""

    reach: int
    sizes: list[int]

    def radix(self, column: int) -> int:
        """Return the number of digits that a cell of this column may become."""
        return self.sizes[column] + 2 * self.reach

    def stages(self, row: TemplateRow) -> list[list[tuple[int, int]]]:
        """Cut the macros of a row so that no key of a stage needs more than 62 bits."""
        stages: list[list[tuple[int, int]]] = [[]]
        most = 2**_KEY_BITS
        product = 1
        for macro in row.macros:
            product *= self.radix(macro[1])
            if product > most:
                stages.append([])
                most = 2 ** (_KEY_BITS - _NUMBER_BITS)
                product = self.radix(macro[1])
            stages[-1].append(macro)
        return stages

    def text(self, column: int, digits: Ints, strings: Strings) -> list[str]:
        """Return the cells that digits stand for, as CRF++ writes them."""
        steps = range(1, self.reach + 1)
        outside = [*(f"_B-{d}" for d in steps), *(f"_B+{d}" for d in reversed(steps))]
        return np.array(strings.list() + outside, object)[digits].tolist()


class Sheet(NamedTuple):
    """Columns made ready: one contiguous array each, numbered by the learned vocabularies."""

    cells: list[Index]
    offsets: Ints

    @property
    def every(self) -> Index:
        """Keys to start from: 0 for every token."""
        return np.zeros(self.offsets[-1], np.int32)

    @property
    def not_first(self) -> Index:
        """Keys to start from: 0, but none for the first token of a sentence."""
        starts = self.every
        starts[self.offsets[:-1]] = -1
        return starts
