"""Large arrays whose memory is used again.

Memory that a process asks the system for is filled with zeros first. With many threads that is a
good part of what a batch of graphs takes: the threads wait for each other in the system, and for
the same work again in the next batch. So the memory of temporary arrays is kept, up to a limit, and
lent again as soon as nothing refers to any of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_LEAST = 2**17  # bytes below which the allocator of C keeps memory anyway
_MOST = 2**28  # bytes that are kept while nobody uses them: those of 10,000 small graphs
_WASTE = 1.5  # times as large as what is asked for a block may be
_LINE = 128  # bytes of two cache lines, with which arrays begin

Block = NDArray[np.uint8]


class Reserve:
    """Blocks of memory that nobody uses.

    Without a lock, which a thread could hold at a fork, or while it gives back what it finds to be
    no longer used: every step that changes anything is one of the interpreter's.
    """

    def __init__(self, most: int = _MOST) -> None:
        self.most = most
        self._blocks: dict[int, Block] = {}  # by address, the one that was used last at the end

    @property
    def kept(self) -> int:
        """Bytes that are kept."""
        return sum(block.nbytes for block in list(self._blocks.values()))

    def take(self, size: int) -> Block:
        """Return the smallest block of at least so many bytes, unless it is much larger; or new."""
        fits = []
        # A list of pairs would not do: to make one the collector may run, which gives blocks back.
        for address in list(self._blocks):
            found = self._blocks.get(address)
            if found is not None and size <= found.nbytes <= _WASTE * size:
                fits.append((found.nbytes, address))
        for _, address in sorted(fits):
            if (block := self._blocks.pop(address, None)) is not None:  # else others were quicker
                return block
        return np.empty(size, np.uint8)

    def give(self, block: Block) -> None:
        """Keep a block, and in exchange forget those that were not used for longest."""
        self._blocks[_address(block)] = block
        for address in list(self._blocks):
            if self.kept <= self.most:
                break
            self._blocks.pop(address, None)


def _address(block: Block) -> int:
    """Return where a block begins; `ctypes` cannot tell at the end of Python."""
    address: int = block.__array_interface__["data"][0]
    return address


_reserve = Reserve()


class _Loan:
    """What arrays on a block refer to: when the last of them is gone, the block is free again."""

    def __init__(self, block: Block, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._block = block
        self._give = _reserve.give  # also at the end of Python, when modules are gone
        start = _address(block)
        self.__array_interface__ = {
            "version": 3, "shape": shape, "typestr": dtype.str,
            "data": (start + -start % _LINE, False),
        }  # fmt: skip

    def __del__(self) -> None:
        self._give(self._block)


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Return an array with any contents, as `np.empty`, in memory that is used again if large."""
    sizes = (shape,) if isinstance(shape, int) else shape
    kind = np.dtype(dtype)
    size = math.prod(sizes) * kind.itemsize
    if size < _LEAST:
        return np.empty(sizes, kind)
    return np.asarray(_Loan(_reserve.take(size + _LINE), sizes, kind))
