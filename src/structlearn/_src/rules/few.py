"""Few atoms, made into codes in Python: DuckDB plans its queries for longer than they take."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from structlearn._src.common.errors import AtomError
from structlearn._src.rules.given import Given, fault_of, uneven

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from structlearn._src.rules.tables import Relation, Tables

#: Whole numbers below stand for themselves; from here on, codes stand for other texts. Half of
#: what fits into 32 bits for each.
TEXTS = 2**30

_FEW = 1000  # rows, beyond which DuckDB is quicker; measured
_DIGITS = 10  # of the largest number that stands for itself
#: Values that Python and DuckDB read alike, however they round.
_NUMBER = re.compile(r"\d{1,300}(\.\d{1,300})?([eE][-+]?\d{1,3})?", re.ASCII)


def whole(text: str) -> int | None:
    """The whole number that a text stands for, as its own code; None for any other text."""
    if len(text) > _DIGITS or not (text.isdecimal() and text.isascii()):
        return None
    number = int(text)
    return number if number < TEXTS and str(number) == text else None


def plain_rows(columns: Sequence[Sequence[Any]], arity: int) -> list[Sequence[Any]] | None:
    """Rows of texts and perhaps values, where they are few and have no fault."""
    if len(columns[0]) > _FEW:
        return None
    for values in columns[arity:]:
        if not all(type(value) in (int, float) and 0 <= value <= 1 for value in values):
            return None
    return list(zip(*columns, strict=True))


def encode(
    connection: DuckDBPyConnection, relation: Relation, parts: Sequence[Given]
) -> list[list[Any]] | None:
    """A list of codes for each argument, values and places of rows; None where they are not few."""
    rows: list[Sequence[Any]] = []
    values: list[float] = []
    for part in parts:
        if part.rows is None or len(rows) + len(part.rows) > _FEW:
            return None
        rows += part.rows
    for part in parts:
        values += _values(connection, relation, part, part.rows or [])
    columns = [[row[i] for row in rows] for i in range(relation.arity)]
    codes = _codes(connection, set(chain(*columns)))
    return [*([codes[text] for text in column] for column in columns), values, [*range(len(rows))]]


def _values(
    connection: DuckDBPyConnection, relation: Relation, given: Given, rows: Sequence[Sequence[Any]]
) -> list[float]:
    """The value of every row; the first fault of a file is an error."""
    arity = relation.arity
    if given.path is None:
        return [float(row[arity]) if len(row) > arity else 1.0 for row in rows]
    texts = [row[arity] for row in rows]
    values = _numbers(connection, texts)
    for number, (row, value) in enumerate(zip(rows, values, strict=True), start=1):
        is_width = None in row[:arity] or row[arity + 1] is not None
        if is_width or not 0.0 <= value <= 1.0:
            raise AtomError(fault_of(relation, given, number, is_width, row))
    firsts = {text is None: number for number, text in reversed([*enumerate(texts, start=1)])}
    if reason := uneven(relation, given, firsts.get(True), firsts.get(False)):
        raise AtomError(reason)
    return values


def _numbers(connection: DuckDBPyConnection, texts: list[str | None]) -> list[float]:
    """Values as numbers, NaN where they are none and 1 where there is none."""
    odd = list({text for text in texts if text is not None and not _NUMBER.fullmatch(text)})
    read: dict[str | None, float | None] = {None: 1.0}
    if odd:
        query = "SELECT TRY_CAST(unnest(?::VARCHAR[]) AS DOUBLE)"
        found = connection.execute(query, [odd]).fetchall()
        read.update({text: value for text, (value,) in zip(odd, found, strict=True)})
    numbers = [read[text] if text in read else float(text or 0) for text in texts]
    return [math.nan if number is None else number for number in numbers]


def _codes(connection: DuckDBPyConnection, texts: set[str]) -> dict[str, int | None]:
    """The codes of texts; new ones in order of their letters."""
    codes = {text: whole(text) for text in texts}
    others = [text for text, code in codes.items() if code is None]
    if others:
        among = "SELECT text, code FROM constants WHERE text IN (SELECT unnest(?::VARCHAR[]))"
        codes.update(connection.execute(among, [others]).fetchall())
    new = sorted(text for text in others if codes[text] is None)
    if new:
        n_known = connection.execute("SELECT count(*) FROM constants").fetchall()[0][0]
        numbers = list(range(TEXTS + n_known, TEXTS + n_known + len(new)))
        more = "INSERT INTO constants SELECT unnest(?::INTEGER[]), unnest(?::VARCHAR[])"
        connection.execute(more, [numbers, new])
        codes.update(zip(new, numbers, strict=True))
    return codes


def insert(
    tables: Tables, relation: Relation, table: str, columns: list[list[Any]], value: str
) -> bool:
    """Add what `encode` gave to a table; to ``stage``, and return False, where some are known."""
    typed = ", ".join(f"unnest(?::INTEGER[]) AS {column}" for column in relation.columns)
    source = f"(SELECT {typed}, unnest(?::DOUBLE[]) AS value, unnest(?::INTEGER[]) AS rowid)"
    rows = list(zip(*columns[: relation.arity], strict=True))
    are_new = len(set(rows)) == len(rows)
    if are_new and (relation.size or table != relation.table):
        known = f"{source} SEMI JOIN {table} USING ({relation.keys})"
        are_new = tables.count(known, columns) == 0
    chosen = f"SELECT {relation.keys}, {value if are_new else 'value'} FROM {source}"
    into = f"INSERT INTO {table}" if are_new else "CREATE OR REPLACE TEMP TABLE stage AS"
    tables.connection.execute(f"{into} {chosen}", columns)
    return are_new
