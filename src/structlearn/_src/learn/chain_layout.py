"""Features of labelled sequences laid out for compiled code that reads all of them often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints, offsets_of
from structlearn._src.common.vectors import ranges_of, summed
from structlearn._src.kernels.chain.sequence import ChainData
from structlearn._src.kernels.chain.split import (
    DealtEntries,
    Entries,
    SplitFeatures,
    SplitWeights,
    deal,
    move,
)
from structlearn._src.learn.chain_arrays import ChainArrays
from structlearn._src.model.term import PairsTerm, Term

_PIECE = 2**20  # entries that are counted together: some milliseconds
_SHARE = 3  # a feature with one of so many states has a row of weights


@dataclass(frozen=True, eq=False)
class ChainLayout:
    """A layout of the features, and where in its rows of weights some of the weights lie."""

    layout: SplitFeatures
    n_weights: int  #: of features
    which: Ints
    places: Ints

    def to_kernel(self, chains: ChainArrays, weights: Floats, n_jobs: int | None) -> SplitWeights:
        """Return the weights by rows; views where all features have one."""
        singles = weights[: self.n_weights]
        table = np.zeros((chains.states, chains.states))
        table.flat[chains.transitions] = weights[self.n_weights :]
        if not self.layout.kept.size:
            return SplitWeights(singles.reshape(-1, chains.states), singles[:0], table)
        wide = np.zeros(self.layout.kept.shape)
        self._move(singles, self.which, self.places, wide.reshape(-1), n_jobs)
        return SplitWeights(wide, singles, table)

    def from_kernel(
        self, chains: ChainArrays, primal: SplitWeights, weights: Floats, n_jobs: int | None
    ) -> None:
        """Write back what is not a view."""
        self._move(primal.wide.reshape(-1), self.places, self.which, weights, n_jobs)
        weights[self.n_weights :] = primal.table.flat[chains.transitions]

    def dealt(self, chains: ChainArrays, ranges: int, n_jobs: int | None) -> list[DealtEntries]:
        """Deal the entries of rows of weights, and those of single ones, to ranges of weights."""
        layout = self.layout
        none = np.empty(0, np.int32)  # rows of weights are for all states
        wide = Entries(layout.rows, layout.columns, none, layout.values)
        single = Entries(
            layout.single_rows, layout.singles, layout.single_states, layout.single_values
        )
        return [
            deal_entries(chains, entries, chains.states, ranges, n_jobs)
            for entries in (wide, single)
        ]

    # ---- gradients: the weights of features, then rows of them, then the table --------------

    def size(self, chains: ChainArrays) -> int:
        """Return how many numbers a gradient has in kernels."""
        return self.n_weights + self.layout.kept.size + chains.states**2

    def cut(self, chains: ChainArrays, flat: Floats) -> SplitWeights:
        """Return views of one array, as kernels want them."""
        K = chains.states
        singles = flat[: self.n_weights]
        table = flat[-K * K :].reshape(K, K)
        if not self.layout.kept.size:
            return SplitWeights(singles.reshape(-1, K), singles[:0], table)
        return SplitWeights(flat[self.n_weights : -K * K].reshape(-1, K), singles, table)

    def gather(self, chains: ChainArrays, flat: Floats, n_jobs: int | None) -> Floats:
        """Return what kernels have put into those views, weight by weight, in the same memory."""
        parts = self.cut(chains, flat)
        self._move(parts.wide.reshape(-1), self.places, self.which, flat, n_jobs)
        table = parts.table.flat[chains.transitions]
        out = flat[: self.n_weights + len(table)]
        out[self.n_weights :] = table
        return out

    def _move(
        self, source: Floats, origins: Ints, targets: Ints, out: Floats, n_jobs: int | None
    ) -> None:
        """Copy numbers from places in one array to places in another one."""

        def work(first: int, last: int) -> None:
            move(source, origins, targets, first, last, out)

        threads.run(work, ranges_of(len(origins), threads.GRAIN["weights"]), n_jobs)


def lay_out(chains: ChainArrays, term: Term) -> ChainLayout:
    """Return how the features of all positions are read."""
    data = chains.data
    layout, *places = _split(data, term) if isinstance(term, PairsTerm) else _whole(data)
    for array in layout:  # one type, whichever of the two it is: kernels compile once
        array.flags.writeable = False
    return ChainLayout(layout, term.n_weights, *places)


def _whole(data: ChainData) -> tuple[SplitFeatures, Ints, Ints]:
    """Every feature has a row of weights."""
    rows = np.zeros(len(data.rows), np.int64)
    index = np.empty(0, np.int32)
    single = np.zeros((0, len(data.bars))), rows, index, index, np.empty(0)
    places = np.empty(0, np.int64)
    return SplitFeatures(data.rows, data.columns, data.values, *single), places, places


def _split(data: ChainData, term: PairsTerm) -> tuple[SplitFeatures, Ints, Ints]:
    """Only features with many states have one."""
    counts = np.diff(term.offsets)
    states = len(data.bars)
    wide = _SHARE * counts >= states
    numbers = np.cumsum(wide, dtype=np.int32) - 1
    which = np.flatnonzero(np.repeat(wide, counts))
    places = np.repeat(numbers, counts)[which].astype(np.int64) * states + term.states[which]
    kept = np.zeros((max(int(wide.sum()), 1), states))
    kept.flat[places] = 1.0

    inside = wide[data.columns]
    rows = np.append(0, np.cumsum(inside, dtype=np.int32))[data.rows].astype(np.int64)
    columns = data.columns[~inside]
    times = counts[columns]
    borders = offsets_of(times)
    shifts = (term.offsets[columns] - borders[:-1]).astype(np.int32)
    singles = np.arange(borders[-1], dtype=np.int32) + np.repeat(shifts, times)
    values = single_values = data.values
    if len(values):
        values, single_values = values[inside], np.repeat(values[~inside], times)
    layout = SplitFeatures(
        rows=rows,
        columns=numbers[data.columns[inside]],
        values=values,
        kept=kept,
        single_rows=borders[data.rows - rows],
        singles=singles,
        single_states=term.states[singles],
        single_values=single_values,
    )
    return layout, which, places


def cut_by_entries(entries: Ints, size: int, count: int, n_jobs: int | None = 1) -> Ints:
    """Borders of ranges of weights that have about the same number of entries each."""
    pieces = len(entries), n_jobs, max(_PIECE, size)
    counts: Ints = summed(lambda part: np.bincount(entries[part], minlength=size), *pieces)
    offsets = offsets_of(counts)
    targets = offsets[-1] * (np.arange(1, count) / count)
    return np.concatenate([[0], np.searchsorted(offsets, targets), [size]])


def deal_entries(
    chains: ChainArrays, entries: Entries, K: int, ranges: int, n_jobs: int | None
) -> DealtEntries:
    """Deal entries to ranges of weights that have about the same number of them each.

    Nodes are numbered ``t * K + s``: with ``K = 1`` and without states these are positions.
    """
    numbers = entries.numbers
    borders = cut_by_entries(numbers, int(numbers.max(initial=0)) + 1, ranges, n_jobs)
    owners = np.repeat(np.arange(ranges, dtype=np.int32), np.diff(borders))
    offsets = chains.data.offsets
    starts = np.empty((len(offsets) - 1) * ranges + 1, np.int64)
    starts[-1] = len(numbers)
    room = np.empty((2, len(numbers)), np.int32)
    out = DealtEntries(starts, room[0], room[1], np.empty(len(entries.values)))

    def work(first: int, last: int) -> None:
        filled = np.empty(ranges, np.int64)
        deal(offsets, entries, owners, K, first, last, filled, out)

    threads.over_items(work, offsets, "sequences", n_jobs, len(numbers))
    return out
