"""Mixtures of any number of linear classifiers, by Gibbs sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.estimators.base import check_is_fitted
from structlearn._src.estimators.bayesian.fitted_settings import all_or_nothing, digest
from structlearn._src.estimators.bayesian.sampled import Sampled, concentration, moderate
from structlearn._src.estimators.bayesian.scaled import Scaled, wishart, with_intercept
from structlearn._src.estimators.doc import documented
from structlearn._src.sample.emission import Gaussian
from structlearn._src.sample.label_emission import LabelEmission
from structlearn._src.sample.mixture import (
    MixtureDraw,
    MixtureInfo,
    MixtureModel,
    MixtureSampler,
    votes,
)
from structlearn._src.sample.new_component import MaxMargin


@dataclass(kw_only=True, eq=False, repr=False)
class MixtureClassifier(Scaled, Sampled):
    """Base class of mixtures whose components, parameters and classifiers are drawn."""

    variance: float = 100.0
    concentration: float | tuple[float, float] = (1.0, 1.0)
    spread: float = 0.5

    _TRACED = MixtureInfo._fields
    _WATCHED = ("n_components", "log_potential")

    def _classifier(self) -> MaxMargin:
        """Return the classifiers of the components."""
        raise NotImplementedError

    def _moves(self) -> int:
        """Return how many splits and merges a sweep proposes; classifiers must be annealed."""
        return 0

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Any:
        """Draw from the posterior given rows (rows, features) and a class for each."""
        self._prepare()
        X, labels = self._read(X, y)
        self.prior_ = wishart(X.shape[1], self.spread, self.strength, self.degrees)
        scaled = self._scaled(X)
        points = Gaussian(scaled, np.ones(len(X), bool), self.prior_)
        labelled = LabelEmission(
            with_intercept(scaled), labels, len(self.classes_), self._classifier()
        )
        alpha = concentration("concentration", self.concentration)
        sampler = MixtureSampler(
            MixtureModel.of(points, labelled, alpha), self.n_start, self._moves()
        )
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
        """Number of components that most draws have."""
        check_is_fitted(self, "draws_")
        return int(np.bincount([len(draw.counts) for draw in self.draws_]).argmax())

    @property
    def assigned_(self) -> Ints:
        """Component of every row in training, in the last state of the first chain."""
        check_is_fitted(self, "draws_")
        assigned: Ints = self.chains_[0].state.assigned
        return assigned

    def _shares(self, scaled: Floats) -> Floats:
        features = with_intercept(scaled)
        return votes(self.draws_, self.prior_, self._classifier(), scaled, features)

    def _check(self) -> None:
        super()._check()
        moderate("variance", self.variance)
        concentration("concentration", self.concentration)


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class InfiniteSVM(MixtureClassifier):
    r"""Mixture of any number of linear support vector machines (Gibbs infinite SVM).

    Every row belongs to a component :math:`z` of a Dirichlet process mixture, which has a Gaussian
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
        What a wrong class costs, :math:`\ell`.
    {components}
    concentration
        Of the Dirichlet process: the larger, the more components. A number, or shape and rate of
        the Gamma distribution that it is drawn from.
    n_start
        Number of components to begin with, at random.
    n_moves
        Splits and merges of components that are proposed in a sweep.
    {sampling}

    Attributes
    ----------
    classes_
        Labels, in the order of the columns of `predict_proba`.
    n_components_
        Number of components that most draws have.
    assigned_
        (rows,) Component of every row of the training data, in the last state of the first chain.
    {draws}

    Notes
    -----
    Features are scaled to mean 0 and deviation 1, and classifiers see a constant feature too. A
    sweep draws the components of all rows with the Gaussians integrated out; the weight of a new
    component is an exact integral. Then splits and merges of whole components are proposed, with
    classifiers annealed from their prior. Weights are drawn by augmentation of the hinge.
    Predictions are votes of all draws: each component votes for its best class, by its probability
    given the row.

    References
    ----------
    A. Zhang, J. Zhu and B. Zhang, "Max-margin infinite hidden Markov models", ICML 2014.

    Examples
    --------
    Two clouds, and in each another direction tells the classes apart:

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

    def _moves(self) -> int:
        return self.n_moves

    def _classifier(self) -> MaxMargin:
        return MaxMargin(float(self.C), float(self.cost), float(self.variance))

    def _check(self) -> None:
        super()._check()
        checks.integer("n_moves", self.n_moves)
        for name in ("C", "cost"):
            moderate(name, getattr(self, name))
