"""Column files that are larger than memory: read in partitions, and kept as numbers in files."""

from __future__ import annotations

import glob
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import ArgumentError, DataNotFoundError, FormatError
from structlearn._src.common.memory import ArrayWriter, Store, check_limit
from structlearn._src.common.paths import PathLike, as_path
from structlearn._src.text.columns import Columns, parse_columns, words_alone
from structlearn._src.text.strings import Index, Strings

_SHARE = 64  # part of the memory limit that the text of a partition is: its columns take more
_LEAST = 2**16  # bytes of a partition at least
_PIECES = 8  # of text for each of several parts, so that these are about equal


class ColumnFiles:
    r"""Column files that are read in partitions, so that they need not fit into memory.

    Parameters
    ----------
    paths
        A path, or several; every file has one token per line, an empty line after each sequence,
        and may be gzipped. A path with ``*``, ``?`` or ``[`` that is no file is a pattern.
    memory_limit
        Limit on the resident memory of the program, for example ``"2GB"``.

    Notes
    -----
    Iteration gives the partitions as what `read_columns` returns: whole sequences, in their order.
    `SequenceLabeler.fit` takes the files as `X`, with None as `Y`: the labels are the last column.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("the D\ncat N\n\na D\ndog N\n")
    >>> [part.labels() for part in ColumnFiles(path, memory_limit="1GB")]
    [[array(['D', 'N'], dtype=object), array(['D', 'N'], dtype=object)]]
    """

    def __init__(self, paths: PathLike | Sequence[PathLike], *, memory_limit: str) -> None:
        several: Any = paths if isinstance(paths, list | tuple) else [paths]
        if not several:
            raise ArgumentError("paths is empty; at least one file is needed")
        self.paths = tuple(path for each in several for path in _matched(as_path(each)))
        for path in self.paths:
            if not path.is_file():
                raise DataNotFoundError(f"there is no file {str(path)!r}: check the path")
        self.store = Store(check_limit(memory_limit))
        self.share: tuple[int, int] | None = None

    def part(self, number: int, parts: int) -> ColumnFiles:
        r"""Return one of several parts of the same files, of which workers read one each.

        Parameters
        ----------
        number
            Which part, from 0.
        parts
            How many parts there are; a part has every piece whose number leaves `number` modulo it.

        Returns
        -------
        ColumnFiles
            Files that yield this part only.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from structlearn import ColumnFiles
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name, "train.txt")
        >>> _ = path.write_text("the D\ncat N\n\n" * 8)
        >>> files = ColumnFiles([path], memory_limit="1GB")
        >>> halves = [files.part(0, 2), files.part(1, 2)]
        >>> sum(len(columns.offsets) - 1 for half in halves for columns in half)
        8
        >>> folder.cleanup()
        """
        found = copy(self)
        found.paths = tuple(path.absolute() for path in self.paths)
        found.share = number, parts
        return found

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of every file."""
        return tuple(path.stat().st_size for path in self.paths)

    @property
    def partition_bytes(self) -> int:
        """Bytes of text in a partition, about."""
        most = max(self.store.limit // _SHARE, _LEAST)
        if self.share is None:
            return most
        return min(most, sum(self.sizes) // (_PIECES * self.share[1]) + 1)

    def __iter__(self) -> Iterator[Columns]:
        width = 0
        for name, data in self._pieces():
            words = words_alone(data)
            if not words.strip():
                continue
            part = parse_columns(words, name)
            width = width or part.width
            if part.width != width:
                raise FormatError(
                    f"{name}: {part.width} columns were found, but the sequences before have "
                    f"{width}; every token needs the same columns"
                )
            yield part

    def _pieces(self) -> Iterator[tuple[str, bytes]]:
        """Pieces of text, and what they are called in errors."""
        number, parts = self.share or (0, 1)
        size = self.partition_bytes
        count = 0
        for path in self.paths:
            line = 1
            with _opened(path) as file:
                for data in _cut(str(path), file, size):
                    if count % parts == number:
                        yield str(path) if line == 1 else f"{path}, from line {line} on", data
                    count += 1
                    line += data.count(b"\n")


def _matched(path: Path) -> list[Path]:
    """Return the files that a pattern stands for, in order; any other path by itself."""
    if path.is_file() or not _PATTERN.search(str(path)):
        return [path]
    found = sorted(map(Path, glob.glob(str(path), recursive=True)))
    return [each for each in found if each.is_file()] or [path]


_PATTERN = re.compile(r"[*?\[]")
_BLANK = re.compile(rb"\n[ \t\r]*\n")  # the end of a sequence
_OVERLAP = 64  # bytes of a blank line that may lie before the border of two blocks


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file, which may be gzipped, whatever its name."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not packed:
            yield file
            return
        with gzip.open(file) as unpacked:
            yield unpacked


def _cut(name: str, file: BinaryIO, size: int) -> Iterator[bytes]:
    """Pieces of a file that end where sequences do."""
    rest = b""
    try:
        while block := file.read(size):
            data = rest + block
            seen = max(len(rest) - _OVERLAP, 0)  # what is before has no blank line
            end = max((found.end() for found in _BLANK.finditer(data, seen)), default=0)
            if end == 0 or len(block) < size:  # a sequence longer than a piece, or the end
                rest = data
                continue
            yield data[:end]
            rest = data[end:]
    except (OSError, EOFError, zlib.error) as reason:
        raise FormatError(f"{name}: the file cannot be read ({reason})") from None
    if rest:
        yield rest


class StoredColumns(NamedTuple):
    """Columns of all files, numbered together; `ids` lie in a store."""

    ids: Index  #: (tokens, columns)
    offsets: Ints  #: (sequences + 1,)
    vocabularies: tuple[Strings, ...]

    def part(self, first: int, last: int) -> Columns:
        """Return some sequences."""
        start, stop = self.offsets[[first, last]]
        borders = self.offsets[first : last + 1] - start
        return Columns(self.ids[start:stop], borders, self.vocabularies, np.empty(0, np.int64))


def store_columns(files: ColumnFiles) -> StoredColumns:
    """Read all partitions once, and number their cells together."""
    found = find_columns(files)
    if found is None:
        raise FormatError(f"{files.paths[0]}: no token was found in any file")
    return found


def find_columns(files: ColumnFiles) -> StoredColumns | None:
    """Do the same where there may be no token at all."""
    ids = ArrayWriter(files.store, np.int32)
    sizes: list[Ints] = []
    known: list[Strings] = []
    for part in files:
        known = known or [Strings.of([])] * part.width
        cells = np.empty_like(part.ids)
        for c, own in enumerate(part.vocabularies):
            known[c], numbers = grown(known[c], own)
            cells[:, c] = numbers[part.ids[:, c]]
        ids.append(cells.ravel())
        sizes.append(np.diff(part.offsets))
    if not known:
        return None
    offsets = np.append(0, np.cumsum(np.concatenate(sizes)))
    return StoredColumns(ids.finish().reshape(-1, len(known)), offsets, tuple(known))


def grown(known: Strings, own: Strings) -> tuple[Strings, Index]:
    """Add the strings that are new; return the number of every string of `own`."""
    numbers = known.find(own) if len(known) else np.full(len(own), -1, np.int32)
    new = numbers < 0
    if not new.any():
        return known, numbers
    more = own.take(new)
    numbers[new] = len(known) + np.arange(len(more))
    text = np.concatenate([known.text, more.text])
    offsets = np.concatenate([known.offsets, known.offsets[-1] + more.offsets[1:]])
    return Strings(text, offsets), numbers
