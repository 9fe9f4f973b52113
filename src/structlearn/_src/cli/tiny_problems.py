"""A tiny problem of every kind: solving them compiles all kernels."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from structlearn._src.common.errors import ArgumentError, FormatError, UncertifiedWarning
from structlearn._src.common.threads import GRAIN
from structlearn._src.estimators.bayesian.infinite_hmm import InfiniteHMM
from structlearn._src.estimators.bayesian.infinite_svm import InfiniteSVM
from structlearn._src.estimators.bayesian.max_margin_hmm import MaxMarginHMM
from structlearn._src.estimators.fields.rule_model import RuleModel
from structlearn._src.estimators.structured.graph import GridLabeler
from structlearn._src.estimators.structured.sequence import SequenceLabeler
from structlearn._src.field.admm import Consensus
from structlearn._src.field.hinges import Hinges
from structlearn._src.field.newton import Polish
from structlearn._src.files.uai import read_uai, write_uai
from structlearn._src.graph.build import FactorGraph
from structlearn._src.graph.shapes import chain, grid, pairwise, tree
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.entropy import entropies
from structlearn._src.inference.front import infer, infer_many
from structlearn._src.inference.schedule import colour
from structlearn._src.kernels.draw.allocate import count_around
from structlearn._src.kernels.linger import linger
from structlearn._src.learn.vectors import dot, moved
from structlearn._src.sample.normal_fit import fit_normal
from structlearn._src.solve.frank_wolfe import FrankWolfe
from structlearn._src.solve.lbfgs import add_pair, newton_direction, no_pairs
from structlearn._src.solve.pick import ONLINE, SOLVERS
from structlearn._src.solve.sdca import Sdca
from structlearn._src.solve.search import Point
from structlearn._src.text.columns import add_column, parse_columns
from structlearn._src.text.strings import empty_table, grown

ALL = ("partition", "marginals", "map", "samples")
_LONG = 2 * GRAIN["pairs"]  # weights that threads share
_SHARED = 120  # side of a grid whose blocks threads share
CHAIN = chain(np.eye(3), np.eye(3)[::-1])
#: Such differences have no exponential and are added as logarithms.
STEEP = chain(1e4 * np.eye(3), 1e4 * np.eye(3)[::-1])
#: Two variables with different numbers of states.
MIXED = FactorGraph()
MIXED.add_variables(2, [2, 3])
MIXED.add_factor([0, 1], np.eye(2, 3))
STAR = tree(np.eye(4, 2), [-1, 0, 0, 0], np.eye(2))
#: Four variables in a ring, one of them hidden.
LOOP = pairwise(np.eye(4, 2), [(0, 1), (1, 2), (2, 3), (3, 0)], np.eye(2)).set_roles({3: "hidden"})
#: A triangle whose variables all want to differ: no bound is tight, so nothing is skipped.
FRUSTRATED = pairwise(np.zeros((3, 2)), [(0, 1), (1, 2), (2, 0)], -np.eye(2))


def _ask(graph: FactorGraph, method: str, *queries: str, **options: Any) -> None:
    for query in queries:
        infer(graph, query, method=method, random_state=0, **options)


def _chains() -> None:
    _ask(CHAIN, "chain", *ALL, factor_marginals=True)
    _ask(STEEP, "chain", *ALL, factor_marginals=True)
    _ask(STEEP, "chain", "map", k=2)
    _ask(MIXED, "chain", "marginals")


def _junction_trees() -> None:
    _ask(LOOP, "junction_tree", *ALL, "marginal_map")
    _ask(LOOP, "junction_tree", "map", k=2)
    entropies(Problem(LOOP.wiring, LOOP.potentials), Options(), "exact", slopes=True)
    _ask(LOOP, "enumeration", "partition")


def _messages() -> None:
    for schedule in ("sequential", "flooding", "residual"):
        _ask(LOOP, "bp", "marginals", "map", "marginal_map", schedule=schedule)
    _ask(LOOP, "trw", "partition", "map", factor_marginals=True)
    large = grid(np.zeros((_SHARED, _SHARED, 2)), np.eye(2))
    for schedule in ("sequential", "flooding"):
        _ask(large, "bp", "map", schedule=schedule, max_iter=1, restarts=0)
    colour(LOOP.wiring)  # of graphs that no narrow band cuts, which are
    LOOP.wiring.breadth_first()  # first cut in this order
    for loss in ("log", "hinge"):  # in one go, and in steps
        labeler = GridLabeler(inference="bp", loss=loss)
        learning = labeler.objective([np.zeros((2, 2, 1))], [[[0, 1], [-1, 0]]])
        learning.value(np.zeros(learning.n_weights))


def _searches() -> None:
    _ask(LOOP, "icm", "map")
    _ask(LOOP, "icm", "map", schedule="steepest")
    _ask(LOOP, "gibbs", "marginals", "samples", n_samples=4, burn_in=1, factor_marginals=True)
    _ask(FRUSTRATED, "portfolio", "map")
    _ask(LOOP, "portfolio", "marginal_map")


def _many_and_evidence() -> None:
    for graph in (STAR, LOOP):
        infer_many([graph, graph], "marginals", evidence=[{0: 1}, None], factor_marginals=True)
        infer_many([graph, graph], "map", evidence=[{0: 1}, None])


def _files() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.uai"
        write_uai(LOOP, path)
        read_uai(path, evidence={0: 1})
        path.write_text("MARKOV 1 0 0")
        with contextlib.suppress(FormatError):  # finding the place of an error is compiled too
            read_uai(path)


def _learn(X: Any, Y: Any, **options: Any) -> Any:
    return SequenceLabeler(tol=1e9, random_state=0, **options).fit(X, Y)


def _text() -> None:
    """Read columns that outgrow their table of strings, learn to label them, label them."""
    text = b"a x\nb y\n\nb y\n"
    columns = parse_columns(text)
    add_column(text, columns, columns.ids[:, 1], columns.vocabularies[1].list())
    grown(empty_table(columns.vocabularies[0].text, 2), 0)
    columns.vocabularies[0].find(columns.vocabularies[1])
    labels = [["x", "y"], ["y"]]
    tokens = [[["a"], {"b": 2.0}], [["b"]]]
    template = "U:%x[0,0]\nU:%x[0,0]/%x[1,0]\nB:%x[0,0]\nB"
    for features in ("sparse", "dense"):
        labeler = _learn(columns, labels, features=features, template=template)
        labeler.predict(columns)
        labeler.predict_marginals(columns)
        labeler.decode(columns, k=2)
        _learn(tokens, labels, features=features).predict(tokens)
    _learn(tokens, labels, hidden="node").predict(tokens)


def _solvers() -> None:
    """Learn with every solver, from sparse features and from plain ones."""
    inputs = [[["a"], {"b": 2.0}], [["b"]]], [np.eye(2), np.ones((1, 2))]
    solvers = [*SOLVERS, *(make() for make in ONLINE.values())]
    solvers += [Sdca(batch_size=2), FrankWolfe(batch_size=2), FrankWolfe(shards=2)]
    for solver, loss, X in itertools.product(solvers, ("log", "hinge"), inputs):
        with contextlib.suppress(ArgumentError):  # not every solver minimises every loss
            _learn(X, [["x", "y"], ["y"]], loss=loss, solver=solver)
    zeros, ones = np.zeros(_LONG), np.ones(_LONG)
    state = no_pairs(1, _LONG)
    add_pair(state, Point(zeros, 0.0, zeros), Point(ones, 0.0, ones), None)
    newton_direction(state, ones, None)
    dot(ones, moved(zeros, 1.0, ones, None), None)


def _rules() -> None:
    """Infer and learn with rules, and step through a field as several threads do."""
    model = RuleModel("1: P(A) -> Q(A) ^2\n1: Q(A) & Q(B) -> P(A)\n2: !Q(A)\nQ(+A) = 1 .", tol=0.0)
    model.observe(P=[("a",)]).target(Q=[("a",), ("b",)]).set_params(max_iter=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncertifiedWarning)  # nothing reaches a tolerance of 0
        model.fit({"Q": [("a", 1.0), ("b", 0.0)]}, max_iter=1, tol=None).predict(frame="dict")
    n = 8
    zeros, ones, powers = np.zeros(n, np.int64), np.ones(n), np.arange(n) % 2 + 1
    wide = Hinges(np.arange(n + 1), zeros, -ones, 0.5 * ones, zeros, powers, zeros, 1, 1)
    consensus = Consensus(wide, n_jobs=2, grain=1)
    weights = np.ones(1)
    state = consensus.run(weights, consensus.begin(weights, [0.1]), 2)
    for _ in Polish(consensus, weights, state).rounds(1):
        pass


def _any_number_of_states() -> None:
    """Draw from the posteriors of all infinite models, and predict."""
    rng = np.random.default_rng(0)
    X, Y = list(rng.normal(size=(2, 40, 2))), list(rng.integers(3, size=(2, 40)))
    short: dict[str, Any] = {"burn_in": 16, "n_draws": 2, "n_chains": 1, "random_state": 0}
    InfiniteHMM(emission="categorical", **short).fit(Y).predict(Y)
    for covariance in ("full", "diagonal"):
        InfiniteHMM(covariance=covariance, **short).fit(X).predict(X)
    for likelihood in (True, False):
        model = MaxMarginHMM(likelihood=likelihood, merge=True, **short).fit(X, Y)
        for vote in ("weighted", "iterated"):
            model.set_params(vote=vote).predict(X)
    InfiniteSVM(**short).fit(X[0], Y[0]).predict(X[0])
    fit_normal(X[0], Y[0] % 2, 2, 1.0, 1.0, 1.0)  # of two labels, whose moves chance may leave out
    two, counts = np.zeros(1, np.int64), np.zeros((3, 2), np.int64)
    count_around(two, two, two == 0, 0, 1, counts)  # of moves of large states


#: Every kind of problem, and what solves it.
def _threads() -> None:
    """Wait as threads of the pool do, which are fewer than it takes on a small machine."""
    linger(np.zeros(1, np.int64), 0, 0)


KINDS: dict[str, Callable[[], None]] = {
    "chains": _chains,
    "trees": partial(_ask, STAR, "tree", *ALL, factor_marginals=True),
    "junction trees": _junction_trees,
    "messages": _messages,
    "searches": _searches,
    "many graphs": _many_and_evidence,
    "files": _files,
    "text": _text,
    "solvers": _solvers,
    "rules": _rules,
    "infinite models": _any_number_of_states,
    "threads": _threads,
}
