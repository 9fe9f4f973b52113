"""Wall time by number of threads: what a machine with many cores brings.

Usage: python benchmarks/threads.py [--threads 1 2 4 8 16] [--limit 60] [--quick] [--serial]
[--only NAME ...]

Without names all sections run. A section is a function of `SECTIONS` that prepares its data once
and returns a function of the number of threads, which does the work and returns seconds by phase;
the first phase is the time that counts. Every number of threads is tried in turn, up to three
times or until the limit in seconds, and the least time of each phase is shown. CoNLL-2000 is looked
for in the folder that STRUCTLEARN_DATA names; without it, its sections are skipped.

With `--quick` the sizes are those of `QUICK`, and 1 thread is compared with all cores: all
sections together take two to three minutes. Text, grids and sequences keep their sizes; there are
fewer steps, sweeps and forms.

With `--serial` nothing is compared. Every section runs once for the largest number of threads, and
the CPU time of every range of its work is taken, so that few cores tell what many would bring:
see `serial.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

HERE = pathlib.Path(__file__).parent
REPEATS = 3
OPTIMUM = 8930.33  # of the sparse CRF on CoNLL-2000, C = 1: as in tagging.py
LONGEST = 300  # passes, in case that a tolerance is never met


class Sizes(NamedTuple):
    """How much work the sections do."""

    sentences: int = 8936  #: of CoNLL-2000 for the hinge: all of them
    gap: float = 0.01  #: of the hinge, relatively
    iterations: int = 30  #: of L-BFGS
    forms: int = 3_000_000
    groups: int = 1250  #: of the trust program: about as many forms
    side: int = 1000  #: of the one large grid
    grids: int = 1000  #: of 20 x 20, in one call
    steps: int = 5  #: of learning on grids
    sweeps: int = 20  #: of samplers


QUICK = Sizes(2000, 0.05, 10, 300_000, 125, 300, 100, 2, 5)
#: Seconds by phase; the first is what counts.
Phases = dict[str, float]
Section = Callable[[Sizes], Callable[[int], Phases]]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=list(SECTIONS))
    parser.add_argument("--threads", type=int, nargs="+")
    parser.add_argument("--limit", type=float, help="seconds for each section")
    parser.add_argument("--quick", action="store_true", help="small sizes, in minutes")
    parser.add_argument("--serial", action="store_true", help="what bounds the speed-up")
    parser.add_argument("--out", type=pathlib.Path, help="JSON file to add the wall times to")
    given = parser.parse_args(arguments)
    if min(given.threads or [1]) < 1:
        parser.error("--threads needs whole numbers of at least 1")
    if given.out and not given.out.parent.is_dir():
        parser.error(f"--out: there is no folder {given.out.parent}")
    if given.out and not _holds_times(given.out):
        parser.error(f"--out: {given.out} holds something else than times of this program")
    cores = os.cpu_count() or 1
    sizes = QUICK if given.quick else Sizes()
    counts = given.threads or ([1, cores] if given.quick else [1, 2, 4, 8, 16])
    limit = given.limit or (5.0 if given.quick else 60.0)
    begun = time.monotonic()
    print(f"{cores} cores, load average {os.getloadavg()[0]:.2f}")
    for name in given.only or SECTIONS:
        if given.serial:
            serial_share(name, sizes, max(counts))
            continue
        least = measure(name, sizes, counts, limit)
        if given.out and least:
            keep(given.out, cores, name, least)
    print(f"\n{time.monotonic() - begun:.0f} s in all")
    return 0


def keep(path: pathlib.Path, cores: int, name: str, least: dict[int, Phases]) -> None:
    """Add the times of a section to a file, unless that has shorter ones of an earlier run."""
    found = json.loads(path.read_text()) if path.exists() else {"cores": cores, "curves": {}}
    curve = found["curves"].setdefault(name, {})
    for count, phases in least.items():
        seconds = next(iter(phases.values()))
        curve[str(count)] = min(seconds, curve.get(str(count), seconds))
    path.write_text(json.dumps(found, indent=1) + "\n")


def _holds_times(path: pathlib.Path) -> bool:
    """Whether `keep` can add to a file, which need not be there."""
    try:
        return not path.exists() or isinstance(json.loads(path.read_text())["curves"], dict)
    except (ValueError, KeyError, TypeError):
        return False


def measure(name: str, sizes: Sizes, counts: list[int], limit: float) -> dict[int, Phases]:
    """Run one section with every number of threads, print a table, and return the least times."""
    from structlearn.errors import DataNotFoundError

    end = time.monotonic() + limit
    try:
        work = SECTIONS[name](sizes)
    except DataNotFoundError as error:
        print(f"\n{name}: skipped: {error}", flush=True)
        return {}
    work(max(counts))  # compiles, and touches all memory
    runs: dict[int, list[Phases]] = {count: [] for count in counts}
    for repeat in range(REPEATS):
        for count in counts:
            if repeat == 0 or time.monotonic() < end:
                runs[count].append(work(count))
    least = {count: _least(found) for count, found in runs.items()}
    title = (SECTIONS[name].__doc__ or "").strip().split("\n")[0]
    print(f"\n{name}: {title}")
    phases = list(least[counts[0]])
    print(f"{'threads':>8} {'speed-up':>8} " + " ".join(f"{phase:>12}" for phase in phases))
    base = least[counts[0]][phases[0]]
    for count, seconds in least.items():
        times = " ".join(f"{seconds.get(phase, 0.0):12.4f}" for phase in phases)
        print(f"{count:8d} {base / seconds[phases[0]]:8.2f} {times}", flush=True)
    return least


def serial_share(name: str, sizes: Sizes, threads: int) -> None:
    """Run one section once, and print how much of it is outside of threads."""
    import serial
    from structlearn.errors import DataNotFoundError

    try:
        work = SECTIONS[name](sizes)
    except DataNotFoundError as error:
        print(f"\n{name}: skipped: {error}", flush=True)
        return
    work(threads)
    print(f"\n{name}: {serial.observe(lambda: work(threads)).words(threads)}", flush=True)


def _least(runs: list[Phases]) -> Phases:
    return {phase: min(run.get(phase, 0.0) for run in runs) for phase in runs[0]}


# ---- the machine -------------------------------------------------------------------------

PIECES, ROUNDS = 64, 2000  # of work that share nothing, and passes over each
MEETINGS = 200  # of threads, each for some tens of microseconds of work
KEPT = 2**11  # numbers that stay in the nearest cache
CACHED, STREAMED = 2**12, 2**22  # numbers of a piece that stay in the cache of a core, or do not


def machine(sizes: Sizes) -> Callable[[int], Phases]:
    """Logarithms, then multiplications of numbers in the cache, then others: nothing is shared."""
    from numba import njit

    from structlearn._src.common import threads
    from structlearn._src.kernels.graph.tables import put_in_threads
    from structlearn._src.kernels.team import make_board

    @njit(nogil=True)
    def work_in_cache(numbers: Any, rounds: int) -> float:
        total = 0.0
        for _ in range(rounds):
            for number in numbers:
                total += np.log(number)
        return total

    @njit(nogil=True)
    def scale(numbers: Any, rounds: int) -> None:
        for _ in range(rounds):
            for i in range(len(numbers)):
                numbers[i] *= 0.5

    @njit(nogil=True)
    def soften(numbers: Any, rounds: int) -> None:
        for _ in range(rounds):
            for i in range(len(numbers)):
                numbers[i] = 0.5 * numbers[i] + 0.5

    def on_a_line() -> Any:
        """Return numbers that begin with a cache line: else two threads need not be alike."""
        room = np.ones(KEPT + 8)
        first = -room.ctypes.data % 64 // 8
        return room[first : first + KEPT]

    near = [on_a_line() for _ in range(PIECES)]
    cached = [np.arange(1.0, CACHED) for _ in range(PIECES)]
    streamed = [np.ones(STREAMED) for _ in range(PIECES)]
    pieces = [(i, i + 1) for i in range(PIECES)]

    def work(n_jobs: int) -> Phases:
        _, computed = _clock(
            lambda: threads.run(lambda i, _: work_in_cache(cached[i], ROUNDS), pieces, n_jobs)
        )
        _, softened = _clock(
            lambda: threads.run(lambda i, _: soften(near[i], 100 * ROUNDS), pieces, n_jobs)
        )
        _, moved = _clock(lambda: threads.run(lambda i, _: scale(streamed[i], 5), pieces, n_jobs))
        one = pieces[:n_jobs]
        _, met = _clock(
            lambda: [
                threads.run(lambda i, _: work_in_cache(cached[i], 1), one, n_jobs)
                for _ in range(MEETINGS)
            ]
        )
        ranges, starts = np.arange(n_jobs + 1), np.arange(n_jobs) * CACHED
        given = ranges, starts, np.zeros((1, CACHED)), np.empty(n_jobs * CACHED)
        _, launched = _clock(
            lambda: [
                threads.launch(put_in_threads, n_jobs - 1, make_board(1), *given)
                for _ in range(MEETINGS)
            ]
        )
        return {
            "seconds": computed, "arithmetic": softened, "memory": moved, "meeting": met / MEETINGS,
            "launch": launched / MEETINGS,
        }  # fmt: skip

    return work


# ---- learning on sequences ---------------------------------------------------------------


def _conll(loss: str, sentences: int = 8936) -> Callable[[int], Any]:
    """Return a function that makes the objective of CoNLL-2000 for some number of threads."""
    from structlearn import SequenceLabeler, read_columns
    from structlearn._src.cli.taggers import gold_labels, without_last
    from structlearn._src.files.datasets import data_path

    columns = read_columns(str(data_path("conll2000", "train.txt")))
    labeler = SequenceLabeler(features="sparse", loss=loss)
    whole = labeler.objective(without_last(columns), gold_labels(columns))
    whole = whole.take(np.arange(min(sentences, whole.n_examples)))

    def make(n_jobs: int) -> Any:
        return replace(whole, settings=replace(whole.settings, n_jobs=n_jobs))

    return make


def _steps(objective: Any, over: Callable[[Any, Any], bool]) -> Phases:
    """Take steps of the default solver until `over` (not timed) says so."""
    from structlearn._src.common.threads import one_blas_thread
    from structlearn._src.solve.pick import choose

    solver = choose("auto", "subgradient", objective)
    with one_blas_thread():
        begun = time.perf_counter()
        state = solver.start(objective, np.zeros(objective.n_weights), np.random.default_rng(0))
        started = seconds = time.perf_counter() - begun
        passes = 0
        while passes < LONGEST:
            passes += 1
            begun = time.perf_counter()
            report = solver.step(objective, state)
            seconds += time.perf_counter() - begun
            if over(report, state):
                break
    return {"seconds": seconds, "start": started, "per pass": (seconds - started) / passes} | {
        "passes": float(passes)
    }


def sdca(sizes: Sizes) -> Callable[[int], Phases]:
    """CoNLL-2000 by the default solver, to 0.1 % of the optimum."""
    make = _conll("log")
    judge = make(max(os.cpu_count() or 1, 1))

    def work(n_jobs: int) -> Phases:
        return _steps(
            make(n_jobs), lambda report, state: judge.value(state["weights"]) <= 1.001 * OPTIMUM
        )

    return work


def hinge(sizes: Sizes) -> Callable[[int], Phases]:
    """CoNLL-2000, hinge, by the default solver, to a gap of 1 % (quick: a part of it, to 5 %)."""
    make = _conll("hinge", sizes.sentences)
    return lambda n_jobs: _steps(
        make(n_jobs), lambda report, state: report.gap <= sizes.gap * report.value
    )


def lbfgs(sizes: Sizes) -> Callable[[int], Phases]:
    """CoNLL-2000 by L-BFGS, seconds per iteration, and of the parts of an evaluation."""
    make = _conll("log")

    def work(n_jobs: int) -> Phases:
        from structlearn._src.common.threads import one_blas_thread
        from structlearn._src.solve.lbfgs import Lbfgs

        objective, solver = make(n_jobs), Lbfgs()
        with one_blas_thread():
            state = solver.start(objective, np.zeros(objective.n_weights), np.random.default_rng(0))
            begun = time.perf_counter()
            for _ in range(sizes.iterations):
                solver.step(objective, state)
            whole = (time.perf_counter() - begun) / sizes.iterations
            return {"iteration": whole, **_parts(objective, state)}

    return work


def _parts(objective: Any, state: Any) -> Phases:
    """Return how long the parts of an iteration take."""
    from structlearn._src.solve.lbfgs import newton_direction

    weights = state["weights"]
    evaluation = min(_clock(lambda: objective.value_gradient(weights))[1] for _ in range(3))
    value = min(_clock(lambda: objective.value(weights))[1] for _ in range(3))
    given = state, state["gradient"], None, objective.n_jobs
    direction = min(_clock(lambda: newton_direction(*given))[1] for _ in range(3))
    return {"evaluation": evaluation, "value": value, "direction": direction}


def _clock(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what some work returns, and its wall time."""
    begun = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begun


