"""A limit on resident memory: arrays in files, of which only what is in use stays resident."""

from __future__ import annotations

import errno
import mmap
import os
import re
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common.errors import ArgumentError

_UNITS = {"K": 1, "M": 2, "G": 3, "T": 4}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT])(i?)B")
#: What Python, NumPy, Numba and DuckDB take before there is any data, in bytes.
PROGRAM = 300 * 10**6
#: Less than this cannot be kept.
LEAST = 512 * 10**6
#: Part of a limit for arrays that are held in memory.
HELD = 0.25
_SHARE = 16  # part of the limit that is gone through before its pages are given back


def parse_size(name: str, given: Any) -> int:
    """Return the bytes that a text such as ``"2GB"`` or ``"1.5GiB"`` stands for."""
    found = _SIZE.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        raise ArgumentError(f"{name}={given!r} is no size; write it as in '2GB' or '800MB'")
    number, unit, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** _UNITS[unit])


def check_limit(given: Any) -> int:
    """Return a limit on resident memory in bytes, if it can be kept at all."""
    limit = parse_size("memory_limit", given)
    if limit < LEAST:
        raise ArgumentError(
            f"memory_limit={given!r} cannot be kept: the program itself takes about "
            f"{PROGRAM // 10**6} MB; give at least '{LEAST // 10**6}MB'"
        )
    return limit


class Store:
    """Arrays in files without a name, which are gone when nobody holds them, also after errors.

    They lie in the folder for temporary files (the environment variable TMPDIR), which must be on
    a disk: in a file system in memory nothing would be saved. `limit` is that of the whole program
    in bytes; whoever goes through arrays calls `release` after every `grain` bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0  # bytes of arrays that are in memory after all
        self._maps: list[weakref.ref[mmap.mmap]] = []

    def __reduce__(self) -> tuple[type[Store], tuple[int]]:
        return Store, (self.limit,)  # copies of arrays lie in memory

    @property
    def grain(self) -> int:
        """Bytes that may be resident between two calls of `release`."""
        return max(self.limit // _SHARE, 1)

    def zeros(self, size: int, dtype: Any) -> NDArray[Any]:
        """Return an array to be written again and again: the first ones are held in memory.

        Writing to files is slow, so part of the limit is spent on what is written most. There is
        room on the disk for the others, or an error says so.
        """
        kind = np.dtype(dtype)
        if self.held + size * kind.itemsize <= HELD * self.limit:
            array = np.zeros(size, kind)
            self.held += array.nbytes
            weakref.finalize(array, self._let_go, array.nbytes)
            return array
        with _on_disk(), tempfile.TemporaryFile() as file:
            _reserve(file.fileno(), size * kind.itemsize)
            return self.map(file, size, kind)

    def _let_go(self, size: int) -> None:
        self.held -= size

    def map(self, file: Any, size: int, dtype: Any) -> NDArray[Any]:
        """Return what is in an open file as an array; it stays when the file is closed."""
        if size == 0:
            return np.empty(0, dtype)
        length = size * np.dtype(dtype).itemsize
        with _on_disk():
            file.flush()
            if os.fstat(file.fileno()).st_size < length:  # the last piece may fail in silence
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        mapped = mmap.mmap(file.fileno(), length)
        self._maps.append(weakref.ref(mapped))
        return np.frombuffer(mapped, dtype, size)

    def release(self) -> None:
        """Let go of all pages, which stay in their files, and come back when they are read."""
        alive = [(ref, ref()) for ref in self._maps]
        self._maps = [ref for ref, mapped in alive if mapped is not None]
        if hasattr(mmap, "MADV_DONTNEED"):
            for _, mapped in alive:
                if mapped is not None:
                    mapped.madvise(mmap.MADV_DONTNEED)


class ArrayWriter:
    """An array of unknown length that is written piece by piece into a file."""

    def __init__(self, store: Store, dtype: Any) -> None:
        self._store = store
        self._dtype = np.dtype(dtype)
        with _on_disk():
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed when this is gone
        weakref.finalize(self, self._file.close)
        self.size = 0

    def append(self, values: NDArray[Any]) -> None:
        """Write some more."""
        with _on_disk():
            np.ascontiguousarray(values, self._dtype).tofile(self._file)
        self.size += len(values)

    def finish(self) -> NDArray[Any]:
        """Return the whole array."""
        with self._file as file:
            return self._store.map(file, self.size, self._dtype)


@contextmanager
def _on_disk() -> Iterator[None]:
    """Say which folder has no room, or is none, and how to choose another."""
    try:
        yield
    except OSError as error:
        folder = tempfile.tempdir or tempfile.gettempdir()
        raise OSError(
            error.errno or errno.ENOSPC,
            f"a memory limit needs room for temporary files, but in {folder}: "
            f"{error.strerror or error}; let the environment variable TMPDIR name a folder on a "
            f"disk with room",
        ) from error


def _reserve(descriptor: int, size: int) -> None:
    """Take the room on the disk now: a page that has none later would end the whole program."""
    if hasattr(os, "posix_fallocate") and size:
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.truncate(descriptor, size)
