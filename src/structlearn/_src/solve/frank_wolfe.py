"""Block-coordinate Frank-Wolfe for the structured hinge on sequences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from structlearn._src.common import checks, threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.kernels.chain.frank_wolfe import (
    DualFlow,
    FlowWeights,
    FlowWorkspace,
    frank_wolfe,
    hinge,
)
from structlearn._src.learn.chain_arrays import ChainArrays
from structlearn._src.learn.objective import Objective
from structlearn._src.learn.structured_objective import chain_refusal, over_chains
from structlearn._src.learn.vectors import add_multiple
from structlearn._src.solve import shards
from structlearn._src.solve.base import Report, Solver, State, draw_seed, stream
from structlearn._src.solve.flow_round import Round
from structlearn._src.solve.flows import (
    backup_of,
    make_room,
    make_workspace,
    most_links,
    restore,
    true_flow,
)
from structlearn._src.solve.team import suited_batch

_GOOD = 0.01  # relative gap from which on the last weights can be better than their average
_ROUNDS = 4  # of shards in a pass
_PARTS = 64  # of the data: half of them are searched in turn in iteration 1, a quarter in 2, ...
_FEW = 50  # sequences that make a part
_REACH = 1.4  # times the best length of a step: over-relaxation, which converges sooner
_RECENT = 0.1  # share of the last weights in their running mean, once it is not less
_BATCH = 32  # sequences: with 128, directions are too old, and twice as many passes are needed


@dataclass(frozen=True)
class FrankWolfe(Solver):
    r"""Dual steps for the hinge loss, one sequence at a time.

    .. math:: \min_w \tfrac{1}{2} \|w\|^2 + C \sum_i c_i \max_y
              \big[\Delta_i(y) - \langle w, \psi_i(y) \rangle \big]
              \;=\; \max_\alpha C \sum_i c_i E_{\alpha_i} \Delta_i - \tfrac{1}{2} \|w(\alpha)\|^2

    with :math:`\psi_i(y) = \phi_i(y_i) - \phi_i(y)` and
    :math:`w(\alpha) = C \sum_i c_i E_{\alpha_i} \psi_i`. Each iteration first searches for the best
    labelling of every sequence, all for the same weights, which gives the objective and the gap as
    well. Then it makes some passes over the sequences that have a choice of labellings. A step
    moves probability to the best labelling at hand, for each stretch of positions between two at
    which there is no choice. A step has 1.4 times the length that raises the dual most, in the last
    pass just that length (over-relaxation): so every step raises the dual, and no step size is
    needed. The gap bounds the distance to the optimum. The result are the best weights of all
    searches, or their running mean where that is better. It always starts at weights of 0; in the
    first iterations, parts of the data are searched one after the other.

    Parameters
    ----------
    pairwise
        If it is not 0, all passes but the first after a search take probability only from the
        worst labelling in use, instead of from all of them. In shards, every `pairwise`-th pass
        does so. 0 never does, which is the classic method.
    evaluate
        Iterations between two evaluations of the running mean; in shards, passes between two
        evaluations of objective and gap. Each costs up to a pass.
    passes
        Passes of steps after each search.
    shards
        Number of parts of the data whose steps are taken at once, from the same weights, and merged
        four times per pass. They find the best labelling of a sequence at each of its steps, and
        average the weights. More shards need more passes (on 1,117 sentences of CoNLL-2000, merged
        once per pass, 4 shards took 3 times as many and 16 took 10 times as many), so that the
        default, one, is the fastest where all data are at hand.
    batch_size
        Number of sequences whose steps are found at once, for the same weights, each by another
        thread. One thread then takes these steps in turn, with the lengths that suit the weights of
        that time, so that every step raises the dual; meanwhile the others find the steps of the
        next batch. The result depends on `batch_size`, but not on the number of threads. By default
        it is 32 where there are 4 threads or more, sparse features and at least 50 such batches,
        else 1. Not for several `shards`.

    References
    ----------
    S. Lacoste-Julien, M. Jaggi, M. Schmidt and P. Pletscher, "Block-coordinate Frank-Wolfe
    optimization for structural SVMs", 2013, algorithm 4.
    D. Garber and O. Meshi, "Linear-memory and decomposition-invariant linearly convergent
    conditional gradient algorithm for structured polytopes", 2016.
    N. Shah, V. Kolmogorov and C. H. Lampert, "A multi-plane block-coordinate Frank-Wolfe algorithm
    for training structural SVMs with a costly max-oracle", 2015.

    Examples
    --------
    >>> from structlearn import SequenceLabeler
    >>> from structlearn.solvers import FrankWolfe
    >>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", "N"]]
    >>> labeler = SequenceLabeler(loss="hinge", solver=FrankWolfe())
    >>> labeler.fit(X, Y).converged_
    True
    """

    pairwise: int = 3
    evaluate: int = 5
    passes: int = field(default=3, metadata={"later": True})
    shards: int = field(default=1, metadata={"later": True})
    batch_size: int | None = field(default=None, metadata={"later": True})
    name: ClassVar[str] = "frank-wolfe"
    proves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.integer("pairwise", self.pairwise)
        checks.integer("evaluate", self.evaluate, low=1)
        checks.integer("passes", self.passes, low=1)
        checks.integer("shards", self.shards, low=1)
        if self.batch_size is not None:
            checks.integer("batch_size", self.batch_size, low=1)
            if self.shards > 1 and self.batch_size > 1:
                raise ArgumentError(
                    f"shards={self.shards} and batch_size={self.batch_size} were given, two ways "
                    f"to take steps at once: leave one of them out"
                )

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
        state: State = {"seed": draw_seed(rng), "iteration": 0}
        state |= {name: np.zeros(len(weights)) for name in ("weights", "average")}
        parts = min(self.shards, objective.n_examples)
        batch = suited_batch(self.batch_size, objective, _BATCH)
        if parts > 1:
            state |= {"shards": parts, "coupling": float(parts), "steps": 0, "plain": False}
            state["lag"] = np.zeros(len(weights))
        elif batch > 1:
            state |= {"batch_size": batch}
        return state | true_flow(chains)

    def step(self, objective: Objective, state: State) -> Report:
        """Search once and take steps, or, in shards, visit all examples once."""
        chains = over_chains(objective).chain_arrays
        state["iteration"] += 1
        make_room(chains, state)
        if "shards" in state:
            pairwise = self.pairwise > 0 and state["iteration"] % self.pairwise == 0
            _visit_shards(chains, state, pairwise, objective.n_jobs)
            due = state["iteration"] % self.evaluate == 0
            report = _look(objective, state) if due else Report()
            if state["plain"]:
                state["average"] = state["weights"]
            return report
        return self._advance(objective, state)

    def _advance(self, objective: Objective, state: State) -> Report:
        """Find the best labelling of every sequence, and take steps among all that are at hand."""
        run = Round(over_chains(objective).chain_arrays, state, objective.n_jobs)
        order = stream(state, state["iteration"]).permutation(objective.n_examples)
        parts = max(1, min(_PARTS >> state["iteration"], len(order) // _FEW))
        if parts > 1:
            for part in np.array_split(order, parts):
                run.search(part)
                run.take_steps(part, [(False, 1.0)])
            state["average"] = state["weights"]
        else:
            value = run.search(order) + objective.penalty.value(state["weights"])
            _keep(state, value, state["weights"])
        rules = [(number > 0 and self.pairwise > 0, _REACH) for number in range(self.passes)]
        run.take_steps(order, [*rules[:-1], (rules[-1][0], 1.0)])
        run.end()
        mean = _running_mean(state, objective.n_jobs)
        if parts > 1:
            return Report()
        if state["iteration"] % self.evaluate == 0:
            _keep(state, _value(objective, mean), mean)
        return Report(state["least"], gap=max(state["least"] - dual_value(state), 0.0))


def _keep(state: State, value: float, weights: Floats) -> None:
    """Keep weights if they are the best so far."""
    if value < state.get("least", np.inf):  # checkpoints of old have none
        state["least"] = value
        state["average"] = weights.copy()


def _running_mean(state: State, n_jobs: int | None) -> Floats:
    """Let a mean follow the weights: it forgets the first ones, and later swings less than they."""
    mean: Floats = state.setdefault("mean", state["weights"].copy())
    share = max(2.0 / (state["iteration"] + 1.0), _RECENT)
    add_multiple(mean, -share, mean, n_jobs)
    add_multiple(mean, share, state["weights"], n_jobs)
    return mean


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
    inner = chains.to_kernel(weights, objective.n_jobs)
    edges = (chains.table(inner) + chains.data.bars)[None]
    losses: dict[int, float] = {}

    def work(first: int, last: int) -> None:
        given = chains.data, chains.loss_weights, inner, edges, first, last
        losses[first] = hinge(*given, make_workspace(chains, 0, 0))

    entries = len(chains.data.labels) * chains.states
    threads.over_items(work, chains.data.offsets, "sequences", objective.n_jobs, entries)
    return objective.penalty.value(weights) + sum(losses[first] for first in sorted(losses))


# ---- in shards -------------------------------------------------------------------------------


def _visit_shards(chains: ChainArrays, state: State, pairwise: bool, n_jobs: int | None) -> None:
    """Take one step for every sequence, in rounds; the average is over rounds."""
    ranges = threads.split(chains.data.offsets, state["shards"])
    draw = stream(state, state["iteration"])
    orders = [first + draw.permutation(last - first) for first, last in ranges]
    weights = chains.to_kernel(state["weights"]).copy()
    room = shard_room(chains, state, len(ranges), len(weights))
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
    backup = backup_of(state, visited)
    before = float(state["losses"].sum())
    start = weights.copy()
    while True:
        coupling = state["coupling"]

        def work(k: int, _: int, coupling: float = coupling) -> None:
            copies[k] = weights
            advance(chains, state, copies[k], orders[k], pairwise, coupling, spaces[k])

        threads.run(work, [(k, k + 1) for k in range(len(orders))], n_jobs)
        found = shards.merge(weights, copies, coupling, n_jobs)
        gain = float(state["losses"].sum()) - before - found.along - 0.5 * found.square
        if gain >= 0.0 or coupling >= len(orders):
            state["coupling"] = shards.next_coupling(coupling, found.needed, len(orders))
            return
        weights[:] = start
        restore(state, visited, backup)
        state["coupling"] = min(2.0 * coupling, float(len(orders)))


def shard_room(
    chains: ChainArrays, state: State, parts: int, n_weights: int
) -> tuple[Floats, list[FlowWorkspace]]:
    """Return a copy of the weights and a workspace for each shard, kept from pass to pass.

    Pages that are new would cost more than the work on them.
    """
    links = most_links(state)
    if "_room" not in state or len(state["_room"][1][0].states) < links:
        spaces = [make_workspace(chains, links, n_weights) for _ in range(parts)]
        state["_room"] = np.empty((parts, n_weights)), spaces
    copies, spaces = state["_room"]
    return copies, spaces


def advance(
    chains: ChainArrays, state: State, weights: Floats, order: Ints, pairwise: bool,
    coupling: float, work: FlowWorkspace,
) -> None:  # fmt: skip
    """Take the steps of one shard, on its own copy of the weights."""
    edges = (chains.table(weights) + chains.data.bars)[None]
    frank_wolfe(
        order,
        chains.data,
        chains.loss_weights,
        FlowWeights(weights, edges),
        DualFlow(*(state[name] for name in DualFlow._fields)),
        work,
        pairwise,
        coupling,
    )
    np.copyto(chains.table(weights), edges[0], where=np.isfinite(edges[0]))
