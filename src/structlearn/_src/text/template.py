"""Templates in the language of CRF++: which cells around a token make its attributes.

A line ``U05:%x[-1,0]/%x[0,0]`` makes, for every token, the attribute that has the word before
and the word itself (row offset, column) filled in. Lines that begin with ``U`` go with the label
of the token, those with ``B`` with the labels of the token and of the one before; ``B`` alone is
the plain table of transitions. Lines that begin with ``#`` are comments.

References
----------
.. [1] T. Kudo, "CRF++: yet another CRF toolkit", section "Preparing feature templates".
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from structlearn._src.common.errors import ArgumentError, FormatError
from structlearn._src.common.paths import PathLike, read_bytes

_MACRO = re.compile(r"%x\[([-+]?\d{1,4}),(\d{1,4})\]")


class TemplateRow(NamedTuple):
    """One line: the text around the macros (one more than these), and the macros."""

    literals: tuple[str, ...]
    macros: tuple[tuple[int, int], ...]

    def fill(self, cells: tuple[str, ...]) -> str:
        """Return the attribute that has these cells in place of the macros."""
        return self.literals[0] + "".join(map("".join, zip(cells, self.literals[1:], strict=True)))


class Template(NamedTuple):
    """A parsed template."""

    unigram: tuple[TemplateRow, ...]  #: rows whose attributes go with one label
    bigram: tuple[TemplateRow, ...]  #: rows whose attributes go with two neighbouring labels
    transitions: bool  #: whether there is a plain table of transitions
    text: str  #: what was parsed

    @property
    def width(self) -> int:
        """Number of columns that the data must have."""
        return 1 + max((column for row in self.rows for _, column in row.macros), default=-1)

    @property
    def reach(self) -> int:
        """Largest distance in tokens between a token and a cell of its attributes."""
        return max((abs(shift) for row in self.rows for shift, _ in row.macros), default=0)

    @property
    def rows(self) -> tuple[TemplateRow, ...]:
        """All rows, unigram first."""
        return self.unigram + self.bigram


def read_template(path: PathLike) -> Template:
    """Read the template file at `path`."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        raise FormatError(f"{path}: the template is not UTF-8 ({reason.reason})") from None
    return parse_template(text, str(path))


def parse_template(text: str | None = None, name: str = "template") -> Template:
    r"""Parse the `text` of a template, whose `name` is for error messages.

    Without a text, it is the template that CRF++ has for chunking: words and tags up to two tokens
    away.

    Examples
    --------
    >>> template = parse_template("U1:%x[0,0]/%x[1,0]\nB")
    >>> template.unigram[0].fill(("new", "york")), template.transitions
    ('U1:new/york', True)
    """
    if text is None:
        return read_template(Path(__file__).with_name("chunking.template"))
    unigram: list[TemplateRow] = []
    bigram: list[TemplateRow] = []
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if line and not line.startswith("#"):
            row = _row(line, f"{name}, line {number}")
            (unigram if line.startswith("U") else bigram).append(row)
    if not unigram and not bigram:
        raise FormatError(f"{name}: there is no line that begins with U or B; at least one must")
    with_macros = tuple(row for row in bigram if row.macros)
    return Template(tuple(unigram), with_macros, len(with_macros) < len(bigram), text)


def as_template(given: Any) -> Template:
    """Return a template that is given as such, as text, or by None: the one for chunking."""
    if isinstance(given, str | None):
        return parse_template(given)
    if not isinstance(given, Template):
        raise ArgumentError(f"template={given!r} must be the text of a template")
    return given


def check_width(template: Template, width: int) -> None:
    """Refuse a template that names a column which data of `width` columns does not have."""
    for row in template.rows:
        for shift, column in row.macros:
            if column >= width:
                raise FormatError(
                    f"the template's row {_text(row)} names column {column} in "
                    f"%x[{shift},{column}], but the data has {width} columns, counted from 0; "
                    f"give data with that column, or a template that does without it"
                )


def _row(line: str, place: str) -> TemplateRow:
    if line[0] not in "UB":
        raise FormatError(f"{place}: {line!r} must begin with U, B or #")
    literals = tuple(_MACRO.split(line)[::3])
    bad = next((literal for literal in literals if "%" in literal), None)
    if bad is not None:
        raise FormatError(
            f"{place}: {bad[bad.index('%') :]!r} is not a macro; write %x[row,column], such as "
            f"%x[-1,0] for column 0 of the token before"
        )
    macros = tuple((int(shift), int(column)) for shift, column in _MACRO.findall(line))
    return TemplateRow(literals, macros)


def _text(row: TemplateRow) -> str:
    return row.fill(tuple(f"%x[{shift},{column}]" for shift, column in row.macros))
