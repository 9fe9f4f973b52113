"""Laws: what must not matter does not, and what must be equal is."""

from __future__ import annotations

import copy
import pickle
import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np

import naive
from campaign.base import expect
from campaign.batches import fine_grains
from campaign.fields import make_field
from campaign.models import answers, estimators, same
from campaign.parsers import folder
from structlearn import (
    FactorGraph,
    MulticlassClassifier,
    RuleModel,
    SequenceLabeler,
    infer,
    infer_many,
    load,
    save,
)
from structlearn.errors import InfeasibleError, QueryError
from structlearn.fields import Hinges, solve_map

LAWS = 1
CLOSE = 1e-4  # of probabilities, between fits that end within 1e-9 of one optimum


def check(rng: np.random.Generator) -> None:
    """One law, on random data."""
    laws = (
        graph_names, graph_batches, field_order, rule_names, example_order, label_names, feature_scale,
        duplicates, threads, graph_threads, copies,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for law in laws:
            law(rng)


# ---- graphs ---------------------------------------------------------------------------------


def graph_names(rng: np.random.Generator) -> None:
    """Names and order of variables and factors, and axes of tables, change nothing."""
    graph = naive.random_graph(rng, 5, 3, 3, "loopy", 0.1, 0.3)
    order = rng.permutation(graph.n_variables)
    other = FactorGraph()
    for v in order:
        role = ("output", "hidden")[int(graph.roles[v])]
        other.add_variable(f"v{v}", int(graph.cards[v]), role)
    for f in rng.permutation(graph.n_factors):
        axes = rng.permutation(len(graph.scope(f)))
        scope = graph.scope(f)[axes]
        other.add_factor([f"v{v}" for v in scope], graph.table(f).transpose(axes))
    for query in ("partition", "map", "marginal_map"):
        one, two = infer(graph, query).value, infer(other, query).value
        expect(abs(one - two) <= 1e-9 * (1 + abs(one)), f"{query}: {one} and {two}")
    one, two = infer(graph).marginals, infer(other).marginals
    for v in range(graph.n_variables):
        expect(np.allclose(one[v], two[f"v{v}"], atol=1e-9), "marginals by another name")


def graph_batches(rng: np.random.Generator) -> None:
    """An answer does not depend on the graphs beside it."""
    graphs = [naive.random_graph(rng, 4, 3, 3, "loopy", 0.0, 0.0) for _ in range(4)]
    method = str(rng.choice(["junction_tree", "auto", "enumeration"]))
    together = infer_many(graphs, "marginals", method=method)
    for graph, one in zip(graphs, together, strict=True):
        alone = infer(graph, "marginals", method=method)
        expect(np.allclose(one.marginals.flat, alone.marginals.flat, atol=1e-9), method)


# ---- fields and rules -----------------------------------------------------------------------


def field_order(rng: np.random.Generator) -> None:
    """The order of forms and variables, and the scale of all weights, change the energy alone."""
    field = make_field(rng)
    while not field.mild:
        field = make_field(rng)
    forms, variables = rng.permutation(len(field.A)), rng.permutation(field.A.shape[1])
    scale = float(10.0 ** rng.uniform(-3, 3))
    A = field.A[forms][:, variables]
    rows, columns = np.nonzero(A)
    offsets = np.append(0, np.cumsum(np.bincount(rows, minlength=len(A))))
    other = Hinges(
        offsets, columns, A[rows, columns], field.b[forms], field.kinds[forms], field.powers[forms],
        field.groups[forms], A.shape[1], len(field.weights),
    )  # fmt: skip
    fixed = {int(np.flatnonzero(variables == v)[0]): x for v, x in field.fixed.items()}
    found = []
    for hinges, weights, given in (
        (field.hinges(), field.weights, field.fixed),
        (other, scale * field.weights, fixed),
    ):
        try:
            found.append(solve_map(hinges, weights, fixed=given, n_jobs=1))
        except InfeasibleError:
            found.append(None)
    expect((found[0] is None) == (found[1] is None), "feasible in one order only:", field.told())
    if found[0] is not None:
        one, two = found[0], found[1]
        size = abs(one.energy) + field.each.max(initial=0.0) + 1e-9
        expect(abs(one.energy - two.energy / scale) <= 5e-6 * size, one, two, field.told())


def rule_names(rng: np.random.Generator) -> None:
    """Names of constants and the order of rows change nothing."""
    text = "2: Knows(A, B) & Likes(A) -> Likes(B) ^2\n1: !Likes(A) ^2\n0.5: Likes(A) >= Own(A)"
    n = 5
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j and rng.random() < 0.4]
    own = rng.random(n).round(3).tolist()
    names = rng.permutation(["ann", "bob", "7", "it's", "a b", "08", "x,y", "Ω", "null"])[:n]
    values = []
    for name, shuffled in ((str, False), (lambda i: str(names[i]), True)):
        edges = [(name(i), name(j)) for i, j in pairs]
        owns = [(name(i), value) for i, value in enumerate(own)]
        targets = [(name(i),) for i in range(n)]
        if shuffled:
            for rows in (edges, owns, targets):
                rng.shuffle(rows)
            edges = [tuple(map(str, row)) for row in edges]
            owns = [(str(who), float(value)) for who, value in owns]
            targets = [tuple(map(str, row)) for row in targets]
        model = RuleModel(text, n_jobs=1).observe(Knows=edges, Own=owns).target(Likes=targets)
        found = model.predict(frame="dict")
        by_name = dict(zip(map(str, found["argument1"]), found["value"], strict=True))
        values.append([by_name[name(i)] for i in range(n)])
    expect(np.allclose(values[0], values[1], atol=2e-3), f"{values} for {pairs} {own} {names}")


