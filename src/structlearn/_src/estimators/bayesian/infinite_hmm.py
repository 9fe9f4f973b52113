"""Hidden Markov models with any number of states: what all share, and the one without labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logsumexp

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints, cut
from structlearn._src.common.document import completed
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.base import check_is_fitted, threads
from structlearn._src.estimators.bayesian import observed
from structlearn._src.estimators.bayesian.infinite_hmm_doc import INFINITE_HMM
from structlearn._src.estimators.bayesian.observed import Points, Symbols
from structlearn._src.estimators.bayesian.sampled import (
    Sampled,
    all_or_nothing,
    as_concentration,
    digest,
    moves,
    positive,
)
from structlearn._src.estimators.doc import documented
from structlearn._src.sample import summary
from structlearn._src.sample.emission import Categorical, Emission, Gaussian, covariances
from structlearn._src.sample.hmm import HmmModel, HmmState, state_marginals
from structlearn._src.sample.hmm_sampler import HmmSampler, merge_sweeps
from structlearn._src.sample.priors import NormalGamma, NormalWishart
from structlearn._src.sample.summary import Summary
from structlearn._src.text.labels import LabelCoder


@dataclass(kw_only=True, eq=False, repr=False)
class StateChain(Sampled):
    """Base class: parameters of the chain of states, its sampler, and what its draws tell."""

    alpha0: float | tuple[float, float] = (1.0, 1.0)
    gamma0: float | tuple[float, float] = (1.0, 1.0)
    covariance: str = "full"
    n_moves: int = 4
    merge: bool = True

    _TRACED = ("n_states", "alpha0", "gamma0", "log_density")
    _WATCHED = ("n_states", "log_density")
    _CHECKS = Sampled._CHECKS | {
        **dict.fromkeys(("alpha0", "gamma0"), as_concentration),
        "covariance": partial(checks.one_of, allowed=("full", "diagonal")),
        "n_moves": moves,
        "merge": checks.boolean,
    }

    # ---- features ------------------------------------------------------------------------

    def _learn_scale(self, points: Points) -> None:
        """Learn how features are scaled: by what they are where they are seen."""
        known = points.values[points.seen]
        self.n_features_in_ = known.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if points.columns:
            self.feature_names_in_ = np.array(points.columns, object)
        self.centre_, self.scale_ = observed.scale_of(known)
        self._prior()  # checks the degrees of freedom, which depend on the number of features

    def _read_points(self, X: Any, lengths: Any) -> Points:
        """Read points as those of training were read."""
        columns = tuple(getattr(self, "feature_names_in_", ()))
        return observed.read_points(X, lengths, self.n_features_in_, columns)

    def _scaled(self, points: Points) -> Floats:
        """Return points with mean 0 and variance 1 in training, 0 where they are missing."""
        values = np.where(points.seen[:, None], points.values, self.centre_)
        return observed.scaled(values, self.centre_, self.scale_)

    def _prior(self) -> NormalWishart | NormalGamma:
        """Return the prior of the Gaussians of states."""
        D = self.n_features_in_
        if self.covariance == "full":
            return observed.wishart(D, self.spread, self.strength, self.degrees)
        degrees, scale = observed.degrees_and_scale(1, self.spread, self.degrees)
        return NormalGamma(np.zeros(D), float(self.strength), degrees, np.full(D, scale))

    def _gaussian(self, points: Points) -> Gaussian:
        """Return points as what states emit."""
        return Gaussian(self._scaled(points), points.seen, self._prior())

    # ---- sampling ------------------------------------------------------------------------

    def _model(self, offsets: Ints, emissions: tuple[Emission, ...]) -> HmmModel:
        """Return sequences and what their states emit as one model."""
        alpha = as_concentration("alpha0", self.alpha0)
        gamma = as_concentration("gamma0", self.gamma0)
        return HmmModel(offsets, emissions, alpha, gamma, n_jobs=threads(self.n_jobs))

    def _sample(self, model: HmmModel, values: dict[str, Any]) -> None:
        """Run all chains, and sum up their draws; an interrupt keeps those that were made.

        The `values` of the data, beside their form, say which data chains belong to.
        """
        merges = merge_sweeps(self.burn_in) if self.merge else range(0)
        self.offsets_ = model.offsets
        sampler = HmmSampler(model, self.n_start, self.n_moves, merges)
        self._run(sampler, self._data_signature() | values)
        self._sum_up()

    def _data_signature(self) -> dict[str, Any]:
        """Return what data must have in common for chains to go on."""
        found: dict[str, Any] = {"lengths of sequences": digest(self.offsets_)}
        if hasattr(self, "centre_"):
            found["numbers of features"] = len(self.centre_)
        if hasattr(self, "coder_"):
            found["labels or symbols"] = digest(self.coder_.names)
        return found

    def _sum_up(self) -> None:
        """Match the draws of all chains."""
        self.draws_: list[HmmState] = self._drawn()
        self.summary_ = Summary.of(self.draws_)

    # ---- what draws tell -----------------------------------------------------------------

    @property
    def n_states_(self) -> int:
        """Most frequent number of states among the draws."""
        check_is_fitted(self, "draws_")
        return self.summary_.n_states

    @property
    def transitions_(self) -> Floats:
        """Mean transition probabilities (states, states); states as in `states_`."""
        check_is_fitted(self, "draws_")
        return self.summary_.transitions()[1]

    @property
    def starts_(self) -> Floats:
        """Mean initial probabilities of the states."""
        check_is_fitted(self, "draws_")
        return self.summary_.transitions()[0]

    @property
    def states_(self) -> list[Ints]:
        """The most likely state of every step in training, sequence by sequence."""
        check_is_fitted(self, "draws_")
        return cut(self.summary_.state_shares().argmax(1), self.offsets_)

    def similarity(self, positions: Any = None) -> Floats:
        """Return the fraction of the draws in which two steps share a state.

        Parameters
        ----------
        positions : array-like of int, optional
            Steps, numbered through all training sequences; by default all.

        Returns
        -------
        array of shape (positions, positions)
            Numbers between 0 and 1, with ones on the diagonal.

        Examples
        --------
        >>> from structlearn import InfiniteHMM
        >>> X = [["a", "a", "b", "b", "a", "a"]]
        >>> model = InfiniteHMM(emission="categorical", burn_in=5, n_draws=3, random_state=0).fit(X)
        >>> model.similarity([0, 1, 2]).shape
        (3, 3)
        """
        check_is_fitted(self, "draws_")
        n = int(self.offsets_[-1])
        steps = np.arange(n) if positions is None else positions
        chosen = observed.whole_numbers("positions", steps)
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < n:
            raise ArgumentError(f"positions go from 0 to {n - 1}, the steps of all sequences")
        return summary.similarity([draw.states for draw in self.draws_], chosen)


@completed(INFINITE_HMM)
@documented
@dataclass(kw_only=True, eq=False, repr=False)
class InfiniteHMM(StateChain):
    r"""Hidden Markov model that infers the number of its states.

    .. math:: \beta \sim \mathrm{GEM}(\gamma_0), \quad \pi_k \sim \mathrm{DP}(\alpha_0, \beta),
              \quad z_t \sim \pi_{z_{t-1}}, \quad x_t \sim p(x \mid \theta_{z_t}) .

    Paths are sampled by a beam sampler; split-merge moves let the number of states change.

    Parameters
    ----------
    emission
        "gaussian" for real vectors, "categorical" for symbols.
    covariance
        "full" or "diagonal" covariances.
    pseudo_count
        Prior count of every symbol.
    alpha0, gamma0
        Concentrations of rows and of states: a number fixes one, a pair gives shape and rate of its
        gamma prior.
    spread
        Expected variance of a feature within a state, where features are scaled to variance 1.
    strength
        Weight of the prior mean of a state, as an equivalent number of steps.
    degrees
        Degrees of freedom of the covariances, by default features plus 2, and at least the number
        of features; for diagonal covariances by default 3, and at least 1.
    n_start
        Initial number of states, assigned at random.
    n_moves
        Split and merge moves proposed in each sweep.
    merge
        Whether merges of all similar states are tried during burn-in.
    {sampling}

    Attributes
    ----------
    n_states_
        Most frequent number of states among the draws.
    states_
        Most likely state of every step; the most frequent state is 0.
    transitions_, starts_
        Mean transition and initial probabilities of the states.
    means_, covariances_
        Means and covariances of the states, for real vectors.
    probabilities_, symbols_
        Probabilities of the symbols in each state, and the symbols, sorted.
    {draws}

    References
    ----------
    J. Van Gael, Y. Saatci, Y. W. Teh and Z. Ghahramani, "Beam sampling for the infinite hidden
    Markov model", ICML 2008.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[0.0], [5.0], [0.0], [5.0]], 25, axis=0) + rng.normal(size=(100, 1))
    >>> model = InfiniteHMM(n_start=5, burn_in=60, n_draws=20, random_state=0).fit(X)
    >>> model.n_states_
    2
    """

    emission: str = "gaussian"
    pseudo_count: float = 0.5

    _CHECKS = StateChain._CHECKS | {
        "emission": partial(checks.one_of, allowed=("gaussian", "categorical")),
        "pseudo_count": positive,
    }

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> Any:
        """Sample from the posterior given sequences."""
        self._prepare()
        observed.check_no_lengths(X, y, lengths)
        given = self._read(X, lengths, first=True)
        if isinstance(given, Points):
            self._learn_scale(given)
        else:
            self.coder_: LabelCoder = given.coder
        values = digest(given.values, given.seen)
        self._sample(self._model_of(given), {"values of steps": values})
        return self

    def predict(self, X: Any, lengths: Any = None) -> list[Ints]:
        """Return the most likely state of every step; states as in `states_`."""
        return [p.argmax(1) for p in self.predict_proba(X, lengths)]

    def predict_proba(self, X: Any, lengths: Any = None) -> list[Floats]:
        """Return the probabilities of the states, averaged over all draws.

        They sum to less than 1 if draws have states that match none of `states_`.
        """
        fitted = self._with_fitted_params()
        model = fitted._model_of(fitted._read(X, lengths))
        total = np.zeros((model.n_positions, self.summary_.n_states))
        for i, draw in enumerate(self.draws_):
            _, beliefs = state_marginals(model, draw)
            total += self.summary_.moved(beliefs, i)
        return cut(total / len(self.draws_), model.offsets)

    def score(self, X: Any, y: Any = None, lengths: Any = None) -> float:
        """Return the mean log density of the observed steps, averaged over all draws."""
        fitted = self._with_fitted_params()
        given = fitted._read(X, lengths)
        observed.check_seen(given, "a score")
        model = fitted._model_of(given)
        values = [state_marginals(model, draw)[0].sum() for draw in self.draws_]
        log_density = (float(logsumexp(values)) - np.log(len(values))) / int(given.seen.sum())
        if isinstance(given, Points):
            log_density -= float(np.log(self.scale_).sum())  # in the units of the data
        return log_density

    @property
    def means_(self) -> Floats:
        """Mean of every state (states, features), in the units of the data."""
        self._check_emission("gaussian")
        pooled = self.summary_.pooled([draw.parameters[0][0] for draw in self.draws_])
        return self.centre_ + self.scale_ * pooled

    @property
    def covariances_(self) -> Floats:
        """Covariance of every state (states, features, features), in the units of the data."""
        self._check_emission("gaussian")
        found = [covariances(draw.parameters[0]) for draw in self.draws_]
        return self.summary_.pooled(found) * np.multiply.outer(self.scale_, self.scale_)

    @property
    def probabilities_(self) -> Floats:
        """Probabilities of symbols in every state, (states, symbols)."""
        self._check_emission("categorical")
        return self.summary_.pooled([np.exp(draw.parameters[0][0]) for draw in self.draws_])

    @property
    def symbols_(self) -> Any:
        """Symbols, sorted."""
        self._check_emission("categorical")
        return self.coder_.names

    def _check_emission(self, needed: str) -> None:
        check_is_fitted(self, "draws_")
        emission = self.settings_["emission"]
        if emission != needed:
            raise AttributeError(f"emission={emission!r} does not have this attribute")

    def _read(self, X: Any, lengths: Any, first: bool = False) -> Points | Symbols:
        """Read sequences; all but the first ones as those."""
        if self.emission == "categorical":
            return observed.read_symbols(X, lengths, None if first else self.coder_)
        return observed.read_points(X, lengths) if first else self._read_points(X, lengths)

    def _model_of(self, given: Points | Symbols) -> HmmModel:
        """Return sequences as what states emit."""
        emission: Emission
        if isinstance(given, Points):
            emission = self._gaussian(given)
        else:
            prior = np.full(len(given.coder.names), float(self.pseudo_count))
            emission = Categorical(given.values, prior)
        return self._model(given.offsets, (emission,))
