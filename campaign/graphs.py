"""Random factor graphs: every query by every method, against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np

import naive
from campaign.base import WrongError, expect
from structlearn import infer, infer_many
from structlearn.errors import ImpossibleEvidenceError, PotentialError, QueryError

GRAPHS = 25
EXACT = ("enumeration", "junction_tree", "tree", "chain", "auto")
OTHERS = ("bp", "trw", "icm", "gibbs", "portfolio")
TEMPERATURES = ((1.0, 1.0), (0.0, 0.0), (0.0, 1.0), (0.3, 0.7), (0.5, 0.5), (1.0, 0.0), (2.0, 0.1))
SCALES = (1e-9, 1e-3, 1.0, 1.0, 1.0, 1.0, 30.0, 1e3, 1e6, 1e9)
LOUDEST = 1e10  # beyond, sums of scores have lost what exponentials need
ROUNDING = 1e-12  # error of a sum of scores, relative to the largest


class Case:
    """One graph, its evidence, and the right answers from its joint table."""

    def __init__(self, graph, evidence):
        self.graph = graph
        self.evidence = evidence
        self.table = naive.observed(naive.joint(graph), evidence or {})
        finite = np.abs(graph.potentials[np.isfinite(graph.potentials)])
        self.size = 1.0 + float(finite.max(initial=0.0)) * max(graph.n_factors, 1)
        self.possible = bool(self.table.max() > -np.inf)

    def right(self, eps):
        """The value at two temperatures, and the distribution."""
        return naive.value_and_distribution(self.graph, *eps, self.table)

    def told(self):
        """What is needed to build the graph again."""
        graph = self.graph
        parts = [(graph.scope(f).tolist(), graph.table(f).tolist()) for f in range(graph.n_factors)]
        return f"cards {graph.cards.tolist()} roles {graph.roles.tolist()} factors {parts} evidence {self.evidence}"


def make_graph(rng, kind):
    """A graph of mixed sizes, scales, roles and hard constraints; sometimes full of ties."""
    graph = naive.random_graph(
        rng,
        n_variables=int(rng.integers(1, 7)),
        min_card=1,
        max_card=int(rng.integers(2, 5)) if kind == "chain" else 3,
        max_arity=int(rng.integers(2, 5)),
        kind=kind,
        zeros=float(rng.choice([0.0, 0.0, 0.3, 0.6])),
        hidden=float(rng.choice([0.0, 0.4, 0.7, 1.0])),
    )
    graph = naive.tied_down(rng, graph) if rng.random() < 0.7 else graph
    values = np.array(graph.potentials)
    if rng.random() < 0.2:
        values = np.round(values)
    if rng.random() < 0.2:  # one factor shouts
        values[: len(values) // 3] *= rng.choice(SCALES)
    values = values * rng.choice(SCALES)
    return graph.with_potentials(np.where(values < -LOUDEST, -np.inf, np.minimum(values, LOUDEST)))


def make_evidence(rng, graph):
    """States of some variables, which may be impossible; None half of the time."""
    if rng.random() < 0.5:
        return None
    chosen = np.flatnonzero(rng.random(graph.n_variables) < 0.4)
    return {int(v): int(rng.integers(graph.cards[v])) for v in chosen}


def check(rng: np.random.Generator) -> None:
    """Ask some questions of some graphs by all methods."""
    kind = str(rng.choice(["tree", "forest", "loopy", "loopy", "chain"]))
    graphs = [make_graph(rng, kind) for _ in range(GRAPHS)]
    cases = [Case(graph, make_evidence(rng, graph)) for graph in graphs]
    for case in cases:
        if not case.possible:
            refuse_impossible(case)
    cases = [case for case in cases if case.possible]
    eps = TEMPERATURES[int(rng.integers(len(TEMPERATURES)))]
    asked = [("marginals", eps), ("partition", eps), ("map", (0.0, 0.0)), ("marginal_map", (0.0, 1.0))]  # fmt: skip
    seed = int(rng.integers(2**32))
    for query, eps in asked:
        for method in rng.choice(EXACT, 2, replace=False):
            ask(cases, query, eps, str(method), seed)
        ask(cases, query, eps, str(rng.choice(OTHERS)), seed)
    check_k_best(cases, int(rng.integers(2, 9)))


def refuse_impossible(case):
    """Evidence against the hard constraints is an error, by whatever exact method."""
    for query in ("partition", "map", "marginal_map", "marginals"):
        try:
            infer(case.graph, query, evidence=case.evidence)
        except ImpossibleEvidenceError:
            continue
        raise WrongError(f"{query} answered for impossible evidence: {case.told()}")


def ask(cases, query, eps, method, seed):
    """Put a question to all graphs that the method takes, some at once and some alone."""
    options = {"temperatures": eps, "method": method, "random_state": seed, "n_jobs": 1}
    options |= {"n_samples": 20, "burn_in": 5, "max_iter": 60}
    if query == "marginals":
        options["factor_marginals"] = True
    # Graphs of outputs alone and of hidden variables alone have one temperature each, but
    # together they have two.
    groups = [[c for c in cases if (c.graph.roles == 1).all() == hidden] for hidden in (0, 1)]
    for group in filter(None, groups):
        given = {"evidence": [c.evidence for c in group], **options}
        try:
            answers = infer_many([c.graph for c in group], query, **given)
        except QueryError:
            answers = [alone(case, query, options) for case in group]
        for case, answer in zip(group, answers, strict=True):
            if answer is not None:
                judge(case, answer, query, eps)


def alone(case, query, options):
    """The answer for one graph, None where the method refuses it in words."""
    try:
        return infer(case.graph, query, evidence=case.evidence, **options)
    except QueryError as reason:
        expect(options["method"] not in ("enumeration", "junction_tree", "auto"), reason)
        return None
    except PotentialError:
        return None


class About:
    """What an answer is about, put into words where something is wrong."""

    def __init__(self, case, answer, eps, value):
        self.told = lambda: f"{answer!r} at {eps}, truly {value!r}: {case.told()}"

    def __str__(self):
        return self.told()


def judge(case, answer, query, eps):
    """See that an answer keeps what it promises."""
    close = ROUNDING * case.size * 100.0 + 1e-8
    value, distribution = case.right(eps)
    about = About(case, answer, eps, value)
    expect(answer.lower <= value + close, "lower bound crossed:", about)
    expect(answer.upper >= value - close, "upper bound crossed:", about)
    expect(not np.isnan(answer.value), "not a number:", about)
    if answer.exact:
        expect(abs(answer.value - value) <= close, "wrong value:", about)
        expect(answer.lower == answer.upper or answer.method in OTHERS, "bounds apart:", about)
    if query == "marginals":
        judge_marginals(case, answer, distribution, eps, about)
    elif query == "map":
        judge_map(case, answer, value, close, about)
    elif query == "marginal_map":
        judge_marginal_map(case, answer, value, close, about)


def judge_marginals(case, answer, distribution, eps, about):
    """Marginals are distributions, and right where they are exact."""
    graph = case.graph
    coldest = min([e for e in eps if e > 0], default=1.0)
    close = 1e-7 + 1e-13 * case.size / coldest
    offsets = graph.wiring.belief_offsets
    sums = np.add.reduceat(answer.marginals.flat, offsets[:-1]) if graph.n_variables else []
    expect(np.allclose(sums, 1.0, atol=1e-6), "marginals do not sum to 1:", about)
    if not answer.exact or unstable(case, eps):
        return
    for v in range(graph.n_variables):
        right = naive.marginal(distribution, [v])
        expect(
            np.abs(answer.marginals[graph.names[v]] - right).max() <= close, "marginal of", v, about
        )
    for f in range(graph.n_factors):
        right = naive.marginal(distribution, graph.scope(f).tolist())
        expect(np.abs(answer.factor_marginals[f] - right).max() <= close, "marginal over", f, about)


def unstable(case, eps):
    """Whether maximisers tie, so that any of them may carry the mass."""
    return 0.0 in eps or 1e-13 * case.size / min(eps) > 1e-3


def judge_map(case, answer, value, close, about):
    """The value is the score of the assignment, and the best one if it is called exact."""
    found = tuple(answer.assignment.values())
    expect(len(found) == case.graph.n_variables, "not all assigned:", about)
    score = case.table[found]
    if score > -np.inf or answer.value > -np.inf:
        expect(abs(score - answer.value) <= close, "value is not the score:", score, about)
    if answer.exact:
        expect(score >= value - close, "not the best:", score, about)


def judge_marginal_map(case, answer, value, close, about):
    """The outputs alone are assigned, and the best way if it is called exact."""
    graph = case.graph
    outputs = [graph.names[v] for v in range(graph.n_variables) if graph.roles[v] != 1]
    expect(list(answer.assignment) == outputs, "others assigned:", about)
    if answer.exact:
        values = naive.marginal_map_values(graph, table=case.table)
        expect(values[tuple(answer.assignment.values())] >= value - close, "not the best:", about)


def check_k_best(cases, k):
    """The k best have the k best scores, and are all different, by either exact method."""
    for case, method in product(cases, ("chain", "junction_tree")):
        answer = alone(case, "map", {"method": method, "k": k})
        if answer is None:
            continue
        right = np.sort(case.table[np.isfinite(case.table)], axis=None)[::-1][:k]
        found = [value for value, _ in answer.k_best]
        paths = {tuple(labels.values()) for _, labels in answer.k_best}
        close = ROUNDING * case.size * 100.0 + 1e-8
        about = f"{found} against {right.tolist()}: {case.told()}"
        expect(len(paths) == len(found) == len(right), "k best are not so many:", about)
        expect(np.allclose(found, right, rtol=0, atol=close), "k best:", about)
        for value, labels in answer.k_best:
            expect(abs(case.table[tuple(labels.values())] - value) <= close, "k best:", about)
