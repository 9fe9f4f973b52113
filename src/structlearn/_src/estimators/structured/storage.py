"""Structured estimators in files: their plan, their weights, and how learning went."""

from __future__ import annotations

from typing import Any

import numpy as np

from structlearn._src.common.errors import FormatError
from structlearn._src.common.history import History
from structlearn._src.estimators.bayesian import file_checks as expect
from structlearn._src.estimators.codec import Family, Kind, Kinds, record
from structlearn._src.estimators.structured.base import StructuredEstimator
from structlearn._src.estimators.structured.classes import ClassCoder
from structlearn._src.estimators.structured.classifier import SequenceClassifier
from structlearn._src.estimators.structured.graph import GraphLabeler
from structlearn._src.estimators.structured.grid import GridLabeler
from structlearn._src.estimators.structured.multiclass import MulticlassClassifier
from structlearn._src.estimators.structured.plan import ModelPlan
from structlearn._src.estimators.structured.read_graphs import GraphReader
from structlearn._src.estimators.structured.read_grids import GridReader
from structlearn._src.estimators.structured.read_nodes import ArrayNodes, SparseNodes, TokenNodes
from structlearn._src.estimators.structured.read_sequences import (
    ColumnReader,
    RowReader,
    SequenceReader,
)
from structlearn._src.estimators.structured.sequence import SequenceLabeler
from structlearn._src.model.hidden_chain import HiddenChainDesign
from structlearn._src.model.model import LinearModel
from structlearn._src.model.pairwise import PairwiseDesign
from structlearn._src.model.term import LinearTerm, PairsTerm, TableTerm
from structlearn._src.solve.annealed import Annealed
from structlearn._src.solve.cccp import Cccp
from structlearn._src.solve.descent import Descent
from structlearn._src.solve.frank_wolfe import FrankWolfe
from structlearn._src.solve.lbfgs import Lbfgs
from structlearn._src.solve.online import Online
from structlearn._src.solve.owlqn import Owlqn
from structlearn._src.solve.paired import Paired
from structlearn._src.solve.sdca import Sdca
from structlearn._src.solve.stochastic import Stochastic
from structlearn._src.text.attributes import Attributes
from structlearn._src.text.labels import Forbidden
from structlearn._src.text.template import Template, parse_template
from structlearn._src.text.tokens import Vocabulary

_LEARNT = (
    "plan_", "weights_", "history_", "status_", "n_iter_", "converged_", "n_seen_", "value_",
    "state_", "n_features_in_", "feature_names_in_",
)  # fmt: skip

# ---- how parts are laid out --------------------------------------------------------------


def _timeless(history: History) -> dict[str, Any]:
    table = history.table
    table[:, 1] = 0.0  # seconds differ between runs that are otherwise equal
    return {"table": table}


def _vocabulary(given: dict[str, Any]) -> Vocabulary:
    expect.offsets("the attributes", given["offsets"], len(given["text"]))
    return Vocabulary.from_state(given)


def _pairs(given: dict[str, Any]) -> PairsTerm:
    pairs = PairsTerm(**given)
    expect.offsets("the pairs of feature and label", pairs.offsets, len(pairs.states))
    expect.within("a pair's label", pairs.states, 0, pairs.size)
    return pairs


def _ties(table: TableTerm) -> dict[str, Any]:
    ties = None if table.ties is None else np.array(table.ties, np.int64)
    return {"size": table.size, "ties": ties}


def _table(given: dict[str, Any]) -> TableTerm:
    size, ties = given["size"], given["ties"]
    if ties is None:
        return TableTerm(size)
    if ties.shape != (size,):
        raise FormatError(f"a table of {size} entries has {len(ties)} ties")
    expect.within("a tie", ties, -1, size)
    return TableTerm(size, tuple(ties.tolist()))


# ---- does it fit together? ---------------------------------------------------------------


def _check(estimator: StructuredEstimator, _: dict[str, Any]) -> None:
    """Refuse what would lead compiled code, which trusts its arrays, astray."""
    if not isinstance(estimator.plan_, ModelPlan):
        raise FormatError("there is no plan in it")
    plan = estimator.plan_
    expect.floats("the weights", estimator.weights_, (plan.model.n_weights,))
    sizes = plan.design.sizes(plan.states, len(plan.model.groups))
    for terms, size in zip(plan.model.groups, sizes, strict=True):
        wrong = [term.size for term in terms if term.size != size]
        if wrong:
            raise FormatError(f"there are tables of {wrong[0]} entries where {size} are needed")
    if plan.design.forbidden is not None:
        _check_forbidden(plan.design.forbidden, plan.states)


def _check_forbidden(given: Forbidden, states: int) -> None:
    shapes = [array.shape for array in (given.first, given.last, given.pairs)]
    if shapes != [(states,), (states,), (states, states)]:
        raise FormatError("the forbidden labels are not as many as the labels")


# ---- kinds -------------------------------------------------------------------------------

_ESTIMATORS: dict[str, type[StructuredEstimator]] = {
    "graph-labeler": GraphLabeler,
    "grid-labeler": GridLabeler,
    "multiclass-classifier": MulticlassClassifier,
    "sequence-classifier": SequenceClassifier,
    "sequence-labeler": SequenceLabeler,
}
_RECORDS: dict[str, type] = {
    "whole": HiddenChainDesign,
    "model": LinearModel,
    "linear": LinearTerm,
    "classes": ClassCoder,
    "row-reader": RowReader,
    "graph-reader": GraphReader,
    "grid-reader": GridReader,
    "sequence-reader": SequenceReader,
    "column-reader": ColumnReader,
    "array-nodes": ArrayNodes,
    "sparse-nodes": SparseNodes,
    "token-nodes": TokenNodes,
    "lbfgs": Lbfgs,
    "online": Online,
    "owlqn": Owlqn,
    "descent": Descent,
    "sdca": Sdca,
    "annealed": Annealed,
    "stochastic": Stochastic,
    "frank-wolfe": FrankWolfe,
    "cccp": Cccp,
    "paired": Paired,
}
KINDS = Kinds(
    Family("weights_", _LEARNT, lambda _: {"state_": None}, _check),
    _ESTIMATORS,
    {
        **{name: record(of) for name, of in _RECORDS.items()},
        # Files keep the names that these fields had first.
        "plan": record(ModelPlan, {"design": "choices"}),
        "choices": record(PairwiseDesign, {"forbidden": "bars", "edge_pattern": "joined"}),
        "bars": record(Forbidden, {"pairs": "steps"}),
        "pairs": record(PairsTerm)._replace(build=_pairs),
        "table": Kind(TableTerm, _ties, _table),
        "vocabulary": Kind(Vocabulary, Vocabulary.state, _vocabulary),
        "attributes": Kind(Attributes, Attributes.state, Attributes.from_state),
        "template": Kind(
            Template,
            lambda template: {"text": template.text},
            lambda given: parse_template(**given),
        ),
        "history": Kind(History, _timeless, lambda given: History(**given)),
    },
)
