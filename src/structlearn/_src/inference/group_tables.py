"""The tables of groups as kernels exchange them: flat, those that factors share apart."""

from __future__ import annotations

from functools import cached_property
from itertools import compress

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.graph.batch import Graphs, Tables
from structlearn._src.kernels.graph.many import Exchange, nothing_fixed

_APART = 16  # numbers that keep sums of different threads on different cache lines


class GroupTables:
    """Where tables of certain shapes, one array for each group of factors, go and come from."""

    def __init__(self, graphs: Graphs, shapes: tuple[tuple[int, ...], ...]) -> None:
        self.graphs = graphs
        self.shapes = shapes
        self._shared = [rows == 1 for rows, _ in shapes]
        self._parts: list[slice] = []  # of those that are shared, or of those that are not
        ends = {True: 0, False: 0}
        for (rows, width), shared in zip(shapes, self._shared, strict=True):
            start = ends[shared]
            ends[shared] += rows * width
            self._parts.append(slice(start, ends[shared]))
        self._alone = ends[False]

    @cached_property
    def places(self) -> Ints:
        """Where the table of every factor begins, as in `Exchange`."""
        out = np.full(self.graphs.wiring.n_factors, -1)
        given = self.graphs.groups, self.shapes, self._parts, self._shared
        for factors, (rows, width), part, shared in zip(*given, strict=True):
            first = part.start + (self._alone if shared else 0)
            out[factors] = first + width * np.arange(rows)
        out.setflags(write=False)
        return out

    def exchange(
        self, tables: Tables, factors: Floats, added: Floats, ranges: int, into: Tables | None
    ) -> Exchange:
        """Return what kernels read and write, in so many ranges of graphs."""
        wiring = self.graphs.wiring
        alone, shared = (self._flat(tables, shared=kind) for kind in (False, True))
        beliefs = np.empty(len(alone)) if into is None else self._flat(into, shared=False)
        return Exchange(
            wiring.graph_factors, wiring.table_offsets, self.places, alone, shared, added, factors,
            beliefs, into is not None, np.zeros((ranges, len(shared) + _APART)), nothing_fixed(),
        )  # fmt: skip

    def _flat(self, tables: Tables, shared: bool) -> Floats:
        """Return the tables of some groups in one array; only one is not copied."""
        chosen = compress(tables, (each == shared for each in self._shared))
        flat = [np.require(table, np.float64, ("C", "W")).ravel() for table in chosen]
        return flat[0] if len(flat) == 1 else np.concatenate([np.empty(0), *flat])

    def expected(self, x: Exchange, into: Tables | None) -> Tables:
        """Return the beliefs of all factors by group, added to those in `into` if it is given."""
        sums = x.sums.sum(axis=0)  # of ranges, which depend on the graphs alone
        out = []
        for g, (shape, part) in enumerate(zip(self.shapes, self._parts, strict=True)):
            found = (sums if self._shared[g] else x.beliefs)[part].reshape(shape)
            if into is None:
                out.append(found)
                continue
            if self._shared[g]:
                into[g][...] += found
            elif not np.may_share_memory(into[g], found):
                into[g][...] = found
            out.append(into[g])
        return tuple(out)
