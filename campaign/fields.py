"""Random hinge-loss fields of all scales, against linear and quadratic programs and duality."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linprog

from campaign.base import expect
from structlearn._src.field.hinges import AT_MOST, EQUAL, HINGE
from structlearn.errors import InfeasibleError
from structlearn.fields import Hinges, solve_map

FIELDS = 20
LIMIT = 1.0  # seconds given to one field
LATE = 2.0  # seconds of computing beyond which the limit was not kept
TOL = 1e-6
ALLOWED = 1e-6  # violation of a hard form that counts as kept
SMALL = 1e-9  # what rounding explains, relative to the numbers that are added


@dataclass
class Field:
    """Forms as a matrix, weights, and which variables are given."""

    A: np.ndarray
    b: np.ndarray
    kinds: np.ndarray
    powers: np.ndarray
    groups: np.ndarray
    weights: np.ndarray
    fixed: dict[int, float] = field(default_factory=dict)
    mild: bool = False  #: of numbers that any solver can cope with

    def hinges(self) -> Hinges:
        """The field as the library takes it."""
        rows, columns = np.nonzero(self.A)
        offsets = np.append(0, np.cumsum(np.bincount(rows, minlength=len(self.A))))
        return Hinges(
            offsets, columns, self.A[rows, columns], self.b, self.kinds, self.powers, self.groups,
            self.A.shape[1], len(self.weights),
        )  # fmt: skip

    @property
    def each(self) -> np.ndarray:
        """Weight of every form, 0 for hard ones."""
        return np.where(self.kinds == HINGE, self.weights[self.groups], 0.0)

    @property
    def box(self) -> np.ndarray:
        """Least and largest value of every variable."""
        ends = np.tile([0.0, 1.0], (self.A.shape[1], 1))
        for v, value in self.fixed.items():
            ends[v] = value
        return ends

    def energy(self, y: np.ndarray) -> float:
        """Energy of a point."""
        held = np.maximum(self.A @ y + self.b, 0.0)
        return math.fsum(self.each * np.where(self.powers == 2, held**2, held))

    def rounding(self, y: np.ndarray) -> float:
        """By how much the energy may be off for want of digits."""
        size = np.abs(self.A) @ np.abs(y) + np.abs(self.b)
        held = np.maximum(self.A @ y + self.b, 0.0)
        slope = np.where(self.powers == 2, 2.0 * held + 1e-15 * size, 1.0)
        return 1e-14 * float(self.each @ (slope * size)) + 1e-300

    def violations(self, y: np.ndarray) -> np.ndarray:
        """By how much every hard form is missed."""
        values = self.A @ y + self.b
        missed = np.where(self.kinds == EQUAL, np.abs(values), np.maximum(values, 0.0))
        return np.where(self.kinds == HINGE, 0.0, missed)

    def bound(self, multipliers: np.ndarray) -> float:
        """What multipliers prove: no point of the box has less energy."""
        soft = self.kinds == HINGE
        lam = np.where(self.kinds == EQUAL, multipliers, np.maximum(multipliers, 0.0))
        lam = np.where(soft & (self.powers == 1), np.minimum(lam, self.each), lam)
        squared = soft & (self.powers == 2)
        lam = np.where(squared & (self.each == 0.0), 0.0, lam)
        curved = np.where(
            squared & (lam > 0.0), lam**2 / np.where(self.each > 0, 4.0 * self.each, 1.0), 0.0
        )
        slopes = self.A.T @ lam
        ends = self.box
        return math.fsum(
            [*(lam * self.b), *-curved, *np.minimum(slopes * ends[:, 0], slopes * ends[:, 1])]
        )

    def told(self) -> str:
        """All numbers, to build the field again."""
        return (
            f"A={self.A.tolist()} b={self.b.tolist()} kinds={self.kinds.tolist()} "
            f"powers={self.powers.tolist()} groups={self.groups.tolist()} "
            f"weights={self.weights.tolist()} fixed={self.fixed}"
        )


def make_field(rng: np.random.Generator) -> Field:
    """A field of any scale, feasible or not."""
    mild = bool(rng.random() < 0.4)
    n = int(rng.integers(1, 9))
    m = int(rng.integers(1, 16))
    A = _coefficients(rng, m, n, mild)
    kinds = rng.choice([HINGE] * 5 + [AT_MOST, EQUAL], m)
    if rng.random() < 0.4:
        kinds[:] = HINGE
    powers = rng.choice([1, 2], m) if rng.random() < 0.6 else np.full(m, rng.integers(1, 3))
    n_groups = int(rng.integers(1, 5))
    wide = 0.5 if mild else float(rng.choice([1.0, 3.0, 8.0]))
    weights = 10.0 ** rng.uniform(-wide, wide, n_groups)
    weights[rng.random(n_groups) < 0.1] = 0.0
    given = np.flatnonzero(rng.random(n) < rng.choice([0.0, 0.3]))
    return Field(
        A,
        _constants(rng, A, kinds, mild),
        kinds,
        powers,
        rng.integers(0, n_groups, m),
        weights,
        {int(v): float(rng.choice([0.0, 1.0, rng.random()])) for v in given},
        mild,
    )


def _constants(
    rng: np.random.Generator, A: np.ndarray, kinds: np.ndarray, mild: bool
) -> np.ndarray:
    """Constants such that hard forms hold at some point, nearly hold, or hold nowhere."""
    m, n = A.shape
    point = rng.random(n) if rng.random() < 0.5 else rng.integers(0, 2, n).astype(float)
    b = rng.choice([1.0, 1e-3, 1.0, 1.0 if mild else 1e3]) * rng.normal(size=m)
    at = -A @ point
    near = 0.0 if mild else float(rng.choice([0.0, 0.0, 1e-3, 1e-6, 1.0]))
    hard = kinds != HINGE
    slack = np.where(kinds == AT_MOST, rng.random(m), 0.0)
    b[hard] = (at - slack + near * rng.normal(size=m))[hard]
    tight = rng.random(m) < 0.3  # hinges that bend where others do
    b[tight & ~hard] = at[tight & ~hard]
    return b


def _coefficients(rng: np.random.Generator, m: int, n: int, mild: bool) -> np.ndarray:
    A = rng.choice([-1.0, 1.0], (m, n)) if rng.random() < 0.6 else rng.normal(size=(m, n))
    for row in A:
        kept = rng.choice(n, min(n, int(rng.integers(1, 5))), replace=False)
        row[np.setdiff1d(np.arange(n), kept)] = 0.0
    if not mild and rng.random() < 0.3:
        A *= 10.0 ** rng.uniform(-4, 4, (m, 1))
    return A


# ---- independent solvers -------------------------------------------------------------------


def least_violation(whole: Field) -> float:
    """The least sum of violations of hard forms, by a linear program."""
    rows = np.flatnonzero(whole.kinds != HINGE)
    if not len(rows):
        return 0.0
    A = np.concatenate([whole.A[rows], -whole.A[rows[whole.kinds[rows] == EQUAL]]])
    b = np.concatenate([whole.b[rows], -whole.b[rows[whole.kinds[rows] == EQUAL]]])
    n = A.shape[1]
    m = len(A)
    found = linprog(
        np.concatenate([np.zeros(n), np.ones(m)]),
        np.hstack([A, -np.eye(m)]),
        -b,
        bounds=[*whole.box.tolist(), *[(0, None)] * m],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return float(found.fun) if found.status == 0 else math.nan


def independent_point(whole: Field) -> np.ndarray | None:
    """A best point by an interior-point or a simplex method; None where that gives up."""
    used = (whole.kinds != HINGE) | (whole.each > 0)
    A, b, kinds, each = whole.A[used], whole.b[used], whole.kinds[used], whole.each[used]
    soft = kinds == HINGE
    squared = soft & (whole.powers[used] == 2)
    return (_quadratic if squared.any() else _linear)(whole, A, b, kinds, each, squared[soft])


def _linear(whole, A, b, kinds, each, _):
    soft, equal = kinds == HINGE, kinds == EQUAL
    n, m = A.shape[1], int(soft.sum())
    below = np.hstack([A[~equal], -np.eye(len(A))[~equal][:, soft]])
    found = linprog(
        np.concatenate([np.zeros(n), each[soft] / max(each.max(initial=0.0), 1e-300)]),
        below if len(below) else None,
        -b[~equal] if len(below) else None,
        np.hstack([A[equal], np.zeros((int(equal.sum()), m))]) if equal.any() else None,
        -b[equal] if equal.any() else None,
        bounds=[*whole.box.tolist(), *[(0, None)] * m],
    )
    return np.clip(found.x[:n], *whole.box.T) if found.status == 0 else None


def _quadratic(whole, A, b, kinds, each, squared):
    import clarabel
    from scipy import sparse

    soft, equal = kinds == HINGE, kinds == EQUAL
    n, m = A.shape[1], int(soft.sum())
    scaled = each[soft] / max(each.max(initial=0.0), 1e-300)
    P = sparse.diags(np.concatenate([np.zeros(n), np.where(squared, 2.0 * scaled, 0.0)]))
    q = np.concatenate([np.zeros(n), np.where(squared, 0.0, scaled)])
    pad = np.zeros((n, m))
    rows = [
        np.hstack([A[equal], np.zeros((int(equal.sum()), m))]),
        np.hstack([A[~equal], -np.eye(len(A))[~equal][:, soft]]),
        np.hstack([-np.eye(n), pad]),
        np.hstack([np.eye(n), pad]),
        np.hstack([np.zeros((m, n)), -np.eye(m)]),
    ]
    ends = whole.box
    right = [-b[equal], -b[~equal], -ends[:, 0], ends[:, 1], np.zeros(m)]
    cones = [
        clarabel.ZeroConeT(int(equal.sum())),
        clarabel.NonnegativeConeT(sum(map(len, right[1:]))),
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(P), q, sparse.csc_matrix(np.vstack(rows)), np.concatenate(right), cones, settings
    )  # fmt: skip
    found = np.asarray(solver.solve().x)[:n]
    return np.clip(found, *ends.T) if np.isfinite(found).all() else None


# ---- the check -----------------------------------------------------------------------------


def check(rng: np.random.Generator) -> None:
    """Solve some fields, and see that what is promised about each is true."""
    for _ in range(FIELDS):
        whole = make_field(rng)
        result, taken = solve(whole)
        if taken >= LIMIT + LATE:  # kernels may have been compiled
            result, taken = solve(whole)
        expect(taken < LIMIT + LATE, f"time_limit={LIMIT} took {taken:.2f} s:", whole.told())
        if result is None:
            least = least_violation(whole)
            expect(not least < SMALL, f"not infeasible ({least:.3g}):", whole.told())
        else:
            judge(whole, result)


def solve(whole):
    """The result, None where it is infeasible, and the seconds of computing."""
    began = time.process_time()
    try:
        result = solve_map(
            whole.hinges(),
            whole.weights,
            fixed=whole.fixed,
            tol=TOL,
            time_limit=LIMIT,
            n_jobs=1,
        )
    except InfeasibleError:
        result = None
    return result, time.process_time() - began


def judge(whole, result):
    """See that the energy is what it says, that the bound holds, and that the gap is closed."""
    about = f"{result!r}, lower {result.lower!r}: {whole.told()}"
    y = result.y
    ends = whole.box
    expect(
        np.isfinite(y).all() and (y >= ends[:, 0]).all() and (y <= ends[:, 1]).all(), "box:", about
    )
    energy = whole.energy(y)
    close = SMALL * abs(energy) + whole.rounding(y)
    expect(abs(energy - result.energy) <= close, f"energy is {energy!r}:", about)
    missed = whole.violations(y).max(initial=0.0)
    size = np.abs(whole.A).sum(axis=1) + np.abs(whole.b)
    expect(
        abs(missed - result.violation) <= 1e-13 * size.max() + 1e-15,
        f"violation {missed!r}:",
        about,
    )
    judge_bound(whole, result, about)
    enough = TOL * (abs(energy) + (whole.each.max(initial=0.0) or 1.0)) * (1 + SMALL) + close
    if missed <= ALLOWED:
        expect(result.lower <= energy + enough, "bound above the energy:", about)
    if result.converged:
        expect(missed <= ALLOWED * (1 + 1e-9), "converged with a violation:", about)
        expect(energy - result.lower <= enough, "gap:", about)
    elif whole.mild and result.ended != "time":
        expect(least_violation(whole) > SMALL, "mild, feasible and not solved:", about)


def judge_bound(whole, result, about):
    """The bound is proved by the multipliers, and no point of another solver is below."""
    proved = whole.bound(result.multipliers)
    sizes = np.abs(result.multipliers) * (np.abs(whole.A).sum(axis=1) + np.abs(whole.b))
    close = SMALL * abs(result.lower) + 1e-13 * sizes.sum() + 1e-300
    expect(proved >= result.lower - close, f"multipliers prove {proved!r}:", about)
    point = independent_point(whole) if whole.mild else None
    if point is not None:
        price = float(np.abs(result.multipliers) @ whole.violations(point))
        other = whole.energy(point) + price
        close += whole.rounding(point) + SMALL * other
        expect(other >= result.lower - close, f"a point has the energy {other!r}:", about)
