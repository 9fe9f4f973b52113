"""From whatever holds a user's atoms to one checked table of whole numbers in DuckDB."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from structlearn._src.common.errors import (
    ArgumentError,
    AtomError,
    DataNotFoundError,
    FormatError,
)
from structlearn._src.rules.few import TEXTS, encode, plain_rows
from structlearn._src.rules.given import Given, fault, is_missing, missing_argument, width
from structlearn._src.rules.lines import Lines
from structlearn._src.rules.source import find_table, identifier, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from structlearn._src.rules.tables import Relation, Tables

_WHOLE_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_FRACTION_TYPES = ("FLOAT", "DOUBLE")
_MANY = (bytes, list, tuple, dict, set, np.ndarray)  # no arguments, though they have a text
_LONGEST = 300  # letters of what DuckDB says in one message


class Stage(NamedTuple):
    """How many rows lie in the table ``stage``, and which of their arguments were numbers.

    Few rows are here instead: a list for each argument, their values, and their places.
    """

    length: int
    numbers: tuple[bool, ...]
    columns: list[list[Any]] | None = None


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
                raise AtomError(width(relation, given.what, len(given.types)))
        numbers = tuple(map(all, zip(*(part.numbers for part in parts), strict=True)))
        columns = encode(connection, relation, parts)
        if columns is not None:
            return Stage(len(columns[0]), numbers, columns)
        length, n_faults, n_values, *texts = _encode(connection, parts)
        if n_faults or 0 < n_values < length:
            for reason in [fault(connection, relation, part) for part in parts]:
                if reason:
                    raise AtomError(reason)
    connection.unregister("frame")
    _look_up(connection, [column for column in range(arity) if texts[column]])
    return Stage(length, numbers)


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
        return [_file(connection, Path(row), relation, header) for row in rows]
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
            raise AtomError(width(relation, f"row {i + 1}", len(row)))
        if len(row) != len(rows[0]):
            raise AtomError(
                f"row {i + 1} of {name} has {len(row)} columns and row 1 has {len(rows[0])}: give "
                f"all rows a value, or none"
            )
        if any(map(is_missing, row[:arity])):
            raise AtomError(missing_argument(relation, f"row {i + 1} of the rows", row))
    columns = list(zip(*rows, strict=True)) or [()] * arity
    cells: list[Any] = [list(map(cell, column)) for column in columns[:arity]]
    types = ("VARCHAR",) * arity
    for values in columns[arity:]:
        is_text = any(isinstance(value, str) for value in values)
        types += ("VARCHAR" if is_text else "DOUBLE",)
        cells.append([value.item() if isinstance(value, np.generic) else value for value in values])
    chosen = ", ".join(f"unnest(?::{kind}[]) AS c{i}" for i, kind in enumerate(types))
    numbers = tuple(not any(isinstance(cell, str) for cell in column) for column in columns[:arity])
    query = f"SELECT {chosen}"
    few = plain_rows(cells, arity)
    return Given(query, types, "the rows", arity, cells, numbers=numbers, rows=few)


def cell(argument: Any) -> str:
    """The text of an argument: whole numbers are the same in any type."""
    if isinstance(argument, _MANY):
        raise AtomError(
            f"the argument {reprlib.repr(argument)} is of type {type(argument).__name__}: give a "
            f"text or a number"
        )
    whole = isinstance(argument, float | np.floating) and argument.is_integer()
    return str(int(argument) if whole else argument)


def _file(connection: DuckDBPyConnection, path: Path, relation: Relation, header: bool) -> Given:
    arity = relation.arity
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
    lines = Lines(path, relation, header)
    lines.check()
    if lines.is_csv:
        # In parallel DuckDB cannot read quoted texts that go over several lines.
        query += """, delim = ',', quote = '"', escape = '"', parallel = false)"""
    else:  # PSL's files have tabs and no quotes, and blanks around a line are no part of it
        cells = ", ".join(f"c{i}" for i in range(arity + 2))
        query += f", delim = '\t', quote = '', escape = '') WHERE trim(concat({cells})) <> ''"
        query = query.replace("*", f"* REPLACE ({_trimmed(arity)})", 1)
    types = ("VARCHAR",) * (arity + 2)
    what = repr(path.name)
    numbers = (True,) * arity
    return Given(query, types, what, arity, [], path, int(header), numbers, lines.rows())


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
