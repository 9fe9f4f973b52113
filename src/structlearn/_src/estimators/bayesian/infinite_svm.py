"""Mixtures of any number of linear classifiers, by Gibbs sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.base import ClassifierMixin, as_classes, check_is_fitted
from structlearn._src.estimators.bayesian import observed
from structlearn._src.estimators.bayesian.sampled import (
    FittedSettings,
    Sampled,
    all_or_nothing,
    as_concentration,
    digest,
    moderate,
    moves,
)
from structlearn._src.estimators.doc import documented
from structlearn._src.sample import mixture
from structlearn._src.sample.emission import Gaussian
from structlearn._src.sample.hinge import Hinge, LabelEmission
from structlearn._src.sample.mixture import MixtureDraw, MixtureInfo, MixtureModel, MixtureSampler


class Scaled(ClassifierMixin, FittedSettings):
    """Base class of classifiers of rows that scale features to mean 0 and deviation 1."""

    n_features_in_: int

    def _read(self, X: Any, y: Any) -> tuple[Floats, Ints]:
        """Learn the classes and the scale; return rows and numbers of classes."""
        from sklearn.utils.validation import validate_data

        checks.not_dates("the features", X)
        X, y = validate_data(self, observed.unmasked(X), as_classes(y), dtype=np.float64)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ArgumentError(
                f"y has one class only, {self.classes_.tolist()[0]!r}; a classifier needs two"
            )
        self.centre_, self.scale_ = observed.scale_of(X)
        return X, labels.astype(np.int64)

    def _scaled(self, X: Floats) -> Floats:
        return observed.scaled(X, self.centre_, self.scale_)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of all classes (rows, classes).

        Parameters
        ----------
        X : array of shape (rows, features)
            Features.

        Returns
        -------
        array of shape (rows, classes)
            Fractions that sum to 1, in the order of `classes_`.

        Examples
        --------
        >>> from structlearn import InfiniteSVM
        >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], ["low", "low", "high", "high"]
        >>> model = InfiniteSVM(burn_in=10, n_draws=3, random_state=0).fit(X, y)
        >>> model.predict_proba([[1.5]]).shape
        (1, 2)
        """
        from sklearn.utils.validation import validate_data

        fitted = self._with_fitted_params()
        checks.not_dates("the features", X)
        X = validate_data(self, observed.unmasked(X), reset=False, dtype=np.float64)
        return fitted._shares(fitted._scaled(X))

    def predict(self, X: Any) -> Any:
        """Return the most probable class of every row.

        Parameters
        ----------
        X : array of shape (rows, features)
            Features.

        Returns
        -------
        array of shape (rows,)
            Classes.

        Examples
        --------
        >>> from structlearn import InfiniteSVM
        >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], ["low", "low", "high", "high"]
        >>> model = InfiniteSVM(burn_in=10, n_draws=3, random_state=0).fit(X, y)
        >>> model.predict([[-1.5], [1.5]])
        array(['low', 'high'], dtype='<U4')
        """
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]

    def _shares(self, scaled: Floats) -> Floats:
        raise NotImplementedError


