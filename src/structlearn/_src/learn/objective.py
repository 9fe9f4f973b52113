"""The regularised objective: penalty plus the losses of all examples."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from structlearn._src.common.arrays import Floats, Ints, offsets_of
from structlearn._src.common.errors import ArgumentError
from structlearn._src.graph.batch import Graphs, Sequences
from structlearn._src.inference.messenger import Messenger
from structlearn._src.learn.bound import Bound
from structlearn._src.learn.chain_world import LabelledSequences, SequenceWorld, clamp
from structlearn._src.learn.cost import Cost
from structlearn._src.learn.graph_world import Effort, GraphWorld, cost_entries
from structlearn._src.learn.loss import Loss, Part
from structlearn._src.learn.penalty import ElasticNet
from structlearn._src.learn.world import World
from structlearn._src.model.examples import Examples
from structlearn._src.model.model import LinearModel, Tables

_KEPT = 256  # graphs up to which each is planned by itself, and kept


class Worlds(NamedTuple):
    """The two worlds of one part of a loss, and the part's share."""

    share: float
    free: World
    clamped: World


@dataclass(eq=False)
class StructuredObjective:
    r"""Penalty plus C times the losses of structured examples.

    .. math:: F(w) = \Omega(w) + C \sum_i c_i \ell_i(w), \qquad
              \nabla \ell_i = E_\text{free}[\phi_i] - E_\text{clamped}[\phi_i]

    Parameters
    ----------
    model
        Weights to tables, and back.
    examples
        What is learnt from.
    loss
        Temperatures, cost and mixture.
    cost
        The task cost, for losses that use one.
    C
        Weight of the losses against the penalty.
    penalty
        What large weights cost.
    effort
        How worlds infer.
    """

    model: LinearModel
    examples: Examples
    loss: Loss
    cost: Cost | None = None
    C: float = 1.0
    penalty: ElasticNet = field(default_factory=ElasticNet)
    effort: Effort = field(default_factory=Effort)

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.model.n_weights

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return self.examples.n_examples

    @property
    def convex(self) -> bool:
        """Whether the objective is convex: nothing is hidden."""
        return not self.examples.hidden

    @property
    def smooth(self) -> bool:
        """Whether the losses have a gradient everywhere."""
        return self.loss.smooth or (not self.examples.hidden and self._soft_outputs)

    @property
    def _soft_outputs(self) -> bool:
        return all(part.eps_y > 0 for part in self.loss.parts)

    @cached_property
    def worlds(self) -> tuple[Worlds, ...]:
        """The pairs of worlds of all parts of the loss; they keep their messages."""
        return tuple(self._make_worlds(part) for part in self.loss.parts)

    @property
    def messengers(self) -> tuple[Messenger, ...]:
        """Whatever passes messages in any of the worlds."""
        worlds = (world for pair in self.worlds for world in (pair.free, pair.clamped))
        return tuple(messenger for world in worlds for messenger in world.messengers)

    @property
    def sweeps(self) -> int:
        """Message sweeps done so far in all worlds, each by its slowest graph."""
        return sum(int(m.iterations.max(initial=0)) for m in self.messengers)

    def messages(self) -> Floats:
        """Return all messages, flat."""
        return np.concatenate([np.empty(0), *(m.messages for m in self.messengers)])

    def recall(self, messages: Floats) -> None:
        """Put the worlds back to where they stood when they had these messages."""
        starts = offsets_of(np.array([len(m.messages) for m in self.messengers], np.int64))
        if len(messages) != starts[-1]:
            raise ArgumentError(
                f"{len(messages)} messages were given, but these worlds have {starts[-1]}; "
                f"use those of the same objective"
            )
        for i, messenger in enumerate(self.messengers):
            messenger.messages = messages[starts[i] : starts[i + 1]].copy()

    def _make_worlds(self, part: Part) -> Worlds:
        examples = self.examples
        if part.eps_y != part.eps_h:
            examples = examples.at_two_temperatures()
        costs = None
        if part.costly and self.cost is not None:
            costs = self.cost.rows(examples.labels, examples.structure.variables)
        if isinstance(examples.structure, Sequences):
            return self._sequence_worlds(part, examples.structure, costs)
        return self._graph_worlds(part, examples.structure, costs)

    def _sequence_worlds(self, part: Part, sequences: Sequences, costs: Floats | None) -> Worlds:
        labels, n_jobs = self.examples.labels, self.effort.n_jobs
        free = SequenceWorld(sequences, part.eps_y, costs, n_jobs)
        clamped: World = LabelledSequences(sequences, labels)
        if self.examples.hidden:
            fixed = clamp(labels, sequences.states)
            clamped = SequenceWorld(sequences, part.eps_h, fixed, n_jobs)
        return Worlds(part.share, free, clamped)

    def _graph_worlds(self, part: Part, graphs: Graphs, costs: Floats | None) -> Worlds:
        labels = self.examples.labels
        added = None if costs is None else cost_entries(graphs, labels, costs)
        free, clamped = (
            GraphWorld(
                graphs, labels, part.eps_y, part.eps_h,
                clamped=fixed, added=None if fixed else added, effort=self.effort,
            )
            for fixed in (False, True)
        )  # fmt: skip
        return Worlds(part.share, free, clamped)

    def tables(self, weights: Floats) -> Tables:
        """Tables of all groups at these weights."""
        return self.model.push(weights, self.examples.inputs, self.effort.n_jobs)

    def losses(self, weights: Floats) -> Floats:
        """Loss of every example, without its weight and without C."""
        return self._differences(weights)[0]

    def loss_slope(self, weights: Floats, which: Ints | None = None) -> tuple[float, Floats]:
        """C times the weighted losses of all examples, or of those in `which`, and the gradient."""
        if which is not None:
            return self._some(weights, which)
        losses, difference = self._differences(weights)
        slope = self.model.pull(difference, self.examples.inputs, self.effort.n_jobs)
        return self.C * float(losses @ self.examples.weights), slope

    def _some(self, weights: Floats, which: Ints) -> tuple[float, Floats]:
        """Go example by example where plans are kept; messages never are: runs can be resumed."""
        graphs = isinstance(self.examples.structure, Graphs)
        if not graphs or self.n_examples > _KEPT or self.messengers:
            return self.take(which).loss_slope(weights)
        parts = [self._single(int(i)).loss_slope(weights) for i in which]
        return sum(loss for loss, _ in parts), np.sum([slope for _, slope in parts], axis=0)

    def _single(self, i: int) -> StructuredObjective:
        if i not in self._singles:
            exact = replace(self.effort, method="exact")
            self._singles[i] = replace(self.take(np.array([i])), effort=exact)
        return self._singles[i]

    @cached_property
    def _singles(self) -> dict[int, StructuredObjective]:
        """Single graphs, which solvers come back to: planning costs more than an evaluation."""
        return {}

    def value(self, weights: Floats) -> float:
        """Return the objective, penalty included."""
        losses = self._differences(weights)[0]
        return self.penalty.value(weights) + self.C * float(losses @ self.examples.weights)

    def value_slope(self, weights: Floats) -> tuple[float, Floats]:
        """Return the objective and the gradient of all but the non-smooth part of the penalty."""
        value, slope = self.loss_slope(weights)
        return value + self.penalty.value(weights), slope + self.penalty.slope(weights)

    def _differences(self, weights: Floats) -> tuple[Floats, Tables]:
        """Losses, and C times the weighted difference of the two worlds' expected tables."""
        tables = self.tables(weights)
        losses, total = np.zeros(self.n_examples), None
        for share, free, clamped in self.worlds:
            by = self.C * share * self.examples.weights
            high, expected = free.solve(tables, by)
            low = clamped.subtract(tables, by, expected)
            losses += share * (high - low)
            total = expected if total is None else _sum(total, expected)
        assert total is not None
        return losses, total

    # ---- what drivers ask for ------------------------------------------------------------

    def take(self, which: Ints) -> StructuredObjective:
        """Return the objective of some of the examples."""
        return replace(self, examples=self.examples.take(which))

    def softened(self, eps: float) -> StructuredObjective:
        """Return the objective with no temperature below `eps`."""
        return replace(self, loss=self.loss.softened(eps))

    def paired(self, sweeps: int) -> StructuredObjective:
        """Return the same objective with worlds that do only so many sweeps per evaluation."""
        return replace(self, effort=replace(self.effort, sweeps=sweeps, tol=0.0))

    def linearise(self, weights: Floats) -> Linearised:
        """Return the convex upper bound that touches the objective at `weights`."""
        value, slope = self.half(weights, clamped=True)
        return Linearised(self, slope, value - float(slope @ weights))

    def half(self, weights: Floats, clamped: bool) -> tuple[float, Floats]:
        """C times the weighted values of the free or of the clamped worlds, and the gradient."""
        tables = self.tables(weights)
        value, slope = 0.0, np.zeros(self.n_weights)
        for pair in self.worlds:
            by = self.C * pair.share * self.examples.weights
            values, expected = (pair.clamped if clamped else pair.free).solve(tables, by)
            slope += self.model.pull(expected, self.examples.inputs, self.effort.n_jobs)
            value += float(values @ by)
        return value, slope


@dataclass(frozen=True, eq=False)
class Linearised(Bound):
    """The bound for structured examples, whose free worlds can be softened."""

    whole: StructuredObjective

    @property
    def smooth(self) -> bool:
        """Whether the losses have a gradient everywhere."""
        return self.whole.smooth

    def softened(self, eps: float) -> Linearised:
        """Return the objective with no temperature of the free worlds below `eps`."""
        return replace(self, whole=self.whole.softened(eps))


def _sum(a: Tables, b: Tables) -> Tables:
    return tuple(x + y for x, y in zip(a, b, strict=True))