# ---- hinge-loss fields -------------------------------------------------------------------


def _field(make: Callable[[], Any], tol: float) -> Callable[[int], Phases]:
    """Return a function that finds the best values of a field, and times the parts of the work."""
    from structlearn._src.field import admm, consensus, newton

    hinges, weights = make()
    parts = {
        "set-up": (admm._MapSearch, "__init__"),
        "admm": (consensus.Consensus, "run"),
        "appraise": (consensus.Consensus, "appraise"),
        "evaluate": (newton.Polish, "_evaluate"),
        "gradient": (newton.Polish, "_descend"),
        "gather": (newton.NewtonSystem, "gather"),
        "conjugate": (newton.NewtonSystem, "solve"),
    }

    def work(n_jobs: int) -> Phases:
        seconds: Phases = {}
        with contextlib.ExitStack() as stack:
            for name, (owner, method) in parts.items():
                timed = _timed(getattr(owner, method), name, seconds)
                stack.enter_context(mock.patch.object(owner, method, timed))
            found, whole = _clock(lambda: admm.solve_map(hinges, weights, tol=tol, n_jobs=n_jobs))
        steps = {"steps": found.iterations, "newton": found.newton_steps}
        return {"seconds": whole, **{name: seconds.get(name, 0.0) for name in parts}, **steps}

    return work


