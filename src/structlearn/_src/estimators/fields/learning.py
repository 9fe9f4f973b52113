"""How weights of hinge-loss fields are learnt: one set of choices, for rules and for arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import ArgumentError, did_you_mean
from structlearn._src.common.names import FIELD_DRIVERS, OLD_DRIVERS
from structlearn._src.estimators.fitting import FitSettings, minimise
from structlearn._src.estimators.structured.parameters import check_parameters
from structlearn._src.field.examples import HingeExamples
from structlearn._src.learn.field_objective import FieldObjective
from structlearn._src.learn.loss import NonNegative
from structlearn._src.learn.world import InferenceSettings
from structlearn._src.solve.loop import Fit
from structlearn._src.solve.stochastic import RULES, Stochastic

#: Names of before, by which options may still be given.
OLD_NAMES = {"learner": "driver", "steps": "sweeps"}
#: Options with the same rules as those of other estimators.
_SHARED = ("solver", "C", "max_iter", "tol", "callbacks", "time_limit", "progress", "checkpoint")
#: What a restart from a checkpoint must share, beside field, labels and solver.
_FACTS = ("driver", "sweeps", "warm_up", "surrogate", "strength", "C")


@dataclass(frozen=True, kw_only=True)
class FieldLearning(FitSettings):
    r"""The choices of `fit` for hinge-loss fields.

    The objective, with labels :math:`\hat y` and latent variables :math:`z`, is

    .. math:: \tfrac{1}{2} |w|^2 + C \Bigl(\min_z \, [w^\top \phi(\hat y, z) - h(\hat y, z)]
              - \min_{y, z} \, [w^\top \phi(y, z) - h(y, z)]\Bigr), \qquad w \ge 0 .

    References
    ----------
    S. Bach, B. Huang, J. Boyd-Graber and L. Getoor, "Paired-dual learning for fast training of
    latent variable hinge-loss MRFs", ICML 2015.
    """

    driver: str = "paired"
    sweeps: int | None = 1
    warm_up: int = 10
    surrogate: str = "entropy"
    strength: float = 1.0
    C: float = 1.0
    max_iter: int = 200
    rule: str = "root"
    step_size: float = 1.0
    average: float = 0.5

    def __post_init__(self) -> None:
        checks.one_of("driver", self.driver, (*FIELD_DRIVERS, *OLD_DRIVERS))
        check_parameters({name: getattr(self, name) for name in _SHARED})
        checks.integer("sweeps", self.sweeps, low=1)
        checks.integer("warm_up", self.warm_up)
        checks.one_of("rule", self.rule, RULES)
        checks.number("step_size", self.step_size, low=0.0, open_low=True, open_high=True)
        checks.number("average", self.average, low=0.0, high=1.0)

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
        return cls(**given)

    def run(self, examples: HingeExamples, n_jobs: int | None) -> tuple[Floats, Fit]:
        """Learn; return the weights of all groups but that of the surrogate, and how it went."""
        settings = InferenceSettings(n_jobs=n_jobs)
        objective = FieldObjective(examples, self.C, NonNegative(), settings)
        if not objective.n_weights:
            raise ArgumentError("there is no weight to learn: no group has a hinge")
        chosen: FitSettings = self
        if self.solver == "auto":
            step = self.step_size * (objective.hints.first_step(self.rule) or 1.0)
            steps = Stochastic(rule=self.rule, step_size=step, average=self.average)
            chosen = replace(self, solver=steps)
        facts = {name: getattr(self, name) for name in _FACTS}
        fit = minimise(objective, objective.start, chosen, facts=facts)
        return examples.fill_in(fit.weights)[:-1], fit
