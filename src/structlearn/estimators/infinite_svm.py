"""Mixtures of any number of linear classifiers, by Gibbs sampling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from structlearn.common import checks
from structlearn.common.checks import Floats, Ints
from structlearn.common.errors import ArgumentError
from structlearn.common.random import generator
from structlearn.common.watch import Progress, Watch
from structlearn.estimators.run import threads
from structlearn.estimators.state_chain import concentration
from structlearn.sample import runner
from structlearn.sample.classifier import Classifier, Logit, MaxMargin
from structlearn.sample.diagnostics import effective_size, r_hat
from structlearn.sample.mixture import Draw, Info, Rows, Sampler, State, start, votes
from structlearn.sample.normal_wishart import NormalWishart

_POSITIVE = partial(checks.number, low=0.0, open_low=True, open_high=True)
_COUNT = partial(checks.whole, low=1)


class Scaled(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of classifiers of rows that see features with mean 0 and deviation 1."""

    def _read(self, X: Any, y: Any) -> tuple[Floats, Ints]:
        """Learn the classes and the scale; return scaled rows and numbers of classes."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ArgumentError(
                f"y has one class only, {self.classes_.tolist()[0]!r}; a classifier needs two"
            )
        deviations = X.std(axis=0)
        self.centre_, self.scale_ = X.mean(axis=0), np.where(deviations > 0.0, deviations, 1.0)
        return self._scaled(X), labels.astype(np.int64)

    def _scaled(self, X: Floats) -> Floats:
        return np.ascontiguousarray((X - self.centre_) / self.scale_)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of all classes (rows, classes)."""
        check_is_fitted(self, "classes_")
        return self._shares(self._scaled(validate_data(self, X, reset=False, dtype=np.float64)))

    def predict(self, X: Any) -> Any:
        """Return the most probable class of every row."""
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]

    def _shares(self, scaled: Floats) -> Floats:
        raise NotImplementedError


def with_constant(X: Floats) -> Floats:
    """Return the features of classifiers: a last one is always 1."""
    return np.column_stack([X, np.ones(len(X))])


