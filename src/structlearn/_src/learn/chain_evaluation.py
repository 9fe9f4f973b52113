"""Losses and gradient of labelled sequences with sparse features, in one pass over them.

What `compare` does with worlds goes over all tables several times. Here every sequence goes from
its features to its gradient while it is in the cache. Every thread adds up a gradient of its own,
so that the result depends, by rounding, on how many there are; for small data it is always one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats
from structlearn._src.common.vectors import ranges_of
from structlearn._src.kernels.chain.evaluate import evaluate
from structlearn._src.kernels.chain.split import SplitWeights, sum_rows
from structlearn._src.learn.chain_arrays import ChainArrays, make_errors, make_parts, make_workspace
from structlearn._src.learn.chain_layout import ChainLayout
from structlearn._src.learn.loss import Loss


class ChainEvaluation:
    """Evaluates the losses of an objective that `chain_refusal` has nothing against."""

    def __init__(self, chains: ChainArrays, layout: ChainLayout, loss: Loss) -> None:
        self._chains = chains
        self._layout = layout
        self._parts = make_parts(loss)
        self._rooms: dict[int, threads.Scratch] = {}
        self._spare: list[tuple[Any, Any]] = []  # workspaces, one for each thread at work

    def losses(self, weights: Floats, n_jobs: int | None) -> Floats:
        """Loss of every sequence, without its weight and without C."""
        losses = np.empty(len(self._chains.loss_weights))
        primal = self._primal(weights, n_jobs)
        nothing = SplitWeights(primal.wide, primal.singles, np.empty((0, 0)))

        def work(first: int, last: int) -> None:
            self._evaluate(primal, first, last, losses, nothing)

        data = self._chains.data
        entries = len(data.labels) * self._chains.states
        threads.over_items(work, data.offsets, "sequences", n_jobs, entries)
        return losses

    def loss_gradient(self, weights: Floats, n_jobs: int | None) -> tuple[Floats, Floats]:
        """Loss of every sequence, and the gradient of C times the weighted ones."""
        losses = np.empty(len(self._chains.loss_weights))
        primal = self._primal(weights, n_jobs)
        ranges = self._ranges(n_jobs)
        size = self._layout.size(self._chains)
        with self._room(len(ranges) * size).lend() as memory:
            slopes = memory.reshape(-1, size)

            def work(number: int, _: int) -> None:
                slopes[number] = 0.0
                slope = self._layout.cut(self._chains, slopes[number])
                self._evaluate(primal, *ranges[number], losses, slope)

            threads.run(work, [(i, i + 1) for i in range(len(ranges))], n_jobs)
            return losses, self._layout.gather(self._chains, _added_up(slopes, n_jobs), n_jobs)

    def _ranges(self, n_jobs: int | None) -> list[tuple[int, int]]:
        """One range of sequences for each thread, if there is enough for all."""
        data = self._chains.data
        most = 1 + len(data.columns) // threads.GRAIN["features"]
        return threads.split(data.offsets, min(threads.workers(n_jobs), most))

    def _room(self, size: int) -> threads.Scratch:
        """Memory that is used again: pages that are new cost more than the work on them."""
        return self._rooms.setdefault(size, threads.Scratch(size))

    def _primal(self, weights: Floats, n_jobs: int | None) -> SplitWeights:
        weights = np.require(weights, np.float64, ("C", "W"))
        return self._layout.to_kernel(self._chains, weights, n_jobs)

    def _evaluate(
        self, primal: SplitWeights, first: int, last: int, losses: Floats, slope: SplitWeights
    ) -> None:
        chains = self._chains
        with self._workspace() as (errors, work):
            evaluate(
                chains.data, self._layout.layout, self._parts, chains.loss_weights, primal, first,
                last, losses, slope, errors, work,
            )  # fmt: skip

    @contextmanager
    def _workspace(self) -> Iterator[tuple[Any, Any]]:
        try:
            both = self._spare.pop()
        except IndexError:
            both = make_errors(self._chains), make_workspace(self._chains)
        try:
            yield both
        finally:
            self._spare.append(both)


def _added_up(slopes: Floats, n_jobs: int | None) -> Floats:
    """Return the sum of all rows, in their order."""
    out = np.empty(slopes.shape[1])

    def work(first: int, last: int) -> None:
        sum_rows(slopes, first, last, out)

    threads.run(work, ranges_of(len(out)), n_jobs)
    return out
