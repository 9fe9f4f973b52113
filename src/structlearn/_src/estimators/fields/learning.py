"""How weights of hinge-loss fields are learnt: one set of choices, for rules and for arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import ArgumentError, did_you_mean
from structlearn._src.common.names import FIELD_DRIVERS, OLD_DRIVERS
from structlearn._src.common.watch import Progress, Watch
from structlearn._src.estimators.run import callbacks
from structlearn._src.field.examples import HingeExamples
from structlearn._src.learn.field_objective import FieldObjective
from structlearn._src.learn.penalty import NonNegative
from structlearn._src.learn.world import InferenceSettings
from structlearn._src.solve.base import Solver
from structlearn._src.solve.cccp import Cccp
from structlearn._src.solve.loop import Callback, Fit, run
from structlearn._src.solve.paired import Paired
from structlearn._src.solve.pick import SOLVERS, check_solver
from structlearn._src.solve.steps import RULES
from structlearn._src.solve.stochastic import Stochastic

#: Names of before, by which options may still be given.
OLD_NAMES = {"learner": "driver", "steps": "sweeps"}
_PATIENCE = 50  # steps that gained next to nothing, of steps that waver
_FEW = 5  # the same for iterations that hold many steps
_INNER = 50  # weight steps of one bound of "cccp": subgradients need all of them


@dataclass(frozen=True)
class FieldLearning:
    r"""The choices of `fit` for hinge-loss fields.

    The objective, with labels :math:`\hat y` and latent variables :math:`z`, is

    .. math:: \tfrac{1}{2} |w|^2 + C \Bigl(\min_z \, [w^\top \phi(\hat y, z) - h(\hat y, z)]
              - \min_{y, z} \, [w^\top \phi(y, z) - h(y, z)]\Bigr), \qquad w \ge 0 .

    Parameters
    ----------
    driver
        "paired" is paired-dual learning: `sweeps` steps of ADMM between two weight steps, from
        where they stood. "cccp" infers the latent variables, learns as if they were known, and
        repeats: expectation maximisation, so "em" means the same. "subgradient" infers to
        convergence before every weight step. (Formerly `learner`.)
    solver
        What takes the weight steps: "auto" for the steps that `rule`, `step_size` and `average`
        describe, or a name or solver as for other estimators.
    sweeps
        Steps of ADMM for each weight step of "paired", in both worlds. (Formerly `steps`.)
    surrogate
        What stands for the entropy :math:`h`: "entropy" draws variables to one half; "loss" draws
        labelled ones away from their labels, as structured support vector machines do; "none"
        makes the perceptron, whose best weights may be 0.
    strength
        Weight of the surrogate.
    C
        Weight of the losses against the penalty.
    max_iter
        Weight steps; bounds of "cccp".
    tol
        Relative tolerance of the objective at which learning ends; None to go on to `max_iter`.
    callbacks
        Each is called with an event after every iteration; one that returns True ends the fit.
    checkpoint
        Where (and how often) the fit is saved, and continued from if the file exists.
    time_limit, progress
        As for the estimator, whose own are used if not given.
    warm_up
        Evaluations of "paired" before the first weight step.
    rule
        How weight steps get shorter: "root", "adagrad", "decaying", "fixed" or "pegasos". Lengths
        of "root" fall as :math:`1 / \sqrt{t}`, and those of a rule's weight are divided by the
        number of its hinges: cautious steps, with which few of them often predict best. "adagrad"
        finds the lengths by itself and gets to the optimum in fewer steps.
    step_size
        Length of the first weight step: the mean weight at the start times this times the mean
        difference of a rule's hinges between the worlds. "adagrad" leaves out the last factor, so
        0.3 is a good choice for it.
    average
        Share of the weight steps, the last ones, whose weights are averaged; 0 for none.

    References
    ----------
    S. Bach, B. Huang, J. Boyd-Graber and L. Getoor, "Paired-dual learning for fast training of
    latent variable hinge-loss MRFs", ICML 2015.
    """

    driver: str = "paired"
    solver: str | Solver = "auto"
    sweeps: int = 1
    surrogate: str = "entropy"
    strength: float = 1.0
    C: float = 1.0
    max_iter: int = 200
    tol: float | None = 1e-4
    callbacks: Sequence[Callback] = ()
    checkpoint: Any = None
    time_limit: float | None = None
    progress: Progress | None = None
    warm_up: int = 10
    rule: str = "root"
    step_size: float = 1.0
    average: float = 0.5

    def __post_init__(self) -> None:
        checks.one_of("driver", self.driver, FIELD_DRIVERS)
        check_solver(self.solver)
        checks.number("C", self.C, low=0.0, open_low=True, open_high=True)
        checks.integer("max_iter", self.max_iter, low=1)
        checks.integer("sweeps", self.sweeps, low=1)
        checks.integer("warm_up", self.warm_up)
        checks.one_of("rule", self.rule, tuple(RULES))
        checks.number("step_size", self.step_size, low=0.0, open_low=True, open_high=True)
        checks.number("average", self.average, low=0.0, high=1.0)
        if self.tol is not None:
            checks.number("tol", self.tol, low=0.0, open_high=True)
        callbacks(self.callbacks)

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
                raise ArgumentError(f"{name}={value!r} is an old name of {new}: give only {new}")
            given[new] = value
        driver = given.get("driver")
        if isinstance(driver, str):
            given["driver"] = OLD_DRIVERS.get(driver, driver)
        return cls(**given)

    def make_solver(self, scale: float = 1.0) -> Solver:
        """Return the driver with its steps, for weights of this size."""
        inner = self._inner(scale)
        if self.driver == "paired":
            return Paired(inner, sweeps=self.sweeps, warm_up=self.warm_up)
        if self.driver == "cccp":
            return Cccp(inner, inner_iter=_INNER, inner_tol=0.0)
        return inner

    def _inner(self, scale: float) -> Solver:
        if self.solver == "auto":
            step = scale * self.step_size / (1.0 if self.rule == "adagrad" else self.C)
            return Stochastic(rule=self.rule, step_size=step, average=self.average)
        return SOLVERS[self.solver]() if isinstance(self.solver, str) else self.solver

    def run(self, examples: HingeExamples, n_jobs: int | None) -> tuple[Floats, Fit]:
        """Learn; return the weights of all groups but that of the surrogate, and how it went."""
        objective = FieldObjective(
            examples, self.C, NonNegative(), InferenceSettings(n_jobs=n_jobs)
        )
        if not objective.n_weights:
            raise ArgumentError("there is no weight to learn: no group has a hinge")
        fit = run(
            self.make_solver(float(objective.start.mean()) or 1.0),
            objective,
            objective.start,
            max_iter=self.max_iter,
            tol=self.tol,
            patience=_FEW if self.driver == "cccp" else _PATIENCE,
            callbacks=self.callbacks,
            watch=Watch(self.time_limit, self.progress),
            checkpoint=self.checkpoint,
        )
        return examples.fill_in(fit.weights)[:-1], fit
