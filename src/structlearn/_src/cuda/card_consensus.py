"""Consensus ADMM on a device: the steps of `field.consensus`, in single precision on tensors.

What is certified is computed in double precision, as on the host: the bound is a proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import InfeasibleError
from structlearn._src.common.watch import Watch
from structlearn._src.cuda import slices
from structlearn._src.cuda.forms import FieldTensors, upload
from structlearn._src.cuda.slices import add_pieces, by_kernel, multiply, row_sums
from structlearn._src.field.consensus import ALLOWED, Appraisal, Consensus
from structlearn._src.field.hinges import Hinges
from structlearn._src.kernels.field.forms import EQUAL, LINEAR, SQUARED
from structlearn._src.learn.world import Elsewhere, Memory

_LOOK = 10  # steps between looks at residuals, which wait for the device


@dataclass(eq=False)
class CardState(Elsewhere):
    """All that ADMM remembers between steps, in the order of a `FieldTensors`."""

    multipliers: Tensor  #: (forms and room) mu
    consensus: Tensor  #: (variables) y
    lags: Tensor  #: (variables) c
    ahead: Tensor  #: (variables and room) y - c
    pull: Tensor  #: (variables) A' mu
    hinges: Floats  #: (groups) sum of the hinges at the local copies after the last run
    residuals: Floats  #: (2) primal and dual, of the last step
    step: float  #: eta
    iterations: int = 0  #: steps so far

    def gather(self) -> tuple[Memory, ...]:
        """Return all of it as arrays, for checkpoints."""
        values = (getattr(self, each.name) for each in fields(self))
        return tuple(
            value.cpu().numpy().copy() if isinstance(value, Tensor) else np.array(value)
            for value in values
        )

    def scatter(self, memories: tuple[Memory, ...]) -> None:
        """Go on from what `gather` has returned."""
        for each, array in zip(fields(self), memories, strict=True):
            old = getattr(self, each.name)
            if isinstance(old, Tensor):
                setattr(self, each.name, upload(array, old.device))
            else:
                setattr(self, each.name, array if np.ndim(array) else array.item())


class CardConsensus(Consensus):
    """Consensus ADMM on a device; as `Consensus`, with states of tensors.

    `dtype` is the precision of steps.
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
        device: Any = "cuda",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.hinges = hinges
        self.n_jobs = n_jobs  # threads have nothing to do here
        self.dtype = dtype
        self.relaxation = checks.number(
            "relaxation", relaxation, low=0, high=2, open_low=True, open_high=True
        )
        self._step = None if step is None else checks.number("step", step, low=0, open_low=True)
        stiffness = checks.number("stiffness", stiffness, low=0, open_low=True)
        self.fixed = hinges.given_values(fixed)
        self.tensors = FieldTensors(hinges, self.fixed, stiffness, device)
        self._lengths = self.tensors.lengths.to(dtype)
        self._constants = self.tensors.constants.to(dtype)
        self._shares = self.tensors.shares.to(dtype)
        self._sorts = (self.tensors.each_tag & 3).to(torch.int8)
        self._groups = self.tensors.each_tag >> 2
        self._refuse_broken()

    def _refuse_broken(self) -> None:
        t = self.tensors
        value = torch.where(t.form_sorts == EQUAL, t.form_constants.abs(), t.form_constants)
        wrong = t.constant_forms & (t.form_sorts > SQUARED) & (value > ALLOWED)
        if bool(wrong.any()):
            broken = wrong.nonzero()[:, 0].tolist()
            raise InfeasibleError(
                f"the hard forms {broken[:5]} have no free variable and do not hold: "
                f"change the values of their fixed variables",
                broken,
            )

    # ---- states ------------------------------------------------------------------------------

    def begin(self, weights: Any, start: Any = None, multipliers: Floats | None = None) -> Any:
        """Return a new state whose copies all agree: on `start` (variables,), or on 0.5."""
        h = self.hinges
        t = self.tensors
        weights = h.check_weights(weights)
        point = np.full(h.n_variables, 0.5) if start is None else h.check_values("start", start)
        y = t.spread_variables(upload(point, t.device)).to(self.dtype)
        empty = y.new_zeros(0)
        step = self.scale(weights) if self._step is None else self._step
        nothing = np.full(2, np.inf)
        state = CardState(empty, y, empty, empty, empty, np.zeros(h.n_groups), nothing, step, 0)
        mu = torch.zeros(t.n_forms, dtype=y.dtype, device=t.device)
        if multipliers is not None:
            mu = t.spread_forms(upload(multipliers, t.device))
            y = t.spread_variables(upload(point, t.device))
        self.place(weights, state, y, mu)
        return state

    def run(
        self, weights: Any, state: Any, max_iter: int = 1, tol: float = 0.0,
        watch: Watch | None = None,
    ) -> Any:  # fmt: skip
        r"""Take steps until both residuals are at most `tol` (the dual one times :math:`\eta`)."""
        each = self.hinges.check_weights(weights)
        max_iter = checks.integer("max_iter", max_iter, low=1)
        tol = checks.number("tol", tol, low=0)
        strengths = upload(each, self.tensors.device).to(self.dtype)
        self._settle(state)
        for n in range(max_iter):
            last = n == max_iter - 1 or (watch is not None and watch.expired)
            told = self._advance(strengths, state, last or (tol > 0 and n % _LOOK == _LOOK - 1))
            state.iterations += 1
            if told is not None:
                self._tell(state, *told)
                primal, dual = state.residuals.tolist()
                if last or (tol > 0 and primal <= tol and dual <= tol * state.step):
                    break
        return state

    def _settle(self, state: CardState) -> None:
        """Bring a state that Newton steps placed to the precision of steps."""
        if state.consensus.dtype != self.dtype:
            for name in ("multipliers", "consensus", "lags", "ahead", "pull"):
                setattr(state, name, getattr(state, name).to(self.dtype))

    def _advance(
        self, weights: Tensor, state: CardState, tell: bool
    ) -> tuple[Tensor, Tensor] | None:
        """Take one step; on request return what its residuals are made of."""
        if by_kernel(state.consensus):
            from structlearn._src.cuda import slice_kernels

            return slice_kernels.advance(self, weights, state, tell)
        t = self.tensors
        add_pieces(t.by_form, state.ahead)
        old = state.multipliers[: t.n_forms]
        length = self._lengths / state.step
        value = self._constants + row_sums(t.by_form.rows, state.ahead) + old * length
        slope = slopes(self._sorts, weights[self._groups], value, length)
        change = self.relaxation * (slope - old)
        state.multipliers[: t.n_forms] += change
        hinge = energies(self._sorts, value - slope * length)
        by_form = torch.stack([hinge, change * change * self._lengths], 1)
        add_pieces(t.by_variable, state.multipliers)
        by_variable = self._average(state, row_sums(t.by_variable.rows, state.multipliers))
        return (by_form, by_variable) if tell else None

    def _average(self, state: CardState, pull: Tensor) -> Tensor:
        """Average the copies; return the three parts of the residuals for every variable."""
        shares = self._shares
        copied = shares > 0
        old = state.consensus
        kept = old + (1.0 - self.relaxation) * state.lags
        new = torch.where(copied, (kept - pull * shares / state.step).clamp(0.0, 1.0), old)
        lags = torch.where(copied, kept - new, 0.0)
        copies = torch.where(copied, 1.0 / shares, 0.0)
        change = lags - state.lags
        cross = change * (pull - state.pull)
        parts = cross, change * change * copies, (new - old) * (new - old) * copies
        state.consensus = new
        state.lags = lags
        state.ahead[: len(new)] = new - lags
        state.pull = pull
        return torch.stack(parts, 1)

    def _tell(self, state: CardState, by_form: Tensor, by_variable: Tensor) -> None:
        state.hinges = self._by_group(by_form[:, 0].double())
        moved = float(by_form[:, 1].sum(dtype=torch.double))
        cross, far_lags, far = by_variable.sum(0, dtype=torch.double).tolist()
        step = state.step
        moved += step * step * far_lags - 2.0 * step * cross
        state.residuals = np.array([math.sqrt(max(moved, 0.0)) / step, math.sqrt(far) * step])

    def _by_group(self, each: Tensor) -> Floats:
        """Sum of a number per form over every group."""
        groups = self._groups
        if self.tensors.aligned:
            each = each.view(-1, slices.SLICE).sum(1)
            groups = groups.view(-1, slices.SLICE)[:, 0]
        out = each.new_zeros(self.hinges.n_groups).index_add_(0, groups, each)
        return out.cpu().numpy()

    def change_step(self, state: Any, step: float) -> None:
        r"""Go on with another :math:`\eta`; the multipliers stay."""
        state.lags *= state.step / step
        state.step = step
        state.ahead[: len(state.consensus)] = state.consensus - state.lags

    def place(self, weights: Floats, state: Any, y: Any, multipliers: Any) -> None:
        """Go on from this point, with local copies that agree with it; in its precision."""
        t = self.tensors
        state.consensus = y.clamp(0.0, 1.0)
        state.multipliers = t.by_variable.vector(y.dtype)
        state.multipliers[: t.n_forms] = multipliers
        state.lags = torch.zeros_like(y)
        state.ahead = t.by_form.vector(y.dtype)
        state.ahead[: len(y)] = state.consensus
        found = self.appraise(weights, state)
        pull: Any = found.pull
        state.pull = pull.to(y.dtype)
        state.hinges = found.hinges

    def fits(self, state: Any) -> bool:
        """Tell whether a state is one of this field."""
        t = self.tensors
        sizes = t.by_variable.room, t.n_variables
        return isinstance(state, CardState) and sizes == tuple(
            map(len, (state.multipliers, state.consensus))
        )

    def hold(self, state: Any) -> None:
        """Do nothing: the values of fixed variables are in the constants of forms."""

    def snapshot(self, state: Any) -> tuple[Any, Any]:
        """Return copies of the consensus and of the multipliers, in double precision."""
        mu = state.multipliers[: self.tensors.n_forms]
        return self.point(state), mu.to(torch.double, copy=True)

    def point(self, state: Any) -> Any:
        """Return a copy of the consensus, in double precision."""
        return state.consensus.to(torch.double, copy=True)

    def proof(self, into: Any) -> Any:
        """Return the multipliers that prove the bound of the last appraisal."""
        return self._proof

    def copy_forms(self, source: Any, target: Any = None, factor: float = 1.0) -> Any:
        """Copy a number per form, times a factor, into `target` or a new array."""
        if target is None:
            return source * factor
        target[...] = source * factor
        return target

    def arrays(self, snapshot: tuple[Any, Any]) -> tuple[Floats, Floats]:
        """Return a snapshot as arrays (variables,) and (forms,)."""
        y = snapshot[0][self.tensors.variable_places].cpu().numpy()
        multipliers = snapshot[1][self.tensors.form_places].cpu().numpy()
        return np.where(np.isnan(self.fixed), y, self.fixed), multipliers

    def polish(self, weights: Floats, state: Any, watch: Watch) -> Any:
        """Return what takes Newton steps from where a state stands."""
        from structlearn._src.cuda.card_newton import CardPolish  # which needs this module

        return CardPolish(self, weights, state, watch)

    def ceiling(self, weights: Floats) -> float:
        """Return an energy that no point of the box exceeds."""
        return float(weights @ self._by_group(energies(self._sorts, self.tensors.tops)))

    def appraise(self, weights: Any, state: Any) -> Appraisal:
        """Energy and violation at the consensus, and the bound that the multipliers prove."""
        t = self.tensors
        given = self.hinges.check_weights(weights)
        each = upload(given, t.device)[self._groups]
        point = t.by_form.vector(torch.double)
        point[: t.n_variables] = state.consensus
        value = t.constants + multiply(t.by_form, point)
        hinges = self._by_group(energies(self._sorts, value))
        missed = torch.where(self._sorts == EQUAL, value.abs(), value)
        missed = torch.where(self._sorts > SQUARED, missed, 0.0)
        violation = max(float(missed.max()), 0.0) if len(missed) else 0.0
        proof = t.by_variable.vector(torch.double)
        clipped = in_cone(self._sorts, each, state.multipliers[: t.n_forms].double())
        proof[: t.n_forms] = self._proof = clipped
        pull = multiply(t.by_variable, proof)
        squares = torch.where(
            (self._sorts == SQUARED) & (each > 0), clipped * clipped / (4.0 * each), 0.0
        )
        bound = float((clipped * t.constants - squares).sum() + pull.clamp(max=0.0).sum())
        return Appraisal(hinges, float(given @ hinges), violation, bound, pull)


