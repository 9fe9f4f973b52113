"""How a limit on memory is shared between tables, groundings and inference."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.memory import HELD, PROGRAM, Store, check_limit
from structlearn._src.rules.tables import Tables

_GROUNDING = 0.6  # part of the limit, less the program, that tables have while rules are grounded
_AFTER = 0.15  # part of the limit that they have later on
_PASSING = 0.15  # part of the limit for what is read from files at a time
_BYTES_PER_TARGET = 240  # thirty numbers: bounds, steps of ADMM, Newton steps, answers


class Room:
    """A memory limit such as ``"2GB"``, which holds for the whole program; None is no limit."""

    def __init__(self, memory_limit: str | None) -> None:
        self.store = None if memory_limit is None else Store(check_limit(memory_limit))

    @property
    def of_tables(self) -> int | None:
        """Bytes for DuckDB while it grounds; the rest is for what it hands over."""
        return None if self.store is None else int(_GROUNDING * (self.store.limit - PROGRAM))

    @contextmanager
    def grounding(self, tables: Tables) -> Iterator[None]:
        """Let tables have most of the memory now, and inference later; refuse what will not fit."""
        if self.store is None or self.of_tables is None:
            yield
            return
        n = tables.n_free
        need = PROGRAM + int(_BYTES_PER_TARGET * n / (1.0 - _AFTER - _PASSING - HELD))
        if need > self.store.limit:
            raise ArgumentError(
                f"a memory limit of {self.store.limit // 10**6} MB is too low for {n} targets: "
                f"inference needs about {need // 10**6} MB, whatever is left on disk"
            )
        tables.allow(self.of_tables)
        try:
            yield
        finally:
            tables.allow(int(_AFTER * self.store.limit))
