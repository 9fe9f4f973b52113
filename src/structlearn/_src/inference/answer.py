"""From an inferer's arrays to one `Answer` per graph, with evidence put back."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, overload

import numpy as np

from structlearn._src.common.arrays import Floats, Ints, cut
from structlearn._src.common.errors import ImpossibleEvidenceError
from structlearn._src.graph.naming import NamedWiring, NamedWirings
from structlearn._src.graph.wiring import HIDDEN, Conditioned, Wiring, places
from structlearn._src.inference.base import Answer, Options, Problem, Result
from structlearn._src.inference.beliefs import normalise, normalised, sure_beliefs
from structlearn._src.inference.names import ASSIGNMENTS, Query
from structlearn._src.inference.portfolio import OutputScore


class Marginals(Mapping[Hashable, Floats]):
    """Marginal of every variable by name; `flat` has them one after the other."""

    __slots__ = ("_graph", "flat")  # a batch makes thousands

    def __init__(self, graph: NamedWiring, flat: Floats) -> None:
        self._graph = graph
        self.flat = flat

    def __getitem__(self, name: Hashable) -> Floats:
        i = _position(self._graph, name)
        start, stop = self._graph.wiring.belief_offsets[i : i + 2]
        return self.flat[start:stop]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._graph.names)

    def __len__(self) -> int:
        return self._graph.wiring.n_variables

    def __repr__(self) -> str:
        shown = ", ".join(f"{n!r}: {p.round(4).tolist()}" for n, p in islice(self.items(), 8))
        return f"Marginals({{{shown}{', ...' if len(self) > 8 else ''}}})"

    def array(self) -> Floats:
        """All marginals as (variables, states), padded with zeros where there are fewer states."""
        cards = self._graph.wiring.cards
        out = np.zeros((len(cards), int(cards.max(initial=0))))
        out[np.arange(out.shape[1]) < cards[:, None]] = self.flat
        return out


class FactorMarginals(Mapping[int, Floats]):
    """Marginal over every factor's scope, by factor index; `flat` is laid out like potentials."""

    __slots__ = ("_graph", "flat")

    def __init__(self, graph: NamedWiring, flat: Floats) -> None:
        self._graph = graph
        self.flat = flat

    def __getitem__(self, factor: int) -> Floats:
        if not isinstance(factor, (int, np.integer)) or not 0 <= factor < len(self):
            raise KeyError(factor)
        wiring = self._graph.wiring
        start, stop = wiring.table_offsets[factor : factor + 2]
        scope = wiring.scopes[slice(*wiring.scope_offsets[factor : factor + 2])]
        return self.flat[start:stop].reshape(wiring.cards[scope])

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return self._graph.wiring.n_factors


class Assignment(Mapping[Hashable, int]):
    """State of every assigned variable by name; `array` has -1 for those left open."""

    __slots__ = ("_graph", "array")

    def __init__(self, graph: NamedWiring, labels: Ints) -> None:
        self._graph = graph
        self.array = labels

    def __getitem__(self, name: Hashable) -> int:
        state = int(self.array[_position(self._graph, name)])
        if state < 0:
            raise KeyError(name)
        return state

    def __iter__(self) -> Iterator[Hashable]:
        names = self._graph.names
        return (names[i] for i in np.flatnonzero(self.array >= 0).tolist())

    def __len__(self) -> int:
        return int((self.array >= 0).sum())

    def __repr__(self) -> str:
        shown = ", ".join(f"{n!r}: {s}" for n, s in list(self.items())[:8])
        return f"Assignment({{{shown}{', ...' if len(self) > 8 else ''}}})"


def _position(graph: NamedWiring, name: Hashable) -> int:
    try:
        return graph.variable_index(name)
    except ValueError as error:
        raise KeyError(str(error)) from None


@dataclass(frozen=True, eq=False)
class Shares:
    """Blocks of a flat array, one for each graph, with its names."""

    kind: Callable[[NamedWiring, Any], Any]
    graphs: NamedWirings
    flat: Any
    borders: Ints

    def __len__(self) -> int:
        return len(self.graphs)

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, g: int) -> Any:
        return self.kind(self.graphs[g], self.flat[self.borders[g] : self.borders[g + 1]])


class Answers(Sequence[Answer]):
    """Answers about many graphs, each made when it is first looked at.

    Like a list that does not change: a slice of it is a list, and it equals a list of the same
    answers.
    """

    def __init__(self, count: int, same: dict[str, Any], own: dict[str, Any]) -> None:
        self._same = same  # what all answers share
        self._own = own  # by attribute: an array, a list or `Shares`, with an entry per graph
        self._made: list[Answer | None] = [None] * count

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, index: int) -> Answer: ...

    @overload
    def __getitem__(self, index: slice) -> list[Answer]: ...

    def __getitem__(self, index: int | slice) -> Answer | list[Answer]:
        if isinstance(index, slice):
            return [self._answer(g) for g in range(len(self))[index]]
        try:
            return self._answer(range(len(self))[index])
        except IndexError:
            raise IndexError(f"there is no answer {index}; there are {len(self)}") from None

    def __iter__(self) -> Iterator[Answer]:
        return map(self._answer, range(len(self)))

    def _answer(self, g: int) -> Answer:
        made = self._made[g]
        if made is None:
            own = ((name, _plain(column[g])) for name, column in self._own.items())
            made = self._made[g] = Answer.of(self._same, own)
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Answers, list)) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as that of a list

    def __add__(self, other: Iterable[Answer]) -> list[Answer]:
        return [*self, *other]

    def __radd__(self, other: Iterable[Answer]) -> list[Answer]:
        return [*other, *self]

    def __repr__(self) -> str:
        return repr(list(self))


