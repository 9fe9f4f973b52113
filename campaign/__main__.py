"""The command: ``python -m campaign --hours 1``."""

from __future__ import annotations

import argparse
import pathlib
import secrets
import signal
import sys
import time

from campaign import ROOT
from campaign.catalogue import CHECKS
from campaign.record import Record, report, table
from campaign.runner import Campaign

_NOTE_EVERY = 30.0  # seconds between lines of the record


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m campaign", description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0, help="how long (default 1)")
    parser.add_argument("--seed", type=int, help="seed of the first round; those after it count on")
    parser.add_argument("--only", nargs="*", metavar="NAME", help=f"some of {', '.join(CHECKS)}")
    parser.add_argument("--skip", nargs="*", metavar="NAME", default=[], help="all but these")
    parser.add_argument("--rounds", type=int, help="at most so many calls of every check")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--keep-going", action="store_true", help="collect failures")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out" / "campaign")
    parser.add_argument("--report", action="store_true", help="print the totals of all runs")
    options = parser.parse_args(given)
    options.only = [n for part in options.only or CHECKS for n in part.split(",")]
    unknown = [name for name in [*options.only, *options.skip] if name not in CHECKS]
    if unknown:
        parser.error(f"there is no check {unknown[0]!r}; there are {', '.join(CHECKS)}")
    return options


def main(given: list[str] | None = None) -> int:
    """Run, report, and return 1 if anything failed."""
    options = _arguments(given)
    if options.report:
        print(report(options.out))
        return 0
    seed = secrets.randbelow(2**48) if options.seed is None else options.seed
    names = [name for name in options.only if name not in options.skip]
    run = Campaign(
        names, seed, 3600.0 * options.hours, options.rounds, options.jobs, options.keep_going
    )
    record = Record(options.out, seed)
    for ending in (signal.SIGINT, signal.SIGTERM):  # also where a shell has them ignored
        signal.signal(ending, signal.default_int_handler)
    noted = began = time.perf_counter()
    failures = 0
    try:
        for outcome in run.outcomes():
            if outcome.kind:
                failures += 1
                record.fail(outcome)
                print(f"\n{outcome.kind}: {outcome.error}\n{outcome.command}", file=sys.stderr)
            if time.perf_counter() - noted > _NOTE_EVERY:
                noted = time.perf_counter()
                record.write(run.tallies)
            if sys.stderr.isatty():
                cases = sum(tally.cases for tally in run.tallies.values())
                past = (time.perf_counter() - began) / 60.0
                print(f"\r{past:.1f} min, {cases:,} cases, {failures} failures, "
                      f"last {outcome.check:<20}", end="", file=sys.stderr)  # fmt: skip
    except KeyboardInterrupt:
        pass
    record.write(run.tallies)
    print(f"\n{table(run.tallies)}\nall of it in {record.path}")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
