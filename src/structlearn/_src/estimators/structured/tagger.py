"""Tokens of one sentence in, labels out: for programs that hold strings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.base import check_is_fitted
from structlearn._src.estimators.structured.read_sequences import ColumnReader
from structlearn._src.text.columns import parse_columns

if TYPE_CHECKING:
    from structlearn._src.estimators.structured.sequence import SequenceLabeler
    from structlearn._src.text.columns import Columns


class Tagger:
    """Labels the tokens of one sentence at a time, as the taggers of CRFsuite and CRF++ do.

    Parameters
    ----------
    model
        A fitted `SequenceLabeler`, or the path of one that `save` or ``structlearn train`` wrote.

    Notes
    -----
    Tokens have the form of those in training. For a model that was trained on columns with a
    template, a token is a string, or a tuple of strings if the template reads several columns. For
    any other model it is a list of attributes, a dictionary, or a row of an array; a single string
    counts as a list of one attribute.

    See Also
    --------
    SequenceLabeler : Labels many sequences at once, which is faster.

    Examples
    --------
    >>> from structlearn import SequenceLabeler, Tagger
    >>> X = [[["the"], ["cat"]], [["a"], ["dog"], ["sleeps"]]]
    >>> labeler = SequenceLabeler(C=10.0).fit(X, [["D", "N"], ["D", "N", "V"]])
    >>> tagger = Tagger(labeler)
    >>> tagger.tag(["the", "dog"])
    ['D', 'N']
    """

    def __init__(self, model: SequenceLabeler | str | os.PathLike[str]) -> None:
        from structlearn._src.estimators.structured.sequence import SequenceLabeler

        if isinstance(model, str | os.PathLike):
            from structlearn._src.estimators.storage import load

            name, model = f" in {os.fspath(model)}", load(model)
        else:
            name = ""
        if not isinstance(model, SequenceLabeler):
            raise ArgumentError(
                f"the model{name} is of type {type(model).__name__}, but a Tagger labels tokens; "
                f"give a fitted SequenceLabeler, or the path of one"
            )
        check_is_fitted(model, "weights_")
        self.model = model

    @property
    def labels(self) -> list[Any]:
        """All labels, in the order of `classes_`.

        Examples
        --------
        >>> from structlearn import SequenceLabeler, Tagger
        >>> Tagger(SequenceLabeler().fit([[["a"], ["b"]]], [["x", "y"]])).labels
        ['x', 'y']
        """
        found: list[Any] = self.model.classes_.tolist()
        return found

    def tag(self, tokens: Sequence[Any]) -> list[Any]:
        """Label the tokens of a sentence.

        Parameters
        ----------
        tokens
            The tokens, in the form of those in training.

        Returns
        -------
        list
            One label for each token.

        Examples
        --------
        >>> from structlearn import SequenceLabeler, Tagger
        >>> labeler = SequenceLabeler(C=10.0).fit([[["a"], ["b"]]], [["x", "y"]])
        >>> Tagger(labeler).tag(["a", "b"])
        ['x', 'y']
        """
        if not len(tokens):
            return []
        found: list[Any] = self.model.predict(self._sentence(tokens))[0].tolist()
        return found

    def probabilities(self, tokens: Sequence[Any]) -> list[dict[Any, float]]:
        """Return the probability of each label of each token.

        They are probabilities after training with ``loss="log"``; after training with a margin they
        are scores that are not calibrated.

        Parameters
        ----------
        tokens
            The tokens, in the form of those in training.

        Returns
        -------
        list of dict
            For each token, a probability for each label.

        Examples
        --------
        >>> from structlearn import SequenceLabeler, Tagger
        >>> labeler = SequenceLabeler(C=10.0).fit([[["a"], ["b"]]], [["x", "y"]])
        >>> first, second = Tagger(labeler).probabilities(["a", "b"])
        >>> round(first["x"], 2)
        0.93
        """
        if not len(tokens):
            return []
        (rows,) = self.model.predict_marginals(self._sentence(tokens))
        return [dict(zip(self.labels, row, strict=True)) for row in rows.tolist()]

    def probability(self, tokens: Sequence[Any], labels: Sequence[Any]) -> float:
        """Return the probability of one labelling of a whole sentence.

        Parameters
        ----------
        tokens
            The tokens, in the form of those in training.
        labels
            A label for each token.

        Returns
        -------
        float
            The probability of all of these labels together.

        Examples
        --------
        >>> from structlearn import SequenceLabeler, Tagger
        >>> labeler = SequenceLabeler(C=10.0).fit([[["a"], ["b"]]], [["x", "y"]])
        >>> round(Tagger(labeler).probability(["a", "b"], ["x", "y"]), 2)
        0.89
        """
        if len(tokens) != len(labels):
            raise ArgumentError(
                f"there are {len(tokens)} tokens and {len(labels)} labels; give one label for each"
            )
        unknown = [label for label in labels if label not in self.labels]
        if unknown:
            known = ", ".join(map(repr, self.labels))
            raise ArgumentError(f"the model has no label {unknown[0]!r}; choose from {known}")
        if not len(tokens):
            return 1.0
        given = [np.array(list(labels), object)]
        return float(self.model.dominance(self._sentence(tokens), given).true[0])

    # ---- tokens --------------------------------------------------------------------------

    def _sentence(self, tokens: Sequence[Any]) -> Any:
        """Return what the model reads for one sentence."""
        reader = self.model.plan_.reader
        if isinstance(reader, ColumnReader):
            return self._columns(tokens, reader)
        if isinstance(tokens, np.ndarray) and tokens.ndim == 2:
            return [tokens]
        return [[[token] if isinstance(token, str) else token for token in tokens]]

    def _columns(self, tokens: Sequence[Any], reader: ColumnReader) -> Columns:
        rows = [(token,) if isinstance(token, str) else tuple(token) for token in tokens]
        for row in rows:
            for cell in row:
                if not isinstance(cell, str) or not cell or cell.split() != [cell]:
                    raise ArgumentError(
                        f"a token has the cell {cell!r}, but this model was trained on columns, "
                        f"whose cells are strings without spaces; replace the spaces"
                    )
        columns = parse_columns("\n".join("\t".join(row) for row in rows).encode(), "the tokens")
        needed = reader.attributes.template.width
        if columns.width < needed:
            raise ArgumentError(
                f"tokens have {columns.width} cells, but the template of this model reads {needed} "
                f"columns; give each token as a tuple of {needed} strings, such as (word, tag)"
            )
        return columns
