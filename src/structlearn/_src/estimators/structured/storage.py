"""Structured estimators in files: their plan, their weights, and how learning went."""

from __future__ import annotations

from typing import Any

import numpy as np

from structlearn._src.common.errors import FormatError
from structlearn._src.common.history import History
from structlearn._src.estimators.storage import Family
from structlearn._src.estimators.structured.base import LATER, ModelPlan
from structlearn._src.files import file_checks
from structlearn._src.files.codec import Codec, path_of
from structlearn._src.model.term import PairsTerm, TableTerm
from structlearn._src.text.labels import Forbidden
from structlearn._src.text.template import parse_template

_HERE = "structlearn._src.estimators.structured"
_FIRST_COLUMNS = 5  # of a history in the first files; others are kept where they hold something
_LEARNT = (
    "plan_", "weights_", "history_", "status_", "ended_", "n_iter_", "converged_", "n_seen_",
    "value_", "state_",
)  # fmt: skip


def _vocabulary(of: Any, given: dict[str, Any]) -> Any:
    file_checks.offsets("the attributes", given["offsets"], len(given["text"]))
    return of.from_state(given)


def _table_parts(table: TableTerm) -> dict[str, Any]:
    ties = None if table.ties is None else np.array(table.ties, np.int64)
    return {"size": table.size, "ties": ties}


def _table(of: Any, given: dict[str, Any]) -> TableTerm:
    size, ties = given["size"], given["ties"]
    if ties is None:
        return of(size)
    if ties.shape != (size,):
        raise FormatError(f"a table of {size} entries has {len(ties)} ties")
    file_checks.within("a tie", ties, -1, size)
    return of(size, tuple(ties.tolist()))


def _history_parts(history: History) -> dict[str, Any]:
    table = history.table
    table[:, 1] = 0.0  # seconds differ between runs that are otherwise equal
    known = table[:, :_FIRST_COLUMNS] if np.isnan(table[:, _FIRST_COLUMNS:]).all() else table
    return {"table": known}


#: What plans are made of, by names that files have had from the beginning, whatever the classes
#: and their fields are called by now.
_RECORDS = {
    "plan": Codec(f"{_HERE}.base:ModelPlan", {"design": "choices"}),
    "choices": Codec(
        "structlearn._src.model.design:PairwiseDesign",
        {"forbidden": "bars", "edge_pattern": "joined"},
    ),
    "whole": Codec("structlearn._src.model.design:HiddenChainDesign"),
    "bars": Codec("structlearn._src.text.labels:Forbidden", {"pairs": "steps"}),
    "model": Codec("structlearn._src.model.model:LinearModel"),
    "linear": Codec("structlearn._src.model.term:LinearTerm"),
    "pairs": Codec("structlearn._src.model.term:PairsTerm"),
    "table": Codec("structlearn._src.model.term:TableTerm", parts=_table_parts, build=_table),
    "classes": Codec(f"{_HERE}.base:ClassCoder"),
    "row-reader": Codec(f"{_HERE}.read_sequences:RowReader"),
    "sequence-reader": Codec(f"{_HERE}.read_sequences:SequenceReader"),
    "column-reader": Codec(f"{_HERE}.read_sequences:ColumnReader", left_out=frozenset({"n_jobs"})),
    "graph-reader": Codec(f"{_HERE}.read_graphs:GraphReader"),
    "grid-reader": Codec(f"{_HERE}.read_graphs:GridReader"),
    "array-nodes": Codec(f"{_HERE}.read_sequences:ArrayNodes"),
    "sparse-nodes": Codec(f"{_HERE}.read_sequences:SparseNodes"),
    "token-nodes": Codec(f"{_HERE}.read_sequences:TokenNodes"),
    "attributes": Codec("structlearn._src.text.attributes:Attributes"),
    "vocabulary": Codec("structlearn._src.text.tokens:Vocabulary", build=_vocabulary),
    "template": Codec(
        "structlearn._src.text.template:Template",
        parts=lambda template: {"text": template.text},
        build=lambda _, given: parse_template(**given),
    ),
    "ending": Codec(
        "structlearn._src.common.watch:Ending",
        parts=lambda ending: {"value": ending.value},
        build=lambda of, given: of(**given),
    ),
    "history": Codec(
        "structlearn._src.common.history:History",
        parts=_history_parts,
        build=lambda of, given: of(**given),
    ),
}


def _solvers() -> dict[str, Codec]:
    """Return all solvers; they are imported only for files that hold one."""
    from structlearn._src.solve.pick import solver_classes

    return {name: Codec(path_of(of)) for name, of in solver_classes().items()}


def _restore(estimator: Any, learnt: dict[str, Any]) -> None:
    """Refuse what would lead compiled code, which trusts its arrays, astray."""
    estimator.state_ = None  # the steps of `partial_fit` begin anew
    plan = estimator.plan_
    if not isinstance(plan, ModelPlan):
        raise FormatError("there is no plan in it")
    estimator._set_plan(plan)
    if "feature_names_in_" in learnt:  # in files from before readers had them
        estimator.feature_names_in_ = learnt["feature_names_in_"]
    file_checks.floats("the weights", estimator.weights_, (plan.model.n_weights,))
    sizes = plan.design.sizes(plan.states, len(plan.model.groups))
    for terms, size in zip(plan.model.groups, sizes, strict=True):
        for term in terms:
            _check_term(term, size)
    if plan.design.forbidden is not None:
        _check_forbidden(plan.design.forbidden, plan.states)


def _check_term(term: Any, size: int) -> None:
    if term.size != size:
        raise FormatError(f"there are tables of {term.size} entries where {size} are needed")
    if isinstance(term, PairsTerm):
        file_checks.offsets("pairs of feature and label", term.offsets, len(term.states))
        file_checks.within("a pair's label", term.states, 0, size)


def _check_forbidden(forbidden: Forbidden, states: int) -> None:
    shapes = [array.shape for array in (forbidden.first, forbidden.last, forbidden.pairs)]
    if shapes != [(states,), (states,), (states, states)]:
        raise FormatError("the forbidden labels are not as many as the labels")


FAMILIES = (
    Family(
        estimators={
            "graph-labeler": f"{_HERE}.graph:GraphLabeler",
            "grid-labeler": f"{_HERE}.graph:GridLabeler",
            "multiclass-classifier": f"{_HERE}.classifier:MulticlassClassifier",
            "sequence-classifier": f"{_HERE}.classifier:SequenceClassifier",
            "sequence-labeler": f"{_HERE}.sequence:SequenceLabeler",
        },
        fitted_attribute="weights_",
        learnt=_LEARNT,
        restore=_restore,
        extra_state=lambda _: {"state_": None},
        records=_RECORDS,
        more=_solvers,
        absent=LATER,
    ),
)
