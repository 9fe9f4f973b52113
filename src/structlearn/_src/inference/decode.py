"""From tables to labels: what estimators predict with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from structlearn._src.common import checks, threads
from structlearn._src.common.arrays import Bools, Floats, Ints, block_indices
from structlearn._src.common.errors import InferenceWarning, QueryError, TooWideError, warn
from structlearn._src.graph.batch import Graphs, Sequences, tables_to_potentials
from structlearn._src.graph.joined import select
from structlearn._src.graph.wiring import HIDDEN, condition
from structlearn._src.inference.base import Inferer, Options, Problem, Result
from structlearn._src.inference.chain_batch import Chains, forbid_ends, tables_to_chains
from structlearn._src.inference.junction import exact_batches, order_for
from structlearn._src.inference.k_best import refusal, too_many
from structlearn._src.inference.loopy import APART
from structlearn._src.inference.names import EXACT, PREDICTED, Query
from structlearn._src.inference.pick import AUTO, METHODS, PREDICTING, pick
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
    structure: Sequences | Graphs, tables: Tables, k: int, options: Options, method: str = "auto"
) -> tuple[Floats, Ints]:
    """Scores (examples, k) and labels (k, variables) of the best labellings, exactly or not at all.

    Where there are fewer, scores are -inf and labels -1.
    """
    if isinstance(structure, Sequences):
        scores, labels = _chains(structure, tables, options.n_jobs).k_best(k)
        _refuse(np.flatnonzero(scores[:, 0] == -np.inf))
        return scores, labels
    problem = _problem(structure, tables, 0.0, 0.0)
    if problem.hidden.any():
        raise QueryError(
            "the k best labellings are found without hidden variables only; use predict, or "
            "predict_marginals to see alternatives"
        )
    wiring = problem.wiring
    options = replace(options, k=k)
    room = k * (wiring.n_graphs + wiring.n_variables)  # also where there are fewer
    if reason := refusal(problem, Query.MAP, options) or too_many(k, room, options):
        raise TooWideError(reason)
    scores = np.full((wiring.n_graphs, k), -np.inf)
    labels = np.full((k, wiring.n_variables), -1, np.int64)
    for which, found in _exactly(problem, Query.MAP, options, method):
        variables = block_indices(wiring.graph_variables, which)
        best = [(found.value, found.labels)] if found.best is None else found.best
        for r, (values, states) in enumerate(best):
            scores[which, r] = values
            labels[r, variables] = states
    return scores, labels


def draws(
    graphs: Graphs, tables: Tables, n: int, options: Options, method: str = "auto"
) -> tuple[Floats, Ints]:
    """Log partition functions, and independent exact draws (n, variables) at temperature 1."""
    problem = _problem(graphs, tables, 1.0, 1.0)
    wiring = problem.wiring
    values = np.empty(wiring.n_graphs)
    checks.fits(f"{n} draws", n, wiring.n_variables)
    labels = np.empty((n, wiring.n_variables), np.int64)
    for which, found in _exactly(problem, Query.SAMPLES, replace(options, n_samples=n), method):
        values[which] = found.value
        labels[:, block_indices(wiring.graph_variables, which)] = found.draws
    return values, labels


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
    batches, rest = predicted_parts(problem, options, method)
    for batch in batches:
        _answer(problem, query, options, "junction_tree", batch, out)
    chosen = PREDICTING[method][query]

    def work(first: int, last: int) -> None:
        same = replace(options, rng=np.random.default_rng(0), n_jobs=1)
        _answer(problem, query, same, chosen, rest[first:last], out)

    threads.run(work, [(i, i + 1) for i in range(len(rest))], options.n_jobs)
    tell(out.converged)
    return out


def predicted_parts(problem: Problem, options: Options, method: str) -> tuple[list[Ints], Ints]:
    """Return batches of graphs for which exact inference is used, and all others."""
    batches = exact_batches(problem, options, PREDICTED) if method == "auto" else []
    known = np.concatenate([*batches, np.empty(0, np.int64)])
    return batches, np.setdiff1d(np.arange(problem.wiring.n_graphs), known)


def part_of(problem: Problem, which: Ints) -> Problem:
    """Return the problem of some of the graphs."""
    wiring = problem.wiring
    if len(which) == wiring.n_graphs:
        return problem
    tables = problem.potentials[block_indices(wiring.graph_tables, which)]
    return replace(problem, wiring=select(wiring, which), potentials=tables)


def _exactly(
    problem: Problem, query: Query, options: Options, method: str
) -> Iterator[tuple[Ints, Result]]:
    """Answer for all graphs, or for one after the other where memory does not hold all at once."""
    wiring = problem.wiring
    loops = np.flatnonzero(~wiring.forests())
    if method not in ("auto", "exact") and len(loops):
        raise QueryError(
            f"graph {loops[0]} has a cycle, where inference={method!r} passes messages: they "
            f"give no exact draws and no k best labellings; use inference='auto' or 'exact'"
        )
    chosen = _exact_method(problem, query, options)
    if chosen is not None:
        yield np.arange(wiring.n_graphs), chosen.run(problem, query, options)
        return
    for g in range(wiring.n_graphs):
        which = np.array([g])
        part = part_of(problem, which)
        chosen = _exact_method(part, query, options)
        if chosen is None:
            order = order_for(part, options.max_table, options.n_jobs)
            raise TooWideError(
                f"draws and k best labellings are exact or refused, and elimination of graph {g} "
                f"needs a table over {order.width + 1} variables or more with {order.largest:.3g} "
                f"entries, {options.max_table:.3g} being the limit; make the graph narrower, or "
                f"take fewer labels"
            )
        yield which, chosen.run(part, query, options)


def _exact_method(problem: Problem, query: Query, options: Options) -> Inferer | None:
    """Return the first exact method that does not refuse."""
    methods = (METHODS[name] for name in AUTO[query] if name in EXACT)
    return next((m for m in methods if not m.refuses(problem, query, options)), None)


def _answer(
    problem: Problem, query: Query, options: Options, method: str, which: Ints, out: Result
) -> None:
    """Write the labels, or the beliefs, of some of the graphs, and whether they can be trusted."""
    wiring = problem.wiring
    part = part_of(problem, which)
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


def tell(trusted: Bools) -> None:
    """Warn of graphs whose messages cannot be trusted."""
    if not trusted.all():
        warn(
            f"inference for prediction is unreliable in {(~trusted).sum()} of {len(trusted)} "
            f"examples: messages do not converge, or have several fixed points; "
            f"inference='trw' is more stable, 'exact' is right if it fits into memory",
            InferenceWarning,
        )
