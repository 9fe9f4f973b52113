"""The objective of discrete structures: sequences, grids, graphs, single labels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import ClassVar, Self

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.threads import split
from structlearn._src.graph.batch import Graphs, Sequences
from structlearn._src.inference.chain_batch import clamp_labels
from structlearn._src.inference.engine import forest_shares
from structlearn._src.learn.chain_arrays import ChainArrays, make_arrays
from structlearn._src.learn.chain_evaluation import ChainEvaluation
from structlearn._src.learn.chain_layout import ChainLayout, lay_out
from structlearn._src.learn.loss import Cost, ElasticNet, Loss, LossPart
from structlearn._src.learn.objective import Ability, Objective, Pair, TwoWorlds, ValueGradient
from structlearn._src.learn.structured_world import (
    ChainWorld,
    GraphWorld,
    LabelledChains,
    cost_entries,
)
from structlearn._src.learn.vectors import add_multiple
from structlearn._src.learn.whole_world import WholeChains
from structlearn._src.learn.world import InferenceSettings, Memory, World
from structlearn._src.model.model import Examples, LinearModel, Tables
from structlearn._src.model.term import Features, LinearTerm, PairsTerm, Sparse, TableTerm, power

_KEPT = 256  # graphs up to which each is planned by itself, and its plan kept


@dataclass(frozen=True, eq=False)
class StructuredObjective(TwoWorlds):
    r"""Penalty plus C times the losses of structured examples.

    .. math:: F(w) = \Omega(w) + C \sum_i c_i \ell_i(w), \qquad
              \nabla \ell_i = E_\text{free}[\phi_i] - E_\text{clamped}[\phi_i]

    The `cost` is for losses that use one; `settings` say how worlds infer.
    """

    model: LinearModel
    examples: Examples
    loss: Loss
    cost: Cost | None = None
    C: float = 1.0
    penalty: ElasticNet = field(default_factory=ElasticNet)
    settings: InferenceSettings = field(default_factory=InferenceSettings)
    elsewhere: ClassVar[bool] = False  #: whether the examples are not in memory of the host

    def __post_init__(self) -> None:
        if self._whole and (self.examples.hidden or not self._chained):
            raise ArgumentError(
                "cost='zero-one' needs sequences whose labels are all known, and these examples "
                "are graphs or have hidden labels; use 'hamming' or 'hamming-mean'"
            )

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.model.n_weights

    @property
    def n_jobs(self) -> int | None:
        """Number of threads that solvers may use beside it; None for all cores."""
        return self.settings.n_jobs

    @property
    def example_weights(self) -> Floats:
        """(examples,) How much each counts."""
        return self.examples.weights

    @property
    def smooth(self) -> bool:
        """Whether the losses have a gradient everywhere."""
        soft_outputs = all(part.eps_y > 0 for part in self.loss.parts)
        return self.loss.smooth or (not self.examples.hidden and soft_outputs)

    @property
    def zero_is_optimal(self) -> bool:
        """Whether weights of 0 have no loss, as in the perceptron."""
        return self.loss.zero_is_optimal

    @property
    def approximate(self) -> bool:
        """Whether values are only those that messages have got to."""
        if isinstance(self.examples.structure, Sequences) and not self.two_temperatures:
            return False  # known without making the worlds, which take memory
        return super().approximate

    @property
    def _chained(self) -> bool:
        return isinstance(self.examples.structure, Sequences)

    @property
    def _whole(self) -> bool:
        """Whether a cost takes part that is no sum over positions."""
        used = any(part.with_cost for part in self.loss.parts)
        return used and self.cost is not None and self.cost.whole

    @property
    def two_temperatures(self) -> bool:
        """Whether hidden variables have another temperature than outputs."""
        return self.examples.hidden and any(part.eps_y != part.eps_h for part in self.loss.parts)

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it can do beyond values and gradients."""
        return super().abilities | {Ability.SOFTEN}

    # ---- worlds ----------------------------------------------------------------------------

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs of worlds of all parts of the loss."""
        return tuple(self._pair(part) for part in self.loss.parts)

    def _pair(self, part: LossPart) -> Pair:
        examples = self.examples
        if part.eps_y != part.eps_h:
            examples = examples.at_two_temperatures()
        costs = None
        if part.with_cost and self.cost is not None:
            costs = self.cost.rows(examples.labels, examples.structure.variables)
        if isinstance(examples.structure, Sequences):
            return self._chain_pair(part, examples.structure, costs)
        return self._graph_pair(part, examples.structure, costs)

    def _chain_pair(self, part: LossPart, sequences: Sequences, costs: Floats | None) -> Pair:
        labels = self.examples.labels
        n_jobs = self.settings.n_jobs
        free: World[Tables] = ChainWorld(sequences, part.eps_y, costs, n_jobs)
        if part.with_cost and self._whole:
            free = WholeChains(sequences, labels, part.eps_y, n_jobs)
        clamped: World[Tables] = LabelledChains(sequences, labels)
        if self.examples.hidden:
            fixed = clamp_labels(labels, sequences.states)
            clamped = ChainWorld(sequences, part.eps_h, fixed, n_jobs)
        return Pair(part.share, free, clamped)

    def _graph_pair(self, part: LossPart, graphs: Graphs, costs: Floats | None) -> Pair:
        labels = self.examples.labels
        added = None if costs is None else cost_entries(graphs, labels, costs)
        trees = self.settings.method == "trw"
        shares = forest_shares(graphs.wiring, self.settings.n_jobs) if trees else None
        free, clamped = (
            GraphWorld(
                graphs, labels, part.eps_y, part.eps_h,
                clamped=fixed, added=None if fixed else added, shares=shares,
                settings=self.settings,
            )
            for fixed in (False, True)
        )  # fmt: skip
        return Pair(part.share, free, clamped)

    def push(self, weights: Floats) -> Tables:
        """Tables of all groups at these weights."""
        return self.model.push(weights, self.examples.inputs, self.settings.n_jobs)

    def pull(self, gradient: Tables) -> Floats:
        """Gradient by the weights."""
        return self.model.pull(gradient, self.examples.inputs, self.settings.n_jobs)

    def diagonal(self, weights: Floats) -> Floats | None:
        """Positive estimate of the curvature of every weight, the same for all weights."""
        return self._curvature

    @cached_property
    def _curvature(self) -> Floats | None:
        r"""Curvature that weights would have if all features were present equally often.

        .. math:: \lambda + \frac{C}{\epsilon} \, p (1 - p) \, \bar n \, \overline{x_d^2}

        with the mean square of a feature where it is not 0, and :math:`\bar n` the mean number of
        times that features are. This evens out columns of different scales. That text has rare and
        frequent features is left alone: by its counts L-BFGS takes twice the steps.
        """
        inputs = self.examples.inputs
        if not self.smooth or not any(map(_scaled, chain.from_iterable(inputs))):
            return None
        steep = self.C * sum(part.share / part.eps_y for part in self.loss.parts)
        tables = []
        for group, terms in enumerate(self.model.groups):
            rows = np.diff(self.examples.structure.rows(group))
            p = 1.0 / terms[0].size
            each = steep * p * (1.0 - p) * np.repeat(self.example_weights, rows)
            tables.append(np.repeat(each[:, None], terms[0].size, axis=1))
        squares, counts = (
            self.model.pull(
                tuple(tables),
                tuple(tuple(power(x, exponent) for x in features) for features in inputs),
                self.settings.n_jobs,
            )
            for exponent in (2, 0)
        )
        sizes = np.divide(squares, counts, out=np.ones_like(squares), where=counts > 0.0)
        return np.maximum(self.penalty.ridge + counts.mean() * sizes, np.finfo(float).tiny)

    # ---- some of the examples ----------------------------------------------------------------

    def take(self, which: Ints) -> Self:
        """Return the objective of some of the examples."""
        tangent = self.tangent and self.tangent.part(len(which) / self.n_examples)
        return replace(self, examples=self.examples.take(which), tangent=tangent, warm=None)

    def shards(self, n: int) -> list[Self]:
        """Cut the examples into at most `n` objectives whose losses and gradients add up."""
        ranges = split(self.examples.structure.variables, checks.integer("n", n, low=1))
        return [self.take(np.arange(first, last)) for first, last in ranges]

    def batch_gradient(self, weights: Floats, which: Ints) -> ValueGradient:
        """C times the losses of some examples: one by one where plans are worth keeping.

        Messages are not kept from batch to batch, so that runs can be resumed.
        """
        graphs = isinstance(self.examples.structure, Graphs)
        if not graphs or self.n_examples > _KEPT or self.approximate:
            # Of a few examples, whose layout would cost more than their losses.
            return TwoWorlds.loss_gradient(self.take(which), weights)
        parts = [self._single(int(i)).loss_gradient(weights) for i in which]
        gradient = np.sum([part.gradient for part in parts], axis=0)
        return ValueGradient(sum(part.value for part in parts), gradient, None)

    def _single(self, i: int) -> Self:
        if i not in self._singles:
            exact = replace(self.settings, method="exact")
            self._singles[i] = replace(self.take(np.array([i])), settings=exact)
        return self._singles[i]

    @cached_property
    def _singles(self) -> dict[int, Self]:
        """Single graphs, which solvers come back to: planning costs more than an evaluation."""
        return {}

    def softened(self, eps: float) -> Self:
        """Return the objective with no temperature below `eps`; a tangent stays."""
        return replace(self, loss=self.loss.softened(eps), warm=None)

    # ---- for compiled solvers ------------------------------------------------------------------

    @cached_property
    def chain_arrays(self) -> ChainArrays:
        """The labelled sequences as the plain arrays that compiled solvers read."""
        return make_arrays(self.model, self.examples, self.cost, self.C)

    @cached_property
    def chain_layout(self) -> ChainLayout:
        """Their features, laid out for many passes."""
        return lay_out(self.chain_arrays, self.model.groups[0][0], self.settings.n_jobs)

    @cached_property
    def _evaluation(self) -> ChainEvaluation | None:
        """What evaluates the losses in one pass; None where that is not possible."""
        if not isinstance(self.examples.inputs[0][0], Sparse) or chain_refusal(self):
            return None
        return ChainEvaluation(self.chain_arrays, self.chain_layout, self.loss)

    def loss_gradient(self, weights: Floats, memory: Memory = None) -> ValueGradient:
        """C times the weighted losses of all examples, and the gradient."""
        if self._evaluation is None:
            return super().loss_gradient(weights, memory)
        losses, gradient = self._evaluation.loss_gradient(weights, self.settings.n_jobs)
        return ValueGradient(self._weighed(losses), gradient, memory)

    def value_gradient(self, weights: Floats, memory: Memory = None) -> ValueGradient:
        """Return the objective and the gradient of all but the non-smooth part of the penalty."""
        ridge = self.penalty.ridge
        if self._evaluation is None:
            loss, gradient, memory = self.loss_gradient(weights, memory)
            add_multiple(gradient, ridge, weights, self.n_jobs)
        else:
            losses, gradient = self._evaluation.loss_gradient(weights, self.n_jobs, ridge)
            loss = self._weighed(losses)
        value = loss + self.penalty.value(weights, self.n_jobs)
        return ValueGradient(value, gradient, memory)

    def loss_value(self, weights: Floats, memory: Memory = None) -> float:
        """C times the weighted losses of all examples; no gradient is pulled back."""
        if self._evaluation is None:
            return super().loss_value(weights, memory)
        return self._weighed(self._evaluation.losses(weights, self.settings.n_jobs))


def _scaled(features: Features) -> bool:
    """Tell whether features have values other than 1."""
    return features is not None and not (isinstance(features, Sparse) and features.binary)


def chain_refusal(objective: Objective) -> str:
    """Say why solvers compiled for labelled sequences refuse an objective; empty if they do not."""
    if not isinstance(objective, StructuredObjective):
        return "it needs an objective over sequences, which are in this process and on no cluster"
    if objective.elsewhere:
        return "it visits sequences one by one, and these are elsewhere: on a card"
    if objective.tangent is not None:
        return "it cannot minimise the bound of CCCP; choose another inner solver"
    if objective.cost is not None and objective.cost.whole:
        return "it needs a cost that is a sum over positions, which 'zero-one' is not"
    if not isinstance(objective.examples.structure, Sequences):
        return "it needs sequences: other graphs are not supported"
    if objective.examples.hidden:
        return "it needs all labels: some are hidden"
    nodes, *edges = objective.model.groups
    if len(nodes) != 1 or not isinstance(nodes[0], LinearTerm | PairsTerm):
        return "it needs positions with one kind of features"
    if len(edges) > 1 or any(len(terms) != 1 for terms in edges):
        return "it needs transitions without features"
    return _table_refusal(edges[0][0]) if edges else ""


def _table_refusal(term: object) -> str:
    if not isinstance(term, TableTerm):
        return "it needs the same transitions at all positions"
    used = sorted(tie for tie in term.ties or () if tie >= 0)
    if term.ties is not None and used != list(range(term.n_weights)):
        return "it needs a weight of its own for every transition"
    return ""


def over_chains(objective: Objective) -> StructuredObjective:
    """Return an objective that `chain_refusal` has nothing against."""
    assert isinstance(objective, StructuredObjective)
    return objective
