"""Consensus ADMM on a hinge-loss field: a frozen problem, and a state that is stepped."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Bools, Floats
from structlearn._src.common.errors import InfeasibleError
from structlearn._src.common.place import placed
from structlearn._src.common.watch import Pace, Watch
from structlearn._src.field.blocks import GRAIN, FieldBlocks
from structlearn._src.field.hinges import AT_MOST, Hinges
from structlearn._src.kernels.field import admm, forms
from structlearn._src.kernels.field.admm import AdmmState

__all__ = ["ALLOWED", "AdmmState", "Appraisal", "Consensus", "make_consensus"]

#: By how much a hard constraint may be missed.
ALLOWED = 1e-6
_LARGEST_CHANGE = 1000.0  # factor of a single change of the step
_CONSTANT = 1e-30  # length of a hinge without free variables, which no step can move
_LINE = 8  # numbers of a cache line: sums of two threads on one line would slow both down


class Appraisal(NamedTuple):
    """What a state is worth."""

    hinges: Floats  #: sum of the hinges of every group at the consensus
    energy: float
    violation: float  #: largest of a hard form
    lower: float  #: no point that keeps the hard constraints has less energy
    pull: Floats  #: :math:`A^\\top \\lambda`, the gradient of the energy by the variables


class Consensus:
    r"""Consensus ADMM on a hinge-loss field, a few steps or many, from where a state stands.

    Minimises :math:`\sum_i w_{g_i} \max(l_i(v_i), 0)^{p_i}` over local copies :math:`v_i` that
    must agree with the consensus :math:`y \in [0, 1]^n`, by the augmented Lagrangian

    .. math:: L(v, \alpha, y) = \sum_i w_{g_i} \max(l_i(v_i), 0)^{p_i}
              + \alpha^\top (v - y) + \tfrac{\eta}{2} |v - y|^2 .

    One step is :math:`\alpha \leftarrow \alpha + \eta (v - y)`, then :math:`v`, then :math:`y`.

    The object holds the problem and scratch space, so it runs one state at a time. All that changes
    is in the `AdmmState` that `begin` returns, named arrays that `run` updates in place. Local
    copies and multipliers take one number per form (see `kernels.field.admm`): a form costs 39
    bytes, and 12 more per variable in it, or 24 for several threads.

    `step` is the initial :math:`\eta`, by default the mean weight of the hinges, or 1; `relaxation`
    in (0, 2) is 1 for plain ADMM, and 1.6 takes fewer steps; the step of hard constraints is
    `stiffness` times larger. Variables may be `fixed`, by a mapping from variable to value, an
    array with NaN for the others, or a pair of arrays. Sums are cut after `grain` forms.

    References
    ----------
    S. Boyd et al., "Distributed optimization and statistical learning via the alternating
    direction method of multipliers", 2011.
    S. Bach et al., "Paired-dual learning for fast training of latent variable hinge-loss MRFs",
    ICML 2015, section 2.2 and algorithm 1.
    """

    def __init__(
        self,
        hinges: Hinges,
        *,
        step: float | None = None,
        relaxation: float = 1.0,
        stiffness: float = 1.0,
        fixed: Any = None,
        n_jobs: int | None = None,
        grain: int = GRAIN,
    ) -> None:
        self.hinges = hinges
        self.n_jobs = n_jobs
        self.relaxation = checks.number(
            "relaxation", relaxation, low=0, high=2, open_low=True, open_high=True
        )
        self._step = None if step is None else checks.number("step", step, low=0, open_low=True)
        variables, values = hinges.check_fixed(fixed)
        n = hinges.n_variables
        self.bounds = forms.Bounds(np.zeros(n), np.ones(n), np.zeros(n))
        self.bounds.lower[variables] = self.bounds.upper[variables] = values
        self.blocks = FieldBlocks(hinges, n_jobs, grain)
        self.forms = forms.Forms(
            hinges.offsets.view(np.uint64),
            hinges.variables.view(np.uint32),
            hinges.coefficients,
            hinges.constants,
            self.blocks.empty(hinges.n_forms, np.int8),
            hinges.groups.view(np.uint32),
            self.blocks.empty(hinges.n_forms),
        )
        self.blocks.over_forms(_write_sorts, hinges, self.forms.sorts)
        is_fixed = np.zeros(n, np.bool_)
        is_fixed[variables] = True
        self._measure(is_fixed, checks.number("stiffness", stiffness, low=0, open_low=True))
        self._sums = admm.BlockSums(
            np.zeros((self.blocks.n_form_blocks, hinges.n_groups + _LINE)),
            np.zeros(self.blocks.n_form_blocks),
            np.zeros((self.blocks.n_variable_blocks, 3)),
            np.zeros(n if self.blocks.alone else 0),
        )
        self.slopes = self.blocks.empty(hinges.n_forms)  # a workspace, of Newton steps too

    def _measure(self, fixed: Bools, stiffness: float) -> None:
        """Count the copies of free variables, and measure the forms over them."""
        blocks = self.blocks
        copies = np.zeros(self.hinges.n_variables)
        if blocks.alone:
            blocks.over_forms(forms.count_copies, self.forms, stiffness, copies)
        else:
            given = self.forms, blocks.columns, stiffness, copies
            blocks.over_variables(forms.count_copies_by_column, *given)
        copies[fixed] = 0.0
        np.divide(1.0, copies, out=self.bounds.shares, where=copies > 0)
        blocks.over_forms(forms.measure, self.forms, fixed, stiffness)
        found = np.empty(blocks.n_form_blocks, np.int64)
        lengths = 1.0, _CONSTANT
        blocks.over_forms(
            forms.settle_constant, self.forms, self.bounds.lower, lengths, ALLOWED, found
        )
        if found.max(initial=-1) >= 0:
            h = self.hinges
            free = h.add_up(np.where(fixed[h.variables], 0.0, h.coefficients**2)) > 0
            broken = np.flatnonzero(~free & (h.violations(self.bounds.lower) > ALLOWED))
            raise InfeasibleError(
                f"the hard forms {broken[:5].tolist()} have no free variable and do not hold: "
                f"change the values of their fixed variables",
                broken.tolist(),
            )

    def scale(self, weights: Floats) -> float:
        """Mean weight of the hinges: the natural size of steps and multipliers."""
        sizes = self.hinges.sizes
        return float(sizes @ weights) / max(int(sizes.sum()), 1) or 1.0

    # ---- states ------------------------------------------------------------------------------

    def begin(
        self, weights: Any, start: Any = None, multipliers: Floats | None = None
    ) -> AdmmState:
        """Return a new state whose copies all agree: on `start` (variables,), or on 0.5.

        Multipliers (forms,) are 0, or those of an earlier result.
        """
        h = self.hinges
        weights = h.check_weights(weights)
        point = np.full(h.n_variables, 0.5) if start is None else h.check_values("start", start)
        np.clip(point, self.bounds.lower, self.bounds.upper, out=point)
        state = AdmmState(
            multipliers=self.zeros(),
            consensus=point,
            lags=np.zeros(h.n_variables),
            ahead=point.copy(),
            pull=np.zeros(h.n_variables),
            hinges=self.sum_hinges(forms.hinges_at, point),
            residuals=np.full(2, np.inf),
            step=np.array(self.scale(weights) if self._step is None else self._step),
            iterations=np.array(0),
        )
        if multipliers is not None:
            self.place(weights, state, point.copy(), multipliers)
        return state

    def fits(self, state: Any) -> bool:
        """Tell whether a state is one of this field."""
        sizes = self.hinges.n_forms, self.hinges.n_variables
        if not isinstance(state, AdmmState):
            return False
        return (len(state.multipliers), len(state.consensus)) == sizes

    def hold(self, state: AdmmState) -> None:
        """Bring a state of the same field to the values of the fixed variables, which changed."""
        held = self.bounds.lower == self.bounds.upper
        state.consensus[held] = state.ahead[held] = self.bounds.lower[held]
        state.lags[held] = 0.0

    def snapshot(self, state: AdmmState) -> tuple[Any, Any]:
        """Return copies of the consensus and of the multipliers."""
        return self.point(state), self.copy_forms(state.multipliers)

    def point(self, state: AdmmState) -> Any:
        """Return a copy of the consensus."""
        return state.consensus.copy()

    def proof(self, into: Any) -> Any:
        """Copy the multipliers, in their cone, that prove the bound of the last appraisal."""
        return self.copy_forms(self.slopes, into)

    def copy_forms(self, source: Any, target: Any = None, factor: float = 1.0) -> Any:
        """Copy a number per form, times a factor, into `target` or a new array."""
        return self.blocks.copy(source, target, factor)

    def holds(self, snapshot: tuple[Any, Any]) -> bool:
        """Tell whether all of a snapshot is still there; workers may die with their part of it."""
        return True

    def arrays(self, snapshot: tuple[Any, Any]) -> tuple[Floats, Floats]:
        """Return a snapshot as arrays (variables,) and (forms,)."""
        return snapshot

    def polish(self, weights: Floats, state: AdmmState, watch: Watch) -> Any:
        """Return what takes Newton steps from where a state stands."""
        from structlearn._src.field.newton import Polish  # which needs this module

        return Polish(self, weights, state, watch)

    def ceiling(self, weights: Floats) -> float:
        """Return an energy that no point of the box exceeds."""
        return float(weights @ self.sum_hinges(forms.highest, self.bounds))

    def run(
        self, weights: Any, state: AdmmState, max_iter: int = 1, tol: float = 0.0,
        watch: Watch | None = None,
    ) -> AdmmState:  # fmt: skip
        r"""Take steps until both residuals are at most `tol` (the dual one times :math:`\eta`).

        Runs of 3 and 4 steps leave the same bits as one of 7. The state given is changed, and
        returned. The time limit of `watch` ends the run after a step, at least one.
        """
        weights = self.hinges.check_weights(weights)
        max_iter = checks.integer("max_iter", max_iter, low=1)
        tol = checks.number("tol", tol, low=0)
        if watch is None or watch.left == math.inf:
            self._take(weights, state, max_iter, tol)
        else:
            Pace(watch).all(lambda steps: self._take(weights, state, steps, tol), max_iter)
        state.hinges[:] = self._hinge_sums()
        return state

    def _take(self, weights: Floats, state: AdmmState, steps: int, tol: float) -> int:
        """Take up to so many steps; return how many there were."""
        before = int(state.iterations)
        blocks = self.blocks
        common = weights, self.relaxation, state, self._sums
        if blocks.alone and blocks.store is None:
            both = blocks.by_form, blocks.by_variable
            admm.advance(self.forms, blocks.columns, self.bounds, *common, both, steps, tol)
        else:
            self._run_phases(common, steps, tol)
        return int(state.iterations) - before

    def _run_phases(self, common: tuple[Any, ...], max_iter: int, tol: float) -> None:
        blocks = self.blocks
        for n in range(max_iter):
            tell = tol > 0 or n == max_iter - 1
            self._sums.pull[:] = 0.0
            blocks.over_forms(admm.local_step, self.forms, *common, tell, blocks.alone)
            blocks.over_variables(
                admm.consensus_step, self.bounds, *common[1:], blocks.columns, blocks.alone
            )
            admm.end_step(*common[2:])
            if admm.at_rest(common[2], tol):
                return

    def change_step(self, state: AdmmState, step: float) -> None:
        r"""Go on with another :math:`\eta`; the multipliers stay."""
        new = checks.number("step", step, low=0, open_low=True)
        state.lags[:] *= state.step / new
        state.step[()] = new
        np.subtract(state.consensus, state.lags, out=state.ahead)

    def balance(self, state: AdmmState, *, damped: bool = True) -> None:
        r"""Change the step where one residual is more than twice the other, measured in :math:`v`.

        The root of their ratio damps the change; see Boyd et al., section 3.4.1. Where weights
        differ by orders of magnitude, only the whole ratio gets to the right step in time.
        """
        primal, dual = state.residuals.tolist()
        rest = dual / float(state.step)
        if primal > 0 and rest > 0 and not 0.5 < primal / rest < 2:
            ratio = float(np.clip(primal / rest, 1 / _LARGEST_CHANGE, _LARGEST_CHANGE))
            factor = min(max(ratio**0.5, 0.2), 5.0) if damped else ratio
            self.change_step(state, float(state.step) * factor)

    def place(self, weights: Floats, state: AdmmState, y: Floats, multipliers: Floats) -> None:
        """Go on from this point, with local copies that agree with it."""
        np.clip(y, self.bounds.lower, self.bounds.upper, out=state.consensus)
        self.copy_forms(multipliers, state.multipliers)
        state.lags[:] = 0.0
        state.ahead[:] = state.consensus
        state.pull[:] = self.appraise(weights, state).pull

    def step_forms(self, weights: Floats, state: AdmmState, tell: bool) -> Any:
        r"""Move the copies of all forms; return squared moves, hinges, and :math:`A^\top \mu`."""
        sums = self._sums
        sums.pull[:] = 0.0
        alone = self.blocks.alone
        self.blocks.over_forms(
            admm.local_step, self.forms, weights, self.relaxation, state, sums, tell, alone
        )
        pull = sums.pull.copy() if alone else self.pull(state.multipliers)
        return sums.moves.sum(keepdims=True), self._hinge_sums(), pull

    def appraise_forms(
        self, weights: Floats, point: Floats, multipliers: Any
    ) -> tuple[Floats, float, float]:
        """Return sums of hinges, the largest violation, and the bound without the variables' part.

        The multipliers that prove it are then in `slopes`.
        """
        blocks = self.blocks
        found = np.empty((blocks.n_form_blocks, 2))
        given = weights, point, multipliers, self.slopes, self._sums.hinges, found
        blocks.over_forms(admm.appraise, self.forms, *given)
        bound = forms.add_up(found[:, 1].copy())
        return self._hinge_sums(), float(found[:, 0].max()), bound

    def appraise(self, weights: Any, state: AdmmState) -> Appraisal:
        """Energy and violation at the consensus, and the bound that the multipliers prove."""
        weights = self.hinges.check_weights(weights)
        hinges, violation, lower = self.appraise_forms(weights, state.consensus, state.multipliers)
        pull = np.zeros(self.hinges.n_variables)
        self.add_pull(self.slopes, pull)
        lower += self.bound_variables(self.slopes, pull)
        return Appraisal(hinges, float(weights @ hinges), violation, lower, pull)

    def bound_variables(self, numbers: Floats, pull: Floats) -> float:
        r"""Return the least product of :math:`A^\top \lambda` with any values."""
        blocks = self.blocks
        bounds = np.empty(blocks.n_variable_blocks)
        blocks.over_variables(
            admm.bound_pull, self.bounds, blocks.columns, numbers, pull, bounds, blocks.alone
        )
        return forms.add_up(bounds)

    def add_pull(self, numbers: Floats, pull: Floats) -> None:
        r"""Add :math:`A^\top \lambda` to `pull` on one thread; with several, columns are used."""
        if self.blocks.alone:
            self.blocks.over_forms(admm.pull_alone, self.forms, numbers, pull)

    def zeros(self) -> Any:
        """Return a 0 for every form."""
        found = self.blocks.empty(self.hinges.n_forms)
        if self.blocks.store is None:
            found[:] = 0.0  # what a store gives holds nothing else
        return found

    def pull(self, numbers: Floats) -> Floats:
        r"""Return :math:`A^\top \lambda` for a number per form."""
        pull = np.zeros(self.hinges.n_variables)
        self.add_pull(numbers, pull)
        self.bound_variables(numbers, pull)
        return pull

    def sum_hinges(self, kernel: Any, *given: Any) -> Floats:
        """Sum of something of every group, by a kernel that adds it up for blocks of forms."""
        self.blocks.over_forms(kernel, self.forms, *given, self._sums.hinges)
        return self._hinge_sums()

    def _hinge_sums(self) -> Floats:
        """Add up the hinges of all blocks; their order is that of the blocks."""
        return np.asarray(self._sums.hinges[:, : self.hinges.n_groups].sum(axis=0))


@placed
def make_consensus(hinges: Hinges, **options: Any) -> Consensus:
    """Return a `Consensus` with these options, at the current place."""
    return Consensus(hinges, **options)


def _write_sorts(hinges: Hinges, sorts: Any, borders: Any, first: int, last: int) -> None:
    """Write what forms of some blocks are to the kernels."""
    part = slice(borders[first], borders[last])
    kinds = hinges.kinds[part]
    hard = kinds + np.int8(forms.AT_MOST - AT_MOST)
    sorts[part] = np.where(kinds > 0, hard, hinges.powers[part] == 2)
