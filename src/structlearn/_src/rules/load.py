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
from structlearn._src.rules.database import Database, identifier, quoted
from structlearn._src.rules.syntax import Atom, Constant
from structlearn._src.rules.write import write_atom

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

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
    parameters: list[Any] = field(default_factory=list)
    path: Path | None = None  #: of a text file, whose columns are text and may be empty
    head: int = 0  #: lines before the first row
    numbers: tuple[bool, ...] = ()  #: which columns were given as numbers


class Stage(NamedTuple):
    """How many rows lie in the table ``stage``, and which of their arguments were numbers."""

    length: int
    numbers: tuple[bool, ...]


def stage(database: Database, name: str, arity: int, data: Any, header: bool) -> Stage:
    """Read `data` into the table ``stage`` (a0, a1, ..., value).

    Arguments become codes: whole numbers below `TEXTS` stand for themselves, every other text has
    a row in the table ``constants``. Values are 1 where none are given.
    """
    connection = database.connection
    with _readable(name, data):
        parts = read(database, name, arity, data, header)
        for given in parts:
            if given.path is None and len(given.types) not in (arity, arity + 1):
                raise AtomError(_width(name, arity, given.what, len(given.types)))
        length, n_faults, n_values, *texts = _encode(connection, arity, parts)
        if n_faults or 0 < n_values < length:
            wrong = [_fault(connection, name, arity, part) for part in parts]
            if any(wrong):
                raise AtomError(next(filter(None, wrong)))
    connection.unregister("frame")
    _look_up(connection, [column for column in range(arity) if texts[column]])
    return Stage(length, tuple(map(all, zip(*(part.numbers for part in parts), strict=True))))


def read(database: Database, name: str, arity: int, data: Any, header: bool) -> list[Given]:
    """Make queries of a frame, of rows, of files, or of the name of a table."""
    connection = database.connection
    table = database.find_table(data) if isinstance(data, str) else ""
    if table:
        return [_named(connection, table, f"the table {data!r}", arity)]
    if isinstance(data, str | Path):
        data = [data]
    if hasattr(data, "collect"):  # a frame of polars that is still to be computed
        data = data.collect()
    if hasattr(data, "columns") or hasattr(data, "__arrow_c_stream__"):
        connection.register("frame", data)
        return [_named(connection, "frame", "the frame", arity)]
    rows = _listed(name, data)
    if rows and all(isinstance(row, str | Path) for row in rows):
        return [_file(connection, Path(row), arity, header) for row in rows]
    return [_rows(name, arity, rows)]


def _listed(name: str, data: Any) -> list[Any]:
    """Rows, also of columns by name."""
    if isinstance(data, Mapping):
        try:
            return list(zip(*data.values(), strict=True))
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"the columns of {name} are no lists of one length: {error}"
            ) from None
    if hasattr(data, "tolist"):
        data = data.tolist()
    if not isinstance(data, Iterable):
        raise ArgumentError(
            f"{data!r} was given as the atoms of {name}: give a frame, a list of rows, or paths"
        )
    return list(data)


@contextmanager
def _readable(name: str, data: Any) -> Iterator[None]:
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
        raise FormatError(f"the atoms of {name}{where} cannot be read: {reason}") from None


def _named(connection: DuckDBPyConnection, table: str, what: str, arity: int) -> Given:
    names, types, *_ = zip(*connection.execute(f"DESCRIBE FROM {table}").fetchall(), strict=True)
    chosen = ", ".join(f"{identifier(column)} AS c{i}" for i, column in enumerate(names))
    numbers = tuple(kind in (*_WHOLE_TYPES, *_FRACTION_TYPES) for kind in types[:arity])
    return Given(f"SELECT {chosen} FROM {table}", types, what, numbers=numbers)


def _is_row(row: Any) -> bool:
    return (
        hasattr(row, "__len__")
        and not isinstance(row, str | bytes | Mapping | Set)
        and getattr(row, "ndim", 1) > 0
    )


