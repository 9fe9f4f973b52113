"""``structlearn warm-up``: compile everything once, for containers and first users."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structlearn._src.graph.build import FactorGraph

_DESCRIPTION = """\
Compile all kernels by solving a tiny problem of every kind. The machine code is kept on disk (in
the folder that NUMBA_CACHE_DIR names, else beside the library), so that later processes start at
once: run this when a container image is built.
"""


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "warm-up",
        help="compile everything now, for containers",
        description=_DESCRIPTION,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Solve a tiny problem of every kind and say how long each took."""
    import numba  # noqa: F401 -- with it loaded, no kernel is too small to be compiled

    started = time.perf_counter()
    for name, solve in KINDS:
        begun = time.perf_counter()
        solve()
        print(f"{name:<16} {time.perf_counter() - begun:6.2f} s", flush=True)
    print(f"{'all':<16} {time.perf_counter() - started:6.2f} s")
    print(_where_kept())
    return 0


def _where_kept() -> str:
    ready = [kernel for kernel in kernels().values() if kernel.nopython_signatures]
    folders = {kernel.stats.cache_path for kernel in ready} - {None}
    if folders:
        return f"{len(ready)} kernels are kept in {min(folders)}"
    return (
        f"{len(ready)} kernels were compiled, but no folder can be written to keep them; "
        f"set NUMBA_CACHE_DIR to one that can"
    )


# ---- the tiny problems -------------------------------------------------------------------


def _chains() -> None:
    import numpy as np

    from structlearn._src.graph.shapes import chain

    for scale in (1.0, 1e4):  # such differences have no exponential and are added as logarithms
        graph = chain(scale * np.eye(3), scale * np.eye(3)[::-1])
        _ask(graph, "chain", ("partition", "marginals", "map", "samples"), factor_marginals=True)
    _ask(graph, "chain", ("map",), k=2)
    _ask(_mixed_pair(), "chain", ("marginals",))


def _trees() -> None:
    _ask(_star(), "tree", ("partition", "marginals", "map", "samples"), factor_marginals=True)


def _junction_trees() -> None:
    graph = _loop()
    _ask(graph, "junction_tree", ("partition", "marginals", "map", "marginal_map", "samples"))
    _ask(graph, "enumeration", ("partition",))


def _messages() -> None:
    for schedule in ("sequential", "flooding", "residual"):
        _ask(_loop(), "bp", ("marginals", "map", "marginal_map"), schedule=schedule)
    _ask(_loop(), "trw", ("partition", "map"), factor_marginals=True)


def _searches() -> None:
    _ask(_loop(), "icm", ("map",))
    _ask(_loop(), "icm", ("map",), schedule="steepest")
    _ask(_loop(), "gibbs", ("marginals", "samples"), n_samples=4, burn_in=1, factor_marginals=True)
    _ask(_frustrated(), "portfolio", ("map",))
    _ask(_loop(), "portfolio", ("marginal_map",))


def _many_and_evidence() -> None:
    from structlearn._src.inference.front import infer_many

    for make in (_star, _loop):
        infer_many([make(), make()], "marginals", evidence=[{0: 1}, None], factor_marginals=True)
        infer_many([make(), make()], "map", evidence=[{0: 1}, None])


def _files() -> None:
    import tempfile

    from structlearn._src.common.errors import FormatError
    from structlearn._src.files.uai import read_uai, write_uai

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.uai"
        write_uai(_loop(), path)
        read_uai(path, evidence={0: 1})
        path.write_text("MARKOV 1 0 0")
        with contextlib.suppress(FormatError):  # finding the place of an error is compiled too
            read_uai(path)


def _text() -> None:
    """Read columns that outgrow their table of strings, learn to label them, label them."""
    from structlearn._src.text.columns import add_column, parse_columns
    from structlearn._src.text.strings import empty_table, grown

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
        labeler.predict(columns), labeler.predict_marginals(columns), labeler.decode(columns, k=2)
        _learn(tokens, labels, features=features).predict(tokens)
    _learn(tokens, labels, hidden="node").predict(tokens)


def _solvers() -> None:
    """Learn with every solver, from sparse features and from plain ones."""
    import itertools

    import numpy as np

    from structlearn._src.common.errors import ArgumentError
    from structlearn._src.solve.pick import ONLINE, SOLVERS

    inputs = [[["a"], {"b": 2.0}], [["b"]]], [np.eye(2), np.ones((1, 2))]
    solvers = [*SOLVERS, *(make() for make in ONLINE.values())]
    for solver, loss, X in itertools.product(solvers, ("log", "hinge"), inputs):
        with contextlib.suppress(ArgumentError):  # not every solver minimises every loss
            _learn(X, [["x", "y"], ["y"]], loss=loss, solver=solver)


