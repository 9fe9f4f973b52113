"""Small tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

_FEW = 12  # rows that are shown of a long table: the first and the last of them


def facts_table(title: str, known: Mapping[str, Any]) -> str:
    """Return names and values below each other.

    Examples
    --------
    >>> facts_table("Answer", {"value": 1.5})
    '<table><caption>Answer</caption><tr><th>value</th><td>1.5</td></tr></table>'
    """
    rows = (f"<tr><th>{escape(name)}</th>{_cell(value)}</tr>" for name, value in known.items())
    return f"<table><caption>{escape(title)}</caption>{''.join(rows)}</table>"


def rows_table(title: str, columns: Iterable[str], rows: list[Any]) -> str:
    """Return rows below the names of their columns; of many, the first and the last."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    half = _FEW // 2
    shown = rows if len(rows) <= _FEW else [*rows[:half], None, *rows[-half:]]
    body = "".join(
        "<tr><td>...</td></tr>" if row is None else f"<tr>{''.join(map(_cell, row))}</tr>"
        for row in shown
    )
    return f"<table><caption>{escape(title)}</caption><tr>{head}</tr>{body}</table>"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"<td>{'' if value != value else format(value, '.6g')}</td>"
    return f"<td>{escape(str(value))}</td>"