def _rows(name: str, arity: int, rows: list[Any]) -> Given:
    """Rows as one parameter for each column: DuckDB unnests them side by side."""
    if not all(map(_is_row, rows)):
        raise AtomError(
            f"the rows of {name} must be sequences of {arity} arguments and perhaps a value, "
            f"such as {('a',) * arity!r}; a text alone is the path of a file"
        )
    widths = set(map(len, rows)) or {arity}
    for i, row in enumerate(rows):
        if len(row) not in (arity, arity + 1):
            raise AtomError(_width(name, arity, f"row {i + 1}", len(row)))
        if len(row) != len(rows[0]):
            raise AtomError(
                f"row {i + 1} of {name} has {len(row)} columns and row 1 has {len(rows[0])}: give "
                f"all rows a value, or none"
            )
        if any(map(_is_lost, row[:arity])):
            raise AtomError(_lost(name, f"row {i + 1} of the rows", list(row[:arity])))
    columns = list(zip(*rows, strict=True)) or [()] * arity
    cells: list[Any] = [list(map(cell, column)) for column in columns[:arity]]
    types = ("VARCHAR",) * arity
    if widths == {arity + 1}:
        is_text = any(isinstance(value, str) for value in columns[arity])
        cells.append([_truth(value) for value in columns[arity]])
        types += ("VARCHAR" if is_text else "DOUBLE",)
    chosen = ", ".join(f"unnest(?::{kind}[]) AS c{i}" for i, kind in enumerate(types))
    numbers = tuple(not any(isinstance(cell, str) for cell in column) for column in columns[:arity])
    return Given(f"SELECT {chosen}", types, "the rows", cells, numbers=numbers)


def _truth(value: Any) -> Any:
    """A value as Python has it, also of NumPy's types."""
    return value.item() if isinstance(value, np.generic) else value


def _is_lost(argument: Any) -> bool:
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
    return Given(query, types, repr(path.name), [], path, int(header), (True,) * arity)


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


def _value(given: Given, arity: int) -> str:
    """The value as a number, NaN where it is none; a file may have none at all."""
    if len(given.types) == arity:
        return "1.0::DOUBLE"
    number = f"coalesce(TRY_CAST(c{arity} AS DOUBLE), 'nan')"
    return f"CASE WHEN c{arity} IS NULL THEN 1.0 ELSE {number} END" if given.path else number


def _faults(given: Given, arity: int) -> tuple[str, str]:
    """Conditions on a row that has the wrong width, and on one with a bad value."""
    width = " OR ".join(f"c{i} IS NULL" for i in range(arity))
    if given.path:
        width += f" OR c{arity + 1} IS NOT NULL"
    return width, f"NOT {_value(given, arity)} BETWEEN 0 AND 1"


def _fault(connection: DuckDBPyConnection, name: str, arity: int, given: Given) -> str:
    """Word what is wrong with the first row that has a fault; empty if none has."""
    width, value = _faults(given, arity)
    lines = f"(SELECT row_number() OVER () AS line, * FROM ({given.query}))"
    query = (
        f"SELECT line, {width}, * EXCLUDE line FROM {lines} WHERE {width} OR {value} "
        f"ORDER BY line LIMIT 1"
    )
    found = connection.execute(query, given.parameters).fetchall()
    if not found:
        return _uneven(connection, name, arity, given, lines) if given.path else ""
    row, is_width, *cells = found[0]
    where = _where(given, row)
    if is_width:
        filled = max((i + 1 for i, cell in enumerate(cells) if cell is not None), default=0)
        if filled in (arity, arity + 1) or not given.path:
            return _lost(name, where, cells[:arity])
        return _width(name, arity, where, filled)
    return (
        f"{where} gives {atom_text(name, cells[:arity])} the value {cells[arity]!r}: a truth "
        f"value must be a number of [0, 1]"
    )


