"""Dask bags and delayed partitions of sequences or graphs: workers compute and keep their own."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from structlearn._src.common.errors import ArgumentError, PlaceError
from structlearn._src.common.place import current
from structlearn._src.estimators.structured.base import ModelPlan
from structlearn._src.estimators.structured.maker import Maker, has_lazy_parts
from structlearn._src.places.remote_objective import Remote, RemoteObjective, Shard

_FEW = 8  # examples that stand for all, where only what kind they are matters
#: Parameters that need all examples in one place, and what they are by default.
_FIXED = {"class_weight": None, "checkpoint": None, "warm_start": False, "callbacks": ()}


def check(estimator: Any, weights: Any) -> None:
    """Refuse what cannot be learnt from partitions, before any work."""
    if not hasattr(current(), "spread"):
        raise PlaceError(
            "X is a Dask bag or delayed: fit inside `with structlearn.on(client):`, or compute it"
        )
    if not hasattr(estimator, "hidden"):
        raise ArgumentError(f"{type(estimator).__name__} cannot learn from bags; give arrays")
    for name, default in _FIXED.items():
        if getattr(estimator, name) != default:
            raise ArgumentError(
                f"{name}={getattr(estimator, name)!r} is not for bags and delayed partitions; "
                f"leave it at {default!r}, or give lists"
            )
    if weights is not None:
        raise ArgumentError("sample_weight is not for bags and delayed partitions; give lists")


def partitions(X: Any, Y: Any) -> list[tuple[Any, Any]]:
    """Return the partitions of inputs and labels, which must be as many."""
    if not has_lazy_parts(Y):
        raise ArgumentError(
            "X is a Dask bag or delayed, and Y is not: give the labels in partitions as well"
        )
    both = [each.to_delayed() if hasattr(each, "to_delayed") else list(each) for each in (X, Y)]
    if len(both[0]) != len(both[1]):
        raise ArgumentError(
            f"X has {len(both[0])} partitions and Y has {len(both[1])}; give as many"
        )
    return list(zip(*both, strict=True))


# ---- on a worker -------------------------------------------------------------------------


class PartShard(Shard):
    """Some partitions, and the objective of their examples once the plan is known."""

    def __init__(self, parts: list[tuple[Any, Any]], number: int, maker: Maker) -> None:
        self.parts = parts
        self.number = number
        self.maker = maker
        self.plan: ModelPlan | None = None
        self.first = 0
        self.views = {}
        self.memories = {}

    @cached_property
    def examples(self) -> tuple[list[Any], list[Any]]:
        """Inputs and labels, computed here."""
        found: tuple[list[Any], list[Any]] = [], []
        for part in self.parts:
            for whole, each in zip(found, part, strict=True):
                whole.extend(each.compute(scheduler="synchronous"))
        X, Y = found
        if len(X) != len(Y):
            raise ArgumentError(f"partitions have {len(X)} examples, but {len(Y)} have labels")
        return found

    @cached_property
    def objective(self) -> Any:  # type: ignore[override]
        """The objective of all examples here."""
        plan = self.plan
        assert plan is not None
        X, Y = self.examples
        reader: Any = plan.reader
        data = reader.read(X)
        labels = self.maker.estimator._numbers(plan.coder, plan.design, Y, data)
        return self.maker(plan, plan.lay_out(data, labels))


def _classes(shard: PartShard, _: Any) -> tuple[Any, ...]:
    """Return all labels, and the number of examples."""
    X, Y = shard.examples
    estimator = shard.maker.estimator
    _, data = estimator._reader(X)
    return LabelUnion(estimator._coder(Y, data, None).names.tolist()), [len(X)]


def _plans(shard: PartShard, classes: list[Any]) -> tuple[Any, ...]:
    """Return the plan of the first, and whether all features are numbers."""
    plan, _ = shard.maker.learn(shard.maker.estimator, *shard.examples, classes)
    features = plan.reader.names() if hasattr(plan.reader, "names") else None
    return ([(plan if shard.number == 0 else None, plan.model.n_weights, features)],)


def _settle(shard: PartShard, shared: tuple[ModelPlan, list[int]]) -> tuple[Any, ...]:
    """Make the objective; return a few of its examples, with one that has hidden labels if any."""
    shard.plan, firsts = shared
    shard.first = firsts[shard.number]
    objective = shard.objective
    few = np.arange(min(_FEW, objective.n_examples))
    if not objective.convex:
        alone = (objective.take(np.array([i])).convex for i in range(objective.n_examples))
        few = np.append(few, next((i for i, convex in enumerate(alone) if not convex), 0))
    return ([objective.take(np.unique(few))],)


class LabelUnion(set):  # type: ignore[type-arg]
    """Labels of which sums are unions."""

    def __add__(self, other: Any) -> LabelUnion:
        return LabelUnion(self | other)


# ---- here --------------------------------------------------------------------------------


def read(maker: Maker, X: Any, Y: Any) -> tuple[ModelPlan, RemoteObjective]:
    """Let all workers compute their partitions; return the plan, and the objective of all."""
    place: Any = current()
    parts = partitions(X, Y)
    n = min(len(place.workers()), len(parts))
    borders = np.linspace(0, len(parts), n + 1).astype(int).tolist()
    known: dict[str, Any] = {}

    def shard(i: int) -> PartShard:
        made = PartShard(parts[borders[i] : borders[i + 1]], i, maker)
        made.plan = known.get("plan")
        made.first = known["firsts"][i] if known else 0
        return made

    kept = place.spread(shard, n)
    classes, counts = kept.ask(_classes, None)
    (plans,) = kept.ask(_plans, sorted(classes, key=repr))
    if len({(n_weights, repr(names)) for _, n_weights, names in plans}) > 1:
        raise ArgumentError(
            "partitions have different features: give arrays with the same columns everywhere, or "
            "column files, whose attributes are learnt from all parts"
        )
    plan = plans[0][0]
    firsts = np.cumsum([0, *counts]).tolist()
    known.update(plan=plan, firsts=firsts)
    (samples,) = kept.ask(_settle, (plan, firsts))
    origin = next((each for each in samples if not each.convex), samples[0])
    return plan, RemoteObjective(origin, Remote(kept, firsts[:-1]), size=sum(counts))
