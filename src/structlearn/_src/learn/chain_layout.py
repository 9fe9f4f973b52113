"""Features of labelled sequences laid out for compiled code that reads all of them often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import (
    Floats,
    Ints,
    block_indices,
    offsets_of,
)
from structlearn._src.common.vectors import ranges_of, summed
from structlearn._src.kernels.chain.evaluate import RareEntries
from structlearn._src.kernels.chain.lay_out import Kinds, count, fill, measure
from structlearn._src.kernels.chain.sequence import ChainData
from structlearn._src.kernels.chain.split import (
    DealtEntries,
    Entries,
    Moves,
    SplitFeatures,
    SplitWeights,
    deal,
    load,
    store,
)
from structlearn._src.learn.chain_arrays import ChainArrays
from structlearn._src.model.term import PairsTerm, Term
from structlearn._src.text.rows import Index

_PIECE = 2**18  # entries that are counted together: half a millisecond
_RARE = 8  # entries of a weight up to which threads, often 16, write down what each of them adds
_SHARE = 3  # a feature with one of so many states has a row of weights


def _none() -> Ints:
    return np.zeros(1, np.int64)


@dataclass(frozen=True, eq=False)
class ChainLayout:
    """A layout of the features, and which weights kernels keep where."""

    layout: SplitFeatures
    n_weights: int  #: of features
    moves: Moves
    rare: Ints = field(default_factory=_none)  #: (positions + 1,) entries of rare features so far
    n_common: int = 0  #: single weights of the other features, which are the first ones

    @property
    def n_moved(self) -> int:
        """Number of weights of features that kernels keep elsewhere: all of them, or none."""
        return len(self.moves.which) + len(self.moves.origins)

    @property
    def size(self) -> int:
        """How many numbers kernels keep there."""
        return self.layout.kept.size + len(self.moves.origins)

    def unfilled(self, chains: ChainArrays, weights: Floats, memory: Floats) -> SplitWeights:
        """Return the weights for kernels; those that are kept elsewhere are yet to be copied."""
        K = chains.states
        table = np.zeros((K, K))
        table.flat[chains.transitions] = weights[self.n_weights :]
        room = self.layout.kept.size
        if not room:
            return SplitWeights(weights[: self.n_weights].reshape(-1, K), memory, table)
        memory[:room] = 0.0  # where there is no weight
        return SplitWeights(memory[:room].reshape(-1, K), memory[room:], table)

    def to_kernel(self, chains: ChainArrays, weights: Floats, n_jobs: int | None) -> SplitWeights:
        """Return the weights by rows and single ones; views where all features have a row."""
        primal = self.unfilled(chains, weights, np.empty(self.size))
        self._move(load, weights, primal, n_jobs)
        return primal

    def from_kernel(
        self, chains: ChainArrays, primal: SplitWeights, weights: Floats, n_jobs: int | None
    ) -> None:
        """Write back what is not a view."""
        self._move(store, weights, primal, n_jobs)
        weights[self.n_weights :] = primal.table.flat[chains.transitions]

    def _move(
        self, kernel: Callable[..., None], weights: Floats, primal: SplitWeights, n_jobs: int | None
    ) -> None:
        given = self.moves, weights, primal.wide.reshape(-1), primal.singles
        ranges = ranges_of(self.n_moved, threads.GRAIN["entries"])
        threads.run(lambda first, last: kernel(*given, first, last), ranges, n_jobs)

    def rare_entries(self, by_weight: bool) -> RareEntries:
        """Return the entries of rare features by position, and perhaps by weight."""
        none = np.zeros(1, np.int64), np.empty(0, np.int32)
        return RareEntries(self.rare, *(self._by_weight if by_weight else none))

    @cached_property
    def _by_weight(self) -> tuple[Ints, Index]:
        sizes = np.diff(self.rare)
        shifts = np.repeat(self.layout.single_rows[1:] - self.rare[1:], sizes)
        weights = self.layout.singles[np.arange(len(shifts)) + shifts] - self.n_common
        counts = count_entries(weights, len(self.moves.origins) - self.n_common, 1)
        return offsets_of(counts), np.argsort(weights, kind="stable").astype(np.int32)

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


def lay_out(chains: ChainArrays, term: Term, n_jobs: int | None = 1) -> ChainLayout:
    """Return how the features of all positions are read."""
    data = chains.data
    if isinstance(term, PairsTerm):
        found = _split(data, term, n_jobs)
    else:
        found = _whole(data, term.n_weights)
    for array in (*found.layout, *found.moves):  # kernels compile once, whichever of the two it is
        array.flags.writeable = False
    return found


def _whole(data: ChainData, n_weights: int) -> ChainLayout:
    """Every feature has a row of weights."""
    rows = np.zeros(len(data.rows), np.int64)
    index = np.empty(0, np.int32)
    single = np.zeros((0, len(data.bars))), rows, index, index, np.empty(0)
    layout = SplitFeatures(data.rows, data.columns, data.values, *single)
    return ChainLayout(layout, n_weights, Moves(index, index, index), rows)


def _split(data: ChainData, term: PairsTerm, n_jobs: int | None) -> ChainLayout:
    """Only features with many states have one."""
    counts = np.diff(term.offsets)
    states = len(data.bars)
    wide = _SHARE * counts >= states
    numbers = np.cumsum(wide, dtype=np.int32) - 1
    which = np.flatnonzero(np.repeat(wide, counts)).astype(np.int32)
    places = np.repeat(numbers, counts)[which] * states + term.states[which]
    in_order = np.argsort(places)
    kept = np.zeros((max(int(wide.sum()), 1), states))
    kept.flat[places] = 1.0

    rare = count_entries(data.columns, len(counts), n_jobs) <= _RARE
    common = np.flatnonzero(~wide & ~rare)
    single = np.append(common, np.flatnonzero(~wide & rare))
    starts = np.zeros(len(counts), np.int64)
    starts[single] = offsets_of(counts[single])[:-1]
    origins = block_indices(term.offsets, single).astype(np.int32)

    kinds = Kinds(np.where(wide, numbers, -1), starts, counts, rare, term.states[origins])
    layout, entries = _entries(data, kinds, kept, n_jobs)
    moves = Moves(which[in_order], places[in_order], origins)
    return ChainLayout(layout, term.n_weights, moves, entries, int(counts[common].sum()))


def _entries(
    data: ChainData, kinds: Kinds, kept: Floats, n_jobs: int | None
) -> tuple[SplitFeatures, Ints]:
    """Return the entries of all positions, and how many rare ones there were so far."""
    sizes = np.zeros((len(data.rows), 3), np.int64)
    given = data.rows, data.columns
    threads.over_items(
        lambda first, last: measure(*given, kinds, first, last, sizes), data.rows, "features",
        n_jobs,
    )  # fmt: skip
    rows, single_rows, rare = np.ascontiguousarray(np.cumsum(sizes, axis=0).T)
    weighed = len(data.values) > 0
    layout = SplitFeatures(
        rows=rows,
        columns=np.empty(int(rows[-1]), np.int32),
        values=np.empty(int(rows[-1]) if weighed else 0),
        kept=kept,
        single_rows=single_rows,
        singles=np.empty(int(single_rows[-1]), np.int32),
        single_states=np.empty(int(single_rows[-1]), np.int32),
        single_values=np.empty(int(single_rows[-1]) if weighed else 0),
    )
    threads.over_items(
        lambda first, last: fill(*given, data.values, kinds, first, last, layout), data.rows,
        "features", n_jobs,
    )  # fmt: skip
    return layout, rare


def count_entries(entries: Index, size: int, n_jobs: int | None) -> Ints:
    """Count how often each of the numbers below `size` occurs."""

    def work(part: slice) -> Ints:
        counts = np.zeros(size, np.int64)
        count(entries, part.start, part.stop, counts)
        return counts

    # Pieces no shorter than what is added up for each of them.
    return summed(work, len(entries), n_jobs, max(_PIECE, 2 * size))


def cut_by_entries(entries: Index, size: int, count: int, n_jobs: int | None = 1) -> Ints:
    """Borders of ranges of weights that have about the same number of entries each."""
    offsets = offsets_of(count_entries(entries, size, n_jobs))
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
