"""How sequences are learnt that memory has no room for: shards of column files, one after another.

Stochastic dual coordinate ascent needs one sequence at a time and a memory of its gradient, so all
that grows with the data, features and memories, lies in files, and a pass goes through shards of
sequences in a new order. Its dual bounds the optimum from below: the fit ends when the objective is
within the tolerance of that.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.checks import generator
from structlearn._src.common.errors import ArgumentError, warn
from structlearn._src.common.history import History
from structlearn._src.common.memory import ArrayWriter
from structlearn._src.common.watch import Ending, Watch
from structlearn._src.estimators.base import threads as n_threads
from structlearn._src.estimators.structured.base import Batch, ModelPlan
from structlearn._src.estimators.structured.read_sequences import ColumnReader, graph_data
from structlearn._src.learn.loss import Loss
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.model.model import LinearModel
from structlearn._src.model.term import PairsTerm
from structlearn._src.solve.base import State
from structlearn._src.solve.loop import Fit
from structlearn._src.solve.sdca import Sdca
from structlearn._src.text.attributes import Attributes, Expanded
from structlearn._src.text.labels import LabelCoder
from structlearn._src.text.partitions import ColumnFiles, StoredColumns, store_columns
from structlearn._src.text.rows import Rows
from structlearn._src.text.template import Template, as_template, check_width

_BYTES_PER_TOKEN = 1500  # of a shard in memory: features by row and by column, tables, marginals
_SHARE = 8  # part of the memory limit for one shard
_WEIGHTS = 4  # part of the limit for weights and for the pairs that are seen
_EVALUATE = 3  # passes between two looks at the objective
_PATIENCE = 3  # looks without gain after which steps become shorter
_NEVER = 10**9  # passes after which a solver on one shard would look at its own objective
#: Parameters that must be as they are by default, and what for.
_FIXED = {
    "hidden": (None, "hidden states"),
    "driver": ("subgradient", "other drivers"),
    "class_weight": (None, "class weights"),
    "checkpoint": (None, "checkpoints"),
    "warm_start": (False, "warm starts"),
    "callbacks": ((), "callbacks"),
}


def check(
    estimator: Any, Y: Any, weights: Any, solvers: tuple[str, ...] = ("auto", "sdca")
) -> None:
    """Refuse what streams cannot learn, before any work."""
    if not hasattr(estimator, "template"):
        raise ArgumentError(
            f"{type(estimator).__name__} cannot read ColumnFiles; use SequenceLabeler"
        )
    if Y is not None or weights is not None:
        raise ArgumentError(
            "X is ColumnFiles, whose last column has the labels: give None as Y, and no weights"
        )
    for name, (default, what) in _FIXED.items():
        if getattr(estimator, name) != default:
            raise ArgumentError(
                f"{name}={getattr(estimator, name)!r} is not for ColumnFiles, which are learnt "
                f"without {what}; leave it at {default!r}, or use read_columns"
            )
    if estimator.solver not in solvers:
        raise ArgumentError(
            f"solver={estimator.solver!r} needs all data in memory; for ColumnFiles leave it at "
            f"'auto', or use read_columns"
        )


def check_template(estimator: Any, width: int) -> Template:
    """Return the template, if files with so many columns of features can be learnt with it."""
    template = as_template(estimator.template)
    check_width(template, width)
    if template.bigram:
        raise ArgumentError(
            "the template has lines that begin with B and name cells, which ColumnFiles cannot "
            "be learnt with; leave them out, or use read_columns"
        )
    return template


# ---- from files to shards ------------------------------------------------------------------


@dataclass(eq=False)
class Shards:
    """Features and labels of all sequences, in a store, cut into shards."""

    files: ColumnFiles
    plan: ModelPlan
    offsets: Ints  #: (sequences + 1,)
    rows: Any  #: (tokens + 1,) where the entries of every token begin
    columns: Any  #: (entries,)
    labels: Any  #: (tokens,)
    ranges: list[tuple[int, int]]  #: of sequences

    @classmethod
    def read(cls, estimator: Any, files: ColumnFiles) -> Shards:
        """Read the files once, then learn attributes, then write features and labels."""
        stored = store_columns(files)
        tokens = max(files.store.limit // _SHARE // _BYTES_PER_TOKEN, 1)
        ranges = threads.split(stored.offsets, 1 + int(stored.offsets[-1]) // tokens)
        attributes = _learn_attributes(estimator, stored, ranges, files)
        names = np.array(stored.vocabularies[-1].list(), object)
        coder = LabelCoder().fit([names])
        numbers = coder.transform([names])
        return _write(estimator, files, stored, ranges, attributes, coder, numbers)

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.offsets) - 1

    def batch(self, first: int, last: int) -> Batch:
        """The sequences of a shard."""
        start, stop = self.offsets[[first, last]]
        borders = self.rows[start : stop + 1]
        rows = Rows(
            borders - borders[0], self.columns[borders[0] : borders[-1]], np.empty(0),
            self.plan.reader.width,
        )  # fmt: skip
        data = graph_data(without_bigrams(rows), self.offsets[first : last + 1] - start)
        return self.plan.lay_out(data, self.labels[start:stop].astype(np.int64))


def without_bigrams(rows: Rows) -> Expanded:
    """Return what a template without features of pairs makes of columns."""
    return Expanded(rows, Rows(np.zeros_like(rows.offsets), np.empty(0, np.int32), np.empty(0), 0))


def _features_of(stored: StoredColumns, first: int, last: int) -> Any:
    part = stored.part(first, last)
    return part._replace(ids=part.ids[:, :-1], vocabularies=part.vocabularies[:-1])


def _learn_attributes(
    estimator: Any, stored: StoredColumns, ranges: list[tuple[int, int]], files: ColumnFiles
) -> Attributes:
    """Learn the attributes of all shards, and forget those that are too rare."""
    template = check_template(estimator, len(stored.vocabularies) - 1)
    n_jobs = n_threads(estimator.n_jobs)
    made = Attributes.over(template, stored.vocabularies[:-1])
    for first, last in ranges:
        made.learn(_features_of(stored, first, last), n_jobs)
        files.store.release()
    if estimator.min_count > 1:
        counts = np.zeros(len(made.unigram), np.int64)
        for first, last in ranges:
            rows = made.transform(_features_of(stored, first, last), n_jobs).unigram
            counts += np.bincount(rows.columns, minlength=len(counts))
            files.store.release()
        made.unigram.keep(counts >= estimator.min_count)
    return made


def _write(
    estimator: Any, files: ColumnFiles, stored: StoredColumns, ranges: list[tuple[int, int]],
    attributes: Attributes, coder: LabelCoder, numbers: Ints,
) -> Shards:  # fmt: skip
    """Write features and labels, and note which pairs of them are seen."""
    states = len(coder.names)
    width = len(attributes.unigram)
    n_jobs = n_threads(estimator.n_jobs)
    store = files.store
    if width * (states + 8 * states) > store.limit // _WEIGHTS:
        raise ArgumentError(
            f"a memory limit of {store.limit // 10**6} MB is too low for the weights of {width} "
            f"attributes and {states} labels; raise it, or raise min_count"
        )
    rows, columns, labels = (ArrayWriter(store, kind) for kind in (np.int64, np.int32, np.int32))
    rows.append(np.zeros(1))
    seen = np.zeros((width, states), np.bool_)
    steps = np.zeros((states, states), np.bool_)
    for first, last in ranges:
        part = stored.part(first, last)
        own = numbers[part.ids[:, -1]]
        found = attributes.transform(_features_of(stored, first, last), n_jobs).unigram
        rows.append(columns.size + found.offsets[1:])
        columns.append(found.columns)
        labels.append(own)
        seen[found.columns, np.repeat(own, np.diff(found.offsets))] = True
        later = np.ones(len(own), np.bool_)
        later[part.offsets[:-1]] = False
        after = np.flatnonzero(later)
        steps[own[after - 1], own[after]] = True
        store.release()
    plan, _ = make_plan(estimator, ColumnReader(attributes, n_jobs), coder, seen, steps)
    arrays = rows.finish(), columns.finish(), labels.finish()
    return Shards(files, plan, stored.offsets, *arrays, ranges)


def make_plan(
    estimator: Any, reader: ColumnReader, coder: LabelCoder, seen: Any, steps: Any
) -> tuple[ModelPlan, Batch]:
    """The model of what was seen: a small problem with all its transitions has the same one."""
    pairs = np.argwhere(steps) if steps.any() else np.zeros((1, 2), np.int64)
    n = 2 * len(pairs)
    empty = Rows(np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0), reader.width)
    data = graph_data(without_bigrams(empty), np.arange(0, n + 1, 2))
    design = estimator._design(reader, data, coder)
    model = design.model(data, pairs.ravel(), len(coder.names))
    if estimator.features == "sparse":
        offsets = np.append(0, np.cumsum(seen.sum(axis=1)))
        term = PairsTerm(offsets, np.nonzero(seen)[1].astype(np.int32), seen.shape[1])
        model = LinearModel(((term,), *model.groups[1:]))
    plan = ModelPlan(reader, coder, design, model)
    return plan, plan.lay_out(data, pairs.ravel())


# ---- passes over shards --------------------------------------------------------------------


class Stream:
    """Passes of dual coordinate ascent, whose memories lie in a store."""

    def __init__(self, estimator: Any, shards: Shards, loss: Loss, objective: Any) -> None:
        self.estimator = estimator
        self.shards = shards
        self._loss = loss
        self._make = objective
        store = shards.files.store
        sequences = shards.n_sequences
        states = shards.plan.states
        self._nodes = store.zeros(len(shards.labels) * states, np.float32).reshape(-1, states)
        self._linked = len(shards.plan.model.groups) > 1
        steps = sequences * states**2 if self._linked else 0
        self._steps = store.zeros(steps, np.float32).reshape(-1, states, states)
        self._bounds = np.zeros(sequences)
        self._curvature = 1.0
        self._stalls = 0
        self.weights: Floats = np.zeros(shards.plan.model.n_weights)
        self.best: Floats = self.weights.copy()
        self.value = math.inf
        self._bound = -math.inf
        self.passes = 0
        self.history = History()
        self._rng = generator(estimator.random_state)
        self._solver = Sdca(evaluate=_NEVER)
        self._begun = time.perf_counter()

    def run(self) -> Fit:
        """Take passes until the gap is small enough."""
        given = self.estimator
        first = self._objective(*self.shards.ranges[0])
        if why := self._solver.refuses(first):
            raise ArgumentError(f"ColumnFiles cannot be learnt with this loss or penalty: {why}")
        watch = Watch(given.time_limit, given.progress)
        with threads.one_blas_thread():
            ended = watch.repeat(self._pass, given.max_iter, self._words)
            if self.passes % _EVALUATE or not self.passes:
                self._evaluate()
        done = ended is Ending.DONE
        status = f"within {self.gap:.2g} of the optimum after {self.passes} passes over the files"
        if not done:
            status = f"{ended.sentence}: {status}"
            from sklearn.exceptions import ConvergenceWarning  # slow to import, seldom needed

            warn(f"{status}; raise max_iter or tol", ConvergenceWarning)
        return Fit(self.best, self.value, self.history, status, self.passes, done, ended)

    @property
    def gap(self) -> float:
        """Certified distance to the optimum."""
        return max(self.value - self._bound, 0.0)

    def _words(self) -> str:
        return f"pass {self.passes}, objective {self.value:#.6g}, gap {self.gap:.1e}"

    def _objective(self, first: int, last: int) -> StructuredObjective:
        shards = self.shards
        batch = shards.batch(first, last)
        made: StructuredObjective = self._make(self.estimator, shards.plan, batch, self._loss, None)
        return made

    def _pass(self) -> bool:
        """Visit all sequences, shard by shard in a new order; tell whether that was enough."""
        for shard in self._rng.permutation(len(self.shards.ranges)).tolist():
            self._visit(*self.shards.ranges[shard])
            self.shards.files.store.release()
        self.passes += 1
        if self.passes % _EVALUATE:
            self.history.add(self.passes, time.perf_counter() - self._begun)
            return False
        self._evaluate()
        return self.estimator.tol is not None and self.gap <= self.estimator.tol * self.value

    def _visit(self, first: int, last: int) -> None:
        start, stop = self.shards.offsets[[first, last]].tolist()
        state: State = {
            "seed": int(self._rng.integers(2**31)),
            "iteration": 0,
            "weights": self.weights,
            "initial_weights": np.empty(0),
            "nodes": self._nodes[start:stop],
            "steps": self._steps[first:last] if self._linked else self._steps,
            "bounds": self._bounds[first:last],
            "curvature": self._curvature,
            "best_value": math.inf,
            "stalls": 0,
        }
        self._solver.step(self._objective(first, last), state)

    def _evaluate(self) -> None:
        """Add up the objective and its bound over all shards."""
        penalty = self._objective(*self.shards.ranges[0]).penalty.value(self.weights)
        value = penalty
        bound = -0.5 * float((self.weights * self.weights).sum())
        for first, last in self.shards.ranges:
            shard = self._objective(first, last)
            value += shard.value(self.weights) - penalty
            bound += float(shard.chain_arrays.loss_weights @ self._bounds[first:last])
            self.shards.files.store.release()
        self._stalls = 0 if value < self.value else self._stalls + 1
        if self._stalls == _PATIENCE:
            self._curvature *= 2.0
            self._stalls = 0
        if value < self.value:
            self.value = value
            self.best = self.weights.copy()
        self._bound = max(self._bound, bound)
        self.history.add(self.passes, time.perf_counter() - self._begun, value, self.gap)
