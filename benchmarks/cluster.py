"""A Dask cluster on this machine against one process: times, optima and what travels.

Usage: python benchmarks/cluster.py [overhead] [conll] [grids] [dual] [optimum] [rules] [ground]
       [killed] [--workers 2 4] [--weights 1000000] [--forms 1000000] [--iterations 20]

Without names all sections run. Workers are processes with one thread each, and so is the process
that they are compared with. `rules` and `ground` have a million groundings by default;
`--forms 10000000` is the full size. `ground` also reads and grounds a program, on the workers;
`killed` does the same while three workers are killed. `dual` takes passes of Frank-Wolfe and of
dual ascent; `optimum` minimises a part of CoNLL-2000 to convergence by all solvers.
CoNLL-2000 is looked for in the folder that STRUCTLEARN_DATA names. Bytes are those that pass
through the scheduler, which runs in this process: all that it or anybody here writes to it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

GROUNDINGS_PER_GROUP = 2400  # of the trust program, about
DUAL = (("hinge", "frank-wolfe"), ("log", "sdca"))
REPEATS = 20  # evaluations; the least time counts, since other work disturbs
_ROW = "{:<26} {:>8} {:>10} {:>12} {:>16}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sections", nargs="*")
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--weights", type=int, default=1_000_000)
    parser.add_argument("--forms", type=int, default=1_000_000)
    parser.add_argument("--iterations", type=int, default=20)
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.sections) - set(SECTIONS))
    if unknown:
        print(f"no section is called {unknown[0]!r}; choose from {', '.join(SECTIONS)}")
        return 2
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.2f}")
    print(_ROW.format("section", "workers", "seconds", "value", "scheduler bytes"))
    for name in given.sections or SECTIONS:
        SECTIONS[name](given)
    return 0


# ---- a cluster, and what passes through its scheduler ---------------------------------------


@contextlib.contextmanager
def cluster(n: int) -> Iterator[Any]:
    """A cluster of processes with one thread each, as the current place."""
    from distributed import Client, LocalCluster

    from structlearn import on

    with (
        LocalCluster(
            n_workers=n, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as local,
        Client(local) as client,
        on(client) as place,
    ):
        yield place


@contextlib.contextmanager
def counted(place: Any) -> Iterator[list[int]]:
    """Count the bytes that the scheduler and its peers in this process write."""
    from distributed.comm.tcp import TCP

    scheduler = place.address
    write = TCP.write
    sizes: list[int] = []

    async def write_and_count(comm: Any, *args: Any, **kwargs: Any) -> Any:
        size = await write(comm, *args, **kwargs)
        if scheduler in (comm.local_address, comm.peer_address):
            sizes.append(size)
        return size

    TCP.write = write_and_count
    try:
        yield sizes
    finally:
        TCP.write = write


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def tell(section: str, workers: int, seconds: float, value: float, size: int | None) -> None:
    shown = "" if size is None else f"{size:,}"
    print(_ROW.format(section, workers or "none", f"{seconds:.4f}", f"{value:.6g}", shown))
    sys.stdout.flush()


def compare(section: str, given: Any, work: Callable[[], float]) -> None:
    """Run some work here, then on clusters; twice each, since the first time compiles."""
    work()
    tell(section, 0, *timed(work), None)
    for n in given.workers:
        with cluster(n) as place:
            work()
            with counted(place) as sizes:
                seconds, value = timed(work)
            tell(section, n, seconds, value, sum(sizes))


# ---- sections ------------------------------------------------------------------------------


def overhead(given: Any) -> None:
    """Evaluations of next to no work, with few weights and with many: the way there and back."""
    from structlearn import SequenceLabeler

    rng = np.random.default_rng(0)
    for n_weights in (1000, given.weights):
        width = max(n_weights // 2, 1)
        X = [rng.normal(size=(2, width)) for _ in range(4)]
        Y = [np.array([0, 1])] * 4
        objective = SequenceLabeler().objective(X, Y)
        weights = np.zeros(objective.n_weights)

        def evaluate(there: Any, weights: Any = weights) -> float:
            work = partial(there.value_gradient, weights, there.begin())
            return min(timed(work)[0] for _ in range(REPEATS))

        name = f"evaluation, {len(weights):,}"
        tell(name, 0, evaluate(objective), 0.0, None)
        for n in given.workers:
            with cluster(n) as place:
                there = place.objective(objective)
                evaluate(there)
                with counted(place) as sizes:
                    least = evaluate(there)
                tell(name, n, least, 0.0, sum(sizes) // REPEATS)


def chunks(first: int | None = None) -> tuple[Any, Any] | None:
    """The first sentences of CoNLL-2000 with their labels; None where the data are not there."""
    from structlearn import read_columns

    path = pathlib.Path(os.environ.get("STRUCTLEARN_DATA", "")) / "conll2000/train.txt"
    if not path.is_file():
        print("conll: set STRUCTLEARN_DATA to the folder that has conll2000/train.txt")
        return None
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as part:
        part.write("\n\n".join(path.read_text().split("\n\n")[:first]) + "\n")
        part.flush()
        columns = read_columns(part.name)
    return columns, columns.labels()


def conll(given: Any) -> None:
    """L-BFGS on CoNLL-2000, chunking: so many iterations, and where they lead."""
    from structlearn import SequenceLabeler

    if data := chunks():
        minimised("conll", given, SequenceLabeler(features="sparse", n_jobs=1).objective(*data))


def dual(given: Any) -> None:
    """Passes of dual solvers on CoNLL-2000; their values differ, since shards work at once."""
    if data := chunks():
        for loss, solver in DUAL:
            fitted(f"{solver}, passes", given, data, loss, solver, given.iterations, None)


def optimum(given: Any) -> None:
    """Dual solvers on a ninth of CoNLL-2000, to a gap of 1 % or 0.1 %."""
    if data := chunks(1000):
        fitted("frank-wolfe, gap 1 %", given, data, "hinge", "frank-wolfe", 3000, 1e-2)
        fitted("sdca, gap 0.1 %", given, data, "log", "sdca", 3000, 1e-3)
        fitted("lbfgs, 0.1 %", given, data, "log", "lbfgs", 3000, 1e-3)


def fitted(
    section: str, given: Any, data: Any, loss: str, solver: str, max_iter: int, tol: float | None
) -> None:
    """Fit here, then on clusters; the last figure of a name is that of iterations."""
    from structlearn import SequenceLabeler

    def fit() -> Any:
        labeler = SequenceLabeler(
            features="sparse", loss=loss, solver=solver, n_jobs=1, max_iter=max_iter, tol=tol,
            random_state=0,
        )  # fmt: skip
        return labeler.fit(*data)

    seconds, found = timed(fit)
    tell(f"{section}, {found.n_iter_}", 0, seconds, found.value_, None)
    for n in given.workers:
        with cluster(n) as place, counted(place) as sizes:
            seconds, found = timed(fit)
            tell(f"{section}, {found.n_iter_}", n, seconds, found.value_, sum(sizes))


def grids(given: Any) -> None:
    """64 grids of 40 x 40 with half the labels hidden."""
    from structlearn import GridLabeler

    rng = np.random.default_rng(0)
    Y = [(rng.random((40, 40)) < 0.5).astype(int) for _ in range(64)]
    X = [y[..., None] + rng.normal(size=(40, 40, 1)) for y in Y]
    Y = [np.where(rng.random(y.shape) < 0.5, -1, y) for y in Y]
    minimised("grids", given, GridLabeler(inference="bp", n_jobs=1).objective(X, Y))


def minimised(section: str, given: Any, objective: Any) -> None:
    """Take so many steps of L-BFGS here, then on clusters; tell how long shards take to load."""
    from structlearn.solvers import Lbfgs, run

    start = np.zeros(objective.n_weights)
    limits = {"max_iter": given.iterations, "tol": None}

    def minimise(there: Any) -> float:
        return float(run(Lbfgs(), there, start, **limits).value)

    objective.value_gradient(start)  # compiles
    tell(section, 0, *timed(lambda: minimise(objective)), None)
    for n in given.workers:
        with cluster(n) as place:
            seconds, there = timed(lambda: place.objective(objective))
            tell(f"{section}, loading", n, seconds, 0.0, None)
            there.value_gradient(start)
            with counted(place) as sizes:
                seconds, value = timed(partial(minimise, there))
            tell(section, n, seconds, value, sum(sizes))


def rules(given: Any) -> None:
    """Best values of a random field with three variables in every form, to a certified gap."""
    from structlearn._src.field.hinges import Hinges
    from structlearn.fields import solve_map

    rng = np.random.default_rng(0)
    n = given.forms
    third = max(n // 30, 4)
    variables = rng.integers(0, third, (n, 3)) + third * np.arange(3)  # no variable twice in a form
    groups = rng.integers(0, 4, n)
    hinges = Hinges(
        3 * np.arange(n + 1), variables.ravel(), rng.normal(size=3 * n),
        rng.normal(size=n), np.zeros(n, int), rng.integers(1, 3, n), groups, 3 * third, 4,
    )  # fmt: skip
    weights = np.array([1.0, 0.3, 2.0, 0.7])
    compare("rules", given, lambda: solve_map(hinges, weights, tol=1e-4, n_jobs=1).energy)


def ground(given: Any) -> None:
    """Read the trust program from files, ground it, and infer."""
    import psl_models
    from structlearn import RuleModel

    warnings.simplefilter("ignore")  # some rules may have no groundings
    with tempfile.TemporaryDirectory() as folder:
        groups = max(given.forms // GROUNDINGS_PER_GROUP, 1)
        path = psl_models.trust(pathlib.Path(folder), groups)

        def work() -> float:
            return float(RuleModel.from_file(path, tol=1e-4, n_jobs=1).result_.energy)

        compare("ground", given, work)


def killed(given: Any) -> None:
    """Read, ground and infer the trust program while workers are killed, three times each."""
    import psl_models
    from structlearn import RuleModel

    warnings.simplefilter("ignore")  # some rules may have no groundings
    with tempfile.TemporaryDirectory() as folder:
        groups = max(given.forms // GROUNDINGS_PER_GROUP, 1)
        path = psl_models.trust(pathlib.Path(folder), groups)

        def work() -> Any:
            return RuleModel.from_file(path, tol=1e-4, n_jobs=1)

        def energy() -> float:
            return float(work().result_.energy)

        print(f"{work().grounding_.hinges.n_forms:,} groundings")
        tell("killed: nobody", 0, *timed(energy), None)
        for n in given.workers:
            with cluster(n) as place:
                tell("killed: nobody", n, *timed(energy), None)
                asked = killing(place, (2, 20, 60))
                tell("killed: three", n, *timed(energy), None)
                print(f"{sum(asked)} were killed, in {len(asked)} questions")


def killing(place: Any, moments: tuple[int, ...]) -> list[bool]:
    """Kill a worker before some of the questions; return for each question whether it was so."""
    ask = place.ask
    asked: list[bool] = []

    def ask_and_kill(work: Any, shared: Any, tree: Any) -> Any:
        asked.append(len(asked) + 1 in moments)
        if asked[-1]:
            home = tree[sum(asked) % len(tree)][0]
            os.kill(place.client.run(os.getpid, workers=[home])[home], signal.SIGKILL)
        return ask(work, shared, tree)

    place.ask = ask_and_kill
    return asked


SECTIONS: dict[str, Callable[[Any], None]] = {
    "overhead": overhead,
    "conll": conll,
    "grids": grids,
    "dual": dual,
    "optimum": optimum,
    "rules": rules,
    "ground": ground,
    "killed": killed,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
