"""Results as JSON lines in a folder, one file for each run, so that runs add up."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import subprocess
from dataclasses import asdict

from campaign import ROOT
from campaign.catalogue import CHECKS
from campaign.runner import Outcome, Tally

_FIELDS = ("cases", "calls", "seconds", "failures")


class Record:
    """The file of one run; lines are sums since the line before, and failures as they come."""

    def __init__(self, folder: pathlib.Path, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        now = datetime.datetime.now(datetime.UTC)
        self.path = folder / f"{now:%Y%m%d-%H%M%S}-{os.getpid()}.jsonl"
        self.seed = seed
        self.commit = _commit()
        self.written: dict[str, Tally] = {}

    def write(self, tallies: dict[str, Tally]) -> None:
        """Add what came since the last time."""
        lines = []
        for name, tally in tallies.items():
            more = tally.less(self.written.get(name, Tally()))
            if more.calls:
                lines.append({"check": name, "run": self.seed, "commit": self.commit})
                lines[-1] |= asdict(more)
                self.written[name] = Tally(**asdict(tally))
        self._append(lines)

    def fail(self, outcome: Outcome) -> None:
        """Add a failure, all of it."""
        self._append([asdict(outcome) | {"commit": self.commit, "command": outcome.command}])

    def _append(self, lines: list[dict[str, object]]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


def _commit() -> str:
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def report(folder: pathlib.Path) -> str:
    """Totals of all runs in a folder, as a table."""
    tallies: dict[str, Tally] = {name: Tally() for name in CHECKS}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            entry = json.loads(line)
            if "cases" in entry:
                tally = tallies.setdefault(entry["check"], Tally())
                for name in _FIELDS:
                    setattr(tally, name, getattr(tally, name) + entry[name])
    return table(tallies)


def table(tallies: dict[str, Tally]) -> str:
    """Counts, seconds and failures of every check."""
    rows = [f"{'check':<22}{'cases':>12}{'goal':>12}{'seconds':>10}{'failures':>10}"]
    for name, tally in tallies.items():
        goal = CHECKS[name].goal if name in CHECKS else 0
        rows.append(
            f"{name:<22}{tally.cases:>12,}{goal:>12,}{tally.seconds:>10,.0f}{tally.failures:>10}"
        )
    seconds = sum(tally.seconds for tally in tallies.values())
    failures = sum(tally.failures for tally in tallies.values())
    rows.append(f"{'all':<22}{'':>24}{seconds:>10,.0f}{failures:>10}")
    return "\n".join(rows)
