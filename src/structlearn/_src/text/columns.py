"""Column files: one token a line, its columns apart by blanks, a blank line after a sentence.

The format of the CoNLL shared tasks, CRF++ and Wapiti. Cells are numbered per column while they
are read, so no Python string is made per token. Lines that begin with ``-DOCSTART-`` are
skipped. Files are UTF-8, may end their lines in CRLF, and may be gzipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common.arrays import Ints, cut
from structlearn._src.common.errors import ArgumentError, FormatError
from structlearn._src.common.paths import PathLike, read_bytes
from structlearn._src.kernels.text import strings as kernels
from structlearn._src.text.strings import Index, Strings, empty_table, gathered, grown

_BOM = b"\xef\xbb\xbf"
_FIRST_ROOM = 2**14  # distinct strings before the table grows
_MOST_COLUMNS = 1000  # every distinct string has a number for each of them
_CELL = re.compile(rb"[^ \t\r]+")
#: Comments, then a line of ten cells of which the first is a number; it never goes back.
_CONLLU = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?:#[^\n]*+\n\s*+)++\d++(?:[-.]\d++)?(?:\t[^\t\n]*+){9}$", re.MULTILINE
)
_NO_WORD = re.compile(rb"^(?:#|\d+[-.]\d+\t)[^\n]*\n?", re.MULTILINE)
_GAP = re.compile(rb"[^ \t\r]([ \t])[ \t]*[^ \t\r]")
_FIRST_LINE = re.compile(rb"^[ \t\r]*(?!-DOCSTART-(?:[ \t\r\n]|\Z))[^ \t\r\n][^\n]*", re.MULTILINE)


class Columns(NamedTuple):
    """What a column file holds; the tokens of sentence ``i`` are ``offsets[i]:offsets[i + 1]``."""

    ids: Index  #: (tokens, columns) number of each cell's string in its column's vocabulary, or -1
    offsets: Ints  #: (sentences + 1,)
    vocabularies: tuple[Strings, ...]  #: distinct strings of every column, in order of appearance
    ends: Ints  #: (tokens,) where in the text each token's last cell ends

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.vocabularies)

    def text(self, column: int) -> list[str]:
        """Return the strings of a column, one per token; empty where unknown."""
        strings = np.array([*self.vocabularies[column].list(), ""], dtype=object)
        return strings[self.ids[:, column]].tolist()

    def labels(self, column: int = -1) -> list[Any]:
        """Return a column, by default the last, as labels of sequences for `SequenceLabeler`."""
        return cut(np.array(self.text(column), object), self.offsets)

    def known_by(self, vocabularies: Sequence[Strings | None]) -> Columns:
        """Return the same columns numbered by given vocabularies; None keeps a column's own."""
        if len(vocabularies) > self.width:
            raise FormatError(
                f"the data has {self.width} columns, but {len(vocabularies)} are needed"
            )
        ids = self.ids.copy()
        mine = list(self.vocabularies)
        for c, vocabulary in enumerate(vocabularies):
            if vocabulary is not None and vocabulary is not mine[c]:
                numbers = np.append(vocabulary.find(mine[c]), np.int32(-1))  # the last for -1
                ids[:, c] = numbers[self.ids[:, c]]
                mine[c] = vocabulary
        return self._replace(ids=ids, vocabularies=tuple(mine))


def read_columns(path: PathLike) -> Columns:
    r"""Read a column file: one line per token, an empty line after each sequence.

    From CoNLL-U files the ten columns of words are read, without comments, multiword ranges and
    empty nodes.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Columns
        The cells as numbers, with their vocabularies. The method `labels` returns the last column
        as labels of sequences, or another one: in CoNLL-U, ``labels(3)`` returns the universal
        tags.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from structlearn import read_columns
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("the DT\ncat NN\n\na DT\n")
    >>> columns = read_columns(path)
    >>> [labels.tolist() for labels in columns.labels()]
    [['DT', 'NN'], ['DT']]
    """
    return parse_columns(words_alone(read_bytes(path)), str(path))


def words_alone(data: bytes) -> bytes:
    """Return CoNLL-U text as a column file of its words; any other text as it is."""
    if not _CONLLU.match(data):
        return data
    words = _NO_WORD.sub(b"", data.removeprefix(_BOM))
    return words.replace(b" ", b"\xc2\xa0")  # cells may have blanks, which part columns here


