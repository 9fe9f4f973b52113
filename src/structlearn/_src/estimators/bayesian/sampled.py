"""What estimators that draw from a posterior share: sweeps, chains, and what these tell.

A fit succeeds as a whole or changes nothing, and predictions go by the parameters of the fit.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial, wraps
from hashlib import blake2b
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import checks
from structlearn._src.common.errors import ArgumentError, BurnInWarning, MixingWarning, warn
from structlearn._src.common.names import RUN_ONLY
from structlearn._src.common.watch import Ending, Progress, Watch
from structlearn._src.estimators.base import Estimator, check_is_fitted, threads
from structlearn._src.estimators.bayesian.exchange import to_arviz
from structlearn._src.sample import runner
from structlearn._src.sample.hdp import Concentration, Gamma
from structlearn._src.sample.runner import MarkovChain, Sampler, Schedule

positive = partial(checks.number, low=0.0, open_low=True, open_high=True)
#: Features are scaled: classifiers of larger ones are beyond rounding, and weights become NaN.
moderate = partial(positive, high=1e9, open_high=False)
#: With more moves in each sweep a run of some hundred sweeps does not end within a day.
moves = partial(checks.integer, high=1_000_000)
_TIGHTEST = 1e-8  # of `spread`: with less, rounding leaves covariances that are none
_AGREE = 1.2  # R-hat: above, chains differ by more than a few draws of each can explain
_ADVICE = (
    "give the same data and parameters, of which n_draws may grow, or use warm_start=False to "
    "start again"
)

Fit = TypeVar("Fit", bound=Callable[..., Any])


class FittedSettings(Estimator):
    """Base class: a fit leaves the parameters that define its model in `settings_`.

    Parameters that are set later wait for the next fit.
    """

    #: Parameters that say nothing of what is learnt.
    _FREE: ClassVar[frozenset[str]] = RUN_ONLY | {"random_state"}
    settings_: dict[str, Any]

    def _settings(self) -> dict[str, Any]:
        """Return the parameters that define the model."""
        given = self.get_params(deep=False).items()
        return {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given
            if name not in self._FREE
        }

    def _with_fitted_params(self) -> Self:
        """Return a copy with the parameters of the fit: what predictions read."""
        check_is_fitted(self, "settings_")
        return copy(self).set_params(**self.settings_)


def all_or_nothing(fit: Fit) -> Fit:
    """Let `fit` work on a copy, whose attributes the estimator takes over if all goes well.

    The copy knows nothing of an earlier fit, unless it is to go on from there.
    """

    @wraps(fit)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        trial = copy(self)
        if not checks.boolean("warm_start", getattr(self, "warm_start", False)):
            for name in [name for name in vars(trial) if name.endswith("_")]:
                delattr(trial, name)
        fitted = fit(trial, *args, **kwargs)
        fitted.settings_ = fitted._settings()
        self.__dict__ = fitted.__dict__
        return self

    return cast(Fit, whole)


def digest(*arrays: NDArray[Any]) -> str:
    """Return a text that differs for arrays that differ.

    Examples
    --------
    >>> digest(np.arange(3)) == digest(np.arange(3)), digest(np.arange(3)) == digest(np.arange(4))
    (True, False)
    """
    total = blake2b(digest_size=16)
    for array in arrays:
        plain = array.dtype.kind in "fiub"
        total.update(repr((array.dtype.str, array.shape)).encode())
        total.update(np.ascontiguousarray(array).data if plain else repr(array.tolist()).encode())
    return total.hexdigest()


@dataclass(kw_only=True, eq=False, repr=False)
class Sampled(FittedSettings):
    """Base class: the Gaussians of states, how many sweeps and chains, and what chains tell.

    Subclasses leave chains in `chains_` by `_run`, with the data that these belong to in
    `data_signature_`, and what predictions need in `draws_`.
    """

    spread: float = 1.0
    strength: float = 0.1
    degrees: float | None = None
    n_start: int = 20
    burn_in: int = 200
    n_draws: int = 50
    thin: int = 1
    n_chains: int = 4
    warm_start: bool = False
    random_state: Any = None
    n_jobs: int | None = None
    time_limit: float | None = None
    progress: Progress | bool | None = None

    _FREE = FittedSettings._FREE | {"n_draws", "warm_start"}
    #: What parameters must be, by their names.
    _CHECKS: ClassVar[dict[str, Callable[[str, Any], Any]]] = {
        "spread": partial(checks.number, low=_TIGHTEST, open_high=True),
        "strength": positive,
        **dict.fromkeys(("n_start", "n_draws", "thin", "n_chains"), partial(checks.integer, low=1)),
        "burn_in": checks.integer,
        "warm_start": checks.boolean,
    }
    #: Numbers that every sweep tells, by their names in its record.
    _TRACED: ClassVar[tuple[str, ...]]
    _WATCHED: ClassVar[tuple[str, ...]]  #: those in which chains must agree

    def _check(self, *names: str) -> None:
        """Check some parameters, by default all that say what is drawn."""
        for name in names or self._CHECKS:
            self._CHECKS[name](name, getattr(self, name))

    # ---- sampling ------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Check all parameters before any work, also that chains can go on with them."""
        self._check()
        check_watch(self.time_limit, self.progress)
        threads(self.n_jobs)
        if not self._goes_on:
            return
        self._check_same(self.settings_, self._settings())
        n = max(len(chain.draws) for chain in self.chains_)
        if n > self.n_draws:
            raise ArgumentError(
                f"warm_start=True and n_draws={self.n_draws}, but chains have {n} draws already; "
                f"{_ADVICE}"
            )

    @property
    def _goes_on(self) -> bool:
        return self.warm_start and hasattr(self, "chains_")

    def _check_same(self, before: dict[str, Any], now: dict[str, Any]) -> None:
        """Refuse to go on with the chains of another model, or of other data."""
        for name, value in now.items():
            if before.get(name) != value:
                is_setting = name in self.get_params(deep=False)
                was = f"{name} was {before.get(name)!r} and is {value!r}"
                raise ArgumentError(
                    f"warm_start=True continues the chains of the previous fit, but "
                    f"{was if is_setting else f'the {name} differ'}; {_ADVICE}"
                )

    def _run(self, sampler: Sampler[Any], signature: dict[str, Any]) -> None:
        """Advance all chains to their end; an interrupt keeps the draws so far.

        The `signature` says what the data are, by their names in messages.
        """
        seed = self.random_state
        signature["random_state"] = int(seed) if isinstance(seed, int | np.integer) else None
        if self._goes_on:
            self._check_same(self.data_signature_, signature)
            chains = [chain.copy() for chain in self.chains_]
        else:
            rngs = runner.streams(checks.generator(seed), self.n_chains)
            chains = [MarkovChain(sampler.begin(rng), rng) for rng in rngs]
        # Plain integers: sums of NumPy's short ones wrap around.
        schedule = Schedule(int(self.burn_in), int(self.n_draws), int(self.thin))
        watch = Watch(self.time_limit, self.progress)
        ended = runner.run(sampler, chains, schedule, n_jobs=threads(self.n_jobs), watch=watch)
        self.status_ = str(ended)
        self.chains_: list[MarkovChain[Any]] = chains
        self.data_signature_: dict[str, Any] = signature
        self._warn(ended)

    def _warn(self, ended: Ending) -> None:
        """Say where answers will not be those of the posterior."""
        if not any(chain.draws for chain in self.chains_):
            sweeps = max(chain.sweeps for chain in self.chains_)
            warn(
                f"{ended.sentence} after {sweeps} sweeps, before the first draw was kept "
                f"(burn_in={self.burn_in}); predictions use the current states of chains, not "
                f"draws from the posterior; allow more time, or use warm_start=True to continue",
                BurnInWarning,
            )
            return
        found = {
            name: runner.r_hat(runner.traced(self.chains_, name, self.burn_in))
            for name in self._WATCHED
        }
        name = max(found, key=lambda name: np.nan_to_num(found[name]))
        if found[name] > _AGREE:
            warn(
                f"the chains disagree: R-hat of {name} is {found[name]:.2f}, above {_AGREE}; see "
                f"diagnostics(), raise burn_in, or continue with warm_start=True and larger "
                f"n_draws",
                MixingWarning,
            )

    def _drawn(self) -> list[Any]:
        """Return the draws of all chains, or where these stand if there are none yet."""
        draws = [draw for chain in self.chains_ for draw in chain.draws]
        return draws or [chain.state for chain in self.chains_]

    # ---- what chains tell ----------------------------------------------------------------

    @property
    def ended_(self) -> Ending:
        """How sampling ended."""
        check_is_fitted(self, "status_")
        return Ending(self.status_)

    @property
    def given_(self) -> dict[str, Any]:
        """The name of `data_signature_` in model files, and before."""
        return self.data_signature_

    def traces(self) -> dict[str, NDArray[Any]]:
        """Return what was recorded in every sweep after burn-in.

        All sweeps are included, whatever `thin` is. The axes are those that ArviZ's ``from_dict``
        expects of a posterior.

        Returns
        -------
        dict of arrays of shape (chains, sweeps)
            By name, for example "n_states" and "log_density" of a hidden Markov model.

        Examples
        --------
        >>> from structlearn import InfiniteHMM
        >>> X = [["a", "a", "b", "b", "a", "a"]]
        >>> model = InfiniteHMM(emission="categorical", burn_in=5, n_draws=3, random_state=0)
        >>> model.fit(X).traces()["n_states"].shape
        (4, 3)
        """
        check_is_fitted(self, "draws_")
        burn_in = self.settings_["burn_in"]
        if min(chain.sweeps for chain in self.chains_) <= burn_in:
            burn_in = 0  # sampling ended before: all sweeps are better than none
        return {name: runner.traced(self.chains_, name, burn_in) for name in self._TRACED}

    def diagnostics(self) -> dict[str, dict[str, float]]:
        """Return mean, R-hat and effective sample size of each of the `traces`.

        Returns
        -------
        dict of dicts
            For every trace a dictionary with the keys "mean", "r_hat" and "effective_size".

        Examples
        --------
        >>> from structlearn import InfiniteHMM
        >>> X = [["a", "a", "b", "b", "a", "a"]]
        >>> model = InfiniteHMM(emission="categorical", burn_in=5, n_draws=3, random_state=0).fit(X)
        >>> sorted(model.diagnostics()["log_density"])
        ['effective_size', 'mean', 'r_hat']
        """
        return {
            name: {
                "mean": float(draws.mean()),
                "r_hat": runner.r_hat(draws),
                "effective_size": runner.effective_size(draws),
            }
            for name, draws in self.traces().items()
        }

    def to_arviz(self) -> Any:
        """Return the `traces` in the form that ArviZ reads, for its summaries and plots.

        Needs the package arviz.

        Returns
        -------
        arviz.InferenceData
            Group "posterior" with a variable for each trace, dimensions chain and draw; the log
            density is "lp" in the group "sample_stats".

        Examples
        --------
        >>> import numpy as np
        >>> from structlearn import InfiniteHMM
        >>> rng = np.random.default_rng(0)
        >>> X = np.repeat([0.0, 5.0, 0.0], 20)[:, None] + rng.normal(size=(60, 1))
        >>> model = InfiniteHMM(burn_in=20, n_draws=10, random_state=0).fit(X)
        >>> model.to_arviz().posterior["n_states"].shape  # doctest: +SKIP
        (4, 10)
        """
        return to_arviz(self.traces())


def check_watch(time_limit: Any, progress: Any) -> None:
    """Refuse what cannot be a time limit, or be told of progress."""
    if time_limit is not None:
        checks.number("time_limit", time_limit, low=0.0)
    Watch(progress=progress)


def as_concentration(name: str, given: Any) -> Concentration:
    """Return a fixed concentration, or the gamma prior that shape and rate stand for."""
    if isinstance(given, tuple | list):
        if len(given) != 2:
            raise ArgumentError(
                f"{name}={given!r} must be a number, or the shape and the rate of its gamma prior"
            )
        shape, rate = (positive(name, value) for value in given)
        return Gamma(shape, rate)
    return positive(name, given)
