"""Block-coordinate Frank-Wolfe for the structured hinge on sequences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from structlearn._src.common import checks, threads
from structlearn._src.common.arrays import Floats, Ints, offsets_of
from structlearn._src.kernels.chain.frank_wolfe import (
    AveragedWeights,
    DualFlow,
    FlowWorkspace,
    frank_wolfe,
    hinge,
)
from structlearn._src.learn.chain_arrays import ChainArrays
from structlearn._src.learn.objective import Objective
from structlearn._src.learn.structured_objective import chain_refusal, over_chains
from structlearn._src.solve import shards
from structlearn._src.solve.base import Report, Solver, State, draw_seed, stream

_GOOD = 0.01  # relative gap from which on the last weights can be better than their average
_ROUNDS = 4  # of shards in a pass
_PATHS = 4  # paths that a list of links gets room for at a time


@dataclass(frozen=True)
class FrankWolfe(Solver):
    r"""Dual steps for the hinge loss, one sequence at a time, with optimal step length.

    .. math:: \min_w \tfrac{1}{2} \|w\|^2 + C \sum_i c_i \max_y
              \big[\Delta_i(y) - \langle w, \psi_i(y) \rangle \big]
              \;=\; \max_\alpha C \sum_i c_i E_{\alpha_i} \Delta_i - \tfrac{1}{2} \|w(\alpha)\|^2

    with :math:`\psi_i(y) = \phi_i(y_i) - \phi_i(y)` and
    :math:`w(\alpha) = C \sum_i c_i E_{\alpha_i} \psi_i`. A step moves probability to the best
    labelling by the amount that raises the dual most. No step size is needed, the dual never
    decreases, and the gap bounds the distance to the optimum. The result is an average in
    which the weights after step :math:`k` have weight :math:`k`, or the last weights once these are
    better. It always starts at weights of 0.

    Parameters
    ----------
    pairwise
        Every `pairwise`-th pass takes probability only from the worst labelling in use, instead of
        from all of them. This makes the gap eventually shrink by a constant factor; 0 never does
        so, which is the classic method.
    evaluate
        Passes between two evaluations of objective and gap, each of which costs up to a pass.
    shards
        Number of parts of the data whose steps are taken at once, from the same weights, and merged
        four times per pass. More shards need more passes (on 1,117 sentences of CoNLL-2000, merged
        once per pass, 4 shards took 3 times as many and 16 took 10 times as many), so that the
        default, one, is the fastest where all data are at hand.

    References
    ----------
    S. Lacoste-Julien, M. Jaggi, M. Schmidt and P. Pletscher, "Block-coordinate Frank-Wolfe
    optimization for structural SVMs", 2013, algorithm 4.
    D. Garber and O. Meshi, "Linear-memory and decomposition-invariant linearly convergent
    conditional gradient algorithm for structured polytopes", 2016.

    Examples
    --------
    >>> from structlearn import SequenceLabeler
    >>> from structlearn.solvers import FrankWolfe
    >>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", "N"]]
    >>> labeler = SequenceLabeler(loss="hinge", solver=FrankWolfe(evaluate=1))
    >>> labeler.fit(X, Y).converged_
    True
    """

    pairwise: int = 3
    evaluate: int = 5
    shards: int = field(default=1, metadata={"later": True})
    name: ClassVar[str] = "frank-wolfe"
    proves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.integer("pairwise", self.pairwise)
        checks.integer("evaluate", self.evaluate, low=1)
        checks.integer("shards", self.shards, low=1)

    def refuses(self, objective: Objective) -> str:
        """Refuse all but the hinge on sequences with squares as penalty."""
        if why := chain_refusal(objective):
            return why
        structured = over_chains(objective)
        part = structured.loss.parts[0]
        if len(structured.loss.parts) > 1 or part.eps_y > 0.0:
            return "it minimises the hinge only: use loss='hinge'"
        if not part.with_cost or structured.cost is None:
            return "it needs a task cost, without which weights of 0 are best"
        if not objective.penalty.smooth:
            return "it needs squares alone as penalty: use l1_ratio=0"
        if objective.penalty.ridge == 0.0:
            return "its dual needs a penalty, and there is none: use a finite C"
        return ""

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Begin where only the true labels have probability, which means weights of 0."""
        chains = over_chains(objective).chain_arrays
        state: State = {"seed": draw_seed(rng), "iteration": 0, "steps": 0, "plain": False}
        state |= {name: np.zeros(len(weights)) for name in ("weights", "lag", "average")}
        parts = min(self.shards, objective.n_examples)
        if parts > 1:
            state |= {"shards": parts, "coupling": float(parts)}
        return state | _true_flow(chains)

    def step(self, objective: Objective, state: State) -> Report:
        """Visit all examples once."""
        chains = over_chains(objective).chain_arrays
        state["iteration"] += 1
        _make_room(chains, state)
        pairwise = self.pairwise > 0 and state["iteration"] % self.pairwise == 0
        if "shards" in state:
            _visit_shards(chains, state, pairwise, objective.n_jobs)
        else:
            order = stream(state, state["iteration"]).permutation(objective.n_examples)
            _visit(chains, state, order, pairwise)
            state["average"] = _average(state, len(order))
        due = state["iteration"] % self.evaluate == 0
        report = _look(objective, state) if due else Report()
        if state["plain"]:
            state["average"] = state["weights"]
        return report


