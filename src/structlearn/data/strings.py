"""Many strings in two arrays, so that they can be searched by kernels and saved as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from structlearn.common.checks import Ints
from structlearn.kernels import strings as kernels

Bytes = NDArray[np.uint8]
Index = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Strings:
    r"""Distinct strings: number ``i`` is ``text[offsets[i]:offsets[i + 1] - 1]`` in UTF-8.

    A newline stands after each.

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

    @classmethod
    def of(cls, strings: Iterable[str]) -> Strings:
        """Put strings one after another."""
        parts = [string.encode() for string in strings]
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) + 1 for part in parts], out=offsets[1:])
        return cls(np.frombuffer(b"".join(part + b"\n" for part in parts), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def list(self) -> list[str]:
        """Return all of them as Python strings."""
        text = self.text.tobytes()
        if text.count(b"\n") == len(self):
            return text.decode().split("\n")[:-1]
        ends = self.offsets.tolist()
        return [text[a : b - 1].decode() for a, b in zip(ends, ends[1:], strict=False)]

    def find(self, other: Strings) -> Index:
        """Return the number here of every string of `other`, or -1."""
        out = np.empty(len(other), np.int32)
        kernels.find(self._table, other.text, other.offsets, out)
        return out

    @cached_property
    def _table(self) -> kernels.Table:
        table = empty_table(self.text, len(self))
        kernels.fill(table, self.offsets)
        return table


def empty_table(base: Bytes, capacity: int) -> kernels.Table:
    """Return a table with room for so many strings, at most half of its slots in use."""
    slots = np.zeros(2 << max(capacity - 1, 0).bit_length(), np.int32)
    hashes, starts, lengths = np.empty((3, max(capacity, 1)), np.int64)
    return kernels.Table(base, slots, hashes, starts, lengths)
