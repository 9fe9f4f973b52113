"""Max-margin hidden Markov models with any number of states: labels for the steps of sequences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints, cut
from structlearn._src.estimators.base import check_is_fitted
from structlearn._src.estimators.bayesian import observed
from structlearn._src.estimators.bayesian.infinite_hmm import StateChain
from structlearn._src.estimators.bayesian.observed import Points
from structlearn._src.estimators.bayesian.sampled import all_or_nothing, digest, moderate
from structlearn._src.estimators.doc import documented
from structlearn._src.sample.emission import Emission
from structlearn._src.sample.hinge import Hinge, LabelEmission
from structlearn._src.sample.hmm import HmmState, iterated_votes, weighted_votes
from structlearn._src.text.labels import LabelCoder


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class MaxMarginHMM(StateChain):
    r"""Hidden Markov model with an unbounded number of states, each with a max-margin classifier.

    The posterior of an infinite hidden Markov model is multiplied by

    .. math:: \prod_t \exp \big( -2 C \max_y (\ell\, [y \ne y_t] + \eta_{z_t}^y \cdot v_t
              - \eta_{z_t}^{y_t} \cdot v_t) \big), \qquad \eta_k^y \sim N(0, \nu^2 I) ,

    where :math:`v_t` contains the scaled features of a step and a constant.

    Parameters
    ----------
    likelihood
        Whether states emit the features too (M2iHMM-1), or only the labels (M2iHMM-2). Without it,
        only the chain determines the states of new sequences, which have no labels: prediction
        fails where states cannot be predicted from each other, and it is rarely the better choice.
    C
        Weight of the losses.
    cost
        Cost of a wrong label, :math:`\ell`.
    variance
        Variance of the weights, :math:`\nu^2`. A support vector machine in every state would have
        the parameter ``2 * C * variance``.
    vote
        With "weighted", states vote for labels with their probabilities as weights; "iterated"
        samples states and labels alternately, as in the paper.
    n_rounds
        Rounds of ``vote="iterated"``.
    covariance, spread, strength, degrees
        Distribution of the features in a state, as in `InfiniteHMM`.
    alpha0, gamma0, n_start, burn_in, n_draws, thin, n_chains, n_moves
        The chain and its sampler, as in `InfiniteHMM`.
    merge
        Whether merges of all similar states are tried during burn-in.
    warm_start, n_jobs, time_limit, progress
        As in `InfiniteHMM`.
    random_state : int, Generator or RandomState, optional
        Random seed.

    Attributes
    ----------
    classes_
        Labels, sorted.
    n_states_, states_, transitions_, starts_
        As in `InfiniteHMM`.
    {draws}

    References
    ----------
    A. Zhang, J. Zhu and B. Zhang, "Max-margin infinite hidden Markov models", ICML 2014.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[-4.0], [4.0], [-4.0], [4.0]], 20, axis=0) + rng.normal(size=(80, 1))
    >>> y = (np.abs(X[:, 0]) > 4).astype(int)
    >>> model = MaxMarginHMM(n_start=4, burn_in=40, n_draws=20, random_state=0).fit([X], [y])
    >>> model.score([X], [y]) > 0.9
    True
    """

    likelihood: bool = True
    C: float = 1.0
    cost: float = 1.0
    variance: float = 100.0
    vote: str = "weighted"
    n_rounds: int = 50

    _FREE = StateChain._FREE | {"vote", "n_rounds"}
    _CHECKS = StateChain._CHECKS | {
        **dict.fromkeys(("C", "cost", "variance"), moderate),
        "likelihood": checks.boolean,
        "vote": partial(checks.one_of, allowed=("weighted", "iterated")),
        "n_rounds": checks.integer,
    }

    @all_or_nothing
    def fit(self, X: Any, y: Any, lengths: Any = None) -> Any:
        """Sample from the posterior given sequences and labels.

        Parameters
        ----------
        X : list of arrays of shape (steps, features), or array
            List of arrays (steps, features), with rows of NaN for missing steps; or one array.
        y : list, or array-like
            Labels of the steps of every sequence, -1 or None if unknown; or one label for
            every sequence, which applies to all its steps.
        lengths : array-like of int, optional
            If X is a single array, the lengths of the sequences in it. Then y may be one array too.

        Returns
        -------
        Self
            The fitted model.

        Examples
        --------
        >>> X = [[[-2.0], [-1.5], [2.0], [1.5]]]
        >>> model = MaxMarginHMM(burn_in=10, n_draws=3, random_state=0)
        >>> model.fit(X, [["low", "low", "high", None]]).classes_.tolist()
        ['high', 'low']
        """
        self._prepare()
        points = observed.read_points(X, lengths)
        labels = observed.read_labels(y, points)
        observed.check_labels(labels)
        self._learn_scale(points)
        self.coder_: LabelCoder = labels.coder
        self.per_sequence_ = labels.single
        emissions = (*self._features(points), self._label_emission(points, labels.numbers))
        values = {
            "values of steps": digest(points.values, points.seen),
            "labels of steps": digest(labels.numbers),
        }
        self._sample(self._model(points.offsets, emissions), values)
        return self

    @property
    def classes_(self) -> Any:
        """Labels, sorted."""
        check_is_fitted(self, "draws_")
        return self.coder_.names

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """Return the label of every step, sequence by sequence, or of every sequence.

        Parameters
        ----------
        X : list of arrays of shape (steps, features), or array
            Sequences, as in `fit`.
        lengths : array-like of int, optional
            As in `fit`.

        Returns
        -------
        list of arrays of shape (steps,)
            Labels of the steps; after a fit with one label for every sequence, an array of shape
            (sequences,).

        Examples
        --------
        >>> X, y = [[[-2.0], [-1.5], [2.0], [1.5]]], [["low", "low", "high", "high"]]
        >>> model = MaxMarginHMM(burn_in=10, n_draws=3, random_state=0).fit(X, y)
        >>> model.predict(X)[0].tolist()
        ['low', 'low', 'high', 'high']
        """
        shares = self.predict_proba(X, lengths)
        if self.per_sequence_:
            return self.classes_[shares.argmax(1)]
        return [self.classes_[rows.argmax(1)] for rows in shares]

    def predict_proba(self, X: Any, lengths: Any = None) -> Any:
        """Return the fractions of the votes for each label, of steps or of whole sequences.

        Parameters
        ----------
        X : list of arrays of shape (steps, features), or array
            Sequences, as in `fit`.
        lengths : array-like of int, optional
            As in `fit`.

        Returns
        -------
        list of arrays of shape (steps, labels)
            One array for every sequence; after a fit with one label for every sequence, a single
            array of shape (sequences, labels) with the means over steps.

        Examples
        --------
        >>> X, y = [[[-2.0], [-1.5]], [[2.0], [1.5]]], ["low", "high"]
        >>> model = MaxMarginHMM(burn_in=10, n_draws=3, random_state=0).fit(X, y)
        >>> model.predict_proba(X).shape
        (2, 2)
        """
        rows = self.predict_steps(X, lengths)
        return np.array([own.mean(0) for own in rows]) if self.per_sequence_ else rows

    def predict_steps(self, X: Any, lengths: Any = None) -> list[Floats]:
        """Return the fractions of the votes for each label in every step.

        Parameters
        ----------
        X : list of arrays of shape (steps, features), or array
            Sequences, as in `fit`.
        lengths : array-like of int, optional
            As in `fit`.

        Returns
        -------
        list of arrays of shape (steps, labels)
            One array for every sequence, also after a fit with one label for every sequence.

        Examples
        --------
        >>> X, y = [[[-2.0], [-1.5]], [[2.0], [1.5]]], ["low", "high"]
        >>> model = MaxMarginHMM(burn_in=10, n_draws=3, random_state=0).fit(X, y)
        >>> [steps.shape for steps in model.predict_steps(X)]
        [(2, 2), (2, 2)]
        """
        fitted = self._with_fitted_params()
        fitted._check("vote", "n_rounds")
        points = self._read_points(X, lengths)
        return cut(fitted._votes(points), points.offsets)

    def score(self, X: Any, y: Any, lengths: Any = None) -> float:
        """Return the fraction of correct labels among those that are known.

        Parameters
        ----------
        X : list of arrays of shape (steps, features), or array
            Sequences, as in `fit`.
        y : list, or array-like
            True labels, as in `fit`.
        lengths : array-like of int, optional
            As in `fit`.

        Returns
        -------
        float
            Accuracy between 0 and 1.

        Examples
        --------
        >>> X, y = [[[-2.0], [-1.5], [2.0], [1.5]]], [["low", "low", "high", "high"]]
        >>> model = MaxMarginHMM(burn_in=10, n_draws=3, random_state=0).fit(X, y)
        >>> model.score(X, y)
        1.0
        """
        found = self.predict(X, lengths)
        points = self._read_points(X, lengths)
        truth = observed.read_labels(y, points)
        if not self.per_sequence_:
            found = np.concatenate(found)
        elif truth.single:
            truth = truth._replace(numbers=truth.numbers[points.offsets[:-1]])
        else:
            found = np.repeat(found, np.diff(points.offsets))
        return observed.share_right(truth, found)

    def _votes(self, points: Points) -> Floats:
        model = self._model(points.offsets, self._features(points))
        draws = [_without_labels(draw) for draw in self.draws_]
        if self.vote == "weighted":
            return weighted_votes(model, observed.with_intercept(self._scaled(points)), draws)
        labelled = self._label_emission(points, np.full(model.n_positions, -1))
        rng = checks.generator(self.random_state)
        return iterated_votes(model, labelled, draws, self.n_rounds, rng)

    def _features(self, points: Points) -> tuple[Emission, ...]:
        """Return points as what states emit, if they do."""
        return (self._gaussian(points),) if self.likelihood else ()

    def _label_emission(self, points: Points, labels: Ints) -> LabelEmission:
        features = observed.with_intercept(self._scaled(points))
        loss = Hinge(float(self.C), float(self.cost), float(self.variance))
        unseen = np.where(points.seen, labels, -1)  # without features a label says nothing of them
        return LabelEmission(features, unseen, len(self.coder_.names), loss)


def _without_labels(draw: HmmState) -> tuple[HmmState, Floats]:
    """Return a draw without its classifiers, and their weights."""
    *others, (weights,) = draw.parameters
    return draw._replace(parameters=tuple(others)), weights
