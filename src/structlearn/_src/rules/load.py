"""From whatever holds a user's atoms to one checked table of whole numbers in DuckDB."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structlearn._src.common.errors import (
    ArgumentError,
    AtomError,
    DataNotFoundError,
    FormatError,
)
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
    parameters: list[Any]
    types: tuple[str, ...]
    what: str
    path: Path | None = None
    head: int = 0  # lines before the first row
    parts: tuple[Given, ...] = ()

    @property
    def is_file(self) -> bool:
        """Whether it is text, or several files of it."""
        return self.path is not None or bool(self.parts)

    @property
    def width(self) -> int:
        """Number of columns; a file always has two more than the arity, empty or not."""
        return len(self.types)


def stage(connection: DuckDBPyConnection, name: str, arity: int, data: Any, header: bool) -> int:
    """Read `data` into the table ``stage`` (a0, a1, ..., value) and return its length.

    Arguments become codes: whole numbers below `TEXTS` stand for themselves, every other text has
    a row in the table ``constants``. Values are 1 where none are given.
    """
    with _readable(name, data):
        given = read(connection, name, arity, data, header)
        if not given.is_file and given.width not in (arity, arity + 1):
            raise AtomError(_width(name, arity, given.what, given.width))
        length, faults, texts = _encode(connection, arity, given)
        if faults:
            wrong = (_fault(connection, name, arity, part) for part in given.parts or (given,))
            raise AtomError(next(filter(None, wrong)))
    connection.unregister("frame")
    _look_up(connection, [column for column in range(arity) if texts[column]])
    return length


def read(connection: DuckDBPyConnection, name: str, arity: int, data: Any, header: bool) -> Given:
    """Make a query of a frame, of rows, of files, or of the name of a table."""
    table = _find_table(connection, data) if isinstance(data, str) else ""
    if table:
        return _named(connection, table, f"the table {data!r}")
    if isinstance(data, str | Path):
        data = [data]
    if hasattr(data, "collect"):  # a frame of polars that is still to be computed
        data = data.collect()
    if hasattr(data, "columns") or hasattr(data, "__arrow_c_stream__"):
        connection.register("frame", data)
        return _named(connection, "frame", "the frame")
    rows = _listed(name, data)
    if rows and all(isinstance(row, str | Path) for row in rows):
        return _files(connection, [Path(row) for row in rows], arity, header)
    return _rows(name, arity, rows)


def _listed(name: str, data: Any) -> list[Any]:
    """Rows, also of columns by name."""
    if isinstance(data, Mapping):
        data = zip(*data.values(), strict=True)
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


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _find_table(connection: DuckDBPyConnection, name: str) -> str:
    """The full name of a table or a view of the source; empty if there is none."""
    found = connection.execute(
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_catalog = 'source' AND lower(?) IN "
        "(lower(table_name), lower(table_schema || '.' || table_name)) "
        "ORDER BY table_schema <> 'main', table_schema, table_name",
        [name],
    ).fetchall()
    return ".".join(["source", *map(_quoted, found[0])]) if found else ""


def _described(connection: DuckDBPyConnection, query: str) -> list[tuple[str, str]]:
    described = connection.execute(f"DESCRIBE {query}").fetchall()
    return [(column[0], column[1]) for column in described]


def _named(connection: DuckDBPyConnection, table: str, what: str) -> Given:
    columns = _described(connection, f"SELECT * FROM {table}")
    chosen = ", ".join(f"{_quoted(column)} AS c{i}" for i, (column, _) in enumerate(columns))
    return Given(f"SELECT {chosen} FROM {table}", [], tuple(kind for _, kind in columns), what)


def _rows(name: str, arity: int, rows: list[Any]) -> Given:
    """Rows as one parameter for each column: DuckDB unnests them side by side."""
    if any(isinstance(row, str | bytes) or not hasattr(row, "__len__") for row in rows):
        raise AtomError(
            f"the rows of {name} must be sequences of {arity} arguments and perhaps a value, "
            f"such as {('a',) * arity!r}; a text alone is the path of a file"
        )
    widths = set(map(len, rows)) or {arity}
    if len(widths) > 1 or not widths <= {arity, arity + 1}:
        line = next(i for i, row in enumerate(rows) if len(row) != arity)
        line = next((i for i, r in enumerate(rows) if len(r) not in (arity, arity + 1)), line)
        raise AtomError(_width(name, arity, f"row {line + 1}", len(rows[line])))
    width = widths.pop()
    lost = next((i for i, row in enumerate(rows) if any(map(_is_lost, row[:arity]))), None)
    if lost is not None:
        raise AtomError(_lost(name, f"row {lost + 1} of the rows", list(rows[lost][:arity])))
    columns: list[Any] = [
        list(map(_cell, column)) for column in list(zip(*rows, strict=True))[:arity]
    ]
    columns = columns or [[] for _ in range(arity)]
    types = ("VARCHAR",) * arity
    if width > arity:
        values = [row[arity] for row in rows]
        columns.append(values)
        types += ("VARCHAR" if any(isinstance(value, str) for value in values) else "DOUBLE",)
    chosen = ", ".join(f"unnest(?::{kind}[]) AS c{i}" for i, kind in enumerate(types))
    return Given(f"SELECT {chosen}", columns, types, "the rows")


def _is_lost(argument: Any) -> bool:
    return argument is None or (isinstance(argument, float) and argument != argument)


def _cell(argument: Any) -> str:
    whole = isinstance(argument, float) and argument.is_integer()
    return str(int(argument) if whole else argument)


def _files(
    connection: DuckDBPyConnection, paths: Sequence[Path], arity: int, header: bool
) -> Given:
    for path in paths:
        if not path.is_file():
            hint = f", or write {(str(path),)!r} if this is a row" if arity == 1 else ""
            raise DataNotFoundError(f"there is no file {str(path)!r}: check the path{hint}")
    kinds = {path.suffix.lower() in (".parquet", ".pq") for path in paths}
    if len(kinds) > 1:
        raise ArgumentError("files of Parquet and of text are given together: give them in turn")
    if kinds == {True}:
        listed = ", ".join(f"'{_escaped(path)}'" for path in paths)
        what = ", ".join(repr(path.name) for path in paths)
        return _named(connection, f"read_parquet([{listed}])", what)
    parts = tuple(_text_file(path, arity, header) for path in paths)
    union = " UNION ALL ".join(part.query for part in parts)
    return Given(union, [], parts[0].types, "", parts=parts)


def _text_file(path: Path, arity: int, header: bool) -> Given:
    # Two columns more than arguments: the value, and one that shows that a line is too long.
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(arity + 2))
    query = (
        f"SELECT * FROM read_csv('{_escaped(path)}', {_dialect(path)}, header = {header}, "
        f"columns = {{{columns}}}, auto_detect = false, strict_mode = false, null_padding = true)"
    )
    return Given(query, [], ("VARCHAR",) * (arity + 2), repr(path.name), path, int(header))


def _escaped(path: Path) -> str:
    return str(path).replace("'", "''")


def _dialect(path: Path) -> str:
    """PSL's files have tabs and no quotes."""
    if path.name.lower().removesuffix(".gz").endswith(".csv"):
        return """delim = ',', quote = '"', escape = '"'"""
    return "delim = '\t', quote = '', escape = ''"


