"""From tables to labels: what estimators predict with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Floats, Ints, block_indices
from structlearn._src.common.errors import InferenceWarning, QueryError, warn
from structlearn._src.graph.batch import Graphs, Sequences, tables_to_potentials
from structlearn._src.graph.wiring import HIDDEN, condition, select
from structlearn._src.inference.base import Options, Problem, Result
from structlearn._src.inference.chain_batch import Chains, forbid_ends, tables_to_chains
from structlearn._src.inference.junction import exact_batches
from structlearn._src.inference.loopy import APART
from structlearn._src.inference.names import PREDICTED, Query
from structlearn._src.inference.pick import METHODS, PREDICTING, pick
from structlearn._src.model.model import Tables


def best(
    structure: Sequences | Graphs,
    tables: Tables,
    eps_h: float,
    options: Options,
    method: str = "auto",
) -> Ints:
    r"""Labels of the outputs, hidden variables summed out at temperature `eps_h`.

    .. math:: \hat y = \arg\max_y \epsilon_h \log \sum_h \exp(\theta(y, h) / \epsilon_h)

    Hidden variables get -1. At temperature 0 these are the labels that are best together with them.
    """
    if isinstance(structure, Sequences):
        values, path = _chains(structure, tables, options.n_jobs).best()
        _refuse(np.flatnonzero(values == -np.inf))
        return path
    problem = _problem(structure, tables, 0.0, eps_h)
    labels = _run(problem, Query.MARGINAL_MAP, options, method).labels
    return np.where(problem.hidden, -1, labels)


def hidden_given(
    structure: Sequences | Graphs,
    tables: Tables,
    labels: Ints,
    options: Options,
    method: str = "auto",
) -> Ints:
    """Best hidden variables given the labels of the outputs; outputs keep their labels."""
    if isinstance(structure, Sequences) or not (structure.wiring.roles == HIDDEN).any():
        raise QueryError(
            "nothing is hidden here; before fit, choose hidden='node' or hidden='layer'"
        )
    whole = _problem(structure, tables, 0.0, 0.0)
    fixed = np.where(whole.hidden, -1, labels)
    small = condition(whole.wiring, whole.potentials, fixed)
    problem = Problem(small.wiring, small.potentials, 0.0, 0.0)
    found = _run(problem, Query.MAP, options, method).labels
    out = labels.copy()
    out[small.variables] = found
    return out


def marginals(
    structure: Sequences | Graphs, tables: Tables, options: Options, method: str = "auto"
) -> Floats:
    """Probabilities of the states of every variable, at temperature 1: (variables, most states)."""
    if isinstance(structure, Sequences):
        values, rows, _ = _chains(structure, tables, options.n_jobs).marginals()
        _refuse(np.flatnonzero(values == -np.inf))
        return rows
    problem = _problem(structure, tables, 1.0, 1.0)
    beliefs = _run(problem, Query.MARGINALS, options, method).beliefs
    cards = problem.wiring.cards
    out = np.zeros((len(cards), int(cards.max(initial=1))))
    out[np.arange(out.shape[1]) < cards[:, None]] = beliefs
    return out


def k_best(
    structure: Sequences | Graphs, tables: Tables, k: int, options: Options
) -> tuple[Floats, Ints]:
    """Scores (examples, k) and labels (k, variables) of the best labellings of sequences."""
    if not isinstance(structure, Sequences):
        raise QueryError(
            "the k best labellings are found for sequences without hidden variables only; "
            "use predict, or predict_marginals to see alternatives"
        )
    scores, labels = _chains(structure, tables, options.n_jobs).k_best(k)
    _refuse(np.flatnonzero(scores[:, 0] == -np.inf))
    return scores, labels


def check_possible(sequences: Sequences) -> None:
    """Refuse sequences whose labellings are all forbidden."""
    _refuse(impossible(sequences, None))


def impossible(sequences: Sequences, added: Floats | None) -> Ints:
    """Return which sequences have no labelling; `added` is -inf for what else is ruled out."""
    states = sequences.states
    zeros = np.zeros((1, states)), np.zeros((1, states * states))
    chains = tables_to_chains(sequences, zeros, forbid_ends(sequences, added), 1.0, None)
    return np.flatnonzero(chains.best()[0] == -np.inf)


def _refuse(impossible: Ints) -> None:
    if len(impossible):
        raise QueryError(
            f"example {impossible[0]} has no labelling that `forbidden` allows; loosen the rule, "
            f"or leave the example out"
        )


def _chains(sequences: Sequences, tables: Tables, n_jobs: int | None) -> Chains:
    added = None if sequences.forbidden is None else forbid_ends(sequences, None)
    return tables_to_chains(sequences, tables, added, 1.0, n_jobs)


def _problem(graphs: Graphs, tables: Tables, eps_y: float, eps_h: float) -> Problem:
    potentials = tables_to_potentials(graphs, tables)
    if graphs.forbidden_potentials is not None:
        potentials += graphs.forbidden_potentials
    return Problem(graphs.wiring, potentials, eps_y, eps_h)


def _run(problem: Problem, query: Query, options: Options, method: str) -> Result:
    """Answer for every graph as if it were alone, whatever the others are, and without chance."""
    if query == Query.MARGINAL_MAP and (problem.eps_hidden == 0 or not problem.hidden.any()):
        query = Query.MAP
    wiring = problem.wiring
    if method == "exact":
        return pick(problem, query, "junction_tree", options).run(problem, query, options)
    if problem.uniform and wiring.forests().all():
        return pick(problem, query, "auto", options).run(problem, query, options)
    out = Result(np.zeros(wiring.n_graphs), exact=False)
    out.labels = np.full(wiring.n_variables, -1, np.int64)
    out.beliefs = np.zeros(int(wiring.belief_offsets[-1]))
    out.converged = np.ones(wiring.n_graphs, np.bool_)
    batches = exact_batches(problem, options, PREDICTED) if method == "auto" else []
    for batch in batches:
        _answer(problem, query, options, "junction_tree", batch, out)
    rest = np.setdiff1d(np.arange(wiring.n_graphs), np.concatenate([*batches, np.empty(0)]))
    chosen = PREDICTING[method][query]

    def work(first: int, last: int) -> None:
        same = replace(options, rng=np.random.default_rng(0), n_jobs=1)
        _answer(problem, query, same, chosen, rest[first:last], out)

    threads.run(work, [(i, i + 1) for i in range(len(rest))], options.n_jobs)
    _tell(out.converged)
    return out


def _answer(
    problem: Problem, query: Query, options: Options, method: str, which: Ints, out: Result
) -> None:
    """Write the labels, or the beliefs, of some of the graphs, and whether they can be trusted."""
    wiring = problem.wiring
    part = problem
    if len(which) < wiring.n_graphs:
        tables = problem.potentials[block_indices(wiring.graph_tables, which)]
        part = replace(problem, wiring=select(wiring, which), potentials=tables)
    inferer = METHODS[method]
    if len(which) > 1 and inferer.refuses(part, query, options):
        for one in which:  # no order suits all of them
            _answer(problem, query, options, method, np.array([one]), out)
        return
    found = inferer.run(part, query, options)
    if query == Query.MARGINALS:
        borders = wiring.belief_offsets[wiring.graph_variables]
        out.beliefs[block_indices(borders, which)] = found.beliefs
    else:
        out.labels[block_indices(wiring.graph_variables, which)] = found.labels
    assert out.converged is not None
    out.converged[which] = found.converged
    if query == Query.MARGINALS and found.apart is not None:
        out.converged[which] &= found.apart <= APART


def _tell(trusted: Bools) -> None:
    if not trusted.all():
        warn(
            f"inference for prediction is unreliable in {(~trusted).sum()} of {len(trusted)} "
            f"examples: messages do not converge, or have several fixed points; "
            f"inference='trw' is more stable, 'exact' is right if it fits into memory",
            InferenceWarning,
        )
