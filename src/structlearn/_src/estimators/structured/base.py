"""What all estimators share: parameters and fitting."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.history import History
from structlearn._src.common.random import generator
from structlearn._src.common.watch import Ending, Progress, Watch
from structlearn._src.estimators.base import Estimator, check_is_fitted
from structlearn._src.estimators.run import threads
from structlearn._src.estimators.structured.example_weights import class_weights, sample_weights
from structlearn._src.estimators.structured.insight import Ranked, top_features
from structlearn._src.estimators.structured.parameters import check_parameters
from structlearn._src.estimators.structured.plan import Batch, Coder, ModelPlan, Reader
from structlearn._src.inference import decode
from structlearn._src.inference.base import Options
from structlearn._src.learn.cost import make_cost
from structlearn._src.learn.dominance import Dominance, dominance
from structlearn._src.learn.graph_world import METHODS, Effort
from structlearn._src.learn.loss import Loss, make_loss
from structlearn._src.learn.objective import StructuredObjective
from structlearn._src.learn.penalty import ElasticNet
from structlearn._src.model.design import Design
from structlearn._src.model.examples import Examples
from structlearn._src.model.graph_data import GraphData
from structlearn._src.model.model import Tables
from structlearn._src.solve.base import Solver, State, answer
from structlearn._src.solve.checkpoint import Checkpoint
from structlearn._src.solve.loop import Callback, run
from structlearn._src.solve.pick import choose, choose_online, patience

#: What to do about ends that nobody asked for.
_ADVICE = {
    Ending.LIMIT: "raise max_iter, or tol",
    Ending.STUCK: "the weights are the best so far; for a loss with kinks try solver='annealed'",
    Ending.DIVERGED: "the weights are those from before",
}
_SMALL = 0.1  # standard deviation of the first weights where hidden states must differ


@dataclass(kw_only=True, eq=False, repr=False)
class StructuredEstimator(Estimator):
    """Base class: the parameters that all estimators share, and how they fit.

    Subclasses say how to read their input (`_reader`), their labels (`_coder`), and what model
    they want (`_design`).
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
    tol: float | None = 1e-4
    inference: str = "auto"
    sweeps: int | None = None
    warm_start: bool = False
    random_state: Any = None
    n_jobs: int | None = None
    time_limit: float | None = None
    progress: Progress | None = None
    callbacks: Sequence[Callback] = ()
    checkpoint: Any = None

    # ---- what subclasses say -------------------------------------------------------------

    def _validated(self, X: Any, Y: Any, first: bool) -> tuple[Any, Any]:
        """Return input that has passed the checks of scikit-learn, where these apply."""
        return X, Y

    def _reader(self, X: Any) -> tuple[Reader, GraphData]:
        """Learn how to read the input, and read it."""
        raise NotImplementedError

    def _coder(self, Y: Any, data: GraphData, classes: Any) -> Coder:
        """Learn the labels; `classes` are given where Y need not have all of them."""
        raise NotImplementedError

    def _design(self, reader: Reader, data: GraphData, coder: Coder) -> Design:
        """Return the choices about the model."""
        raise NotImplementedError

    def _numbers(self, coder: Coder, design: Design, Y: Any, data: GraphData) -> Ints:
        """Return the numbers of the labels, checked against what examples have."""
        return coder.transform(Y)

    # ---- fitting -------------------------------------------------------------------------

    def _fit(self, X: Any, Y: Any, sample_weight: Any) -> Any:
        """Learn from examples."""
        loss, rng = self._check(), self._rng()
        plan, batch = self._learn(X, Y)
        examples = self._weighted(plan, batch.examples, sample_weight)
        objective = self._objective(plan, examples, loss, float(self.C))
        solver = choose(self.solver, self.driver, objective, sweeps=self.sweeps)
        fit = run(
            solver,
            objective,
            self._start(plan, examples, rng),
            max_iter=self.max_iter,
            tol=self.tol,
            patience=patience(solver),
            rng=rng,
            callbacks=self.callbacks,
            watch=Watch(self.time_limit, self.progress),
            checkpoint=self._checkpoint(),
        )
        self.plan_ = replace(plan, eps_h=loss.eps_h)
        self.weights_, self.history_ = fit.weights, fit.history
        self.status_, self.n_iter_, self.converged_ = fit.status, fit.n_iter, fit.converged
        self.n_seen_, self.value_ = examples.n_examples, fit.value
        self.state_: State | None = None
        if fit.ended in _ADVICE:
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(f"{fit.status}; {_ADVICE[fit.ended]}", ConvergenceWarning, stacklevel=3)
        return self

    def _partial_fit(self, X: Any, Y: Any, classes: Any, sample_weight: Any) -> Any:
        """Go once through more examples, from the weights so far.

        Each call minimises what a fit to all examples so far would, of which it has a sample.
        """
        loss, rng = self._check(), self._rng()
        if self.driver != "subgradient":
            raise ArgumentError(
                f"driver={self.driver!r} needs all examples at once; for partial_fit use "
                f"driver='subgradient', or call fit"
            )
        if classes is not None and (
            isinstance(classes, str) or not isinstance(classes, Collection)
        ):
            raise ArgumentError(f"classes={classes!r} must be a list of all labels that may come")
        first = not hasattr(self, "weights_")
        plan, batch = self._learn(X, Y, classes) if first else self._more(X, Y, classes)
        examples = self._weighted(plan, batch.examples, sample_weight)
        seen = examples.n_examples + (0 if first else self.n_seen_)
        objective = self._objective(plan, examples, loss, self.C * seen / examples.n_examples)
        solver = choose_online(self.solver, objective)
        state: State | None = None if first else self.state_
        if state is None or state["solver"] != solver.name:
            start = self._start(plan, examples, rng) if first else self.weights_.copy()
            state = solver.start(objective, start, rng) | {"solver": solver.name}
        report = solver.step(objective, state)
        self.plan_ = replace(plan, eps_h=loss.eps_h)
        self.weights_, self.state_ = answer(state).copy(), state
        self.history_ = History() if first else self.history_
        self.n_seen_, self.n_iter_ = seen, (0 if first else self.n_iter_) + 1
        self.history_.add(self.n_iter_, 0.0, report.value, report.gap, report.slope)
        self.status_, self.converged_ = f"{seen} examples seen so far", False
        self.value_ = report.value
        return self

    def _check(self) -> Loss:
        """Check all parameters, before any work."""
        check_parameters(self.get_params(deep=False))
        return make_loss(self.loss, self.eps_y, self.eps_h, self.alpha)

    def _learn(self, X: Any, Y: Any, classes: Any = None) -> tuple[ModelPlan, Batch]:
        """Learn how to read the input, and read it."""
        X, Y = self._validated(X, Y, True)
        reader, data = self._reader(X)
        coder = self._coder(Y, data, classes)
        design = self._design(reader, data, coder)
        labels = self._numbers(coder, design, Y, data)
        model = design.model(data, labels, len(coder.names))
        plan = ModelPlan(reader, coder, design, model)
        return plan, plan.lay_out(data, labels)

    def _more(self, X: Any, Y: Any, classes: Any) -> tuple[ModelPlan, Batch]:
        """Read more examples as the first were read."""
        plan = self.plan_
        if classes is not None and set(classes) != set(plan.classes.tolist()):
            raise ArgumentError(
                f"classes={list(classes)!r} were given, but the first call had "
                f"{plan.classes.tolist()!r}; they cannot change"
            )
        X, Y = self._validated(X, Y, False)
        data = plan.reader.read(X)
        return plan, plan.lay_out(data, self._numbers(plan.coder, plan.design, Y, data))

    def objective(self, X: Any, Y: Any, sample_weight: Any = None) -> StructuredObjective:
        """Return the objective that `fit` would minimise: a function of the weights."""
        loss = self._check()
        plan, batch = self._learn(X, Y)
        examples = self._weighted(plan, batch.examples, sample_weight)
        return self._objective(plan, examples, loss, float(self.C))

    def _objective(
        self, plan: ModelPlan, examples: Examples, loss: Loss, C: float
    ) -> StructuredObjective:
        if any(part.eps_y != part.eps_h for part in loss.parts):
            examples = examples.at_two_temperatures()
        cost = make_cost(self.cost, plan.states)
        penalty = ElasticNet(self.l1_ratio, strength=0.0 if loss.idle else 1.0)
        return StructuredObjective(plan.model, examples, loss, cost, C, penalty, self._effort())

    def _start(self, plan: ModelPlan, examples: Examples, rng: np.random.Generator) -> Floats:
        """Weights to begin with; small random ones where hidden states would stay alike."""
        if self.warm_start and hasattr(self, "weights_"):
            if not _alike(plan, self.plan_):
                raise ArgumentError(
                    "warm_start=True, but the earlier fit had other features, labels or weights; "
                    "use the same ones, or warm_start=False"
                )
            return np.array(self.weights_)
        n = plan.model.n_weights
        return rng.normal(0.0, _SMALL, n) if examples.hidden else np.zeros(n)

    def _weighted(self, plan: ModelPlan, examples: Examples, sample_weight: Any) -> Examples:
        weights = sample_weights(sample_weight, examples.n_examples)
        weights = weights * class_weights(self.class_weight, plan.classes, examples)
        if not weights.any():
            raise ArgumentError(
                "class_weight and sample_weight leave no example that counts; at least one needs "
                "a weight above 0"
            )
        return replace(examples, weights=weights)

    def _checkpoint(self) -> Checkpoint | None:
        """Return where the run is saved, with the facts that a restart must share."""
        if self.checkpoint is None:
            return None
        return Checkpoint.of(self.checkpoint, self.get_params(deep=False))

    # ---- what predictions need -----------------------------------------------------------

    @property
    def classes_(self) -> Any:
        """Labels, in the order of the states."""
        check_is_fitted(self, "weights_")
        return np.asarray(self.plan_.classes)

    @property
    def transitions_(self) -> Floats:
        """Weights of edges by what they join; axes as in the equation of the model."""
        check_is_fitted(self, "weights_")
        plan = self.plan_
        found = plan.design.transitions(plan.model, self.weights_, plan.states)
        if found is None:
            raise AttributeError("this model has no weights for edges alone")
        return found

    def top_features(self, n: int = 20) -> Ranked:
        """Return the `n` features with the largest weights, as (feature, label, weight)."""
        check_is_fitted(self, "weights_")
        checks.integer("n", n)
        return top_features(self.plan_, self.weights_, n, self._featured())

    def _featured(self) -> Sequence[object]:
        """What the features of nodes have weights for."""
        labels: list[object] = self.classes_.tolist()
        return labels

    def _read(self, X: Any) -> tuple[Batch, Tables]:
        """Return examples without labels, and their tables."""
        check_is_fitted(self, "weights_")
        checks.one_of("inference", self.inference, METHODS)
        n_jobs, batch = threads(self.n_jobs), self.plan_.read(X)
        return batch, self.plan_.model.push(self.weights_, batch.examples.inputs, n_jobs)

    def _best(self, batch: Batch, tables: Tables, joint: bool = False) -> Ints:
        """Return the best labels of all variables, -1 for hidden ones."""
        structure, eps_h = batch.examples.structure, self.plan_.eps_h
        if joint:
            return decode.joint(structure, tables, self._options(), self.inference)
        return decode.best(structure, tables, eps_h, self._options(), self.inference)

    def _hidden(self, batch: Batch, tables: Tables, labels: Ints) -> Ints:
        """Return the best hidden variables given the labels of the outputs."""
        structure = batch.examples.structure
        return decode.hidden_given(structure, tables, labels, self._options(), self.inference)

    def _marginals(self, batch: Batch, tables: Tables) -> Floats:
        """Return the probabilities of the labels of everything that may have one."""
        structure, outputs = batch.examples.structure, batch.outputs
        rows = decode.marginals(structure, tables, self._options(), self.inference)
        return rows[outputs, : self.plan_.states]

    def _dominance(self, X: Any, Y: Any) -> Dominance:
        check_is_fitted(self, "weights_")
        plan, batch = self._more(X, Y, None)
        return dominance(plan.model, batch.examples, self.weights_, self._effort())

    def _effort(self) -> Effort:
        return Effort(method=self.inference, n_jobs=threads(self.n_jobs))

    def _options(self) -> Options:
        return Options(n_jobs=threads(self.n_jobs), rng=self._rng())

    def _rng(self) -> np.random.Generator:
        return generator(self.random_state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _alike(a: ModelPlan, b: ModelPlan) -> bool:
    """Whether the weights of two plans mean the same."""
    return (
        a.model.n_weights == b.model.n_weights
        and list(a.classes) == list(b.classes)
        and a.reader.names() == b.reader.names()
    )