def _timed(method: Callable[..., Any], name: str, seconds: Phases) -> Callable[..., Any]:
    """Let a method add its wall time to that of its name."""

    def timed(*given: Any, **more: Any) -> Any:
        result, taken = _clock(lambda: method(*given, **more))
        seconds[name] = seconds.get(name, 0.0) + taken
        return result

    return timed


def map_random(sizes: Sizes) -> Callable[[int], Phases]:
    """`solve_map` on 3 million random forms (quick: a tenth), to a gap of 0.1 %."""
    import forms

    return _field(lambda: forms.random_forms(sizes.forms), 1e-3)


def map_trust(sizes: Sizes) -> Callable[[int], Phases]:
    """`solve_map` on the 3 million forms of a trust program (quick: a tenth), to a gap of 1e-6."""
    import forms

    return _field(lambda: forms.trust_forms(sizes.groups), 1e-6)


# ---- graphs ------------------------------------------------------------------------------

COUPLING = 0.5  # nats that neighbours gain by being alike: messages come to rest in some sweeps
PATIENCE = 10  # sweeps where messages would need hundreds
BATCH = 10_000  # small graphs
GRIDS, EDGE = 64, 40  # of the grids that are learnt from, and their side


def _phased(parts: dict[str, tuple[Any, str]], work: Callable[[], Any]) -> Phases:
    """Return the wall time of some work, and of those methods that it calls."""
    seconds: Phases = dict.fromkeys(parts, 0.0)
    with contextlib.ExitStack() as stack:
        for name, (owner, method) in parts.items():
            timed = _timed(getattr(owner, method), name, seconds)
            stack.enter_context(mock.patch.object(owner, method, timed))
        _, whole = _clock(work)
    return {"seconds": whole, **seconds}


