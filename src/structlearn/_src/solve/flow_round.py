"""What an iteration of Frank-Wolfe does on all threads: searches, and passes of steps."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints, offsets_of
from structlearn._src.common.threads import Workspaces
from structlearn._src.kernels.chain.flow_steps import (
    Steps,
    StepWorkspace,
    search_in_threads,
    take_steps,
)
from structlearn._src.kernels.chain.frank_wolfe import DualFlow
from structlearn._src.kernels.chain.frank_wolfe_batch import PHASES, take_batches_in_threads
from structlearn._src.kernels.team import make_board
from structlearn._src.learn.chain_arrays import ChainArrays
from structlearn._src.solve.base import State
from structlearn._src.solve.flows import make_step_workspace, make_steps, most_links
from structlearn._src.solve.team import Team


class Round:
    """The weights and the flow, as kernels want them."""

    def __init__(self, chains: ChainArrays, state: State, n_jobs: int | None) -> None:
        self.chains = chains
        self.state = state
        self.n_jobs = n_jobs
        self.weights = chains.to_kernel(state["weights"], n_jobs)
        self.edges = (chains.table(self.weights) + chains.data.bars)[None]
        self.flow = DualFlow(*(state[name] for name in DualFlow._fields))
        self.links = most_links(state)
        self.lengths = np.diff(chains.data.offsets)
        if "_widths" not in state:
            entries = np.diff(chains.data.rows)
            state["_widths"] = 1 + np.maximum.reduceat(entries, chains.data.offsets[:-1])
        self.widths: Ints = state["_widths"]  # weights of a link, at most

    @cached_property
    def _ahead(self) -> tuple[Floats, Floats]:
        """Copies of the weights and scores of pairs, which kernels keep up to date."""
        return self.weights.copy(), self.edges.copy()

    @property
    def _given(self) -> tuple[Any, ...]:
        chains = self.chains
        return chains.data, chains.loss_weights, self.weights, self.edges, self.flow

    def search(self, order: Ints) -> float:
        """Add the best labellings to the links of their sequences; return the sum of losses."""
        offsets = offsets_of(self.lengths[order] * self.chains.states)
        total = 0.0
        for ranges in threads.calls_of(offsets, "sequences"):
            losses = np.empty(len(ranges) - 1)
            helpers = threads.helpers(self.n_jobs, len(losses))
            with self._workspaces(0).lend(helpers) as spaces:
                threads.launch(
                    search_in_threads, helpers, make_board(1), ranges, order, *self._given, spaces,
                    losses,
                )  # fmt: skip
            total += float(sum(losses))
        return total

    def take_steps(self, order: Ints, rules: list[tuple[bool, float]]) -> None:
        """Take steps for all sequences in `order` with a choice of links, once by each rule.

        A rule says whether steps are pairwise, and their reach.
        """
        choices = self.flow.counts - self.lengths
        order = order[choices[order] > 0]
        size = self.state.get("batch_size", 1)  # old files have none
        team = Team.of(order, size, choices, self.n_jobs)
        rooms = offsets_of((self.flow.counts * self.widths)[team.order])
        both = self._steps(size, int(np.diff(rooms[team.batches]).max(initial=0)))
        with self._workspaces(len(self.weights)).lend(team.threads - 1) as spaces:
            if size == 1:
                for pairwise, reach in rules:
                    take_steps(order, pairwise, reach, *self._given, both[0], spaces[0])
                return
            for pairwise, reach in rules:
                threads.launch(
                    take_batches_in_threads, team.threads - 1,
                    make_board(PHASES * len(team.batches)), team.order, team.batches, rooms,
                    pairwise, reach, *self._given, both, self._ahead, spaces,
                )  # fmt: skip

    def _steps(self, size: int, room: int) -> tuple[Steps, Steps]:
        """Return room for the steps of two batches, kept from round to round."""
        both: tuple[Steps, Steps] | None = self.state.get("_steps")
        if both is None or both[0].moves.shape[1] < self.links or len(both[0].values) < room:
            given = self.chains, self.links, size, room + room // 4
            first = make_steps(*given)
            both = first, first if size == 1 else make_steps(*given)
            self.state["_steps"] = both
        return both

    def _workspaces(self, n_weights: int) -> Workspaces[StepWorkspace]:
        """Return workspaces for so many weights, kept as pages that are new cost time."""
        kept = self.state.setdefault("_spaces", {})
        if kept.get(n_weights, (-1, None))[0] < self.links:
            given = self.chains, self.links, n_weights
            kept[n_weights] = self.links, Workspaces(partial(make_step_workspace, *given))
        spaces: Workspaces[StepWorkspace] = kept[n_weights][1]
        return spaces

    def end(self) -> None:
        """Write the weights back."""
        self.chains.from_kernel(self.state["weights"], self.weights, self.n_jobs)
