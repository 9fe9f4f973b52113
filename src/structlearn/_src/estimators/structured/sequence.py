"""Label every position of sequences."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.place import placed_as
from structlearn._src.estimators.base import threads
from structlearn._src.estimators.doc import documented
from structlearn._src.estimators.structured.base import Batch, Coder, Design, Reader
from structlearn._src.estimators.structured.crfsuite import from_crfsuite
from structlearn._src.estimators.structured.labeler import Labeler
from structlearn._src.estimators.structured.read_sequences import ColumnReader, SequenceReader
from structlearn._src.graph.batch import Sequences
from structlearn._src.inference import decode
from structlearn._src.inference.chain_batch import clamp_labels
from structlearn._src.model.model import GraphData, Tables
from structlearn._src.text.columns import Columns
from structlearn._src.text.labels import forbidden_transitions, name_labels
from structlearn._src.text.template import Template, as_template


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class SequenceLabeler(Labeler):
    r"""Label every position of sequences, with a chain CRF, a structured SVM or a loss in between.

    .. math:: \theta(y) = \sum_t \langle w_{y_t}, x_t \rangle + \sum_t W_{y_t, y_{t+1}}

    Parameters
    ----------
    {features}
    transitions
        "table" has a weight for every pair of neighbouring labels; "features" also one for every
        pair of labels and every feature of the later position; "none" has no transitions.
    forbidden : str or list of pairs, optional
        Transitions to rule out in training and prediction: "BIO", "BIOES", "IOB1", or pairs
        ``(a, b)`` where ``b`` must not follow ``a``; pairs of labels that do not occur have no
        effect.
    template
        A template in the language of CRF++, for `X` given as columns; by default the template that
        CRF++ uses for chunking.
    min_count
        Ignore attributes of tokens and columns that occur less often.
    fit_intercept
        Whether every position has an additional feature that is always 1.
    {hidden}
    {shared}

    Notes
    -----
    `X` is a list with one entry per sequence: an array (positions, features), a SciPy sparse
    matrix of that shape, or a list of tokens, each a dictionary or a list of strings. It may also
    be the result of `read_columns`, whose columns the template reads. `Y` is a list with the labels
    of every sequence, where None, and -1 among integers, marks an unknown label.

    {notes}

    References
    ----------
    J. Lafferty, A. McCallum and F. Pereira, "Conditional random fields", 2001.
    I. Tsochantaridis et al., "Large margin methods for structured and interdependent output
    variables", 2005.
    {references}

    Examples
    --------
    >>> X = [[["the"], ["cat"]], [["a"], ["dog"], ["sleeps"]]]
    >>> Y = [["D", "N"], ["D", "N", "V"]]
    >>> labeler = SequenceLabeler(C=10.0).fit(X, Y)
    >>> labeler.predict([[["the"], ["dog"]]])
    [array(['D', 'N'], dtype=object)]
    """

    features: str = "dense"
    transitions: str = "table"
    forbidden: Any = None
    template: Template | str | None = None
    min_count: int = 1
    fit_intercept: bool = False

    @classmethod
    def from_crfsuite(cls, **parameters: Any) -> SequenceLabeler:
        """Make a labeler from the parameters of `sklearn_crfsuite.CRF`.

        Parameters
        ----------
        **parameters
            Parameters of `sklearn_crfsuite.CRF`, with its defaults: `algorithm`, `c1`, `c2`,
            `min_freq`, `all_possible_states`, `all_possible_transitions`, `max_iterations`,
            `delta`, `verbose`. Details of its solvers are ignored with an `IgnoredOptionWarning`;
            the algorithms "pa" and "arow" are refused. Parameters of this class are accepted too.

        Returns
        -------
        SequenceLabeler
            Not fitted, with the same objective.

        Examples
        --------
        >>> from structlearn import SequenceLabeler
        >>> SequenceLabeler.from_crfsuite(algorithm="lbfgs", c2=0.5, max_iterations=100)
        SequenceLabeler(features='sparse', max_iter=100, solver='lbfgs')
        """
        return cls(**from_crfsuite(parameters, set(cls._get_param_names())))

    def _reader(self, X: Any) -> tuple[Reader, GraphData]:
        if self.template is not None and not isinstance(X, Columns):
            raise ArgumentError(
                f"template is for columns of text, and X is a {type(X).__name__}; give what "
                f"read_columns returns, or no template"
            )
        if isinstance(X, Columns) and self.transitions == "features":
            raise ArgumentError(
                "transitions='features' is not for columns; write lines that begin with B into "
                "the template instead"
            )
        reader: Reader
        if isinstance(X, Columns):
            n_jobs = threads(self.n_jobs)
            reader, data = ColumnReader.learn(X, as_template(self.template), self.min_count, n_jobs)
        else:
            between = self.transitions == "features"
            reader, data = SequenceReader.learn(X, self.fit_intercept, between, self.min_count)
        if self.forbidden is not None and self._edges(reader) == "none":
            raise ArgumentError("forbidden transitions need transitions, and there are none")
        return reader, data

    def _edges(self, reader: Reader) -> str:
        if self.transitions == "none":
            return "none"
        return reader.edges if isinstance(reader, ColumnReader) else "table"

    def _design(self, reader: Reader, data: GraphData, coder: Coder) -> Design:
        rule = self.forbidden
        forbidden = None if rule is None else forbidden_transitions(coder.names.tolist(), rule)
        choices = {"space": self.features, "edges": self._edges(reader), "forbidden": forbidden}
        return self._pairwise(chain=True, **choices).fitted_to(data)

    def _numbers(self, coder: Coder, design: Design, Y: Any, data: GraphData) -> Ints:
        labels = super()._numbers(coder, design, Y, data)
        if design.forbidden is not None:
            sequences = Sequences(data.offsets, len(coder.names), design.forbidden)
            _check_allowed(sequences, coder, labels)
        return labels

    def _read(self, X: Any) -> tuple[Batch, Tables]:
        batch, tables = super()._read(X)
        forbidden = self.plan_.design.forbidden
        if forbidden is not None and self.plan_.design.hidden is not None:
            # Only here: without hidden states decoding finds out by itself.
            decode.check_possible(Sequences(batch.data.offsets, self.plan_.states, forbidden))
        return batch, tables

    @placed_as("over_examples")
    def decode(self, X: Any, k: int = 1) -> list[list[tuple[float, Any]]]:
        """Return the `k` best labellings of every sequence, best first, each with its score.

        Parameters
        ----------
        X : list
            Sequences, as in `fit`.
        k
            Number of labellings for each sequence.

        Returns
        -------
        list of lists of tuples (score, labels)
            For every sequence at most `k` labellings, fewer if fewer exist: the score, and an array
            of shape (positions,) with the labels.

        Examples
        --------
        >>> from structlearn import SequenceLabeler
        >>> X = [[["the"], ["cat"]], [["a"], ["dog"], ["sleeps"]]]
        >>> labeler = SequenceLabeler(C=10.0).fit(X, [["D", "N"], ["D", "N", "V"]])
        >>> for score, labels in labeler.decode(X[:1], k=2)[0]:
        ...     print(round(score, 2), labels.tolist())
        3.71 ['D', 'N']
        0.06 ['N', 'V']
        """
        checks.integer("k", k, low=1)
        batch, tables = self._read(X)
        scores, labels = decode.k_best(batch.examples.structure, tables, k, self._options())
        found = [batch.data.cut(name_labels(self.plan_.classes, row)) for row in labels]
        return [
            [(float(scores[i, j]), found[j][i]) for j in range(k) if np.isfinite(scores[i, j])]
            for i in range(batch.data.n_examples)
        ]


def _check_allowed(sequences: Sequences, coder: Coder, labels: Ints) -> None:
    """Refuse training sequences that cannot be as labelled without doing what is forbidden."""
    lost = decode.impossible(sequences, clamp_labels(labels, sequences.states))
    if len(lost):
        start, stop = sequences.offsets[lost[0]], sequences.offsets[lost[0] + 1]
        what = _forbidden_step(sequences, coder.names.tolist(), labels[start:stop])
        raise ArgumentError(
            f"sequence {lost[0]} {what}, which `forbidden` rules out; change its labels or the rule"
        )


def _forbidden_step(sequences: Sequences, names: list[Any], labels: Ints) -> str:
    """Say what a sequence of labels does that is forbidden."""
    forbidden = sequences.forbidden
    assert forbidden is not None
    ends = (("begins", labels[0], forbidden.first), ("ends", labels[-1], forbidden.last))
    for word, label, barred in ends:
        if label >= 0 and barred[label]:
            return f"{word} with {names[label]!r}"
    for t, (a, b) in enumerate(pairwise(labels)):
        if a >= 0 and b >= 0 and forbidden.pairs[a, b]:
            return f"has {names[b]!r} after {names[a]!r} at position {t + 1}"
    return "has unknown labels that no labels can fill in"
