"""From whatever holds a user's atoms to one checked table of whole numbers in DuckDB."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from structlearn._src.common.errors import (
    ArgumentError,
    AtomError,
    DataNotFoundError,
    FormatError,
)
from structlearn._src.rules.source import find_table, identifier, quoted
from structlearn._src.rules.syntax import Atom, Constant

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from structlearn._src.rules.tables import Relation, Tables

#: Whole numbers below stand for themselves; from here on, codes stand for other texts. Half of
#: what fits into 32 bits for each.
TEXTS = 2**30

_WHOLE_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_FRACTION_TYPES = ("FLOAT", "DOUBLE")
_LONGEST = 300  # letters of what DuckDB says in one message


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


class Stage(NamedTuple):
    """How many rows lie in the table ``stage``, and which of their arguments were numbers."""

    length: int
    numbers: tuple[bool, ...]


def stage(tables: Tables, relation: Relation, data: Any, header: bool) -> Stage:
    """Read atoms of a predicate into the table ``stage`` (a0, a1, ..., value).

    Arguments become codes: whole numbers below `TEXTS` stand for themselves, every other text has
    a row in the table ``constants``. Values are 1 where none are given.
    """
    connection = tables.connection
    arity = relation.arity
    with _readable(relation, data):
        parts = _read(tables, relation, data, header)
        for given in parts:
            if given.path is None and len(given.types) not in (arity, arity + 1):
                raise AtomError(_width(relation, given.what, len(given.types)))
        length, n_faults, n_values, *texts = _encode(connection, parts)
        if n_faults or 0 < n_values < length:
            for reason in [_fault(connection, relation, part) for part in parts]:
                if reason:
                    raise AtomError(reason)
    connection.unregister("frame")
    _look_up(connection, [column for column in range(arity) if texts[column]])
    return Stage(length, tuple(map(all, zip(*(part.numbers for part in parts), strict=True))))


def _read(tables: Tables, relation: Relation, data: Any, header: bool) -> list[Given]:
    """Make queries of a frame, of rows, of files, or of the name of a table."""
    connection = tables.connection
    if isinstance(data, str) and tables.source is not None:
        table = find_table(connection, tables.source, data)
        if table:
            return [_named(connection, table, f"the table {data!r}", relation.arity)]
    if isinstance(data, str | Path):
        data = [data]
    if hasattr(data, "collect"):  # a frame of polars that is still to be computed
        data = data.collect()
    if hasattr(data, "columns") or hasattr(data, "__arrow_c_stream__"):
        connection.register("frame", data)
        return [_named(connection, "frame", "the frame", relation.arity)]
    rows = _listed(relation, data)
    if rows and all(isinstance(row, str | Path) for row in rows):
        return [_file(connection, Path(row), relation.arity, header) for row in rows]
    return [_rows(relation, rows)]


def file_paths(data: Any) -> list[str] | None:
    """Return the full paths of the files that were given; None for anything else."""
    several = [data] if isinstance(data, str | Path) else data
    if not isinstance(several, list | tuple) or not several:
        return None
    if not all(isinstance(each, str | Path) for each in several):
        return None
    return [str(Path(each).absolute()) for each in several]


def _listed(relation: Relation, data: Any) -> list[Any]:
    """Return the rows of an array, an iterable, or a mapping from name to column."""
    if isinstance(data, Mapping):
        try:
            return list(zip(*data.values(), strict=True))
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"the columns of {relation.name} are no lists of one length: {error}"
            ) from None
    if hasattr(data, "tolist"):
        data = data.tolist()
    if not isinstance(data, Iterable):
        raise ArgumentError(
            f"{data!r} was given as the atoms of {relation.name}: give a frame, a list of rows, or "
            f"paths"
        )
    return list(data)


@contextmanager
def _readable(relation: Relation, data: Any) -> Iterator[None]:
    """Word what DuckDB cannot read."""
    import duckdb

    unread = (
        duckdb.IOException,
        duckdb.InvalidInputException,
        duckdb.ConversionException,
        duckdb.NotImplementedException,
    )
    try:
        yield
    except unread as error:
        reason = str(error).partition("\n\n")[0].replace("\n", "; ")
        if len(reason) > _LONGEST:
            reason = f"{reason[:_LONGEST]} ..."
        where = f" in {str(data)!r}" if isinstance(data, str | Path) else ""
        raise FormatError(f"the atoms of {relation.name}{where} cannot be read: {reason}") from None


def _named(connection: DuckDBPyConnection, table: str, what: str, arity: int) -> Given:
    names, types, *_ = zip(*connection.execute(f"DESCRIBE FROM {table}").fetchall(), strict=True)
    chosen = ", ".join(f"{identifier(column)} AS c{i}" for i, column in enumerate(names))
    numbers = tuple(kind in (*_WHOLE_TYPES, *_FRACTION_TYPES) for kind in types[:arity])
    return Given(f"SELECT {chosen} FROM {table}", types, what, arity, numbers=numbers)


def _is_row(row: Any) -> bool:
    return (
        hasattr(row, "__len__")
        and not isinstance(row, str | bytes | Mapping | Set)
        and getattr(row, "ndim", 1) > 0
        and not hasattr(row, "nnz")  # a sparse array, which has no length
    )


def _rows(relation: Relation, rows: list[Any]) -> Given:
    """Rows as one parameter for each column: DuckDB unnests them side by side."""
    name, arity = relation.name, relation.arity
    if not all(map(_is_row, rows)):
        raise AtomError(
            f"the rows of {name} must be sequences of {arity} arguments and perhaps a value, "
            f"such as {('a',) * arity!r}; a text alone is the path of a file"
        )
    for i, row in enumerate(rows):
        if len(row) not in (arity, arity + 1):
            raise AtomError(_width(relation, f"row {i + 1}", len(row)))
        if len(row) != len(rows[0]):
            raise AtomError(
                f"row {i + 1} of {name} has {len(row)} columns and row 1 has {len(rows[0])}: give "
                f"all rows a value, or none"
            )
        if any(map(_is_missing, row[:arity])):
            raise AtomError(_missing_argument(relation, f"row {i + 1} of the rows", row))
    columns = list(zip(*rows, strict=True)) or [()] * arity
    cells: list[Any] = [list(map(cell, column)) for column in columns[:arity]]
    types = ("VARCHAR",) * arity
    for values in columns[arity:]:
        is_text = any(isinstance(value, str) for value in values)
        types += ("VARCHAR" if is_text else "DOUBLE",)
        cells.append([value.item() if isinstance(value, np.generic) else value for value in values])
    chosen = ", ".join(f"unnest(?::{kind}[]) AS c{i}" for i, kind in enumerate(types))
    numbers = tuple(not any(isinstance(cell, str) for cell in column) for column in columns[:arity])
    return Given(f"SELECT {chosen}", types, "the rows", arity, cells, numbers=numbers)


def _is_missing(argument: Any) -> bool:
    nan = isinstance(argument, float | np.floating) and argument != argument
    return argument is None or bool(nan) or type(argument).__name__ in ("NAType", "NaTType")


def cell(argument: Any) -> str:
    """The text of an argument: whole numbers are the same in any type."""
    whole = isinstance(argument, float | np.floating) and argument.is_integer()
    return str(int(argument) if whole else argument)


def _file(connection: DuckDBPyConnection, path: Path, arity: int, header: bool) -> Given:
    try:
        found = path.is_file()
    except (OSError, ValueError):  # a name too long, or with a null byte
        found = False
    if not found:
        hint = f", or write {(str(path),)!r} if this is a row" if arity == 1 else ""
        raise DataNotFoundError(f"there is no file {str(path)!r}: check the path{hint}")
    if path.suffix.lower() in (".parquet", ".pq"):
        table = f"read_parquet('{_escaped(path)}', hive_partitioning = false)"
        return _named(connection, table, repr(path.name), arity)
    # Two columns more than arguments: the value, and one that shows that a line is too long.
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(arity + 2))
    query = (
        f"SELECT * FROM read_csv('{_escaped(path)}', header = {header}, columns = {{{columns}}}, "
        f"auto_detect = false, strict_mode = false, null_padding = true, hive_partitioning = false"
    )
    if path.name.lower().removesuffix(".gz").endswith(".csv"):
        # In parallel DuckDB cannot read quoted texts that go over several lines.
        query += """, delim = ',', quote = '"', escape = '"', parallel = false)"""
    else:  # PSL's files have tabs and no quotes, and blanks around a line are no part of it
        query += ", delim = '\t', quote = '', escape = '') WHERE c1 IS NOT NULL OR trim(c0) <> ''"
        query = query.replace("*", f"* REPLACE ({_trimmed(arity)})", 1)
    types = ("VARCHAR",) * (arity + 2)
    return Given(query, types, repr(path.name), arity, [], path, int(header), (True,) * arity)


def _trimmed(arity: int) -> str:
    """The first argument without blanks before it, the last without those behind it."""
    texts = {"c0": "ltrim(c0)"}
    last = f"c{arity - 1}"
    text = texts.get(last, last)
    texts[last] = f"CASE WHEN c{arity} IS NULL THEN rtrim({text}) ELSE {text} END"
    return ", ".join(f"{text} AS {column}" for column, text in texts.items())


def _escaped(path: Path) -> str:
    """A path in SQL that stands for itself, also where it has letters of patterns."""
    return quoted(re.sub(r"[*?\[]", r"[\g<0>]", str(path)))


def _fault(connection: DuckDBPyConnection, relation: Relation, given: Given) -> str:
    """Word what is wrong with the first row that has a fault; empty if none has."""
    name, arity = relation.name, relation.arity
    lines = f"(SELECT row_number() OVER () AS line, * FROM ({given.query}))"
    width = given.wrong_width
    query = (
        f"SELECT line, {width}, * EXCLUDE line FROM {lines} WHERE {width} OR {given.wrong_value} "
        f"ORDER BY line LIMIT 1"
    )
    found = connection.execute(query, given.parameters).fetchall()
    if not found:
        return _uneven(connection, name, given, lines) if given.path else ""
    row, is_width, *cells = found[0]
    where = given.where(row)
    if is_width:
        filled = max((i + 1 for i, cell in enumerate(cells) if cell is not None), default=0)
        if filled in (arity, arity + 1) or not given.path:
            return _missing_argument(relation, where, cells)
        return _width(relation, where, filled)
    return (
        f"{where} gives {atom_text(name, cells[:arity])} the value {cells[arity]!r}: a truth "
        f"value must be a number of [0, 1]"
    )


def _uneven(connection: DuckDBPyConnection, name: str, given: Given, lines: str) -> str:
    """Word that some lines of a file have a value and others none; empty if that is not so."""
    value = f"c{given.arity}"
    firsts = f"min(line) FILTER ({value} IS NULL), min(line) FILTER ({value} IS NOT NULL)"
    without, with_value = connection.execute(f"SELECT {firsts} FROM {lines}").fetchall()[0]
    if without is None or with_value is None:
        return ""
    return (
        f"{given.where(without)} has no value of {name}, but {given.where(with_value)} has: "
        f"give all lines a value, or none"
    )


def _line(path: Path, row: int) -> int:
    """Number of a line, from 1, of which only those that are not empty were counted."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        full = (number for number, line in enumerate(lines, start=1) if line.strip())
        return next(islice(full, row - 1, None), row)