def _one_grid(
    side: int, query: str, method: str, states: int, **options: Any
) -> Callable[[int], Phases]:
    import structlearn as sl
    from structlearn._src.inference import front, loopy, trw
    from structlearn._src.inference.message_plan import MessagePlan
    from structlearn._src.inference.messenger import Messenger

    nodes = np.random.default_rng(1).normal(size=(side, side, states))
    parts = {
        "plan": (MessagePlan, "__init__"),
        "sweeps": (Messenger, "run"),
        "value": (Messenger, "value"),
        "decode": (Messenger, "decode"),
        "compare": (loopy.MessageRuns, "_compare"),
        "forests": (trw, "cover"),
        "bound": (trw, "upper_bound"),
        "answer": (front, "collect"),
    }

    def work(n_jobs: int) -> Phases:
        # What is known about a graph is kept with it, so that every run has its own.
        with mock.patch.dict(os.environ, STRUCTLEARN_N_JOBS=str(n_jobs)):
            begun = time.perf_counter()
            graph = sl.grid(nodes, COUPLING * np.eye(states))
            graph.wiring  # noqa: B018  compiled on first use
            built = time.perf_counter() - begun
            phases = _phased(
                parts, lambda: sl.infer(graph, query, method=method, random_state=0, **options)
            )
        return phases | {"build": built}

    return work


