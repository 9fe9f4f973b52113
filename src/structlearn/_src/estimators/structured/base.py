"""What all structured estimators share: parameters, from input to examples, and prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.watch import Ending, Progress
from structlearn._src.estimators.base import Estimator, check_is_fitted, threads
from structlearn._src.estimators.structured.read_graphs import GraphReader, GridReader
from structlearn._src.estimators.structured.read_sequences import (
    ColumnReader,
    RowReader,
    SequenceReader,
)
from structlearn._src.inference import decode
from structlearn._src.inference.base import Options
from structlearn._src.inference.names import OFFERED
from structlearn._src.model.design import HiddenChainDesign, PairwiseDesign
from structlearn._src.model.model import Examples, GraphData, LinearModel, Tables
from structlearn._src.model.term import LinearTerm, PairsTerm, Term
from structlearn._src.text.labels import LabelCoder

if TYPE_CHECKING:
    from structlearn._src.common.history import History
    from structlearn._src.learn.structured_objective import StructuredObjective
    from structlearn._src.solve.base import Solver, State
    from structlearn._src.solve.loop import Callback

#: Features, each with a label and its weight.
Ranked = list[tuple[str, object, float]]

#: Turns input into graph data, by what it learnt from the first.
Reader = RowReader | SequenceReader | ColumnReader | GraphReader | GridReader
#: Turns graph data into structures, features and a model.
Design = PairwiseDesign | HiddenChainDesign

#: Parameters that the first files and checkpoints lack, and what they are there.
LATER: dict[str, Any] = {"gradient_tol": None, "init": "auto"}


@dataclass(frozen=True, eq=False)
class ClassCoder:
    """Numbers for classes, in sorted order; unlike in structures, -1 is a class like any other."""

    names: Any  #: (classes,) every class, sorted

    def transform(self, Y: Any) -> Ints:
        """Return the number of every class."""
        given = np.asarray(Y)
        places = np.searchsorted(self.names, given).clip(max=len(self.names) - 1)
        unknown = np.flatnonzero(self.names[places] != given)
        if len(unknown):
            name = given.tolist()[unknown[0]]
            raise ArgumentError(
                f"class {name!r} of example {unknown[0]} was not seen in training, nor is it among "
                f"`classes`; the known classes are {self.names.tolist()}"
            )
        return places.astype(np.int64)


#: Numbers labels from 0; -1 where one is not known.
Coder = LabelCoder | ClassCoder


class Batch(NamedTuple):
    """Examples together with what leads back from them to what users gave."""

    data: GraphData
    examples: Examples
    outputs: Ints | slice  #: variable of everything that may have a label
    hidden_variables: Ints | None  #: hidden variable beside every node, if there are any


@dataclass(frozen=True, eq=False)
class ModelPlan:
    """Reader, label coder, design and model of a fitted estimator.

    `eps_h` is the temperature of hidden variables in prediction.
    """

    reader: Reader
    coder: Coder
    design: Design
    model: LinearModel
    eps_h: float = 1.0

    @property
    def classes(self) -> Any:
        """Label of every state."""
        return self.coder.names

    @property
    def states(self) -> int:
        """Number of labels."""
        return len(self.coder.names)

    def read(self, X: Any) -> Batch:
        """Return examples without labels."""
        return self.lay_out(self.reader.read(X))

    def lay_out(self, data: GraphData, labels: Ints | None = None) -> Batch:
        """Return the examples of some data, with all labels -1 if none are given."""
        structure, outputs, hidden_variables = self.design.structure(data, self.states)
        states = np.full(structure.n_variables, -1, np.int64)
        if labels is not None:
            states[outputs] = labels if data.hidden is None else np.where(data.hidden, -1, labels)
        inputs = self.design.inputs(data)
        examples = Examples(structure, inputs, states, np.ones(structure.n_examples))
        return Batch(data, examples, outputs, hidden_variables)


# ---- estimators --------------------------------------------------------------------------


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
    gradient_tol: float | None = None
    init: str = "auto"
    inference: str = "auto"
    sweeps: int | None = None
    warm_start: bool = False
    random_state: Any = None
    n_jobs: int | None = None
    time_limit: float | None = None
    progress: Progress | bool | None = None
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
        """Return the objective that `fit` would minimise: a function of the weights.

        Parameters
        ----------
        X, Y : list
            Examples and their labels, as in `fit`.
        sample_weight : array-like of shape (examples,), optional
            Weight of each example.

        Returns
        -------
        structlearn.losses.Objective
            The objective, whose `value` and `value_gradient` take weights of shape (weights,).

        Examples
        --------
        >>> import numpy as np
        >>> from structlearn import SequenceLabeler
        >>> objective = SequenceLabeler().objective([[["the"], ["cat"]]], [["D", "N"]])
        >>> round(objective.value(np.zeros(objective.n_weights)), 4)  # log(4), of 4 labellings
        1.3863
        """
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
        """Edge weights for each pair of labels; axes as in the equation of the model."""
        check_is_fitted(self, "weights_")
        plan = self.plan_
        found = plan.design.transitions(plan.model, self.weights_, plan.states)
        if found is None:
            raise AttributeError("this model has no weights for edges alone")
        return found

    def top_features(self, n: int = 20) -> Ranked:
        """Return the features whose weights have the largest absolute values.

        Parameters
        ----------
        n
            Number of features.

        Returns
        -------
        list of tuples (feature, label, weight)
            At most `n` of them, those of the largest weights first. For models with hidden states,
            the second entry is a state.

        Examples
        --------
        >>> from structlearn import SequenceLabeler
        >>> X = [[["the"], ["cat"]], [["the"], ["dog"], ["sleeps"]]]
        >>> labeler = SequenceLabeler(C=10.0).fit(X, [["D", "N"], ["D", "N", "V"]])
        >>> for feature, label, weight in labeler.top_features(2):
        ...     print(feature, label, round(weight, 2))
        the D 1.18
        sleeps V 1.04
        """
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
        n_jobs = threads(self.n_jobs)
        batch = self.plan_.read(X)
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


# ---- what was learnt, in the words of the user -----------------------------------------


def top_features(plan: ModelPlan, weights: Floats, n: int, labels: Sequence[object]) -> Ranked:
    """Return the features of nodes with the largest weights, each with its label and weight.

    Where positions have weights of their own, their number follows the name of the feature.
    """
    term = plan.model.groups[0][0]
    own = weights[plan.model.blocks[0][0]]
    top = np.argsort(-np.abs(own), kind="stable")[:n]
    columns, states, width = meaning(term, top)
    names = plan.reader.names()
    repeated = width > len(names)
    return [
        (feature_name(names, int(column), repeated), labels[state], float(own[place]))
        for place, column, state in zip(top, columns, states, strict=True)
    ]


def meaning(term: Term, places: Ints) -> tuple[Any, Any, int]:
    """Return column and state of some of a term's weights, and the number of columns."""
    if isinstance(term, PairsTerm):
        columns = np.searchsorted(term.offsets, places, side="right") - 1
        return columns, term.states[places], len(term.offsets) - 1
    assert isinstance(term, LinearTerm)
    return places // term.size, places % term.size, term.n_features


def feature_name(names: list[str], column: int, repeated: bool) -> str:
    """Name a feature by its column, with its position where names are `repeated` for each."""
    position, number = divmod(column, len(names))
    return f"{names[number]} at {position}" if repeated else names[number]