def dual_value(state: State) -> float:
    """Return the dual objective, a lower bound on every value of the objective."""
    weights = state["weights"]
    return float(state["losses"].sum() - 0.5 * (weights @ weights))


def _look(objective: Objective, state: State) -> Report:
    """Value the average and, once it is good, the last weights too, which may be better then."""
    dual = dual_value(state)
    value = _value(objective, state["average"])
    state["plain"] = False
    if value - dual <= _GOOD * value:
        last = _value(objective, state["weights"])
        state["plain"] = last < value
        value = min(last, value)
    return Report(value, gap=max(value - dual, 0.0))


def _value(objective: Objective, weights: Floats) -> float:
    """Return the objective, in less time than it takes itself."""
    chains = over_chains(objective).chain_arrays
    inner = chains.to_kernel(weights)
    edges = (chains.table(inner) + chains.data.bars)[None]
    losses: dict[int, float] = {}

    def work(first: int, last: int) -> None:
        given = chains.data, chains.loss_weights, inner, edges, first, last
        losses[first] = hinge(*given, _workspace(chains, 0, 0))

    entries = len(chains.data.labels) * chains.states
    threads.over_items(work, chains.data.offsets, "sequences", objective.n_jobs, entries)
    return objective.penalty.value(weights) + sum(losses[first] for first in sorted(losses))


def _average(state: State, more: int) -> Floats:
    """Count the steps of a pass, and return the average over all steps."""
    state["steps"] += more
    steps = float(state["steps"])
    average: Floats = state["lag"] / (-0.5 * steps * (steps + 1.0))
    average += state["weights"]
    return average


def _visit(chains: ChainArrays, state: State, order: Ints, pairwise: bool) -> None:
    """Take one step for every sequence in `order`."""
    weights = chains.to_kernel(state["weights"])
    lag = chains.to_kernel(state["lag"])
    edges = (chains.table(weights) + chains.data.bars)[None]
    frank_wolfe(
        order,
        chains.data,
        chains.loss_weights,
        AveragedWeights(weights, lag, edges, chains.table(lag)),
        DualFlow(*(state[name] for name in DualFlow._fields)),
        _workspace(chains, _most_links(state), len(weights)),
        state["steps"],
        pairwise,
        1.0,
    )
    np.copyto(chains.table(weights), edges[0], where=np.isfinite(edges[0]))
    chains.from_kernel(state["weights"], weights)
    chains.from_kernel(state["lag"], lag)


# ---- in shards -------------------------------------------------------------------------------


def _visit_shards(chains: ChainArrays, state: State, pairwise: bool, n_jobs: int | None) -> None:
    """Take one step for every sequence, in rounds; the average is over rounds."""
    ranges = threads.split(chains.data.offsets, state["shards"])
    draw = stream(state, state["iteration"])
    orders = [first + draw.permutation(last - first) for first, last in ranges]
    weights = chains.to_kernel(state["weights"]).copy()
    room = _room(chains, state, len(ranges), len(weights))
    for number in range(_ROUNDS):
        share = [np.array_split(order, _ROUNDS)[number] for order in orders]
        _round(chains, state, weights, room, share, pairwise, n_jobs)
    chains.from_kernel(state["weights"], weights)
    if isinstance(chains.places, slice):
        state["weights"][:] = weights[chains.places]
    state["steps"] += 1
    count = float(state["steps"])
    state["lag"] += count * state["weights"]  # here the sum that the average is a part of
    state["average"] = state["lag"] / (0.5 * count * (count + 1.0))


