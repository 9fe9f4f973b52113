"""FactorGraph: what a user writes."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints, offsets_of
from structlearn._src.common.document import completed
from structlearn._src.common.errors import EvidenceError, GraphError, PotentialError
from structlearn._src.common.html import facts_table
from structlearn._src.common.vectors import copy_into
from structlearn._src.graph.build_doc import GRAPH
from structlearn._src.graph.naming import find_name
from structlearn._src.graph.wiring import (
    ROLES,
    Wiring,
    check_cards,
    check_layout,
    check_roles,
    check_scopes,
    shared_wiring,
)


@completed(GRAPH)
class FactorGraph:
    r"""Discrete variables and table factors over them.

    The graph defines a score, the sum of its factors' log potentials,

    .. math:: \theta(x) = \sum_f \theta_f(x_{S(f)}), \qquad p(x) \propto \exp \theta(x).

    Tables hold log potentials: larger means more probable, and ``-inf`` forbids a combination.

    Examples
    --------
    >>> import numpy as np
    >>> graph = FactorGraph()
    >>> rain = graph.add_variable("rain", states=2)
    >>> wet = graph.add_variable("wet", states=2, role="hidden")
    >>> _ = graph.add_factor(["rain"], np.log([0.8, 0.2]))
    >>> _ = graph.add_factor(["rain", "wet"], np.log([[0.9, 0.1], [0.2, 0.8]]))
    >>> graph
    FactorGraph(2 variables (1 output, 1 hidden), 2 factors, largest arity 2)
    """

    def __init__(self) -> None:
        self._cards: list[Ints] = []
        self._roles: list[Ints] = []
        #: Places of the variables by name, in order; None: every variable is called by its index.
        self._index: dict[Hashable, int] | None = None
        self._arities: list[Ints] = []
        self._scopes: list[Ints] = []
        self._tables: list[Floats] = []  # (factors, entries) each; rows may be one row, held once
        self._flat: Floats | None = None
        self._wiring: Wiring | None = None
        self._n_variables = 0
        self._n_factors = 0

    @classmethod
    def from_arrays(
        cls,
        cards: Ints,
        scope_offsets: Ints,
        scopes: Ints,
        potentials: Floats,
        roles: Ints | None = None,
        names: Sequence[Hashable] | None = None,
    ) -> FactorGraph:
        """Build a graph from flat arrays, which is the fast way for large graphs."""
        graph = cls()
        cards = checks.indices("cards", cards)
        check_cards(cards, "cards")
        scope_offsets, scopes = check_layout(scope_offsets, scopes)
        named = None if names is None else list(names)
        graph._append_variables(named, cards, check_roles(roles, len(cards)))
        check_scopes(np.diff(scope_offsets), scopes, len(cards))
        graph._append_factors(np.diff(scope_offsets), scopes, np.empty((1, 0)))
        return graph.with_potentials(potentials)

    # ---- variables -----------------------------------------------------------------------

    def add_variable(
        self, name: Hashable | None = None, states: int = 2, role: str = "output"
    ) -> int:
        """Add one variable and return its index."""
        names = None if name is None else [name]
        return int(self.add_variables(1 if names is None else names, states, role)[0])

    def add_variables(
        self,
        names: int | Iterable[Hashable],
        states: int | Sequence[int] | Ints = 2,
        role: str = "output",
    ) -> Ints:
        """Add several variables, given by name or by count, and return their indices."""
        checks.one_of("role", role, ROLES)
        if not isinstance(names, (int, np.integer, Iterable)):
            raise GraphError(f"names={names!r} must be a number of variables or a list of names")
        named = None if isinstance(names, (int, np.integer)) else list(names)
        count = checks.integer("names", names) if named is None else len(named)
        cards = np.asarray(states)
        check_cards(cards, f"states={states!r}")
        if cards.ndim and cards.shape != (count,):
            raise GraphError(f"{cards.shape[0]} state counts were given for {count} variables")
        cards = np.broadcast_to(cards, count).astype(np.int64)
        return self._append_variables(named, cards, np.full(count, ROLES.index(role), np.int64))

    def _append_variables(self, named: list[Hashable] | None, cards: Ints, roles: Ints) -> Ints:
        first = self._n_variables
        if named is not None and len(named) != len(cards):
            raise GraphError(f"{len(named)} names for {len(cards)} variables")
        if named is not None or self._index is not None:
            self._remember_names(named, len(cards))
        self._cards.append(cards)
        self._roles.append(roles)
        self._n_variables += len(cards)
        self._wiring = None
        return np.arange(first, first + len(cards))

    def _remember_names(self, named: list[Hashable] | None, count: int) -> None:
        first = self._n_variables
        if self._index is None:
            self._index = {i: i for i in range(first)}
        fresh: Iterable[Hashable] = range(first, first + count) if named is None else named
        index = dict(self._index)
        for i, name in enumerate(fresh, first):
            if not isinstance(name, Hashable):
                raise GraphError(f"the name {name!r} is not hashable; use text, numbers or tuples")
            if name in index:
                raise GraphError(f"there is already a variable named {name!r}; names are unique")
            index[name] = i
        self._index = index

    def variable_index(self, name: Hashable) -> int:
        """Return the index of the variable called `name`."""
        return find_name(name, self._index, self._n_variables)

    variable = variable_index  # as it was called first

    def set_roles(self, roles: Mapping[Hashable, str]) -> FactorGraph:
        """Change the roles of some variables, in place."""
        if not isinstance(roles, Mapping):
            raise GraphError("roles must be a mapping from variable names to roles")
        all_roles = self.roles.copy()
        for name, role in roles.items():
            all_roles[self.variable_index(name)] = ROLES.index(checks.one_of("role", role, ROLES))
        self._roles = [all_roles]
        self._wiring = None
        return self

    # ---- factors -------------------------------------------------------------------------

    def add_factor(self, scope: Sequence[Hashable], table: Any) -> int:
        """Add one factor over the named variables."""
        if isinstance(scope, str) or not isinstance(scope, (Sequence, np.ndarray)):
            raise GraphError(f"scope={scope!r} must be a list of variable names")
        ids = np.array([[self.variable_index(name) for name in scope]], np.int64)
        values = checks.potentials(table, f"the table of factor {list(scope)!r}")
        return int(self._append(ids, values[None])[0])

    def add_factors(self, scopes: Any, tables: Any) -> Ints:
        """Add many factors of the same arity at once."""
        ids = checks.indices("scopes", scopes, width=0)
        if ids.size == 0:
            return np.arange(0)
        values = checks.potentials(tables, "tables")
        if values.ndim == ids.shape[1]:
            values = np.broadcast_to(values, (len(ids), *values.shape))
        return self._append(ids, values)

    def _append(self, ids: Ints, values: Floats) -> Ints:
        count, arity = ids.shape
        arities = np.full(count, arity)
        check_scopes(arities, ids.ravel(), self._n_variables)
        cards = self.cards[ids]
        shape = values.shape[1:]
        if len(values) != count:
            raise PotentialError(
                f"{len(values)} tables were given for {count} factors; give one for each, or a "
                f"single one for all"
            )
        if len(shape) != arity or (cards != shape).any():
            bad = int(np.argmax((cards != shape).any(axis=1))) if len(shape) == arity else 0
            names = [self.names[i] for i in ids[bad]]
            raise PotentialError(
                f"a table of shape {shape} was given for the factor over {names!r}, whose "
                f"variables have {tuple(cards[bad].tolist())} states: the shapes must agree"
            )
        # A copy of our own, of a single row if all are the same.
        rows = np.array(values[:1] if values.strides[0] == 0 else values, order="C")
        rows = rows.reshape(len(rows), -1)
        steps = rows.strides[0] if len(rows) == count else 0, 8
        tables = np.lib.stride_tricks.as_strided(rows, (count, rows.shape[1]), steps)
        return self._append_factors(arities, ids.ravel(), tables)

    def _append_factors(self, arities: Ints, scopes: Ints, tables: Floats) -> Ints:
        first = self._n_factors
        self._arities.append(arities)
        self._scopes.append(scopes)
        self._tables.append(tables)
        self._flat = None
        self._n_factors += len(arities)
        self._wiring = None
        return np.arange(first, first + len(arities))

    # ---- what it is ----------------------------------------------------------------------

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self._n_variables

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return self._n_factors

    @property
    def names(self) -> Sequence[Hashable]:
        """Names of the variables, in order."""
        return range(self._n_variables) if self._index is None else tuple(self._index)

    @property
    def cards(self) -> Ints:
        """Number of states of every variable."""
        return _merged(self._cards)

    @property
    def roles(self) -> Ints:
        """Role of every variable, as an index into `structlearn._src.graph.wiring.ROLES`."""
        return _merged(self._roles)

    @property
    def potentials(self) -> Floats:
        """All tables in one flat array, in the order of `wiring.table_offsets`; read-only."""
        view = flat_potentials(self).view()
        view.setflags(write=False)
        return view

    @property
    def wiring(self) -> Wiring:
        """The frozen compiled form, without potentials."""
        if self._wiring is None:
            self._wiring = shared_wiring(
                self.cards, self.roles, offsets_of(_merged(self._arities)), _merged(self._scopes)
            )
        return self._wiring

    def with_potentials(self, potentials: Any) -> FactorGraph:
        """Return the same graph with other tables."""
        values = np.array(checks.potentials(potentials, "potentials").ravel())
        size = self.wiring.table_offsets[-1]
        if len(values) != size:
            raise PotentialError(
                f"{len(values)} potentials were given for tables of {size} entries in all"
            )
        graph = copy.copy(self)
        graph._wiring = self.wiring
        graph._tables = [values[None]]
        graph._flat = values
        return graph

    def __copy__(self) -> FactorGraph:
        graph = FactorGraph.__new__(FactorGraph)
        graph.__dict__.update(self.__dict__)
        # Lists that later additions append to are not shared; names are never changed in place.
        for name in ("_cards", "_roles", "_arities", "_scopes", "_tables"):
            setattr(graph, name, list(getattr(self, name)))
        return graph

    def table(self, factor: int) -> Floats:
        """Return the log potentials of one factor."""
        scope = self.scope(factor)
        wiring = self.wiring
        start, stop = wiring.table_offsets[factor : factor + 2]
        return self.potentials[start:stop].reshape(wiring.cards[scope])

    def scope(self, factor: int) -> Ints:
        """Return the variables of one factor."""
        if not isinstance(factor, (int, np.integer)) or not 0 <= factor < self._n_factors:
            raise GraphError(f"there is no factor {factor!r}; the graph has {self._n_factors}")
        wiring = self.wiring
        return wiring.scopes[wiring.scope_offsets[factor] : wiring.scope_offsets[factor + 1]]

    def score(self, assignment: Any) -> float:
        """Return the sum of the log potentials at a full assignment."""
        labels = self.labels(assignment)
        if (labels < 0).any():
            missing = self.names[int(np.argmax(labels < 0))]
            raise EvidenceError(f"the assignment says nothing about variable {missing!r}")
        return float(self.wiring.score(self.potentials, labels)[0])

    def labels(self, assignment: Any) -> Ints:
        """Return the state of every variable as an array."""
        if not isinstance(assignment, Mapping):
            labels = np.asarray(assignment)
            if labels.shape != (self._n_variables,):
                raise EvidenceError(
                    f"an array of shape {labels.shape} was given; need one state for each of the "
                    f"{self._n_variables} variables, or a mapping from names to states"
                )
            assignment = dict(zip(self.names, labels.tolist(), strict=True))
        out = np.full(self._n_variables, -1, np.int64)
        cards = self.cards
        for name, state in assignment.items():
            try:
                i = self.variable_index(name)
            except GraphError as error:
                raise EvidenceError(str(error)) from None
            if not isinstance(state, (int, np.integer)) or not 0 <= state < cards[i]:
                raise EvidenceError(
                    f"variable {name!r} cannot be in state {state!r}; its states are 0 to "
                    f"{cards[i] - 1}"
                )
            out[i] = state
        return out

    def __repr__(self) -> str:
        counts = np.bincount(self.roles, minlength=len(ROLES))
        roles = ", ".join(f"{c} {r}" for c, r in zip(counts, ROLES, strict=True) if c)
        arity = max((int(a.max()) for a in self._arities if len(a)), default=0)
        return (
            f"FactorGraph({self._n_variables} variables ({roles or 'none'}), "
            f"{self._n_factors} factors, largest arity {arity})"
        )

    def _repr_html_(self) -> str:
        counts = np.bincount(self.roles, minlength=len(ROLES))
        known = {f"{role} variables": int(n) for role, n in zip(ROLES, counts, strict=True)}
        known["factors"] = self._n_factors
        known["largest arity"] = max((int(a.max()) for a in self._arities if len(a)), default=0)
        return facts_table("FactorGraph", known)


def flat_potentials(graph: FactorGraph, n_jobs: int | None = 1) -> Floats:
    """All tables in the one array that a graph holds, which kernels want writeable."""
    if graph._flat is None:
        flat = np.empty(sum(part.size for part in graph._tables))
        done = 0
        for part in graph._tables:
            copy_into(flat[done : done + part.size].reshape(part.shape), part, n_jobs)
            done += part.size
        graph._flat = flat  # once it is complete: other threads may ask about the same graph
        if all(len(part) == 1 or part.strides[0] for part in graph._tables):
            graph._tables = [graph._flat[None]]
    return graph._flat


def shared_chain(graph: FactorGraph) -> tuple[Floats, Floats] | None:
    """Tables (n, states) of the nodes of a chain, and the one that all its steps share, if so."""
    n = graph.n_variables
    if len(graph._tables) != 2 or graph._tables[1].strides[0] or n < 3:
        return None
    nodes, edges = graph._tables
    states = nodes.shape[1]
    pairs = np.arange(n - 1)[:, None] + np.arange(2)
    alike = (graph.cards == states).all() and nodes.strides[0]
    sizes = len(nodes) == n and edges.shape == (n - 1, states**2)
    scopes = graph.wiring.scopes
    if not alike or not sizes or not np.array_equal(scopes[n:], pairs.ravel()):
        return None
    return (nodes, edges[0].reshape(states, -1)) if (scopes[:n] == np.arange(n)).all() else None


def _merged(parts: list[Ints]) -> Ints:
    """Concatenate in place, so that repeated reads cost nothing."""
    if len(parts) != 1:
        parts[:] = [np.concatenate([*parts, np.zeros(0, np.int64)])]
    return parts[0]
