"""Steps of ADMM on a card, and certified solutions: correct first, then a table of times.

Usage: python benchmarks/gpu_fields.py [--forms 1e7] [--large 1e8] [--host SECONDS]
       python benchmarks/gpu_fields.py --race 120 [--forms 1e7] [--out FILE]
Variants are caught one by one. Times are medians by CUDA events.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pathlib
import time
import traceback

import numpy as np
import torch

from structlearn import on
from structlearn._src.cuda import slices
from structlearn._src.cuda.card_consensus import CardConsensus
from structlearn._src.field.admm import solve_map
from structlearn._src.field.consensus import Consensus
from structlearn._src.field.hinges import Hinges

BEGAN = time.perf_counter()


def random_field(forms, variables, seed=0, signs=True, hard=0.0):
    """Forms over three different variables each, half of them squared, four groups."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, variables, forms)
    second = (first + rng.integers(1, variables // 2, forms)) % variables
    third = (second + rng.integers(1, variables // 2, forms)) % variables
    scopes = np.stack([first, second, third], axis=1).astype(np.int32).ravel()
    signed = rng.integers(0, 2, 3 * forms) * 2.0 - 1.0
    coefficients = signed if signs else rng.normal(size=3 * forms)
    groups = rng.integers(0, 4, forms)
    return Hinges(
        np.arange(forms + 1) * 3, scopes, coefficients, rng.uniform(-1.0, 1.0, forms),
        np.where(rng.random(forms) < hard, 1, 0), 1 + groups % 2, groups, variables, 4,
    )  # fmt: skip


WEIGHTS = np.array([1.0, 0.5, 2.0, 1.5])


def median_ms(work, repeats=20):
    """Median time of a call on the card."""
    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        work()
        events[1].record()
        torch.cuda.synchronize()
        times.append(events[0].elapsed_time(events[1]))
    return float(np.median(times))


def note(*words):
    print(f"[{time.perf_counter() - BEGAN:6.1f} s]", *words, flush=True)


def attempt(name, work):
    """Run one variant; a failure is told and the others go on."""
    try:
        work()
    except Exception as error:
        note(name, "FAILED:", type(error).__name__, str(error)[:300])
        traceback.print_exc(limit=4)
    torch.cuda.empty_cache()


def check(signs):
    """Compare states after 30 steps with those of the host in double precision."""
    field = random_field(20_000, 3_000, 5, signs, hard=0.02)
    host = Consensus(field, relaxation=1.6, stiffness=5.0)
    card = CardConsensus(field, relaxation=1.6, stiffness=5.0)
    ours, theirs = card.begin(WEIGHTS), host.begin(WEIGHTS)
    card.run(WEIGHTS, ours, 30)
    host.run(WEIGHTS, theirs, 30)
    t = card.tensors
    y = ours.consensus[t.variable_places].double().cpu().numpy()
    mu = ours.multipliers[t.form_places].double().cpu().numpy()
    found, wanted = card.appraise(WEIGHTS, ours), host.appraise(WEIGHTS, theirs)
    note(
        f"check signs={signs}: |y| {np.abs(y - theirs.consensus).max():.1e}, "
        f"|mu| {np.abs(mu - theirs.multipliers).max():.1e}, "
        f"energy {found.energy / wanted.energy - 1:.1e}, "
        f"bound {found.lower / wanted.lower - 1:.1e}, "
        f"residuals {ours.residuals} {theirs.residuals}"
    )


def make(field, rows, **options):
    slices.SLICE = rows
    begin = time.perf_counter()
    card = CardConsensus(field, relaxation=1.6, stiffness=5.0, **options)
    torch.cuda.synchronize()
    return card, time.perf_counter() - begin


def steps(field, rows, rolls, warps, label, keeps=(False,)):
    """Time steps of the built-in kernels."""
    from structlearn._src.cuda import slice_kernels

    card, seconds = make(field, rows)
    state = card.begin(WEIGHTS)
    strengths = torch.tensor(WEIGHTS, dtype=torch.float32, device="cuda")
    t = card.tensors
    for roll, warp, keep in itertools.product(rolls, warps, keeps):
        slice_kernels.KEEP = keep
        slice_kernels.ROLL = roll
        slice_kernels.WARPS = warp
        whole = median_ms(lambda: card._advance(strengths, state, False))
        by_form = median_ms(lambda: slice_kernels.row_sums(t.by_form.rows, state.ahead))
        by_variable = median_ms(
            lambda: slice_kernels.row_sums(t.by_variable.rows, state.multipliers)
        )
        note(
            f"{label} slice={rows} roll={roll} warps={warp} keep={keep}: step {whole:.3f} ms "
            f"(products alone: by form {by_form:.3f}, by variable {by_variable:.3f}); "
            f"layout {seconds:.2f} s; memory {torch.cuda.max_memory_allocated() / 1e9:.1f} GB"
        )
    slice_kernels.ROLL = slice_kernels.WARPS = 4
    slice_kernels.KEEP = False


def atomics(field, label):
    """Forms in single precision, sums by atomic additions: what the layout is compared with."""
    from benchmarks.slice_atomics import advance_by_atomics

    card, _ = make(field, 128)
    state = card.begin(WEIGHTS)
    strengths = torch.tensor(WEIGHTS, dtype=torch.float32, device="cuda")
    took = median_ms(lambda: advance_by_atomics(card, strengths, state))
    note(f"{label} atomics: step {took:.3f} ms")


def sparse(field, label):
    """PyTorch's own sparse products by the forms and by their transpose."""
    forms = field.n_forms
    a = torch.sparse_csr_tensor(
        torch.from_numpy(field.offsets.astype(np.int32)), torch.from_numpy(field.variables.copy()),
        torch.from_numpy(field.coefficients.astype(np.float32)), (forms, field.n_variables),
        device="cuda",
    )  # fmt: skip
    back = a.to_sparse_coo().t().coalesce().to_sparse_csr()
    x = torch.rand(field.n_variables, device="cuda")
    y = torch.rand(forms, device="cuda")
    first = median_ms(lambda: a @ x)
    second = median_ms(lambda: back @ y)
    note(f"{label} torch.sparse: by form {first:.3f} ms, by variable {second:.3f} ms")


def solve(field, label, tol=1e-4, place="cuda", **options):
    """Time a certified solution from arrays to arrays."""
    begin = time.perf_counter()
    with on(place):
        found = solve_map(field, WEIGHTS, tol=tol, **options)
    took = time.perf_counter() - begin
    note(
        f"{label} on {place}: {took:.2f} s, energy {found.energy:.6g}, relative gap "
        f"{found.gap / found.energy:.1e}, converged {found.converged}; {found.status}"
    )
    return took, found


def compare_solutions(args):
    """Solve on the card, then on the host, and let the host check the card's proof."""
    small = random_field(100_000, 10_000, 1, hard=0.02)
    attempt("warm", lambda: solve(small, "1e5 forms, first call"))
    attempt("hard", lambda: solve(small, "1e5 forms", tol=1e-6))
    n = int(args.forms)
    field = random_field(n, n // 10)
    kept = {}
    attempt("solve", lambda: kept.update(card=solve(field, f"{n:.0e} forms")))
    attempt("again", lambda: kept.update(card=solve(field, f"{n:.0e} forms, again")))
    if args.large:
        m = int(args.large)
        big = random_field(m, m // 10)
        note("large field made")
        attempt("large", lambda: solve(big, f"{m:.0e} forms", time_limit=60))
        del big
    if args.host:
        host = Consensus(field)
        state = host.begin(WEIGHTS, kept["card"][1].y, kept["card"][1].multipliers)
        proof = host.appraise(WEIGHTS, state)
        ours = kept["card"][1]
        note(f"the host's proof of the card's result: {proof.energy:.10g}, {proof.lower:.10g}")
        note(f"the card's: {ours.energy:.10g}, {ours.lower:.10g}")
        patience = {"place": "threads", "time_limit": args.host}
        attempt("host", lambda: kept.update(host=solve(field, f"{n:.0e} forms", **patience)))
        note(f"ratio of times {kept['host'][0] / kept['card'][0]:.1f}")


def race(args):
    """Solve on the card and on the host, from arrays to arrays; the host within its limit."""
    n = int(args.forms)
    field = random_field(n, n // 10)
    note("field made")
    solve(field, f"{n:.0e} forms, kernels compiled")
    card, ours = min((solve(field, f"{n:.0e} forms") for _ in range(3)), key=lambda row: row[0])
    solve(random_field(100_000, 10_000), "1e5 forms, loops compiled", 1e-3, "threads")
    host, theirs = solve(
        field, f"{n:.0e} forms", place="threads", time_limit=args.race, progress=Course()
    )
    more = "" if theirs.converged else "more than "  # it was stopped before it was as near
    found = {
        "forms": n,
        "cores": os.cpu_count(),
        "card": {"seconds": card, "gap": ours.gap / ours.energy, "status": ours.status},
        "host": {"seconds": host, "gap": theirs.gap / theirs.energy, "status": theirs.status},
        "ratio": host / card,
        "host done": theirs.converged,
    }
    note(f"lower bounds {ours.lower:.8g} and {theirs.lower:.8g}, energies {ours.energy:.8g} and "
         f"{theirs.energy:.8g}")  # fmt: skip
    note(f"card {card:.2f} s to a gap of {found['card']['gap']:.1e}; host on {os.cpu_count()} "
         f"cores {host:.2f} s to a gap of {found['host']['gap']:.1e}: {more}{host / card:.1f} "
         f"times the card")  # fmt: skip
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(found, indent=1))


class Course:
    """Prints how far the host is every few seconds, so that a run that is stopped tells enough."""

    def __init__(self, every=5.0):
        self._every = every
        self._next = time.perf_counter() + every

    def __call__(self, share, words):
        if time.perf_counter() >= self._next:
            self._next += self._every
            note(f"host: {words}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--forms", type=float, default=1e7)
    parser.add_argument("--large", type=float, default=1e8)
    parser.add_argument(
        "--race", type=float, default=0, help="only compare card and host; seconds for the host"
    )
    parser.add_argument("--out", help="where the comparison goes, as JSON")
    parser.add_argument("--no-steps", action="store_true")
    parser.add_argument("--host", type=float, default=0, help="seconds that the host may take")
    args = parser.parse_args()
    note(torch.__version__, torch.cuda.get_device_name())
    if args.race:
        race(args)
        return
    for signs in (True, False):
        attempt("check", lambda signs=signs: check(signs))
    compare_solutions(args)
    if not args.no_steps:
        compare_steps(args)
    note("done")


def compare_steps(args):
    """Time variants of a step."""
    n = int(args.forms)
    field = random_field(n, n // 10)
    note("field made")
    attempt("128", lambda: steps(field, 128, (1, 4, 8), (4,), f"{n:.0e} signs", (False, True)))
    attempt("256", lambda: steps(field, 256, (4,), (8, 4), f"{n:.0e} signs"))
    attempt("512", lambda: steps(field, 512, (4,), (8, 4), f"{n:.0e} signs"))
    slices.SLICE = 128
    attempt("atomics", lambda: atomics(field, f"{n:.0e} signs"))
    attempt("sparse", lambda: sparse(field, f"{n:.0e} signs"))
    wide = random_field(n, 3 * n // 10)
    attempt(
        "wide", lambda: steps(wide, 128, (4,), (4,), f"{n:.0e} signs, {3 * n // 10:.0e} variables")
    )
    real = random_field(n, n // 10, signs=False)
    attempt("real", lambda: steps(real, 128, (4,), (4,), f"{n:.0e} real"))
    if args.large:
        m = int(args.large)
        big = random_field(m, m // 10)
        note("large field made")
        attempt("large", lambda: steps(big, 128, (1, 4), (4,), f"{m:.0e} signs", (False, True)))


if __name__ == "__main__":
    main()