def parse_columns(data: bytes, name: str = "the text") -> Columns:
    r"""Read the bytes of a column file, whose `name` is for error messages.

    Examples
    --------
    >>> columns = parse_columns(b"the DT\nend NN\n\nthe DT\n")
    >>> columns.ids
    array([[0, 0],
           [1, 1],
           [0, 0]], dtype=int32)
    >>> columns.offsets, columns.text(1)
    (array([0, 2, 3]), ['DT', 'NN', 'DT'])
    """
    buffer = np.frombuffer(data, np.uint8)
    width = _width(data, name)
    most = np.count_nonzero(buffer == ord("\n")) + 1
    state = np.zeros(kernels.STATE, np.int64)
    state[kernels.POSITION] = len(_BOM) if data.startswith(_BOM) else 0
    ids = np.empty((most, width), np.int32)
    ends = np.empty(most, np.int64)
    offsets = np.zeros(most + 1, np.int64)
    sizes = np.zeros(width, np.int64)
    # A string takes at least two bytes, with what ends it.
    room = min(_FIRST_ROOM, len(data) // 2 + 1) + width
    table = empty_table(buffer, room)
    local = np.zeros((room, width), np.int32)
    while (why := kernels.scan(buffer, state, table, local, sizes, ids, ends, offsets)) != 0:
        if why == kernels.WIDTH:
            hint = "; for files in CoNLL-U there is read_columns" if _CONLLU.match(data) else ""
            raise FormatError(
                f"{name}, line {state[kernels.LINE]}: {state[kernels.FOUND]} columns were found, "
                f"but the lines before have {width}; every token needs the same columns{hint}"
            )
        table = grown(table, int(state[kernels.STRINGS]))
        local = np.pad(local, ((0, 3 * len(local)), (0, 0)))
    vocabularies = tuple(_strings(table, local[:, c], int(sizes[c])) for c in range(width))
    _check_text(data, name)
    n_tokens = state[kernels.TOKENS]
    n_sentences = state[kernels.SENTENCES]
    return Columns(ids[:n_tokens], offsets[: n_sentences + 1].copy(), vocabularies, ends[:n_tokens])


def add_column(
    data: bytes, columns: Columns, ids: NDArray[np.integer], strings: Sequence[str]
) -> bytes:
    r"""Return the bytes of a column file with one more cell at the end of every token's line.

    Everything else stays as it is. `columns` are what `parse_columns` made of the bytes, and `ids`
    (tokens,) the new cells, as numbers of `strings`.

    Examples
    --------
    >>> data = b"the DT\nend NN\n\n"
    >>> add_column(data, parse_columns(data), [1, 0], ["I", "B"])
    b'the DT B\nend NN I\n\n'
    """
    cells = np.ascontiguousarray(ids, dtype=np.int64)
    if cells.shape != columns.ends.shape:
        raise ArgumentError(
            f"{len(cells)} cells were given for {len(columns.ends)} tokens; one each is needed"
        )
    if len(cells) and not (cells.min() >= 0 and cells.max() < len(strings)):
        raise ArgumentError(
            f"the cells are numbered {cells.min()} to {cells.max()}, but there are "
            f"{len(strings)} strings, counted from 0"
        )
    names = Strings.of(strings)
    most = len(data) + int(np.diff(names.offsets)[cells].sum())
    out = np.empty(most, np.uint8)
    text = np.frombuffer(data, np.uint8)
    cut = names.text, names.offsets
    size = kernels.insert(text, columns.ends, cells, *cut, _separator(data), out)
    return out[:size].tobytes()


def _first_line(data: bytes) -> bytes:
    """Return the first line with a token, or nothing."""
    found = _FIRST_LINE.search(data, len(_BOM) if data.startswith(_BOM) else 0)
    return found[0] if found else b""


def _width(data: bytes, name: str) -> int:
    width = len(_CELL.findall(_first_line(data)))
    if width == 0:
        raise FormatError(
            f"{name}: no token was found; a column file has one token a line and a blank line "
            f"after each sentence"
        )
    if width > _MOST_COLUMNS:
        raise FormatError(
            f"{name}: the first token has {width} columns, and at most {_MOST_COLUMNS} are read; a "
            f"column file has one token a line"
        )
    return width


def _separator(data: bytes) -> int:
    """Return what stands between columns; a tab, as in CRF++, if there is only one column."""
    found = _GAP.search(_first_line(data))
    return found[1][0] if found else ord("\t")


def _strings(table: kernels.StringTable, local: Index, size: int) -> Strings:
    """Return the strings that have a number in `local`, in the order of these numbers."""
    which = np.empty(size, np.int64)
    (used,) = np.nonzero(local)
    which[local[used] - 1] = used
    return gathered(table, which)


def _check_text(data: bytes, name: str) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as reason:
        line = data.count(b"\n", 0, reason.start) + 1
        raise FormatError(
            f"{name}, line {line}: byte 0x{data[reason.start]:02x} is not UTF-8 "
            f"({reason.reason}); convert the file to UTF-8"
        ) from None
