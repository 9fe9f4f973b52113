"""Blocks of forms and of variables, and the threads that go through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Ints
from structlearn._src.field.hinges import Hinges
from structlearn._src.kernels.field import forms

#: Forms, rows or variables of a block: few enough to share them out evenly.
GRAIN = 2**13
_WORTH = 4  # blocks that are worth a thread: a tenth of a millisecond
_ROW = 2**6  # groups beyond which sums of blocks would take more room than the forms
_BYTES_PER_ENTRY = 24  # that one task may touch: of forms and of active rows
_BYTES_PER_FORM = 80  # the same, with multipliers, slopes and their copies
_COLUMNS = 64  # times that the entries are read to lay out columns, at most

Range = tuple[int, int]


class FieldBlocks:
    """How the work on a field is cut, and who does it.

    Blocks depend on the field alone, so that sums over them have the same order on all machines;
    how they are shared out among threads changes no result. A field that is `alone` is worth one
    thread only, or was given one; the others have `columns`. A field in a store is gone through by
    one thread, whose pages are given back after every task.
    """

    def __init__(self, hinges: Hinges, n_jobs: int | None, grain: int) -> None:
        per_block = grain * max(1, hinges.n_groups // _ROW)
        self.grain = grain
        self.by_form = borders(hinges.n_forms, per_block)
        self.by_variable = borders(hinges.n_variables, grain)
        self.store = hinges.store
        most = 1 if self.store is not None else max(1, len(self.by_form) // _WORTH)
        self.workers = min(threads.workers(n_jobs), most)
        self.alone = self.workers == 1
        self._form_tasks = self.tasks(hinges.offsets[self.by_form], self.by_form)
        self.columns = self._empty_columns() if self.alone else self._lay_out(hinges)
        ends = self.by_variable if self.alone else self.columns.offsets[self.by_variable]
        self._variable_tasks = threads.split(ends.astype(np.int64) + self.by_variable, self.workers)

    @property
    def n_form_blocks(self) -> int:
        """Number of blocks of forms."""
        return len(self.by_form) - 1

    @property
    def n_variable_blocks(self) -> int:
        """Number of blocks of variables."""
        return len(self.by_variable) - 1

    def over_forms(self, kernel: Callable[..., None], *given: Any) -> None:
        """Call a kernel on all blocks of forms."""
        self.over(kernel, given, self.by_form, self._form_tasks)

    def over_variables(self, kernel: Callable[..., None], *given: Any) -> None:
        """Call a kernel on all blocks of variables."""
        self.over(kernel, given, self.by_variable, self._variable_tasks)

    def over(
        self, kernel: Callable[..., None], given: Any, borders: Ints, tasks: list[Range]
    ) -> None:
        """Call a kernel on the blocks between some borders, in tasks of several blocks."""

        def work(first: int, last: int) -> None:
            kernel(*given, borders, first, last)
            if self.store is not None:
                self.store.release()

        threads.run(work, tasks, self.workers)

    def tasks(self, ends: Ints, items: Ints) -> list[Range]:
        """Share out blocks that end at these entries, and at these forms or rows."""
        parts = self.workers
        if self.store is not None:
            touched = _BYTES_PER_ENTRY * int(ends[-1]) + _BYTES_PER_FORM * int(items[-1])
            parts = 1 + touched // self.store.grain
        return threads.split(ends.astype(np.int64) + items, parts)

    def empty(self, size: int, dtype: Any = np.float64) -> Any:
        """Return an array for numbers of forms or entries, in the store if there is one."""
        return np.empty(size, dtype) if self.store is None else self.store.zeros(size, dtype)

    def copy(self, source: Any, target: Any = None, factor: float = 1.0) -> Any:
        """Copy a number per form, times a factor, into `target` or a new array."""
        found = self.empty(len(source)) if target is None else target

        def work(_borders: Ints, first: int, last: int) -> None:
            part = slice(_borders[first], _borders[last])
            np.multiply(source[part], factor, out=found[part])

        self.over_forms(work)
        return found

    @staticmethod
    def _empty_columns() -> forms.FormColumns:
        return forms.FormColumns(np.zeros(1, np.uint64), np.empty(0, np.uint32), np.empty(0))

    def _lay_out(self, hinges: Hinges) -> forms.FormColumns:
        """Lay out the columns: every thread reads all entries, and writes those of its variables.

        That is less work than sorting, for any number of threads that machines have.
        """
        n = hinges.n_variables
        entries = len(hinges.variables)
        variables = hinges.variables.view(np.uint32)
        offsets = np.zeros(n + 1, np.int64)
        ranges = threads.split(np.arange(n + 1), min(self.workers, _COLUMNS))
        threads.run(
            lambda first, last: forms.count_entries(variables, first, last, offsets),
            ranges, self.workers,
        )  # fmt: skip
        np.cumsum(offsets, out=offsets)
        columns = forms.FormColumns(
            offsets.view(np.uint64), np.empty(entries, np.uint32), np.empty(entries)
        )
        rows = hinges.offsets.view(np.uint64)
        ends = np.empty(n, np.int64)
        threads.run(
            lambda first, last: forms.fill_columns(
                rows, variables, hinges.coefficients, columns, ends, first, last
            ),
            threads.split(offsets, min(self.workers, _COLUMNS)), self.workers,
        )  # fmt: skip
        return columns


def borders(size: int, grain: int) -> Ints:
    """Borders of blocks of `grain` items each, the last perhaps smaller."""
    return np.append(np.arange(0, max(size, 1), grain), size)