def _plain(value: Any) -> Any:
    """Turn numbers of NumPy into those of Python."""
    return value.item() if isinstance(value, np.generic) else value


@dataclass(eq=False)
class Reply:
    """What is needed to take a result apart."""

    graphs: NamedWirings
    wiring: Wiring
    fixed: Ints
    small: Conditioned
    problem: Problem
    query: Query
    method: str
    options: Options

    def whole_labels(self, labels: Ints) -> Ints:
        """Labels of all variables, or rows of them, with evidence; for marginal MAP of outputs."""
        out = np.broadcast_to(self.fixed, (*labels.shape[:-1], len(self.fixed))).copy()
        out[..., self.small.variables] = labels
        if self.query == Query.MARGINAL_MAP:
            out[self.wiring.roles == HIDDEN] = -1
        return out

    def whole_beliefs(self, beliefs: Floats) -> Floats:
        """Beliefs of all variables, certain where there is evidence."""
        if self.small.wiring is self.wiring:  # there is none
            return beliefs
        out = sure_beliefs(self.wiring, self.fixed)
        out[np.repeat(self.fixed < 0, self.wiring.cards)] = beliefs
        return out

    def whole_factors(self, beliefs: Floats) -> Floats:
        """Beliefs over the full scope of all factors."""
        kept, gone = places(self.wiring, self.fixed, self.options.n_jobs)
        out = np.zeros(int(self.wiring.table_offsets[-1]))
        out[gone] = 1.0
        offsets = self.small.wiring.table_offsets
        out[kept] = normalise(beliefs, offsets, self.options.n_jobs)
        return out


def collect(reply: Reply, result: Result) -> Answers:
    """One answer per graph."""
    constant = reply.small.constant
    _refuse_impossible(reply, result)
    if reply.query == Query.MARGINAL_MAP and not result.exact and reply.method != "portfolio":
        _rescore(reply, result)
    beliefs = _beliefs(reply, result)
    n = len(reply.graphs)
    lower = np.full(n, -np.inf) if result.lower is None else result.lower + constant
    upper = np.full(n, np.inf) if result.upper is None else result.upper + constant
    same: dict[str, Any] = {
        "query": reply.query,
        "method": reply.method,
        "exact": result.exact,
        "status": result.status,
        "ended": result.ended,
        "messages": result.messages if n == 1 else None,
    }
    own: dict[str, Any] = {"value": result.value + constant, "lower": lower, "upper": upper}
    for name in ("converged", "iterations", "residual"):
        found = getattr(result, name)
        if found is not None:
            own[name] = found
    if result.bounds:
        own["bounds"] = [
            np.array([(at, low[g] + more, high[g] + more) for at, low, high in result.bounds])
            for g, more in enumerate(constant)
        ]
    own |= _shares(reply, result, beliefs)
    return Answers(n, same, own)


def _shares(reply: Reply, result: Result, beliefs: Floats) -> dict[str, Any]:
    """Marginals, assignments and draws, with one share per graph."""
    graphs = reply.graphs
    wiring = reply.wiring
    out: dict[str, Any] = {}
    if reply.query == Query.MARGINALS:
        borders = wiring.belief_offsets[wiring.graph_variables]
        flat = reply.whole_beliefs(beliefs)
        out["marginals"] = Shares(Marginals, graphs, flat, borders)
        if reply.options.factor_marginals:
            borders = wiring.graph_tables
            flat = reply.whole_factors(result.factor_beliefs)
            out["factor_marginals"] = Shares(FactorMarginals, graphs, flat, borders)
    if reply.query in ASSIGNMENTS:
        out["assignment"] = _assignments(reply, result.labels)
    if reply.query == Query.SAMPLES:
        draws = cut(reply.whole_labels(result.draws).T, wiring.graph_variables)
        out["samples"] = [share.T for share in draws]
    if result.best is not None:
        ranks = [
            zip((value + reply.small.constant).tolist(), _assignments(reply, labels), strict=True)
            for value, labels in result.best
        ]
        # A graph with fewer assignments than asked for has only those.
        out["k_best"] = [[x for x in row if x[0] > -np.inf] for row in zip(*ranks, strict=True)]
    return out


def _assignments(reply: Reply, labels: Ints) -> Shares:
    whole = reply.whole_labels(labels)
    return Shares(Assignment, reply.graphs, whole, reply.wiring.graph_variables)


def _refuse_impossible(reply: Reply, result: Result) -> None:
    """Evidence or constraints that leave no assignment are an error, found exactly."""
    impossible = np.isneginf(reply.small.constant)
    if result.exact:
        impossible |= np.isneginf(result.value)
    if impossible.any():
        g = int(np.argmax(impossible))
        where = "" if len(reply.graphs) == 1 else f" of graph {g}"
        cause = (
            "the evidence contradicts" if (reply.fixed >= 0).any() else "there is no way to satisfy"
        )
        raise ImpossibleEvidenceError(
            f"{cause} the hard constraints{where}: every assignment has potential -inf; "
            f"check the -inf entries of the tables and the evidence"
        )


def _beliefs(reply: Reply, result: Result) -> Floats:
    """Those of variables, to sum up to 1.

    The status says if an approximate method left a variable without any possible state.
    """
    starts = reply.problem.wiring.belief_offsets
    beliefs, contradictions = normalised(result.beliefs, starts, reply.options.n_jobs)
    if contradictions:
        result.status += "; a variable has no possible state: hard constraints contradict"
    return beliefs


def _rescore(reply: Reply, result: Result) -> None:
    """Score a marginal-MAP assignment by the true objective instead of a method's estimate."""
    score = OutputScore(reply.problem, reply.options)
    result.value = score.value(result.labels)
    if score.exact:
        result.lower = result.value
    else:
        result.status += "; hidden variables summed by the Bethe approximation"
