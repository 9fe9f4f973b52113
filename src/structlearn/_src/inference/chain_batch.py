"""A ragged batch of chains: forward-backward, Viterbi, k best paths, exact draws, in threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from structlearn._src.common import checks, threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.graph.batch import Sequences
from structlearn._src.kernels.chain import forward_backward as chain
from structlearn._src.kernels.chain import viterbi
from structlearn._src.model.model import Tables


@dataclass(frozen=True, eq=False)
class Chains:
    r"""A ragged batch of chains and every exact query on it.

    The score of the labels of a chain is :math:`\sum_t \theta_t(x_t) + \sum_t
    \psi_t(x_t, x_{t+1})`. Divide the potentials by a temperature and multiply values by it to
    get a soft maximum.
    """

    nodes: Floats  #: (T, K) of all positions; -inf for states that a variable does not have
    edges: Floats  #: (1, K, K) for all edges or (T - chains, K, K), in the order of the positions
    offsets: Ints  #: (chains + 1,) where chains begin and end; none is empty
    n_jobs: int | None = None  #: results do not depend on it

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return len(self.offsets) - 1

    @property
    def shared(self) -> bool:
        """Whether all edges share one table."""
        return len(self.edges) == 1

    def log_partition(self) -> Floats:
        """Log partition function of every chain; -inf if no path is possible."""
        values = np.empty(self.n_chains)

        def work(first: int, last: int) -> None:
            self._forward(first, last, values)

        self._run(work)
        return values

    def marginals(
        self, pairs: str = "none", weights: Floats | None = None
    ) -> tuple[Floats, Floats, Floats]:
        """Log partition functions, node marginals (T, K) and edge marginals.

        The edge marginals are (T - chains, K, K) for ``pairs="each"``, their sum over all edges
        (1, K, K) for "sum" and empty for "none". An impossible chain has zeros. With `weights`
        (chains,) the marginals of every chain are multiplied by its weight.
        """
        checks.one_of("pairs", pairs, ("none", "each", "sum"))
        values = np.empty(self.n_chains)
        beliefs = np.empty_like(self.nodes)
        size = (len(self.nodes) - self.n_chains, *self.edges.shape[1:])
        each = np.zeros(size if pairs == "each" else (0, *size[1:]))
        sums: dict[int, Floats] = {}
        by = np.ones(self.n_chains) if weights is None else weights

        def work(first: int, last: int) -> None:
            start, stop = self.offsets[first], self.offsets[last]
            out = each[start - first : stop - last] if pairs == "each" else each
            if pairs == "sum":
                out = sums[first] = np.zeros((1, *size[1:]))
            self._forward(first, last, values, beliefs[start:stop]).backward(by[first:last], out)

        self._run(work)
        if pairs == "sum":
            # In the order of the ranges, whichever thread was first.
            each = sum((sums[first] for first in sorted(sums)), np.zeros((1, *size[1:])))
        return values, beliefs, each

    def best(self) -> tuple[Floats, Ints]:
        """Best score of every chain and the labels (T,), -1 for impossible chains."""
        values = np.empty(self.n_chains)
        labels = np.empty(len(self.nodes), np.int64)

        def work(first: int, last: int) -> None:
            start, stop = self.offsets[first], self.offsets[last]
            part = self._part(first, last)
            viterbi.max_product(*part, values[first:last], labels[start:stop])

        self._run(work)
        return values, labels

    def k_best(self, k: int) -> tuple[Floats, Ints]:
        """Scores (chains, k) and labels (k, T) of the best paths; -inf and -1 if fewer exist."""
        checks.fits(f"k={k} best labellings", k, self.n_chains + len(self.nodes))
        values = np.empty((self.n_chains, k))
        labels = np.empty((k, len(self.nodes)), np.int64)

        def work(first: int, last: int) -> None:
            start, stop = self.offsets[first], self.offsets[last]
            part = self._part(first, last)
            found = np.empty((k, stop - start), np.int64)
            viterbi.k_best(*part, values[first:last], found)
            labels[:, start:stop] = found

        self._run(work)
        return values, labels

    def draw(
        self,
        n: int,
        rng: np.random.Generator,
        uniforms: int = 2**24,
        values: Floats | None = None,
    ) -> Ints:
        """Independent exact draws (n, T) of all labels; -1 for impossible chains.

        So many `uniforms` are held at a time. Log partition functions are written into `values`
        (chains,).
        """
        checks.fits(f"{n} draws", n, len(self.nodes))
        values = np.empty(self.n_chains) if values is None else values
        labels = np.empty((n, len(self.nodes)), np.int64)
        block = max(1, uniforms // max(len(self.nodes), 1))
        for begin in range(0, n, block):
            rows = labels[begin : begin + block]
            self._draw(rng.random(rows.shape), rows, values)
        return labels

    def _draw(self, uniforms: Floats, labels: Ints, values: Floats) -> None:
        def work(first: int, last: int) -> None:
            start, stop = self.offsets[first], self.offsets[last]
            columns = np.ascontiguousarray(uniforms[:, start:stop])
            found = np.empty(columns.shape, np.int64)
            self._forward(first, last, values).draw(columns, found)
            labels[:, start:stop] = found

        self._run(work)

    def _part(self, first: int, last: int) -> tuple[Floats, Floats, Ints]:
        start, stop = self.offsets[first], self.offsets[last]
        edges = self.edges if self.shared else self.edges[start - first : stop - last]
        return self.nodes[start:stop], edges, self.offsets[first : last + 1]

    def _forward(
        self, first: int, last: int, values: Floats, soft: Floats | None = None
    ) -> _Filtered:
        return _Filtered(*self._part(first, last), values[first:last], soft)

    def _run(self, work: Callable[[int, int], None]) -> None:
        entries = self.nodes.size + (0 if self.shared else self.edges.size)
        threads.over_items(work, self.offsets, "chains", self.n_jobs, entries)


def tables_to_chains(
    sequences: Sequences, tables: Tables, added: Floats | None, eps: float, n_jobs: int | None
) -> Chains:
    """Return the chains of all sequences, potentials divided by the temperature unless it is 0.

    `added` (positions, states) is added to the potentials of the positions, the ends that are
    forbidden included (see `forbid_ends`).
    """
    n = sequences.n_variables
    states = sequences.states
    nodes = tables[0] if len(tables[0]) == n else np.repeat(tables[0], n, axis=0)
    edges = tables[1] if len(tables) > 1 else np.zeros(states * states)
    edges = edges.reshape(-1, states, states)
    if added is not None:
        nodes = nodes + added
    if sequences.forbidden is not None:
        edges = np.where(sequences.forbidden.pairs, -np.inf, edges)
    if eps not in (0.0, 1.0):
        nodes = nodes / eps
        edges = edges / eps
    return Chains(nodes, edges, sequences.offsets, n_jobs)


def clamp_labels(labels: Ints, states: int) -> Floats:
    """Potentials that leave only the label of every position, where there is one."""
    out = np.where(labels[:, None] == np.arange(states), 0.0, -np.inf)
    out[labels < 0] = 0.0
    return out


def forbid_ends(sequences: Sequences, added: Floats | None) -> Floats:
    """Forbid the states that must not begin or end a sequence."""
    forbidden = sequences.forbidden
    offsets = sequences.offsets
    assert forbidden is not None
    out = np.zeros((int(offsets[-1]), sequences.states)) if added is None else added.copy()
    out[offsets[:-1]] = np.where(forbidden.first, -np.inf, out[offsets[:-1]])
    out[offsets[1:] - 1] = np.where(forbidden.last, -np.inf, out[offsets[1:] - 1])
    return out


class _Filtered:
    """The forward pass over a run of chains; `soft` may be given and becomes the marginals."""

    def __init__(
        self, nodes: Floats, edges: Floats, offsets: Ints, values: Floats, soft: Floats | None
    ) -> None:
        self.nodes = nodes
        self.edges = edges
        self.offsets = offsets
        self.values = values
        soft, tops = _exponentials(nodes[:, None], soft)
        self.soft = soft.reshape(nodes.shape)
        self.tables, table_tops = _exponentials(edges)
        self.alpha = np.empty_like(nodes)
        self.scales = np.empty(len(nodes))
        both = self.alpha, self.scales
        chain.forward(offsets, self.soft, tops, self.tables, table_tops, *both, values)
        self.logs = np.isnan(values)
        if self.logs.any():
            chain.forward_log(nodes, edges, offsets, *both, self.logs, values)

    def backward(self, weights: Floats, pairs: Floats) -> None:
        """Turn `soft` into weighted marginals and add edge marginals to `pairs`."""
        rest = self.alpha, self.scales, self.values, self.logs, weights, pairs
        chain.backward(self.offsets, self.soft, self.tables, *rest)
        if self.logs.any():
            chain.backward_log(self.nodes, self.edges, self.offsets, self.soft, *rest)

    def draw(self, uniforms: Floats, labels: Ints) -> None:
        """Fill `labels` with one path per row of `uniforms`."""
        tables = self.edges, self.tables
        chain.draw(self.offsets, *tables, self.alpha, self.values, self.logs, uniforms, labels)


def _exponentials(tables: Floats, out: Floats | None = None) -> tuple[Floats, Floats]:
    """exp(table - its maximum), and the maxima."""
    soft = np.empty(tables.shape) if out is None else out.reshape(tables.shape)
    tops = np.empty(len(tables))
    rows = -1, tables.shape[-1]
    chain.shift(tables.reshape(rows), soft.reshape(rows), tops)
    return np.exp(soft, out=soft), tops
