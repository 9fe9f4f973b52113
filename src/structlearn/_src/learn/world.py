r"""What a world is: one inference problem as a pure function with explicit memory.

Every learner compares two worlds. In the *free* one outputs and hidden variables may take any
value, often pushed towards mistakes by a task cost or an entropy; in the *clamped* one outputs are
fixed to the labels. A world answers with the value of every example and its gradient by the
parameters of the inference problem: tables of potentials, or weights of hinges.

Nothing changes inside a world. What inference goes on from (messages, variables of ADMM) is its
*memory*, which the caller owns: a tree of tuples whose leaves are arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import ArgumentError
from structlearn._src.inference.names import TRAINED

#: A tree of tuples whose leaves are arrays; None where nothing is remembered.
Memory = Any
#: What a world is solved at: tables of all groups, or weights of all groups of hinges.
Parameters = TypeVar("Parameters")


class Budget(NamedTuple):
    """How much inference one evaluation may spend."""

    #: Message sweeps, or steps of ADMM, from where the memory stands; None goes on to convergence.
    sweeps: int | None = None


CONVERGED = Budget()


@dataclass(frozen=True)
class InferenceSettings:
    """How worlds infer."""

    #: For graphs: "exact" by elimination, "bp" by belief propagation, "auto" exact where that is
    #: quick; "trw" by tree-reweighted messages, which have a single fixed point at one temperature,
    #: so that learning stays sound where factors are strong and plain messages end anywhere.
    method: str = "auto"
    #: Limit on the sweeps, or on the steps of ADMM, of an evaluation that is to converge; by
    #: default 100 sweeps or 10,000 steps.
    sweeps: int | None = None
    #: Convergence: messages move by less (default 1e-4), or the residuals of ADMM per local copy
    #: are smaller (default 1e-3).
    tol: float | None = None
    damping: float = 0.0  #: share of the old message that stays in every update
    step: float | None = None  #: of ADMM, see `field.consensus.Consensus`
    relaxation: float = 1.0
    n_jobs: int | None = None
    times: float = TRAINED  #: the cost of messages that "auto" may spend on being exact

    def __post_init__(self) -> None:
        if self.sweeps is not None:
            checks.integer("sweeps", self.sweeps, low=1)
        if self.tol is not None:
            checks.number("tol", self.tol, low=0.0)


class World(Protocol[Parameters]):
    """One inference problem over a batch of examples."""

    @property
    def approximate(self) -> bool:
        """Whether its values are only those that messages have got to."""
        ...

    def begin(self) -> Memory:
        """Return the memory before any inference."""
        ...

    def solve(
        self,
        parameters: Parameters,
        factors: Floats,
        memory: Memory,
        budget: Budget = CONVERGED,
        into: Parameters | None = None,
    ) -> tuple[Floats, Parameters, Memory]:
        """Values of the examples, their gradient by the parameters, and where inference stands.

        Parameters
        ----------
        parameters
            What the potentials are.
        factors
            (examples,) What the gradient of every example is multiplied by.
        memory
            Where inference begins. Its arrays are brought up to date in place, and it is returned.
        budget
            How far inference goes.
        into
            Where the gradient is added; new arrays if None.
        """
        ...


def add_tables(into: tuple[Floats, ...] | None, more: tuple[Floats, ...]) -> tuple[Floats, ...]:
    """Add tables in place; new ones stay as they are."""
    if into is None:
        return more
    for table, each in zip(into, more, strict=True):
        table += each
    return into


# ---- memories ------------------------------------------------------------------------------


class Elsewhere(ABC):
    """A memory whose arrays are kept by workers, each those of its shard, or on a device."""

    iterations: int = 0  #: sweeps or steps of ADMM behind it, over all worlds

    @abstractmethod
    def gather(self) -> tuple[Memory, ...]:
        """Return the memories of all shards."""

    @abstractmethod
    def scatter(self, memories: tuple[Memory, ...]) -> None:
        """Let the workers go on from what `gather` has returned."""


def remembers(memory: Memory) -> bool:
    """Tell whether a memory has any arrays, wherever they are."""
    if isinstance(memory, tuple):
        return any(map(remembers, memory))
    return memory is not None


def leaves(memory: Memory, path: str = "memory") -> Iterator[tuple[str, Any]]:
    """Yield the arrays of a memory, each with its path in the tree."""
    if isinstance(memory, Elsewhere):
        memory = memory.gather()
    if isinstance(memory, tuple):
        for number, branch in enumerate(memory):
            yield from leaves(branch, f"{path}.{number}")
    elif memory is not None:
        yield path, memory


def count_steps(memory: Memory) -> int:
    """Return how many sweeps or steps of ADMM are behind a memory, over all its worlds."""
    if hasattr(memory, "iterations"):
        return int(memory.iterations)
    return sum(map(count_steps, memory)) if isinstance(memory, tuple) else 0


def fill(memory: Memory, arrays: Mapping[str, Any]) -> None:
    """Write the arrays that `leaves` has yielded into a memory of the same worlds."""
    for path, array in leaves(memory):
        check_fits(path in arrays and np.shape(arrays[path]) == np.shape(array))
    _write(memory, arrays, "memory")


def _write(memory: Memory, arrays: Mapping[str, Any], path: str) -> None:
    if isinstance(memory, Elsewhere):
        memories = memory.gather()
        _write(memories, arrays, path)
        memory.scatter(memories)
    elif isinstance(memory, tuple):
        for number, branch in enumerate(memory):
            _write(branch, arrays, f"{path}.{number}")
    elif memory is not None:
        memory[...] = arrays[path]


def check_fits(fits: bool) -> None:
    """Refuse a memory that other worlds have begun: compiled code would read past its arrays."""
    if not fits:
        raise ArgumentError(
            "a memory was given that does not fit these worlds; use what begin() of the same "
            "objective returns"
        )
