"""Many strings in two arrays, so that kernels can search them and files keep them as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import threads
from structlearn._src.common.arrays import Ints
from structlearn._src.kernels.text import strings as kernels
from structlearn._src.kernels.text.strings import StringTable

Bytes = NDArray[np.uint8]
Index = NDArray[np.int32]

_FIRST_ROOM = 2**14  # distinct strings before a table grows


@dataclass(frozen=True, eq=False)
class Strings:
    r"""String ``i`` is ``text[offsets[i]:offsets[i + 1] - 1]`` in UTF-8; a newline ends each.

    Examples
    --------
    >>> strings = Strings.of(["new", "york"])
    >>> strings.text.tobytes(), strings.offsets
    (b'new\nyork\n', array([0, 4, 9]))
    >>> strings.find(Strings.of(["york", "old"]))
    array([ 1, -1], dtype=int32)
    """

    text: Bytes
    offsets: Ints

    def __post_init__(self) -> None:
        # Text from files is read-only and offsets are not: one array type each, for the kernels.
        text = np.ascontiguousarray(self.text, np.uint8).view()
        text.setflags(write=False)
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "offsets", np.require(self.offsets, np.int64, ["C", "W"]))

    def __reduce__(self) -> tuple[Any, ...]:
        return Strings, (self.text, self.offsets)  # without the table, and read-only again

    @classmethod
    def of(cls, strings: Sequence[str]) -> Strings:
        """Put strings one after another."""
        lines = cls.lines("\n".join(strings), len(strings))
        if lines is not None:
            return lines
        parts = [string.encode() + b"\n" for string in strings]  # some have newlines inside
        offsets = np.append(0, np.cumsum([len(part) for part in parts]))
        return cls(np.frombuffer(b"".join(parts), np.uint8), offsets)

    @classmethod
    def lines(cls, text: str, count: int) -> Strings | None:
        """Cut a text into its lines; returns nothing if these are not as many as promised."""
        lines = _encoded(text, count)
        if np.count_nonzero(lines == ord("\n")) != count:
            return None
        offsets = np.zeros(count + 2, np.int64)  # one more, for what follows the last
        kernels.borders(lines, offsets)
        return cls(lines, offsets[:-1])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def list(self) -> list[str]:
        """Return all of them as Python strings."""
        text = self.text.tobytes()
        if np.count_nonzero(self.text == ord("\n")) == len(self):
            return text.decode().split("\n")[:-1]
        return [text[a : b - 1].decode() for a, b in pairwise(self.offsets.tolist())]

    def take(self, which: NDArray[Any]) -> Strings:
        """Return some of the strings, by their numbers or a mask."""
        return _gathered(self.text, self.offsets[:-1][which], np.diff(self.offsets)[which] - 1)

    def distinct(self) -> tuple[Strings, Index]:
        """Return the distinct strings in order of appearance, and the number of each string."""
        out = np.empty(len(self), np.int32)
        table = empty_table(self.text, _FIRST_ROOM)
        state = np.zeros(2, np.int64)
        kernels.number(table, self.offsets, state, out)
        while state[0] < len(self):
            table = grown(table, int(state[1]))
            kernels.number(table, self.offsets, state, out)
        return gathered(table, np.arange(state[1])), out

    def find(self, other: Strings, n_jobs: int | None = None) -> Index:
        """Return the number here of every string of `other`, or -1; these are to be distinct."""
        out = np.empty(len(other), np.int32)
        table = self._table

        def work(first: int, last: int) -> None:
            hashes = np.empty(last - first, np.int64)
            kernels.find(table, other.text, other.offsets, first, last, hashes, out)

        threads.over_items(work, other.offsets, "strings", n_jobs, len(other))
        return out

    def find_lines(self, text: str, count: int) -> Index | None:
        """Return the number of every line, or -1; nothing if they are not as many as promised."""
        lines = _encoded(text, count)
        out = np.empty(count, np.int32)
        offsets = np.zeros(count + 2, np.int64)
        hashes = np.empty(count, np.int64)
        found: bool = kernels.find_lines(self._table, lines, offsets, hashes, out)
        return out if found else None

    def prepared(self) -> Strings:
        """Return the same strings, ready for threads to search at once."""
        assert self._table is not None
        return self

    @cached_property
    def _table(self) -> StringTable:
        table = empty_table(self.text, len(self) + 1)
        kernels.number(table, self.offsets, np.zeros(2, np.int64), np.empty(len(self), np.int32))
        return table


def _encoded(text: str, count: int) -> Bytes:
    """Return the bytes of a text with a newline at its end, if there is to be any line."""
    return np.frombuffer((text + "\n" if count else text).encode(), np.uint8)


def empty_table(base: Bytes, capacity: int) -> StringTable:
    """Return a table with room for so many strings of `base`, at most half of its slots in use."""
    slots = np.zeros(2 << (capacity - 1).bit_length(), np.int32)
    return StringTable(base, slots, np.empty((capacity, kernels.KEY), np.int64))


def grown(table: StringTable, count: int) -> StringTable:
    """Return a table four times as large with the same `count` strings."""
    larger = empty_table(table.base, 4 * len(table.keys))
    larger.keys[:count] = table.keys[:count]
    kernels.rehash(larger, count)
    return larger


def gathered(table: StringTable, which: Ints) -> Strings:
    """Return these strings of a table."""
    return _gathered(
        table.base, table.keys[which, kernels.START], table.keys[which, kernels.LENGTH]
    )


def _gathered(base: Bytes, starts: Ints, lengths: Ints) -> Strings:
    text = np.empty(lengths.sum() + len(lengths), np.uint8)
    offsets = np.zeros(len(lengths) + 1, np.int64)
    kernels.gather(base, starts, lengths, text, offsets)
    return Strings(text, offsets)
