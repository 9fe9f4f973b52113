"""The front door: ``infer(graph, query)``."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from structlearn._src.common import checks, threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.checks import Seed
from structlearn._src.common.errors import (
    ArgumentError,
    EvidenceError,
    GraphError,
    QueryError,
    TooWideError,
)
from structlearn._src.common.place import placed
from structlearn._src.common.reuse import empty
from structlearn._src.common.vectors import summed
from structlearn._src.common.watch import Progress
from structlearn._src.graph.build import FactorGraph, shared_chain
from structlearn._src.graph.joined import join, joined_potentials, taken_apart
from structlearn._src.graph.wiring import OBSERVED, Conditioned, Wiring, condition
from structlearn._src.inference.answer import Reply, collect
from structlearn._src.inference.base import Answer, Inferer, Options, Problem, level
from structlearn._src.inference.names import Query
from structlearn._src.inference.pick import METHODS, pick
from structlearn._src.kernels.graph.tables import find_large_in_threads
from structlearn._src.kernels.launch import over

Evidence = Mapping[Hashable, int]
_COLDEST = 1e-9  # above 0: potentials of 1 are then known to 1e-7 temperatures
_LEVEL = 1e6  # size of potentials from which on tables are shifted, so that differences count


def infer(
    graph: FactorGraph,
    query: str = "marginals",
    *,
    evidence: Evidence | None = None,
    method: str = "auto",
    temperatures: tuple[float, float] | None = None,
    factor_marginals: bool = False,
    k: int = 1,
    n_samples: int = 1000,
    burn_in: int = 100,
    max_iter: int = 500,
    tol: float = 1e-6,
    damping: float | None = None,
    schedule: str = "sequential",
    restarts: int = 1,
    start: Floats | None = None,
    max_table: int = 2**25,
    time_limit: float | None = None,
    progress: Progress | bool | None = None,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> Answer:
    r"""Answer a query about a factor graph.

    Parameters
    ----------
    graph
        The factor graph, with its potentials.
    query
        ``"partition"`` log Z; ``"marginals"`` the distribution of every variable; ``"map"`` the
        most probable joint assignment of all variables; ``"marginal_map"`` the most probable
        assignment of the outputs with hidden variables summed out; ``"samples"`` draws. The best
        state of each single variable is none of these: take it from ``"marginals"``.
    evidence
        States of variables by name. Variables with role "observed" must be included; others may be.
    method
        ``"auto"`` uses the first applicable of "chain", "tree", "junction_tree", then "bp"
        (partition, marginals), "portfolio" (map, marginal_map) or "gibbs" (samples). Also:
        "enumeration", "trw", "icm".
    temperatures
        Temperatures of outputs and hidden variables for the value

        .. math:: \epsilon_y \log \sum_y \exp \frac{1}{\epsilon_y}
                  \Bigl(\epsilon_h \log \sum_h \exp \frac{\theta(y, h)}{\epsilon_h}\Bigr),

        by default those of the query: (1, 1), (0, 0) for map, (0, 1) for marginal_map.
    factor_marginals
        With "marginals", also the distribution over every factor's scope.
    k
        With "map", the k best assignments, where inference is exact.
    n_samples, burn_in
        For "samples", and for marginals by "gibbs".
    max_iter, tol, damping, schedule, restarts, start
        For message passing: maximum number of sweeps; largest change at convergence; fraction of
        the old message that is kept (by default chosen, and raised if messages do not converge);
        ``"sequential"``, ``"flooding"`` or ``"residual"`` (``"steepest"`` for "icm"); further runs
        from random messages; and messages of an earlier answer for the same graph as a warm start.
    max_table
        Largest number of entries of a table in "junction_tree".
    time_limit
        Seconds after which iterative methods return the best result so far.
    progress
        Called with the fraction done and a few words; True shows a bar on standard error.
    random_state
        Seed or generator.
    n_jobs
        Number of threads; by default all cores.

    Returns
    -------
    Answer
        Value, bounds, whether they are exact, and what the query asks for.

    See Also
    --------
    infer_many : the same for many graphs at once.

    Examples
    --------
    >>> import numpy as np
    >>> from structlearn import chain, infer
    >>> near = np.log([[0.8, 0.2], [0.2, 0.8]])
    >>> graph = chain(np.log([[0.8, 0.2], [0.6, 0.4], [0.1, 0.9]]), near)
    >>> answer = infer(graph, "marginals")
    >>> answer.marginals[1].round(3).tolist()
    [0.528, 0.472]
    >>> dict(infer(graph, "map").assignment)
    {0: 0, 1: 0, 2: 1}
    """
    options = locals()  # all arguments by name: this must stay the first statement
    first = [options.pop("graph")], options.pop("query")
    return infer_many(*first, evidence=[options.pop("evidence")], **options)[0]


@placed
def infer_many(
    graphs: Sequence[FactorGraph],
    query: str = "marginals",
    *,
    evidence: Sequence[Evidence | None] | None = None,
    method: str = "auto",
    temperatures: tuple[float, float] | None = None,
    **options: Any,
) -> Sequence[Answer]:
    """Answer the same query for many graphs, compiled into one and processed in threads.

    Parameters
    ----------
    graphs
        The graphs.
    query
        As in `infer`.
    evidence
        A mapping, or None, for each graph.
    method, temperatures
        As in `infer`. One method is used for all graphs: the first that accepts every one.
    **options : dict
        Further options, as in `infer`. Methods that draw random numbers (``"gibbs"``, ``"icm"``,
        the trees of ``"trw"``) draw for all graphs together, not as they would for each alone.

    Returns
    -------
    sequence of Answer
        One for each graph, made when it is looked at; ``list`` makes a list of them.

    Examples
    --------
    >>> import numpy as np
    >>> from structlearn import chain, infer_many
    >>> chains = [chain(np.zeros((n, 2)), np.eye(2)) for n in (2, 3, 4)]
    >>> [round(a.value, 3) for a in infer_many(chains, "partition")]
    [2.006, 3.32, 4.633]
    """
    if isinstance(graphs, FactorGraph):
        graphs = [graphs]
    if not isinstance(graphs, Iterable):
        raise GraphError(f"a {type(graphs).__name__} was given; need a list of FactorGraph")
    graphs = list(graphs)
    for kind in dict.fromkeys(map(type, graphs)):
        if not issubclass(kind, FactorGraph):
            raise GraphError(f"a {kind.__name__} was given; need a FactorGraph")
    asked = Query(checks.one_of("query", query, tuple(Query)))
    checks.one_of("method", method, ("auto", *METHODS))
    settings = Options.checked(**options)
    if settings.k > 1 and asked != Query.MAP:
        raise QueryError(f"k={settings.k} asks for the k best assignments; that is query='map'")
    eps = _temperatures(asked, temperatures)
    given = () if evidence is None else evidence
    if not isinstance(given, Sequence) or (evidence is not None and len(given) != len(graphs)):
        n = len(graphs)
        raise EvidenceError(f"for {n} graphs give a list of {n} mappings (or None each)")
    with threads.one_blas_thread() if len(graphs) > 1 else nullcontext():  # once for all calls
        return _ask(graphs, given, asked, eps, method, settings) if graphs else []


def _ask(
    graphs: list[FactorGraph],
    evidence: Sequence[Any],
    query: Query,
    eps: tuple[float, float],
    method: str,
    options: Options,
) -> Sequence[Answer]:
    """Compile, condition, pick a method, run it, and take the results apart again."""
    one = len(graphs) == 1
    # Answers stay as they are when the user goes on building a graph.
    kept, tables = taken_apart(graphs)
    wiring = kept.wirings[0] if one else join(kept.wirings, options.n_jobs)
    _check_states(wiring, options.max_table, options.n_jobs)
    if query == Query.SAMPLES:
        checks.fits(f"n_samples={options.n_samples} draws", options.n_samples, wiring.n_variables)
    labels = _fixed(graphs, evidence, wiring)
    free = one and method in ("auto", "chain") and (labels < 0).all()
    shared = shared_chain(graphs[0]) if free else None
    if shared is not None:
        small = condition(wiring, np.empty(0), labels)
        problem = Problem(wiring, small.potentials, *eps, shared)
        inferer: Inferer = METHODS["chain"]
    if shared is None or inferer.refuses(problem, query, options):
        n_jobs = options.n_jobs
        whole = joined_potentials(graphs, tables, wiring.graph_tables, n_jobs)
        small = _levelled(condition(wiring, whole, labels, n_jobs), n_jobs)
        problem = Problem(small.wiring, small.potentials, *eps)
        inferer = pick(problem, query, method, options)
    result = inferer.run(problem, query, options)
    reply = Reply(kept, wiring, labels, small, problem, query, inferer.name, options)
    return collect(reply, result)


def _levelled(small: Conditioned, n_jobs: int | None) -> Conditioned:
    """Move the largest entries of large tables to the constants of the graphs."""
    tables, wiring = small.potentials, small.wiring
    large = np.zeros(1, np.bool_)
    if len(tables):
        ranges = threads.calls_of(wiring.graph_tables, "arrays")
        over(find_large_in_threads, ranges, n_jobs, wiring.graph_tables, tables, _LEVEL, large)
    if not large[0]:
        return small
    shifted, tops = level(wiring, tables)
    constant = small.constant + np.bincount(wiring.factor_graphs, tops, wiring.n_graphs)
    return small._replace(potentials=shifted, constant=constant)


def _check_states(wiring: Wiring, most: int, n_jobs: int | None) -> None:
    """Refuse variables that no factor names and that have more states than a table may have."""
    slots = wiring.slot_offsets

    def alone(part: slice) -> Floats:
        here = wiring.cards[part][slots[1:][part] == slots[:-1][part]]
        return here.sum(keepdims=True, dtype=np.float64)

    states = int(summed(alone, wiring.n_variables, n_jobs, threads.GRAIN["arrays"])[0])
    if states > most:
        raise TooWideError(
            f"variables without any factor have {states} states in all, more than "
            f"max_table={most}; leave them out"
        )


def _fixed(graphs: list[FactorGraph], evidence: Sequence[Any], wiring: Wiring) -> Ints:
    """State of every variable of all graphs in the evidence, -1 if it has none."""
    labels = empty(wiring.n_variables, np.int64)
    labels.fill(-1)
    stated = [(g, given) for g, given in enumerate(evidence) if given is not None]
    for g, given in stated:
        if not isinstance(given, Mapping):
            raise EvidenceError(
                f"evidence is a {type(given).__name__}; need a mapping from names to states"
            )
        if given:
            first, last = wiring.graph_variables[g : g + 2]
            labels[first:last] = graphs[g].labels(given)
    missing = np.flatnonzero(wiring.roles == OBSERVED)
    missing = missing[labels[missing] < 0]
    if len(missing):
        g = int(wiring.variable_graphs[missing[0]])
        name = graphs[g].names[int(missing[0] - wiring.graph_variables[g])]
        raise EvidenceError(
            f"variable {name!r} is observed but has no evidence "
            f"({len(missing)} such in all); give its state, or another role"
        )
    return labels


def _temperatures(query: Query, given: tuple[float, float] | None) -> tuple[float, float]:
    if given is None:
        return query.temperatures
    if not isinstance(given, (tuple, list, np.ndarray)) or len(given) != 2:
        raise ArgumentError(
            f"temperatures={given!r} must be a pair: of the outputs and of the hidden variables"
        )
    eps_output, eps_hidden = given
    eps = (
        checks.number("temperatures[0]", eps_output, low=0.0, high=1e6),
        checks.number("temperatures[1]", eps_hidden, low=0.0, high=1e6),
    )
    if any(0.0 < each < _COLDEST for each in eps):
        raise ArgumentError(
            f"temperatures={eps} are too small for rounding to tell from 0; give 0, or at least "
            f"{_COLDEST:g}"
        )
    if query == Query.MAP and eps != (0.0, 0.0):
        raise QueryError(f"query='map' has temperatures (0, 0), not {eps}; see 'marginal_map'")
    if query == Query.MARGINAL_MAP and eps[0] != 0.0:
        raise QueryError(f"query='marginal_map' has output temperature 0, not {eps[0]}")
    return eps