def grid_sum(sizes: Sizes) -> Callable[[int], Phases]:
    """Marginals of one grid of 1000 x 1000 (quick: 300 x 300), 2 states, by messages."""
    return _one_grid(sizes.side, "marginals", "bp", 2)


def grid_max(sizes: Sizes) -> Callable[[int], Phases]:
    """The same grid with 3 states, ten sweeps of max-product messages, one start."""
    return _one_grid(sizes.side, "map", "bp", 3, max_iter=PATIENCE, restarts=0)


def grid_trw(sizes: Sizes) -> Callable[[int], Phases]:
    """The same grid with 2 states, ten sweeps of tree-reweighted messages and their bound."""
    return _one_grid(sizes.side, "marginals", "trw", 2, max_iter=PATIENCE)


def infer_many(sizes: Sizes) -> Callable[[int], Phases]:
    """Ten thousand graphs, of 40 variables in hidden chains and 16 in grids, by messages."""
    import models

    rng = np.random.default_rng(5)
    kinds = models.small_hidden_chain, models.small_grid
    return _batch([kinds[i % 2](rng) for i in range(BATCH)])


def infer_large(sizes: Sizes) -> Callable[[int], Phases]:
    """A thousand grids of 20 x 20 (quick: a hundred), 3 states, by messages."""
    import structlearn as sl

    rng = np.random.default_rng(6)
    return _batch([
        sl.grid(rng.normal(size=(20, 20, 3)), COUPLING * np.eye(3)) for _ in range(sizes.grids)
    ])  # fmt: skip


def _batch(graphs: list[Any]) -> Callable[[int], Phases]:
    import structlearn as sl
    from structlearn._src.inference import front
    from structlearn._src.inference.message_plan import MessagePlan
    from structlearn._src.inference.messenger import Messenger

    for graph in graphs:
        graph.wiring  # noqa: B018  compiled on first use, which is not what is timed
    parts = {
        "join": (front, "join"),
        "pick": (front, "pick"),
        "plan": (MessagePlan, "__init__"),
        "sweeps": (Messenger, "run"),
        "value": (Messenger, "value"),
        "answers": (front, "collect"),
    }
    return lambda n_jobs: _phased(
        parts, lambda: sl.infer_many(graphs, method="bp", restarts=0, n_jobs=n_jobs)
    )


