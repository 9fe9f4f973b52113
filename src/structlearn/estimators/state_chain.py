"""What estimators with chains of any number of hidden states share: fitting and summaries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from structlearn.common import checks
from structlearn.common.checks import Floats, Ints
from structlearn.common.errors import ArgumentError
from structlearn.common.random import generator
from structlearn.common.watch import Progress, Watch
from structlearn.estimators.observed import Points
from structlearn.estimators.run import threads
from structlearn.sample.align import similarity
from structlearn.sample.chain import Info, Model, State, start
from structlearn.sample.diagnostics import effective_size, r_hat
from structlearn.sample.emission import Gaussian, Part
from structlearn.sample.normal_gamma import NormalGamma
from structlearn.sample.normal_wishart import NormalWishart
from structlearn.sample.process import Concentration, Gamma
from structlearn.sample.runner import Chain, Schedule, run, streams
from structlearn.sample.summary import Summary
from structlearn.sample.sweep import sweep

_POSITIVE = partial(checks.number, low=0.0, open_low=True, open_high=True)
_COUNT = partial(checks.whole, low=1)


@dataclass(kw_only=True, eq=False, repr=False)
class StateChain(BaseEstimator):  # type: ignore[misc]
    """Base class: parameters of the chain of states, its sampler, and what its draws tell."""

    alpha0: float | tuple[float, float] = (1.0, 1.0)
    gamma0: float | tuple[float, float] = (1.0, 1.0)
    covariance: str = "full"
    spread: float = 1.0
    strength: float = 0.1
    degrees: float | None = None
    n_start: int = 20
    burn_in: int = 200
    n_draws: int = 100
    thin: int = 1
    n_chains: int = 1
    n_moves: int = 4
    merge: bool = True
    warm_start: bool = False
    random_state: Any = None
    n_jobs: int | None = None
    time_limit: float | None = None
    progress: Progress | None = None

    # ---- parameters ----------------------------------------------------------------------

    def _check(self) -> None:
        """Check all parameters, before any work."""
        for name in ("alpha0", "gamma0"):
            concentration(name, getattr(self, name))
        for name in ("spread", "strength"):
            _POSITIVE(name, getattr(self, name))
        for name in ("n_start", "n_draws", "thin", "n_chains"):
            _COUNT(name, getattr(self, name))
        for name in ("burn_in", "n_moves"):
            checks.whole(name, getattr(self, name))
        for name in ("merge", "warm_start"):
            checks.truth(name, getattr(self, name))
        if self.time_limit is not None:
            checks.number("time_limit", self.time_limit, low=0.0)
        checks.one_of("covariance", self.covariance, ("full", "diagonal"))
        threads(self.n_jobs)

    def _learn_scale(self, points: Points) -> None:
        """Learn how features are scaled: by what they are where they are seen."""
        known = points.values[points.seen]
        deviations = known.std(axis=0)
        self.n_features_in_ = known.shape[1]
        self.centre_ = known.mean(axis=0)
        self.scale_ = np.where(deviations > 0.0, deviations, 1.0)
        low = 0.0 if self.covariance == "diagonal" else self.n_features_in_ - 1.0
        if self.degrees is not None:
            checks.number("degrees", self.degrees, low=low, open_low=True, open_high=True)

    def _scaled(self, points: Points) -> Floats:
        """Return points with mean 0 and variance 1 in training, 0 where they are missing."""
        scaled = (points.values - self.centre_) / self.scale_
        return np.ascontiguousarray(np.where(points.seen[:, None], scaled, 0.0))

    def _gaussian(self, points: Points) -> Gaussian:
        """Return points as what states emit."""
        D, full = points.values.shape[1], self.covariance == "full"
        least = D if full else 1
        degrees = least + 2.0 if self.degrees is None else float(self.degrees)
        each = self.spread * max(degrees - least - 1.0, 1.0)
        known: NormalWishart | NormalGamma
        if full:
            known = NormalWishart(np.zeros(D), float(self.strength), degrees, each * np.eye(D))
        else:
            known = NormalGamma(np.zeros(D), float(self.strength), degrees, np.full(D, each))
        return Gaussian(self._scaled(points), points.seen, known)

    # ---- sampling ------------------------------------------------------------------------

    def _model(self, offsets: Ints, parts: tuple[Part, ...]) -> Model:
        """Return sequences and parts as one model."""
        given = concentration("alpha0", self.alpha0), concentration("gamma0", self.gamma0)
        jobs = threads(self.n_jobs) if self.n_chains == 1 else 1
        return Model(offsets, parts, *given, n_jobs=jobs)

    def _sample(self, model: Model) -> None:
        """Run all chains, and sum up their draws; an interrupt keeps those that were made."""
        chains = self._chains(model)
        schedule = Schedule(self.burn_in, self.n_draws, self.thin)
        watch = Watch(self.time_limit, self.progress)
        merges = _merges(self.burn_in) if self.merge else range(0)

        def step(state: State, rng: np.random.Generator, i: int) -> tuple[State, Info]:
            return sweep(model, state, rng, n_moves=self.n_moves, merge=i in merges)

        self.status_ = run(step, chains, schedule, n_jobs=threads(self.n_jobs), watch=watch)
        self.chains_: list[Chain[State]] = chains
        draws = [draw for chain in chains for draw in chain.draws]
        self.draws_: list[State] = draws or [chain.state for chain in chains]
        self.offsets_ = model.offsets
        self.summary_ = Summary.of(self.draws_)

    def _chains(self, model: Model) -> list[Chain[State]]:
        """Return chains at random places, or those of the fit before."""
        if self.warm_start and hasattr(self, "chains_"):
            if not np.array_equal(self.offsets_, model.offsets):
                raise ArgumentError(
                    "warm_start=True, but the earlier fit had sequences of other lengths; go on "
                    "with the same ones, or use warm_start=False"
                )
            return self.chains_
        chains = []
        for rng in streams(self._rng(), self.n_chains):
            states = rng.integers(self.n_start, size=model.n_positions)
            chains.append(Chain(start(model, states, rng), rng))
        return chains

    def _rng(self) -> np.random.Generator:
        state = self.random_state
        if isinstance(state, np.random.RandomState):
            state = int(state.randint(2**31))
        return generator(state)

    # ---- what draws tell -----------------------------------------------------------------

    @property
    def n_states_(self) -> int:
        """Number of states that most draws have."""
        check_is_fitted(self, "draws_")
        return int(np.bincount([draw.n_states for draw in self.draws_]).argmax())

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
        return self._by_sequence(self.summary_.state_shares().argmax(1), self.offsets_)

    def similarity(self, positions: Any = None) -> Floats:
        """Return how often each two steps share a state, (positions, positions).

        Parameters
        ----------
        positions
            Which steps, counted through all training sequences; by default all.
        """
        check_is_fitted(self, "draws_")
        n = int(self.offsets_[-1])
        chosen = np.arange(n) if positions is None else checks.indices("positions", positions)
        return similarity([draw.states for draw in self.draws_], chosen)

    def traces(self) -> dict[str, Floats]:
        """Return what chains did after burn-in, each (chains, sweeps): for ArviZ, or a picture.

        Axes are as ArviZ's ``from_dict`` has them in a posterior.
        """
        check_is_fitted(self, "draws_")
        chains = self.chains_
        burn_in = self.burn_in if min(chain.sweeps for chain in chains) > self.burn_in else 0
        least = min(chain.sweeps for chain in chains) - burn_in
        rows = [chain.trace[burn_in : burn_in + least] for chain in chains]
        names = ("n_states", "alpha0", "gamma0", "log_density")
        return {name: np.array([[getattr(i, name) for i in r] for r in rows]) for name in names}

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

    @staticmethod
    def _by_sequence(values: Any, offsets: Ints) -> list[Any]:
        return np.split(values, offsets[1:-1])


def concentration(name: str, given: Any) -> Concentration:
    """Return a fixed concentration, or the gamma prior that shape and rate stand for."""
    if isinstance(given, tuple | list):
        if len(given) != 2:
            raise ArgumentError(
                f"{name}={given!r} must be a number, or the shape and the rate of its gamma prior"
            )
        shape, rate = (_POSITIVE(name, value) for value in given)
        return Gamma(shape, rate)
    return _POSITIVE(name, given)


def _merges(burn_in: int) -> range:
    """Return the sweeps at which states are joined: enough before them to find their places."""
    return range(burn_in // 4, burn_in, max(burn_in // 8, 1))
