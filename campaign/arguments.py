"""Odd arguments: whatever a user gives, there is an answer or an error of the library's own."""

from __future__ import annotations

import contextlib
import traceback
import warnings
from typing import Any

import numpy as np
from scipy import sparse

import naive
from campaign.base import HangError, WrongError, at_most
from campaign.models import estimators
from campaign.parsers import folder
from structlearn import HingeField, RuleModel, infer
from structlearn.errors import StructlearnError

ARGUMENTS = 25
SECONDS = 60.0
_LONG = "x" * 300


def odd_values() -> list[Any]:
    """Values that no argument expects."""
    return [
        None, True, False, 0, 1, -1, 2, 10**20, 0.0, 0.5, -0.5, 1e300, 1e-300, float("nan"), float("inf"), "", "x", _LONG,
        b"x", [], [0], [1, 2], [[]], [None], ["a"], {}, {"a": 1}, {0: 1}, (), (0, 1), set(), {1}, object(), print,
        np.nan, np.zeros(0), np.zeros(3), np.zeros((2, 2)), np.array("x"), np.array([None, 1], object), np.ones(3, bool),
        np.arange(3), np.array([np.inf, 0.0]), np.array(["a", "b"]), np.ma.masked_array([1.0, 2.0], [True, False]),
        np.int64(3), np.float32(0.5), 1 + 2j, range(3), sparse.csr_array(np.eye(2)), slice(1), Ellipsis,
    ]  # fmt: skip


def bent(rng: np.random.Generator, value: Any) -> Any:
    """A value like the given one, with something odd about it."""
    odd = odd_values()[int(rng.integers(len(odd_values())))]
    way = rng.integers(8)
    if way <= 1:
        return odd
    if isinstance(value, list) and value:
        copy = list(value)
        at = int(rng.integers(len(copy)))
        if way == 2:
            return copy[:-1]
        if way == 3:
            return [*copy, odd]
        copy[at] = bent(rng, copy[at])
        return copy
    if isinstance(value, tuple) and value:
        copy = list(value)
        at = int(rng.integers(len(copy)))
        copy[at] = bent(rng, copy[at])
        return tuple(copy)
    if isinstance(value, np.ndarray) and value.size:
        return bent_array(rng, value, int(way))
    return odd


def bent_array(rng: np.random.Generator, value: np.ndarray, way: int) -> Any:
    if way == 2:
        return value[:-1]
    if way == 3:
        return value.astype(object)
    if way == 4:
        return value[None]
    if way == 5:
        return value.reshape(-1)
    copy = np.array(value, copy=True)
    if way == 6 and copy.dtype.kind == "f":
        copy.flat[int(rng.integers(copy.size))] = rng.choice([np.nan, np.inf, -np.inf, 1e300, 1e99])
        return copy
    return np.ma.masked_array(copy, rng.random(copy.shape) < 0.3) if way == 7 else copy.astype(str)


def attempt(told: str, run: Any) -> None:
    """Run something that may refuse in the library's own words, or in scikit-learn's."""
    try:
        with at_most(SECONDS), np.errstate(all="ignore"):
            run()
    except StructlearnError:
        return
    except (KeyError, AttributeError, HangError, MemoryError) as error:
        raise WrongError(f"{type(error).__name__}: {error} from {told}") from error
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        if "sklearn" in last and isinstance(error, ValueError | TypeError):
            return
        raise WrongError(f"{type(error).__name__}: {error} from {told}") from error


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 600 else f"{text[:600]}..."


def check(rng: np.random.Generator) -> None:
    """Bend an argument of something, some times."""
    with (
        warnings.catch_warnings(),
        folder() as place,
        contextlib.chdir(place),
    ):  # texts may be paths
        warnings.simplefilter("ignore")
        for _ in range(ARGUMENTS):
            way = int(rng.integers(8))
            (fits, fits, parameters, predictions, graphs, inferences, fields, rules)[way](rng)


def fits(rng: np.random.Generator) -> None:
    """Data of `fit`."""
    estimator, data = estimators()[int(rng.integers(len(estimators())))]
    given = list(data)
    at = int(rng.integers(len(given)))
    given[at] = bent(rng, given[at])
    attempt(f"{estimator}.fit(*{shown(given)})", lambda: estimator.fit(*given))


def parameters(rng: np.random.Generator) -> None:
    """Parameters of estimators."""
    estimator, data = estimators()[int(rng.integers(len(estimators())))]
    names = sorted(set(estimator.get_params(deep=False)) - {"n_jobs", "time_limit"})
    name = names[int(rng.integers(len(names)))]
    value = bent(rng, None)
    made = type(estimator)(**{**estimator.get_params(deep=False), "time_limit": 2.0, name: value})
    attempt(
        f"{type(estimator).__name__}({name}={shown(value)}).fit",
        lambda: made.fit(*data).predict(data[0]),
    )


