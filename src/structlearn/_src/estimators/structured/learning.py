"""How structured estimators learn: imported when one is fitted, so that prediction starts fast."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from copy import copy
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from structlearn._src.common.arrays import Floats
from structlearn._src.common.checks import generator
from structlearn._src.common.errors import (
    ArgumentError,
    IgnoredOptionWarning,
    InferenceWarning,
    warn,
)
from structlearn._src.common.history import History
from structlearn._src.common.place import current
from structlearn._src.common.watch import Ending
from structlearn._src.estimators.base import check_is_fitted, sample_weights, threads
from structlearn._src.estimators.fitting import FitSettings, keep, minimise
from structlearn._src.estimators.structured import streaming
from structlearn._src.estimators.structured.base import (
    LATER,
    Batch,
    ModelPlan,
    StructuredEstimator,
)
from structlearn._src.estimators.structured.maker import Maker, has_lazy_parts, lean
from structlearn._src.estimators.structured.parameters import check_parameters, warn_unused
from structlearn._src.inference.names import PREDICTED
from structlearn._src.learn.dominance import Dominance
from structlearn._src.learn.dominance import dominance as how_dominant
from structlearn._src.learn.loss import ElasticNet, Loss, make_cost, make_loss
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.learn.world import InferenceSettings
from structlearn._src.model.model import Examples
from structlearn._src.solve.base import State, current_weights
from structlearn._src.solve.loop import Callback, Event, Fit
from structlearn._src.solve.pick import choose_online
from structlearn._src.text.partitions import ColumnFiles

#: Parameters that say how a fit runs, the same in all families.
_RUN = (
    "solver", "driver", "sweeps", "max_iter", "tol", "gradient_tol", "time_limit", "progress",
    "checkpoint",
)  # fmt: skip
_SMALL = 0.1  # standard deviation of the first weights where hidden states must differ
#: Times the claimed objective up to which the two kinds of messages agree: on grids of 5 x 12 plain
#: ones were then off by less than 5 %, and above it by up to 120 %.
_FAR = 1.3
#: Times the claimed objective up to which an exact one bears it out, and for the hinge a
#: tree-reweighted one, which was within 2 % of it.
_OFF = 1.1


def fit(estimator: StructuredEstimator, X: Any, Y: Any, sample_weight: Any) -> Any:
    """Learn from examples."""
    loss = _check(estimator)
    if isinstance(X, ColumnFiles):
        return _fit_files(estimator, X, Y, loss, sample_weight)
    rng = generator(estimator.random_state)
    if has_lazy_parts(X):
        return _fit_spread(estimator, X, Y, loss, sample_weight, rng)
    plan, batch = _learn(estimator, X, Y)
    objective = _objective(estimator, plan, batch, loss, sample_weight)
    settings = FitSettings(
        **{name: getattr(estimator, name) for name in _RUN},
        callbacks=tuple(_with_current(estimator, plan, loss, each) for each in estimator.callbacks),
    )
    given = estimator.get_params(deep=False)
    facts = {name: x for name, x in given.items() if name not in LATER or x != LATER[name]}
    start = _start(estimator, plan, batch.examples, rng)
    began = time.monotonic()
    found = minimise(objective, start, settings, facts=facts, rng=rng)

    def again(other: StructuredObjective) -> Fit:
        limit = estimator.time_limit
        left = None if limit is None else max(limit - (time.monotonic() - began), 0.0)
        return minimise(other, start, replace(settings, time_limit=left, checkpoint=None), rng=rng)

    found = _trusted(objective, found, again)
    return _keep(estimator, plan, loss, found, objective.n_examples)


def _fit_files(
    estimator: StructuredEstimator, files: ColumnFiles, Y: Any, loss: Loss, sample_weight: Any
) -> Any:
    """Learn from files that need not fit into memory, or that workers read."""
    if hasattr(current(), "spread"):
        rng = generator(estimator.random_state)
        return _fit_spread(estimator, files, Y, loss, sample_weight, rng)
    streaming.check(estimator, Y, sample_weight)
    shards = streaming.Shards.read(estimator, files)
    found = streaming.Stream(estimator, shards, loss, _objective).run()
    return _keep(estimator, shards.plan, loss, found, shards.n_sequences)


def _fit_spread(
    estimator: StructuredEstimator, X: Any, Y: Any, loss: Loss, sample_weight: Any, rng: Generator
) -> Any:
    """Learn from files or partitions of which each worker reads and keeps some."""
    from structlearn._src.estimators.structured import spread_files, spread_parts

    maker = Maker(lean(estimator), loss, _learn, _objective)
    if isinstance(X, ColumnFiles):
        streaming.check(estimator, Y, sample_weight, spread_files.SOLVERS)
        plan, objective = spread_files.read(maker, X)
    else:
        spread_parts.check(estimator, sample_weight)
        plan, objective = spread_parts.read(maker, X, Y)
    settings = FitSettings(**{name: getattr(estimator, name) for name in _RUN})
    start = _start(estimator, plan, objective.origin.examples, rng)
    found = minimise(objective, start, settings, rng=rng)
    return _keep(estimator, plan, loss, found, objective.n_examples)


def _with_current(
    estimator: StructuredEstimator, plan: ModelPlan, loss: Loss, callback: Callback
) -> Callback:
    """Let a callback ask for the estimator as it stands."""

    def call(event: Event) -> bool | None:
        def current() -> StructuredEstimator:
            now = copy(estimator)
            now._set_plan(replace(plan, eps_h=loss.eps_h))
            now.weights_ = event.weights.copy()
            return now

        return callback(event._replace(current=current))

    return call


def partial_fit(
    estimator: StructuredEstimator, X: Any, Y: Any, classes: Any, sample_weight: Any
) -> Any:
    """Go once through more examples, from the weights so far.

    Each call minimises what a fit to all examples so far would, of which it has a sample.
    """
    loss = _check(estimator)
    rng = generator(estimator.random_state)
    if estimator.driver != "subgradient":
        raise ArgumentError(
            f"driver={estimator.driver!r} needs all examples at once; for partial_fit use "
            f"driver='subgradient', or call fit"
        )
    if classes is not None and (isinstance(classes, str) or not isinstance(classes, Collection)):
        raise ArgumentError(f"classes={classes!r} must be a list of all labels that may come")
    first = not hasattr(estimator, "weights_")
    plan, batch = _learn(estimator, X, Y, classes) if first else _more(estimator, X, Y, classes)
    n = batch.data.n_examples
    seen = n + (0 if first else estimator.n_seen_)
    objective = _objective(estimator, plan, batch, loss, sample_weight, seen / n)
    solver = choose_online(estimator.solver, objective)
    state: State | None = None if first else estimator.state_
    if state is None or state["solver"] != solver.name:
        start = _start(estimator, plan, batch.examples, rng) if first else estimator.weights_.copy()
        state = solver.start(objective, start, rng) | {"solver": solver.name}
    report = solver.step(objective, state)
    history = History() if first else estimator.history_
    n_iter = 1 if first else estimator.n_iter_ + 1
    history.add(n_iter, 0.0, report.value, report.gap, report.gradient)
    status = f"{seen} examples seen so far"
    weights = current_weights(state).copy()
    found = Fit(weights, report.value, history, status, n_iter, False, Ending.LIMIT)  # of one pass
    return _keep(estimator, plan, loss, found, seen, state)


def _keep(
    estimator: StructuredEstimator, plan: ModelPlan, loss: Loss, fit: Fit, seen: int,
    state: State | None = None,
) -> StructuredEstimator:  # fmt: skip
    """Set all that fitting leaves; `state` is where the steps of `partial_fit` stand."""
    estimator._set_plan(replace(plan, eps_h=loss.eps_h))
    estimator.weights_ = fit.weights
    keep(estimator, fit)
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
    return _objective(estimator, plan, batch, loss, sample_weight)


def _objective(
    estimator: StructuredEstimator, plan: ModelPlan, batch: Batch, loss: Loss, sample_weight: Any,
    share: float = 1.0,
) -> StructuredObjective:  # fmt: skip
    """Return the objective, for examples that stand for `share` times as many."""
    examples = batch.examples
    weights = sample_weights(sample_weight, examples.n_examples)
    weights = weights * _class_weights(estimator.class_weight, plan.classes, examples)
    if not weights.any():
        raise ArgumentError(
            "class_weight and sample_weight give every example a weight of 0; at least one needs "
            "a weight above 0"
        )
    examples = replace(examples, weights=weights)
    if any(part.eps_y != part.eps_h for part in loss.parts):
        examples = examples.at_two_temperatures()
    cost = make_cost(estimator.cost, plan.states)
    losses_alone = math.isinf(estimator.C)
    C = share * (1.0 if losses_alone else float(estimator.C))
    strength = 0.0 if losses_alone or loss.zero_is_optimal else 1.0
    penalty = ElasticNet(estimator.l1_ratio, strength)
    return StructuredObjective(plan.model, examples, loss, cost, C, penalty, _inference(estimator))


def _start(
    estimator: StructuredEstimator, plan: ModelPlan, examples: Examples, rng: np.random.Generator
) -> Floats:
    """Weights to begin with: by default small random ones where hidden states would stay alike."""
    if estimator.warm_start and hasattr(estimator, "weights_"):
        if not _alike(plan, estimator.plan_):
            raise ArgumentError(
                "warm_start=True, but the previous fit had other features, labels or weights; "
                "use the same ones, or warm_start=False"
            )
        return np.array(estimator.weights_)
    n = plan.model.n_weights
    random = examples.hidden if estimator.init == "auto" else estimator.init == "random"
    return rng.normal(0.0, _SMALL, n) if random else np.zeros(n)


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


# ---- how much examples count -----------------------------------------------------------------


def _class_weights(given: Any, classes: Any, examples: Examples) -> Floats:
    """Weight of every example: the mean weight of its labels, or 1 where none is known.

    Classes that a mapping does not name have weight 1; "balanced" weights are inversely
    proportional to how often each class occurs.
    """
    if given is None:
        return np.ones(examples.n_examples)
    labels = examples.labels
    borders = examples.structure.variables
    known = labels >= 0
    each = np.where(known, _by_state(given, classes, labels[known])[labels], 0.0)
    count = np.add.reduceat(known, borders[:-1])
    return np.where(count > 0, np.add.reduceat(each, borders[:-1]) / count.clip(1), 1.0)


def _by_state(given: Any, classes: Any, labels: Any) -> Floats:
    n = len(classes)
    if isinstance(given, str):
        count = np.bincount(labels, minlength=n)
        return len(labels) / (n * np.maximum(count, 1))
    names = classes.tolist()
    absent = [name for name in given if name not in names]
    if absent:
        warn(
            f"class_weight names {absent[0]!r}, which is no class here, so that its weight has no "
            f"effect; the classes are {names}",
            IgnoredOptionWarning,
        )
    return np.array([float(given.get(name, 1.0)) for name in names])


# ---- whether what messages claim about a fit can be trusted ----------------------------------
#
# On graphs with cycles, plain messages approximate the value of a world from either side, and a fit
# finds the weights where that errs most in its favour. Tree-reweighted messages bound the value
# from above and have one fixed point, so that what is learnt with them is sound, if less sharp.
# Where the two disagree, elimination is the judge, as far as it is affordable for one evaluation.


def _trusted(
    objective: StructuredObjective, found: Fit, fit: Callable[[StructuredObjective], Fit]
) -> Fit:
    """Return a fit as it is, or warn that its objective is false, with weights learnt otherwise.

    `fit` learns from another objective. Where the user has chosen plain messages there is a warning
    only; after a fit that the clock or the keyboard ended, no time for it.
    """
    method = objective.settings.method
    if method not in ("auto", "bp", "trw") or found.ended.early or not objective.approximate:
        return found
    if method == "trw" or objective.two_temperatures:
        _warn_of_negative(found, method)
        return found
    summed = any(part.eps_y > 0 for part in objective.loss.parts)
    steady = _with_inference(objective, method="trw")
    bound = steady.value(found.weights)
    if 0 < bound <= (_FAR if summed else _OFF) * found.value:
        return found
    judge = _with_inference(objective, method="auto", times=PREDICTED)
    judge = steady if judge.approximate else judge
    value = bound if judge is steady else judge.value(found.weights)
    if judge is not steady and 0 < value <= _OFF * found.value:
        return found
    said = "tree-reweighted messages" if judge is steady else "exact inference"
    claim = (
        f"belief propagation gives an objective of {found.value:.4g}, but {said} {value:.4g}: the "
        f"graphs are too strongly coupled for it"
    )
    if method == "bp":
        warn(f"{claim}; choose inference='trw', or 'exact' for narrow graphs", InferenceWarning)
        return found
    other = fit(steady)
    better = judge.value(other.weights)
    if better <= value:
        warn(f"{claim}. The weights were learnt again by 'trw', to {better:.4g}", InferenceWarning)
        return other._replace(status=f"{other.status}, by tree-reweighted messages")
    warn(f"{claim}. Learning by 'trw' gave {better:.4g}, so the weights are kept", InferenceWarning)
    return found._replace(value=value)


def _warn_of_negative(found: Fit, method: str) -> None:
    """Warn of an objective that no weights have: where temperatures differ messages bound nothing.

    Losses are at least 0, as the free world has all that the clamped one may choose from.
    """
    if found.value < 0.0:
        warn(
            f"the objective is reported as {found.value:.4g}, but none is below 0: messages of "
            f"inference={method!r} are unreliable here; choose loss='log' or 'latent-hinge', or "
            f"'exact' for narrow graphs",
            InferenceWarning,
        )


def _with_inference(objective: StructuredObjective, **settings: Any) -> StructuredObjective:
    """Return the same objective with other inference."""
    return replace(objective, settings=replace(objective.settings, **settings), warm=None)