@dataclass(kw_only=True, eq=False, repr=False)
class MixtureClassifier(Scaled):
    """Base class of mixtures whose components, parameters and classifiers are drawn."""

    variance: float = 100.0
    concentration: float | tuple[float, float] = (1.0, 1.0)
    spread: float = 0.5
    strength: float = 0.1
    degrees: float | None = None
    n_start: int = 20
    burn_in: int = 200
    n_draws: int = 100
    thin: int = 1
    n_chains: int = 1
    random_state: Any = None
    n_jobs: int | None = None
    time_limit: float | None = None
    progress: Progress | None = None

    def _classifier(self) -> Classifier:
        """Return the classifiers of the components."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any) -> Any:
        """Draw from the posterior given rows (rows, features) and a class for each."""
        self._check()
        classifier = self._classifier()
        alpha = concentration("concentration", self.concentration)
        rng, (scaled, labels) = generator(self.random_state), self._read(X, y)
        self.prior_ = self._prior(scaled.shape[1])
        rows = Rows(
            scaled, with_constant(scaled), labels, len(self.classes_),
            self.prior_, classifier, alpha,
        )  # fmt: skip
        self._sample(Sampler(rows), rng)
        return self

    def _sample(self, sampler: Sampler, rng: np.random.Generator) -> None:
        """Run all chains; an interrupt keeps the draws so far."""
        self.chains_: list[runner.Chain[State]] = [
            runner.Chain(start(sampler.rows, self.n_start, stream), stream)
            for stream in runner.streams(rng, self.n_chains)
        ]
        self.status_ = runner.run(
            lambda state, stream, _: sampler.step(state, stream),
            self.chains_,
            runner.Schedule(self.burn_in, self.n_draws, self.thin),
            n_jobs=threads(self.n_jobs),
            watch=Watch(self.time_limit, self.progress),
        )
        states = [state for chain in self.chains_ for state in chain.draws or [chain.state]]
        self.draws_: list[Draw] = [sampler.draw(state) for state in states]
        self.assigned_: Ints = self.chains_[0].state.assigned

    @property
    def n_components_(self) -> int:
        """Number of components that most draws have."""
        check_is_fitted(self, "draws_")
        return int(np.bincount([len(draw.counts) for draw in self.draws_]).argmax())

    def traces(self) -> dict[str, Floats]:
        """Return what chains did after burn-in, each (chains, sweeps): for ArviZ, or a picture.

        With ArviZ, ``arviz.from_dict(model.traces())`` makes its data.
        """
        check_is_fitted(self, "draws_")
        burn_in = self.burn_in if min(c.sweeps for c in self.chains_) > self.burn_in else 0
        return {name: runner.traced(self.chains_, name, burn_in) for name in Info._fields}

    def diagnostics(self) -> dict[str, dict[str, float]]:
        """Return mean, R-hat and effective sample size of what `traces` has."""
        return {
            name: {
                "mean": float(draws.mean()),
                "r_hat": r_hat(draws),
                "effective_size": effective_size(draws),
            }
            for name, draws in self.traces().items()
        }

    def _shares(self, scaled: Floats) -> Floats:
        features = with_constant(scaled)
        return votes(self.draws_, self.prior_, self._classifier(), scaled, features)

    def _prior(self, width: int) -> NormalWishart:
        degrees = width + 2.0 if self.degrees is None else float(self.degrees)
        checks.number("degrees", degrees, low=width - 1.0, open_low=True, open_high=True)
        scale = self.spread * max(degrees - width - 1.0, 1.0) * np.eye(width)
        return NormalWishart(np.zeros(width), float(self.strength), degrees, scale)

    def _check(self) -> None:
        """Check all parameters, before any work."""
        for name in ("variance", "spread", "strength"):
            _POSITIVE(name, getattr(self, name))
        for name in ("n_start", "n_draws", "thin", "n_chains"):
            _COUNT(name, getattr(self, name))
        checks.whole("burn_in", self.burn_in)
        if self.time_limit is not None:
            checks.number("time_limit", self.time_limit, low=0.0)
        threads(self.n_jobs)


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
    variance
        Prior variance of the weights of classifiers, on scaled features.
    concentration
        Of the Dirichlet process: the larger, the more components. A number, or shape and rate of
        the Gamma distribution that it is drawn from.
    spread
        Expected variance of the features within a component, 1 being that of all rows.
    strength
        Number of rows that the mean of all rows counts for in the mean of a component.
    degrees
        Degrees of freedom of the covariances of components; ``features + 2`` if None.
    n_start
        Components to begin with.
    burn_in, n_draws, thin
        Sweeps before the first draw, draws of every chain, and sweeps from one to the next.
    n_chains
        Independent chains, whose draws vote together.
    random_state
        Seed of everything random.
    n_jobs
        Threads for the chains; all cores if None or -1. Results do not depend on it.
    time_limit
        Seconds after which sampling ends with the draws so far.
    progress
        Called with the fraction done and a few words after every sweep.

    Attributes
    ----------
    classes_
        Labels, in the order of the columns of `predict_proba`.
    n_components_
        Number of components that most draws have.
    draws_
        What the posterior draws have: sizes, Gaussians and weights of components.
    chains_
        All chains, with what every sweep told in their `trace`.
    assigned_
        (rows,) Component of every row of the training data, in the last state of the first chain.
    status_
        How sampling ended: "done", "time" or "interrupted".

    Notes
    -----
    Features are scaled to mean 0 and deviation 1, and classifiers see a constant feature too. A
    sweep draws the components of all rows with the Gaussians integrated out; the weight of a new
    component is an exact integral. Weights are drawn by augmentation of the hinge. Predictions are
    votes of all draws: each component votes for its best class, by its probability given the row.

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

    def _classifier(self) -> MaxMargin:
        C, cost = _POSITIVE("C", self.C), _POSITIVE("cost", self.cost)
        return MaxMargin(C, cost, float(self.variance))


@dataclass(kw_only=True, eq=False, repr=False)
class InfiniteLogit(MixtureClassifier):
    r"""Mixture of any number of multinomial logit models (DPMNL).

    As `InfiniteSVM`, with :math:`p(y \mid x, z) \propto \exp \langle \eta_z^y, x \rangle` in the
    place of the hinge. Covariances are full, where the paper has diagonal ones.

    All parameters and attributes are those of `InfiniteSVM`.

    References
    ----------
    B. Shahbaba and R. Neal, "Nonlinear models using Dirichlet process mixtures", JMLR 2009.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> y = np.abs(X[:, 0]) > 1
    >>> model = InfiniteLogit(burn_in=30, n_draws=10, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.85
    True
    """

    def _classifier(self) -> Logit:
        return Logit(float(self.variance))
