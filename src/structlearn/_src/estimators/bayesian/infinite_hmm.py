"""Hidden Markov models with any number of states, without labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints, cut
from structlearn._src.estimators.base import check_is_fitted
from structlearn._src.estimators.bayesian.fitted_settings import all_or_nothing, digest
from structlearn._src.estimators.bayesian.observed import (
    Points,
    Symbols,
    check_seen,
    read_points,
    read_symbols,
)
from structlearn._src.estimators.bayesian.sampled import positive
from structlearn._src.estimators.bayesian.state_chain import StateChain
from structlearn._src.estimators.doc import documented
from structlearn._src.sample.emission import Categorical, Emission, covariances
from structlearn._src.sample.hmm import HmmModel
from structlearn._src.sample.predict import state_marginals
from structlearn._src.text.labels import LabelCoder

_EMISSIONS = ("gaussian", "categorical")


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class InfiniteHMM(StateChain):
    r"""Hidden Markov model whose number of states is drawn with everything else.

    .. math:: \beta \sim \mathrm{GEM}(\gamma_0), \quad \pi_k \sim \mathrm{DP}(\alpha_0, \beta),
              \quad z_t \sim \pi_{z_{t-1}}, \quad x_t \sim p(x \mid \theta_{z_t}) .

    Paths are drawn by a beam sampler; split-merge moves let the number of states change.

    Parameters
    ----------
    emission
        "gaussian" for points, "categorical" for symbols.
    covariance
        "full" or "diagonal" covariances.
    pseudo_count
        How often every symbol counts as seen before any is.
    alpha0, gamma0
        Concentrations of rows and of states: a number fixes one, a pair is shape and rate of its
        gamma prior.
    spread
        Expected variance of a feature in a state, where features have variance 1.
    strength
        How many steps the expected mean of a state counts for.
    degrees
        Degrees of freedom of the covariances, by default features plus 2, and at least as many as
        features; of diagonal ones by default 3, and at least 1.
    n_start
        Number of states to begin with, at random.
    n_moves
        Splits and merges of states that are proposed in a sweep.
    merge
        Whether states that are alike are merged in burn-in.
    {sampling}

    Attributes
    ----------
    n_states_
        Number of states that most draws have.
    states_
        Likeliest state of every step, the most frequent state is 0.
    transitions_, starts_
        Mean probabilities to follow, and to begin in, a state.
    means_, covariances_
        Of the states, for points.
    probabilities_, symbols_
        Of the symbols in the states, and the symbols, in order.
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

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, lengths: Any = None) -> Any:
        """Draw from the posterior given sequences.

        Parameters
        ----------
        X
            List of arrays (steps, features), rows of NaN where a step is missing; for symbols, of
            sequences of them, None or -1 where missing. Also one array or frame; an array
            (sequences, steps, features).
        y
            Not read.
        lengths
            Where X is one array: lengths of the sequences in it.
        """
        self._prepare()
        observed = self._read(X, lengths, first=True)
        if isinstance(observed, Points):
            self._learn_scale(observed)
        else:
            self.coder_: LabelCoder = observed.coder
        values = digest(observed.values, observed.seen)
        self._sample(self._model_of(observed), {"values of steps": values})
        return self

    def predict(self, X: Any, lengths: Any = None) -> list[Ints]:
        """Return the likeliest state of every step; states as in `states_`."""
        return [p.argmax(1) for p in self.predict_proba(X, lengths)]

    def predict_proba(self, X: Any, lengths: Any = None) -> list[Floats]:
        """Return the probabilities of the states (steps, states), over all draws.

        They sum to less than 1 where draws have states that match none of `states_`.
        """
        fitted = self._with_fitted_params()
        model = fitted._model_of(fitted._read(X, lengths))
        total = np.zeros((model.n_positions, self.summary_.n_states))
        for i, draw in enumerate(self.draws_):
            _, beliefs = state_marginals(model, draw)
            total += self.summary_.moved(beliefs, i)
        return cut(total / len(self.draws_), model.offsets)

    def score(self, X: Any, y: Any = None, lengths: Any = None) -> float:
        """Return the mean log density of a step that is not missing, over all draws."""
        fitted = self._with_fitted_params()
        observed = fitted._read(X, lengths)
        check_seen(observed, "a score")
        model = fitted._model_of(observed)
        values = [state_marginals(model, draw)[0].sum() for draw in self.draws_]
        log_density = (float(logsumexp(values)) - np.log(len(values))) / int(observed.seen.sum())
        if isinstance(observed, Points):
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
        """Symbols, in order."""
        self._check_emission("categorical")
        return self.coder_.names

    def _check(self) -> None:
        super()._check()
        checks.one_of("emission", self.emission, _EMISSIONS)
        positive("pseudo_count", self.pseudo_count)

    def _check_emission(self, needed: str) -> None:
        check_is_fitted(self, "draws_")
        emission = self.settings_["emission"]
        if emission != needed:
            raise AttributeError(f"emission={emission!r} has no such attribute")

    def _read(self, X: Any, lengths: Any, first: bool = False) -> Points | Symbols:
        """Read sequences; all but the first ones as those."""
        if self.emission == "categorical":
            return read_symbols(X, lengths, None if first else self.coder_)
        return read_points(X, lengths) if first else self._read_points(X, lengths)

    def _model_of(self, observed: Points | Symbols) -> HmmModel:
        """Return sequences as what states emit."""
        emission: Emission
        if isinstance(observed, Points):
            emission = self._gaussian(observed)
        else:
            prior = np.full(len(observed.coder.names), float(self.pseudo_count))
            emission = Categorical(observed.values, prior)
        return self._model(observed.offsets, (emission,))
