"""Lists of links, the dual variables of Frank-Wolfe: made, given room, copied and put back."""

from __future__ import annotations

import numpy as np

from structlearn._src.common.arrays import Floats, Ints, offsets_of
from structlearn._src.kernels.chain.flow_steps import Steps, StepWorkspace
from structlearn._src.kernels.chain.frank_wolfe import FlowWorkspace
from structlearn._src.learn.chain_arrays import ChainArrays
from structlearn._src.solve.base import State

_PATHS = 4  # paths that a list of links gets room for at a time


def backup_of(state: State, visited: Ints) -> tuple[Floats, ...]:
    """Return what a round changes."""
    links = places(state["starts"][visited], state["counts"][visited])
    lists = (state[name][links] for name in ("ends", "befores", "shares"))
    return (state["counts"][visited], state["losses"][visited], *lists)


def restore(state: State, visited: Ints, backup: tuple[Floats, ...]) -> None:
    """Take a round back."""
    state["counts"][visited], state["losses"][visited], *lists = backup
    links = places(state["starts"][visited], state["counts"][visited])
    for name, old in zip(("ends", "befores", "shares"), lists, strict=True):
        state[name][links] = old


def most_links(state: State) -> int:
    """Return how many links the longest list has room for."""
    return int(np.diff(state["starts"], append=len(state["ends"])).max())


def make_workspace(chains: ChainArrays, links: int, n_weights: int) -> FlowWorkspace:
    """Return a workspace for lists of so many links."""
    longest, K = chains.longest, chains.states
    wide = longest, K
    integers = np.int64
    return FlowWorkspace(
        nodes=np.empty(wide),
        delta=np.empty(wide),
        labels=np.empty(longest, integers),
        borders=np.empty(longest + 1, integers),
        states=np.empty(links, np.int32),
        befores=np.empty(links, np.int32),
        shares=np.empty(links),
        moves=np.empty(links),
        back=np.empty(wide, integers),
        path=np.empty(longest, integers),
        pulled=np.zeros(n_weights),
        turns=np.zeros((K, K)),
    )


def make_step_workspace(chains: ChainArrays, links: int, n_weights: int) -> StepWorkspace:
    """Return a workspace for steps on lists of so many links; of no weights, to search only."""
    longest, K = chains.longest, chains.states
    nodes, delta, worst = np.empty((3, longest, K))
    best_link, worst_link = np.empty((2, longest, K), np.int64)
    return StepWorkspace(
        nodes=nodes,
        delta=delta,
        worst=worst,
        best_link=best_link,
        worst_link=worst_link,
        labels=np.empty(longest, np.int64),
        borders=np.empty(longest + 1, np.int64),
        ends=np.empty(links, np.int32),
        befores=np.empty(links, np.int32),
        scores=np.empty(links),
        pulled=np.zeros(n_weights),
    )


def make_steps(chains: ChainArrays, links: int, size: int, room: int) -> Steps:
    """Return room for the steps of a batch, which change at most `room` weights."""
    longest = chains.longest
    return Steps(
        counts=np.zeros(size, np.int64),
        links=np.empty((size, longest, 2), np.int64),
        moves=np.empty((size, links)),
        costs=np.empty((size, longest)),
        limits=np.empty((size, longest, 2)),
        lengths=np.empty((size, longest)),
        firsts=np.empty((size, longest + 1), np.int64),
        numbers=np.empty(room, np.int64),
        values=np.empty(room),
    )


def true_flow(chains: ChainArrays) -> State:
    """Return the lists of links of the true labels, each with a share of 1."""
    borders, labels = chains.data.offsets, chains.data.labels
    lengths = np.diff(borders)
    place = np.arange(len(labels)) - np.repeat(borders[:-1], lengths)
    return {
        "starts": borders[:-1].copy(),
        "counts": lengths,
        "ends": (place * chains.states + labels).astype(np.int32),
        "befores": np.where(place > 0, np.roll(labels, 1), -1).astype(np.int32),
        "shares": np.ones(len(labels)),
        "losses": np.zeros(len(lengths)),
    }


def make_room(chains: ChainArrays, state: State) -> None:
    """See that every list of links has room for one more path."""
    counts = state["counts"]
    starts = state["starts"]
    lengths = np.diff(chains.data.offsets)
    room = np.diff(starts, append=len(state["ends"]))
    if (counts + lengths <= room).all():
        return
    borders = offsets_of(counts + _PATHS * lengths)
    source = places(starts, counts)
    target = places(borders[:-1], counts)
    for name in ("ends", "befores", "shares"):
        array = np.zeros(int(borders[-1]), state[name].dtype)
        array[target] = state[name][source]
        state[name] = array
    state["starts"] = borders[:-1].copy()


def places(starts: Ints, counts: Ints) -> Ints:
    """Return the indices of all entries of all lists."""
    shift: Ints = starts - offsets_of(counts)[:-1]
    return np.arange(counts.sum()) + np.repeat(shift, counts)
