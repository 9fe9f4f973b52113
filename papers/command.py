"""``structlearn reproduce``, or ``python -m papers``: the tables and figures of the documents."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from structlearn._src.cli.arguments import add_shared, check_folder, positive, whole
from structlearn._src.cli.progress import ProgressLine, say
from structlearn.errors import ArgumentError

_DESCRIPTION = """\
Make tables and figures of the documents that the library is built on again, and print ours beside
theirs, with a verdict on what they claim. Without a name: all of them with --quick or --full,
otherwise a list. Numbers (JSON) and pictures (PNG) go to a folder, and so does every unit of work
as soon as it is done: a run that was killed goes on where it stopped. Experiments on real data look
for it in the folder that STRUCTLEARN_DATA names.
"""
_OUTPUT = Path("out", "papers")
INCOMPLETE = 1  # exit code where units failed, or were left for want of time


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "reproduce",
        help="run experiments of the papers",
        description=_DESCRIPTION,
        allow_abbrev=False,
    )
    option = parser.add_argument
    option("names", metavar="NAME", nargs="*", help="which experiments")
    option("--list", action="store_true", help="list the experiments and end")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small versions of seconds; no results")
    size.add_argument("--full", action="store_true", help="as in the papers (the default)")
    option("--jobs", metavar="N", type=whole, default=1, help="processes (default 1)")
    option("--trials", metavar="N", type=whole, help="repetitions with other data")
    option(
        "--time-limit", metavar="S", type=positive, help="end after so many seconds; go on later"
    )
    option("--output", metavar="DIR", type=Path, default=_OUTPUT, help=f"folder ({_OUTPUT})")
    add_shared(parser, "--seed", "--quiet")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List experiments, or run some and print what they found."""
    from papers import checks
    from papers.catalogue import EXPERIMENTS

    for name in args.names:  # all of them, before the first one runs for hours
        checks.one_of("experiment", name, tuple(EXPERIMENTS))
    if args.list or not (args.names or args.quick or args.full):
        print("\n".join(listed(EXPERIMENTS)))
        return 0
    _make(args.output)
    return _Run(args, _chosen(args.names, EXPERIMENTS)).all()


def listed(experiments: Mapping[str, Any]) -> list[str]:
    """For each experiment its name, which table or figure it is, and of what systems."""
    width = max(map(len, experiments)) + 2
    return [f"{name:{width}}{e.heading}" for name, e in experiments.items()]


def _chosen(names: Sequence[str], experiments: Mapping[str, Any]) -> list[Any]:
    """Return what was named, or everything whose data is here."""
    from papers.files import is_here

    if names:
        return [experiments[name] for name in dict.fromkeys(names)]
    missing = {e.name: [d for d in e.data if not is_here(d)] for e in experiments.values()}
    for name, folders in missing.items():
        if folders:
            say(f"structlearn: {name} is left out: no {', '.join(folders)} in STRUCTLEARN_DATA\n")
    return [e for e in experiments.values() if not missing[e.name]]


def _make(folder: Path) -> None:
    """Make a folder before any work is done."""
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"--output {folder} is a file; need a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"--output {folder} cannot be made: {error.strerror}") from None
    check_folder("--output", folder)


class _Run:
    """Units of several experiments in one queue; reports come as soon as they can be made."""

    def __init__(self, args: argparse.Namespace, chosen: Sequence[Any]) -> None:
        from papers.base import Settings
        from papers.pool import Task
        from papers.units import Store

        self.args = args
        self.settings = Settings(args.trials, args.quick, args.seed)
        self.store = Store(args.output / "units")
        self.tasks = {e: [Task(e, dict(given)) for given in e.units(self.settings)] for e in chosen}
        every = [task for tasks in self.tasks.values() for task in tasks]
        found = {task: self.store.find(task.experiment, task.given) for task in every}
        self.done = {task: unit for task, unit in found.items() if unit is not None}
        self.failures: dict[tuple[str, str], list[Any]] = {}  # units by experiment and reason
        self.progress = ProgressLine(not args.quiet)

    def all(self) -> int:
        """Do what is left to do; return the exit code."""
        from papers import pool

        for experiment in self.tasks:
            self._report_if_done(experiment)
        tasks = [task for e in self.tasks for task in self._open(e)]
        ended = pool.run(tasks, self.store, self.args.jobs, self.args.time_limit)
        for n, (task, unit, failure) in enumerate(ended, start=1):
            name = task.experiment.name
            self.progress(n / len(tasks), f"{name}: unit {n} of {len(tasks)}")
            if unit is None:
                self.failures.setdefault((name, failure), []).append(task.given)
            else:
                self.done[task] = unit
                self._report_if_done(task.experiment)
        self.progress.clear()
        return self._end()

    def _open(self, experiment: Any) -> list[Any]:
        return [task for task in self.tasks[experiment] if task not in self.done]

    def _report_if_done(self, experiment: Any) -> None:
        """Print and write what was found, once all units are done."""
        from papers.results import Results

        if self._open(experiment):
            return
        self.progress.clear()
        units = [self.done[task] for task in self.tasks[experiment]]
        lines = _lines(experiment, experiment.report(units), self.settings.quick)
        print("\n".join(lines), flush=True)
        results = Results.of(experiment, self.settings, units)
        print(f"numbers: {results.write(self.args.output)}, {results.minutes:.1f} CPU minutes")
        for line in draw(experiment, units, self.args.output):
            print(line)
        print(flush=True)

    def _end(self) -> int:
        """Say what failed or was left."""
        for (name, failure), units in self.failures.items():
            more = f" (so did {len(units) - 1} more)" if len(units) > 1 else ""
            say(f"structlearn: {name} failed with {units[0]}{more}: {failure}\n")
        left = {e.name: len(self._open(e)) for e in self.tasks if self._open(e)}
        for name, n in left.items():
            say(f"structlearn: {name}: {n} units are left; run the same command to go on\n")
        return INCOMPLETE if left else 0


def _lines(experiment: Any, report: Any, quick: bool) -> list[str]:
    size = ["Quick version: it shows that all works, and is no result."] if quick else []
    heading = f"{experiment.name}: {experiment.heading}"
    return [heading, experiment.asks, *size, *report.lines(), "", *experiment.readings]


def draw(experiment: Any, units: Any, folder: Path) -> Iterator[str]:
    """Draw all pictures of an experiment, where matplotlib is installed."""
    from papers.files import save_picture

    for name, picture in experiment.pictures.items():
        path = folder / f"{experiment.name}-{name}.png"
        try:
            figure = picture(units)
        except ImportError as error:
            yield f"no pictures: {error}"
            return
        save_picture(figure, path, dpi=90)
        yield f"picture: {path}"
