"""Where work is done: threads of this process, unless a `with structlearn.on(...)` says otherwise.

The library asks `current` only where work can be handed over as a whole. A place is a `Place`, or
a subclass in the layer `places`; layers below it know no more of places than this module.

To let places take over one more function, decorate it with ``@placed``: where the current place has
a method of that name, it is called instead, with the function itself as first argument, so that it
can call it for what it leaves alone or hand it on. The base class has no such methods, and threads
need none. So far there are ``infer_many``; ``run_chains``, the runner of samplers; and
``over_examples``, methods of estimators that answer for each example of their first argument.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import wraps
from typing import Any, ClassVar, ParamSpec, TypeVar

from structlearn._src.common.errors import PlaceError

VARIABLE = "STRUCTLEARN_PLACE"
Given = ParamSpec("Given")
Found = TypeVar("Found")


class Place:
    """Threads of this process; subclasses take over what they do better.

    Their methods with the names of functions that are ``@placed`` are called instead of these.
    """

    name: ClassVar[str] = "threads"
    at_once: ClassVar[bool] = False  #: whether one call infers in all graphs of a batch

    def entered(self) -> AbstractContextManager[Any]:
        """Return what surrounds a block that runs here: connections, back ends of others."""
        return nullcontext()

    def objective(self, objective: Found) -> Found:
        """Return what is minimised in place of an objective: itself, or one that is elsewhere."""
        return objective

    def solver(self, solver: Found, objective: Any, saved: bool = False) -> Found:
        """Return what minimises it in place of a solver, whose state is saved or need not be."""
        return solver


_THREADS = Place()
_current: ContextVar[Place | None] = ContextVar("place", default=None)
_named: dict[str, Place] = {}  # places of the environment variable, once they were asked for
_find: Callable[[str], Place] | None = None  # who finds them


def current() -> Place:
    """Return the place of the block around, or of the environment variable, or threads."""
    chosen = _current.get()
    if chosen is not None:
        return chosen
    given = os.environ.get(VARIABLE, "")
    if given in ("", Place.name):
        return _THREADS
    if given not in _named:
        if _find is None:
            raise PlaceError(
                f"the environment variable {VARIABLE}={given!r} was set after structlearn was "
                f"imported; set it before, or use `with structlearn.on({given!r}):`"
            )
        _named[given] = _find(given)
    return _named[given]


def follow_environment(find: Callable[[str], Place]) -> None:
    """Say who finds the place that the environment variable names, when it is first needed."""
    global _find
    _find = find


@contextmanager
def at(place: Place) -> Iterator[Place]:
    """Let a place be the current one, in this thread and in those that work for it."""
    outer = _current.set(place)
    try:
        yield place
    finally:
        _current.reset(outer)


def placed(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """Let the current place take a function over, by a method of the same name."""
    return placed_as(function.__name__)(function)


def placed_as(name: str) -> Callable[[Callable[Given, Found]], Callable[Given, Found]]:
    """Let the current place take functions over by one method, whose name this is."""

    def decorate(function: Callable[Given, Found]) -> Callable[Given, Found]:
        @wraps(function)
        def there(*args: Given.args, **kwargs: Given.kwargs) -> Found:
            take_over = getattr(current(), name, None)
            if take_over is None:
                return function(*args, **kwargs)
            found: Found = take_over(function, *args, **kwargs)
            return found

        return there

    return decorate
