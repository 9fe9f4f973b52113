"""Precision, recall and F1 of chunks, counted as conlleval counts them; scorers of whole sequences.

Labels are ``B-TYPE``, ``I-TYPE``, ``O``, with ``E-`` and ``S-`` for schemes that mark ends and
single tokens; the type may be missing. A chunk goes on from one token to the next if both have
the same type, the first is B or I and the second is I or E; so an I that follows nothing of its
type begins a chunk.

References
----------
.. [1] E. Tjong Kim Sang and S. Buchholz, "Introduction to the CoNLL-2000 shared task: chunking",
   CoNLL-2000.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common.arrays import Bools, Ints, cut, offsets_of
from structlearn._src.common.errors import ArgumentError
from structlearn._src.text.labels import LabelCoder, chunk_tag

#: Of an estimator, X and Y.
Scorer = Callable[[Any, Any, Any], float]


class Chunks(NamedTuple):
    """Chunk ``i`` covers the tokens ``starts[i]:ends[i]`` and is of ``kinds[types[i]]``."""

    starts: Ints
    ends: Ints
    types: Ints
    kinds: tuple[str, ...]


class ChunkScores(NamedTuple):
    """Scores of predicted chunks."""

    kinds: tuple[str, ...]  #: types of chunks, sorted
    n_true: Ints  #: (kinds,) chunks in the data
    n_found: Ints  #: (kinds,) chunks in the prediction
    n_correct: Ints  #: (kinds,) chunks in both
    n_tokens: int  #: known labels
    n_right: int  #: how many of them were predicted

    @property
    def accuracy(self) -> float:
        """Fraction of labels that are correct."""
        return _share(self.n_right, self.n_tokens)

    @property
    def precision(self) -> float:
        """Fraction of predicted chunks that are correct."""
        return _share(self.n_correct.sum(), self.n_found.sum())

    @property
    def recall(self) -> float:
        """Fraction of true chunks that were found."""
        return _share(self.n_correct.sum(), self.n_true.sum())

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return _share(2 * self.n_correct.sum(), self.n_found.sum() + self.n_true.sum())

    def only(self, kind: str) -> ChunkScores:
        """Return the counts of one type of chunk; those of tokens stay."""
        here = [self.kinds.index(kind)]
        return self._replace(
            kinds=(kind,),
            n_true=self.n_true[here],
            n_found=self.n_found[here],
            n_correct=self.n_correct[here],
        )

    def report(self) -> str:
        """Return the text that conlleval prints."""
        lines = [
            f"processed {self.n_tokens} tokens with {self.n_true.sum()} phrases; "
            f"found: {self.n_found.sum()} phrases; correct: {self.n_correct.sum()}.",
            f"accuracy: {_percent(self.accuracy)}; {_line(self)}",
        ]
        for kind in filter(None, self.kinds):
            scores = self.only(kind)
            lines.append(f"{kind:>17}: {_line(scores)}  {scores.n_found.sum()}")
        return "\n".join(lines) + "\n"


def chunk_scores(
    labels: Any, predicted: Any, offsets: Ints, names: Sequence[Hashable]
) -> ChunkScores:
    """Compare the chunks of two labellings of the same sequences.

    Parameters
    ----------
    labels, predicted : array-like of shape (tokens,)
        (tokens,) Numbers of labels. Tokens whose true label is -1 are treated as outside
        all chunks, in both.
    offsets
        (sequences + 1,) Start of each sequence.
    names
        The label of every number.

    Returns
    -------
    ChunkScores
        Counts by type of chunk, arrays of shape (types,), with `precision`, `recall`, `f1` and
        `accuracy`; `report` returns them as text, as conlleval prints them.

    Examples
    --------
    >>> scores = chunk_scores([0, 1, 2, 0], [0, 1, 2, 2], np.array([0, 4]), ["B-NP", "I-NP", "O"])
    >>> print(scores.report(), end="")
    processed 4 tokens with 2 phrases; found: 1 phrases; correct: 1.
    accuracy:  75.00%; precision: 100.00%; recall:  50.00%; FB1:  66.67
                   NP: precision: 100.00%; recall:  50.00%; FB1:  66.67  1
    """
    true, guessed = (np.asarray(given, np.int64) for given in (labels, predicted))
    if true.shape != guessed.shape or guessed.min(initial=0) < 0:
        raise ArgumentError(
            f"{len(true)} labels and {len(guessed)} predictions were given; every token needs one "
            f"of each, and a prediction is never hidden"
        )
    known = true >= 0
    here = find_chunks(true, offsets, names)
    there = find_chunks(np.where(known, guessed, -1), offsets, names)
    n_true, n_found, n_correct = (
        np.bincount(types, minlength=len(here.kinds)) for types in _common(here, there)
    )
    used = np.flatnonzero(n_true + n_found)
    return ChunkScores(
        kinds=tuple(here.kinds[i] for i in used),
        n_true=n_true[used],
        n_found=n_found[used],
        n_correct=n_correct[used],
        n_tokens=int(known.sum()),
        n_right=int((true == guessed)[known].sum()),
    )


def find_chunks(labels: Any, offsets: Ints, names: Sequence[Hashable]) -> Chunks:
    """Return the chunks of labelled sequences; a label of -1 is outside."""
    kinds, types, joined = _grammar(names)
    flat = np.asarray(labels, np.int64)
    before = np.append(-1, flat[:-1])[: len(flat)]
    after = np.append(flat[1:], -1)[: len(flat)]
    lengths = np.diff(offsets)
    before[offsets[:-1][lengths > 0]] = -1
    after[offsets[1:][lengths > 0] - 1] = -1
    inside = types[flat] >= 0
    starts = np.flatnonzero(inside & ~joined[before, flat])
    ends = np.flatnonzero(inside & ~joined[flat, after]) + 1
    return Chunks(starts, ends, types[flat[starts]], kinds)


def has_chunks(names: Sequence[Hashable]) -> bool:
    """Whether labels look like those of chunks: all of them B, I, E, S or O, not only O."""
    tags = {chunk_tag(name)[0] for name in names}
    return bool(tags - {"O"}) and tags <= set("BIESO")


def _grammar(names: Sequence[Hashable]) -> tuple[tuple[str, ...], Ints, Bools]:
    """Return kinds, the kind of every label (-1: outside), and which pairs are in one chunk.

    Label -1, outside, is last in both arrays.
    """
    tags = [chunk_tag(name) for name in names]
    inside = [tag[0] in ("B", "I", "E", "S") for tag in tags]
    kinds = tuple(sorted({kind for (_, kind), within in zip(tags, inside, strict=True) if within}))
    index = {kind: number for number, kind in enumerate(kinds)}
    types = [index[tag[1]] if within else -1 for tag, within in zip(tags, inside, strict=True)]
    of = np.array([*types, -1])
    opens = np.array([*(tag[0] in ("B", "I") for tag in tags), False])
    goes_on = np.array([*(tag[0] in ("I", "E") for tag in tags), False])
    return kinds, of, opens[:, None] & goes_on & (of[:, None] == of)


def _common(here: Chunks, there: Chunks) -> tuple[Ints, Ints, Ints]:
    """Return the types of chunks here, there, and in both."""
    mine, theirs = (np.stack([c.starts, c.ends, c.types], 1) for c in (here, there))
    both = np.searchsorted(here.starts, there.starts).clip(max=max(len(mine) - 1, 0))
    same = (mine[both] == theirs).all(1) if len(mine) else np.zeros(len(theirs), np.bool_)
    return here.types, there.types, there.types[same]


def _share(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else 0.0


def _line(scores: ChunkScores) -> str:
    return (
        f"precision: {_percent(scores.precision)}; recall: {_percent(scores.recall)}; "
        f"FB1: {100 * scores.f1:6.2f}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:6.2f}%"


def scorer(scoring: str) -> Scorer:
    """Return a scorer over the labels of all nodes, ignoring unknown ones.

    scikit-learn's own scorers compare one label per example, and fail if examples have
    many.

    Parameters
    ----------
    scoring
        "chunk_f1", the F1 of chunks as computed by conlleval; "sequence_accuracy", the fraction of
        examples with all their labels correct; or the name of a scikit-learn scorer that compares
        labels, such as "accuracy" or "f1_macro", for the concatenated labels of all examples.

    Returns
    -------
    function
        A function of estimator, `X` and `Y` that returns a float, for the argument `scoring` of
        scikit-learn's model selection.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from structlearn import SequenceLabeler
    >>> X, Y = [[["the"], ["cat"], ["sat"]]] * 4, [["B-NP", "I-NP", "O"]] * 4
    >>> search = GridSearchCV(SequenceLabeler(), {"C": [1.0]}, cv=2, scoring=scorer("chunk_f1"))
    >>> float(search.fit(X, Y).best_score_)
    1.0
    """
    compare = _OWN[scoring] if scoring in _OWN else _flat(scoring)

    def score(estimator: Any, X: Any, Y: Any) -> float:
        predicted = estimator.predict(X)
        coder = LabelCoder().fit([*Y, *predicted])
        offsets = offsets_of(map(np.size, predicted))
        return compare(coder.transform(Y), coder.transform(predicted), offsets, coder.names)

    return score


def _flat(scoring: str) -> Callable[[Ints, Ints, Ints, Any], float]:
    """Return a comparison of known labels by a scorer of scikit-learn."""
    from sklearn.base import BaseEstimator
    from sklearn.metrics import get_scorer

    inner = get_scorer(scoring)

    class Labelled(BaseEstimator):  # type: ignore[misc]
        """What looks like an estimator that predicts its input."""

        def predict(self, X: Any) -> Any:
            return X

    def compare(true: Ints, found: Ints, offsets: Ints, names: Any) -> float:
        known = (true >= 0) & (found >= 0)
        return float(inner(Labelled(), names[found[known]], names[true[known]]))

    return compare


def _chunk_f1(true: Ints, found: Ints, offsets: Ints, names: Any) -> float:
    return chunk_scores(true, found, offsets, names.tolist()).f1


def _sequence_accuracy(true: Ints, found: Ints, offsets: Ints, names: Any) -> float:
    """Share of sequences with all known labels right, among those that have any."""
    right = (true < 0) | (true == found)
    pairs = zip(cut(right, offsets), cut(true >= 0, offsets), strict=True)
    return float(np.mean([own.all() for own, known in pairs if known.any()]))


_OWN = {"chunk_f1": _chunk_f1, "sequence_accuracy": _sequence_accuracy}
