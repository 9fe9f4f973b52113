"""How structured estimators learn: imported when one is fitted, so that prediction starts fast."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import fields, replace
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.history import History
from structlearn._src.common.watch import Ending
from structlearn._src.estimators.base import check_is_fitted, threads
from structlearn._src.estimators.fitting import FitSettings, keep, minimise
from structlearn._src.estimators.structured.base import StructuredEstimator
from structlearn._src.estimators.structured.claims import trusted
from structlearn._src.estimators.structured.example_weights import class_weights, sample_weights
from structlearn._src.estimators.structured.parameters import check_parameters, warn_unused
from structlearn._src.estimators.structured.plan import Batch, ModelPlan
from structlearn._src.learn.dominance import Dominance
from structlearn._src.learn.dominance import dominance as how_dominant
from structlearn._src.learn.loss import ElasticNet, Loss, make_cost, make_loss
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.learn.world import InferenceSettings
from structlearn._src.model.model import Examples
from structlearn._src.solve.base import State, current_weights
from structlearn._src.solve.loop import Fit
from structlearn._src.solve.pick import choose_online

#: Parameters that say how a fit runs, the same in all families.
_RUN = ("solver", "driver", "sweeps", "max_iter", "tol", "time_limit", "progress", "checkpoint")
_SMALL = 0.1  # standard deviation of the first weights where hidden states must differ


def fit(estimator: StructuredEstimator, X: Any, Y: Any, sample_weight: Any) -> Any:
    """Learn from examples."""
    loss = _check(estimator)
    rng = estimator._rng()
    plan, batch = _learn(estimator, X, Y)
    examples = _weighted(estimator, plan, batch.examples, sample_weight)
    objective = _objective(estimator, plan, examples, loss, float(estimator.C))
    settings = FitSettings(
        **{name: getattr(estimator, name) for name in _RUN},
        callbacks=tuple(estimator.callbacks),
    )
    facts = estimator.get_params(deep=False)
    start = _start(estimator, plan, examples, rng)
    began = time.monotonic()
    found = minimise(objective, start, settings, facts=facts, rng=rng)

    def again(other: StructuredObjective) -> Fit:
        limit = estimator.time_limit
        left = None if limit is None else max(limit - (time.monotonic() - began), 0.0)
        return minimise(other, start, replace(settings, time_limit=left, checkpoint=None), rng=rng)

    found = trusted(objective, found, again)
    estimator._set_plan(replace(plan, eps_h=loss.eps_h))
    estimator.weights_ = found.weights
    keep(estimator, found)
    estimator.n_seen_ = examples.n_examples
    estimator.state_ = None
    return estimator


def partial_fit(
    estimator: StructuredEstimator, X: Any, Y: Any, classes: Any, sample_weight: Any
) -> Any:
    """Go once through more examples, from the weights so far.

    Each call minimises what a fit to all examples so far would, of which it has a sample.
    """
    loss = _check(estimator)
    rng = estimator._rng()
    if estimator.driver != "subgradient":
        raise ArgumentError(
            f"driver={estimator.driver!r} needs all examples at once; for partial_fit use "
            f"driver='subgradient', or call fit"
        )
    if classes is not None and (isinstance(classes, str) or not isinstance(classes, Collection)):
        raise ArgumentError(f"classes={classes!r} must be a list of all labels that may come")
    first = not hasattr(estimator, "weights_")
    plan, batch = _learn(estimator, X, Y, classes) if first else _more(estimator, X, Y, classes)
    examples = _weighted(estimator, plan, batch.examples, sample_weight)
    seen = examples.n_examples + (0 if first else estimator.n_seen_)
    objective = _objective(
        estimator, plan, examples, loss, estimator.C * seen / examples.n_examples
    )
    solver = choose_online(estimator.solver, objective)
    state: State | None = None if first else estimator.state_
    if state is None or state["solver"] != solver.name:
        start = _start(estimator, plan, examples, rng) if first else estimator.weights_.copy()
        state = solver.start(objective, start, rng) | {"solver": solver.name}
    report = solver.step(objective, state)
    estimator._set_plan(replace(plan, eps_h=loss.eps_h))
    estimator.weights_ = current_weights(state).copy()
    estimator.value_ = report.value
    estimator.history_ = History() if first else estimator.history_
    estimator.n_iter_ = 1 if first else estimator.n_iter_ + 1
    estimator.history_.add(estimator.n_iter_, 0.0, report.value, report.gap, report.gradient)
    estimator.status_ = f"{seen} examples seen so far"
    estimator.converged_ = False
    estimator.ended_ = Ending.LIMIT  # of one pass
    estimator.n_seen_ = seen
    estimator.state_ = state
    return estimator


def _check(estimator: StructuredEstimator) -> Loss:
    """Check all parameters, before any work."""
    given = estimator.get_params(deep=False)
    estimator._check_own()
    check_parameters(given)
    warn_unused(given, {field.name: field.default for field in fields(estimator)})
    return make_loss(estimator.loss, estimator.eps_y, estimator.eps_h, estimator.alpha)


def _learn(
    estimator: StructuredEstimator, X: Any, Y: Any, classes: Any = None
) -> tuple[ModelPlan, Batch]:
    """Learn how to read the input, and read it."""
    X, Y = estimator._validated(X, Y, True)
    reader, data = estimator._reader(X)
    coder = estimator._coder(Y, data, classes)
    design = estimator._design(reader, data, coder)
    labels = estimator._numbers(coder, design, Y, data)
    model = design.model(data, labels, len(coder.names))
    plan = ModelPlan(reader, coder, design, model)
    return plan, plan.lay_out(data, labels)


def _more(estimator: StructuredEstimator, X: Any, Y: Any, classes: Any) -> tuple[ModelPlan, Batch]:
    """Read more examples as the first were read."""
    plan = estimator.plan_
    if classes is not None and set(classes) != set(plan.classes.tolist()):
        raise ArgumentError(
            f"classes={list(classes)!r} were given, but the first call had "
            f"{plan.classes.tolist()!r}; they cannot change"
        )
    X, Y = estimator._validated(X, Y, False)
    data = plan.reader.read(X)
    return plan, plan.lay_out(data, estimator._numbers(plan.coder, plan.design, Y, data))


def objective(
    estimator: StructuredEstimator, X: Any, Y: Any, sample_weight: Any
) -> StructuredObjective:
    """Return the objective that `fit` would minimise: a function of the weights."""
    loss = _check(estimator)
    plan, batch = _learn(estimator, X, Y)
    examples = _weighted(estimator, plan, batch.examples, sample_weight)
    return _objective(estimator, plan, examples, loss, float(estimator.C))


def _objective(
    estimator: StructuredEstimator, plan: ModelPlan, examples: Examples, loss: Loss, C: float
) -> StructuredObjective:
    if any(part.eps_y != part.eps_h for part in loss.parts):
        examples = examples.at_two_temperatures()
    cost = make_cost(estimator.cost, plan.states)
    penalty = ElasticNet(estimator.l1_ratio, strength=0.0 if loss.zero_is_optimal else 1.0)
    return StructuredObjective(plan.model, examples, loss, cost, C, penalty, _inference(estimator))


def _start(
    estimator: StructuredEstimator, plan: ModelPlan, examples: Examples, rng: np.random.Generator
) -> Floats:
    """Weights to begin with; small random ones where hidden states would stay alike."""
    if estimator.warm_start and hasattr(estimator, "weights_"):
        if not _alike(plan, estimator.plan_):
            raise ArgumentError(
                "warm_start=True, but the earlier fit had other features, labels or weights; "
                "use the same ones, or warm_start=False"
            )
        return np.array(estimator.weights_)
    n = plan.model.n_weights
    return rng.normal(0.0, _SMALL, n) if examples.hidden else np.zeros(n)


def _weighted(
    estimator: StructuredEstimator, plan: ModelPlan, examples: Examples, sample_weight: Any
) -> Examples:
    weights = sample_weights(sample_weight, examples.n_examples)
    weights = weights * class_weights(estimator.class_weight, plan.classes, examples)
    if not weights.any():
        raise ArgumentError(
            "class_weight and sample_weight leave no example that counts; at least one needs "
            "a weight above 0"
        )
    return replace(examples, weights=weights)


def dominance(estimator: StructuredEstimator, X: Any, Y: Any) -> Dominance:
    """Tell how sure the model is of whole labellings."""
    check_is_fitted(estimator, "weights_")
    plan, batch = _more(estimator, X, Y, None)
    return how_dominant(plan.model, batch.examples, estimator.weights_, _inference(estimator))


def _inference(estimator: StructuredEstimator) -> InferenceSettings:
    return InferenceSettings(method=estimator.inference, n_jobs=threads(estimator.n_jobs))


def _alike(a: ModelPlan, b: ModelPlan) -> bool:
    """Whether the weights of two plans mean the same."""
    return (
        a.model.n_weights == b.model.n_weights
        and list(a.classes) == list(b.classes)
        and a.reader.names() == b.reader.names()
    )
