"""What an experiment takes and what it gives back."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.watch import Progress

Item = TypeVar("Item")


@dataclass(frozen=True)
class Settings:
    """What every experiment can be told.

    Parameters
    ----------
    trials
        Number of repetitions with other data; None for as many as the experiment is set up for.
    quick
        Run a small version that takes seconds: a check that all works, not a result.
    seed
        Of everything random.
    progress
        Told how far the work is.
    """

    trials: int | None = None
    quick: bool = False
    seed: int = 0
    progress: Progress | None = None

    def __post_init__(self) -> None:
        checks.integer("seed", self.seed)
        if self.trials is not None:
            checks.integer("trials", self.trials, low=1)

    def count(self, full: int, quick: int) -> int:
        """Return the number of trials: what was asked for, or what this version is set up for."""
        return self.trials or (quick if self.quick else full)

    def each(self, items: Collection[Item], what: str) -> Iterator[Item]:
        """All items in turn; tells the progress between them."""
        for i, item in enumerate(items):
            if self.progress is not None:
                self.progress(i / len(items), f"{what} {i + 1} of {len(items)}")
            yield item

    def repeat(self, n_trials: int, what: str = "trial") -> Iterator[tuple[int, list[int]]]:
        """Number and seed of every trial; tells the progress between them."""
        for i in self.each(range(n_trials), what):
            yield i, [self.seed, i]


class Estimate(NamedTuple):
    """A mean over trials, and its standard error."""

    mean: float
    error: float = math.nan

    @classmethod
    def of(cls, values: Sequence[float] | Floats) -> Estimate:
        """Mean of the values; a single one has no error."""
        array = np.asarray(values, np.float64)
        error = array.std(ddof=1) / math.sqrt(len(array)) if len(array) > 1 else math.nan
        return cls(float(array.mean()), float(error))

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + ("" if math.isnan(self.error) else f" ±{self.error:.2f}")


@dataclass(frozen=True)
class Table:
    """A table: every row has an entry for every column."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, heading: str, rows: Sequence[Mapping[str, Any]]) -> Table:
        """Make a table of rows that name their entries, all in the same order."""
        columns = tuple(rows[0])
        return cls(heading, columns, tuple(tuple(row[name] for name in columns) for row in rows))

    def column(self, name: str) -> list[Any]:
        """Return all entries of a column."""
        return [row[self.columns.index(name)] for row in self.rows]

    def lines(self) -> list[str]:
        """Return the table as text."""
        cells = [self.columns, *(tuple(map(_text, row)) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        texts = ["  ".join(map(str.rjust, row, widths)).rstrip() for row in cells]
        return [*([self.heading] if self.heading else []), *texts]


@dataclass(frozen=True)
class Record:
    """What an experiment found.

    Parameters
    ----------
    name
        Name of the experiment.
    heading
        What it is about.
    tables
        The numbers.
    notes
        What they say, and what differs from the paper.
    pictures
        For every picture its name and a function that draws it and returns the figure.
    """

    name: str
    heading: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    pictures: Mapping[str, Callable[[], Any]] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Return everything but the pictures as text."""
        tables = [line for table in self.tables for line in ("", *table.lines())]
        return [self.heading, *tables, "", *self.notes]

    def plain(self) -> dict[str, Any]:
        """Return everything but the pictures as what JSON can say."""
        tables = [
            {"heading": t.heading, "rows": [_named(t.columns, row) for row in t.rows]}
            for t in self.tables
        ]
        return {
            "name": self.name,
            "heading": self.heading,
            "tables": tables,
            "notes": list(self.notes),
        }


def _named(columns: tuple[str, ...], row: tuple[Any, ...]) -> dict[str, Any]:
    cells = [cell._asdict() if isinstance(cell, Estimate) else cell for cell in row]
    return dict(zip(columns, cells, strict=True))


def _text(cell: Any) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