def _value(given: Given, arity: int) -> str:
    """The value as a number, NaN where it is none; a file may leave it out line by line."""
    if given.width == arity:
        return "1.0::DOUBLE"
    number = f"coalesce(TRY_CAST(c{arity} AS DOUBLE), 'nan')"
    return f"CASE WHEN c{arity} IS NULL THEN 1.0 ELSE {number} END" if given.is_file else number


def _faults(given: Given, arity: int) -> tuple[str, str]:
    """Conditions on a row that has the wrong width, and on one with a bad value."""
    width = " OR ".join(f"c{i} IS NULL" for i in range(arity)) or "false"
    if given.is_file:
        width += f" OR c{arity + 1} IS NOT NULL"
    return width, f"NOT {_value(given, arity)} BETWEEN 0 AND 1"


def _fault(connection: DuckDBPyConnection, name: str, arity: int, given: Given) -> str:
    """Word what is wrong with the first row that has a fault."""
    width, value = _faults(given, arity)
    query = (
        f"SELECT line, {width}, * EXCLUDE line FROM (SELECT row_number() OVER () AS line, * "
        f"FROM ({given.query})) WHERE {width} OR {value} ORDER BY line LIMIT 1"
    )
    found = connection.execute(query, given.parameters).fetchall()
    if not found:
        return ""
    row, is_width, *cells = found[0]
    where = f"row {row} of {given.what}"
    if given.path is not None:
        where = f"line {_line(given.path, given.head + row)} of {given.what}"
    if is_width:
        filled = max((i + 1 for i, cell in enumerate(cells) if cell is not None), default=0)
        if filled in (arity, arity + 1) or not given.is_file:
            return _lost(name, where, cells[:arity])
        return _width(name, arity, where, filled)
    return (
        f"{where} gives {atom_text(name, cells[:arity])} the value {cells[arity]!r}: a truth "
        f"value must be a number of [0, 1]"
    )


def _line(path: Path, row: int) -> int:
    """Number of a line, from 1, of which only those that are not empty were counted."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        full = (number for number, line in enumerate(lines, start=1) if line.strip(b"\r\n"))
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
    if kind in _FRACTION_TYPES:  # frames turn whole numbers into 1.0 when a row is missing
        whole = f"CASE WHEN {column} = floor({column}) THEN TRY_CAST({column} AS HUGEINT) END"
        return f"coalesce(({whole})::VARCHAR, {column}::VARCHAR)"
    return f"{column}::VARCHAR"


def _encode(
    connection: DuckDBPyConnection, arity: int, given: Given
) -> tuple[int, int, Sequence[int]]:
    """Write ``stage``; return its length, its faulty rows, and the texts in each column."""
    width, value = _faults(given, arity)
    fields = [f"{_value(given, arity)} AS value", f"({width} OR {value}) AS fault"]
    for i, kind in enumerate(given.types[:arity]):
        text = _text(f"c{i}", kind)
        number = f"c{i}" if kind in _WHOLE_TYPES else f"TRY_CAST({text} AS INTEGER)"
        same = "" if kind in _WHOLE_TYPES else f" AND {number}::VARCHAR = {text}"
        plain = f"{number} BETWEEN 0 AND {TEXTS - 1}{same}"
        fields.append(f"CASE WHEN {plain} THEN {number}::INTEGER END AS a{i}")
        fields.append(f"CASE WHEN {plain} THEN NULL ELSE {text} END AS t{i}")
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE stage AS SELECT {', '.join(fields)} FROM ({given.query})",
        given.parameters,
    )
    texts = "".join(f", count(t{i})" for i in range(arity))
    query = f"SELECT count(*), count(*) FILTER (fault){texts} FROM stage"
    length, faults, *counts = connection.execute(query).fetchall()[0]
    return length, faults, counts


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
