"""Dual solvers over workers: each keeps the dual variables of its sequences, see `solve.shards`.

A round sends the weights to all workers, and adds up by how much their variables change them. Where
a worker has died, the one in its place begins with variables that stand for weights of 0. All are
then asked for their parts of the weights, whose sum is what the run goes on from. So the weights
are always those of the variables that are there, and every bound on the optimum holds.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from structlearn._src.common.arrays import Floats
from structlearn._src.common.watch import heed_time
from structlearn._src.learn.objective import Objective
from structlearn._src.learn.world import Memory, check_fits
from structlearn._src.places.remote_objective import Question, RemoteMemory, RemoteObjective, Shard
from structlearn._src.solve import shards
from structlearn._src.solve.base import Report, Solver, State, draw_seed
from structlearn._src.solve.dual_shard import (
    ROUNDS,
    DualShard,
    ErrorShard,
    FlowShard,
    Moved,
    Visit,
)
from structlearn._src.solve.frank_wolfe import FrankWolfe
from structlearn._src.solve.sdca import Sdca

_ROUNDING = 1e-12  # by how much bounds may differ that should agree, relatively
_SINGLE = 1e-7  # the same where variables are stored in single precision
_GOOD = 0.01  # relative gap from which on the last weights can be better than their average


# ---- on a worker -------------------------------------------------------------------------


class Ask(NamedTuple):
    """What shards are told about their variables."""

    kind: type[DualShard]
    rounds: int  #: that count
    visit: Visit | None = None
    arrays: Any = None


def _variables(shard: Shard, asked: Question) -> DualShard | None:
    """Return the dual variables after the rounds that count; None where a worker is new."""
    for token in asked.forgotten:
        shard.memories.pop(token, None)
    found: DualShard | None = shard.memories.get(asked.token or 0)
    if found is not None:
        found.return_to(asked.more.rounds)
    return found


def _begun(shard: Shard, asked: Question) -> DualShard:
    """Return the variables, which begin where they stand for weights of 0."""
    found = _variables(shard, asked)
    if found is None:
        found = asked.more.kind(shard.seen(asked.view), shard.first)
        found.rounds = asked.more.rounds
        shard.memories[asked.token or 0] = found
    return found


def _advance(shard: Shard, asked: Question) -> tuple[Any, ...]:
    """Take part in a round; return what changes, and 1 if there are no variables."""
    found = _variables(shard, asked)
    weights = np.asarray(asked.weights)
    if found is None:
        return np.zeros_like(weights), 0.0, 0.0, 1
    return (*found.advance(weights, asked.more.visit), 0)


def _add_up(shard: Shard, asked: Question) -> tuple[Any, ...]:
    """Return the weights that the variables stand for, and the dual without their square."""
    found = _begun(shard, asked)
    return found.weights(), found.bound()


def _gather(shard: Shard, asked: Question) -> tuple[Any, ...]:
    found = _variables(shard, asked)
    return ([None if found is None else found.arrays()],)


def _scatter(shard: Shard, asked: Question) -> tuple[Any, ...]:
    arrays = asked.more.arrays.get(shard.first)
    if arrays is not None:
        _begun(shard, asked).fill(arrays)
    return ()


# ---- here --------------------------------------------------------------------------------


class RemoteDuals(RemoteMemory):
    """The dual variables of all shards, by a token."""

    def __init__(self, objective: RemoteObjective, kind: type[DualShard]) -> None:
        super().__init__(objective.remote, objective.view)
        self.kind = kind
        self.rounds = 0  #: that count

    def ask(self, work: Any, weights: Floats | None = None, **told: Any) -> Any:
        """Ask all shards about their variables."""
        heed_time()
        more = Ask(self.kind, self.rounds, **told)
        return self.remote.ask(work, self.view, self.token, weights, more)

    def gather(self) -> tuple[Memory, ...]:
        """Return the variables of all shards; those that a worker has lost are not among them."""
        (found,) = self.ask(_gather)
        return tuple(found)

    def scatter(self, memories: tuple[Memory, ...]) -> None:
        """Let the shards go on from these variables."""
        firsts = self.remote.firsts
        check_fits(len(memories) == len(firsts))
        self.rounds = max(int(each[0]) for each in memories if each is not None)
        self.ask(_scatter, arrays=dict(zip(firsts, memories, strict=True)))


@dataclass(frozen=True)
class DualRounds(Solver):
    """Rounds of a dual solver over the workers of a cluster."""

    kind: ClassVar[type[DualShard]]
    wary: ClassVar[bool]  #: whether even steps that are as short as others allow may be too long
    rounding: ClassVar[float] = _ROUNDING

    @classmethod
    def of(cls, solver: Solver, objective: RemoteObjective) -> Self:
        """Return the same solver, for the workers of an objective."""
        given = {each.name: getattr(solver, each.name) for each in fields(solver)}  # type: ignore[arg-type]
        return cls(**given, workers=len(objective.remote.firsts))  # type: ignore[call-arg]

    def refuses(self, objective: Objective) -> str:
        """Refuse what the solver refuses in one process."""
        assert isinstance(objective, RemoteObjective)
        if objective.tangent is not None:
            return "it cannot minimise the bound of CCCP; choose another inner solver"
        return super().refuses(objective.origin)

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Begin with weights of 0, whatever was given: those of no variables."""
        assert isinstance(objective, RemoteObjective)
        duals = RemoteDuals(objective, self.kind)
        duals.ask(_add_up)
        return {
            "seed": draw_seed(rng), "iteration": 0, "weights": np.zeros(len(weights)),
            "bound": 0.0, "coupling": float(len(objective.remote.firsts)), "curvature": 1.0,
            "duals": duals,
        }  # fmt: skip

    @abstractmethod
    def _visit(self, state: State) -> Visit:
        """Return what shards are told, but for the part of a pass and the coupling."""

    def _pass(self, objective: Objective, state: State) -> None:
        """Visit all sequences once."""
        assert isinstance(objective, RemoteObjective)
        state["iteration"] += 1
        duals = _duals(objective, state, self.kind)
        for part in range(ROUNDS):
            while not self._round(duals, state, part):
                pass

    def _round(self, duals: RemoteDuals, state: State, part: int) -> bool:
        """Let all shards take steps from the same weights; tell whether they count."""
        weights = state["weights"]
        coupling = state["coupling"]
        most = float(len(duals.remote.firsts))
        visit = self._visit(state)._replace(part=part, coupling=coupling)
        *moved, new = duals.ask(_advance, weights, visit=visit)
        if new:
            state["weights"], state["bound"] = _sum_up(duals)
            return False
        change, squares, bound = Moved(*moved)
        square = float(change @ change)
        gain = bound - state["bound"] - float(weights @ change) - 0.5 * square
        if gain >= -self.rounding * abs(bound) or (coupling >= most and not self.wary):
            duals.rounds += 1
            weights += change
            state["bound"] = float(bound)
            needed = square / squares if squares > 0.0 else 1.0
            state["coupling"] = shards.next_coupling(coupling, needed, int(most))
            return True
        state["curvature"] *= 2.0 if coupling >= most else 1.0
        state["coupling"] = min(2.0 * coupling, most)
        return False


