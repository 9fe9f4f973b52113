"""How weights of hinge-loss fields are learnt: one set of choices, for rules and for arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import ArgumentError, did_you_mean
from structlearn._src.common.watch import Progress, Watch
from structlearn._src.estimators.run import callbacks
from structlearn._src.field.examples import label
from structlearn._src.field.hinges import Hinges
from structlearn._src.learn.field_objective import HingeObjective
from structlearn._src.learn.field_world import HingeEffort
from structlearn._src.learn.penalty import NonNegative
from structlearn._src.solve.base import Solver
from structlearn._src.solve.cccp import Cccp
from structlearn._src.solve.loop import Callback, Fit, run
from structlearn._src.solve.paired import Paired
from structlearn._src.solve.steps import RULES
from structlearn._src.solve.stochastic import Stochastic

LEARNERS = ("paired", "em", "subgradient")
_PATIENCE = 50  # steps that gained next to nothing, of steps that waver
_FEW = 5  # the same for iterations that hold many steps
_INNER = 50  # weight steps of one round of expectation maximisation


@dataclass(frozen=True)
class Learning:
    r"""The choices of `fit` for hinge-loss fields.

    The objective, with labels :math:`\hat y` and latent variables :math:`z`, is

    .. math:: \tfrac{1}{2} |w|^2 + C \Bigl(\min_z \, [w^\top \phi(\hat y, z) - h(\hat y, z)]
              - \min_{y, z} \, [w^\top \phi(y, z) - h(y, z)]\Bigr), \qquad w \ge 0 .

    Parameters
    ----------
    learner : {"paired", "em", "subgradient"}
        "paired" is paired-dual learning: `steps` steps of ADMM between two weight steps, from
        where they stood. "em" infers the latent variables, learns as if they were known, and
        repeats. "subgradient" infers to convergence before every weight step.
    surrogate : {"entropy", "loss", "none"}
        What stands for the entropy :math:`h`: "entropy" draws variables to one half; "loss" draws
        labelled ones away from their labels, as structured support vector machines do; "none"
        makes the perceptron, whose best weights may be 0.
    strength : float, default=1.0
        Weight of the surrogate.
    C : float, default=1.0
        Weight of the losses against the penalty.
    max_iter : int, default=200
        Weight steps; rounds of "em".
    tol : float or None, default=1e-4
        Relative tolerance of the objective at which learning ends; None to go on to `max_iter`.
    steps : int, default=1
        Steps of ADMM for each weight step of "paired", in both worlds.
    warm_up : int, default=10
        Evaluations of "paired" before the first weight step.
    rule : {"root", "adagrad", "decaying", "fixed", "pegasos"}
        How weight steps get shorter. Lengths of "root" fall as :math:`1 / \sqrt{t}`, and those
        of a rule's weight are divided by the number of its hinges: cautious steps, with which
        few of them often predict best. "adagrad" finds the lengths by itself and gets to the
        optimum in fewer steps.
    step_size : float, default=1.0
        Length of the first weight step: the mean weight at the start times this times the mean
        difference of a rule's hinges between the worlds. "adagrad" leaves out the last factor, so
        0.3 is a good choice for it.
    average : float, default=0.5
        Share of the weight steps, the last ones, whose weights are averaged; 0 for none.
    callbacks : sequence of callables
        Each is called with an event after every iteration; one that returns True ends the fit.

    References
    ----------
    S. Bach, B. Huang, J. Boyd-Graber and L. Getoor, "Paired-dual learning for fast training of
    latent variable hinge-loss MRFs", ICML 2015.
    """

    learner: str = "paired"
    surrogate: str = "entropy"
    strength: float = 1.0
    C: float = 1.0
    max_iter: int = 200
    tol: float | None = 1e-4
    steps: int = 1
    warm_up: int = 10
    rule: str = "root"
    step_size: float = 1.0
    average: float = 0.5
    callbacks: Sequence[Callback] = ()

    def __post_init__(self) -> None:
        checks.one_of("learner", self.learner, LEARNERS)
        checks.number("C", self.C, low=0.0, open_low=True, open_high=True)
        checks.integer("max_iter", self.max_iter, low=1)
        checks.integer("steps", self.steps, low=1)
        checks.integer("warm_up", self.warm_up)
        checks.one_of("rule", self.rule, tuple(RULES))
        checks.number("step_size", self.step_size, low=0.0, open_low=True, open_high=True)
        checks.number("average", self.average, low=0.0, high=1.0)
        if self.tol is not None:
            checks.number("tol", self.tol, low=0.0, open_high=True)
        callbacks(self.callbacks)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Learning:
        """Make it of the options that a user gave."""
        names = [field.name for field in dataclasses.fields(cls)]
        for name in options:
            if name not in names:
                raise ArgumentError(
                    f"fit has no option {name!r}{did_you_mean(name, names)}; there are "
                    f"{', '.join(names)}"
                )
        return cls(**options)

    def solver(self, scale: float = 1.0) -> Solver:
        """Return the driver with its steps, for weights of this size."""
        step = scale * self.step_size / (1.0 if self.rule == "adagrad" else self.C)
        inner = Stochastic(rule=self.rule, step_size=step, average=self.average)
        if self.learner == "paired":
            return Paired(inner, sweeps=self.steps, warm_up=self.warm_up)
        return Cccp(inner, inner_iter=_INNER, inner_tol=0.0) if self.learner == "em" else inner

    def run(
        self,
        hinges: Hinges,
        labels: Any,
        weights: Floats,
        *,
        learnt: Any = None,
        given: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        progress: Progress | None = None,
    ) -> tuple[Floats, Fit]:
        """Learn; return the weights of all groups, and how it went."""
        examples = label(
            hinges, labels, weights=weights, learnt=learnt, given=given,
            surrogate=self.surrogate, strength=self.strength,
        )  # fmt: skip
        objective = HingeObjective(examples, self.C, NonNegative(), HingeEffort(n_jobs=n_jobs))
        if not objective.n_weights:
            raise ArgumentError("there is no weight to learn: no group has a hinge")
        fit = run(
            self.solver(float(objective.start.mean()) or 1.0),
            objective,
            objective.start,
            max_iter=self.max_iter,
            tol=self.tol,
            patience=_FEW if self.learner == "em" else _PATIENCE,
            callbacks=self.callbacks,
            watch=Watch(time_limit, progress),
        )
        return examples.spread(fit.weights)[: hinges.n_groups], fit
