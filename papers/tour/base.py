"""What a stop of the tour gives back."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple


class Stop(NamedTuple):
    """One stop: what it is about, what it found, and what can be drawn."""

    heading: str
    lines: list[str]
    pictures: dict[str, Callable[[], Any]]  #: file name without ending: returns the figure


def share(fraction: float) -> str:
    """Return a fraction as the tour prints it."""
    return f"{fraction:.1%}"


def prose(text: str) -> list[str]:
    """Break running text into lines."""
    return textwrap.wrap(text, 88)


def table(heads: list[str], rows: dict[str, list[float]]) -> list[str]:
    """Lines of a table of fractions, one row for each name."""
    wide = max(map(len, rows))
    first = " " * wide + "".join(f"  {head}" for head in heads)
    return [
        first,
        *(
            name.ljust(wide)
            + "".join(f"  {share(x):>{len(head)}}" for x, head in zip(cells, heads, strict=True))
            for name, cells in rows.items()
        ),
    ]
