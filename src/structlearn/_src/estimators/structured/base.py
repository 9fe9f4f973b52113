"""What all structured estimators share: parameters, and how they predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.checks import generator
from structlearn._src.common.watch import Ending, Progress
from structlearn._src.estimators.base import Estimator, check_is_fitted, threads
from structlearn._src.estimators.structured.plan import (
    Batch,
    Coder,
    Design,
    ModelPlan,
    Ranked,
    Reader,
    top_features,
)
from structlearn._src.inference import decode
from structlearn._src.inference.base import Options
from structlearn._src.inference.names import OFFERED
from structlearn._src.model.model import GraphData, Tables

if TYPE_CHECKING:
    from structlearn._src.common.history import History
    from structlearn._src.learn.structured_objective import StructuredObjective
    from structlearn._src.solve.base import Solver, State
    from structlearn._src.solve.loop import Callback


class _Fitted(Estimator):
    """What fitting leaves; declared here, as in a dataclass it would count as parameters."""

    plan_: ModelPlan
    n_features_in_: int
    feature_names_in_: Any
    weights_: Floats
    value_: float
    history_: History
    status_: str
    ended_: Ending
    n_iter_: int
    converged_: bool
    n_seen_: int
    state_: State | None


@dataclass(kw_only=True, eq=False, repr=False)
class StructuredEstimator(_Fitted):
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

    def _check_own(self) -> None:
        """Check parameters that only this estimator has, before any work."""

    @property
    def _learning(self) -> Any:
        """What learns, which is imported by whoever learns."""
        from structlearn._src.estimators.structured import learning

        return learning

    def objective(self, X: Any, Y: Any, sample_weight: Any = None) -> StructuredObjective:
        """Return the objective that `fit` would minimise: a function of the weights."""
        found: StructuredObjective = self._learning.objective(self, X, Y, sample_weight)
        return found

    # ---- what predictions need -----------------------------------------------------------

    @property
    def classes_(self) -> Any:
        """Labels, in the order of the states."""
        check_is_fitted(self, "weights_")
        return np.array(self.plan_.classes)  # of the caller's own: to change it changes no answers

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

    def _set_plan(self, plan: ModelPlan) -> None:
        """Keep how examples are read, and what scikit-learn wants to know of it."""
        self.plan_ = plan
        self.n_features_in_ = plan.reader.width
        self.__dict__.pop("feature_names_in_", None)
        columns = getattr(plan.reader, "columns", ())
        if columns:
            self.feature_names_in_ = np.array(columns, object)

    def _featured(self) -> Sequence[object]:
        """What the features of nodes have weights for."""
        labels: list[object] = self.classes_.tolist()
        return labels

    def _read(self, X: Any) -> tuple[Batch, Tables]:
        """Return examples without labels, and their tables."""
        check_is_fitted(self, "weights_")
        checks.one_of("inference", self.inference, OFFERED)
        n_jobs, batch = threads(self.n_jobs), self.plan_.read(X)
        return batch, self.plan_.model.push(self.weights_, batch.examples.inputs, n_jobs)

    def _best(self, batch: Batch, tables: Tables, joint: bool = False) -> Ints:
        """Return the best labels of all variables, -1 for hidden ones."""
        eps_h = 0.0 if joint else self.plan_.eps_h
        structure = batch.examples.structure
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

    def _options(self) -> Options:
        return Options(n_jobs=threads(self.n_jobs))

    def _rng(self) -> np.random.Generator:
        return generator(self.random_state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
