"""From an inferer's arrays to one `Answer` per graph, with evidence put back."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from structlearn.common.checks import Floats, Ints
from structlearn.common.errors import ImpossibleEvidenceError
from structlearn.graph.build import FactorGraph
from structlearn.graph.condition import Conditioned, places
from structlearn.graph.wiring import HIDDEN, Wiring
from structlearn.inference.base import Answer, Options, Problem, Result
from structlearn.inference.clamped import Clamped


class Marginals(Mapping[Hashable, Floats]):
    """Marginal of every variable by name; `flat` has them one after the other."""

    def __init__(self, graph: FactorGraph, flat: Floats) -> None:
        self._graph, self.flat = graph, flat
        self._offsets = graph.wiring.belief_offsets

    def __getitem__(self, name: Hashable) -> Floats:
        i = _position(self._graph, name)
        return self.flat[self._offsets[i] : self._offsets[i + 1]]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._graph.names)

    def __len__(self) -> int:
        return self._graph.n_variables

    def array(self) -> Floats:
        """All marginals as (variables, states), padded with zeros where there are fewer states."""
        cards = self._graph.cards
        out = np.zeros((len(cards), int(cards.max(initial=0))))
        out[np.arange(out.shape[1]) < cards[:, None]] = self.flat
        return out


class FactorMarginals(Mapping[int, Floats]):
    """Marginal over every factor's scope, by factor index; `flat` is laid out like potentials."""

    def __init__(self, graph: FactorGraph, flat: Floats) -> None:
        self._graph, self.flat = graph, flat

    def __getitem__(self, factor: int) -> Floats:
        if not isinstance(factor, (int, np.integer)) or not 0 <= factor < len(self):
            raise KeyError(factor)
        start, stop = self._graph.wiring.table_offsets[factor : factor + 2]
        return self.flat[start:stop].reshape(self._graph.cards[self._graph.scope(factor)])

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return self._graph.n_factors


class Assignment(Mapping[Hashable, int]):
    """State of every assigned variable by name; `array` has -1 for those left open."""

    def __init__(self, graph: FactorGraph, labels: Ints) -> None:
        self._graph, self.array = graph, labels

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


def _position(graph: FactorGraph, name: Hashable) -> int:
    try:
        return graph.variable(name)
    except ValueError as error:
        raise KeyError(str(error)) from None


@dataclass(eq=False)
class Reply:
    """What is needed to take a result apart."""

    graphs: list[FactorGraph]
    wiring: Wiring
    fixed: Ints
    small: Conditioned
    problem: Problem
    query: str
    method: str
    options: Options

    def whole_labels(self, labels: Ints) -> Ints:
        """Labels of all variables, evidence included; for marginal MAP of the outputs only."""
        out = self.fixed.copy()
        out[self.small.variables] = labels
        if self.query == "marginal_map":
            out[self.wiring.roles == HIDDEN] = -1
        return out

    def whole_beliefs(self, beliefs: Floats) -> Floats:
        """Beliefs of all variables, certain where there is evidence."""
        out = np.zeros(int(self.wiring.belief_offsets[-1]))
        known = self.fixed >= 0
        out[self.wiring.belief_offsets[:-1][known] + self.fixed[known]] = 1.0
        out[np.repeat(~known, self.wiring.cards)] = beliefs
        return out

    def whole_factors(self, beliefs: Floats) -> Floats:
        """Beliefs over the full scope of all factors."""
        where, kept = places(self.wiring, self.fixed)
        out = np.zeros(int(self.wiring.table_offsets[-1]))
        out[where] = 1.0
        out[where[kept]] = beliefs
        return out

    def whole_draws(self, draws: Ints) -> Ints:
        """Draws of all variables."""
        out = np.repeat(self.fixed[None], len(draws), axis=0)
        out[:, self.small.variables] = draws
        return out

    @cached_property
    def clamped(self) -> Clamped:
        """Scorer for marginal-MAP assignments."""
        return Clamped(self.problem, self.options)


def collect(reply: Reply, result: Result) -> list[Answer]:
    """One answer per graph."""
    constant = reply.small.constant
    _refuse_impossible(reply, result)
    if reply.query == "marginal_map" and not result.exact and reply.method != "portfolio":
        _rescore(reply, result)
    n = len(reply.graphs)
    value = result.value + constant
    lower = np.full(n, -np.inf) if result.lower is None else result.lower + constant
    upper = np.full(n, np.inf) if result.upper is None else result.upper + constant
    slices = _slicer(reply, result)
    answers = []
    for g, graph in enumerate(reply.graphs):
        answers.append(
            Answer(
                query=reply.query,
                method=reply.method,
                value=float(value[g]),
                lower=float(lower[g]),
                upper=float(upper[g]),
                exact=result.exact,
                status=result.status,
                converged=True if result.converged is None else bool(result.converged[g]),
                iterations=0 if result.iterations is None else int(result.iterations[g]),
                residual=0.0 if result.residual is None else float(result.residual[g]),
                messages=result.messages if n == 1 else None,
                **slices(g, graph),  # type: ignore[arg-type]
            )
        )
    return answers


def _slicer(reply: Reply, result: Result) -> Callable[[int, FactorGraph], dict[str, object]]:
    """Prepare the whole arrays once; return what cuts out one graph's share."""
    wiring = reply.wiring
    variables, factors = wiring.graph_variables, wiring.graph_factors
    beliefs = labels = tables = draws = None
    if reply.query == "marginals" and result.beliefs is not None:
        beliefs = reply.whole_beliefs(result.beliefs)
        if reply.options.factor_marginals and result.factor_beliefs is not None:
            tables = reply.whole_factors(result.factor_beliefs)
    if reply.query in ("map", "marginal_map") and result.labels is not None:
        labels = reply.whole_labels(result.labels)
    if result.draws is not None:
        draws = reply.whole_draws(result.draws)

    def cut(g: int, graph: FactorGraph) -> dict[str, object]:
        low, high = variables[g], variables[g + 1]
        out: dict[str, object] = {}
        if beliefs is not None:
            first, last = wiring.belief_offsets[low], wiring.belief_offsets[high]
            out["marginals"] = Marginals(graph, beliefs[first:last])
        if tables is not None:
            first, last = (wiring.table_offsets[factors[i]] for i in (g, g + 1))
            out["factor_marginals"] = FactorMarginals(graph, tables[first:last])
        if labels is not None:
            out["assignment"] = Assignment(graph, labels[low:high])
        if draws is not None:
            out["samples"] = draws[:, low:high]
        if result.best is not None:
            out["k_best"] = [
                (
                    float(v[g] + reply.small.constant[g]),
                    Assignment(graph, reply.whole_labels(x)[low:high]),
                )
                for v, x in result.best
                if v[g] > -np.inf
            ]
        return out

    return cut


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


def _rescore(reply: Reply, result: Result) -> None:
    """Score a marginal-MAP assignment by the true objective instead of a method's estimate."""
    assert result.labels is not None
    result.value = reply.clamped.value(result.labels)
    if reply.clamped.exact:
        result.lower = result.value
    else:
        result.status += "; hidden variables summed by the Bethe approximation"