def _uneven(connection: DuckDBPyConnection, name: str, arity: int, given: Given, lines: str) -> str:
    """Word that some lines of a file have a value and others none; empty if that is not so."""
    firsts = f"min(line) FILTER (c{arity} IS NULL), min(line) FILTER (c{arity} IS NOT NULL)"
    without, with_value = connection.execute(f"SELECT {firsts} FROM {lines}").fetchall()[0]
    if without is None or with_value is None:
        return ""
    return (
        f"{_where(given, without)} has no value of {name}, but {_where(given, with_value)} has: "
        f"give all lines a value, or none"
    )


def _where(given: Given, row: int) -> str:
    if given.path is None:
        return f"row {row} of {given.what}"
    return f"line {_line(given.path, given.head + row)} of {given.what}"


def _line(path: Path, row: int) -> int:
    """Number of a line, from 1, of which only those that are not empty were counted."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        full = (number for number, line in enumerate(lines, start=1) if line.strip())
        return next(islice(full, row - 1, None), row)


def _lost(name: str, where: str, arguments: Sequence[Any]) -> str:
    place = next(i for i, argument in enumerate(arguments, start=1) if _is_lost(argument))
    return f"{where} has no argument {place} of {name}: give all {len(arguments)} of them"


def _width(name: str, arity: int, where: str, width: int) -> str:
    return (
        f"{where} has {width} column{'s' * (width != 1)}, but {name} takes {arity} "
        f"argument{'s' * (arity != 1)}, and a value may follow: give {arity} or {arity + 1} columns"
    )


def atom_text(name: str, arguments: Sequence[Any]) -> str:
    """Write an atom as rules do."""
    return write_atom(Atom(name, tuple(Constant(str(argument)) for argument in arguments)))


def _text(column: str, kind: str) -> str:
    """An argument as the text that a row of Python would give."""
    if kind in _FRACTION_TYPES:  # frames turn whole numbers into 1.0 when a row is missing
        whole = f"CASE WHEN {column} = floor({column}) THEN TRY_CAST({column} AS HUGEINT) END"
        return f"coalesce(({whole})::VARCHAR, {column}::VARCHAR)"
    if kind == "BOOLEAN":
        return f"CASE {column} WHEN true THEN 'True' WHEN false THEN 'False' END"
    return f"{column}::VARCHAR"


def _encode(connection: DuckDBPyConnection, arity: int, parts: list[Given]) -> Sequence[int]:
    """Write ``stage``; return its length, its faults, its values, and the texts in each column."""
    queries = " UNION ALL ".join(_encoded(part, arity) for part in parts)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE stage AS {queries}",
        [each for part in parts for each in part.parameters],
    )
    texts = "".join(f", count(t{i})" for i in range(arity))
    counts = f"count(*), count(*) FILTER (fault), count(*) FILTER (has_value){texts}"
    return connection.execute(f"SELECT {counts} FROM stage").fetchall()[0]


def _encoded(given: Given, arity: int) -> str:
    width, value = _faults(given, arity)
    has_value = f"c{arity} IS NOT NULL" if given.path else "true"
    fields = [
        f"{_value(given, arity)} AS value",
        f"({width} OR {value}) AS fault",
        f"{has_value} AS has_value",
    ]
    for i, kind in enumerate(given.types[:arity]):
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


def column_names(data: Any, n: int) -> list[str] | None:
    """Return the names of the first `n` columns of a frame; None of what has no names."""
    if isinstance(data, Mapping):
        names: Any = list(data)
    elif hasattr(data, "collect_schema"):  # polars, whose lazy frames warn of their columns
        names = data.collect_schema().names()
    else:
        names = getattr(data, "column_names", getattr(data, "columns", None))
    if names is None or isinstance(names, str) or len(names) < n:
        return None
    found = [str(name) for name in names[:n]] if not callable(names) else []
    return found if len({*found, "value"}) == n + 1 else None