# ---- learning -------------------------------------------------------------------------------

FINE: dict[str, Any] = {"tol": 1e-10, "max_iter": 3000, "n_jobs": 1, "random_state": 0}


def _sequences(rng: np.random.Generator) -> tuple[list[Any], list[Any]]:
    X = [rng.normal(size=(int(n), 2)) for n in rng.integers(1, 5, 6)]
    Y = [rng.integers(0, 3, len(x)) for x in X]
    Y[0][0], Y[1][0], Y[2][0] = 0, 1, 2
    return X, Y


def _close(one: Any, two: Any, X: Any, what: str, order: Any = None) -> None:
    """Probabilities agree, and labels where no others are as probable."""
    for a, b in zip(one.predict_marginals(X), two.predict_marginals(X), strict=True):
        b = b if order is None else b[:, order]
        expect(np.allclose(a, b, atol=CLOSE), f"{what}: {a.tolist()} and {b.tolist()}")


def example_order(rng: np.random.Generator) -> None:
    """The order of examples does not matter."""
    X, Y = _sequences(rng)
    order = rng.permutation(len(X))
    one = SequenceLabeler(**FINE).fit(X, Y)
    two = SequenceLabeler(**FINE).fit([X[i] for i in order], [Y[i] for i in order])
    _close(one, two, X, "order of examples")


def label_names(rng: np.random.Generator) -> None:
    """What labels are called does not matter."""
    X, Y = _sequences(rng)
    names = rng.permutation(["B", "a", "C"])
    one = SequenceLabeler(**FINE).fit(X, Y)
    two = SequenceLabeler(**FINE).fit(X, [[str(names[y]) for y in row] for row in Y])
    order = [list(two.classes_).index(name) for name in names]
    _close(one, two, X, "names of labels", order)


def feature_scale(rng: np.random.Generator) -> None:
    """Features times s are as C times s squared, where all weights are those of features."""
    X, y = rng.normal(size=(20, 3)), rng.integers(0, 3, 20)
    y[:3] = range(3)
    scale = float(10.0 ** rng.uniform(-2, 2))
    options = FINE | {"fit_intercept": False}
    one = MulticlassClassifier(**options, C=scale**2).fit(X, y).predict_proba(X)
    two = MulticlassClassifier(**options, C=1.0).fit(scale * X, y).predict_proba(scale * X)
    expect(np.allclose(one, two, atol=10 * CLOSE), f"scale {scale}: {np.abs(one - two).max()}")


