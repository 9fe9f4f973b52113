"""The report on a rule model: rules, how far they are missed, atoms, and what pulls them."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from structlearn._src.display import page as blocks
from structlearn._src.display import svg
from structlearn._src.display.labeler_report import learning_curves
from structlearn._src.display.page import Html, Page
from structlearn._src.field.hinges import EQUAL, HINGE
from structlearn._src.rules.explain import explain

if TYPE_CHECKING:
    from structlearn._src.common.arrays import Floats, Ints
    from structlearn._src.estimators.fields.rule_model import RuleModel

_ATOMS = 5000  # listed on the page, those with the strongest pulls first
_EXPLAINED = 30  # atoms whose pulls are shown
_PULLS = 40  # of each of them


def write_rules(page: Page, model: RuleModel) -> None:
    """Fill a page about the inferred values of a rule model."""
    result = model.result_
    grounding = model.grounding_
    page.add("Result", blocks.facts(_facts(model)))
    if getattr(model, "history_", None) is not None:
        page.add("Learning curve", *map(blocks.figure, learning_curves(model.history_)))
    page.add("Rules", *_rules(model), note="Energy and distances are those at the inferred values.")
    forces = np.abs(result.multipliers)
    shown = _by_force(grounding.hinges, forces)[:_ATOMS]
    names = grounding.tables.names(shown)
    rows = [(name, float(result.y[i])) for name, i in zip(names, shown.tolist(), strict=True)]
    note = f"{len(rows):,} of {grounding.hinges.n_variables:,} targets, the most contested first."
    page.add("Atoms", blocks.table(("atom", "value"), rows, search=True), note=note)
    steps = {
        f"{name} = {result.y[i]:.3f}": _pulls(model, int(i))
        for name, i in zip(names[:_EXPLAINED], shown.tolist(), strict=False)
    }
    note = "What every grounding with an atom does to its value; at the optimum the pulls balance."
    page.add("Explanations", blocks.stepper(steps, "Atom"), note=note)


def _facts(model: RuleModel) -> dict[str, Any]:
    result = model.result_
    hinges = model.grounding_.hinges
    return {
        "inference": result.status,
        "energy": float(result.energy),
        "gap": float(result.gap),
        "violation of hard rules": float(result.violation),
        "groundings": int(hinges.n_forms),
        "targets": int(hinges.n_variables),
    }


def _rules(model: RuleModel) -> list[str]:
    grounding = model.grounding_
    hinges = grounding.hinges
    n = len(grounding.rules)
    distances = hinges.values(model.result_.y)
    soft = hinges.kinds == HINGE
    missed = np.where(hinges.kinds == EQUAL, np.abs(distances), np.maximum(distances, 0.0))
    energy = grounding.weights[hinges.groups] * missed**hinges.powers * soft
    total = np.bincount(hinges.groups, energy, n)
    mean = np.bincount(hinges.groups, missed, n) / np.maximum(grounding.counts, 1)
    texts = [rule.text or str(rule) for rule in grounding.rules]
    rows = [
        (
            i + 1,
            text,
            "hard" if rule.weight is None else float(rule.weight),
            int(grounding.counts[i]),
            float(mean[i]),
            float(total[i]),
        )
        for i, (text, rule) in enumerate(zip(texts, grounding.rules, strict=True))
    ]
    columns = ("rule", "text", "weight", "groundings", "mean distance", "energy")
    picture = svg.bars(texts, total.tolist(), svg.number)
    return [blocks.table(columns, rows), blocks.text("Energy by rule:"), blocks.figure(picture)]


def _by_force(hinges: Any, forces: Floats) -> Ints:
    """Sort targets by how strongly groundings pull at them."""
    sizes = np.diff(hinges.offsets)
    pulled = np.abs(hinges.coefficients) * np.repeat(forces, sizes)
    total = np.bincount(hinges.variables, pulled, hinges.n_variables)
    return np.argsort(-total, kind="stable")


def _pulls(model: RuleModel, atom: int) -> str:
    result = model.result_
    found = explain(model.grounding_, atom, result.y, result.multipliers)
    rows = [
        (
            "down" if pull.slope > 0 else "up" if pull.slope < 0 else "holds",
            abs(pull.slope),
            Html(f"<code>{escape(pull.grounding or pull.text)}</code>"),
            ", ".join(
                f"{name} = {value:.3g}"
                for name, value in [*((n, v) for n, _, v in pull.atoms), *pull.observed]
            ),
        )
        for pull in found[:_PULLS]
    ]
    return blocks.table(("pulls", "how much", "grounding", "values"), rows) or blocks.text(
        "Nothing pulls at this atom."
    )
