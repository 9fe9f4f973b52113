"""The report on models with an unknown number of states or components."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from structlearn._src.display import page as blocks
from structlearn._src.display import svg
from structlearn._src.display.labeler_report import changed_parameters
from structlearn._src.display.page import Page
from structlearn._src.estimators.base import check_is_fitted

_SEQUENCES = 20  # whose states are drawn
_AGREE = 1.2  # R-hat above which chains disagree, as in the warning of `fit`


def write_sampled(page: Page, estimator: Any) -> None:
    """Fill a page about draws from a posterior."""
    check_is_fitted(estimator, "draws_")
    page.add("Model", blocks.facts(_facts(estimator)))
    found = estimator.diagnostics()
    rows = [
        (name, known["mean"], known["r_hat"], known["effective_size"], known["r_hat"] <= _AGREE)
        for name, known in found.items()
    ]
    columns = ("quantity", "mean", "R-hat", "effective size", "chains agree")
    page.add("Diagnostics", blocks.table(columns, rows), note=f"R-hat should be below {_AGREE}.")
    page.add("Traces", *_traces(estimator), note="What every sweep after burn-in told.")
    _write_states(page, estimator)


def _traces(estimator: Any) -> Iterator[str]:
    for name, draws in estimator.traces().items():
        lines = {f"chain {i + 1}": (np.arange(len(row)), row) for i, row in enumerate(draws)}
        yield blocks.figure(svg.curves(lines, "sweep", name.replace("_", " ")))


def _facts(estimator: Any) -> dict[str, Any]:
    known = {"states": "n_states_", "components": "n_components_", "features": "n_features_in_"}
    found = {title: getattr(estimator, name, None) for title, name in known.items()}
    told: dict[str, Any] = {"parameters": changed_parameters(estimator)}
    told |= {title: int(value) for title, value in found.items() if value is not None}
    told["sampling"] = (
        f"{len(estimator.draws_)} draws of {len(estimator.chains_)} chains; {estimator.status_}"
    )
    return told


def _write_states(page: Page, estimator: Any) -> None:
    """Draw states along the training sequences, and how they follow each other."""
    if not hasattr(estimator, "states_"):
        return
    names = [f"state {k}" for k in range(estimator.n_states_)]
    steps = {
        f"sequence {i}": blocks.figure(svg.timeline(states, names))
        for i, states in enumerate(estimator.states_[:_SEQUENCES])
    }
    note = "The most likely state of every step in training."
    page.add("States", svg.legend(names), blocks.stepper(steps, "Show"), note=note)
    looks: dict[str, Any] = {"across": "next", "down": "state"}
    picture = svg.heat(estimator.transitions_, names, names, lambda x: f"{x:.1%}", **looks)
    page.add("Transitions", blocks.figure(picture), note="Mean probabilities over all draws.")