def duplicates(rng: np.random.Generator) -> None:
    """An example that is there twice counts as one of weight 2."""
    X, Y = _sequences(rng)
    times = rng.integers(1, 4, len(X))
    one = SequenceLabeler(**FINE).fit(X, Y, sample_weight=times.astype(float))
    many = np.repeat(np.arange(len(X)), times)
    two = SequenceLabeler(**FINE).fit([X[i] for i in many], [Y[i] for i in many])
    _close(one, two, X, "duplicates")


def threads(rng: np.random.Generator) -> None:
    """The number of threads changes no bit, also where small data have many ranges."""
    estimator, data = estimators()[int(rng.integers(len(estimators())))]
    found = []
    with fine_grains(rng) if rng.random() < 0.7 else nullcontext():
        for n_jobs in (1, 2, int(rng.integers(3, 8))):
            again = type(estimator)(**{**estimator.get_params(deep=False), "n_jobs": n_jobs})
            found.append(answers(again.fit(*data), data[0]))
    for other in found[1:]:
        expect(same(found[0], other), f"{type(estimator).__name__} depends on threads")


def graph_threads(rng: np.random.Generator) -> None:
    """The number of threads changes no bit of what is inferred about graphs, by any method."""
    kind = str(rng.choice(["tree", "loopy", "chain"]))
    hidden = float(rng.choice([0.0, 0.4]))
    zeros = float(rng.choice([0.0, 0.2]))
    size = int(rng.integers(2, 12))
    graphs = [naive.random_graph(rng, size, 3, 3, kind, zeros, hidden) for _ in range(3)]
    graphs = [graphs[i] for i in rng.integers(3, size=int(rng.integers(1, 8)))]
    query = str(rng.choice(["partition", "marginals", "map", "marginal_map", "samples"]))
    method = str(rng.choice(["auto", "junction_tree", "bp", "trw", "icm", "gibbs", "portfolio"]))
    options = {
        "n_samples": 20,
        "burn_in": 5,
        "max_iter": 30,
        "random_state": int(rng.integers(2**32)),
    }
    options |= {"schedule": str(rng.choice(["sequential", "flooding", "residual"]))}
    if query == "marginals":
        options["factor_marginals"] = bool(rng.random() < 0.5)
    found = []
    with fine_grains(rng):
        for n_jobs in (1, 2, int(rng.integers(3, 8))):
            try:
                answers = infer_many(graphs, query, method=method, n_jobs=n_jobs, **options)
            except QueryError as error:
                found.append([str(error)])
                continue
            found.append([part for answer in answers for part in _parts(answer)])
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            expect(np.array_equal(one, two), f"{query} by {method} {options}: {one} and {two}")


def _parts(answer: Any) -> list[Any]:
    flat = [answer.value, answer.lower, answer.upper, answer.iterations, answer.samples]
    flat += [each and each.flat.tolist() for each in (answer.marginals, answer.factor_marginals)]
    return [*flat, answer.assignment and answer.assignment.array]


def copies(rng: np.random.Generator) -> None:
    """What was saved and loaded, pickled or copied answers the same, bit for bit."""
    estimator, data = estimators()[int(rng.integers(len(estimators())))]
    right = answers(estimator.fit(*data), data[0])
    name = type(estimator).__name__
    with folder() as place:
        save(estimator, place / "model")
        expect(same(answers(load(place / "model"), data[0]), right), f"{name} loaded")
    expect(same(answers(pickle.loads(pickle.dumps(estimator)), data[0]), right), f"{name} pickled")
    expect(same(answers(copy.deepcopy(estimator), data[0]), right), f"{name} copied")
