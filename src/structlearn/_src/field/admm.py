"""MAP inference in hinge-loss fields: consensus ADMM, then Newton steps, with a certified gap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.document import completed
from structlearn._src.common.errors import InfeasibleError
from structlearn._src.common.threads import one_blas_thread
from structlearn._src.common.watch import Approach, Ending, Progress, Watch, brief
from structlearn._src.field.admm_doc import SOLVE_MAP
from structlearn._src.field.consensus import (
    ALLOWED,
    AdmmState,
    Appraisal,
    Consensus,
    make_consensus,
)
from structlearn._src.field.hinges import Hinges
from structlearn._src.field.newton import Polish
from structlearn._src.field.relax import violations, widened

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
    `energy` is its energy, `violation` the largest violation of a hard form, and `lower` a proved
    lower bound: no point that keeps the hard constraints has less energy. Where none can keep them
    but for rounding, it is a bound for points that keep them to 5e-7, which `status` says.
    `hinges` (groups) are sums: the derivative of the energy with respect to the weights. The
    `multipliers` (forms) prove the bound, and warm-start a later call with `y`. `iterations` counts
    ADMM steps, the last of which has the `residuals`, and `newton_steps` Newton steps; `converged`
    if the gap is certified to be within the tolerance. `status` and `ended` describe the outcome.
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
        """Distance of the energy from its bound: if `converged`, from the optimum at most."""
        return abs(self.energy - self.lower)

    def __repr__(self) -> str:
        return f"HingeResult(energy {self.energy:.6g}, gap {self.gap:.2g}; {self.status})"


@completed(SOLVE_MAP)
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
    """Minimise the energy of a hinge-loss field over the box and its hard constraints."""
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
        found = search.result(ended)
        if search.at_odds and not ended.early and hinges.store is None:
            found = _solve_widened(search, hinges, fixed, found)
        return found


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
        # Weights near 1 by a power of two, which rounds nothing: their size does not matter.
        given = np.where(hinges.sizes > 0, hinges.check_weights(weights), 0.0)
        self.unit = 2.0 ** int(np.frexp(given.max(initial=0.0))[1])
        self.weights = given / self.unit
        warm = hasattr(start, "multipliers")
        multipliers = None
        if warm:
            multipliers = self.consensus.copy_forms(start.multipliers, factor=1.0 / self.unit)
        self.state = self.consensus.begin(self.weights, start.y if warm else start, multipliers)
        used = self.weights[self.weights > 0]
        self.scale = float(used.min(initial=self.consensus.scale(self.weights)))
        self.watch = watch
        self.n_jobs = n_jobs
        self.allowed = ALLOWED
        self.tol = tol
        self.max_iter = max_iter
        chunks = -(-max_iter // _CHUNK)
        self.limit = chunks + Polish.most_steps * (1 + chunks.bit_length())
        self.polish = self.consensus.polish(self.weights, self.state, watch)
        # With room for rounding: no bound on an energy can be above it.
        self.ceiling = 1.001 * self.consensus.ceiling(self.weights) + ALLOWED
        self.lower = -np.inf
        self.earlier = 0, 0  # steps of ADMM and Newton steps that come before these
        self.contradiction = False  # whether it is proved that hard constraints cannot all hold
        self.best = self.consensus.appraise(self.weights, self.state)
        self._kept = self.consensus.snapshot(self.state)
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
        y, multipliers = self._kept
        self.contradiction |= now.lower > self.ceiling
        # Beyond the ceiling bounds have no end, and their multipliers are no use to anybody.
        if now.lower > self.lower and (now.lower <= self.ceiling or self.lower == -np.inf):
            self.lower = now.lower
            multipliers = self.consensus.proof(multipliers)
        if self._merit(now) <= self._merit(self.best):
            self.best = now
            y = self.consensus.point(self.state)
        self._kept = y, multipliers
        if self.certified and not self.consensus.holds(self._kept):
            self._begin_again(now)
        return self.certified or self.contradiction

    def _begin_again(self, now: Appraisal) -> None:
        """Forget a bound whose proof is lost, and all that was found before."""
        self.lower = now.lower
        self.best = now
        self._kept = self.consensus.point(self.state), self.consensus.proof(None)

    def _merit(self, found: Appraisal) -> tuple[float, float]:
        """What is better is less: first within the constraints, then near the bound."""
        return max(found.violation - self.allowed, 0.0), abs(found.energy - self.lower)

    @property
    def certified(self) -> bool:
        """Whether gap and violation are small enough."""
        gap = abs(self.best.energy - self.lower)  # the bound may win by what a violation brings
        return self.best.violation <= self.allowed and gap <= self.tol * self.size

    @property
    def at_odds(self) -> bool:
        """Whether the best point nearly keeps the constraints, but the bound tells it does not."""
        above = self.contradiction or self.lower > self.best.energy
        return above and self.best.violation <= self.allowed and not self.certified

    def found(self) -> tuple[Floats, Floats]:
        """Return the best values so far, and their multipliers."""
        return self.consensus.arrays(self._kept)

    def result(self, ended: Ending) -> HingeResult:
        """Pack up what was found."""
        self._improve()
        open_end = ended if ended.early else Ending.LIMIT
        ended = Ending.DONE if self.certified else open_end
        primal, dual = self.state.residuals.tolist()
        y, multipliers = self.found()
        found = HingeResult(
            y=y,
            energy=self.unit * self.best.energy,
            lower=self.unit * self._bound(multipliers),
            violation=self.best.violation,
            hinges=self.best.hinges,
            multipliers=self.consensus.copy_forms(multipliers, factor=self.unit),
            residuals=Residuals(primal, self.unit * dual, self._last_run),
            iterations=self.earlier[0] + self.iterations,
            newton_steps=self.earlier[1] + self.polish.steps,
            converged=self.certified,
            status="",
            ended=ended,
        )
        return replace(found, status=self._status(found))

    def _bound(self, multipliers: Floats) -> float:
        """Return a bound for all points that are as near to the constraints as the best one."""
        if not self.at_odds or self.best.energy >= self.lower:
            return self.lower
        hard = self.consensus.hinges.hard
        return self.lower - self.allowed * float(np.abs(multipliers).sum(where=hard))

    def _status(self, found: HingeResult) -> str:
        steps = f"{found.iterations} steps of ADMM and {found.newton_steps} Newton steps"
        if found.converged:
            return f"certified within {found.gap:.2g} after {steps}"
        why = f"stopped after {self.max_iter} steps of ADMM"
        if found.ended.early:
            why = found.ended.sentence
        elif self.contradiction:
            why = "the hard constraints cannot all hold exactly"
        return f"{why}: gap {found.gap:.2g}, violation {found.violation:.2g} after {steps}"


def _refuse_contradiction(hinges: Hinges, fixed: Any, n_jobs: int | None, watch: Watch) -> None:
    """Raise an error if no point keeps the hard constraints, naming some that prove it.

    The least sum of violations is a hinge-loss field itself; a lower bound above 0 is a proof.
    """
    split = violations(hinges)
    search = _MapSearch(split.hinges, [1.0], fixed, None, 1e-3, 2000, n_jobs, watch)
    search.scale = _PROOF  # however small the violations are, compared with the weights

    def step() -> bool:
        return search.step() or search.best.energy <= _PROOF  # there is nothing to prove

    watch.repeat(step, search.limit, search.words, search.near)
    if search.lower <= _PROOF:
        return
    _, multipliers = search.found()
    used = multipliers > 1e-3 * multipliers.max()
    forms = np.unique(split.owners[used]).tolist()
    raise InfeasibleError(
        f"the hard constraints contradict each other: for any values of the variables, their "
        f"violations add up to at least {search.lower:.3g}; the forms {forms[:10]} prove it, so "
        f"drop one of them or give it a weight",
        forms,
    )


def _solve_widened(
    search: _MapSearch, hinges: Hinges, fixed: Any, first: HingeResult
) -> HingeResult:
    """Minimise over all points that nearly keep the hard constraints, where none keeps them.

    Half of what a violation may be is given to all points, the other half is for rounding.
    """
    split = widened(hinges, 0.5 * ALLOWED)
    weights = search.unit * search.weights
    given = search.tol, search.max_iter, search.n_jobs, search.watch
    wide = _MapSearch(split.hinges, weights, fixed, first.y, *given)
    wide.allowed = 0.5 * ALLOWED
    wide.earlier = first.iterations, first.newton_steps
    found = wide.result(search.watch.repeat(wide.step, wide.limit, wide.words, wide.near))
    if not found.converged:
        return first
    return replace(
        found,
        violation=float(hinges.violations(found.y).max(initial=0.0)),
        multipliers=split.gather(found.multipliers),
        status=f"{found.status}; hard constraints hold to within {ALLOWED:g}, not exactly",
    )
