"""Figures of two programs side by side, each with the difference that is allowed."""

from __future__ import annotations

import sys
from typing import NamedTuple


class Figure(NamedTuple):
    """One figure of both programs; they may differ by `tolerance`, which is relative if said."""

    what: str
    theirs: float
    ours: float
    tolerance: float
    relative: bool = False

    @property
    def difference(self) -> float:
        gap = abs(self.theirs - self.ours)
        return gap / abs(self.theirs) if self.relative else gap


def conclude(peer: str, figures: list[Figure]) -> None:
    """Print the table; leave with code 1 if two figures differ by more than is allowed."""
    print(f"{'':34}{peer:>24}{'structlearn':>16}{'difference':>12}{'allowed':>10}")
    for row in figures:
        unit = " relative" if row.relative else ""
        print(
            f"{row.what:34}{row.theirs:24.6f}{row.ours:16.6f}"
            f"{row.difference:12.1e}{row.tolerance:10.0e}{unit}"
        )
    missed = [row.what for row in figures if not row.difference <= row.tolerance]
    sys.exit(f"differs by more than is allowed: {', '.join(missed)}" if missed else 0)
