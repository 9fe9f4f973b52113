"""From whatever holds a user's atoms to one checked table of whole numbers in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structlearn.common.errors import AtomError, DataNotFoundError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Whole numbers below stand for themselves; from here on, codes stand for other texts.
TEXTS = 2**30

_WHOLE_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_FRACTION_TYPES = ("FLOAT", "DOUBLE")


@dataclass(frozen=True)
class Given:
    """A query over what was given: its columns are named c0, c1, ..."""

    query: str
    parameters: list[Any]
    types: tuple[str, ...]
    what: str
    is_file: bool = False
    parts: tuple[Given, ...] = ()

    @property
    def width(self) -> int:
        """Number of columns; a file always has two more than the arity, empty or not."""
        return len(self.types)


def stage(connection: DuckDBPyConnection, name: str, arity: int, data: Any, header: bool) -> int:
    """Read `data` into the table ``stage`` (a0, a1, ..., value) and return its length.

    Arguments become codes: whole numbers below `TEXTS` stand for themselves, every other text has
    a row in the table ``constants``. Values are 1 where none are given.

    Raises
    ------
    AtomError
        Where a row has too few or too many columns, or a value is no number of [0, 1].
    """
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
    if isinstance(data, str) and _is_table(connection, data):
        return _named(connection, f"source.{_quoted(data)}", f"the table {data!r}")
    if isinstance(data, str | Path):
        data = [data]
    if hasattr(data, "columns") or hasattr(data, "__arrow_c_stream__"):
        connection.register("frame", data)
        return _named(connection, "frame", "the frame")
    rows = data.tolist() if hasattr(data, "tolist") else list(data)
    if rows and all(isinstance(row, str | Path) for row in rows):
        return _files(connection, [Path(row) for row in rows], arity, header)
    return _rows(name, arity, rows)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _is_table(connection: DuckDBPyConnection, name: str) -> bool:
    query = "SELECT count(*) FROM duckdb_tables() WHERE database_name = 'source' AND table_name = ?"
    views = query.replace("tables()", "views()").replace("table_name", "view_name")
    return any(connection.execute(each, [name]).fetchall()[0][0] for each in (query, views))


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


def _cell(argument: Any) -> str:
    whole = isinstance(argument, float) and argument.is_integer()
    return str(int(argument) if whole else argument)


def _files(
    connection: DuckDBPyConnection, paths: Sequence[Path], arity: int, header: bool
) -> Given:
    for path in paths:
        if not path.is_file():
            raise DataNotFoundError(f"there is no file {str(path)!r}: check the path")
    if all(path.suffix in (".parquet", ".pq") for path in paths):
        listed = ", ".join(f"'{_escaped(path)}'" for path in paths)
        what = ", ".join(repr(path.name) for path in paths)
        return _named(connection, f"read_parquet([{listed}])", what)
    parts = tuple(_text_file(path, arity, header) for path in paths)
    union = " UNION ALL ".join(part.query for part in parts)
    return Given(union, [], parts[0].types, "", is_file=True, parts=parts)


def _text_file(path: Path, arity: int, header: bool) -> Given:
    # Two columns more than arguments: the value, and one that shows that a line is too long.
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(arity + 2))
    query = (
        f"SELECT * FROM read_csv('{_escaped(path)}', {_dialect(path)}, header = {header}, "
        f"columns = {{{columns}}}, auto_detect = false, strict_mode = false, null_padding = true)"
    )
    return Given(query, [], ("VARCHAR",) * (arity + 2), repr(path.name), is_file=True)


def _escaped(path: Path) -> str:
    return str(path).replace("'", "''")


def _dialect(path: Path) -> str:
    """PSL's files have tabs and no quotes."""
    if path.name.removesuffix(".gz").endswith(".csv"):
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
    """Word what is wrong with the first row that has a fault; empty and head lines do not count."""
    width, value = _faults(given, arity)
    query = (
        f"SELECT line, {width}, * EXCLUDE line FROM (SELECT row_number() OVER () AS line, * "
        f"FROM ({given.query})) WHERE {width} OR {value} ORDER BY line LIMIT 1"
    )
    found = connection.execute(query, given.parameters).fetchall()
    if not found:
        return ""
    line, is_width, *cells = found[0]
    where = f"{'line' if given.is_file else 'row'} {line} of {given.what}"
    if is_width:
        return _width(name, arity, where, sum(cell is not None for cell in cells))
    return (
        f"{where} gives {atom_text(name, cells[:arity])} the value {cells[arity]!r}: a truth "
        f"value must be a number of [0, 1]"
    )


def _width(name: str, arity: int, where: str, width: int) -> str:
    return (
        f"{where} has {width} column{'s' * (width != 1)}, but {name} takes {arity} "
        f"argument{'s' * (arity != 1)}, and a value may follow: give {arity} or {arity + 1} columns"
    )


def atom_text(name: str, arguments: Sequence[Any]) -> str:
    """Write an atom as rules do."""
    return f"{name}({', '.join(repr(str(argument)) for argument in arguments)})"


def _text(column: str, kind: str) -> str:
    if kind in _FRACTION_TYPES:  # frames turn whole numbers into 1.0 when a row is missing
        whole = f"{column} = floor({column})"
        return f"CASE WHEN {whole} THEN {column}::BIGINT::VARCHAR ELSE {column}::VARCHAR END"
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
