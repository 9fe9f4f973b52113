"""The algorithms of the lecture on conditional graphical models, with and without cycles.

The lecture has no experiments. It says of each algorithm where it is right; here that is counted.

References
----------
L. Naumann, D. Stein and B. Andres, "Machine learning I: conditional graphical models", 2025.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.arrays import Floats, Ints
from papers.base import Claim, Estimate, Experiment, Report, Settings, Table, Units
from papers.documents import LECTURE
from papers.pictures import new_figure, styled
from structlearn import FactorGraph, GraphLabeler, infer
from structlearn.solvers import Descent, Lbfgs

KINDS = ("acyclic", "cyclic")
STRENGTHS = (0.5, 1.0, 2.0, 4.0)
_ROWS, _COLUMNS = 3, 4
_EXACT = 1e-8  # errors below this are rounding
_EPS = 0.05  # norm of the gradient at which steepest descent ends


def edges_of(kind: str, rng: np.random.Generator) -> Ints:
    """Edges of a random tree, or of a grid, over twelve variables."""
    n = _ROWS * _COLUMNS
    if kind == "acyclic":
        return np.array([(rng.integers(i), i) for i in range(1, n)])
    at = np.arange(n).reshape(_ROWS, _COLUMNS)
    pairs = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
    return np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])


# ---- inference ---------------------------------------------------------------------------


def draw(kind: str, strength: float, rng: np.random.Generator) -> FactorGraph:
    """Binary variables with unary factors, pairs, and in trees one factor over three variables."""
    edges = edges_of(kind, rng)
    graph = FactorGraph()
    graph.add_variables(_ROWS * _COLUMNS, 2)
    graph.add_factors(np.arange(_ROWS * _COLUMNS)[:, None], rng.normal(size=(12, 2)))
    if kind == "acyclic":
        # The last two edges become one factor, together with what they share or a new variable.
        graph.add_variables(1, 2)
        scope = [int(edges[-1, 0]), int(edges[-1, 1]), _ROWS * _COLUMNS]
        graph.add_factor(scope, rng.normal(0.0, strength, (2, 2, 2)))
        edges = edges[:-1]
    graph.add_factors(edges, rng.normal(0.0, strength, (len(edges), 2, 2)))
    return graph


def inference_units(settings: Settings) -> list[dict[str, Any]]:
    """One graph each."""
    strengths = (0.5, 4.0) if settings.quick else STRENGTHS
    return [
        {"kind": kind, "strength": strength, "seed": [settings.seed, i]}
        for kind in KINDS
        for strength in strengths
        for i in range(settings.count(100, 5))
    ]


def inference(kind: str, strength: float, seed: list[int]) -> dict[str, Any]:
    """Errors of message passing and of ICM against a sum over all labellings."""
    graph = draw(kind, strength, np.random.default_rng(seed))
    shared: dict[str, Any] = {"n_jobs": 1, "random_state": 0}
    truth = infer(graph, "marginals", method="enumeration", factor_marginals=True, **shared)
    best = infer(graph, "map", method="enumeration", **shared)
    passing = {"method": "tree"} if kind == "acyclic" else _SYNCHRONOUS
    found = infer(graph, "marginals", factor_marginals=True, **passing, **shared)
    least = infer(graph, "map", **passing, **shared)
    greedy = infer(graph, "map", method="icm", schedule="steepest", restarts=0, **shared)
    return {
        "log Z": abs(found.value - truth.value),
        "factor marginal": _farthest(truth.factor_marginals, found.factor_marginals),
        "rests": bool(found.converged),
        "min-sum": best.value - least.value,
        "icm": best.value - greedy.value,
    }


#: Loopy belief propagation as the lecture has it: constant messages, all updated at once.
_SYNCHRONOUS: dict[str, Any] = {
    "method": "bp", "schedule": "flooding", "damping": 0.0, "restarts": 0,
}  # fmt: skip


def _farthest(one: Any, other: Any) -> float:
    return max(float(np.abs(one[f] - other[f]).max()) for f in one)


def inference_report(done: Units) -> Report:
    """How often each algorithm is right, and by how much it errs."""
    rows = []
    for kind in KINDS:
        for strength in dict.fromkeys(unit.given["strength"] for unit in done):
            cell = [
                u.found for u in done if (u.given["kind"], u.given["strength"]) == (kind, strength)
            ]
            rows.append({"graph": kind, "strength": strength, **_row(cell)})
    trees = [unit.found for unit in done if unit.given["kind"] == "acyclic"]
    loops = [unit.found for unit in done if unit.given["kind"] == "cyclic"]
    worst = max(max(f["log Z"], f["factor marginal"], f["min-sum"]) for f in trees)
    wrong = sum(f["factor marginal"] > _EXACT for f in loops)
    astray = sum(f["icm"] > _EXACT for f in trees + loops)
    claims = (
        Claim.that(
            "message passing is exact on acyclic factor graphs",
            worst < _EXACT,
            f"worst {worst:.1g}",
        ),
        Claim.that(
            "on cyclic ones loopy belief propagation is no more than a heuristic",
            wrong > 0,
            f"marginals are wrong in {wrong} of {len(loops)} graphs",
        ),
        Claim.that(
            "iterated conditional modes ends in local optima",
            astray > 0,
            f"not the best labelling in {astray} of {len(trees + loops)} graphs",
        ),
    )
    return Report((Table.of("Against a sum over all labellings", rows),), claims)


def _row(cell: list[Any]) -> dict[str, Any]:
    best = [100.0 * (f["min-sum"] < _EXACT) for f in cell]
    greedy = [100.0 * (f["icm"] < _EXACT) for f in cell]
    return {
        "graphs": len(cell),
        "error of log Z": Estimate.of([f["log Z"] for f in cell]),
        "worst factor marginal": Estimate.of([f["factor marginal"] for f in cell]),
        "messages rest (%)": Estimate.of([100.0 * f["rests"] for f in cell]),
        "min-sum optimal (%)": Estimate.of(best),
        "ICM optimal (%)": Estimate.of(greedy),
    }


# ---- learning ----------------------------------------------------------------------------


def learning_units(settings: Settings) -> list[dict[str, Any]]:
    """One set of graphs each."""
    n = settings.count(20, 2)
    return [
        {"kind": kind, "seed": [settings.seed, i], "graphs": 8 if settings.quick else 40}
        for kind in KINDS
        for i in range(n)
    ]


def learning(kind: str, seed: list[int], graphs: int) -> dict[str, Any]:
    """Steepest descent with exact line search from 0, against the optimum."""
    rng = np.random.default_rng(seed)
    X, Y = _examples(kind, graphs, rng)
    inference = "exact" if kind == "acyclic" else "bp"
    shared: dict[str, Any] = {
        "C": np.inf, "init": "zeros", "edges": "table", "tol": None, "max_iter": 5000, "n_jobs": 1,
    }  # fmt: skip
    search = Descent(search="exact")
    descent = GraphLabeler(solver=search, gradient_tol=_EPS, inference=inference, **shared)
    optimum = GraphLabeler(solver=Lbfgs(), gradient_tol=1e-6, inference="exact", **shared)
    descent.fit(X, Y)
    optimum.fit(X, Y)
    true = optimum.objective(X, Y)
    new, known = _examples(kind, graphs, rng)
    return {
        "iterations": descent.n_iter_,
        "reached": bool(descent.converged_),
        "gap": true.value(descent.weights_) - optimum.value_,
        "claimed": descent.value_ - optimum.value_,
        "accuracy": 100.0 * descent.score(new, known),
        "optimum": 100.0 * optimum.score(new, known),
    }


def _examples(kind: str, n: int, rng: np.random.Generator) -> tuple[list[Any], list[Any]]:
    """Graphs whose neighbours tend to agree, with noisy features of every node."""
    X, Y = [], []
    for _ in range(n):
        edges = edges_of(kind, rng)
        graph = FactorGraph()
        graph.add_variables(_ROWS * _COLUMNS, 2)
        graph.add_factors(edges, np.tile(0.8 * np.eye(2), (len(edges), 1, 1)))
        drawn = infer(graph, "samples", method="junction_tree", n_samples=1, random_state=rng)
        labels = _labels(drawn.samples)
        X.append((labels[:, None] - 0.5 + rng.normal(0.0, 1.0, (len(labels), 1)), edges))
        Y.append(labels)
    return X, Y


def _labels(samples: Floats | Ints | None) -> Ints:
    assert samples is not None
    return np.asarray(samples)[0].astype(np.int64)


def learning_report(done: Units) -> Report:
    """How far steepest descent gets."""
    rows = []
    for kind in KINDS:
        cell = [unit.found for unit in done if unit.given["kind"] == kind]
        messages = "message passing" if kind == "acyclic" else "loopy messages"
        row: dict[str, Any] = {"graph": kind, "gradient by": messages}
        row |= {
            name: Estimate.of([float(f[key]) for f in cell])
            for name, key in (
                ("iterations", "iterations"),
                ("loss above optimum", "gap"),
                ("claimed above optimum", "claimed"),
                ("test accuracy (%)", "accuracy"),
                ("of the optimum (%)", "optimum"),
            )
        }
        rows.append(row)
    trees = [unit.found for unit in done if unit.given["kind"] == "acyclic"]
    far = max(f["gap"] for f in trees)
    there = all(f["reached"] for f in trees) and far < 1e-2
    claim = Claim.that(
        "learning on acyclic graphs is solved by steepest descent and message passing",
        there,
        f"at most {far:.1g} above the optimum, gradients below {_EPS:g}",
    )
    return Report((Table.of(f"{len(trees)} sets of graphs of each kind", rows),), (claim,))


def _draw(done: Units) -> Any:
    table = inference_report(done).tables[0]
    axes = new_figure().subplots()
    shown = ("messages rest (%)", "min-sum optimal (%)", "ICM optimal (%)")
    loops = [i for i, kind in enumerate(table.column("graph")) if kind == "cyclic"]
    curves = {name: [table.column(name)[i].mean for i in loops] for name in shown}
    for name, curve, style in styled(curves):
        axes.plot([table.column("strength")[i] for i in loops], curve, label=name, **style)
    axes.set(xlabel="strength of the factors of cyclic graphs", ylabel="share of graphs (%)")
    axes.legend(frameon=False)
    return axes.figure


EXPERIMENTS = (
    Experiment(
        "message-passing",
        LECTURE,
        "equations 12-15 and 19-22, ICM",
        "Where are message passing and greedy flips right?",
        ("sum-product", "loopy belief propagation", "min-sum", "ICM by the best flip"),
        inference_units,
        inference,
        inference_report,
        {"cyclic": _draw},
        ("Random trees with one factor over three variables, and grids of 3 by 4, all binary.",),
    ),
    Experiment(
        "steepest-descent",
        LECTURE,
        "steepest descent with line search",
        "Does steepest descent from 0 solve the learning problem?",
        ("steepest descent, exact line search", "L-BFGS"),
        learning_units,
        learning,
        learning_report,
        readings=(
            f"No penalty; it ends at a gradient of norm {_EPS:g}, as the lecture has it.",
            "Graphs here have factors of one and two variables, as those of all estimators but "
            "`SequenceClassifier`. Objectives from parts learn larger ones, with exact gradients "
            "(`tests/papers/test_parts.py`).",
        ),
    ),
)