def _missing_argument(relation: Relation, where: str, row: Sequence[Any]) -> str:
    place = next(i for i, argument in enumerate(row, start=1) if _is_missing(argument))
    return f"{where} has no argument {place} of {relation.name}: give all {relation.arity} of them"


def _width(relation: Relation, where: str, width: int) -> str:
    arity = relation.arity
    return (
        f"{where} has {width} column{'s' * (width != 1)}, but {relation.name} takes {arity} "
        f"argument{'s' * (arity != 1)}, and a value may follow: give {arity} or {arity + 1} columns"
    )


def atom_text(name: str, arguments: Sequence[Any]) -> str:
    """Write an atom as rules do."""
    return str(Atom(name, tuple(Constant(str(argument)) for argument in arguments)))


def _text(column: str, kind: str) -> str:
    """An argument as the text that a row of Python would give."""
    if kind in _FRACTION_TYPES:  # frames turn whole numbers into 1.0 when a row is missing
        whole = f"CASE WHEN {column} = floor({column}) THEN TRY_CAST({column} AS HUGEINT) END"
        return f"coalesce(({whole})::VARCHAR, {column}::VARCHAR)"
    if kind == "BOOLEAN":
        return f"CASE {column} WHEN true THEN 'True' WHEN false THEN 'False' END"
    return f"{column}::VARCHAR"