@dataclass(kw_only=True, eq=False, repr=False)
class MixtureClassifier(Scaled, Sampled):
    """Base class of mixtures whose components, parameters and classifiers are sampled."""

    variance: float = 100.0
    concentration: float | tuple[float, float] = (1.0, 1.0)
    spread: float = 0.5

    n_moves = 0  # not a parameter here: splits and merges need classifiers with paths
    _TRACED = MixtureInfo._fields
    _WATCHED = ("n_components", "log_potential")
    _CHECKS = Sampled._CHECKS | {"variance": moderate, "concentration": as_concentration}

    def _classifier(self) -> Hinge:
        """Return the classifiers of the components."""
        raise NotImplementedError

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Any:
        """Sample from the posterior given rows and a class for each.

        Parameters
        ----------
        X : array of shape (rows, features)
            Features.
        y : array-like of shape (rows,)
            Classes.

        Returns
        -------
        Self
            The fitted model.

        Examples
        --------
        >>> from structlearn import InfiniteSVM
        >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], ["low", "low", "high", "high"]
        >>> model = InfiniteSVM(burn_in=10, n_draws=3, random_state=0).fit(X, y)
        >>> model.classes_.tolist()
        ['high', 'low']
        """
        self._prepare()
        X, labels = self._read(X, y)
        self.prior_ = observed.wishart(X.shape[1], self.spread, self.strength, self.degrees)
        scaled = self._scaled(X)
        points = Gaussian(scaled, np.ones(len(X), bool), self.prior_)
        labelled = LabelEmission(
            observed.with_intercept(scaled), labels, len(self.classes_), self._classifier()
        )
        alpha = as_concentration("concentration", self.concentration)
        model = MixtureModel.of(points, labelled, alpha)
        sampler = MixtureSampler(model, self.n_start, self.n_moves)
        values = {"rows": digest(X), "labels": digest(labels)}
        self._run(sampler, self._data_signature(len(X)) | values)
        self.draws_: list[MixtureDraw] = [sampler.draw(state) for state in self._drawn()]
        return self

    def _data_signature(self, n_rows: int) -> dict[str, Any]:
        """Return what data must have in common for chains to go on."""
        return {
            "numbers of features": self.n_features_in_,
            "numbers of rows": n_rows,
            "classes": digest(self.classes_),
        }

    @property
    def n_components_(self) -> int:
        """Most frequent number of components among the draws."""
        check_is_fitted(self, "draws_")
        return int(np.bincount([len(draw.counts) for draw in self.draws_]).argmax())

    @property
    def assigned_(self) -> Ints:
        """Component of every training row, in the last state of the first chain."""
        check_is_fitted(self, "draws_")
        assigned: Ints = self.chains_[0].state.assigned
        return assigned

    def _shares(self, scaled: Floats) -> Floats:
        features = observed.with_intercept(scaled)
        return mixture.votes(self.draws_, self.prior_, self._classifier(), scaled, features)


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class InfiniteSVM(MixtureClassifier):
    r"""Mixture of an unbounded number of linear support vector machines (Gibbs infinite SVM).

    Every row belongs to a component :math:`z` of a Dirichlet process mixture, with a Gaussian
    for its features and weights :math:`\eta` of a linear classifier for its class. The posterior is

    .. math:: q(z, \eta, \mu, \Sigma) \propto p(z, \eta, \mu, \Sigma) \, p(X \mid z, \mu, \Sigma)
              \prod_d \exp \Big( -2 C \, \max_y \big( \ell [y \ne y_d] +
              \langle \eta_{z_d}^y - \eta_{z_d}^{y_d}, x_d \rangle \big) \Big)

    Parameters
    ----------
    C
        Weight of the hinge loss. With one component, it is a support vector machine whose C is
        ``2 * C * variance``.
    cost
        Cost of a wrong class, :math:`\ell`.
    {components}
    concentration
        Concentration of the Dirichlet process: the larger, the more components. A number, or shape
        and rate of its gamma prior.
    n_start
        Initial number of components, assigned at random.
    n_moves
        Split and merge moves proposed in each sweep.
    {sampling}

    Attributes
    ----------
    classes_
        Labels, in the order of the columns of `predict_proba`.
    n_components_
        Most frequent number of components among the draws.
    assigned_
        (rows,) Component of every training row, in the last state of the first chain.
    {draws}

    Notes
    -----
    Features are scaled to mean 0 and deviation 1, and classifiers also have a constant feature. A
    sweep samples the components of all rows with the Gaussians integrated out; the weight of a new
    component is an exact integral. Then splits and merges of whole components are proposed, with
    classifiers by annealed importance sampling. Weights are sampled by augmentation of the hinge.
    Predictions are votes of all draws: each component votes for its best class, weighted by its
    probability given the row.

    References
    ----------
    A. Zhang, J. Zhu and B. Zhang, "Max-margin infinite hidden Markov models", ICML 2014.

    Examples
    --------
    Two clusters, in which different directions separate the classes:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) + np.repeat([[0.0, 0.0], [8.0, 0.0]], 100, axis=0)
    >>> y = np.where(X[:, 0] > 4, X[:, 1] > 0, X[:, 1] < 0)
    >>> model = InfiniteSVM(burn_in=30, n_draws=10, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    C: float = 1.0
    cost: float = 1.0
    n_moves: int = 4

    _CHECKS = MixtureClassifier._CHECKS | {
        **dict.fromkeys(("C", "cost"), moderate),
        "n_moves": moves,
    }

    def _classifier(self) -> Hinge:
        return Hinge(float(self.C), float(self.cost), float(self.variance))
