"""Consensus ADMM on a hinge-loss field: a state that is stepped, and may be stepped on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common import checks, threads
from structlearn._src.common.arrays import Bools, Floats
from structlearn._src.common.errors import ArgumentError, InfeasibleError
from structlearn._src.field.hinges import AT_MOST, EQUAL, Hinges
from structlearn._src.kernels.field import admm as hinge

#: By how much a hard constraint may be missed.
ALLOWED = 1e-6
_GRAIN = 2**18  # entries of forms in one range: worth a thread, and few rows to add up
_RANGES = 8
_FURTHEST = 1000.0  # by how much the step changes at once
_CONSTANT = 1e-30  # length of a hinge without free variables, which no step can move


class Residuals(NamedTuple):
    r"""How far ADMM is from agreement, :math:`|v - y|`, and from rest, :math:`\eta |y - y'|`."""

    primal: float
    dual: float
    iterations: int  #: steps of this run


class Appraisal(NamedTuple):
    """What the present state is worth."""

    hinges: Floats  #: sum of the hinges of every group at the consensus
    energy: float
    violation: float  #: largest of a hard form
    lower: float  #: no point that keeps the hard constraints has less energy
    pull: Floats  #: :math:`A^\\top \\lambda`, the slope of the energy by the variables


class Consensus:
    r"""Consensus ADMM on a hinge-loss field, a few steps or many, from where it stood.

    Minimises :math:`\sum_i w_{g_i} \max(l_i(v_i), 0)^{p_i}` over local copies :math:`v_i` that
    must agree with the consensus :math:`y \in [0, 1]^n`, by the augmented Lagrangian

    .. math:: L(v, \alpha, y) = \sum_i w_{g_i} \max(l_i(v_i), 0)^{p_i}
              + \alpha^\top (v - y) + \tfrac{\eta}{2} |v - y|^2 .

    One step is :math:`\alpha \leftarrow \alpha + \eta (v - y)`, then :math:`v`, then :math:`y`.
    All state persists between calls; weights may change at any time, and nothing is built anew.
    Local copies and multipliers take one number per form (see `kernels.field.admm`): with
    the constant, the length and the kinds a form costs 39 bytes, and 12 more per variable in it.

    Parameters
    ----------
    hinges : Hinges
    weights : array (groups,)
    step : float, optional
        :math:`\eta`; by default the mean weight of the hinges, or 1.
    relaxation : float in (0, 2)
        1 is plain ADMM; 1.6 takes fewer steps.
    stiffness : float
        How many times larger the step of hard constraints is.
    fixed : mapping from variable to value, or pair of arrays (variables, values), optional
        Variables that are given. The forms then speak about the others only.
    start : array (variables,), optional
        Consensus to begin with; by default 0.5.
    n_jobs : int, optional
        Threads. The result does not depend on it.

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
        weights: Any,
        *,
        step: float | None = None,
        relaxation: float = 1.0,
        stiffness: float = 1.0,
        fixed: Any = None,
        start: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.hinges = hinges
        self.n_jobs = n_jobs
        self.relaxation = checks.number(
            "relaxation", relaxation, low=0, high=2, open_low=True, open_high=True
        )
        self.stiffness = checks.number("stiffness", stiffness, low=0, open_low=True)
        self.weights = weights
        self._allocate()
        self.step = self.scale if step is None else step
        self._state.consensus[:] = 0.5 if start is None else _point(hinges, start)
        self.fix(*_pair(fixed))
        self._tally.hinges[0] = hinges.hinges(self.consensus)  # copies begin at the consensus
        self.iterations = 0

    def _allocate(self) -> None:
        h, n = self.hinges, self.hinges.n_variables
        self._room = hinge.Room(np.zeros(n), np.ones(n), np.zeros(n))
        self._forms = hinge.Forms(
            h.offsets.view(np.uint64), h.variables.view(np.uint32), h.coefficients, h.constants,
            _sorts(h), h.groups.view(np.uint32), np.zeros(h.n_forms),
        )  # fmt: skip
        # Ranges depend on the field alone, so that sums have the same order on all machines.
        most = min(_RANGES, 1 + len(h.variables) // max(n, 1))  # each adds up over all variables
        parts = min(most, 1 + len(h.variables) // _GRAIN)
        ranges = threads.split(h.offsets, parts) or [(0, 0)]
        self._borders = np.array([0] + [last for _, last in ranges])
        rows = len(ranges)
        self._tally = hinge.Tally(
            np.zeros((rows, n)), np.zeros((rows, h.n_groups)), np.zeros((rows, 1))
        )
        self._state = hinge.State(np.zeros(h.n_forms), *(np.zeros(n) for _ in range(4)))
        self._step = 1.0

    # ---- what may change between runs --------------------------------------------------------

    @property
    def weights(self) -> Floats:
        """One weight per group; may be set at any time, the state stays."""
        return self._weights

    @weights.setter
    def weights(self, weights: Any) -> None:
        self._weights = self.hinges.check_weights(weights)

    @property
    def scale(self) -> float:
        """Mean weight of the hinges: the natural size of steps and multipliers."""
        sizes = self.hinges.sizes
        return float(sizes @ self._weights) / max(int(sizes.sum()), 1) or 1.0

    @property
    def step(self) -> float:
        r""":math:`\eta`; when it is set, the multipliers stay."""
        return self._step

    @step.setter
    def step(self, step: float) -> None:
        new = checks.number("step", step, low=0, open_low=True)
        self._state.lags[:] *= self._step / new
        self._step = new
        self._look_ahead()

    def fix(self, variables: Any, values: Any) -> None:
        """Give some variables values, and free all others; the multipliers stay."""
        n, room, state = self.hinges.n_variables, self._room, self._state
        which, given = checks.indices("variables", variables), np.array(values, np.float64)
        if given.shape != which.shape or ((which < 0) | (which >= n)).any():
            raise ArgumentError(f"fix needs variables below {n}, and one value for each")
        if not ((given >= 0) & (given <= 1)).all():
            raise ArgumentError("values of fixed variables must lie in [0, 1]")
        room.lower[:], room.upper[:] = 0.0, 1.0
        room.lower[which] = room.upper[which] = state.consensus[which] = given
        fixed = np.zeros(n, np.bool_)
        fixed[which] = True
        self._measure(fixed)
        state.lags[which] = 0.0
        self._look_ahead()

    def _measure(self, fixed: Bools) -> None:
        """Count the copies of free variables, and measure the forms over them."""
        h = self.hinges
        free = ~fixed[h.variables]
        stiffness = np.where(h.hard, self.stiffness, 1.0)
        copies = np.bincount(
            h.variables[free], np.repeat(stiffness, np.diff(h.offsets))[free], h.n_variables
        )
        self._room.shares[:] = 0.0
        np.divide(1.0, copies, out=self._room.shares, where=copies > 0)
        lengths = h.add_up(np.where(free, h.coefficients**2, 0.0)) / stiffness
        constant = lengths == 0
        self._forms.lengths[:] = np.where(constant, np.where(h.hard, 1.0, _CONSTANT), lengths)
        broken = np.flatnonzero(constant & (h.violations(self.consensus) > ALLOWED))
        if len(broken):
            raise InfeasibleError(
                f"the hard forms {broken[:5].tolist()} have no free variable and do not hold: "
                f"change the values of their fixed variables",
                broken.tolist(),
            )

    def _look_ahead(self) -> None:
        np.subtract(self._state.consensus, self._state.lags, out=self._state.ahead)

    # ---- running -------------------------------------------------------------------------------

    def run(self, n_steps: int = 1, tol: float = 0.0) -> Residuals:
        r"""Take steps until both residuals are at most `tol` (the dual one times :math:`\eta`).

        Runs of 3 and 4 steps leave the same bits as one of 7.
        """
        n_steps, tol = checks.integer("n_steps", n_steps, low=1), checks.number("tol", tol, low=0)
        residuals = np.zeros(2)
        common = self._weights, self._step, self.relaxation, self._state, self._tally
        if min(threads.workers(self.n_jobs), len(self._borders) - 1) <= 1:
            taken = hinge.advance(
                self._forms, self._room, *common, self._borders, n_steps, tol, residuals
            )
        else:
            taken = self._run_threads(common, n_steps, tol, residuals)
        self.iterations += taken
        return Residuals(float(residuals[0]), float(residuals[1]), taken)

    def _run_threads(self, common: tuple[Any, ...], n_steps: int, tol: float, out: Floats) -> int:
        ranges = [(row, row + 1) for row in range(len(self._borders) - 1)]
        for n in range(n_steps):
            tell = tol > 0 or n == n_steps - 1

            def work(row: int, _: int, tell: bool = tell) -> None:
                hinge.local_step(self._forms, *common, tell, row, *self._borders[row : row + 2])

            threads.run(work, ranges, self.n_jobs)
            hinge.consensus_step(self._room, *common[1:], out)
            if tol > 0 and out[0] <= tol and out[1] <= tol * self._step:
                return n + 1
        return n_steps

    def balance(self, residuals: Residuals, *, damped: bool = True) -> None:
        r"""Change the step where one residual is more than twice the other, measured in :math:`v`.

        The root of their ratio damps the change; see Boyd et al., section 3.4.1. Where weights
        differ by orders of magnitude, only the whole ratio gets to the right step in time.
        """
        rest = residuals.dual / self._step
        if residuals.primal > 0 and rest > 0 and not 0.5 < residuals.primal / rest < 2:
            ratio = float(np.clip(residuals.primal / rest, 1 / _FURTHEST, _FURTHEST))
            self.step *= min(max(ratio**0.5, 0.2), 5.0) if damped else ratio

    def place(self, y: Floats, multipliers: Floats) -> None:
        """Go on from this point, with local copies that agree with it."""
        state = self._state
        state.consensus[:] = np.clip(y, self._room.lower, self._room.upper)
        state.multipliers[:] = multipliers
        state.lags[:] = 0.0
        self._look_ahead()
        state.pull[:] = self.appraise().pull

    # ---- reading off -----------------------------------------------------------------------------

    @property
    def consensus(self) -> Floats:
        """The variables, always within the box: a view, so copy what should last."""
        return self._state.consensus

    @property
    def multipliers(self) -> Floats:
        r"""One per form: :math:`\mu`, near a slope of the weighted hinge at the optimum."""
        return self._state.multipliers

    @property
    def kernel_view(self) -> tuple[hinge.Forms, hinge.Room]:
        """Forms and bounds as kernels take them."""
        return self._forms, self._room

    def local_hinges(self) -> Floats:
        r"""Sum of the hinges of every group at the local copies: :math:`\partial L/\partial w`."""
        return np.asarray(self._tally.hinges.sum(axis=0))

    def consensus_hinges(self) -> Floats:
        """Sum of the hinges of every group at the consensus."""
        return self.appraise().hinges

    def appraise(self) -> Appraisal:
        """Energy and violation at the consensus, and the bound that the multipliers prove."""
        found, hinges = np.zeros(3), np.empty(self.hinges.n_groups)
        pull = np.empty(self.hinges.n_variables)
        hinge.appraise(
            self._forms, self._room, self._weights, self.consensus, self.multipliers, pull, hinges,
            found,
        )  # fmt: skip
        energy, violation, lower = found.tolist()
        return Appraisal(hinges, energy, violation, lower, pull)

    def energy(self) -> float:
        """Energy at the consensus."""
        return self.appraise().energy

    def lower_bound(self) -> float:
        """No point that keeps the hard constraints has less energy."""
        return self.appraise().lower

    def state(self) -> dict[str, Any]:
        """All that the next step depends on, beside weights and fixed variables."""
        arrays = {name: value.copy() for name, value in self._state._asdict().items()}
        numbers = {"step": self._step, "iterations": self.iterations}
        return {**arrays, "hinges": self.local_hinges(), **numbers}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to where `state` was read."""
        self._step = float(state["step"])
        for name, value in self._state._asdict().items():
            value[:] = state[name]
        self._tally.hinges[:] = 0.0
        self._tally.hinges[0] = state["hinges"]
        self.iterations = int(state["iterations"])


def _sorts(hinges: Hinges) -> Any:
    sorts = np.where(hinges.powers == 2, hinge.SQUARED, hinge.LINEAR).astype(np.int8)
    sorts[hinges.kinds == AT_MOST] = hinge.AT_MOST
    sorts[hinges.kinds == EQUAL] = hinge.EQUAL
    return sorts


def _pair(fixed: Any) -> tuple[Any, Any]:
    if fixed is None:
        return [], []
    if isinstance(fixed, dict):
        return list(fixed), list(fixed.values())
    variables, values = fixed
    return variables, values


def _point(hinges: Hinges, values: Any) -> Floats:
    array = np.array(values, np.float64)
    if array.shape != (hinges.n_variables,) or not ((array >= 0) & (array <= 1)).all():
        raise ArgumentError(
            f"start must hold {hinges.n_variables} values in [0, 1], one per variable"
        )
    return array
