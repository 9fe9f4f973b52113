"""Entropies of graphs and their gradients: exactly by elimination, or those of messages."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Floats, block_indices
from structlearn._src.inference.base import Options, Problem, level
from structlearn._src.inference.decode import part_of, predicted_parts, tell
from structlearn._src.inference.junction import EliminationTree
from structlearn._src.inference.loopy import APART
from structlearn._src.inference.names import Query
from structlearn._src.inference.pick import METHODS, PREDICTING, pick


class Entropies(NamedTuple):
    r"""Entropies :math:`H = \log Z - E[\theta]` of graphs at temperature 1, in nats."""

    values: Floats
    #: Gradient by the potentials, the negative covariances of the score with all entries; empty
    #: if not asked for, and 0 where messages were passed.
    slopes: Floats
    exact: Bools  #: of which graphs; of others it is the value of messages less the expectation


def entropies(problem: Problem, options: Options, method: str, slopes: bool) -> Entropies:
    """Return the entropies of all graphs, each as if it were alone.

    By messages that is the Bethe entropy of their beliefs or, with "trw", the tree-reweighted one,
    which no distribution with these beliefs exceeds.
    """
    wiring = problem.wiring
    # No entropy changes, but it is a difference of numbers as large as the potentials.
    problem = problem.at(level(wiring, problem.potentials)[0])
    values = np.empty(wiring.n_graphs)
    gradient = np.zeros(len(problem.potentials) if slopes else 0)
    forests = wiring.forests(options.n_jobs)
    if method == "exact" or forests.all():
        pick(problem, Query.PARTITION, "junction_tree", options)  # which says why if it cannot
        batches = [np.arange(wiring.n_graphs)]
        rest = np.empty(0, np.int64)
    else:
        batches, rest = predicted_parts(problem, options, method)
        if forests[rest].any():
            batches.append(rest[forests[rest]])
            rest = rest[~forests[rest]]
    for which in batches:
        found, moved = _exactly(part_of(problem, which), options, slopes)
        values[which] = found
        if slopes:
            gradient[block_indices(wiring.graph_tables, which)] = moved
    trusted = np.ones(wiring.n_graphs, np.bool_)

    def work(first: int, last: int) -> None:
        for g in rest[first:last]:
            values[g], trusted[g] = _by_messages(part_of(problem, np.array([g])), options, method)

    threads.run(work, [(i, i + 1) for i in range(len(rest))], options.n_jobs)
    tell(trusted)
    return Entropies(values, gradient, ~np.isin(np.arange(wiring.n_graphs), rest))


def _exactly(problem: Problem, options: Options, slopes: bool) -> tuple[Floats, Floats]:
    tree = EliminationTree.of(problem, options)
    with tree.stores.lend() as store:
        log_partition = tree.forward(problem.potentials, store)
        along = np.zeros(len(store))
        along[: len(problem.potentials)] = _finite(problem.potentials)
        values = log_partition - tree.forward_along(store, along)
        moved = -tree.backward_along(store, along) if slopes else np.empty(0)
    return values, moved


def _by_messages(problem: Problem, options: Options, method: str) -> tuple[float, bool]:
    """Entropy of one graph, and whether it can be trusted."""
    inferer = METHODS[PREDICTING[method][Query.MARGINALS]]
    same = replace(options, rng=np.random.default_rng(0), n_jobs=1, factor_marginals=True)
    found = inferer.run(problem, Query.MARGINALS, same)
    assert found.converged is not None
    trusted = bool(found.converged[0])
    if found.apart is not None:
        trusted &= bool(found.apart[0] <= APART)
    return float(found.value[0] - _finite(problem.potentials) @ found.factor_beliefs), trusted


def _finite(potentials: Floats) -> Floats:
    """Potentials with 0 for -inf: what is impossible has probability 0, and counts for nothing."""
    return np.where(np.isneginf(potentials), 0.0, potentials)