def _rules() -> None:
    """Infer and learn with rules, and step through a field that is large enough for threads."""
    import warnings

    import numpy as np

    from structlearn._src.common.errors import UncertifiedWarning
    from structlearn._src.estimators.fields.rule_model import RuleModel
    from structlearn._src.field.admm import Consensus
    from structlearn._src.field.hinges import Hinges

    model = RuleModel("1: P(A) -> Q(A) ^2\n1: Q(A) & Q(B) -> P(A)\n2: !Q(A)\nQ(+A) = 1 .", tol=0.0)
    model.observe(P=[("a",)]).target(Q=[("a",), ("b",)]).set_params(max_iter=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncertifiedWarning)  # nothing reaches a tolerance of 0
        model.fit({"Q": [("a", 1.0), ("b", 0.0)]}, max_iter=1, tol=None).predict(frame="dict")
    n = 2**18
    zeros, ones, powers = np.zeros(n, np.int64), np.ones(n), np.ones(n, np.int64)
    wide = Hinges(np.arange(n + 1), zeros, ones, ones, zeros, powers, zeros, 1, 1)
    consensus = Consensus(wide, n_jobs=2)
    consensus.run([1.0], consensus.begin([1.0]), 2)


def _any_number_of_states() -> None:
    """Draw from the posteriors of all infinite models, and predict."""
    import numpy as np

    from structlearn._src.estimators.bayesian.infinite_hmm import InfiniteHMM
    from structlearn._src.estimators.bayesian.infinite_svm import InfiniteSVM
    from structlearn._src.estimators.bayesian.max_margin_hmm import MaxMarginHMM

    rng = np.random.default_rng(0)
    X, Y = list(rng.normal(size=(2, 40, 2))), list(rng.integers(3, size=(2, 40)))
    short: dict[str, Any] = {"burn_in": 16, "n_draws": 2, "n_start": 3, "random_state": 0}
    InfiniteHMM(emission="categorical", **short).fit(Y).predict(Y)
    for covariance in ("full", "diagonal"):
        InfiniteHMM(covariance=covariance, **short).fit(X).predict(X)
    for likelihood in (True, False):
        model = MaxMarginHMM(likelihood=likelihood, merge=True, **short).fit(X, Y)
        for vote in ("weighted", "iterated"):
            model.set_params(vote=vote).predict(X)
    InfiniteSVM(**short).fit(X[0], Y[0]).predict(X[0])


def _learn(X: Any, Y: Any, **options: Any) -> Any:
    from structlearn._src.estimators.structured.sequence import SequenceLabeler

    return SequenceLabeler(tol=1e9, random_state=0, **options).fit(X, Y)


#: Name of every kind of problem, and what solves it.
KINDS: tuple[tuple[str, Callable[[], None]], ...] = (
    ("chains", _chains),
    ("trees", _trees),
    ("junction trees", _junction_trees),
    ("messages", _messages),
    ("searches", _searches),
    ("many graphs", _many_and_evidence),
    ("files", _files),
    ("text", _text),
    ("solvers", _solvers),
    ("rules", _rules),
    ("infinite models", _any_number_of_states),
)


def _ask(graph: FactorGraph, method: str, queries: tuple[str, ...], **options: Any) -> None:
    from structlearn._src.inference.front import infer

    for query in queries:
        infer(graph, query, method=method, random_state=0, **options)


def _mixed_pair() -> FactorGraph:
    """Two variables with different numbers of states."""
    import numpy as np

    from structlearn._src.graph.build import FactorGraph

    graph = FactorGraph()
    graph.add_variables(2, [2, 3])
    graph.add_factor([0, 1], np.eye(2, 3))
    return graph


def _star() -> FactorGraph:
    import numpy as np

    from structlearn._src.graph.shapes import tree

    return tree(np.eye(4, 2), [-1, 0, 0, 0], np.eye(2))


def _loop() -> FactorGraph:
    """Four variables in a ring, one of them hidden."""
    import numpy as np

    from structlearn._src.graph.shapes import pairwise

    ring = pairwise(np.eye(4, 2), [(0, 1), (1, 2), (2, 3), (3, 0)], np.eye(2))
    return ring.set_roles({3: "hidden"})


def _frustrated() -> FactorGraph:
    """A triangle whose variables all want to differ: no bound is tight, so nothing is skipped."""
    import numpy as np

    from structlearn._src.graph.shapes import pairwise

    return pairwise(np.zeros((3, 2)), [(0, 1), (1, 2), (2, 0)], -np.eye(2))


def kernels() -> dict[str, Any]:
    """All compiled functions that Python calls, by name."""
    import importlib
    import pkgutil

    import structlearn._src.kernels as package

    found = {}
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for name, value in vars(importlib.import_module(module.name)).items():
            options = getattr(value, "targetoptions", {"no_cpython_wrapper": True})
            inner = name.startswith("_") or options.get("no_cpython_wrapper")
            if not inner and value.__module__ == module.name:
                found[f"{module.name}.{name}"] = value
    return found
