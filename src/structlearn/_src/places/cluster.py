"""A Dask cluster as a place: its workers keep the shards of objectives, and do other tasks."""

from __future__ import annotations

import asyncio
import pkgutil
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from distributed import Client

from structlearn._src.common.errors import IgnoredOptionWarning, PlaceError, warn
from structlearn._src.places.independent import PartsPlace
from structlearn._src.places.remote_objective import Remote, RemoteObjective, Shard, can_be_cut
from structlearn._src.places.worker import Failure, ShardKeeper, Total, Work, ask, drop, keep
from structlearn._version import __version__

_CONNECT = 5.0  # seconds to find a scheduler, or the first worker
_RETURN = 20.0  # seconds that a worker may take to be started again: imports, on a busy machine
_PAUSE = 0.1  # seconds between two looks at who is there
_DEATHS = 3  # workers that may die over the same piece of work before it is to blame


class Cluster(PartsPlace):
    """The workers of a Dask cluster."""

    name: ClassVar[str] = "dask"

    def __init__(self, client: Client | str) -> None:
        self.client = _connect(client) if isinstance(client, str) else client
        self.owned = isinstance(client, str)
        if self.client.asynchronous:
            raise PlaceError("an asynchronous Dask client was given; give one that is not")
        try:
            self._check_versions()
            self.client.register_plugin(ShardKeeper(), name=ShardKeeper.name)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def entered(self) -> Iterator[Any]:
        """Let joblib, and so the searches of scikit-learn, use the workers too."""
        import joblib

        try:
            with joblib.parallel_config(backend="dask", client=self.client):
                yield
        finally:
            self.close()

    def close(self) -> None:
        """End the connection, if it was made here."""
        if self.owned:
            self.client.close()

    # ---- who is there ----------------------------------------------------------------------

    def workers(self) -> list[str]:
        """Return the addresses of all workers, in a fixed order; wait for the first."""
        end = time.monotonic() + _CONNECT
        while not (found := sorted(self.client.nthreads())):
            if time.monotonic() > end:
                raise PlaceError(
                    f"the Dask cluster at {self.address} has had no workers for {_CONNECT:g} s; "
                    f"start some"
                )
            time.sleep(_PAUSE)
        return found

    @property
    def address(self) -> str:
        """Address of the scheduler."""
        return str(self.client.scheduler.address)

    def _check_versions(self) -> None:
        """Refuse workers that would compute something else, or nothing."""
        self.workers()
        asked = "structlearn._version:__version__"
        found = self.client.run(pkgutil.resolve_name, asked, on_error="return")
        for worker, version in found.items():
            if isinstance(version, OSError):
                continue  # it has just died, and is no worker any more
            if isinstance(version, Exception):
                raise PlaceError(
                    f"worker {worker} cannot import structlearn ({version}); install "
                    f"structlearn {__version__} there"
                )
            if version != __version__:
                raise PlaceError(
                    f"worker {worker} has structlearn {version}, but this process has "
                    f"{__version__}; install the same everywhere"
                )

    # ---- questions -------------------------------------------------------------------------

    def ask(self, work: Work, shared: Any, tree: Sequence[tuple[str, str]]) -> Total:
        """Let workers do some work on what they keep."""
        reply: Total = self.client.sync(ask, self.client.rpc, work, shared, tree)
        return reply

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Call a function on every item, on any of the workers; in the order of the items.

        A worker that dies is replaced: its item goes to another one.
        """
        found: dict[int, Any] = {}
        left = deque(enumerate(items))
        deaths = [0] * len(items)
        while left:
            self.client.sync(self._serve_all, self.workers(), function, left, found, deaths)
        return [found[i] for i in range(len(items))]

    async def _serve_all(self, workers: list[str], *work: Any) -> None:
        await asyncio.gather(*(self._serve(worker, *work) for worker in workers))

    async def _serve(
        self,
        worker: str,
        function: Callable[[Any], Any],
        left: deque[tuple[int, Any]],
        found: dict[int, Any],
        deaths: list[int],
    ) -> None:
        """Give a worker one item after the other, for as long as it lives."""
        while left:
            i, item = left.popleft()
            reply = await ask(self.client.rpc, _call, (function, item), [(worker, "")])
            if not reply.failures:
                assert reply.sum is not None
                found[i] = reply.sum[0][0]
                continue
            left.append((i, item))
            deaths[i] += 1
            failure = reply.failures[0]
            if not failure.lost or deaths[i] == _DEATHS:
                left.clear()
                raise_failure(failure, f"part {i}", deaths[i])
            return

    # ---- what runs here ----------------------------------------------------------------------

    def objective(self, objective: Any) -> Any:
        """Cut an objective into one shard for each worker."""
        if not can_be_cut(objective):
            warn(
                f"{type(objective).__name__} cannot be cut into shards, so it is minimised in this "
                f"process and not on the cluster",
                IgnoredOptionWarning,
            )
            return objective
        shards = KeptShards(self, objective)
        return RemoteObjective(objective, Remote(shards))


def _call(kept: Any, shared: tuple[Callable[[Any], Any], Any]) -> tuple[Any, ...]:
    function, item = shared
    return ([function(item)],)


def _connect(address: str) -> Client:
    """Connect to a scheduler, or say that none is there."""
    try:
        return Client(address, timeout=_CONNECT, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise PlaceError(
            f"no Dask scheduler answers at {address} within {_CONNECT:g} s ({error}); start one "
            f"by `dask scheduler`, or correct the address"
        ) from None


def raise_failure(failure: Failure, what: str, deaths: int = 1) -> None:
    """Raise what a worker could not do, with its name."""
    where = f"on worker {failure.worker}, with {what}"
    if failure.lost:
        raise PlaceError(
            f"{deaths} workers in a row died over {what}, the last one {failure.worker} "
            f"({failure.error}); if they ran out of memory, use more workers or a larger "
            f"memory limit for each"
        )
    if isinstance(failure.error, MemoryError):
        raise PlaceError(
            f"a worker ran out of memory {where} ({failure.error}); use more workers or a "
            f"larger memory limit for each"
        ) from failure.error
    failure.error.add_note(where)
    raise failure.error


class KeptShards:
    """The shards of one objective on the workers; those of workers that die are loaded again."""

    def __init__(self, cluster: Cluster, objective: Any) -> None:
        self.cluster = cluster
        self.objective = objective
        self.workers = cluster.workers()
        shards = objective.shards(len(self.workers))
        ends = np.cumsum([shard.n_examples for shard in shards])
        self.firsts: list[int] = [0, *ends.tolist()[:-1]]
        run = uuid.uuid4().hex
        self.keys = [f"{run}-{i}" for i in range(len(shards))]
        self.homes = self.workers[: len(shards)]
        self.deaths = [0] * len(shards)
        for i, shard in enumerate(shards):
            self._load(i, shard)
        weakref.finalize(self, _forget, cluster.client, self.homes, self.keys).atexit = False

    def ask(self, work: Any, shared: Any) -> Any:
        """Let all shards do some work; return the sum of their answers."""
        while True:
            reply = self.cluster.ask(work, shared, list(zip(self.homes, self.keys, strict=True)))
            if not reply.failures:
                self.deaths = [0] * len(self.keys)
                return reply.sum
            self._mend(reply.failures)

    def _load(self, i: int, shard: Any) -> None:
        """Send a shard to its home; to another one if that dies."""
        kept = Shard(shard, self.firsts[i])
        while failures := self.cluster.ask(keep, kept, [(self.homes[i], self.keys[i])]).failures:
            self._blame(i, failures[0])
            self.homes[i] = self._new_home()

    def _mend(self, failures: Sequence[Failure]) -> None:
        """Load again what is lost, once it is known that nothing else went wrong."""
        for failure in sorted(failures, key=lambda each: each.lost):
            self._blame(self.keys.index(failure.key), failure)
        shards = self.objective.shards(len(self.workers))
        for failure in failures:
            i = self.keys.index(failure.key)
            self.homes[i] = self._new_home()
            self._load(i, shards[i])

    def _blame(self, i: int, failure: Failure) -> None:
        """Count a death; an error, or one death too many, ends the run."""
        self.deaths[i] += 1
        if not failure.lost or self.deaths[i] == _DEATHS:
            raise_failure(failure, f"shard {i} of {len(self.keys)}", self.deaths[i])

    def _new_home(self) -> str:
        """Return the worker with the fewest shards; wait for one that is being started again."""
        end = time.monotonic() + _RETURN
        while True:
            present = self.cluster.workers()
            if len(present) >= len(self.workers) or time.monotonic() > end:
                return min(present, key=self.homes.count)
            time.sleep(_PAUSE)


def _forget(client: Client, homes: list[str], keys: list[str]) -> None:
    """Let workers drop shards that nobody asks any more, without waiting for them."""
    if client.status == "running":
        for home, key in zip(homes, keys, strict=True):
            client.loop.add_callback(ask, client.rpc, drop, [key], [(home, "")])
