"""What a benchmark found: rows with figures and targets, printed as a table, kept as JSON."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import platform
import time
from collections.abc import Iterable


@dataclasses.dataclass
class Row:
    """One figure. `target` is a ceiling, or with `at_least` a floor."""

    what: str
    figure: float
    unit: str = "s"
    target: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.target is None else self.figure / self.target

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.figure >= self.target if self.at_least else self.figure <= self.target

    def cells(self) -> list[str]:
        sign = "≥" if self.at_least else "≤"
        target = "" if self.target is None else f"{sign} {number(self.target)}"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        verdict = {None: "", True: "met", False: "MISSED"}[self.met]
        figure = f"{number(self.figure)} {self.unit}".strip()
        return [self.what, figure, target, ratio, verdict, self.note]


@dataclasses.dataclass
class Report:
    """The rows of one benchmark, remarks, and anything worth keeping in the JSON file."""

    name: str
    title: str
    rows: list[Row] = dataclasses.field(default_factory=list)
    remarks: list[str] = dataclasses.field(default_factory=list)
    details: dict[str, object] = dataclasses.field(default_factory=dict)

    def add(self, *args: object, **kwargs: object) -> None:
        self.rows.append(Row(*args, **kwargs))  # type: ignore[arg-type]

    def text(self) -> str:
        head = ["", "measured", "target", "ratio", "", ""]
        lines = table([head, *(row.cells() for row in self.rows)]) if self.rows else []
        return "\n".join(
            [f"\n{self.name}: {self.title}", *lines, *(f"  {r}" for r in self.remarks)]
        )

    def save(self, folder: pathlib.Path) -> None:
        content = dataclasses.asdict(self)
        for row, full in zip(content["rows"], self.rows, strict=True):
            row.update(ratio=full.ratio, met=full.met)
        content["machine"] = machine()
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (folder / f"{self.name}.json").write_text(text + "\n", encoding="utf-8")


def number(value: float) -> str:
    """Three digits, more only where they stand before the point."""
    if value == 0 or not abs(value) < float("inf"):
        return f"{value:g}"
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g} M"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(rows: Iterable[list[str]]) -> list[str]:
    """Lines with aligned columns, a rule under the first."""
    rows = [list(map(str, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  "
        + "  ".join(
            cell.ljust(w) if i in (0, len(row) - 1) else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return [lines[0], "  " + "-" * max(map(len, lines)), *lines[1:]]


def machine() -> dict[str, object]:
    """Where and when this ran, as far as it matters for timings."""
    import numba
    import numpy

    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "load": [round(x, 2) for x in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "numba": numba.__version__,
    }


def _processor() -> str:
    info = pathlib.Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
