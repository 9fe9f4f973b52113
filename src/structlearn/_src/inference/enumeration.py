"""Enumeration of all assignments: the oracle, for small graphs."""

from __future__ import annotations

import math

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.inference.base import Options, Problem, Result
from structlearn._src.inference.names import ASSIGNMENTS, Query

_MOST = 2**22  # assignments: 32 MB per table, about a second


class Enumeration:
    """Write out the score of every assignment. Obvious, exact, exponential."""

    name = "enumeration"

    def refuses(self, problem: Problem, query: Query, options: Options) -> str:
        """Refuse graphs with too many assignments."""
        wiring = problem.wiring
        logs = np.add.reduceat(np.append(np.log(wiring.cards), 0.0), wiring.graph_variables[:-1])
        if logs.max(initial=0.0) > math.log(_MOST) + 1e-9:
            return (
                f"there are about 10^{logs.max() / math.log(10):.0f} assignments; "
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
        value = np.array([g.value for g in graphs])
        result = Result.exactly(value, "exact by enumeration")
        if query == Query.MARGINALS:
            result.beliefs = np.concatenate([np.zeros(0), *(g.beliefs() for g in graphs)])
            result.factor_beliefs = np.concatenate([np.zeros(0), *(g.factors() for g in graphs)])
        elif query in ASSIGNMENTS:
            labels = np.concatenate([np.zeros(0, np.int64), *(g.best() for g in graphs)])
            open_end = problem.hidden & (query == Query.MARGINAL_MAP)
            result.labels = np.where(open_end, -1, labels)
            if options.k > 1:
                result.best = graphs[0].k_best(options.k)
        elif query == Query.SAMPLES:
            draws = [g.draw(options.rng.random(options.n_samples)) for g in graphs]
            result.draws = np.concatenate(draws, axis=1)
        return result


class _Joint:
    """All assignments of one graph, outputs as rows and hidden variables as columns."""

    def __init__(self, problem: Problem, graph: int) -> None:
        self.wiring = problem.wiring
        self.problem = problem
        low, high = self.wiring.graph_variables[graph : graph + 2]
        self.first_factor, self.last_factor = self.wiring.graph_factors[graph : graph + 2]
        self.variables = np.arange(low, high)
        self.cards = tuple(self.wiring.cards[low:high].tolist())
        hidden = problem.hidden[low:high]
        self.order = [*np.flatnonzero(~hidden), *np.flatnonzero(hidden)]
        rows = math.prod(self.cards[i] for i in np.flatnonzero(~hidden))
        self.table = self._scores().transpose(self.order).reshape(rows, -1)
        self.inner = _soft_max(self.table, problem.eps_hidden)
        self.value = float(_soft_max(self.inner[None], problem.eps_output)[0])

    def _scores(self) -> Floats:
        table = np.zeros(self.cards)
        for f in range(self.first_factor, self.last_factor):
            scope, values = self._factor(f)
            axes = np.argsort(scope)
            shape = [c if i in scope else 1 for i, c in enumerate(self.cards)]
            table = table + values.transpose(axes).reshape(shape)
        return table

    def _factor(self, f: int) -> tuple[list[int], Floats]:
        wiring = self.wiring
        scope = wiring.scopes[wiring.scope_offsets[f] : wiring.scope_offsets[f + 1]]
        start, stop = wiring.table_offsets[f : f + 2]
        values = self.problem.potentials[start:stop].reshape(wiring.cards[scope])
        return (scope - self.variables[0]).tolist(), values

    def distribution(self) -> Floats:
        """Probability of every assignment, one axis per variable."""
        rows = _gradient(self.inner[None], np.array([self.value]), self.problem.eps_output)
        joint = rows.T * _gradient(self.table, self.inner, self.problem.eps_hidden)
        shape = [self.cards[i] for i in self.order]
        return joint.reshape(shape).transpose(np.argsort(self.order))

    def _marginal(self, joint: Floats, scope: list[int]) -> Floats:
        kept = sorted(scope)
        out = joint.sum(axis=tuple(i for i in range(joint.ndim) if i not in scope))
        return out.transpose([kept.index(i) for i in scope]).ravel()

    def beliefs(self) -> Floats:
        joint = self.distribution()
        parts = [self._marginal(joint, [i]) for i in range(len(self.cards))]
        return np.concatenate([np.zeros(0), *parts])

    def factors(self) -> Floats:
        joint = self.distribution()
        scopes = [self._factor(f)[0] for f in range(self.first_factor, self.last_factor)]
        return np.concatenate([np.zeros(0), *(self._marginal(joint, s) for s in scopes)])

    def best(self) -> Ints:
        row = int(self.inner.argmax())
        return self._labels(row, int(self.table[row].argmax()))

    def k_best(self, k: int) -> list[tuple[Floats, Ints]]:
        flat = self.table.ravel()
        order = np.argsort(-flat, kind="stable")[:k]
        possible = [int(i) for i in order if flat[i] > -np.inf]
        return [
            (np.array([flat[i]]), self._labels(*divmod(i, self.table.shape[1]))) for i in possible
        ]

    def draw(self, uniforms: Floats) -> Ints:
        cumulative = np.cumsum(self.distribution().ravel())
        flat = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
        flat = np.minimum(flat, np.searchsorted(cumulative, cumulative[-1]))  # against rounding
        digits = np.unravel_index(flat, (1, *self.cards))[1:]  # at least one axis is needed
        return np.array(digits, np.int64).reshape(len(self.cards), len(uniforms)).T

    def _labels(self, row: int, column: int) -> Ints:
        shape = [self.cards[i] for i in self.order]
        digits = np.unravel_index(row * self.table.shape[1] + column, shape)
        labels = np.empty(len(self.cards), np.int64)
        labels[self.order] = digits
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
