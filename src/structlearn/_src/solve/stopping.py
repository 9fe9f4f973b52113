"""When a run is over, and how near that is."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from structlearn._src.common.history import History
from structlearn._src.common.watch import Approach, brief
from structlearn._src.solve.base import Report

_WORSE = 0.01  # a run whose values all lie above its start by more has not settled yet


def small_reason(report: Report, norm: float, tol: float) -> str:
    """Say by which small number of a report a run has converged; empty if by none."""
    scale = tol if math.isnan(report.value) else tol * abs(report.value)
    if report.gap <= scale:
        return f"converged: the duality gap is below tol={tol:g}"
    if report.gradient * max(1.0, norm) <= scale:
        return f"converged: the gradient is below tol={tol:g}"
    return ""


def standstill_reason(
    report: Report, history: History, tol: float, patience: int, again: float
) -> str:
    """Say that values stand still; empty if they do not, or if that would mean nothing."""
    if report.moving or not gain_left(report, history, patience, again) <= tol * abs(
        history.best()
    ):
        return ""
    if again > 1.0:
        return f"converged: as many iterations again would gain less than tol={tol:g}"
    return f"converged: {patience} iterations gained less than tol={tol:g}"


def gain_left(report: Report, history: History, patience: int, again: float) -> float:
    """Return what is left to gain at the rate of the last iterations; NaN if that means nothing."""
    if math.isnan(report.value) or not math.isnan(report.gap):
        return math.nan  # where there is a gap, it alone tells
    if history.best() > history.start + _WORSE * abs(history.start):
        return math.nan  # steps that were too long at first get their time
    # As many iterations again at this rate: for a gap that shrinks as 1 / n, that is the gap.
    return (history.best(patience) - history.best()) * max(1.0, again)


@dataclass
class Outlook:
    """What is known last of a run: its value, and the number that is nearest to end it."""

    tol: float | None = None
    value: float = math.nan
    name: str = ""  # of the number
    size: float = math.nan  # relative to the value
    times: float = math.nan  # how many times too large it is, and whatever else must fall
    approach: Approach = field(default_factory=Approach)

    def hear(self, report: Report, norm: float, gain: float) -> None:
        """Take over what a step has told; what it did not tell stays as it was."""
        scale = abs(report.value)
        if not 0.0 < scale < math.inf:
            return
        self.value = report.value
        sizes = {"gap": report.gap, "gradient": report.gradient * max(1.0, norm), "gain": gain}
        known = {name: x / scale for name, x in sizes.items() if 0.0 <= x < math.inf}
        if report.moving and math.isnan(report.excess):
            known.pop("gain", None)
        if not known:
            return
        self.name = min(known, key=known.__getitem__)
        self.size = known[self.name]
        if self.tol:
            more = report.excess if self.name == "gain" and report.moving else 1.0
            self.times = max(self.size / self.tol, 1.0) * max(more, 1.0)

    def share(self) -> float:
        """Return which part of the way to the tolerance is done, on a log scale; NaN if unknown."""
        return math.nan if math.isnan(self.times) else self.approach.share(self.times)

    def words(self) -> str:
        """Say what is known, or nothing."""
        parts = [] if math.isnan(self.value) else [f"objective {self.value:#.6g}"]
        if self.name and self.tol:
            parts.append(f"{self.name} {brief(self.size)} (stops at {brief(self.tol)})")
        return "".join(f", {part}" for part in parts)
