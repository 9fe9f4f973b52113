"""What a check is, and what it may raise."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from signal import ITIMER_PROF, SIGPROF, setitimer, signal
from typing import Any

import numpy as np


class WrongError(AssertionError):
    """The library gave an answer that an oracle contradicts."""


class HangError(BaseException):
    """Something took longer than it may; no handler of `Exception` swallows it."""


@dataclass(frozen=True)
class Check:
    """One kind of check: a function that raises where something is wrong.

    Attributes
    ----------
    run
        Takes a generator, on which alone everything depends, and looks at some cases.
    cases
        How many cases one call looks at.
    goal
        How many are to be seen in all; the check furthest from its goal comes next.
    seconds
        A call that computes for longer is a hang, and so is one that waits ten times as long.
    memory
        GiB that a call may write to beyond what the process has.
    """

    run: Callable[[np.random.Generator], None]
    cases: int
    goal: int
    seconds: float = 120.0
    memory: float = 4.0


def expect(true: Any, *told: Any) -> None:
    """Raise where something does not hold, with what is known about it."""
    if not true:
        raise WrongError(" ".join(map(str, told)))


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise in what computes for longer, whatever else the machine does.

    Compiled code hears it late, and what sleeps not at all: the runner watches over both.
    """

    def ring(*_: Any) -> None:
        raise HangError(f"not done after {seconds:g} seconds")

    before = signal(SIGPROF, ring)
    setitimer(ITIMER_PROF, seconds)
    try:
        yield
    finally:
        setitimer(ITIMER_PROF, 0.0)
        signal(SIGPROF, before)


@contextmanager
def at_most_memory(more: int) -> Iterator[None]:
    """Let the process have so many bytes beyond those that it has, and no more.

    Addresses that are only reserved do not count: malloc reserves 64 MiB for every thread, so that
    a limit for all addresses (RLIMIT_AS) is broken by threads alone where there are many cores.
    """
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_has() + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _has() -> int:
    """Bytes that this process alone may write to."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        (found,) = [line.split()[1] for line in file if line.startswith("VmData:")]
    return 1024 * int(found)
