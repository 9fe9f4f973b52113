"""Chains in files: the states of all sweeps that were kept lie in few arrays, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints, offsets_of
from structlearn._src.common.errors import FormatError
from structlearn._src.files import file_checks
from structlearn._src.sample.runner import MarkovChain


class Partitions(NamedTuple):
    """Numbers of groups in several partitions of the same things."""

    numbers: Ints  #: (partitions, things)
    sizes: list[int]  #: number of groups of every partition


def pack_partitions(partitions: Sequence[Ints]) -> NDArray[Any]:
    """Return partitions of the same things as one array of the smallest whole numbers."""
    stack = np.stack(partitions)
    return stack.astype(np.min_scalar_type(int(stack.max())))


def unpack_partitions(what: str, given: Any) -> Partitions:
    """Return partitions as they were, each of whose groups must have a member."""
    if not isinstance(given, np.ndarray) or given.dtype.kind != "u" or given.ndim != 2:
        raise FormatError(f"{what} must be whole numbers (draws, positions)")
    if 0 in given.shape or given.max() >= given.shape[1]:
        raise FormatError(f"{what} are out of range")
    numbers = given.astype(np.int64)
    counts = [np.bincount(row) for row in numbers]
    if not all(each.all() for each in counts):
        raise FormatError(f"some of {what} never occur")
    return Partitions(numbers, [len(each) for each in counts])


def unpack_floats(
    what: str,
    given: Any,
    sizes: Sequence[int],
    shape: tuple[int, ...] = (),
    *,
    least: float = -np.inf,
) -> list[Floats]:
    """Return pieces that lie in one array one after another: each a size, then the same shape."""
    stack = file_checks.floats(what, given, (sum(sizes), *shape), least=least)
    return [stack[a:b] for a, b in pairwise(offsets_of(sizes).tolist())]


def states_of(chains: Sequence[MarkovChain[Any]]) -> list[Any]:
    """Return all draws of all chains, each chain followed by the state that it is in."""
    return [state for chain in chains for state in (*chain.draws, chain.state)]


def pack_chains(chains: Sequence[MarkovChain[Any]], info: Any) -> dict[str, Any]:
    """Return what is to be kept of chains apart from their states."""
    told = [record for chain in chains for record in chain.trace]
    return {
        "n_draws": [len(chain.draws) for chain in chains],
        "n_sweeps": [chain.sweeps for chain in chains],
        "streams": [chain.rng.bit_generator.state for chain in chains],
        "trace": {name: np.array([getattr(each, name) for each in told]) for name in info._fields},
    }


def unpack_chains(given: dict[str, Any], info: Any, states: list[Any]) -> list[MarkovChain[Any]]:
    """Return chains from what was kept of them, and from their states."""
    columns = [given["trace"][name] for name in info._fields]
    if any(column.ndim != 1 or column.dtype.kind not in "fi" for column in columns):
        raise FormatError("what sweeps told must be numbers")
    told = [info(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    own = _shared_out("states", [n + 1 for n in given["n_draws"]], states)
    traces = _shared_out("sweeps", given["n_sweeps"], told)
    streams = map(_stream, given["streams"])
    return [
        MarkovChain(states[-1], stream, trace, states[:-1])
        for states, trace, stream in zip(own, traces, streams, strict=True)
    ]


def _stream(state: Any) -> np.random.Generator:
    rng = np.random.default_rng(0)
    rng.bit_generator.state = state
    return rng


def _shared_out(what: str, sizes: Any, items: list[Any]) -> list[list[Any]]:
    """Return the items of every chain, of which all together must have them all."""
    ends: list[int] = offsets_of(checks.integer(f"number of {what}", n) for n in sizes).tolist()
    if len(ends) < 2 or ends[-1] != len(items):
        raise FormatError(f"there are not as many {what} as chains have")
    return [items[a:b] for a, b in pairwise(ends)]
