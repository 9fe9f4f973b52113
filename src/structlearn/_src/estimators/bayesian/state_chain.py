"""What estimators with chains of any number of hidden states share: fitting and summaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints, cut
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.base import check_is_fitted, threads
from structlearn._src.estimators.bayesian.fitted_settings import digest
from structlearn._src.estimators.bayesian.observed import Points, read_points, whole_numbers
from structlearn._src.estimators.bayesian.sampled import Sampled, concentration
from structlearn._src.estimators.bayesian.scaled import (
    degrees_of_freedom,
    prior_scale,
    scale_of,
    scaled,
    wishart,
)
from structlearn._src.sample import summary
from structlearn._src.sample.emission import Emission, Gaussian
from structlearn._src.sample.hmm import HmmModel, HmmState
from structlearn._src.sample.hmm_sampler import HmmSampler, merge_sweeps
from structlearn._src.sample.normal_wishart import NormalGamma, NormalWishart
from structlearn._src.sample.summary import Summary


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

    # ---- parameters ----------------------------------------------------------------------

    def _check(self) -> None:
        super()._check()
        for name in ("alpha0", "gamma0"):
            concentration(name, getattr(self, name))
        checks.integer("n_moves", self.n_moves)
        checks.boolean("merge", self.merge)
        checks.one_of("covariance", self.covariance, ("full", "diagonal"))

    def _learn_scale(self, points: Points) -> None:
        """Learn how features are scaled: by what they are where they are seen."""
        known = points.values[points.seen]
        self.n_features_in_ = known.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if points.columns:
            self.feature_names_in_ = np.array(points.columns, object)
        self.centre_, self.scale_ = scale_of(known)
        self._prior()  # checks the degrees of freedom, which depend on the number of features

    def _read_points(self, X: Any, lengths: Any) -> Points:
        """Read points as those of training were read."""
        columns = tuple(getattr(self, "feature_names_in_", ()))
        return read_points(X, lengths, self.n_features_in_, columns)

    def _scaled(self, points: Points) -> Floats:
        """Return points with mean 0 and variance 1 in training, 0 where they are missing."""
        values = np.where(points.seen[:, None], points.values, self.centre_)
        return scaled(values, self.centre_, self.scale_)

    def _prior(self) -> NormalWishart | NormalGamma:
        """Return the prior of the Gaussians of states."""
        D = self.n_features_in_
        if self.covariance == "full":
            return wishart(D, self.spread, self.strength, self.degrees)
        degrees = degrees_of_freedom(self.degrees, 1)
        scale = np.full(D, prior_scale(self.spread, degrees, 1))
        return NormalGamma(np.zeros(D), float(self.strength), degrees, scale)

    def _gaussian(self, points: Points) -> Gaussian:
        """Return points as what states emit."""
        return Gaussian(self._scaled(points), points.seen, self._prior())

    # ---- sampling ------------------------------------------------------------------------

    def _model(self, offsets: Ints, emissions: tuple[Emission, ...]) -> HmmModel:
        """Return sequences and what their states emit as one model."""
        alpha = concentration("alpha0", self.alpha0)
        gamma = concentration("gamma0", self.gamma0)
        jobs = threads(self.n_jobs) if self.n_chains == 1 else 1  # else chains are what runs beside
        return HmmModel(offsets, emissions, alpha, gamma, n_jobs=jobs)

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
        """Number of states that most draws have."""
        check_is_fitted(self, "draws_")
        return self.summary_.n_states

    @property
    def transitions_(self) -> Floats:
        """Mean probabilities to follow (states, states); states as in `states_`."""
        check_is_fitted(self, "draws_")
        return self.summary_.transitions()[1]

    @property
    def starts_(self) -> Floats:
        """Mean probabilities to begin in a state."""
        check_is_fitted(self, "draws_")
        return self.summary_.transitions()[0]

    @property
    def states_(self) -> list[Ints]:
        """The likeliest state of every step in training, sequence by sequence."""
        check_is_fitted(self, "draws_")
        return cut(self.summary_.state_shares().argmax(1), self.offsets_)

    def similarity(self, positions: Any = None) -> Floats:
        """Return how often each two steps share a state, (positions, positions).

        Parameters
        ----------
        positions
            Which steps, counted through all training sequences; by default all.
        """
        check_is_fitted(self, "draws_")
        n = int(self.offsets_[-1])
        chosen = np.arange(n) if positions is None else whole_numbers("positions", positions)
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < n:
            raise ArgumentError(f"positions go from 0 to {n - 1}, the steps of all sequences")
        return summary.similarity([draw.states for draw in self.draws_], chosen)