def grids(sizes: Sizes) -> Callable[[int], Phases]:
    """`GridLabeler` on 64 grids of 40 x 40 with half the labels hidden: some steps."""
    import structlearn as sl
    from structlearn._src.estimators.structured import learning
    from structlearn._src.learn.structured_objective import StructuredObjective
    from structlearn._src.learn.structured_world import GraphWorld

    rng = np.random.default_rng(3)
    base = rng.normal(size=(GRIDS, EDGE, EDGE, 3))
    base += 0.5 * (np.roll(base, 1, axis=1) + np.roll(base, 1, axis=2))  # neighbours are alike
    truth = base.argmax(axis=3)
    X = list(np.eye(3)[truth] + rng.normal(size=base.shape))
    Y = list(np.where(rng.random(truth.shape) < 0.5, -1, truth))
    parts = {
        "read": (learning, "_learn"),
        "worlds": (GraphWorld, "__init__"),
        "solve": (GraphWorld, "solve"),
        "push": (StructuredObjective, "push"),
        "pull": (StructuredObjective, "pull"),
        "check": (learning, "_trusted"),
    }

    def work(n_jobs: int) -> Phases:
        labeler = sl.GridLabeler(max_iter=sizes.steps, n_jobs=n_jobs, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # these few steps do not reach the optimum
            return _phased(parts, lambda: labeler.fit(X, Y))

    return work


# ---- samplers ----------------------------------------------------------------------------

SEQUENCES, LENGTH = 256, 2_000


def _sampled(name: str, sequences: int, sweeps: int, **more: Any) -> Callable[[int], Phases]:
    """Return a function that makes sweeps from a settled state, and times their parts."""
    import structlearn
    from infinite_worker import data
    from structlearn._src.common.threads import one_blas_thread
    from structlearn._src.sample import hmm, paths, runner, split_merge
    from structlearn._src.sample.hmm_sampler import HmmSampler

    X, y = (np.split(a, sequences) for a in data(LENGTH * sequences))
    kind = getattr(structlearn, name)
    model = kind(n_chains=1, burn_in=30, n_draws=1, random_state=0, n_start=20, **more)
    given = (X, y) if name == "MaxMarginHMM" else (X,)
    seen: list[Any] = []
    with mock.patch.object(runner, "run", _noted(runner.run, seen)):
        model.fit(*given)
    settled = seen[0].model
    parts = {
        "paths": (paths, "draw_paths"),
        "moves": (split_merge, "split_and_merge"),
        "parameters": (hmm, "draw_given_paths"),
    }
    ends: list[Any] = []

    def work(n_jobs: int) -> Phases:
        sampler = HmmSampler(replace(settled, n_jobs=n_jobs), n_moves=4)
        chain = model.chains_[0].copy()
        seconds: Phases = {}
        with contextlib.ExitStack() as stack:
            stack.enter_context(one_blas_thread())
            for part, (owner, method) in parts.items():
                timed = _timed(getattr(owner, method), part, seconds)
                stack.enter_context(mock.patch.object(owner, method, timed))
            _, whole = _clock(lambda: [chain.advance(sampler, False) for _ in range(sweeps)])
        ends.append(chain.state.states)
        assert np.array_equal(ends[0], ends[-1]), "draws depend on the number of threads"
        return {"seconds": whole, **{part: seconds.get(part, 0.0) for part in parts}}

    return work


def _noted(function: Callable[..., Any], seen: list[Any]) -> Callable[..., Any]:
    """Let a function note what it is given first."""

    def noted(first: Any, *given: Any, **more: Any) -> Any:
        seen.append(first)
        return function(first, *given, **more)

    return noted


def infinite_hmm(sizes: Sizes) -> Callable[[int], Phases]:
    """`InfiniteHMM` on 256 sequences of 2,000 points: some sweeps."""
    return _sampled("InfiniteHMM", SEQUENCES, sizes.sweeps)


def max_margin_hmm(sizes: Sizes) -> Callable[[int], Phases]:
    """`MaxMarginHMM` on 64 sequences of 2,000 points: some sweeps."""
    return _sampled("MaxMarginHMM", SEQUENCES // 4, sizes.sweeps, merge=False)


def infinite_svm(sizes: Sizes) -> Callable[[int], Phases]:
    """`InfiniteSVM` on 2,000 rows: 16 chains of 10 sweeps."""
    from infinite_worker import data
    from structlearn import InfiniteSVM

    X, y = data(LENGTH)

    def work(n_jobs: int) -> Phases:
        model = InfiniteSVM(n_chains=16, burn_in=5, n_draws=5, random_state=0, n_jobs=n_jobs)
        return {"seconds": _clock(lambda: model.fit(X, y))[1]}

    return work


#: All sections; add yours here.
SECTIONS: dict[str, Section] = {
    "machine": machine,
    "grid-sum": grid_sum,
    "grid-max": grid_max,
    "grid-trw": grid_trw,
    "infer-many": infer_many,
    "infer-large": infer_large,
    "grids": grids,
    "sdca": sdca,
    "hinge": hinge,
    "lbfgs": lbfgs,
    "map-random": map_random,
    "map-trust": map_trust,
    "infinite-hmm": infinite_hmm,
    "max-margin-hmm": max_margin_hmm,
    "infinite-svm": infinite_svm,
}


def _prepare() -> None:
    """Keep compiled code apart for every state of the kernels."""
    sys.path.append(str(HERE.parent / "tests"))
    from kernel_cache import kernel_hash

    folder = HERE.parent / ".numba_cache" / kernel_hash()
    os.environ.setdefault("NUMBA_CACHE_DIR", str(folder))


if __name__ == "__main__":
    _prepare()
    sys.exit(main(sys.argv[1:]))
