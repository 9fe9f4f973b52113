"""How weights of hinge-loss fields are learnt: one set of choices, for rules and for arrays."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import ArgumentError, VanishedWeightsWarning, did_you_mean, warn
from structlearn._src.common.names import FIELD_DRIVERS, OLD_DRIVERS
from structlearn._src.common.watch import Watch
from structlearn._src.estimators.base import threads
from structlearn._src.estimators.fitting import FitSettings, keep, minimise
from structlearn._src.estimators.structured.parameters import check_parameters
from structlearn._src.field.examples import HingeExamples, make_field_examples
from structlearn._src.field.hinges import Hinges
from structlearn._src.learn.field_objective import FieldError, FieldObjective
from structlearn._src.learn.loss import NonNegative
from structlearn._src.learn.world import InferenceSettings
from structlearn._src.solve.base import Solver
from structlearn._src.solve.drivers import Cccp
from structlearn._src.solve.loop import Fit
from structlearn._src.solve.pick import choose
from structlearn._src.solve.stochastic import RULES, Stochastic

#: Former names of options, which are still taken.
OLD_NAMES = {"learner": "driver", "steps": "sweeps"}
#: Options with the same rules as those of other estimators.
_SHARED = ("solver", "C", "max_iter", "tol", "callbacks", "time_limit", "progress", "checkpoint")
#: Options of the drivers that compare two worlds.
_TWO_WORLDS = ("sweeps", "warm_up", "inner_iter", "surrogate", "strength", "l1_ratio", "eta")
#: Options that are numbers from 0 on, and what else they must be.
_NUMBERS: dict[str, dict[str, Any]] = {
    "step_size": {"open_low": True, "open_high": True},
    "eta": {"open_low": True, "open_high": True},
    "average": {"high": 1.0},
    "l1_ratio": {"high": 1.0},
}
#: What a restart from a checkpoint must share, beside field, labels and solver.
_FACTS = ("driver", *_TWO_WORLDS, "C")
#: Those that earlier checkpoints lack.
_LATER = ("inner_iter", "l1_ratio", "eta")
_ADAGRAD = 0.3  # its first step, in units of the weights at the start
_ROUGH = 0.01  # tolerance of the error: weights that gain less are fitted to noise
_VANISHED = 0.01  # share of the mean weight at the start that counts as nothing


@dataclass(frozen=True, kw_only=True)
class FieldLearning(FitSettings):
    """The choices of `fit` for hinge-loss fields, which says what they mean.

    Nothing depends on the scale of the weights at the start but the scale of those at the end.
    """

    driver: str = "auto"
    sweeps: int | None = 1
    warm_up: int = 10
    inner_iter: int = 50
    surrogate: str = "loss"
    strength: float = 1.0
    C: float = 1.0
    l1_ratio: float = 0.0
    eta: float | None = None
    max_iter: int = 200
    rule: str = "adagrad"
    step_size: float | None = None
    average: float | None = None

    def __post_init__(self) -> None:
        checks.one_of("driver", self.driver, (*FIELD_DRIVERS, *OLD_DRIVERS))
        check_parameters({name: getattr(self, name) for name in _SHARED})
        for name in ("sweeps", "inner_iter"):
            checks.integer(name, getattr(self, name), low=1)
        checks.integer("warm_up", self.warm_up)
        checks.one_of("rule", self.rule, RULES)
        for name, limits in _NUMBERS.items():
            if getattr(self, name) is not None:
                checks.number(name, getattr(self, name), low=0.0, **limits)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> FieldLearning:
        """Make it of the options that a user gave, by new or old names."""
        names = [field.name for field in dataclasses.fields(cls)]
        given: dict[str, Any] = {}
        for name, value in options.items():
            new = OLD_NAMES.get(name, name)
            if new not in names:
                raise ArgumentError(
                    f"fit has no option {name!r}{did_you_mean(name, [*names, *OLD_NAMES])}; there "
                    f"are {', '.join(names)}"
                )
            if new in given:
                old = next(old for old, name in OLD_NAMES.items() if name == new)
                raise ArgumentError(f"{old} is the old name of {new}: give only {new}")
            given[new] = value
        made = cls(**given)
        meant = [name for name in _TWO_WORLDS if name in given]
        if made.driver == "auto":
            made = replace(made, driver="paired" if meant else "bilevel")
        if made.driver != "bilevel":
            return made
        if meant:
            raise ArgumentError(
                f"{meant[0]} has no effect with driver='bilevel': leave it out, or choose one of "
                f"{', '.join(map(repr, FIELD_DRIVERS[2:]))}"
            )
        return replace(made, surrogate="none", tol=given.get("tol", _ROUGH))

    def run(
        self, estimator: Any, hinges: Hinges, weights: Floats, truth: Any, **known: Any
    ) -> Floats:
        """Learn, note on the estimator how it went, and return the weights of all groups.

        `known` is what else `make_field_examples` takes. The estimator's limit of time and its
        progress count where `fit` was given none.
        """
        chosen = replace(
            self,
            time_limit=estimator.time_limit if self.time_limit is None else self.time_limit,
            progress=self.progress or estimator.progress,
        )
        examples = make_field_examples(
            hinges,
            truth,
            weights=weights,
            surrogate=self.surrogate,
            strength=self.strength,
            **known,
        )
        if not len(examples.learnt):
            raise ArgumentError("there is no weight to learn: no group that may learn has a hinge")
        found, fit = chosen._minimise(examples, threads(estimator.n_jobs))
        keep(estimator, fit)
        return found

    def _minimise(self, examples: HingeExamples, n_jobs: int | None) -> tuple[Floats, Fit]:
        objective = self._objective(examples, n_jobs)
        # EM has its own number of inner steps, and is a solver here.
        driver = "paired" if self.driver == "paired" else "subgradient"
        settings: FitSettings = replace(self, solver=self._solver(objective), driver=driver)
        facts = {name: getattr(self, name) for name in _FACTS}
        for name in _LATER:
            if facts[name] == getattr(FieldLearning, name):
                facts[name] = None  # as in earlier checkpoints
        fit = minimise(objective, objective.start, settings, facts=facts)
        weights = examples.fill_in(fit.weights)[:-1]  # but that of the surrogate
        if math.isinf(fit.value):
            fit = fit._replace(value=math.nan)  # no time was left to find it
        if weights[examples.hinges.sizes[:-1] > 0].max() <= _VANISHED * objective.hints.step:
            warn(
                "after learning all weights are 0 or nearly so: predictions are those without "
                "rules; use driver='bilevel', or another surrogate",
                VanishedWeightsWarning,
            )
        is_kept = bool((fit.weights == objective.start).all()) and not fit.ended.early
        if self.driver == "bilevel" and is_kept and fit.value > _ROUGH:
            _warn_of_jumps(examples.hinges)
        return weights, fit

    def _objective(self, examples: HingeExamples, n_jobs: int | None) -> Any:
        settings = InferenceSettings(n_jobs=n_jobs, step=self.eta)
        watch = Watch(self.time_limit)
        if self.driver == "bilevel":
            return FieldError(examples, self.C, settings, watch)
        scale = float(examples.weights[examples.learnt].mean()) or 1.0
        weights = examples.weights.copy()
        weights[-1] *= scale  # the surrogate's strength is in units of the start
        strength = (1.0 - self.l1_ratio) / scale + self.l1_ratio
        penalty = NonNegative(self.l1_ratio / strength, strength)
        return FieldObjective(replace(examples, weights=weights), self.C, penalty, settings, watch)

    def _solver(self, objective: Any) -> str | Solver:
        solver = self._steps(objective) if self.solver == "auto" else self.solver
        if self.driver not in ("cccp", *OLD_DRIVERS):
            return solver
        inner = choose(solver, "subgradient", objective)
        return Cccp(inner, self.inner_iter, objective.hints.inner_tol)

    def _steps(self, objective: Any) -> Solver:
        size = self.step_size or (_ADAGRAD if self.rule == "adagrad" else 1.0)
        average = self.average
        if average is None:
            average = 0.0 if self.driver == "bilevel" else 0.5
        step = size * (objective.hints.first_step(self.rule) or 1.0)
        return Stochastic(rule=self.rule, step_size=step, average=average)


def _warn_of_jumps(hinges: Hinges) -> None:
    """Say that weights had no slope to follow, where no hinge is squared."""
    if (hinges.powers[~hinges.hard] > 1).any():
        return
    from sklearn.exceptions import ConvergenceWarning  # slow to import, and seldom needed

    warn(
        "nothing was learnt: the inferred values of linear rules change in jumps, and a small "
        "change of the weights at the start changes none of them; square the rules (^2), start "
        "elsewhere, or use driver='paired'",
        ConvergenceWarning,
    )
