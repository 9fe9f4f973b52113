"""The report on an answer about a factor graph."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Floats
from structlearn._src.display import page as blocks
from structlearn._src.display import svg
from structlearn._src.display.page import Page
from structlearn._src.inference.base import Answer

_LISTED = 5000  # variables in the table
_DRAWN = 60  # variables whose probabilities are drawn, the least certain first


def write_answer(page: Page, answer: Answer) -> None:
    """Fill a page about an answer."""
    page.add("Answer", blocks.facts(_facts(answer)), blocks.figure(_bounds(answer)))
    note = "The best assignment so far, and the bound that none exceeds, as candidates are tried."
    page.add("Bounds over time", blocks.figure(_over_time(answer)), note=note)
    if answer.assignment is not None:
        rows = [(str(name), state) for name, state in islice(answer.assignment.items(), _LISTED)]
        page.add("Assignment", blocks.table(("variable", "state"), rows, search=True))
    if answer.marginals is not None:
        _write_marginals(page, answer)


def _facts(answer: Answer) -> dict[str, Any]:
    return {
        "query": str(answer.query),
        "method": answer.method,
        "value": float(answer.value),
        "bounds": f"{answer.lower:.6g} to {answer.upper:.6g}",
        "exact": answer.exact,
        "converged": answer.converged,
        "status": answer.status,
    }


def _bounds(answer: Answer) -> str:
    """Draw the value between its bounds; an exact answer needs no picture."""
    known = {"lower bound": answer.lower, "value": answer.value, "upper bound": answer.upper}
    finite = {name: float(x) for name, x in known.items() if math.isfinite(x)}
    if answer.exact or len(finite) < 2:
        return ""
    return svg.bars(list(finite), list(finite.values()), lambda x: f"{x:.6g}")


def _over_time(answer: Answer) -> str:
    """Draw how both bounds came closer; nothing where only the last ones are known."""
    known = answer.bounds
    if known is None or len(known) < 2:
        return ""
    lines = {"upper bound": _steps(known[:, 0], known[:, 2]), "best value": _steps(*known.T[:2])}
    return svg.curves(lines, "seconds", "value")


def _steps(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """What is known holds until the next is."""
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]


def _write_marginals(page: Page, answer: Answer) -> None:
    assert answer.marginals is not None
    known = {str(name): p for name, p in islice(answer.marginals.items(), _LISTED)}
    width = max(map(len, known.values()), default=0)
    padded = {name: np.pad(p, (0, width - len(p))) for name, p in known.items()}
    unsure = sorted(known, key=lambda name: float(known[name].max()))[:_DRAWN]
    states = [f"state {k}" for k in range(width)]
    picture = svg.stacked([padded[name] for name in unsure], states, unsure)
    rows = [(name, int(p.argmax()), float(p.max())) for name, p in known.items()]
    columns = ("variable", "best state", "probability")
    note = (
        f"The picture has the {len(unsure)} least certain of {len(answer.marginals):,} variables."
    )
    parts = (svg.legend(states), blocks.figure(picture), blocks.table(columns, rows, search=True))
    page.add("Marginals", *parts, note=note)
