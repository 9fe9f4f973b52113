"""Text files with atoms: refused where DuckDB would lose some of them, read here where short."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from structlearn._src.common.errors import AtomError, FormatError
from structlearn._src.rules.given import width

if TYPE_CHECKING:
    from structlearn._src.rules.tables import Relation

_SHORT = 2**15  # bytes: about a thousand lines, beyond which DuckDB is quicker; measured
_BLOCK = 2**20  # bytes that are looked at together: their arrays fit into a cache
_MARK = "\ufeff".encode()  # of UTF-8, at the beginning of files of some programs
_BLANKS = " \xa0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))  # as in trim

#: A cell and what ends it: beside quotes, and from an opening quote on, which may stay open.
_BESIDE = re.compile(rb"([^,\r\n]*+)(,|[\r\n]|\Z)")
_OPENING = re.compile(rb' ?"')
_INSIDE = re.compile(rb'((?:[^"]++|"")*+)(?:" *(,|[\r\n]|\Z))?')
_SOUND = rb'(?:"(?:[^"]++|"")*+"|[^",\r\n]*+)'  # a cell that is plain or in quotes, all of it
_CELL = re.compile(r'(?: ?"((?:[^"]++|"")*+)" *|([^,\r\n]*+))(,|\r\n?|\n|\Z)')
_END = re.compile(r"\r\n?|\n")


class Lines:
    """The lines of a text file with atoms of a predicate."""

    def __init__(self, path: Path, relation: Relation, header: bool) -> None:
        self.path = path
        self.relation = relation
        self.header = header
        #: Files with commas have quotes; others have tabs and none.
        self.is_csv = path.name.lower().removesuffix(".gz").endswith(".csv")
        self.mark = "," if self.is_csv else "\t"
        self._returns = 0  # carriage returns so far
        self._pairs = 0  # of them, those before a line feed
        self._open = 0  # number of the line with the quote that is open, or 0
        self._column = 0  # where a row is, which may go over several lines
        self._last = 0  # its last column that is not empty

    def check(self) -> None:
        """Refuse what DuckDB drops: cells on the far right, text beside quotes, faults of gzip."""
        number = 0
        most = self.relation.arity + 1
        for block in self._blocks():
            self._check_letters(block, number)
            if not self._open and self._is_plain(block, most):
                number += block.count(b"\n")
                continue
            for line in block.splitlines(keepends=True):
                number += 1
                self._follow(line, number)
                if self._last > most and number > self.header:
                    raise AtomError(width(self.relation, self._where(number), self._last))
        if self._open:
            raise FormatError(f"{self._where(self._open)} has a quote that is not closed: close it")

    def _where(self, number: int) -> str:
        return f"line {number} of {self.path.name!r}"

    def _blocks(self) -> Iterator[bytes]:
        """Pieces of whole lines."""
        opened = gzip.open if self.path.suffix == ".gz" else open
        try:
            with opened(self.path, "rb") as lines:
                mark = lines.read(len(_MARK)).removeprefix(_MARK)
                while block := mark + lines.read(_BLOCK) + lines.readline():
                    yield block
                    mark = b""
        except (OSError, EOFError, zlib.error) as error:
            raise self._unread(error) from None

    def _unread(self, reason: object) -> FormatError:
        given = f"the atoms of {self.relation.name} in {str(self.path)!r}"
        return FormatError(f"{given} cannot be read: {reason}")

    def _check_letters(self, block: bytes, before: int) -> None:
        """Refuse letters that are not in UTF-8, but in a header, and two kinds of carriage return.

        Where the first line ends with two letters, DuckDB takes two for every carriage return.
        """
        start = block.find(b"\n") + 1 if self.header and not before else 0
        try:
            block[start:].decode()
        except UnicodeDecodeError as error:
            number = before + block[: start + error.start].count(b"\n") + 1
            raise self._unread(f"line {number} is not in UTF-8: save the file as such") from None
        self._pairs += block.count(b"\r\n")
        self._returns += block.count(b"\r")
        if 0 < self._pairs < self._returns:
            raise self._unread("some carriage returns stand alone: end all lines in one way")

    def _is_plain(self, block: bytes, most: int) -> bool:
        """Whether no line has too many columns, and no quote or end of line needs a closer look."""
        if self.is_csv and b'"' in block:
            row = b"%b(?:,%b){0,%d}" % (_SOUND, _SOUND, most - 1)
            return re.fullmatch(b"(?:%b\r?\n)*+(?:%b)?+" % (row, row), block) is not None
        if block.count(b"\r") != block.count(b"\r\n"):
            return False
        letters = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(letters == ord("\n")) + 1
        starts = np.concatenate([[0], ends[ends < len(block)]])
        marks = np.add.reduceat(letters == ord(self.mark), starts, dtype=np.int64)
        return bool(marks.max() < most)

    def _follow(self, line: bytes, number: int) -> None:
        """Go on with a row, or begin the next."""
        if not self._open:
            self._column = 0
            self._last = 0
        if not self.is_csv or not (self._open or b'"' in line):
            cells = line.rstrip(b"\r\n").split(self.mark.encode())
            self._last = max((i for i, cell in enumerate(cells, 1) if cell), default=0)
            return
        at = 0
        ending = b","
        while ending == b",":
            opening = None if self._open else _OPENING.match(line, at)
            quoted = opening or self._open
            self._column += not self._open
            found = (_INSIDE if quoted else _BESIDE).match(line, opening.end() if opening else at)
            assert found is not None  # both match nothing too
            at = found.end()
            if found[1]:
                self._last = self._column
            if found[2] is None and at < len(line):
                raise FormatError(
                    f"{self._where(number)} goes on behind the end of a quote: write a quote in "
                    f"a quoted text twice"
                )
            self._open = (self._open or number) if found[2] is None else 0
            ending = found[2]

    def rows(self) -> list[list[str | None]] | None:
        """The rows of a sound file as DuckDB gives them, with two columns more than arguments.

        None where the file is long, is not in UTF-8, or may have a header of several lines.
        """
        if self.path.suffix == ".gz" or self.path.stat().st_size > _SHORT:
            return None
        try:
            text = self.path.read_bytes().decode().removeprefix("\ufeff")
        except UnicodeDecodeError:
            return None
        if self.header:
            first, text = [*_END.split(text, maxsplit=1), ""][:2]
            if self.is_csv and '"' in first:
                return None
        if self.is_csv and '"' in text:
            rows = list(_quoted(text))
        else:
            lines = filter(None, _END.split(text))
            rows = [[cell or None for cell in line.split(self.mark)] for line in lines]
        wide: list[str | None] = [None] * (self.relation.arity + 2)
        rows = [(row + wide)[: len(wide)] for row in rows]
        return rows if self.is_csv else list(filter(self._trim, rows))

    def _trim(self, row: list[str | None]) -> bool:
        """Take blanks from around a line; return whether something else is there."""
        value = self.relation.arity
        if not "".join(filter(None, row)).strip(_BLANKS):
            return False
        row[0] = row[0] and row[0].lstrip(_BLANKS)
        last = row[value - 1]
        if last and row[value] is None:
            row[value - 1] = last.rstrip(_BLANKS)
        return True


def _quoted(text: str) -> Iterator[list[str | None]]:
    """The rows of lines with commas and quotes, without those that are empty."""
    row: list[str | None] = []
    for found in _CELL.finditer(text):
        inside, beside, ending = found.groups()
        if row or ending == "," or beside != "":
            row.append((beside if inside is None else inside.replace('""', '"')) or None)
        if ending != "," and row:
            yield row
            row = []
