"""What an experiment is: a record of what it repeats, independent units of work, and a report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from papers import checks
from papers.arrays import Floats
from papers.documents import Document


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
    """

    trials: int | None = None
    quick: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        checks.integer("seed", self.seed)
        if self.trials is not None:
            checks.integer("trials", self.trials, low=1)

    def count(self, full: int, quick: int) -> int:
        """Return the number of trials: what was asked for, or what this version is set up for."""
        return self.trials or (quick if self.quick else full)


_SMALL = 0.01  # errors below this, of areas and the like, are shown with two digits more


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
        if math.isnan(self.error):
            return f"{self.mean:.2f}" if abs(self.mean) >= _SMALL else f"{self.mean:.2g}"
        digits = 4 if 0.0 < self.error < _SMALL else 2
        return f"{self.mean:.{digits}f} ±{self.error:.{digits}f}"


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
        cells = [self.columns, *(tuple(map(cell_text, row)) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        texts = ["  ".join(map(str.rjust, row, widths)).rstrip() for row in cells]
        return [*([self.heading] if self.heading else []), *texts]


def cell_text(cell: Any) -> str:
    """Return what a table shows of a cell: four digits of a number."""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


# ---- claims ------------------------------------------------------------------------------


class Verdict(StrEnum):
    """What an experiment says about a claim of a paper."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "undecided"  #: the interval of confidence of the difference contains 0
    APART = "not comparable"


_SURE = 0.95  # confidence at which a difference counts


class Claim(NamedTuple):
    """What a paper says, whether it is so here, and why we say that."""

    says: str
    verdict: Verdict
    because: str

    @classmethod
    def above(cls, says: str, gains: Sequence[float] | Floats, than: float = 0.0) -> Claim:
        """Judge by gains, one for each trial, which the claim expects to be above a number."""
        found = Estimate.of(gains)
        away = found.mean - than
        because = f"{found} over {_trials(gains)}"
        if than:
            because += f", to be above {than:g}"
        if math.isnan(found.error):
            return cls(says, Verdict.OPEN, f"{because}: a single trial has no spread")
        if abs(away) <= _reach(gains):
            return cls(says, Verdict.OPEN, because)
        return cls(says, Verdict.HOLDS if away > 0 else Verdict.FAILS, because)

    @classmethod
    def level(cls, says: str, gains: Sequence[float] | Floats, within: float) -> Claim:
        """Judge by differences, one for each trial, which the claim expects to be small.

        The whole interval of confidence must lie within the bounds: no proof of a difference is no
        proof that there is none.
        """
        found = Estimate.of(gains)
        because = f"{found} over {_trials(gains)}, to be from {-within:g} to {within:g}"
        if math.isnan(found.error):
            return cls(says, Verdict.OPEN, f"{because}: a single trial has no spread")
        reach = _reach(gains)
        if abs(found.mean) + reach < within:
            return cls(says, Verdict.HOLDS, because)
        return cls(
            says, Verdict.FAILS if abs(found.mean) - reach > within else Verdict.OPEN, because
        )

    @classmethod
    def that(cls, says: str, so: bool, because: str) -> Claim:
        """Judge by something that has no spread."""
        return cls(says, Verdict.HOLDS if so else Verdict.FAILS, because)

    @classmethod
    def apart(cls, says: str, because: str) -> Claim:
        """Say why it cannot be compared."""
        return cls(says, Verdict.APART, because)

    def __str__(self) -> str:
        return f"{self.verdict}: {self.says} ({self.because})"


def _reach(gains: Sequence[float] | Floats) -> float:
    """Half of Student's interval: two standard errors of many trials, but 4.3 of three."""
    return float(stats.t.ppf(0.5 + 0.5 * _SURE, len(gains) - 1) * Estimate.of(gains).error)


def _trials(gains: Sequence[float] | Floats) -> str:
    return "1 trial" if len(gains) == 1 else f"{len(gains)} trials"


# ---- experiments -------------------------------------------------------------------------


class Unit(NamedTuple):
    """One piece of work that was done: what it was given, and what it found."""

    given: Mapping[str, Any]
    found: Mapping[str, Any]
    seconds: float = math.nan  #: of the processor
    warned: Sequence[str] = ()  #: kinds of warnings on the way


Units = Sequence[Unit]


@dataclass(frozen=True)
class Report:
    """Ours beside the paper's, and what follows for its claims."""

    tables: tuple[Table, ...]
    claims: tuple[Claim, ...] = ()

    def lines(self) -> list[str]:
        """Return everything as text."""
        tables = [line for table in self.tables for line in ("", *table.lines())]
        return [*tables, "", *map(str, self.claims)]


@dataclass(frozen=True, eq=False)
class Experiment:
    """A table or a figure of a document: how to make it again, and how to read what comes out.

    Parameters
    ----------
    name
        What the command calls it.
    document, item
        Which table or figure it is, of what.
    asks
        The question, in one sentence.
    systems
        What is compared.
    units
        For some settings, what is given to every unit of work: plain values, with its own seed.
    work
        Does one unit: takes what it is given as keywords, and returns what JSON can say. It depends
        on nothing else, so that units run in any order and in any process.
    report
        Makes the tables and judges the claims, from all units. It does no work of its own: pages
        are made from units that were done elsewhere.
    pictures
        Draw figures from all units, by name.
    readings
        What differs from the document, or what was read into it.
    data
        Folders of data that must be there.
    version
        To be raised when `work` changes, so that units are done again.
    """

    name: str
    document: Document
    item: str
    asks: str
    systems: tuple[str, ...]
    units: Callable[[Settings], Sequence[Mapping[str, Any]]]
    work: Callable[..., Mapping[str, Any]]
    report: Callable[[Units], Report]
    pictures: Mapping[str, Callable[[Units], Any]] = field(default_factory=dict)
    readings: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    version: int = 1

    @property
    def heading(self) -> str:
        """What it is, in one line."""
        return f"{self.document.name}, {self.item}: {', '.join(self.systems)}"
