"""Truncated mixtures of support vector machines by mean field: what samplers are compared with."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from papers import checks
from papers.arrays import Floats, Ints
from papers.comparators.variational import (
    expected_log_density,
    expected_log_sticks,
    soft_moments,
    soft_pairs,
)
from papers.inside import Chains
from structlearn import MulticlassClassifier
from structlearn._src.common.checks import generator
from structlearn._src.common.watch import Ending, Progress, Watch
from structlearn._src.estimators.bayesian.infinite_svm import Scaled
from structlearn._src.estimators.bayesian.observed import (
    Points,
    check_labels,
    read_labels,
    read_points,
    scale_of,
    scaled,
    share_right,
    wishart,
    with_intercept,
)
from structlearn._src.estimators.bayesian.sampled import (
    FittedSettings,
    all_or_nothing,
    check_watch,
    moderate,
    positive,
)
from structlearn._src.estimators.doc import documented
from structlearn._src.sample.hinge import Hinge
from structlearn.errors import ArgumentError

_SMOOTH = 0.05  # temperature of the hinge, small beside its cost of 1: duals are then a softmax
_ROUNDS = 10  # predictions of labels and states in turn, where features say nothing of states


class Belief(NamedTuple):
    """What is believed of the components of rows."""

    shares: Floats  #: (rows, K)
    pairs: Floats  #: (K, K) how often they follow each other


class Machine:
    """One support vector machine on the features of all components, each by its share."""

    def __init__(self, C: float, variance: float) -> None:
        self.C = C
        self._svm = MulticlassClassifier(
            loss="hinge", eps_y=_SMOOTH, C=2.0 * C * variance, fit_intercept=False, solver="lbfgs",
            warm_start=True, max_iter=60, tol=1e-4, n_jobs=1,
        )  # fmt: skip

    def fit(self, shares: Floats, V: Floats, labels: Ints) -> Floats:
        r"""Return (rows, K) the pull of the labels on the shares; sets the `weights` (K, L, M).

        .. math:: \sum_y \omega^y \langle \eta_k^{y_d} - \eta_k^y, v_d \rangle

        with the dual variables :math:`\omega` of the machine.
        """
        known = labels >= 0
        wide = (shares[:, :, None] * V[:, None, :]).reshape(len(V), -1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._svm.fit(wide[known], labels[known])
        width = shares.shape[1], V.shape[1], -1
        self.weights = np.ascontiguousarray(self._svm.weights_.reshape(width).swapaxes(1, 2))
        each = self.scores(V)
        total = np.einsum("tk,tkl->tl", shares, each)
        wrong = np.arange(total.shape[1]) != labels[:, None]
        duals = 2.0 * self.C * softmax((total + wrong) / _SMOOTH, axis=1)
        own = np.take_along_axis(each, np.maximum(labels, 0)[:, None, None], axis=2)
        return np.where(known[:, None], np.einsum("tl,tkl->tk", duals, own - each), 0.0)

    def scores(self, V: Floats) -> Floats:
        """(rows, K, L) Scores of labels in every component."""
        return np.einsum("klm,tm->tkl", self.weights, V, optimize=True)


@dataclass(kw_only=True, eq=False, repr=False)
class MeanField(FittedSettings):
    """Base class: the parameters of truncated mixtures, and their loop."""

    C: float = 1.0
    variance: float = 1.0
    concentration: float = 1.0
    spread: float = 0.5
    strength: float = 0.1
    degrees: float | None = None
    n_components: int = 20
    max_iter: int = 100
    tol: float = 1e-3
    random_state: Any = None
    time_limit: float | None = None
    progress: Progress | None = None

    def _run(self, X: Floats, labels: Ints, offsets: Ints) -> None:
        """Update shares, Gaussians, sticks and weights in turn until the shares hardly change.

        A time limit or an interrupt keeps the shares so far.
        """
        wishart(X.shape[1], self.spread, self.strength, self.degrees)  # or refused before any work
        self.machine_ = Machine(float(self.C), float(self.variance))
        V = with_intercept(X)
        first = self._first(X)
        belief = Belief(first, soft_pairs(first, offsets))
        self.n_iter_ = 0

        def update() -> bool:
            nonlocal belief
            self._learn(X, offsets, belief)
            new = self._infer(X, offsets, self.machine_.fit(belief.shares, V, labels))
            change = 0.5 * float(np.abs(new.shares - belief.shares).sum(axis=1).mean())
            belief = new
            self.n_iter_ += 1
            return change < self.tol

        watch = Watch(self.time_limit, self.progress)
        ended = watch.repeat(update, self.max_iter, lambda: f"round {self.n_iter_}")
        if self.n_iter_ == 0:
            raise KeyboardInterrupt  # within the first round: there is nothing to keep
        self.status_ = str(ended)
        self._learn(X, offsets, belief)
        self.shares_: Floats = belief.shares

    @property
    def ended_(self) -> Ending:
        """How the rounds ended."""
        check_is_fitted(self, "shares_")
        return Ending(self.status_)

    def _first(self, X: Floats) -> Floats:
        """Return shares to begin with, by clusters of the rows."""
        n = min(self.n_components, len(np.unique(X, axis=0)))
        seed = int(generator(self.random_state).integers(2**31))
        found = KMeans(n, n_init=1, random_state=seed).fit_predict(X)
        return np.eye(self.n_components)[found]

    def _learn(self, X: Floats, offsets: Ints, belief: Belief) -> None:
        """Learn Gaussians and weights of components from the shares."""
        prior = wishart(X.shape[1], self.spread, self.strength, self.degrees)
        self.after_ = prior.posterior(soft_moments(X, belief.shares))

    def _infer(self, X: Floats, offsets: Ints, pull: Floats | float = 0.0) -> Belief:
        """Return the shares of rows, given the pull of their labels."""
        raise NotImplementedError

    def _expected_scores(self, belief: Belief, X: Floats) -> Floats:
        each = self.machine_.scores(with_intercept(X))
        scores: Floats = np.einsum("tk,tkl->tl", belief.shares, each)
        return scores

    @property
    def n_components_(self) -> int:
        """Number of components with a row or more."""
        check_is_fitted(self, "shares_")
        return int((self.shares_.sum(axis=0) >= 1.0).sum())

    def _check(self) -> None:
        """Check all parameters, before any work."""
        for name in ("C", "variance"):
            moderate(name, getattr(self, name))
        for name in ("concentration", "spread", "strength"):
            positive(name, getattr(self, name))
        for name in ("n_components", "max_iter"):
            checks.integer(name, getattr(self, name), low=1)
        checks.number("tol", self.tol, low=0.0)
        check_watch(self.time_limit, self.progress)


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class TruncatedSVM(MeanField, Scaled):
    r"""Truncated mixture of support vector machines by mean field (infinite SVM).

    All components together have one classifier, whose scores are expected over the components,

    .. math:: f(y, x) = \sum_k q(z = k) \, \langle E \eta_k^y, x \rangle ,

    and one hinge loss. Shares :math:`q(z)`, Gaussians, sticks and weights are fitted in turn.

    Parameters
    ----------
    C
        Weight of the hinge loss.
    concentration
        Of the Dirichlet process.
    {components}
    n_components
        At which the mixture is truncated.
    max_iter, tol
        Limit on the rounds, and mean change of the shares at which they end.
    random_state
        Seed of the first shares.
    time_limit
        Seconds after which the rounds end with the shares so far.
    progress
        Called with the fraction done and a few words after every round.

    Attributes
    ----------
    n_components_
        Number of components with a row or more.
    n_iter_
        Number of rounds.
    ended_, status_
        How the rounds ended, and that in a word: "done", "limit", "time" or "interrupted".

    References
    ----------
    J. Zhu, N. Chen and E. Xing, "Infinite SVM: a Dirichlet process mixture of large-margin kernel
    machines", ICML 2011.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> y = np.abs(X[:, 0]) > 1
    >>> TruncatedSVM(random_state=0).fit(X, y).score(X, y) > 0.85
    True
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Any:
        """Fit to rows (rows, features) and a class for each."""
        self._check()
        X, labels = self._read(X, y)
        self._run(self._scaled(X), labels, np.array([0, len(X)]))
        return self

    def _learn(self, X: Floats, offsets: Ints, belief: Belief) -> None:
        super()._learn(X, offsets, belief)
        counts = belief.shares.sum(axis=0)
        self.log_weights_ = expected_log_sticks(counts, float(self.concentration))

    def _infer(self, X: Floats, offsets: Ints, pull: Floats | float = 0.0) -> Belief:
        logs = self.log_weights_ + expected_log_density(self.after_, X) + pull
        return Belief(softmax(logs, axis=1), np.empty((0, 0)))

    def _shares(self, scaled: Floats) -> Floats:
        """Return a softmax of the expected scores, which have no probabilities of their own."""
        belief = self._infer(scaled, np.array([0, len(scaled)]))
        shares: Floats = softmax(self._expected_scores(belief, scaled), axis=1)
        return shares


