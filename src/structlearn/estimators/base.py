"""What all estimators share: parameters, fitting, predicting, scoring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from structlearn.common import checks
from structlearn.common.checks import Floats
from structlearn.common.errors import ArgumentError
from structlearn.common.random import generator
from structlearn.estimators import decode
from structlearn.estimators.plan import Plan
from structlearn.estimators.shape import Shape
from structlearn.estimators.weights import class_weights, sample_weights
from structlearn.inference.base import Options
from structlearn.model.model import Tables
from structlearn.objective.cost import make_cost
from structlearn.objective.examples import Examples
from structlearn.objective.graph_world import METHODS, Effort
from structlearn.objective.loss import Loss, make_loss
from structlearn.objective.objective import StructuredObjective
from structlearn.objective.penalty import ElasticNet
from structlearn.solve.base import Solver
from structlearn.solve.loop import Callback, run
from structlearn.solve.pick import choose

_SMALL = 0.01  # standard deviation of the first weights where hidden states must differ


@dataclass(kw_only=True, eq=False, repr=False)
class StructuredEstimator(BaseEstimator):  # type: ignore[misc]
    """Base class: the parameters that all estimators share.

    Subclasses say how to read their input (`_make_plan`); everything else is here.
    """

    loss: str = "log"
    alpha: float = 0.5
    eps_y: float | None = None
    eps_h: float | None = None
    cost: Any = "hamming"
    C: float = 1.0
    l1_ratio: float = 0.0
    class_weight: Any = None
    solver: str | Solver = "auto"
    driver: str = "subgradient"
    max_iter: int = 1000
    tol: float = 1e-4
    inference: str = "auto"
    sweeps: int | None = None
    warm_start: bool = False
    random_state: Any = None
    n_jobs: int | None = None
    callbacks: Sequence[Callback] = ()
    checkpoint: Any = None

    # ---- fitting -------------------------------------------------------------------------

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> Any:
        """Learn from examples.

        Parameters
        ----------
        X
            One structure per example.
        Y
            Labels of every example, -1 (or None) where a label is hidden.
        sample_weight
            (examples,) How much each counts.
        """
        loss = self._check()
        plan, examples = self._learn(X, Y)
        examples = self._weighted(plan, examples, sample_weight)
        objective = self._objective(plan, examples, loss)
        solver = choose(self.solver, self.driver, objective, sweeps=self.sweeps)
        rng = generator(self.random_state)
        fit = run(
            solver,
            objective,
            self._start(plan, examples, rng),
            max_iter=self.max_iter,
            tol=self.tol,
            rng=rng,
            callbacks=tuple(self.callbacks),
            checkpoint=self.checkpoint,
        )
        self.plan_, self.weights_ = plan, fit.weights
        self.history_, self.status_, self.n_iter_ = fit.history, fit.status, fit.n_iter
        self.converged_ = fit.converged
        return self

    def _check(self) -> Loss:
        """Check the parameters that all share, before any work."""
        checks.number("C", self.C, low=0.0, open_low=True)
        checks.number("tol", self.tol, low=0.0)
        checks.whole("max_iter", self.max_iter, low=1)
        checks.one_of("inference", self.inference, METHODS)
        return make_loss(self.loss, self.eps_y, self.eps_h, self.alpha)

    def _learn(self, X: Any, Y: Any) -> tuple[Plan, Examples]:
        """Learn how to read the input, and read it."""
        raise NotImplementedError

    def _objective(self, plan: Plan, examples: Examples, loss: Loss) -> StructuredObjective:
        effort = Effort(method=self.inference, n_jobs=self.n_jobs)
        if any(part.eps_y != part.eps_h for part in loss.parts):
            examples = examples.at_two_temperatures()
        cost = make_cost(self.cost, len(plan.classes))
        penalty = ElasticNet(self.l1_ratio)
        return StructuredObjective(plan.model, examples, loss, cost, float(self.C), penalty, effort)

    def _start(self, plan: Plan, examples: Examples, rng: np.random.Generator) -> Floats:
        """Weights to begin with; small random ones where hidden states would stay alike."""
        n = plan.model.n_weights
        if self.warm_start and hasattr(self, "weights_"):
            if len(self.weights_) != n:
                raise ArgumentError(
                    f"warm_start=True, but the earlier fit has {len(self.weights_)} weights and "
                    f"this one needs {n}; use the same features and labels, or warm_start=False"
                )
            return np.array(self.weights_)
        return rng.normal(0.0, _SMALL, n) if examples.hidden else np.zeros(n)

    def _weighted(self, plan: Plan, examples: Examples, sample_weight: Any) -> Examples:
        weights = sample_weights(sample_weight, examples.n_examples)
        weights = weights * class_weights(self.class_weight, plan.classes, examples)
        return Examples(examples.structure, examples.inputs, examples.labels, weights)

    # ---- predicting ----------------------------------------------------------------------

    def predict(self, X: Any, joint: bool = False) -> list[Any]:
        """Return the labels of every example.

        Parameters
        ----------
        X
            As in `fit`.
        joint
            Maximise over hidden variables too, instead of summing them out at the temperature
            `eps_h` of the loss.
        """
        shape, examples, tables = self._tables(X)
        options, structure = self._options(), examples.structure
        if joint:
            labels = decode.joint(structure, tables, options, self.inference)
        else:
            labels = decode.best(structure, tables, self._check().eps_h, options, self.inference)
        return self.plan_.split(self.classes_[labels], shape)

    def predict_marginals(self, X: Any) -> list[Any]:
        """Return the probabilities of the labels: for every example an array (..., classes)."""
        shape, examples, tables = self._tables(X)
        rows = decode.marginals(examples.structure, tables, self._options(), self.inference)
        return self.plan_.split(rows, shape)

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """Return the share of right labels over all examples; hidden ones do not count."""
        predicted = self.predict(X)
        weights = sample_weights(sample_weight, len(predicted))
        right, total = 0.0, 0.0
        for weight, given, true in zip(weights, predicted, Y, strict=True):
            hits, known = right_labels(given, true)
            right, total = right + weight * hits, total + weight * known
        return right / total if total else float("nan")

    def _tables(self, X: Any) -> tuple[Shape, Examples, Tables]:
        check_is_fitted(self, "weights_")
        shape, examples = self.plan_.examples(X)
        inputs = examples.inputs
        return shape, examples, self.plan_.model.push(self.weights_, inputs, self.n_jobs)

    def _options(self) -> Options:
        return Options(n_jobs=self.n_jobs, rng=generator(self.random_state))

    @property
    def classes_(self) -> Any:
        """Labels, in the order of the states."""
        check_is_fitted(self, "weights_")
        return np.asarray(self.plan_.classes)


def right_labels(given: Any, true: Any) -> tuple[int, int]:
    """Return how many labels are right, and how many are known at all."""
    pairs = list(zip(np.ravel(given).tolist(), np.ravel(_plain(true)).tolist(), strict=True))
    known = [(a, b) for a, b in pairs if b is not None and b != -1]
    return sum(a == b for a, b in known), len(known)


def _plain(labels: Any) -> Any:
    """Return labels as an array, of objects unless they are numbers."""
    array = np.asarray(labels)
    return array if array.dtype.kind in "iu" else np.array(labels, dtype=object)