def _round(
    chains: ChainArrays, state: State, weights: Floats, room: tuple[Floats, list[FlowWorkspace]],
    orders: list[Ints], pairwise: bool, n_jobs: int | None,
) -> None:  # fmt: skip
    """Let all shards take their steps from the same weights, and merge; the dual never falls."""
    copies, spaces = room
    visited = np.concatenate(orders)
    backup = _backup(state, visited)
    before = float(state["losses"].sum())
    start = weights.copy()
    while True:
        coupling = state["coupling"]

        def work(k: int, _: int, coupling: float = coupling) -> None:
            copies[k] = weights
            _advance(chains, state, copies[k], orders[k], pairwise, coupling, spaces[k])

        threads.run(work, [(k, k + 1) for k in range(len(orders))], n_jobs)
        found = shards.merge(weights, copies, coupling, n_jobs)
        gain = float(state["losses"].sum()) - before - found.along - 0.5 * found.square
        if gain >= 0.0 or coupling >= len(orders):
            state["coupling"] = shards.next_coupling(coupling, found.needed, len(orders))
            return
        weights[:] = start
        _restore(state, visited, backup)
        state["coupling"] = min(2.0 * coupling, float(len(orders)))


def _room(
    chains: ChainArrays, state: State, parts: int, n_weights: int
) -> tuple[Floats, list[FlowWorkspace]]:
    """Return a copy of the weights and a workspace for each shard, kept from pass to pass.

    Pages that are new would cost more than the work on them.
    """
    links = _most_links(state)
    if "_room" not in state or len(state["_room"][1][0].states) < links:
        spaces = [_workspace(chains, links, n_weights) for _ in range(parts)]
        state["_room"] = np.empty((parts, n_weights)), spaces
    copies, spaces = state["_room"]
    return copies, spaces


def _advance(
    chains: ChainArrays, state: State, weights: Floats, order: Ints, pairwise: bool,
    coupling: float, work: FlowWorkspace,
) -> None:  # fmt: skip
    """Take the steps of one shard, on its own copy of the weights."""
    edges = (chains.table(weights) + chains.data.bars)[None]
    nothing = np.empty(0)
    frank_wolfe(
        order,
        chains.data,
        chains.loss_weights,
        AveragedWeights(weights, nothing, edges, np.zeros((chains.states, chains.states))),
        DualFlow(*(state[name] for name in DualFlow._fields)),
        work,
        0,
        pairwise,
        coupling,
    )
    np.copyto(chains.table(weights), edges[0], where=np.isfinite(edges[0]))


def _backup(state: State, visited: Ints) -> tuple[Floats, ...]:
    """Return what a round changes."""
    links = _places(state["starts"][visited], state["counts"][visited])
    lists = (state[name][links] for name in ("ends", "befores", "shares"))
    return (state["counts"][visited], state["losses"][visited], *lists)


def _restore(state: State, visited: Ints, backup: tuple[Floats, ...]) -> None:
    """Take a round back."""
    state["counts"][visited], state["losses"][visited], *lists = backup
    links = _places(state["starts"][visited], state["counts"][visited])
    for name, old in zip(("ends", "befores", "shares"), lists, strict=True):
        state[name][links] = old


# ---- flows -----------------------------------------------------------------------------------


def _most_links(state: State) -> int:
    return int(np.diff(state["starts"], append=len(state["ends"])).max())


def _workspace(chains: ChainArrays, links: int, n_weights: int) -> FlowWorkspace:
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


def _true_flow(chains: ChainArrays) -> State:
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


def _make_room(chains: ChainArrays, state: State) -> None:
    """See that every list of links has room for one more path."""
    counts = state["counts"]
    starts = state["starts"]
    lengths = np.diff(chains.data.offsets)
    room = np.diff(starts, append=len(state["ends"]))
    if (counts + lengths <= room).all():
        return
    borders = offsets_of(counts + _PATHS * lengths)
    source = _places(starts, counts)
    target = _places(borders[:-1], counts)
    for name in ("ends", "befores", "shares"):
        array = np.zeros(int(borders[-1]), state[name].dtype)
        array[target] = state[name][source]
        state[name] = array
    state["starts"] = borders[:-1].copy()


def _places(starts: Ints, counts: Ints) -> Ints:
    """Return the indices of all entries of all lists."""
    shift: Ints = starts - offsets_of(counts)[:-1]
    return np.arange(counts.sum()) + np.repeat(shift, counts)
