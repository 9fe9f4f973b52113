"""The front door: ``with structlearn.on(place)``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from structlearn._src.common.errors import ArgumentError, PlaceError
from structlearn._src.common.place import Place, at

_SCHEMES = ("tcp://", "tls://", "ucx://", "inproc://", "ws://", "wss://")  # of Dask's addresses
_KNOWN = (
    "'threads', 'cuda', a Dask client, or the address of a Dask scheduler such as "
    "'tcp://127.0.0.1:8786'"
)


@contextmanager
def on(place: Any) -> Iterator[Place]:
    """Run everything inside the block at a place.

    Fits, predictions, `infer_many`, rules, samplers and searches of scikit-learn need no other
    change. Blocks can be nested; the innermost one applies. Threads that the library starts work at
    the place of the block, threads that you start do not. Without a block, the environment variable
    STRUCTLEARN_PLACE says where, by default threads of this process.

    Parameters
    ----------
    place : str or dask.distributed.Client
        ``"threads"``; ``"cuda"``, a graphics card (needs ``structlearn[torch]``); a Dask
        ``Client``, or the address of its scheduler (needs ``structlearn[dask]``).

    Yields
    ------
    Place
        The place.

    Raises
    ------
    PlaceError
        If the place cannot be reached, or cannot work; before any work is done.

    Examples
    --------
    >>> import numpy as np
    >>> from structlearn import chain, infer, on
    >>> with on("threads"):
    ...     answer = infer(chain(np.zeros((3, 2)), np.eye(2)), "partition")
    >>> round(answer.value, 3)
    3.32
    """
    there = find_place(place)
    with there.entered(), at(there):
        yield there


def find_place(given: Any) -> Place:
    """Return the place that a name, an address or a client stands for."""
    if isinstance(given, Place):
        return given
    if isinstance(given, str):
        if given == Place.name:
            return Place()
        if given == "cuda":
            return _card()
        if given.startswith(_SCHEMES):
            return _cluster(given)
    elif _is_client(given):
        return _cluster(given)
    raise ArgumentError(f"place={given!r} is not known; choose {_KNOWN}")


def _is_client(given: Any) -> bool:
    """Tell whether something is a client of Dask, which is then imported already."""
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(given, distributed.Client)


def _card() -> Place:
    from structlearn._src.places.cuda import Cuda

    return Cuda()


def _cluster(given: Any) -> Place:
    try:
        from structlearn._src.places.cluster import Cluster
    except ImportError as error:
        raise PlaceError(
            f"place={given!r} needs Dask ({error}); install structlearn[dask]"
        ) from None
    return Cluster(given)
