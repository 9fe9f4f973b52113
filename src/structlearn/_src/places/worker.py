"""What runs on the workers of a Dask cluster: they keep shards, and answer in trees.

A question goes to the first worker of a list, which hands it on to the first of either half of
the rest, works on what it keeps meanwhile, and returns the sum of all answers. Weights thus go out
and gradients come back once for each worker, from worker to worker, in as many stages as the
logarithm of their number; nothing passes through the scheduler. The order of the sum is that of the
list, so that answers do not depend on who is faster.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, NamedTuple

from distributed import WorkerPlugin
from distributed.protocol.serialize import to_serialize

from structlearn._src.common.place import Place, at
from structlearn._src.common.threads import at_most, one_blas_thread

#: Works on what a worker keeps under a key, with what all share; answers are tuples that add up.
Work = Callable[[Any, Any], tuple[Any, ...]]
#: Workers by address, each with the key of what it keeps.
Tree = Sequence[tuple[str, str]]


class Failure(NamedTuple):
    """What a worker could not do: it is gone, or without the shard, or there was an error."""

    worker: str
    key: str
    lost: bool
    error: Exception


class Total(NamedTuple):
    """The sum of all answers, or why there is none."""

    sum: tuple[Any, ...] | None
    failures: tuple[Failure, ...] = ()


async def ask(rpc: Any, work: Work, shared: Any, tree: Tree) -> Total:
    """Let the workers of a tree do some work; `rpc` connects to an address."""
    worker, key = tree[0]
    try:
        answer = await rpc(worker).structlearn(
            work=to_serialize(work), shared=to_serialize(shared), tree=list(map(list, tree))
        )
    except OSError as error:  # also what Dask raises where a connection ends
        return Total(None, (Failure(worker, key, True, error),))
    reply: Total = answer["reply"]
    return reply


class ShardKeeper(WorkerPlugin):  # type: ignore[misc]
    """Lets a worker keep shards, and answer questions about them."""

    name: ClassVar[str] = "structlearn"
    idempotent: ClassVar[bool] = True  # a second block must not take the shards of the first

    def setup(self, worker: Any) -> None:
        """Begin with nothing kept."""
        self.worker = worker
        self.kept: dict[str, Any] = {}
        self.n_jobs: int = worker.state.nthreads
        self.pool = ThreadPoolExecutor(self.n_jobs, "structlearn")
        self.locks: dict[str, asyncio.Lock] = {}
        worker.handlers["structlearn"] = self.answer

    def teardown(self, worker: Any) -> None:
        """Let go of everything."""
        self.kept.clear()
        self.pool.shutdown(wait=False)

    async def answer(self, work: Work, shared: Any, tree: list[list[str]]) -> dict[str, Any]:
        """Work, and let the rest of the tree work meanwhile."""
        (_, key), *rest = tree
        half = (len(rest) + 1) // 2
        branches = [branch for branch in (rest[:half], rest[half:]) if branch]
        asked = [
            asyncio.ensure_future(ask(self.worker.rpc, work, shared, [(a, b) for a, b in branch]))
            for branch in branches
        ]
        own = await self._own(work, shared, key)
        return {"reply": to_serialize(_total([own, *[await each for each in asked]]))}

    async def _own(self, work: Work, shared: Any, key: str) -> Total:
        """Do the work of this worker in a thread; what is kept is used by one at a time."""
        if work is ping:
            return Total(())
        loop = asyncio.get_running_loop()
        try:
            async with self.locks.setdefault(key, asyncio.Lock()) if key else _nobody_waits():
                total = await loop.run_in_executor(self.pool, self._do, work, shared, key)
            return Total(total)
        except NotKeptError as error:
            return Total(None, (Failure(self.worker.address, key, True, error),))
        except Exception as error:
            return Total(None, (Failure(self.worker.address, key, False, _portable(error)),))

    def _do(self, work: Work, shared: Any, key: str) -> tuple[Any, ...]:
        with at(Place()), at_most(self.n_jobs), one_blas_thread():  # here, whatever others say
            if work is keep:
                self.kept[key] = shared
                return ()
            if work is drop:
                for each in shared:
                    self.kept.pop(each, None)
                    self.locks.pop(each, None)
                return ()
            if key and key not in self.kept:
                raise NotKeptError(key)
            return work(self.kept.get(key), shared)


class NotKeptError(Exception):
    """A worker was asked about something that it does not keep, being a new one."""


class _nobody_waits:  # noqa: N801
    """Stands for a lock where there is nothing to lock."""

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *raised: object) -> None:
        pass


def ping(kept: Any, shared: Any) -> tuple[Any, ...]:
    """Stand for the work of saying that a worker is there, which waits for no other work."""
    raise NotImplementedError


def keep(kept: Any, shared: Any) -> tuple[Any, ...]:
    """Stand for the work of keeping what is shared under a key."""
    raise NotImplementedError


def drop(kept: Any, shared: Any) -> tuple[Any, ...]:
    """Stand for the work of letting go of keys."""
    raise NotImplementedError


def _total(replies: list[Total]) -> Total:
    """Add up answers, in their order, or collect all failures."""
    failures = tuple(failure for reply in replies for failure in reply.failures)
    if failures:
        return Total(None, failures)
    totals = [reply.sum for reply in replies if reply.sum is not None]
    found = totals[0]
    for other in totals[1:]:
        found = tuple(a + b for a, b in zip(found, other, strict=True))
    return Total(found)


def _portable(error: Exception) -> Exception:
    """Return an error that can be sent: some cannot be made again from their arguments."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