def predictions(rng: np.random.Generator) -> None:
    """Data of `predict` and its siblings."""
    estimator, data = estimators()[int(rng.integers(len(estimators())))]
    fitted = estimator.fit(*data)
    asked = [
        n
        for n in ("predict", "predict_marginals", "predict_proba", "score", "decode")
        if hasattr(fitted, n)
    ]
    name = asked[int(rng.integers(len(asked)))]
    X = bent(rng, data[0])
    more = (bent(rng, data[1]),) if name == "score" and len(data) > 1 else ()
    attempt(
        f"{type(estimator).__name__}.{name}({shown(X)}, {shown(more)})",
        lambda: getattr(fitted, name)(X, *more),
    )


def graphs(rng: np.random.Generator) -> None:
    """Building graphs."""
    graph = naive.random_graph(rng, 3, 3, 2, "chain")
    value = bent(rng, np.zeros((2, 2)))
    calls = (
        ("add_variable", ("a", value)), ("add_variable", (value, 2)), ("add_variable", ("a", 2, value)),
        ("add_factor", ([0], value)), ("add_factor", (value, [0.0, 0.0])), ("add_factors", ([[0, 1]], value)),
        ("add_variables", (value, 2)), ("with_potentials", (value,)), ("labels", (value,)), ("table", (value,)),
        ("scope", (value,)), ("variable_index", (value,)),
    )  # fmt: skip
    name, given = calls[int(rng.integers(len(calls)))]
    attempt(f"FactorGraph.{name}{shown(given)}", lambda: getattr(graph, name)(*given))
    attempt("a graph after that", lambda: infer(graph, "partition"))


def inferences(rng: np.random.Generator) -> None:
    """Options of `infer`."""
    graph = naive.random_graph(rng, 3, 3, 2, "loopy")
    names = (
        "query", "evidence", "method", "temperatures", "factor_marginals", "k", "n_samples", "burn_in", "max_iter", "tol",
        "damping", "schedule", "restarts", "start", "max_table", "time_limit", "progress", "random_state",
    )  # fmt: skip
    name = names[int(rng.integers(len(names)))]
    given: dict[str, Any] = {
        "query": str(rng.choice(["map", "marginals"])),
        "method": str(rng.choice(["auto", "bp", "gibbs"])),
    }
    given |= {"time_limit": 5.0, "n_samples": 5, name: bent(rng, {0: 1})}
    if rng.random() < 0.1:
        attempt(f"infer({shown(given)})", lambda: infer(given[name], "map"))
    attempt(f"infer(**{shown(given)})", lambda: infer(graph, **given))


def fields(rng: np.random.Generator) -> None:
    """Arrays of hinge-loss fields."""
    given: dict[str, Any] = {
        "A": np.array([[1.0, 0.5], [-1.0, 0.0]]), "b": np.array([0.0, 1.0]), "powers": np.array([1, 2]),
        "kinds": ["hinge", "<="], "groups": np.array([0, 1]), "weights": np.array([1.0, 3.0]), "tol": 1e-6, "max_iter": 50,
        "time_limit": 5.0,
    }  # fmt: skip
    names = sorted(given)
    name = names[int(rng.integers(len(names)))]
    given[name] = bent(rng, given[name])
    A = given.pop("A")
    b = given.pop("b")
    attempt(
        f"HingeField({shown(A)}, {shown(b)}, **{shown(given)})",
        lambda: HingeField(A, b, **given).predict(),
    )
    truth = bent(rng, np.array([0.5, 1.0]))
    fine = HingeField([[1.0, 0.5], [-1.0, 0.0]], [0.0, 1.0], time_limit=5.0)
    attempt(f"HingeField.fit({shown(truth)})", lambda: fine.fit(truth, max_iter=3))


def rules(rng: np.random.Generator) -> None:
    """Atoms and parameters of models of rules."""
    text = "1: Knows(A, B) & Likes(A) -> Likes(B) ^2"
    rows = {"Knows": [("a", "b"), ("b", "c")], "Likes": [("a", 0.9)]}
    value = bent(rng, rows["Knows"])
    way = int(rng.integers(6))

    def run() -> None:
        if way == 0:
            RuleModel(value)
        model = RuleModel(text, time_limit=5.0, n_jobs=1)
        if way == 1:
            model.observe(Knows=value)
        model.observe(rows)
        model.target(Likes=bent(rng, [("b",), ("c",)]) if way == 2 else [("b",), ("c",)])
        if way == 3:
            model.weights_ = value
        if way == 4:
            model.explain(value)
        if way == 5:
            model.fit({"Likes": value}, max_iter=3)
        model.predict(frame="dict")

    attempt(f"RuleModel, way {way}: {shown(value)}", run)