@dataclass(kw_only=True, eq=False, repr=False)
class SwitchingSVM(MeanField):
    """Truncated chain of support vector machines by mean field (iM2EDM).

    As `TruncatedSVM`, with components that follow each other in a Markov chain, every row of which
    is a truncated stick-breaking process.

    Parameters
    ----------
    likelihood
        Whether features say something about the component, by its Gaussian.
    C, variance, concentration, spread, strength, degrees, n_components
        As in `TruncatedSVM`.
    max_iter, tol, random_state, time_limit, progress
        As in `TruncatedSVM`.

    References
    ----------
    S. Chatzis, "Infinite Markov-switching maximum entropy discrimination machines", ICML 2013.

    Examples
    --------
    >>> import numpy as np
    >>> X = [np.linspace(-3, 3, 60)[:, None]]
    >>> y = [(np.abs(X[0][:, 0]) > 1).astype(int)]
    >>> SwitchingSVM(random_state=0).fit(X, y).score(X, y) > 0.85
    True
    """

    likelihood: bool = True

    @all_or_nothing
    def fit(self, X: Any, Y: Any, lengths: Any = None) -> Any:
        """Fit to sequences (steps, features) and a label for every step, -1 if not known."""
        self._check()
        points = _whole(read_points(X, lengths))
        labels = read_labels(Y, points)
        check_labels(labels)
        self.coder_ = labels.coder
        self.n_features_in_ = points.values.shape[1]
        self.centre_, self.scale_ = scale_of(points.values)
        steps = scaled(points.values, self.centre_, self.scale_)
        self._run(steps, labels.numbers, points.offsets)
        return self

    @property
    def classes_(self) -> Any:
        """Labels, in the order of their numbers."""
        check_is_fitted(self, "shares_")
        return self.coder_.names

    def predict(self, X: Any, lengths: Any = None) -> list[Any]:
        """Return the labels of all steps of every sequence."""
        fitted = self._with_fitted_params()
        points = _whole(read_points(X, lengths, self.n_features_in_))
        best = fitted._best(scaled(points.values, self.centre_, self.scale_), points.offsets)
        return np.split(np.asarray(self.classes_)[best], points.offsets[1:-1])

    def score(self, X: Any, Y: Any, lengths: Any = None) -> float:
        """Return the share of labels that are predicted, among those that are known."""
        found = np.concatenate(self.predict(X, lengths))
        return share_right(read_labels(Y, read_points(X, lengths, self.n_features_in_)), found)

    def _best(self, steps: Floats, offsets: Ints) -> Ints:
        """Return the number of the best label of every step."""
        best = self._expected_scores(self._infer(steps, offsets), steps).argmax(axis=1)
        each = self.machine_.scores(with_intercept(steps))
        hinge = Hinge(float(self.C))
        for _ in range(0 if self.likelihood else _ROUNDS):
            belief = self._infer(steps, offsets, hinge.log_potential(each, best))
            best = self._expected_scores(belief, steps).argmax(axis=1)
        return best

    def _check(self) -> None:
        super()._check()
        if not isinstance(self.likelihood, bool):
            raise ArgumentError(f"likelihood={self.likelihood!r} must be True or False")

    def _learn(self, X: Floats, offsets: Ints, belief: Belief) -> None:
        super()._learn(X, offsets, belief)
        alpha = float(self.concentration)
        starts = belief.shares[offsets[:-1]].sum(axis=0)
        self.log_start_ = expected_log_sticks(starts, alpha)
        self.log_transitions_ = expected_log_sticks(belief.pairs, alpha)

    def _infer(self, X: Floats, offsets: Ints, pull: Floats | float = 0.0) -> Belief:
        nodes = np.zeros((len(X), self.n_components)) + pull
        if self.likelihood:
            nodes += expected_log_density(self.after_, X)
        nodes[offsets[:-1]] += self.log_start_
        chains = Chains(nodes, self.log_transitions_[None], offsets, n_jobs=1)
        _, shares, pairs = chains.marginals("sum")
        return Belief(shares, pairs[0])


def _whole(points: Points) -> Points:
    """Refuse points of which some are missing."""
    if not points.seen.all():
        raise ArgumentError(
            f"{int((~points.seen).sum())} steps are missing; SwitchingSVM needs all, MaxMarginHMM "
            f"does not"
        )
    return points
