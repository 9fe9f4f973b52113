"""Exact answers on graphs that are chains, one or many."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import QueryError
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference import k_best
from structlearn._src.inference.base import BuiltInInferer, Options, Problem, Result, read_exactly
from structlearn._src.inference.beliefs import point_mass
from structlearn._src.inference.chain_batch import Chains
from structlearn._src.inference.names import ASSIGNMENTS, Query
from structlearn._src.kernels.graph import wiring as wire

_PADDING = 8  # padded arrays may be this many times as large as the tables themselves
_SMALL = 2**20  # entries of padded arrays up to which their size does not matter: 8 MB


class Paths(NamedTuple):
    """The paths that make up the graphs of a wiring."""

    order: Ints  #: variable at every position
    position: Ints  #: position of every variable
    offsets: Ints  #: (paths + 1) into positions
    chains: Ints  #: path of every position

    @property
    def straight(self) -> bool:
        """Whether positions and variables are numbered alike."""
        return bool((self.order[1:] > self.order[:-1]).all())


def find_paths(wiring: Wiring) -> Paths | str:
    """Line up the variables of all graphs, or say why they do not form paths."""
    arities = wiring.arities
    if len(arities) and (arities.min() < 1 or arities.max() > 2):
        return f"it needs factors over one or two variables; one has {arities.max()}"
    n = wiring.n_variables
    order = np.empty(n, np.int64)
    borders = np.empty(n + 1, np.int64)
    near = np.full((n, 2), -1, np.int64)
    position = np.full(n, -1, np.int64)
    count, variable = wire.find_paths(
        wiring.scope_offsets, wiring.scopes, near, order, position, borders
    )
    if count == wire.BRANCH:
        return f"it needs paths; variable {variable} is linked to more than two others"
    if count == wire.CYCLE:
        return f"it needs paths; variable {variable} is on a cycle"
    borders = borders[: count + 1].copy()
    chains = np.repeat(np.arange(count, dtype=np.int64), np.diff(borders))
    return Paths(order, position, borders, chains)


class ChainInference(BuiltInInferer):
    """Exact inference on graphs that are sets of paths, at one temperature."""

    name = "chain"
    k_best = True
    one_temperature = True

    def objection(self, problem: Problem, query: Query, options: Options) -> str:
        """Refuse other shapes, and what would take too much memory."""
        paths = find_paths(problem.wiring)
        if isinstance(paths, str):
            return paths
        if _wasteful(problem.wiring, paths):
            return "the numbers of states differ too much for padded arrays"
        if options.k > 1 and query in ASSIGNMENTS:
            return _no_k_best(problem, query, options, paths)
        return ""

    def run(self, problem: Problem, query: Query, options: Options) -> Result:
        """Answer."""
        paths = find_paths(problem.wiring)
        if isinstance(paths, str):
            raise QueryError(f"the chain method cannot be used here: {paths}")
        eps = problem.temperature
        # Outputs are maximised whatever the temperature; with none the rest is a plain sum.
        best = query == Query.MAP or (query == Query.MARGINAL_MAP and not problem.hidden.all())
        if eps == 0 or best:
            return _hard(problem, query, options, paths)
        return _smooth(problem, query, options, paths, eps)


def _no_k_best(problem: Problem, query: Query, options: Options, paths: Paths) -> str:
    counts = np.bincount(_graphs(problem.wiring, paths), minlength=1)
    if counts.max() > 1:
        graph = int(counts.argmax())
        return f"k > 1 needs one path per graph; graph {graph} has {counts[graph]} separate paths"
    return k_best.refusal(problem, query, options)


def _hard(problem: Problem, query: Query, options: Options, paths: Paths) -> Result:
    """Everything at temperature 0: the best labels, and the point mass on them."""
    wiring = problem.wiring
    batch = _load(problem, paths, 1.0, options)
    values, states = batch.best()
    value = _per_graph(wiring, paths, values)
    lost = (value == -np.inf)[wiring.variable_graphs]
    labels = np.where(lost, -1, states[paths.position])
    found = read_exactly(
        problem, query, options, lambda: point_mass(wiring, labels), lambda uniforms: labels
    )
    if options.k > 1 and query in ASSIGNMENTS:
        found["best"] = _k_best(batch, wiring, paths, options.k)
    return _result(value, **found)


def _k_best(batch: Chains, wiring: Wiring, paths: Paths, k: int) -> list[tuple[Floats, Ints]]:
    k = k_best.at_most(wiring, k)
    scores, found = batch.k_best(k)
    best = []
    for r in range(k):
        # A graph without variables has one assignment, the empty one.
        value = np.full(wiring.n_graphs, -np.inf if r else 0.0)
        value[_graphs(wiring, paths)] = scores[:, r]
        if r and (value == -np.inf).all():
            break
        best.append((value, found[r][paths.position]))
    return best


def _smooth(problem: Problem, query: Query, options: Options, paths: Paths, eps: float) -> Result:
    """Everything at a temperature above 0."""
    wiring = problem.wiring
    batch = _load(problem, paths, eps, options)
    if query == Query.MARGINALS:
        return _marginals(batch, wiring, paths, eps, options)
    value = eps * _per_graph(wiring, paths, batch.log_partition())
    if query == Query.PARTITION:
        return _result(value)
    if query == Query.MARGINAL_MAP:
        return _result(value, labels=np.full(wiring.n_variables, -1, np.int64))
    draws = batch.draw(options.n_samples, options.rng)
    if not paths.straight:
        draws = draws[:, paths.position]
    draws[:, (value == -np.inf)[wiring.variable_graphs]] = -1
    return _result(value, draws=draws)


def _marginals(batch: Chains, wiring: Wiring, paths: Paths, eps: float, options: Options) -> Result:
    values, nodes, edges = batch.marginals("each" if options.factor_marginals else "none")
    value = eps * _per_graph(wiring, paths, values)
    lost = value == -np.inf
    nodes[paths.position[lost[wiring.variable_graphs]]] = 0.0
    beliefs = nodes[paths.position][np.arange(nodes.shape[1]) < wiring.cards[:, None]]
    factors = np.empty(wiring.table_offsets[-1] if options.factor_marginals else 0)
    if options.factor_marginals:
        _carry(wiring, paths, nodes, edges, factors, back=True)
        factors[np.repeat(lost, np.diff(wiring.graph_tables))] = 0.0
    return _result(value, beliefs=beliefs, factor_beliefs=factors)


def _load(problem: Problem, paths: Paths, eps: float, options: Options) -> Chains:
    """Tables of a problem, divided by `eps`, in the layout of a batch."""
    wiring = problem.wiring
    K = int(wiring.cards.max(initial=1))
    if problem.shared is not None:
        nodes, table = problem.shared
        return Chains(nodes / eps, table[None] / eps, paths.offsets, options.n_jobs)
    nodes = np.zeros((wiring.n_variables, K))
    edges = np.zeros((wiring.n_variables - len(paths.offsets) + 1, K, K))
    _carry(wiring, paths, nodes, edges, problem.potentials, back=False)
    if wiring.cards.min(initial=K) < K:
        there = np.arange(K) < wiring.cards[paths.order][:, None]
        nodes[~there] = -np.inf
        later = np.flatnonzero(np.diff(paths.chains, prepend=-1) == 0)
        edges[~(there[later - 1, :, None] & there[later, None, :])] = -np.inf
    if eps != 1.0:
        nodes /= eps
        edges /= eps
    return Chains(nodes, edges, paths.offsets, options.n_jobs)


def _carry(
    wiring: Wiring, paths: Paths, nodes: Floats, edges: Floats, tables: Floats, back: bool
) -> None:
    """Add the tables of factors to those of positions and steps, or read them back."""
    flat = nodes.shape[1], nodes.ravel(), edges.ravel()
    wire.carry(wiring, paths.position, paths.chains, *flat, tables, back)


def _wasteful(wiring: Wiring, paths: Paths) -> bool:
    K = int(wiring.cards.max(initial=1))
    padded = wiring.n_variables * K + (wiring.n_variables - len(paths.offsets) + 1) * K * K
    used = int(wiring.belief_offsets[-1] + wiring.table_offsets[-1])
    return padded > max(_SMALL, _PADDING * used)


def _graphs(wiring: Wiring, paths: Paths) -> Ints:
    """Graph of every path."""
    return wiring.variable_graphs[paths.order[paths.offsets[:-1]]]


def _per_graph(wiring: Wiring, paths: Paths, values: Floats) -> Floats:
    totals = np.bincount(_graphs(wiring, paths), values, wiring.n_graphs)
    return np.asarray(totals, np.float64)


def _result(value: Floats, **found: Any) -> Result:
    once = np.ones(len(value), np.int64)
    return Result.exactly(value, "exact on chains", iterations=once, **found)
