"""One class for every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.estimators.base import check_is_fitted
from structlearn._src.estimators.doc import documented
from structlearn._src.estimators.structured.classes import StructuredClassifier
from structlearn._src.estimators.structured.plan import Batch, Coder, Design, Reader
from structlearn._src.estimators.structured.read_sequences import RowReader
from structlearn._src.model.graph_data import GraphData
from structlearn._src.model.model import Tables
from structlearn._src.model.pairwise import PairwiseDesign


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class MulticlassClassifier(StructuredClassifier):
    r"""One class for every row: logistic regression, multiclass SVM and all between.

    .. math:: \theta(y) = \langle w_y, x \rangle

    Parameters
    ----------
    fit_intercept
        Whether every row has one more feature, which is always 1. Its weights are penalised like
        all others.
    {shared}

    Notes
    -----
    `X` is an array or a SciPy sparse matrix (examples, features) and `y` holds one class for each,
    where -1 is a class like any other. There is nothing hidden, so that ``loss="log"`` is
    multinomial logistic regression, and ``loss="hinge"`` the support vector machine of Crammer
    and Singer. With two classes both have weights, so that the penalty on their difference is half
    of that in scikit-learn's binary models.

    {notes}

    References
    ----------
    K. Crammer and Y. Singer, "On the algorithmic implementation of multiclass kernel-based vector
    machines", 2001.
    {references}

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["low", "low", "high", "high"]
    >>> MulticlassClassifier(C=10.0).fit(X, y).predict([[0.5], [2.5]])
    array(['low', 'high'], dtype='<U4')
    """

    fit_intercept: bool = True

    def _validated(self, X: Any, y: Any, first: bool) -> tuple[Any, Any]:
        from sklearn.utils.validation import validate_data

        checks.not_masked("the features", X)
        X, y = super()._validated(X, y, first)
        return validate_data(self, X, y, reset=first, accept_sparse="csr", dtype=np.float64)

    def _reader(self, X: Any) -> tuple[Reader, GraphData]:
        columns = tuple(getattr(self, "feature_names_in_", ()))  # set by scikit-learn's check
        reader = RowReader(X.shape[1], bool(self.fit_intercept), columns)
        return reader, reader.read(X)

    def _design(self, reader: Reader, data: GraphData, coder: Coder) -> Design:
        return PairwiseDesign(chain=True)

    def _read(self, X: Any) -> tuple[Batch, Tables]:
        from sklearn.utils.validation import validate_data

        check_is_fitted(self, "weights_")
        checks.not_masked("the features", X)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        return super()._read(X)

    def decision_function(self, X: Any) -> Floats:
        """Return the scores (examples, classes); with two classes (examples,), their difference."""
        scores = self._read(X)[1][0]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    @property
    def coef_(self) -> Floats:
        """Weights (classes, features); with two classes (1, features), their difference."""
        return self._by_class()[:, : self.n_features_in_]

    @property
    def intercept_(self) -> Floats:
        """Weights (classes,) of the constant feature, zeros without; (1,) with two classes."""
        return self._by_class()[:, self.n_features_in_ :].sum(axis=1)

    def _by_class(self) -> Floats:
        check_is_fitted(self, "weights_")
        table = self.weights_.reshape(-1, self.plan_.states).T
        return table[1:] - table[:1] if len(table) == 2 else table

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