def _duals(objective: RemoteObjective, state: State, kind: type[DualShard]) -> RemoteDuals:
    """Return the variables, from the arrays of a checkpoint where a run is resumed."""
    if "duals" not in state:
        state["duals"] = RemoteDuals(objective, kind)
        state["duals"].scatter(_unpacked(state, len(objective.remote.firsts)))
    found: RemoteDuals = state["duals"]
    return found


def _unpacked(state: State, n: int) -> tuple[Memory, ...]:
    """Take the variables of all shards out of a state; None where a worker had lost them."""
    kept: list[dict[int, Any]] = [{} for _ in range(n)]
    for name in [name for name in state if name.startswith("duals.")]:
        _, shard, place = name.split(".")
        kept[int(shard)][int(place)] = state.pop(name)
    return tuple(tuple(each[i] for i in sorted(each)) or None for each in kept)


def _sum_up(duals: RemoteDuals) -> tuple[Floats, float]:
    """Return the weights that all variables stand for, and the dual without their square."""
    weights, bound = duals.ask(_add_up)
    return np.array(weights), float(bound)


def dual_value(state: State) -> float:
    """Return a value that the objective never falls below."""
    weights = state["weights"]
    return float(state["bound"] - 0.5 * (weights @ weights))


@dataclass(frozen=True)
class RemoteFrankWolfe(DualRounds, FrankWolfe):
    """Frank-Wolfe in as many shards as there are workers, averaged over passes."""

    workers: int = 1
    kind: ClassVar[type[DualShard]] = FlowShard
    wary: ClassVar[bool] = False

    def _visit(self, state: State) -> Visit:
        pairwise = self.pairwise > 0 and state["iteration"] % self.pairwise == 0
        return Visit(state["seed"], state["iteration"], 0, 1.0, pairwise=pairwise)

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Begin where only the true labels have probability, which means weights of 0."""
        state = super().start(objective, weights, rng)
        sums = {name: np.zeros(len(weights)) for name in ("sum", "average")}
        return state | sums | {"plain": False}

    def step(self, objective: Objective, state: State) -> Report:
        """Visit all sequences once."""
        self._pass(objective, state)
        count = float(state["iteration"])
        state["sum"] += count * state["weights"]
        state["average"] = state["sum"] / (0.5 * count * (count + 1.0))
        due = state["iteration"] % self.evaluate == 0
        report = self._look(objective, state) if due else Report()
        if state["plain"]:
            state["average"] = state["weights"].copy()
        return report

    def _look(self, objective: Objective, state: State) -> Report:
        """Value the average and, once it is good, the last weights too."""
        dual = dual_value(state)
        value = objective.value(state["average"])
        state["plain"] = False
        if value - dual <= _GOOD * value:
            last = objective.value(state["weights"])
            state["plain"] = bool(last < value)
            value = min(last, value)
        return Report(value, gap=max(value - dual, 0.0))


@dataclass(frozen=True)
class RemoteSdca(DualRounds, Sdca):
    """Dual coordinate ascent in as many shards as there are workers."""

    workers: int = 1
    kind: ClassVar[type[DualShard]] = ErrorShard
    wary: ClassVar[bool] = True
    rounding: ClassVar[float] = _SINGLE

    def _visit(self, state: State) -> Visit:
        return Visit(state["seed"], state["iteration"], 0, 1.0, curvature=state["curvature"])

    def step(self, objective: Objective, state: State) -> Report:
        """Visit all sequences once."""
        self._pass(objective, state)
        if state["iteration"] % self.evaluate:
            return Report()
        value = objective.value(state["weights"])
        return Report(value, gap=max(value - dual_value(state), 0.0))


def on_workers(solver: Any, objective: Any) -> Any:
    """Return a solver for shards on workers, where one in this process cannot reach them."""
    if not isinstance(objective, RemoteObjective):
        return solver
    for kind, there in ((FrankWolfe, RemoteFrankWolfe), (Sdca, RemoteSdca)):
        if type(solver) is kind:
            return there.of(solver, objective)  # type: ignore[attr-defined]
    return solver
