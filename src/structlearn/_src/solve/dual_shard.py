r"""A shard of sequences with its dual variables, for rounds with others that may be elsewhere.

See `solve.shards` for the rounds. A shard counts the rounds that it has taken part in, and can take
the last one back: where the dual fell, or where another shard was lost before all had answered.
From its variables alone it knows its part :math:`w_k` of the weights, so that the weights of all
shards can be added up again, :math:`w = \sum_k w_k`, after one of them has begun anew.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.kernels.chain.frank_wolfe import DualFlow
from structlearn._src.kernels.chain.sdca import Memory, ascend
from structlearn._src.learn.chain_arrays import make_errors, make_parts, make_workspace
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.model.model import Tables
from structlearn._src.solve import flows, frank_wolfe
from structlearn._src.solve.base import State
from structlearn._src.solve.sdca import step_lengths

ROUNDS = 4  #: in a pass; each visits so many shares of the sequences


class Visit(NamedTuple):
    """What all shards are told of a round."""

    seed: int
    iteration: int
    part: int  #: which share of the sequences is visited, below `ROUNDS`
    coupling: float  #: how many times as far weights move as variables say
    pairwise: bool = False  #: for `FlowShard`
    curvature: float = 1.0  #: for `ErrorShard`


class Moved(NamedTuple):
    """What a shard, or the sum of all, has done in a round."""

    change: Floats  #: of the weights, by its variables
    squares: float  #: squared length of that
    bound: float  #: the dual without the square of the weights, after the round


class DualShard(ABC):
    """Some of the sequences, with their dual variables in `state`."""

    names: ClassVar[tuple[str, ...]]  #: of the arrays in the state

    def __init__(self, objective: StructuredObjective, first: int) -> None:
        self.objective = objective
        self.first = first  #: number of its first sequence
        self.chains = objective.chain_arrays
        self.rounds = 0  #: that it has taken part in
        self.state: State = self._begin()
        self._last: tuple[Ints, Any] | None = None  # what the last round has changed

    @abstractmethod
    def _begin(self) -> State:
        """Return variables that mean weights of 0."""

    @abstractmethod
    def _advance(self, weights: Floats, visit: Visit, order: Ints) -> Floats:
        """Take steps from some weights; return where they lead."""

    @abstractmethod
    def _backup(self, visited: Ints) -> Any:
        """Return a copy of the variables of some sequences."""

    @abstractmethod
    def _restore(self, visited: Ints, old: Any) -> None:
        """Put such a copy back."""

    @abstractmethod
    def _slopes(self) -> Tables:
        """Return what the weights here are the pull of."""

    @abstractmethod
    def bound(self) -> float:
        """Return the dual of these sequences without the square of the weights."""

    def advance(self, weights: Floats, visit: Visit) -> Moved:
        """Take steps for a share of the sequences, in an order that is new in every pass."""
        draw = np.random.default_rng([visit.seed, visit.iteration, self.first])
        order = draw.permutation(self.objective.n_examples)
        order = np.array_split(order, ROUNDS)[visit.part]
        self._last = order, self._backup(order)
        change = self._advance(weights, visit, order)
        change -= weights
        change /= visit.coupling
        self.rounds += 1
        return Moved(change, float(change @ change), self.bound())

    def return_to(self, rounds: int) -> None:
        """Take the last round back if only so many count."""
        if self.rounds == rounds + 1 and self._last is not None:
            self._restore(*self._last)
            self.rounds = rounds
            self._last = None
        assert self.rounds == rounds

    def weights(self) -> Floats:
        """Return the part of the weights that the variables here stand for."""
        return self.objective.pull(self._slopes())

    def arrays(self) -> tuple[Any, ...]:
        """Return all that a shard in another process goes on from."""
        return (np.array(self.rounds), *(self.state[name] for name in self.names))

    def fill(self, arrays: Sequence[Any]) -> None:
        """Go on from there."""
        rounds, *rest = arrays
        self.rounds = int(rounds)
        self.state = {name: np.array(x) for name, x in zip(self.names, rest, strict=True)}
        self._last = None

    def _tables(self, nodes: Floats, edges: Floats) -> Tables:
        """Return tables of all groups."""
        if len(self.objective.model.groups) == 1:
            return (nodes,)
        return nodes, edges.reshape(1, -1)

    @property
    def _each(self) -> Floats:
        """(positions,) How much every position counts."""
        return np.repeat(self.chains.loss_weights, np.diff(self.chains.data.offsets))


class FlowShard(DualShard):
    """Sequences with flows, on which Frank-Wolfe takes steps for the hinge."""

    names: ClassVar[tuple[str, ...]] = DualFlow._fields

    def _begin(self) -> State:
        return flows.true_flow(self.chains)

    def _advance(self, weights: Floats, visit: Visit, order: Ints) -> Floats:
        chains = self.chains
        copies, spaces = frank_wolfe.shard_room(chains, self.state, 1, chains.n_weights)
        copies[0] = chains.to_kernel(weights)
        frank_wolfe.advance(
            chains, self.state, copies[0], order, visit.pairwise, visit.coupling, spaces[0]
        )
        return copies[0][chains.places].copy()

    def _backup(self, visited: Ints) -> Any:
        flows.make_room(self.chains, self.state)  # before: it moves what is copied
        return flows.backup_of(self.state, visited)

    def _restore(self, visited: Ints, old: Any) -> None:
        flows.restore(self.state, visited, old)

    def bound(self) -> float:
        """Return the weighted expected costs."""
        return float(self.state["losses"].sum())

    def _slopes(self) -> Tables:
        """Return the true labels less the flow."""
        data = self.chains.data
        state = self.state
        K = self.chains.states
        places = flows.places(state["starts"], state["counts"])
        shares = state["shares"][places]
        owners = np.repeat(np.arange(len(state["counts"])), state["counts"])
        ends = state["ends"][places] + K * data.offsets[owners]
        befores = state["befores"][places]
        each = self._each
        nodes: Floats = -np.bincount(ends, shares, len(data.labels) * K).astype(np.float64)
        nodes = nodes.reshape(-1, K)
        nodes[np.arange(len(nodes)), data.labels] += 1.0
        nodes *= each[:, None]
        inside = befores >= 0
        steps = befores[inside] * K + ends[inside] % K
        used = (each[ends // K] * shares)[inside]
        edges: Floats = -np.bincount(steps, used, K * K).astype(np.float64)
        later = np.setdiff1d(np.arange(len(data.labels)), data.offsets[:-1])
        true = data.labels[later - 1] * K + data.labels[later]
        edges += np.bincount(true, each[later], K * K)
        return self._tables(nodes, edges)


class ErrorShard(DualShard):
    """Sequences with errors of some time ago, on which dual coordinate ascent takes steps."""

    names: ClassVar[tuple[str, ...]] = ("nodes", "steps", "bounds")

    def _begin(self) -> State:
        K = self.chains.states
        n = self.objective.n_examples
        learnt = n if self.chains.data.learnt.any() else 0
        return {
            "nodes": np.zeros((len(self.chains.data.labels), K), np.float32),
            "steps": np.zeros((learnt, K, K), np.float32),
            "bounds": np.zeros(n),
        }

    def _advance(self, weights: Floats, visit: Visit, order: Ints) -> Floats:
        chains = self.chains
        plan = self.objective.chain_layout
        found = np.array(weights)  # kernels write to it, where all features have a row
        primal = plan.to_kernel(chains, found, self.objective.n_jobs)
        ascend(
            order, chains.data, plan.layout, make_parts(self.objective.loss),
            visit.coupling * chains.loss_weights,
            step_lengths(self.objective, visit.coupling * visit.curvature), primal,
            Memory(*(self.state[name] for name in Memory._fields)),
            make_errors(chains), make_workspace(chains),
        )  # fmt: skip
        plan.from_kernel(chains, primal, found, self.objective.n_jobs)
        return found

    def _positions(self, visited: Ints) -> Ints:
        starts = self.chains.data.offsets[visited]
        return flows.places(starts, self.chains.data.offsets[visited + 1] - starts)

    def _backup(self, visited: Ints) -> Any:
        state = self.state
        steps = state["steps"][visited] if len(state["steps"]) else state["steps"]
        return state["nodes"][self._positions(visited)], steps, state["bounds"][visited]

    def _restore(self, visited: Ints, old: Any) -> None:
        nodes, steps, bounds = old
        self.state["nodes"][self._positions(visited)] = nodes
        self.state["bounds"][visited] = bounds
        if len(steps):
            self.state["steps"][visited] = steps

    def bound(self) -> float:
        """Return the weighted constants of the tangents that are remembered."""
        return float(self.chains.loss_weights @ self.state["bounds"])

    def _slopes(self) -> Tables:
        """Return the errors, the other way round."""
        nodes = -self._each[:, None] * self.state["nodes"]
        edges = np.zeros(self.chains.states**2)
        if len(self.state["steps"]):
            edges -= np.tensordot(self.chains.loss_weights, self.state["steps"], axes=1).ravel()
        return self._tables(nodes, edges)
