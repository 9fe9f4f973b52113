"""Chains in files: the states of all sweeps that were kept lie in few arrays, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import checks
from structlearn._src.common.arrays import Ints, offsets_of
from structlearn._src.common.errors import FormatError
from structlearn._src.sample.runner import MarkovChain


class Parted(NamedTuple):
    """Numbers of groups in several partitions of the same things."""

    numbers: Ints  #: (partitions, things)
    sizes: list[int]  #: number of groups of every partition

    @property
    def total(self) -> int:
        """Number of groups of all partitions."""
        return sum(self.sizes)


def states_of(chains: Sequence[MarkovChain[Any]]) -> list[Any]:
    """Return all draws of all chains, each chain followed by the state that it is in."""
    return [state for chain in chains for state in (*chain.draws, chain.state)]


def stack_chains(chains: Sequence[MarkovChain[Any]], info: type) -> dict[str, Any]:
    """Return what is to be kept of chains apart from their states."""
    told = [record for chain in chains for record in chain.trace]
    names: tuple[str, ...] = info._fields  # type: ignore[attr-defined]
    return {
        "n_draws": [len(chain.draws) for chain in chains],
        "n_sweeps": [chain.sweeps for chain in chains],
        "streams": [chain.rng.bit_generator.state for chain in chains],
        "trace": {name: np.array([getattr(each, name) for each in told]) for name in names},
    }


def unstack_chains(given: dict[str, Any], info: type, states: list[Any]) -> list[MarkovChain[Any]]:
    """Return chains from what was kept of them, and from their states."""
    ends = _ends("states", [n + 1 for n in given["n_draws"]], len(states))
    told = _told(given["trace"], info)
    swept = _ends("sweeps", given["n_sweeps"], len(told))
    return [
        MarkovChain(own[-1], _stream(stream), sweeps, own[:-1])
        for own, sweeps, stream in zip(
            (states[a:b] for a, b in pairwise(ends)),
            (told[a:b] for a, b in pairwise(swept)),
            given["streams"],
            strict=True,
        )
    ]


def narrow(partitions: Sequence[Ints]) -> NDArray[Any]:
    """Return partitions of the same things as one array of the smallest whole numbers."""
    stack = np.stack(partitions)
    return stack.astype(np.min_scalar_type(int(stack.max())))


def widen(what: str, given: Any) -> Parted:
    """Return partitions as they were, each of whose groups must have a member."""
    if not isinstance(given, np.ndarray) or given.dtype.kind != "u" or given.ndim != 2:
        raise FormatError(f"{what} must be whole numbers (draws, positions)")
    if 0 in given.shape or given.max() >= given.shape[1]:
        raise FormatError(f"{what} are out of range")
    numbers = given.astype(np.int64)
    counts = [np.bincount(row) for row in numbers]
    if not all(each.all() for each in counts):
        raise FormatError(f"some of {what} never occur")
    return Parted(numbers, [len(each) for each in counts])


def split(stack: NDArray[Any], sizes: Sequence[int]) -> list[NDArray[Any]]:
    """Return the pieces of an array that was made of them."""
    return [stack[a:b] for a, b in pairwise(offsets_of(sizes).tolist())]


def _told(columns: dict[str, Any], info: type) -> list[Any]:
    """Return the records of sweeps from their columns."""
    names: tuple[str, ...] = info._fields  # type: ignore[attr-defined]
    arrays = [columns[name] for name in names]
    if any(array.ndim != 1 or array.dtype.kind not in "fi" for array in arrays):
        raise FormatError("what sweeps told must be numbers")
    return [info(*row) for row in zip(*(array.tolist() for array in arrays), strict=True)]


def _stream(state: Any) -> np.random.Generator:
    rng = np.random.default_rng(0)
    rng.bit_generator.state = state
    return rng


def _ends(what: str, sizes: Any, end: int) -> list[int]:
    """Return where the parts of every chain end, all of which must be `end` together."""
    ends: list[int] = offsets_of(checks.integer(f"number of {what}", n) for n in sizes).tolist()
    if len(ends) < 2 or ends[-1] != end:
        raise FormatError(f"there are not as many {what} as chains have")
    return ends
