"""What was given as atoms: a query, perhaps the rows themselves, and words for what is wrong."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from structlearn._src.rules.syntax import Atom, Constant

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from structlearn._src.rules.tables import Relation


@dataclass(frozen=True)
class Given:
    """A query over what was given: its columns are named c0, c1, ..."""

    query: str
    types: tuple[str, ...]  #: of the columns; a file always has two more than the arity
    what: str
    arity: int
    parameters: list[Any] = field(default_factory=list)
    path: Path | None = None  #: of a text file, whose columns are text and may be empty
    head: int = 0  #: lines before the first row
    numbers: tuple[bool, ...] = ()  #: which columns were given as numbers
    rows: Sequence[Sequence[Any]] | None = (
        None  #: what the query gives, where they are few and plain
    )

    @property
    def value(self) -> str:
        """The value as a number, NaN where it is none; a file may have none at all."""
        if len(self.types) == self.arity:
            return "1.0::DOUBLE"
        given = f"c{self.arity}"
        number = f"coalesce(TRY_CAST({given} AS DOUBLE), 'nan')"
        return f"CASE WHEN {given} IS NULL THEN 1.0 ELSE {number} END" if self.path else number

    @property
    def wrong_width(self) -> str:
        """The condition that a row has too few or too many columns."""
        width = " OR ".join(f"c{i} IS NULL" for i in range(self.arity))
        return f"{width} OR c{self.arity + 1} IS NOT NULL" if self.path else width

    @property
    def wrong_value(self) -> str:
        """The condition that the value of a row is none."""
        return f"NOT {self.value} BETWEEN 0 AND 1"

    def where(self, row: int) -> str:
        """Say which row, or which line of a file."""
        if self.path is None:
            return f"row {row} of {self.what}"
        return f"line {_line(self.path, self.head + row)} of {self.what}"


def fault(connection: DuckDBPyConnection, relation: Relation, given: Given) -> str:
    """Word what is wrong with the first row that has a fault; empty if none has."""
    lines = f"(SELECT row_number() OVER () AS line, * FROM ({given.query}))"
    width = given.wrong_width
    query = (
        f"SELECT line, {width}, * EXCLUDE line FROM {lines} WHERE {width} OR {given.wrong_value} "
        f"ORDER BY line LIMIT 1"
    )
    found = connection.execute(query, given.parameters).fetchall()
    if found:
        row, is_width, *cells = found[0]
        return fault_of(relation, given, row, is_width, cells)
    if not given.path:
        return ""
    value = f"c{given.arity}"
    firsts = f"min(line) FILTER ({value} IS NULL), min(line) FILTER ({value} IS NOT NULL)"
    return uneven(
        relation, given, *connection.execute(f"SELECT {firsts} FROM {lines}").fetchall()[0]
    )


def fault_of(
    relation: Relation, given: Given, row: int, is_width: bool, cells: Sequence[Any]
) -> str:
    """Word what is wrong with a row: its width, or else its value."""
    name, arity = relation.name, relation.arity
    where = given.where(row)
    if is_width:
        filled = max((i + 1 for i, cell in enumerate(cells) if cell is not None), default=0)
        if filled in (arity, arity + 1) or not given.path:
            return missing_argument(relation, where, cells)
        return width(relation, where, filled)
    return (
        f"{where} gives {atom_text(name, cells[:arity])} the value {cells[arity]!r}: a truth "
        f"value must be a number of [0, 1]"
    )


def uneven(relation: Relation, given: Given, without: int | None, with_value: int | None) -> str:
    """Word that a line of a file has a value and another none; empty if one of them is None."""
    if without is None or with_value is None:
        return ""
    return (
        f"{given.where(without)} has no value of {relation.name}, but {given.where(with_value)} "
        f"has: give all lines a value, or none"
    )


def _line(path: Path, row: int) -> int:
    """Number of a line, from 1, of which only those that are not empty were counted."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        full = (number for number, line in enumerate(lines, start=1) if line.strip())
        return next(islice(full, row - 1, None), row)


def is_missing(argument: Any) -> bool:
    """Whether an argument is None or NaN, of any library."""
    nan = isinstance(argument, float | np.floating) and argument != argument
    return argument is None or bool(nan) or type(argument).__name__ in ("NAType", "NaTType")


def missing_argument(relation: Relation, where: str, row: Sequence[Any]) -> str:
    """Word that a row lacks an argument."""
    place = next(i for i, argument in enumerate(row, start=1) if is_missing(argument))
    return f"{where} has no argument {place} of {relation.name}: give all {relation.arity} of them"


def width(relation: Relation, where: str, given: int) -> str:
    """Word that a row has too few or too many columns."""
    arity = relation.arity
    return (
        f"{where} has {given} column{'s' * (given != 1)}, but {relation.name} takes {arity} "
        f"argument{'s' * (arity != 1)}, and a value may follow: give {arity} or {arity + 1} columns"
    )


def atom_text(name: str, arguments: Sequence[Any]) -> str:
    """Write an atom as rules do."""
    return str(Atom(name, tuple(Constant(str(argument)) for argument in arguments)))
