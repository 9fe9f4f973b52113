"""An objective whose shards are kept by the workers of a cluster, each with its memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.watch import heed_time
from structlearn._src.learn.objective import (
    Ability,
    Hints,
    Objective,
    Tangent,
    TwoWorlds,
    ValueGradient,
)
from structlearn._src.learn.world import Budget, Elsewhere, Memory, check_fits, count_steps, leaves

_VIEWS = 4  # changed objectives that a shard keeps: their worlds take as much memory as its own
_tokens = count(1)

#: Changes to an objective, in order: the method that makes one, and its arguments.
View = tuple[tuple[Any, ...], ...]


# ---- on a worker -------------------------------------------------------------------------


class Shard:
    """An objective over the examples from `first` on, and the memories that runs have of it."""

    def __init__(self, objective: Any, first: int) -> None:
        self.objective = objective
        self.first = first
        self.views: dict[View, Any] = {}
        self.memories: dict[int, Memory] = {}

    def seen(self, view: View) -> Any:
        """Return the objective after some changes, made once."""
        if not view:
            return self.objective
        if view not in self.views:
            found = self.seen(view[:-1])
            method, *arguments = view[-1]
            if method == "bounded":  # the tangent is subtracted where all shards are added up
                arguments = [Tangent(np.zeros(found.n_weights), 0.0)]
            self.views[view] = getattr(found, method)(*arguments)
            for old in [*self.views][:-_VIEWS]:
                del self.views[old]
        return self.views[view]

    def memory(self, objective: Any, token: int | None) -> Memory:
        """Return a memory by its token; a worker that is new begins anew."""
        if token is None:
            return objective.begin()
        if token not in self.memories:
            self.memories[token] = objective.begin()
        return self.memories[token]


class Question(NamedTuple):
    """What a shard is asked at: the view, the memory, and what may be forgotten."""

    view: View
    token: int | None
    forgotten: tuple[int, ...] = ()
    weights: Any = None
    more: Any = None


def _prepared(shard: Shard, asked: Question) -> tuple[Any, Memory]:
    for token in asked.forgotten:
        shard.memories.pop(token, None)
    objective = shard.seen(asked.view)
    return objective, shard.memory(objective, asked.token)


def _loss_gradient(shard: Shard, asked: Question) -> tuple[Any, ...]:
    objective, memory = _prepared(shard, asked)
    value, gradient, memory = objective.loss_gradient(asked.weights, memory)
    return value, gradient, count_steps(memory)


def _loss_value(shard: Shard, asked: Question) -> tuple[Any, ...]:
    objective, memory = _prepared(shard, asked)
    return objective.loss_value(asked.weights, memory), count_steps(memory)


def _touch(shard: Shard, asked: Question) -> tuple[Any, ...]:
    objective, memory = _prepared(shard, asked)
    tangent = objective.linearise(asked.weights, memory).tangent
    return tangent.gradient, tangent.constant, count_steps(memory)


def _batch_gradient(shard: Shard, asked: Question) -> tuple[Any, ...]:
    objective = shard.seen(asked.view)
    mine = asked.more - shard.first
    mine = mine[(mine >= 0) & (mine < objective.n_examples)]
    if not len(mine):
        return 0.0, np.zeros_like(asked.weights)
    return objective.batch_gradient(asked.weights, mine)[:2]


def _begin(shard: Shard, asked: Question) -> tuple[Any, ...]:
    """Begin a memory, or copy another; say how many arrays it has."""
    objective = shard.seen(asked.view)
    other = shard.memories.get(asked.more)
    memory = objective.begin() if other is None else deepcopy(other)
    n = sum(1 for _ in leaves(memory))
    if n:
        shard.memories[asked.token or 0] = memory
    return (n,)


def _gather(shard: Shard, asked: Question) -> tuple[Any, ...]:
    objective = shard.seen(asked.view)
    return ([shard.memory(objective, asked.token)],)


def _scatter(shard: Shard, asked: Question) -> tuple[Any, ...]:
    shard.memories[asked.token or 0] = asked.more[shard.first]
    return ()


def _approximate(shard: Shard, asked: Question) -> tuple[Any, ...]:
    return (int(shard.seen(asked.view).approximate),)


# ---- here --------------------------------------------------------------------------------


class Keepers(Protocol):
    """Whoever keeps the shards."""

    def ask(self, work: Callable[[Shard, Question], tuple[Any, ...]], shared: Question) -> Any:
        """Let all shards do some work; return the sum of their answers."""


@dataclass
class Remote:
    """The shards of one objective, whatever view of it is taken."""

    keepers: Keepers
    firsts: list[int]  #: number of the first example of each shard
    forgotten: list[int] = field(default_factory=list)

    def ask(self, work: Any, view: View, token: int | None, weights: Any = None, more: Any = None):  # type: ignore[no-untyped-def]
        """Ask all shards, and let them forget what nobody remembers here."""
        gone = tuple(self.forgotten)
        found = self.keepers.ask(work, Question(view, token, gone, weights, more))
        del self.forgotten[: len(gone)]
        return found


class RemoteMemory(Elsewhere):
    """Where inference stands on all shards, by a token."""

    def __init__(self, remote: Remote, view: View) -> None:
        self.remote = remote
        self.view = view
        self.token = next(_tokens)
        self.iterations = 0
        weakref.finalize(self, remote.forgotten.append, self.token)

    def gather(self) -> tuple[Memory, ...]:
        """Return the memories of all shards."""
        return tuple(self.remote.ask(_gather, self.view, self.token)[0])

    def scatter(self, memories: tuple[Memory, ...]) -> None:
        """Let the shards go on from these memories."""
        firsts = self.remote.firsts
        check_fits(len(memories) == len(firsts))
        more = dict(zip(firsts, memories, strict=True))
        self.remote.ask(_scatter, self.view, self.token, more=more)
        self.iterations = count_steps(memories)


@dataclass(frozen=True, eq=False)
class RemoteObjective(Objective):
    """Penalty plus the losses of shards elsewhere: one question to all of them per evaluation.

    What depends on the data alone is known from the `origin`. A tangent is applied here, and the
    shards then solve their free worlds only.
    """

    origin: Any
    remote: Remote
    view: View = ()
    tangent: Tangent | None = None
    warm: RemoteMemory | None = None
    size: int | None = None  #: number of examples, where the origin has not all of them

    @property
    def penalty(self) -> Any:  # type: ignore[override]
        """What large weights cost."""
        return self.origin.penalty

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return int(self.origin.n_weights)

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return int(self.origin.n_examples) if self.size is None else self.size

    @property
    def data(self) -> object:
        """What tells these examples from others, in checkpoints."""
        found: object = self.origin.data
        return found

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it can do beyond values and gradients."""
        found: frozenset[Ability] = self.origin.abilities
        return found

    @property
    def convex(self) -> bool:
        """Whether every minimum is a global one."""
        return self.tangent is not None or self.origin.convex

    @property
    def smooth(self) -> bool:
        """Whether the losses have a gradient everywhere."""
        return bool(self.origin.smooth)

    @property
    def approximate(self) -> bool:
        """Whether values are only those that messages have got to."""
        return bool(self._ask(_approximate, None)[0])

    @property
    def zero_is_optimal(self) -> bool:
        """Whether weights of 0 have no loss."""
        return bool(self.origin.zero_is_optimal)

    @property
    def scales(self) -> float | Floats:
        """What steps are to be multiplied by."""
        found: float | Floats = self.origin.scales
        return found

    @property
    def hints(self) -> Hints:
        """What it suggests to solvers and drivers."""
        found: Hints = self.origin.hints
        return found

    def diagonal(self, weights: Floats) -> Floats | None:
        """Positive estimate of the curvature of every weight."""
        if self.size is not None:
            return None  # the origin does not know how many examples there are
        found: Floats | None = self.origin.diagonal(weights)
        return found

    # ---- values --------------------------------------------------------------------------

    def _ask(self, work: Any, memory: RemoteMemory | None, **more: Any) -> Any:
        heed_time()
        token = None if memory is None else memory.token
        return self.remote.ask(work, self.view, token, **more)

    def begin(self) -> Memory:
        """Return the memory before any inference, or a copy of what `warmed` was given."""
        memory = RemoteMemory(self.remote, self.view)
        (n,) = self._ask(_begin, memory, more=self.warm and self.warm.token)
        if not n:
            return ()  # exact worlds remember nothing
        memory.iterations = 0 if self.warm is None else self.warm.iterations
        return memory

    def loss_gradient(self, weights: Floats, memory: Memory = None) -> ValueGradient:
        """C times the weighted losses of all examples, and the gradient."""
        memory = self.begin() if memory is None else memory
        value, gradient, steps = self._ask(_loss_gradient, memory or None, weights=weights)
        if memory:
            memory.iterations = steps
        if self.tangent is not None:
            value -= self.tangent.value(weights)
            gradient = gradient - self.tangent.gradient
        return ValueGradient(float(value), gradient, memory)

    def loss_value(self, weights: Floats, memory: Memory = None) -> float:
        """C times the weighted losses of all examples; no gradient travels."""
        value, steps = self._ask(_loss_value, memory or None, weights=weights)
        if memory:
            memory.iterations = steps
        return float(value) - (0.0 if self.tangent is None else self.tangent.value(weights))

    def batch_gradient(self, weights: Floats, which: Ints) -> ValueGradient:
        """C times the weighted losses of some of the examples, and the gradient."""
        value, gradient = self._ask(_batch_gradient, None, weights=weights, more=which)
        if self.tangent is not None:
            part = self.tangent.part(len(which) / self.n_examples)
            value -= part.value(weights)
            gradient = gradient - part.gradient
        return ValueGradient(float(value), gradient, None)

    # ---- what drivers ask for ------------------------------------------------------------

    def take(self, which: Ints) -> Objective:
        """Return the objective of some of the examples, in this process."""
        found: Objective = self.origin.take(which)
        return found

    def linearise(self, weights: Floats, memory: Memory = None) -> Self:
        """Return the convex upper bound that touches the objective at `weights`."""
        gradient, constant, steps = self._ask(_touch, memory or None, weights=weights)
        if memory:
            memory.iterations = steps
        tangent = Tangent(gradient, float(constant))
        view = (*self.view, ("bounded",))
        return replace(self, view=view, tangent=tangent, warm=memory or None)

    def softened(self, eps: float) -> Self:
        """Return the objective with no temperature below `eps`; a tangent stays."""
        origin = self.origin.softened(eps)
        return replace(self, origin=origin, view=(*self.view, ("softened", eps)), warm=None)

    def with_budget(self, budget: Budget) -> Self:
        """Return the same objective with so much inference per evaluation."""
        return replace(self, view=(*self.view, ("with_budget", budget)))

    def warmed(self, memory: Memory) -> Self:
        """Return the same objective, whose `begin` is a copy of this memory."""
        return replace(self, warm=memory or None)


def can_be_cut(objective: object) -> bool:
    """Tell whether an objective is a sum over shards."""
    return isinstance(objective, TwoWorlds)
