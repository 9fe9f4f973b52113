"""The frozen compiled form of one graph or of many: flat integer arrays, no weights.

Some of the variables of a wiring are fixed here; `graph/joined.py` puts wirings side by side.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common import checks, threads
from structlearn._src.common.arrays import Bools, Floats, Ints, block_indices, offsets_of
from structlearn._src.common.errors import GraphError
from structlearn._src.common.reuse import empty
from structlearn._src.kernels.graph import condition as cutting
from structlearn._src.kernels.graph import local
from structlearn._src.kernels.graph import wiring as wire

ROLES = ("output", "hidden", "observed")
OUTPUT, HIDDEN, OBSERVED = range(3)
_MOST_STATES = 2**31  # far beyond memory, and products of two still fit 64 bits
_LARGEST_ARITY = 60  # kernels keep the digits of an entry in 64 places
_SMALL = 2**12  # variables and slots of a graph that shares its wiring: a grid of 25 x 25
_KEPT = 256  # such wirings, of the latest graphs: each takes up to 0.2 MB
_EACH = 2  # ranges of graphs per worker, where what they cost goes by their size


class Wiring(NamedTuple):
    """Who interacts with whom, as arrays that kernels read directly.

    A *slot* is one variable in one factor's scope: slots ``scope_offsets[f]`` to
    ``scope_offsets[f + 1]`` belong to factor ``f``. Factor tables lie one after the other in a
    flat potentials array, each in C order (last variable of the scope fastest). Messages have
    one block of ``cards[variable]`` numbers per slot, beliefs one per variable.

    Many graphs lie side by side in one wiring: graph ``g`` owns the variables
    ``graph_variables[g]:graph_variables[g + 1]`` and likewise factors.
    """

    cards: Ints  #: number of states of every variable
    roles: Ints  #: OUTPUT, HIDDEN or OBSERVED
    scope_offsets: Ints  #: (factors + 1) into slots
    scopes: Ints  #: variable of every slot
    strides: Ints  #: step of the slot's variable in its factor's table
    slot_factors: Ints  #: factor of every slot
    table_offsets: Ints  #: (factors + 1) into potentials
    slot_offsets: Ints  #: (variables + 1) into `slots`
    slots: Ints  #: slots of every variable
    message_offsets: Ints  #: (slots + 1) into messages
    belief_offsets: Ints  #: (variables + 1) into beliefs
    graph_variables: Ints  #: (graphs + 1) into variables
    graph_factors: Ints  #: (graphs + 1) into factors

    @property
    def n_variables(self) -> int:
        """Number of variables over all graphs."""
        return len(self.cards)

    @property
    def n_factors(self) -> int:
        """Number of factors over all graphs."""
        return len(self.table_offsets) - 1

    @property
    def n_graphs(self) -> int:
        """Number of graphs side by side."""
        return len(self.graph_variables) - 1

    @property
    def arities(self) -> Ints:
        """Number of variables in every factor."""
        return np.diff(self.scope_offsets)

    @property
    def variable_graphs(self) -> Ints:
        """Graph of every variable."""
        return np.repeat(np.arange(self.n_graphs), np.diff(self.graph_variables))

    @property
    def factor_graphs(self) -> Ints:
        """Graph of every factor."""
        return np.repeat(np.arange(self.n_graphs), np.diff(self.graph_factors))

    @property
    def graph_tables(self) -> Ints:
        """Where the tables of every graph begin in the potentials, and the last ones end."""
        return self.table_offsets[self.graph_factors]

    def log_assignments(self) -> Floats:
        """Logarithm of the number of assignments of every graph."""
        logs = np.append(np.log(self.cards), 0.0)  # where empty graphs at the end begin
        return np.add.reduceat(logs, self.graph_variables[:-1])

    def sparse(self) -> Bools:
        """Tell for every graph whether its factors are so few that there may be no cycle."""
        # Every factor of a forest joins as many trees as it has variables.
        joined = np.diff(self.scope_offsets[self.graph_factors]) - np.diff(self.graph_factors)
        return joined < np.maximum(np.diff(self.graph_variables), 1)

    def forests(self, n_jobs: int | None = 1) -> Bools:
        """Tell for every graph whether its factor graph has no cycle."""
        few = self.sparse()
        if not few.any():
            return few
        parents = np.empty(self.n_variables, np.int64)

        def work(first: int, last: int) -> None:
            wire.forests(self, parents, first, last, few)

        threads.over_graphs(work, self.graph_tables, n_jobs)
        return few

    def breadth_first(self, which: Bools | None = None, n_jobs: int | None = 1) -> Ints:
        """Variables in breadth-first order, so that in a forest parents precede children.

        Graphs that are not among `which`, by default all, keep the order of their variables.
        """
        if which is None:
            which = np.ones(self.n_graphs, np.bool_)
        order = np.empty(self.n_variables, np.int64)
        seen = np.zeros(self.n_variables, np.bool_), np.zeros(self.n_factors, np.bool_)

        def work(first: int, last: int) -> None:
            wire.breadth_first(self, which, *seen, first, last, order)

        threads.over_graphs(work, self.graph_tables, n_jobs)
        return order

    def score(self, potentials: Floats, labels: Ints) -> Floats:
        """Sum of log potentials of every graph at a full assignment."""
        score, broken = self.energy(potentials, labels)
        return np.where(broken > 0, -np.inf, score)

    def energy(self, potentials: Floats, labels: Ints) -> tuple[Floats, Ints]:
        """Sum of the finite log potentials, and the number of those that are -inf, per graph."""
        score = np.empty(self.n_graphs)
        broken = np.empty(self.n_graphs, np.int64)
        local.energy(self, potentials, labels, score, broken)
        return score, broken


def compile_wiring(
    cards: Ints,
    roles: Ints,
    scope_offsets: Ints,
    scopes: Ints,
    graph_variables: Ints | None = None,
    graph_factors: Ints | None = None,
    n_jobs: int | None = None,
) -> Wiring:
    """Lay out strides, tables, messages and the slots of every variable."""
    cards, scope_offsets, scopes = (_frozen(a) for a in (cards, scope_offsets, scopes))
    n_variables, n_factors, n_slots = len(cards), len(scope_offsets) - 1, len(scopes)
    strides, slot_factors, slots = (np.empty(n_slots, np.int64) for _ in range(3))
    table_offsets = np.empty(n_factors + 1, np.int64)
    slot_offsets = np.empty(n_variables + 1, np.int64)
    message_offsets = np.empty(n_slots + 1, np.int64)
    factors = cards, scope_offsets, scopes, strides, slot_factors, table_offsets
    works = [
        partial(wire.lay_out_factors, *factors),
        partial(wire.slots_by_variable, scopes, slot_offsets, slots),
        partial(wire.lay_out_messages, cards, scopes, message_offsets),
    ]
    threads.together(works, n_slots, n_jobs)
    ours = (
        strides, slot_factors, table_offsets, slot_offsets, slots, message_offsets,
        offsets_of(cards),
    )  # fmt: skip
    for array in ours:
        array.setflags(write=False)  # made here, so no copy is needed
    if graph_variables is None:
        graph_variables = np.array([0, n_variables])
    if graph_factors is None:
        graph_factors = np.array([0, n_factors])
    borders = _frozen(graph_variables), _frozen(graph_factors)
    return Wiring(cards, _frozen(roles), scope_offsets, scopes, *ours, *borders)


def shared_wiring(cards: Ints, roles: Ints, scope_offsets: Ints, scopes: Ints) -> Wiring:
    """Compile one graph; small ones that are alike share one wiring.

    Batches mostly have few kinds of graphs. A key is made faster than a wiring, and graphs that
    share theirs are joined by copying it.
    """
    given = cards, roles, scope_offsets, scopes
    if len(cards) + len(scopes) > _SMALL:
        return compile_wiring(*given)
    return _small_wiring(*(np.asarray(array, np.int64).tobytes() for array in given))


@lru_cache(_KEPT)
def _small_wiring(*given: bytes) -> Wiring:
    cards, roles, scope_offsets, scopes = (np.frombuffer(array, np.int64) for array in given)
    return compile_wiring(cards, roles, scope_offsets, scopes)


def compile_by_graph(
    cards: Ints, roles: Ints, arities: Ints, scopes: Ints, graph_variables: Ints
) -> tuple[Wiring, Ints]:
    """Compile factors that are given in any order, sorted by graph; also returns their order."""
    starts = offsets_of(arities)
    owners = np.searchsorted(graph_variables, scopes[starts[:-1]], side="right") - 1
    order = np.argsort(owners, kind="stable")
    scopes = scopes[block_indices(starts, order)]
    counts = np.bincount(owners, minlength=len(graph_variables) - 1)
    borders = graph_variables, offsets_of(counts)
    return compile_wiring(cards, roles, offsets_of(arities[order]), scopes, *borders), order


class Conditioned(NamedTuple):
    """A smaller wiring, its potentials, and the way back."""

    wiring: Wiring
    potentials: Floats
    constant: Floats  #: log potential of the factors that are wholly fixed, per graph
    kept_variables: Ints | None  #: None if all are
    kept_factors: Ints | None  #: None if all are

    @property
    def variables(self) -> Ints:
        """Index of every kept variable in the original."""
        kept = self.kept_variables
        return np.arange(self.wiring.n_variables) if kept is None else kept

    @property
    def factors(self) -> Ints:
        """Index of every kept factor in the original."""
        return np.arange(self.wiring.n_factors) if self.kept_factors is None else self.kept_factors


def condition(
    wiring: Wiring, potentials: Floats, fixed: Ints, n_jobs: int | None = 1
) -> Conditioned:
    """Slice every table at the states in `fixed` (-1: the variable stays free).

    Where only the wiring is wanted, there may be no `potentials`.
    """
    if fixed.max(initial=-1) < 0:
        return Conditioned(wiring, potentials, np.zeros(wiring.n_graphs), None, None)
    ends = _sliced_ends(wiring, fixed, n_jobs)
    smaller = empty_wiring(ends)
    tables = np.empty(ends[-1, 3] if len(potentials) else 0)
    constant = np.empty(wiring.n_graphs)
    kept = tuple(np.empty(count, np.int64) for count in ends[-1, :2])
    numbers = np.empty(wiring.n_variables + len(wiring.scopes), np.int64)
    most = int(wiring.arities.max(initial=0))

    def work(first: int, last: int) -> None:
        room = np.empty((2, most), np.int64)
        cutting.slice_graphs(
            wiring, potentials, fixed, ends, first, last, numbers, *room,
            smaller, tables, constant, *kept,
        )  # fmt: skip

    threads.over_graphs(work, wiring.graph_tables, n_jobs, _EACH)
    return Conditioned(frozen(smaller), tables, constant, *kept)


def places(wiring: Wiring, fixed: Ints, n_jobs: int | None = 1) -> tuple[Ints, Ints]:
    """Where the entries that agree with `fixed` lie in the full potentials.

    Those of factors that keep a free variable, and the one entry of each of the others.
    """
    ends = _sliced_ends(wiring, fixed, n_jobs)
    kept_from, gone_from = np.ascontiguousarray(ends[:, 3]), wiring.graph_factors - ends[:, 1]
    kept, gone = np.empty(kept_from[-1], np.int64), np.empty(gone_from[-1], np.int64)
    most = int(wiring.arities.max(initial=0))

    def work(first: int, last: int) -> None:
        room = np.empty((2, most), np.int64)
        given = wiring, fixed, first, last, kept_from, gone_from
        cutting.agreeing(*given, *room, kept, gone)

    threads.over_graphs(work, wiring.graph_tables, n_jobs, _EACH)
    return kept, gone


def _sliced_ends(wiring: Wiring, fixed: Ints, n_jobs: int | None) -> Ints:
    """Where what the graphs keep without the fixed variables begins and ends, as `empty_wiring`."""
    sizes = np.empty((wiring.n_graphs, 6), np.int64)

    def work(first: int, last: int) -> None:
        cutting.slice_sizes(wiring, fixed, first, last, sizes)

    threads.over_graphs(work, wiring.graph_tables, n_jobs, _EACH)
    ends = np.zeros((wiring.n_graphs + 1, 6), np.int64)
    np.cumsum(sizes, axis=0, out=ends[1:])
    return ends


def empty_wiring(ends: Ints) -> Wiring:
    """Return a wiring that is yet to be filled.

    Rows of `ends` say where the variables, factors, slots, tables, messages and beliefs of every
    graph begin, and the last ones end.
    """
    variables, factors, slots, tables, messages, beliefs = ends[-1].tolist()
    lengths = {
        "cards": variables, "roles": variables, "scope_offsets": factors + 1, "scopes": slots,
        "strides": slots, "slot_factors": slots, "table_offsets": factors + 1,
        "slot_offsets": variables + 1, "slots": slots, "message_offsets": slots + 1,
        "belief_offsets": variables + 1,
    }  # fmt: skip
    out = Wiring(
        **{name: empty(length, np.int64) for name, length in lengths.items()},
        graph_variables=np.ascontiguousarray(ends[:, 0]),
        graph_factors=np.ascontiguousarray(ends[:, 1]),
    )
    out.scope_offsets[-1] = out.slot_offsets[-1] = slots
    out.table_offsets[-1] = tables
    out.message_offsets[-1] = messages
    out.belief_offsets[-1] = beliefs
    return out


def frozen(wiring: Wiring) -> Wiring:
    """Return a wiring that was filled, read-only from now on."""
    for array in wiring:
        array.setflags(write=False)
    return wiring


def _frozen(array: Ints) -> Ints:
    # Always read-only, also so that every kernel sees one array type and compiles once.
    # The copy keeps what a caller holds writeable.
    if array.flags.writeable or array.dtype != np.int64 or not array.flags.c_contiguous:
        array = np.array(array, dtype=np.int64, order="C")
    array.setflags(write=False)
    return array


# ---- checks of what a graph is built from ------------------------------------------------


def check_cards(cards: Any, what: str) -> None:
    """Every variable needs a whole number of states, at least one."""
    whole = cards.dtype.kind in "iu"
    if not whole or (cards.size and not 1 <= cards.min() <= cards.max() <= _MOST_STATES):
        raise GraphError(
            f"{what}: every variable needs a whole number >= 1 of states, at most {_MOST_STATES}"
        )


def check_roles(roles: Any, n_variables: int) -> Ints:
    """One role per variable; by default all are outputs."""
    if roles is None:
        return np.zeros(n_variables, np.int64)
    array = checks.indices("roles", roles)
    if len(array) != n_variables or ((array < 0) | (array >= len(ROLES))).any():
        raise GraphError(f"roles must hold {n_variables} indices into {ROLES}")
    return array


def check_layout(scope_offsets: Any, scopes: Any) -> tuple[Ints, Ints]:
    """Offsets must begin at 0, never fall, and end at the number of slots."""
    borders = checks.indices("scope_offsets", scope_offsets)
    slots = checks.indices("scopes", scopes)
    if not len(borders) or borders[0] != 0 or borders[-1] != len(slots):
        raise GraphError(
            f"scope_offsets must begin with 0 and end with the {len(slots)} entries of scopes"
        )
    if (np.diff(borders) < 0).any():
        raise GraphError("scope_offsets must not fall")
    return borders, slots


def check_scopes(arities: Ints, scopes: Ints, n_variables: int) -> None:
    """Scopes name variables that exist, each once."""
    if len(arities) and arities.min() < 1:
        raise GraphError(f"factor {int(arities.argmin())} has an empty scope; need >= 1 variable")
    if len(arities) and arities.max() > _LARGEST_ARITY:
        raise GraphError(
            f"factor {int(arities.argmax())} has {arities.max()} variables; "
            f"at most {_LARGEST_ARITY}"
        )
    report = np.zeros(2, np.int64)
    if wire.bad_scope(offsets_of(arities), scopes, n_variables, report):
        factor, variable = report.tolist()
        if 0 <= variable < n_variables:
            raise GraphError(f"variable {variable} occurs twice in the scope of factor {factor}")
        raise GraphError(
            f"the scope of factor {factor} names variable {variable}, but there are "
            f"{n_variables} variables"
        )
