"""Losses and gradient of labelled sequences with sparse features, in one pass over them.

What `compare` does with worlds goes over all tables several times. Here every sequence goes from
its features to its gradient while it is in the cache. Every thread adds up a gradient of its own,
so that the result depends, by rounding, on how many there are; for small data it is always one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, pairwise

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats
from structlearn._src.kernels.chain.evaluate import PHASES, Slopes, evaluate_in_threads
from structlearn._src.kernels.team import make_board
from structlearn._src.learn.chain_arrays import ChainArrays, make_errors, make_parts, make_workspace
from structlearn._src.learn.chain_layout import ChainLayout
from structlearn._src.learn.loss import Loss


class ChainEvaluation:
    """Evaluates the losses of an objective that `chain_refusal` has nothing against."""

    def __init__(self, chains: ChainArrays, layout: ChainLayout, loss: Loss) -> None:
        self._chains = chains
        self._layout = layout
        anywhere = np.empty((0, 0))  # gradients may be anything where there is no weight
        anywhere.flags.writeable = False
        self._features = layout.layout._replace(kept=anywhere)
        self._parts = make_parts(loss)
        self._rooms: dict[int, threads.Scratch] = {}
        self._errors = threads.Workspaces(partial(make_errors, chains))
        self._workspaces = threads.Workspaces(partial(make_workspace, chains))

    def losses(self, weights: Floats, n_jobs: int | None) -> Floats:
        """Loss of every sequence, without its weight and without C."""
        return self._evaluate(weights, self._ranges(n_jobs), 0, 0.0, np.empty(0))

    def loss_gradient(
        self, weights: Floats, n_jobs: int | None, ridge: float = 0.0
    ) -> tuple[Floats, Floats]:
        """Loss of every sequence, and the gradient of C times the weighted ones.

        And of half the squares of the weights, times `ridge`.
        """
        ranges = self._ranges(n_jobs)
        gradient = np.empty(len(weights))
        return self._evaluate(weights, ranges, len(ranges), ridge, gradient), gradient

    def _ranges(self, n_jobs: int | None) -> list[tuple[int, int]]:
        """One range of sequences for each thread, if there is enough for all."""
        data = self._chains.data
        most = 1 + len(data.columns) // threads.GRAIN["features"]
        return threads.split(data.offsets, min(threads.workers(n_jobs), most)) or [(0, 0)]

    def _evaluate(
        self,
        weights: Floats,
        ranges: list[tuple[int, int]],
        slopes: int,
        ridge: float,
        gradient: Floats,
    ) -> Floats:
        """Fill the gradient from so many slopes, one for each range or none; return the losses."""
        chains, layout = self._chains, self._layout
        losses = np.empty(len(chains.loss_weights))
        weights = np.require(weights, np.float64, ("C", "W"))
        with self._memory(slopes) as (memory, slope):
            primal = layout.unfilled(chains, weights, memory)
            board = make_board(PHASES + len(ranges))
            given = (
                board, np.array([0, *(last for _, last in ranges)]), chains.data, self._features,
                self._parts, chains.loss_weights, layout.moves, weights, primal,
                primal.wide.reshape(-1), layout.rare_entries(slopes > 1), slope, ridge, losses,
                gradient,
            )  # fmt: skip
            helpers = len(ranges) - 1
            with self._errors.lend(helpers) as errors, self._workspaces.lend(helpers) as spaces:
                threads.launch(evaluate_in_threads, helpers, *given, errors, spaces)
            if slopes:
                n = layout.n_weights
                gradient[n:] = slope.tables.sum(axis=0).flat[chains.transitions]
                gradient[n:] += ridge * weights[n:]
        return losses

    @contextmanager
    def _memory(self, slopes: int) -> Iterator[tuple[Floats, Slopes]]:
        """Memory of the weights and slopes in kernels.

        It is used again, as pages that are new cost more than the work on them.
        """
        layout, K = self._layout, self._chains.states
        rows = len(layout.layout.kept) if layout.n_moved else layout.n_weights // K
        apart = int(layout.rare[-1]) if slopes > 1 else 0
        singles = layout.n_common if apart else len(layout.moves.origins)
        shapes = (layout.size,), (slopes, rows, K), (slopes, singles), (slopes, K, K), (apart,)
        ends = list(accumulate(map(math.prod, shapes), initial=0))
        with self._rooms.setdefault(ends[-1], threads.Scratch(ends[-1])).lend() as whole:
            memory, wide, *more = (
                whole[a:b].reshape(shape)
                for (a, b), shape in zip(pairwise(ends), shapes, strict=True)
            )
            yield memory, Slopes(wide, wide.reshape(slopes, rows * K), *more)
