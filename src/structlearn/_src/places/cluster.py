"""A Dask cluster as a place: its workers keep the shards of objectives, and do other tasks."""

from __future__ import annotations

import asyncio
import pkgutil
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from distributed import Client

from structlearn._src.common.errors import IgnoredOptionWarning, PlaceError, warn
from structlearn._src.field.consensus import Consensus
from structlearn._src.learn.field_objective import FieldError
from structlearn._src.places.kept import DEATHS, PAUSE, RETURN, KeepingPlace, Kept, raise_failure
from structlearn._src.places.remote_consensus import RemoteConsensus, SpreadForms
from structlearn._src.places.remote_dual import on_workers
from structlearn._src.places.remote_ground import RemoteHinges
from structlearn._src.places.remote_objective import Remote, RemoteObjective, Shard, can_be_cut
from structlearn._src.places.worker import ShardKeeper, Total, Tree, Work, ask, drop, ping
from structlearn._src.rules.ground import are_many
from structlearn._version import __version__

_CONNECT = 5.0  # seconds to find a scheduler, or the first worker
_ANSWER = 3.0  # seconds for a worker to say that it is there, however busy
_WORTH = 2**19  # forms from which on steps take longer than the way to the workers and back


class Cluster(KeepingPlace):
    """The workers of a Dask cluster."""

    name: ClassVar[str] = "dask"
    least_forms = _WORTH  #: of fields that are spread out

    def __init__(self, client: Client | str) -> None:
        self.client = _connect(client) if isinstance(client, str) else client
        self.owned = isinstance(client, str)
        self._scheduler = self.address if self.client.status == "running" else ""
        self._fields: dict[int, tuple[Any, SpreadForms]] = {}
        if self.client.asynchronous:
            raise PlaceError("an asynchronous Dask client was given; give one that is not")
        if self.client.status != "running":
            raise PlaceError(f"the Dask client is {self.client.status}; give one that is connected")
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

    def workers(self, wait: float = RETURN) -> list[str]:
        """Return the addresses of all workers, in a fixed order; wait for the first."""
        end = time.monotonic() + wait
        while not (found := sorted(self.client.nthreads())):
            if time.monotonic() > end:
                raise PlaceError(
                    f"the Dask cluster at {self.address} has had no workers for {wait:g} s; "
                    f"start some"
                )
            time.sleep(PAUSE)
        return found

    def living(self) -> list[str]:
        """Return the workers that answer: the scheduler may not know yet who has died."""
        found = self.workers()
        there: list[bool] = self.client.sync(self._ping, found)
        return [worker for worker, answers in zip(found, there, strict=True) if answers]

    async def _ping(self, workers: list[str]) -> list[bool]:
        return await asyncio.gather(*map(self._answers, workers))

    async def _answers(self, worker: str) -> bool:
        asked = ask(self.client.rpc, ping, None, [(worker, "")])
        try:  # Dask itself would try to connect for half a minute
            return not (await asyncio.wait_for(asked, _ANSWER)).failures
        except TimeoutError:
            return False

    @property
    def address(self) -> str:
        """Address of the scheduler."""
        return str(self.client.scheduler.address)

    def _check_versions(self) -> None:
        """Refuse workers that would compute something else, or nothing."""
        self.workers(_CONNECT)
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

    def ask(self, work: Work, shared: Any, tree: Tree) -> Total:
        """Let workers do some work on what they keep."""
        if self.client.status != "running":
            raise PlaceError(
                f"the connection to the Dask cluster at {self._scheduler} has ended, and with it "
                f"what its workers kept: do it again inside a new `with structlearn.on(...):`"
            )
        reply: Total = self.client.sync(ask, self.client.rpc, work, shared, tree)
        return reply

    def forget(self, homes: Sequence[str], keys: Sequence[str]) -> None:
        """Let workers drop what they keep, without waiting for them."""
        client = self.client
        if client.status == "running":
            for home, key in zip(homes, keys, strict=True):
                client.loop.add_callback(ask, client.rpc, drop, [key], [(home, "")])

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Call a function on every item, on any of the workers; in the order of the items.

        A worker that dies is replaced: its item goes to another one.
        """
        found: dict[int, Any] = {}
        left = deque(enumerate(items))
        deaths = [0] * len(items)
        last = time.monotonic()
        while left:
            if living := self.living():
                self.client.sync(self._serve_all, living, function, left, found, deaths)
                last = time.monotonic()
            elif time.monotonic() > last + RETURN:
                raise PlaceError(f"no worker of {self.address} has answered for {RETURN:g} s")
            else:
                time.sleep(PAUSE)
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
            if not failure.lost or deaths[i] == DEATHS:
                left.clear()
                raise_failure(failure, f"part {i}", deaths[i])
            return

    # ---- what runs here ----------------------------------------------------------------------

    def objective(self, objective: Any) -> Any:
        """Cut an objective into one shard for each worker; one that is there already stays."""
        if isinstance(objective, RemoteObjective):
            return objective
        if not can_be_cut(objective):
            if not isinstance(objective, FieldError):  # whose inference is what takes time
                warn(
                    f"{type(objective).__name__} cannot be cut into shards, so it is minimised in "
                    f"this process and not on the cluster",
                    IgnoredOptionWarning,
                )
            return objective
        n = len(self.workers())
        cut = dict(enumerate(objective.shards(n)))
        ends = np.cumsum([0, *(part.n_examples for part in cut.values())]).tolist()

        def shard(i: int) -> Shard:  # the first time from `cut`, which takes memory until then
            return Shard(cut.pop(i) if i in cut else objective.shards(n)[i], ends[i])

        return RemoteObjective(objective, Remote(Kept(self, shard, len(ends) - 1), ends[:-1]))

    def solver(self, solver: Any, objective: Any, saved: bool = False) -> Any:
        """Let dual solvers take steps on all workers at once."""
        return on_workers(solver, objective)

    def spread(self, make: Callable[[int], Any], n: int) -> Kept:
        """Let workers keep pieces that `make` returns by their number."""
        return Kept(self, make, n)

    def make_consensus(
        self, function: Callable[..., Consensus], hinges: Any, **options: Any
    ) -> Consensus:
        """Let workers keep the forms of large fields, with all that inference does for them."""
        if isinstance(hinges, RemoteHinges):
            return RemoteConsensus(hinges.spread, hinges, **options)
        if hinges.n_forms < self.least_forms or hinges.store is not None:
            return function(hinges, **options)
        return RemoteConsensus(self._spread(hinges), hinges, **options)

    def ground_forms(
        self, function: Callable[..., Any], rules: Any, tables: Any, store: Any = None
    ) -> Any:
        """Let every worker ground a share of a large program."""
        if store is not None or not are_many(rules, tables, self.least_forms):
            return function(rules, tables, store)
        return RemoteHinges.ground(self, rules, tables)

    def _spread(self, hinges: Any) -> SpreadForms:
        """Send the forms of a field to the workers, once for as long as both are there."""
        known = self._fields.get(id(hinges))
        if known is None or known[0]() is not hinges:
            known = weakref.ref(hinges), SpreadForms.of(self, hinges)
            self._fields[id(hinges)] = known
            weakref.finalize(hinges, self._fields.pop, id(hinges), None).atexit = False
        return known[1]


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
