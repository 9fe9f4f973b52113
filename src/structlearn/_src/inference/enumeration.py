"""Enumeration of all assignments: the oracle, for small graphs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.inference.base import BuiltInInferer, Options, Problem, Result
from structlearn._src.inference.names import ASSIGNMENTS, Query

_MOST = 2**22  # assignments: 32 MB per table, about a second


class Enumeration(BuiltInInferer):
    """Write out the score of every assignment. Obvious, exact, exponential."""

    name = "enumeration"
    k_best = True

    def objection(self, problem: Problem, query: Query, options: Options) -> str:
        """Refuse graphs with too many assignments."""
        wiring = problem.wiring
        log = wiring.log_assignments().max(initial=0.0)
        if log > math.log(_MOST) + 1e-9:
            return (
                f"there are about 10^{log / math.log(10):.0f} assignments; "
                f"enumeration stops at {_MOST}"
            )
        if np.diff(wiring.graph_variables).max(initial=0) > 60:
            return "enumeration stops at 60 variables"
        if options.k > 1 and wiring.n_graphs > 1:
            return "the k best assignments are found for one graph at a time"
        return ""

    def run(self, problem: Problem, query: Query, options: Options) -> Result:
        """Answer by looking at every assignment."""
        graphs = [_Joint(problem, g) for g in range(problem.wiring.n_graphs)]
        result = Result.exactly(np.array([g.value for g in graphs]), "exact by enumeration")
        if query == Query.MARGINALS:
            alone = [[[i] for i in range(len(g.cards))] for g in graphs]
            result.beliefs = _flat(map(_Joint.marginals, graphs, alone))
            result.factor_beliefs = _flat(g.marginals(g.scopes) for g in graphs)
        elif query in ASSIGNMENTS:
            labels = _flat(g.labels(g.best())[0] for g in graphs).astype(np.int64)
            open_end = problem.hidden & (query == Query.MARGINAL_MAP)
            result.labels = np.where(open_end, -1, labels)
            if options.k > 1:
                result.best = graphs[0].k_best(options.k)
        elif query == Query.SAMPLES:
            draws = [g.draw(options.rng.random(options.n_samples)) for g in graphs]
            result.draws = np.concatenate(draws, axis=1)
        return result


def _flat(parts: Iterable[Any]) -> Any:
    return np.concatenate([np.zeros(0), *parts])


class _Joint:
    """All assignments of one graph, outputs as rows and hidden variables as columns."""

    def __init__(self, problem: Problem, graph: int) -> None:
        wiring = problem.wiring
        low, high = wiring.graph_variables[graph : graph + 2]
        self.cards = wiring.cards[low:high]
        hidden = problem.hidden[low:high]
        self.order = np.argsort(hidden, kind="stable")
        self.eps = problem.eps_output, problem.eps_hidden
        self.scopes: list[Ints] = []
        scores = np.zeros(self.cards)
        for f in range(*wiring.graph_factors[graph : graph + 2]):
            scope = wiring.scopes[wiring.scope_offsets[f] : wiring.scope_offsets[f + 1]] - low
            start, stop = wiring.table_offsets[f : f + 2]
            table = problem.potentials[start:stop].reshape(self.cards[scope])
            inside = np.isin(np.arange(high - low), scope)
            shape = np.where(inside, self.cards, 1)
            scores = scores + table.transpose(np.argsort(scope)).reshape(shape)
            self.scopes.append(scope)
        rows = math.prod(self.cards[~hidden].tolist())
        self.table = scores.transpose(self.order).reshape(rows, -1)
        self.inner = _soft_max(self.table, problem.eps_hidden)
        self.value = float(_soft_max(self.inner[None], problem.eps_output)[0])

    def distribution(self) -> Floats:
        """Probability of every assignment, laid out as the table."""
        rows = _gradient(self.inner[None], np.array([self.value]), self.eps[0])
        return rows.T * _gradient(self.table, self.inner, self.eps[1])

    def marginals(self, scopes: list[Any]) -> Floats:
        joint = self.distribution().reshape(self.cards[self.order])
        joint = joint.transpose(np.argsort(self.order))
        axes = range(joint.ndim)
        return _flat(
            joint.transpose([*scope, *(i for i in axes if i not in scope)])
            .reshape(math.prod(self.cards[scope].tolist()), -1)
            .sum(axis=1)
            for scope in scopes
        )

    def best(self) -> Ints:
        row = int(self.inner.argmax())
        return np.array([row * self.table.shape[1] + self.table[row].argmax()])

    def k_best(self, k: int) -> list[tuple[Floats, Ints]]:
        flat = self.table.ravel()
        order = np.argsort(-flat, kind="stable")[:k]
        order = order[flat[order] > -np.inf]
        return [(flat[[i]], labels) for i, labels in zip(order, self.labels(order), strict=True)]

    def draw(self, uniforms: Floats) -> Ints:
        cumulative = np.cumsum(self.distribution().ravel())
        flat = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
        flat = np.minimum(flat, np.searchsorted(cumulative, cumulative[-1]))  # against rounding
        return self.labels(flat)

    def labels(self, entries: Ints) -> Ints:
        """Assignments (entries, variables) that entries of the table stand for."""
        digits = np.unravel_index(entries, (1, *self.cards[self.order]))  # one axis at least
        labels = np.empty((len(entries), len(self.cards)), np.int64)
        labels[:, self.order] = np.stack(digits, axis=1)[:, 1:]
        return labels


def _soft_max(table: Floats, eps: float) -> Floats:
    """Soft maximum of every row."""
    top: Floats = table.max(axis=1)
    if eps == 0:
        return top
    base = np.where(top > -np.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        return base + eps * np.log(np.exp((table - base[:, None]) / eps).sum(axis=1))


def _gradient(table: Floats, value: Floats, eps: float) -> Floats:
    """Gradient of the soft maximum of every row, zeros in impossible rows."""
    possible = (value > -np.inf)[:, None]
    if eps == 0:
        best = np.arange(table.shape[1]) == table.argmax(axis=1)[:, None]
        return np.where(possible, best, 0.0)
    return np.where(possible, np.exp((table - np.where(possible, value[:, None], 0.0)) / eps), 0.0)