def _encode(connection: DuckDBPyConnection, parts: list[Given]) -> Sequence[int]:
    """Write ``stage``; return its length, its faults, its values, and the texts in each column."""
    queries = " UNION ALL ".join(map(_encoded, parts))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE stage AS {queries}",
        [each for part in parts for each in part.parameters],
    )
    texts = "".join(f", count(t{i})" for i in range(parts[0].arity))
    counts = f"count(*), count(*) FILTER (fault), count(*) FILTER (has_value){texts}"
    return connection.execute(f"SELECT {counts} FROM stage").fetchall()[0]


def _encoded(given: Given) -> str:
    fields = [
        f"{given.value} AS value",
        f"({given.wrong_width} OR {given.wrong_value}) AS fault",
        f"{f'c{given.arity} IS NOT NULL' if given.path else 'true'} AS has_value",
    ]
    for i, kind in enumerate(given.types[: given.arity]):
        text = _text(f"c{i}", kind)
        number = f"c{i}" if kind in _WHOLE_TYPES else f"TRY_CAST({text} AS INTEGER)"
        same = "" if kind in _WHOLE_TYPES else f" AND {number}::VARCHAR = {text}"
        plain = f"{number} BETWEEN 0 AND {TEXTS - 1}{same}"
        fields.append(f"CASE WHEN {plain} THEN {number}::INTEGER END AS a{i}")
        fields.append(f"CASE WHEN {plain} THEN NULL ELSE {text} END AS t{i}")
    return f"SELECT {', '.join(fields)} FROM ({given.query})"


def _look_up(connection: DuckDBPyConnection, columns: Sequence[int]) -> None:
    """Give texts their codes, new ones in order of their letters."""
    if not columns:
        return
    texts = " UNION ALL ".join(f"SELECT t{i} AS t FROM stage" for i in columns)
    connection.execute(
        f"INSERT INTO constants SELECT {TEXTS} + (SELECT count(*) FROM constants) "
        f"+ row_number() OVER (ORDER BY t) - 1, t "
        f"FROM (SELECT DISTINCT t FROM ({texts}) WHERE t IS NOT NULL) "
        f"ANTI JOIN constants ON t = text"
    )
    for i in columns:
        connection.execute(f"UPDATE stage SET a{i} = code FROM constants WHERE t{i} = text")
