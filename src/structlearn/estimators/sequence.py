"""Label every position of sequences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structlearn.common import checks
from structlearn.common.checks import Ints
from structlearn.common.errors import ArgumentError
from structlearn.data.columns import Columns
from structlearn.data.labels import LabelCoder, forbidden_transitions
from structlearn.data.template import Template, parse_template
from structlearn.estimators import decode
from structlearn.estimators.base import StructuredEstimator
from structlearn.estimators.plan import HIDDEN, SPACES, Choices, Plan, check_forms, make_model
from structlearn.estimators.readers import ColumnReader, SequenceReader
from structlearn.graph.batch import Bars
from structlearn.objective.examples import Examples


@dataclass(kw_only=True, eq=False, repr=False)
class SequenceLabeler(StructuredEstimator):
    """Label every position of sequences: CRF, structured SVM and all between, on chains."""

    features: str = "dense"
    tied: bool = True
    hidden: str | None = None
    hidden_states: int = 2
    forbidden: Any = None
    template: Template | str | None = None
    fit_intercept: bool = False

    def _learn(self, X: Any, Y: Any) -> tuple[Plan, Examples]:
        checks.one_of("features", self.features, SPACES)
        if self.hidden is not None:
            checks.one_of("hidden", self.hidden, HIDDEN)
        reader: SequenceReader | ColumnReader
        if isinstance(X, Columns):
            reader, shape = ColumnReader.learn(X, self._template(), self.n_jobs)
        else:
            reader, shape = SequenceReader.learn(X, self.fit_intercept)
        check_forms(Y, shape)
        coder = LabelCoder().fit(Y)
        labels = coder.transform(Y)
        choices = Choices(
            space=self.features,
            tied=self.tied,
            hidden=self.hidden,
            hidden_states=checks.whole("hidden_states", self.hidden_states, low=1),
            bars=self._bars(coder, labels, shape.offsets),
            chain=True,
        )
        plan = Plan(reader, coder, choices, make_model(shape, labels, len(coder.names), choices))
        return plan, plan.lay_out(shape, labels)

    def _template(self) -> Template:
        if self.template is None:
            return parse_template()
        return parse_template(self.template) if isinstance(self.template, str) else self.template

    def _bars(self, coder: LabelCoder, labels: Ints, offsets: Ints) -> Bars | None:
        if self.forbidden is None:
            return None
        found = forbidden_transitions(coder.names.tolist(), self.forbidden)
        bars = Bars(found.starts, found.ends, found.pairs)
        _check_allowed(bars, coder, labels, offsets)
        return bars

    def decode(self, X: Any, k: int = 1) -> list[list[tuple[float, Any]]]:
        """Return the `k` best labellings of every sequence, best first, each with its score."""
        checks.whole("k", k, low=1)
        shape, examples, tables = self._tables(X)
        scores, labels = decode.k_best(examples.structure, tables, k, self._options())
        found = [self.plan_.split(self.classes_[row], shape) for row in labels]
        return [
            [(float(scores[i, j]), found[j][i]) for j in range(k) if np.isfinite(scores[i, j])]
            for i in range(len(shape.forms))
        ]


def _check_allowed(bars: Bars, coder: LabelCoder, labels: Ints, offsets: Ints) -> None:
    """Refuse training sequences that do what is forbidden."""
    names = coder.names
    first, last = labels[offsets[:-1]], labels[offsets[1:] - 1]
    for place, row, barred in (("begins", first, bars.first), ("ends", last, bars.last)):
        wrong = np.flatnonzero((row >= 0) & barred[row])
        if len(wrong):
            raise ArgumentError(
                f"sequence {wrong[0]} {place} with {names[row[wrong[0]]]!r}, which `forbidden` "
                f"rules out; mend its labels or the rule"
            )
    inner = np.ones(len(labels), np.bool_)
    inner[offsets[:-1]] = False
    later = np.flatnonzero(inner)
    a, b = labels[later - 1], labels[later]
    wrong = np.flatnonzero((a >= 0) & (b >= 0) & bars.steps[a, b])
    if len(wrong):
        sequence = int(np.searchsorted(offsets, later[wrong[0]], side="right")) - 1
        raise ArgumentError(
            f"in sequence {sequence}, {names[b[wrong[0]]]!r} follows {names[a[wrong[0]]]!r}, which "
            f"`forbidden` rules out; mend its labels or the rule"
        )
