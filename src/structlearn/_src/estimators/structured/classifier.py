"""One class for every sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from structlearn._src.estimators.doc import documented
from structlearn._src.estimators.structured.classes import StructuredClassifier
from structlearn._src.estimators.structured.plan import Coder, Design, Reader
from structlearn._src.estimators.structured.read_sequences import SequenceReader
from structlearn._src.model.graph_data import GraphData
from structlearn._src.model.hidden_chain import HiddenChainDesign


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class SequenceClassifier(StructuredClassifier):
    r"""One class for every sequence, over a chain of hidden states: the hidden CRF and its kin.

    .. math:: \theta(y, h) = b_y + \sum_t \big( \langle v_{h_t}, x_t \rangle + B_{y, h_t} \big)
              + \sum_t A_{y, h_t, h_{t+1}}

    Parameters
    ----------
    hidden_states
        Number of states of the hidden chain, which all classes share.
    {shared}

    Notes
    -----
    `X` is a list with one entry per sequence: an array (positions, features), a SciPy sparse
    matrix of that shape, or a list of tokens, each a dictionary or a list of strings. `y` holds
    one class for each, where -1 is a class like any other. Inference is exact.

    Hidden states make the objective non-convex: another `random_state` may lead to another, better
    or worse, minimum.

    {notes}

    References
    ----------
    A. Quattoni et al., "Hidden conditional random fields", 2007.
    {references}

    Examples
    --------
    >>> import numpy as np
    >>> up, down = np.eye(3), np.eye(3)[::-1]
    >>> classifier = SequenceClassifier(hidden_states=3, C=10.0, random_state=0)
    >>> classifier.fit([up, down], ["up", "down"]).predict([up, down, up])
    array(['up', 'down', 'up'], dtype='<U4')
    """

    hidden_states: int = 3

    def _reader(self, X: Any) -> tuple[Reader, GraphData]:
        return SequenceReader.learn(X, False)

    def _design(self, reader: Reader, data: GraphData, coder: Coder) -> Design:
        return HiddenChainDesign(self.hidden_states)

    def _featured(self) -> Sequence[object]:
        return range(self.plan_.design.hidden_states)

    def predict_hidden(self, X: Any) -> list[Any]:
        """Return the best hidden states of every sequence given its predicted class."""
        batch, tables = self._read(X)
        found = self._hidden(batch, tables, self._best(batch, tables))
        return batch.data.cut(found[batch.hidden_variables])
