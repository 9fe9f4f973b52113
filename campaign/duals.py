"""Dual solvers on small random problems: certificates, and the optimum of a quasi-Newton method."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from campaign.base import expect
from campaign.batches import fine_grains
from chain_objectives import KINDS, chains
from structlearn._src.solve import frank_wolfe, sdca
from structlearn.solvers import FrankWolfe, Lbfgs, Sdca, run

DUALS = 4
SMOOTH = {
    "log": {},
    "eps": {"eps_y": 0.5, "eps_h": 0.5},
    "hybrid": {"alpha": 0.4, "eps_y": 0.5, "eps_h": 0.5},
}
PASSES = 40  # in which bounds are looked at
MOST = 6000  # passes of a fit that is to converge


def check(rng: np.random.Generator) -> None:
    """Both solvers on some problems, with batches of any size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(DUALS):
            smooth = rng.random() < 0.5
            objective, told = problem(rng, smooth)
            size = int(rng.choice([1, 2, 3, 4, 8, 100]))
            solver: Any = Sdca(evaluate=1, batch_size=size)
            if not smooth:
                parts = {"batch_size": size} if rng.random() < 0.7 else {"shards": min(size, 8)}
                solver = FrankWolfe(pairwise=int(rng.integers(0, 3)), evaluate=1, **parts)
            about = f"{solver} on {told}"
            with fine_grains(rng):
                threads(rng, objective, solver, about)
                (ascent if smooth else certificates)(rng, objective, solver, about)


def problem(rng: np.random.Generator, smooth: bool) -> tuple[Any, str]:
    """A random objective, and what makes it again."""
    given = {
        "seed": int(rng.integers(2**32)), "n": int(rng.integers(2, 40)), "states": int(rng.integers(2, 5)),
        "width": int(rng.integers(1, 6)), "longest": int(rng.integers(1, 7)),
        "C": float(10.0 ** rng.uniform(-2, 1)), "loss": "hinge",
    }  # fmt: skip
    given |= KINDS[str(rng.choice(list(KINDS)))]
    if "bars" in given:
        given["states"] = max(given["states"], 3)
    if smooth:
        given["loss"] = str(rng.choice(list(SMOOTH)))
        given |= SMOOTH[given["loss"]]
    return chains(**given), str(given)


def _with_threads(objective: Any, n_jobs: int) -> Any:
    return replace(objective, settings=replace(objective.settings, n_jobs=n_jobs))


def _solve(objective: Any, solver: Any, seed: int, **options: Any) -> Any:
    start = np.zeros(objective.n_weights)
    return run(solver, objective, start, rng=np.random.default_rng(seed), **options)


def threads(rng: np.random.Generator, objective: Any, solver: Any, about: str) -> None:
    """The number of threads changes no bit of the weights."""
    seed = int(rng.integers(2**32))
    runs = [
        _solve(_with_threads(objective, n), solver, seed, tol=None, max_iter=5).weights
        for n in (1, 2, int(rng.integers(3, 9)))
    ]
    for other in runs[1:]:
        expect(np.array_equal(other, runs[0]), "threads change weights:", about)


def certificates(rng: np.random.Generator, objective: Any, solver: Any, about: str) -> None:
    """Duals stay below every value, gaps are what they say, and close."""
    seed = int(rng.integers(2**32))
    state = solver.start(objective, np.zeros(objective.n_weights), np.random.default_rng(seed))
    lowest = np.inf
    highest = -np.inf
    for _ in range(PASSES):
        report = solver.step(objective, state)
        true = objective.value(state["average"])
        expect(abs(report.value - true) <= 1e-9 * (1.0 + abs(true)), report, true, about)
        dual = frank_wolfe.dual_value(state)
        one = solver.shards > 1 or solver.batch_size == 1
        expect(dual >= highest - 1e-9 * (1.0 + dual) or not one, f"{dual} after {highest}:", about)
        lowest = min(lowest, true, objective.value(state["weights"]))
        highest = max(highest, dual)
        expect(highest <= lowest + 1e-9 * (1.0 + lowest), f"dual {dual} above {lowest}:", about)
    best = _solve(objective, FrankWolfe(pairwise=1, batch_size=1), seed, max_iter=MOST, tol=1e-5)
    if not best.converged:
        return
    expect(highest <= best.value * (1.0 + 1e-9) + 1e-9, f"dual {highest}, {best.value}:", about)
    found = _solve(objective, solver, seed + 1, max_iter=MOST, tol=1e-3)
    slack = 2e-3 * (1.0 + best.value)
    expect(found.value >= best.value * (1.0 - 1e-4) - 1e-9, found.value, best.value, about)
    expect(not found.converged or found.value <= best.value + slack, found.value, best.value, about)
    # Without pairwise steps, or with few batches, it creeps.
    few = (solver.batch_size or 1) > max(objective.n_examples // 4, 1) or solver.shards > 1
    creeps = solver.pairwise == 0 or few
    expect(found.converged or creeps, f"no end after {MOST} passes:", found.status, about)


def ascent(rng: np.random.Generator, objective: Any, solver: Any, about: str) -> None:
    """Bounds stay below the optimum, and the optimum is that of L-BFGS."""
    seed = int(rng.integers(2**32))
    best = _solve(objective, Lbfgs(), seed, max_iter=2000, tol=1e-13)
    state = solver.start(objective, np.zeros(objective.n_weights), np.random.default_rng(seed))
    for _ in range(PASSES):
        report = solver.step(objective, state)
        true = objective.value(state["weights"])
        expect(abs(report.value - true) <= 1e-9 * (1.0 + abs(true)), report, true, about)
        bound = sdca.dual_bound(objective, state)
        # Memories are of single precision.
        expect(bound <= best.value + 1e-5 * (1.0 + best.value), bound, best.value, about)
    found = _solve(objective, solver, seed + 1, max_iter=MOST, tol=1e-10)
    expect(found.value >= best.value - 1e-8 * (1.0 + best.value), found.value, best.value, about)
    expect(found.converged, f"no end after {MOST} passes:", found.status, about)
    expect(found.value <= best.value + 1e-5 * (1.0 + best.value), found.value, best.value, about)
