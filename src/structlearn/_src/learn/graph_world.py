"""Worlds of any graphs: exact by elimination, else by message passing from where it stood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from structlearn._src.common.arrays import Floats, Ints, block_indices
from structlearn._src.common.errors import ArgumentError, TooWideError
from structlearn._src.graph.batch import Graphs
from structlearn._src.graph.condition import condition, places
from structlearn._src.graph.wiring import HIDDEN, OUTPUT, Wiring
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.junction import (
    TRAINED,
    EliminationTree,
    JunctionTree,
    affordable,
    order_for,
)
from structlearn._src.inference.loopy import best_states
from structlearn._src.inference.messenger import Messenger
from structlearn._src.inference.names import Query
from structlearn._src.inference.tables import (
    point_mass,
    potentials_to_tables,
    tables_to_potentials,
)
from structlearn._src.inference.trw import covering_forests
from structlearn._src.learn.world import Subtracting
from structlearn._src.model.model import Tables


@dataclass(frozen=True)
class Effort:
    """How worlds infer.

    Parameters
    ----------
    method
        "exact" by elimination, "bp" by belief propagation, "auto" exact where that is quick;
        "trw" by tree-reweighted messages, which have a single fixed point at one temperature, so
        that learning stays sound where factors are strong and plain messages end anywhere. Both
        worlds weigh the factors alike, so that a loss is never negative.
    sweeps, tol
        When message passing stops: after so many sweeps, or when messages move by less.
    damping
        Share of the old message that stays in every update.
    """

    method: str = "auto"
    sweeps: int = 100
    tol: float = 1e-4
    damping: float = 0.0
    n_jobs: int | None = None


class Engine(Protocol):
    """Solves one problem again and again with other potentials."""

    @property
    def messengers(self) -> tuple[Messenger, ...]:
        """Whatever passes messages; none in exact engines."""
        ...

    def solve(self, potentials: Floats) -> tuple[Floats, Floats]:
        """Values of the graphs, and the beliefs of all factors."""
        ...


class _Exact:
    """Elimination, planned once."""

    messengers: tuple[Messenger, ...] = ()

    def __init__(self, problem: Problem, effort: Effort) -> None:
        order = order_for(problem, Options().max_table, effort.n_jobs)
        self.tree = EliminationTree(problem, order, effort.n_jobs)

    def solve(self, potentials: Floats) -> tuple[Floats, Floats]:
        """Values of the graphs, and the marginals of all factors."""
        with self.tree.stores.lend() as store:
            return self.tree.forward(potentials, store), self.tree.backward(store)[1]


class _Messages:
    """Belief propagation, plain or tree-reweighted; messages stay between calls."""

    def __init__(self, problem: Problem, effort: Effort, shares: Floats | None) -> None:
        self.problem, self.effort = problem, effort
        self.messenger = Messenger(
            problem,
            appearance=shares,
            damping=effort.damping,
            n_jobs=effort.n_jobs,
        )
        self.hard = bool((problem.eps == 0.0).any())
        # What is maximised is decoded and then fixed, so that value and beliefs belong to
        # labels that exist; the rest is inferred given them.
        self.inner = problem.eps == 0.0
        self.rest: Clamp | None = None
        if self.hard and not self.inner.all():
            labels = np.where(self.inner, 0, -1)
            self.rest = Clamp(problem.wiring, labels, float(problem.eps.max()), effort, shares)

    @property
    def messengers(self) -> tuple[Messenger, ...]:
        """Whatever passes messages."""
        return self.messenger, *(() if self.rest is None else self.rest.messengers)

    def solve(self, potentials: Floats) -> tuple[Floats, Floats]:
        """Values of the graphs, and the beliefs of all factors."""
        messenger = self.messenger
        messenger.load(potentials)
        messenger.run(self.effort.sweeps, self.effort.tol)
        if not self.hard:
            values, _, factors = messenger.value(factor_beliefs=True)
            return values, factors
        if self.rest is None:
            labels, wiring = messenger.decode(), self.problem.wiring
            return wiring.score(potentials, labels), point_mass(wiring, labels)[1]
        labels = best_states(self.problem, messenger.beliefs()[0])
        values, beliefs = self.rest.solve(potentials, np.where(self.inner, labels, -1))
        return values, beliefs


def make_engine(problem: Problem, effort: Effort, shares: Floats | None) -> Engine:
    """Return the engine that `effort` asks for, or that suits the problem.

    Parameters
    ----------
    shares
        (factors,) Weights of the factors in tree-reweighted messages; None for plain ones.
    """
    if effort.method in ("bp", "trw"):
        return _messages(problem, effort, shares)
    if effort.method == "exact":
        reason = JunctionTree().refuses(problem, Query.MARGINALS, Options(n_jobs=effort.n_jobs))
        if reason:
            raise TooWideError(reason)
        return _Exact(problem, effort)
    easy = affordable(problem, Options(n_jobs=effort.n_jobs), TRAINED)
    return _Exact(problem, effort) if easy else _messages(problem, effort, shares)


def shares_for(wiring: Wiring, effort: Effort) -> Floats | None:
    """Return in how many of some forests that cover the graphs each factor is, if that matters."""
    if effort.method != "trw":
        return None
    return covering_forests(wiring, np.random.default_rng(0)).mean(axis=0)


def _messages(problem: Problem, effort: Effort, shares: Floats | None) -> Engine:
    if not problem.uniform and problem.eps_hidden == 0.0:
        raise ArgumentError(
            f"eps_y={problem.eps_output:g} with eps_h=0 cannot be trained by belief propagation, "
            f"whose messages do not tell the marginals then; raise eps_h, or set eps_y=0"
        )
    return _Messages(problem, effort, shares)


class Clamp:
    """Graphs with some variables fixed: the same tables, read at the fixed states only."""

    def __init__(
        self, wiring: Wiring, labels: Ints, eps: float, effort: Effort, shares: Floats | None
    ) -> None:
        self.wiring = wiring
        small = condition(wiring, np.zeros(int(wiring.table_offsets[-1])), labels)
        self.free = small.wiring.n_variables > 0
        self.engine: Engine | None = None
        if self.free:
            roles = np.full(small.wiring.n_variables, HIDDEN)
            problem = Problem(small.wiring._replace(roles=roles), small.potentials, eps, eps)
            # The weights of the whole graph, not those of what is left: both worlds are to be
            # maxima of one function, over all beliefs or over those that agree with the labels.
            kept = None if shares is None else shares[small.factors]
            self.engine = make_engine(problem, effort, kept)
        factor_graphs = np.repeat(np.arange(wiring.n_graphs), np.diff(wiring.graph_factors))
        gone = np.ones(wiring.n_factors, np.bool_)
        gone[small.factors] = False
        self.gone_graphs = factor_graphs[gone]
        self.fix(labels)

    def fix(self, labels: Ints) -> None:
        """Fix the same variables to other states."""
        where, kept = places(self.wiring, labels)
        self.kept, self.gone = where[kept], where[~kept]

    def solve(self, potentials: Floats, labels: Ints | None = None) -> tuple[Floats, Floats]:
        """Values of the graphs, and beliefs of all factors, point masses where fixed."""
        if labels is not None:
            self.fix(labels)
        fixed = np.bincount(self.gone_graphs, potentials[self.gone], self.wiring.n_graphs)
        values = fixed.astype(np.float64)
        beliefs = np.zeros(len(potentials))
        beliefs[self.gone] = 1.0
        if self.engine is not None:
            inner, beliefs[self.kept] = self.engine.solve(potentials[self.kept])
            values = values + inner
        return values, beliefs

    @property
    def messengers(self) -> tuple[Messenger, ...]:
        """Whatever passes messages."""
        return () if self.engine is None else self.engine.messengers


class GraphWorld(Subtracting):
    """Graphs whose variables labelled -1 are hidden; free, or clamped to the other labels.

    Parameters
    ----------
    graphs
        Wiring and groups of factors.
    labels
        (variables,) -1 where hidden.
    eps_y, eps_h
        Temperatures.
    clamped
        Whether labelled variables are fixed.
    added
        (potentials,) What is added to the potentials, for task costs.
    """

    def __init__(
        self,
        graphs: Graphs,
        labels: Ints,
        eps_y: float,
        eps_h: float,
        *,
        clamped: bool,
        added: Floats | None = None,
        effort: Effort,
    ) -> None:
        self.graphs, self.added = graphs, added
        wiring = graphs.wiring
        self.engine: Engine | Clamp
        shares = shares_for(wiring, effort)
        if clamped:
            self.engine = Clamp(wiring, labels, eps_h, effort, shares)
        else:
            roles = np.where(labels < 0, HIDDEN, OUTPUT)
            zeros = np.zeros(int(wiring.table_offsets[-1]))
            problem = Problem(wiring._replace(roles=roles), zeros, eps_y, eps_h)
            self.engine = make_engine(problem, effort, shares)

    @property
    def messengers(self) -> tuple[Messenger, ...]:
        """Whatever passes messages."""
        return self.engine.messengers

    def solve(self, tables: Tables, weights: Floats) -> tuple[Floats, Tables]:
        """Values of the graphs, and their weighted expected tables."""
        potentials = tables_to_potentials(self.graphs, tables)
        for extra in (self.added, self.graphs.forbidden_potentials):
            if extra is not None:
                potentials += extra
        values, beliefs = self.engine.solve(potentials)
        wiring = self.graphs.wiring
        beliefs *= np.repeat(weights, np.diff(wiring.table_offsets[wiring.graph_factors]))
        return values, potentials_to_tables(self.graphs, beliefs, tables)


def cost_entries(graphs: Graphs, labels: Ints, rows: Floats) -> Floats:
    """Put the cost of every state of every labelled variable into the smallest table it is in.

    Parameters
    ----------
    rows
        (variables, states) Costs; a variable with fewer states uses the first ones.
    """
    wiring = graphs.wiring
    labelled = np.flatnonzero(labels >= 0)
    cards = wiring.cards[labelled]
    _check_costs(wiring, labelled, rows.shape[1])
    slots = smallest_slots(wiring)[labelled]
    factors = wiring.slot_factors[slots]
    sizes = np.diff(wiring.table_offsets)[factors]
    entries = block_indices(wiring.table_offsets, factors)
    inside = entries - np.repeat(wiring.table_offsets[factors], sizes)
    states = inside // np.repeat(wiring.strides[slots], sizes) % np.repeat(cards, sizes)
    costs = rows[np.repeat(labelled, sizes), states]
    return np.bincount(entries, costs, int(wiring.table_offsets[-1])).astype(np.float64)


def smallest_slots(wiring: Wiring) -> Ints:
    """Slot of every variable in the smallest of its tables; any number if it has none."""
    sizes = np.diff(wiring.table_offsets)[wiring.slot_factors]
    by_variable = np.append(np.lexsort((sizes, wiring.scopes)), -1)
    return by_variable[wiring.slot_offsets[:-1]]


def _check_costs(wiring: Wiring, labelled: Ints, states: int) -> None:
    many = labelled[wiring.cards[labelled] > states]
    if len(many):
        raise ArgumentError(
            f"the cost is for {states} states, but the labelled variable {many[0]} has "
            f"{wiring.cards[many[0]]}; give a cost for as many"
        )
    lonely = labelled[np.diff(wiring.slot_offsets)[labelled] == 0]
    if len(lonely):
        raise ArgumentError(
            f"the labelled variable {lonely[0]} is in no factor, so that its cost cannot count; "
            f"give it a factor of its own"
        )
