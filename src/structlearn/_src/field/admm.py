"""MAP inference in hinge-loss fields: consensus ADMM, then Newton steps, with a certified gap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import InfeasibleError
from structlearn._src.common.threads import one_blas_thread
from structlearn._src.common.watch import Approach, Ending, Progress, Watch, brief
from structlearn._src.field.consensus import (
    ALLOWED,
    AdmmState,
    Appraisal,
    Consensus,
    make_consensus,
)
from structlearn._src.field.hinges import EQUAL, HINGE, Hinges
from structlearn._src.field.newton import Polish

__all__ = ["AdmmState", "Consensus", "HingeResult", "Residuals", "solve_map"]

_RELAXATION = 1.6  # Boyd et al., section 3.4.3: 1.5 to 1.8 takes fewer steps
_STIFFNESS = 5.0  # hard constraints settle late where their step is that of hinges
_CHUNK = 10  # steps between changes of the step size
_RARER = 1.5  # steps from one change of the step size to the next grow so, or it may cycle
_BEFORE = 5  # chunks before Newton steps; twice as many each time they did not suffice
_LOOK = 20  # chunks between looks at the gap
_PATIENCE = 2  # rounds of Newton steps that may fail before ADMM goes on; doubles as well
_PROOF = 1e-7  # least sum of violations that counts as proof of a contradiction


class Residuals(NamedTuple):
    r"""How far ADMM is from agreement, :math:`|v - y|`, and from rest, :math:`\eta |y - y'|`."""

    primal: float
    dual: float
    iterations: int  #: steps of the last run


@dataclass(frozen=True, eq=False)
class HingeResult:
    """Result of `solve_map`.

    `y` (variables) is within the box, and satisfies hard constraints to 1e-6 if `converged`;
    `energy` is its energy, `lower` a proved lower bound on the energy, and `violation` the largest
    violation of a hard form. `hinges` (groups) are sums: the derivative of the energy with respect
    to the weights. The `multipliers` (forms) prove the bound, and warm-start a later call with `y`.
    `iterations` counts ADMM steps, the last of which has the `residuals`, and `newton_steps` Newton
    steps; `converged` if the gap is certified to be within the tolerance. `status` and `ended`
    describe the outcome.
    """

    y: Floats
    energy: float
    lower: float
    violation: float
    hinges: Floats
    multipliers: Floats
    residuals: Residuals
    iterations: int
    newton_steps: int
    converged: bool
    status: str
    ended: Ending

    @property
    def gap(self) -> float:
        """Certified distance of the energy from the optimum."""
        return max(self.energy - self.lower, 0.0)

    def __repr__(self) -> str:
        return f"HingeResult(energy {self.energy:.6g}, gap {self.gap:.2g}; {self.status})"


def solve_map(
    hinges: Hinges,
    weights: Any,
    *,
    fixed: Any = None,
    start: HingeResult | Floats | None = None,
    tol: float = 1e-6,
    max_iter: int = 5000,
    time_limit: float | None = None,
    progress: Progress | bool | None = None,
    n_jobs: int | None = None,
) -> HingeResult:
    r"""Minimise the energy of a hinge-loss field over the box and its hard constraints.

    Parameters
    ----------
    hinges
        The field.
    weights
        (groups) At least 0.
    fixed
        Variables that are given: a mapping from variable to value, or a pair of arrays.
    start
        Warm start: the result for other weights, or an initial guess of shape (variables).
    tol
        Gap at which to stop, relative to the energy plus the smallest weight.
    max_iter
        Maximum number of ADMM steps.
    time_limit
        Seconds after which the best values so far are returned.
    progress
        Called with the fraction done and a few words; True shows a bar on standard error.
    n_jobs
        Number of threads. The result does not depend on it.

    Raises
    ------
    InfeasibleError
        If the hard constraints contradict each other; its `forms` prove it.

    Notes
    -----
    Any multipliers :math:`\lambda` (within 0 and the weight for hinges, at least 0 for squared
    hinges and inequalities) prove the lower bound

    .. math:: \sum_i \lambda_i b_i - \sum_{i \text{ squared}} \lambda_i^2 / 4 w_i
              + \sum_j \min(0, (A^\top \lambda)_j)

    Examples
    --------
    One variable that is pulled to 0 with weight 1 and to 1 with weight 3, both squared:

    >>> import numpy as np
    >>> from structlearn._src.field.hinges import Hinges
    >>> field = Hinges(
    ...     offsets=[0, 1, 2], variables=[0, 0], coefficients=[1.0, -1.0], constants=[0.0, 1.0],
    ...     kinds=[0, 0], powers=[2, 2], groups=[0, 1], n_variables=1, n_groups=2,
    ... )
    >>> result = solve_map(field, [1.0, 3.0])
    >>> print(result.y.round(4), round(result.energy, 4))
    [0.75] 0.75
    """
    tol = checks.number("tol", tol, low=0.0)
    max_iter = checks.integer("max_iter", max_iter, low=1)
    if time_limit is not None:
        checks.number("time_limit", time_limit, low=0.0, open_low=True)
    watch = Watch(time_limit, progress)
    with one_blas_thread():
        search = _MapSearch(hinges, weights, fixed, start, tol, max_iter, n_jobs, watch)
        ended = watch.repeat(search.step, search.limit, search.words, search.near)
        if search.best.violation > ALLOWED and not ended.early:
            _refuse_contradiction(hinges, fixed, n_jobs, watch)
        return search.result(ended)


class _MapSearch:
    """ADMM and Newton steps in turns, until the gap is certified."""

    def __init__(
        self,
        hinges: Hinges,
        weights: Any,
        fixed: Any,
        start: Any,
        tol: float,
        max_iter: int,
        n_jobs: int | None,
        watch: Watch,
    ) -> None:
        self.consensus = make_consensus(
            hinges, relaxation=_RELAXATION, stiffness=_STIFFNESS, fixed=fixed, n_jobs=n_jobs
        )
        given = hinges.check_weights(weights)
        # Weights near 1 by a power of two, which rounds nothing: their size does not matter.
        self.unit = 2.0 ** int(np.frexp(given.max(initial=0.0, where=hinges.sizes > 0))[1])
        self.weights = given / self.unit
        warm = hasattr(start, "multipliers")
        multipliers = None
        if warm:
            multipliers = self.consensus.copy_forms(start.multipliers, factor=1.0 / self.unit)
        self.state = self.consensus.begin(self.weights, start.y if warm else start, multipliers)
        used = self.weights[(hinges.sizes > 0) & (self.weights > 0)]
        self.scale = float(used.min(initial=self.consensus.scale(self.weights)))
        self.watch = watch
        self.tol = tol
        self.max_iter = max_iter
        chunks = -(-max_iter // _CHUNK)
        self.limit = chunks + Polish.most_steps * (1 + chunks.bit_length())
        self.polish = self.consensus.polish(self.weights, self.state, watch)
        # With room for rounding: no bound on an energy can be above it.
        self.ceiling = 1.001 * self.consensus.ceiling(self.weights) + ALLOWED
        self.lower = -np.inf
        self.best = self.consensus.appraise(self.weights, self.state)
        self._point: Any = self.consensus.copy_point(self.state)
        self._proof: Any = self.consensus.copy_multipliers(self.state)
        self.approach = Approach()
        self._last_run = 0
        self._balance_at = 0.0
        self._work = self._turns(1 if warm else min(_BEFORE, chunks))

    def step(self) -> bool:
        """Do some work; tell whether there is no more to do."""
        return next(self._work, True)

    def words(self) -> str:
        """Say how far it is."""
        energy, lower = self.unit * self.best.energy, self.unit * self.lower
        stops = f" (stops at {brief(self.unit * self.tol * self.size)})" if self.tol else ""
        gap = f", gap {brief(energy - lower)}{stops}" if np.isfinite(lower) else ""
        return f"step {self.iterations}, energy {energy:#.6g}{gap}"

    def near(self) -> float:
        """Return which part of the way to a gap that is small enough is done, on a log scale."""
        gap = abs(self.best.energy - self.lower)
        return self.approach.share(gap / (self.tol * self.size)) if self.tol else np.nan

    @property
    def size(self) -> float:
        """What the tolerance is relative to."""
        return abs(self.best.energy) + self.scale

    def _turns(self, chunks: int) -> Iterator[bool]:
        patience = _PATIENCE
        while True:
            for n in range(1, chunks + 1):
                self._run_chunk()
                if n % _LOOK == 0 and n < chunks and self._improve():
                    return
                yield False
            if self._improve() or self.iterations >= self.max_iter:
                return
            for placed in self.polish.rounds(patience):
                if placed and self._improve():
                    return
                yield False
            left = -(-(self.max_iter - self.iterations) // _CHUNK)
            chunks = min(max(2 * chunks, _BEFORE), left)
            patience *= 2

    @property
    def iterations(self) -> int:
        """Steps of ADMM so far."""
        return int(self.state.iterations)

    def _run_chunk(self) -> None:
        before = self.iterations
        self.consensus.run(self.weights, self.state, _CHUNK, watch=self.watch)
        self._last_run = self.iterations - before
        if self.iterations >= self._balance_at:
            first = self.iterations <= _BEFORE * _CHUNK
            self.consensus.balance(self.state, damped=first)
            self._balance_at = _RARER * self.iterations

    def _improve(self) -> bool:
        """Keep what is better than before; tell whether it is certified, or can never be."""
        now = self.consensus.appraise(self.weights, self.state)
        if now.lower >= self.lower:
            self.lower = now.lower
            self._proof = self.consensus.copy_multipliers(self.state, self._proof)
        if self._merit(now) <= self._merit(self.best):
            self.best = now
            self._point = self.consensus.copy_point(self.state)
        return self.certified or self.contradicted

    @property
    def contradicted(self) -> bool:
        """Whether multipliers prove that no point keeps all hard constraints to the last digit."""
        return self.lower > self.ceiling

    def _merit(self, found: Appraisal) -> tuple[float, float]:
        """What is better is less: first within the constraints, then near the bound."""
        return max(found.violation - ALLOWED, 0.0), abs(found.energy - self.lower)

    @property
    def certified(self) -> bool:
        """Whether gap and violation are small enough."""
        gap = abs(self.best.energy - self.lower)  # the bound may win by what a violation brings
        return self.best.violation <= ALLOWED and gap <= self.tol * self.size

    def found(self) -> tuple[Floats, Floats]:
        """Return the best values so far, and the multipliers that prove the bound."""
        return self.consensus.arrays((self._point, self._proof))

    def result(self, ended: Ending) -> HingeResult:
        """Pack up what was found."""
        self._improve()
        steps = f"{self.iterations} steps of ADMM and {self.polish.steps} Newton steps"
        gap = self.unit * max(self.best.energy - self.lower, 0.0)
        if self.certified:
            ended = Ending.DONE
        elif not ended.early:
            ended = Ending.LIMIT
        why = ended.sentence if ended.early else f"stopped after {self.max_iter} steps of ADMM"
        why = "no point keeps all hard constraints exactly" if self.contradicted else why
        good = f"certified within {gap:.2g} after {steps}"
        bad = f"{why}: gap {gap:.2g}, violation {self.best.violation:.2g} after {steps}"
        primal, dual = self.state.residuals.tolist()
        y, multipliers = self.found()
        return HingeResult(
            y=y,
            energy=self.unit * self.best.energy,
            lower=self.unit * self.lower,
            violation=self.best.violation,
            hinges=self.best.hinges,
            multipliers=self.consensus.copy_forms(multipliers, factor=self.unit),
            residuals=Residuals(primal, self.unit * dual, self._last_run),
            iterations=self.iterations,
            newton_steps=self.polish.steps,
            converged=self.certified,
            status=good if self.certified else bad,
            ended=ended,
        )


def _refuse_contradiction(hinges: Hinges, fixed: Any, n_jobs: int | None, watch: Watch) -> None:
    """Raise an error if no point keeps the hard constraints, naming some that prove it.

    The least sum of violations is a hinge-loss field itself; a lower bound above 0 is a proof.
    """
    owners = np.flatnonzero(hinges.hard)
    relaxed, signs = _violations(hinges, owners)
    search = _MapSearch(relaxed, [1.0], fixed, None, 1e-3, 2000, n_jobs, watch)
    watch.repeat(search.step, search.limit, search.words, search.near)
    if search.lower <= _PROOF:
        return
    _, multipliers = search.found()
    used = multipliers > 1e-3 * multipliers.max()
    forms = np.unique(signs[used]).tolist()
    raise InfeasibleError(
        f"the hard constraints contradict each other: for any values of the variables, their "
        f"violations add up to at least {search.lower:.3g}; the forms {forms[:10]} prove it, so "
        f"drop one of them or give it a weight",
        forms,
    )


def _violations(hinges: Hinges, owners: Ints) -> tuple[Hinges, Ints]:
    """Hinges of weight 1 in place of hard forms, and the form that each of them came from."""
    both = np.concatenate([owners, owners[hinges.kinds[owners] == EQUAL]])
    sign = np.where(np.arange(len(both)) < len(owners), 1.0, -1.0)
    taken = hinges.take(both, np.arange(hinges.n_variables))
    ones = np.ones(len(both), np.int64)
    relaxed = replace(
        taken,
        coefficients=np.repeat(sign, np.diff(taken.offsets)) * taken.coefficients,
        constants=sign * taken.constants,
        kinds=HINGE * ones,
        powers=ones,
        groups=0 * ones,
        n_groups=1,
    )
    return relaxed, both
