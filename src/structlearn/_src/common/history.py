"""How a fit went, iteration by iteration."""

from __future__ import annotations

import math

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.html import rows_table

_COLUMNS = ("iteration", "seconds", "value", "gap", "gradient", "inference_steps")


class History:
    """One row per iteration; row 0 is the start if the solver has evaluated it.

    Parameters
    ----------
    table
        (rows, 6) Rows to continue from, as in the attribute `table`.

    Examples
    --------
    >>> history = History()
    >>> history.add(0, 0.0, 3.0)
    >>> history.add(1, 0.5, 2.0, gradient=0.1)
    >>> history.value
    array([3., 2.])
    """

    def __init__(self, table: Floats | None = None) -> None:
        self._rows: list[tuple[float, ...]] = []
        self._best: list[float] = []
        for row in () if table is None else table.tolist():
            self._append((*row, *[math.nan] * (len(_COLUMNS) - len(row))))  # old files have fewer

    def add(
        self,
        iteration: int,
        seconds: float,
        value: float = math.nan,
        gap: float = math.nan,
        gradient: float = math.nan,
        inference_steps: float = math.nan,
    ) -> None:
        """Append a row; NaN marks what is unknown.

        Parameters
        ----------
        iteration
            Number of the iteration.
        seconds
            Time since the start.
        value
            The objective.
        gap
            Bound on the distance to the optimum.
        gradient
            Norm of the gradient.
        inference_steps
            Sweeps of message passing, or steps of ADMM, so far.

        Examples
        --------
        >>> history = History()
        >>> history.add(1, 0.5, value=2.0)
        >>> len(history)
        1
        """
        self._append((iteration, seconds, value, gap, gradient, inference_steps))

    def _append(self, row: tuple[float, ...]) -> None:
        value = row[2] if row[0] else math.nan
        before = self.best()
        self._rows.append(row)
        self._best.append(before if value > before or math.isnan(value) else value)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        known = {n: self._column(n)[-1] for n in _COLUMNS[:5] if len(self)}
        last = ", ".join(f"{name}={x:.6g}" for name, x in known.items() if not math.isnan(x))
        return f"History({len(self)} rows{', the last: ' * bool(last)}{last})"

    def _repr_html_(self) -> str:
        rows = [(int(row[0]), *row[1:]) for row in self.table.tolist()]
        names = [name.replace("_", " ") for name in _COLUMNS]
        return rows_table(f"History of {len(self)} rows", names, rows)

    def best(self, back: int = 0) -> float:
        """Return the lowest value after the start and before the last `back` rows.

        The start is excluded: it may be better than the first steps, if they are too long.

        Parameters
        ----------
        back
            Number of rows at the end that are left out.

        Returns
        -------
        float
            The lowest value, or NaN if there is none.

        Examples
        --------
        >>> history = History()
        >>> for i, value in enumerate([3.0, 2.5, 2.0]):
        ...     history.add(i, 0.1 * i, value)
        >>> history.best(), history.best(back=1)
        (2.0, 2.5)
        """
        return self._best[-1 - back] if len(self._best) > back else math.nan

    @property
    def start(self) -> float:
        """The value before the first step; NaN if unknown."""
        return self._rows[0][2] if self._rows and not self._rows[0][0] else math.nan

    @property
    def table(self) -> Floats:
        """All rows: iteration, seconds, value, gap, gradient, inference steps."""
        return np.array(self._rows, np.float64).reshape(-1, len(_COLUMNS))

    def _column(self, name: str) -> Floats:
        return self.table[:, _COLUMNS.index(name)]

    @property
    def iteration(self) -> Ints:
        """Number of steps done."""
        return self._column("iteration").astype(np.int64)

    @property
    def seconds(self) -> Floats:
        """Time since the start, accumulated over restarts."""
        return self._column("seconds")

    @property
    def value(self) -> Floats:
        """The objective, or what the solver knows of it; NaN where it knows nothing.

        Solvers that average their weights report the current ones, or the losses encountered on the
        way, not the average that they return; with ``evaluate=True`` they evaluate the average.
        """
        return self._column("value")

    @property
    def gap(self) -> Floats:
        """Bound on the distance to the optimum, or NaN."""
        return self._column("gap")

    @property
    def gradient(self) -> Floats:
        """Norm of the gradient, or NaN."""
        return self._column("gradient")

    slope = gradient  # its name in earlier versions

    @property
    def inference_steps(self) -> Floats:
        """Message sweeps or ADMM steps so far, in all worlds; NaN where nothing is iterated."""
        return self._column("inference_steps")