def slopes(sorts: Tensor, weights: Tensor, values: Tensor, lengths: Tensor | float) -> Tensor:
    """Multipliers of forms after local steps, see `kernels.field.admm.slope`."""
    above = values.clamp(min=0.0)
    hard = torch.where(sorts == EQUAL, values, above) / lengths
    linear = torch.where(sorts == LINEAR, torch.minimum(hard, weights), hard)
    squared = 2.0 * weights * above / (1.0 + 2.0 * weights * lengths)
    return torch.where(sorts == SQUARED, squared, linear)


def energies(sorts: Tensor, values: Tensor) -> Tensor:
    """Hinges of forms without their weights; 0 for hard ones."""
    above = values.clamp(min=0.0)
    soft = torch.where(sorts == SQUARED, above * above, above)
    return torch.where(sorts > SQUARED, 0.0, soft)


def in_cone(sorts: Tensor, weights: Tensor, multipliers: Tensor) -> Tensor:
    """Clip multipliers so that they prove a bound, see `kernels.field.admm.appraise`."""
    out = torch.where(sorts == EQUAL, multipliers, multipliers.clamp(min=0.0))
    out = torch.where(sorts == LINEAR, torch.minimum(out, weights), out)
    return torch.where((sorts == SQUARED) & (weights == 0), 0.0, out)
