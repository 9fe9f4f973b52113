"""Who trusts whom, by rules about traits that nobody has written down."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from papers.arrays import Floats
from papers.pictures import PALETTE, new_figure
from papers.tour.base import Stop, prose, table
from structlearn import RuleModel

_PEOPLE, _ACQUAINTED, _HONEST = 60, 0.3, 0.95
_LEARNING: dict[str, Any] = {"rule": "adagrad", "step_size": 0.3, "max_iter": 60, "tol": None}
_TRAITS, _NOT_HERE = 4, 3  # rules that hold in this network, and rules that do not
_RULES = """
    1: Knows(A, B) & Worthy(B) -> Trusts(A, B) ^2
    1: Knows(A, B) & !Worthy(B) -> !Trusts(A, B) ^2
    1: Knows(A, B) & Trusting(A) -> Trusts(A, B) ^2
    1: Knows(A, B) & !Trusting(A) -> !Trusts(A, B) ^2
    1: Knows(A, B) & Knows(B, A) & Trusts(A, B) -> Trusts(B, A) ^2
    1: Knows(A, B) & Knows(B, C) & Knows(A, C) & Trusts(A, B) & Trusts(B, C) -> Trusts(A, C) ^2
    1: Knows(A, B) & Knows(B, C) & Knows(A, C) & !Trusts(A, B) & !Trusts(B, C) -> Trusts(A, C) ^2
    0.1: Worthy(A) = 0.5 ^2
    0.1: Trusting(A) = 0.5 ^2
"""

Rows = list[tuple[Any, ...]]


class _Network(NamedTuple):
    worthy: Floats
    seen: Rows  # ratings that are known
    asked: Rows  # ratings to practise on
    new: Rows  # ratings to be found at the end


HEADING = "Rules about what nobody has written down"


def run(rng: np.random.Generator) -> Stop:
    """Make a network, learn the weights of rules, and ask about new ratings."""
    net = _meet(rng)
    model = RuleModel(_RULES)
    known = [*net.seen, *net.asked]
    before = _ask(model, known, net.new).score(predicate="Trusts")
    _ask(model, net.seen, net.asked).fit(latent=["Worthy", "Trusting"], **_LEARNING)
    weights = model.weights_
    after = _ask(model, known, net.new).score(predicate="Trusts")
    found = model.predict("Worthy", frame="dict")["value"]
    alike = float(np.corrcoef(net.worthy, found)[0, 1])
    lines = [
        *prose(
            f"{_PEOPLE} people have rated {len(known)} of those whom they know. Rules speak about "
            f"who is trustworthy and who is trusting, which nobody has written down, and about "
            f"friends of friends. Paired-dual learning finds the weights although the traits are "
            f"latent. How often is a trusted one ranked above one who is not, among "
            f"{len(net.new)} new ratings?"
        ),
        "",
        *table(["AUROC"], {"all rules alike": [before], "weights learnt": [after]}),
        "",
        *prose(
            f"Rules about traits weigh {weights[:_TRAITS].mean():.2f} on average now, those about "
            f"friends of friends {weights[_TRAITS : _TRAITS + _NOT_HERE].mean():.2f}. The latent "
            f"trait correlates with the truth by {alike:.2f}. The values are proven to be within "
            f"{model.gap_:.0e} of the least energy, {model.energy_:.3f}."
        ),
    ]
    pictures = {"trust": lambda: _draw(net.worthy, found, before, after)}
    return Stop(HEADING, lines, pictures)


def _meet(rng: np.random.Generator) -> _Network:
    """Ratings are high where the rated one is trustworthy, and some are not honest."""
    worthy = rng.beta(0.5, 0.5, _PEOPLE)
    trusting = rng.random(_PEOPLE)
    meets = (rng.random((_PEOPLE, _PEOPLE)) < _ACQUAINTED) & ~np.eye(_PEOPLE, dtype=bool)
    pairs = np.argwhere(meets)
    high = 0.8 * worthy[pairs[:, 1]] + 0.2 * trusting[pairs[:, 0]] > 0.5
    ratings = np.where(rng.random(len(pairs)) < _HONEST, high, ~high)
    rows = [(a, b, float(r)) for (a, b), r in zip(pairs.tolist(), ratings, strict=True)]
    quarter = rng.permutation(len(rows)) % 4
    chosen = quarter == 0, quarter == 1, quarter > 1
    new, asked, seen = ([rows[i] for i in np.flatnonzero(which)] for which in chosen)
    return _Network(worthy, seen, asked, new)


def _ask(model: RuleModel, known: Rows, asked: Rows) -> RuleModel:
    """Observe what is known, and ask about the rest; the weights stay."""
    everyone = [(i,) for i in range(_PEOPLE)]
    model.clear().observe(Knows=[row[:2] for row in (*known, *asked)], Trusts=known)
    model.target(Trusts=[row[:2] for row in asked], Worthy=everyone, Trusting=everyone)
    return model.truth(Trusts=asked)


def _draw(worthy: Floats, found: Floats, before: float, after: float) -> Any:
    figure = new_figure(10.0, 4.0)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.6))
    bars = left.bar(["all rules alike", "weights learnt"], [before, after], 0.6)
    for bar, colour in zip(bars, (PALETTE[4], PALETTE[0]), strict=True):
        bar.set_color(colour)
    left.bar_label(bars, [f"{x:.1%}" for x in (before, after)], padding=2)
    left.set(ylim=(0.5, 1.05), yticks=[], title="New ratings ranked right (AUROC)")
    left.set_xlabel("bars begin at 50 %, which is chance", fontsize=9, color="0.35")
    left.spines[["top", "right", "left"]].set_visible(False)
    right.scatter(worthy, found, color=PALETTE[1])
    alike = np.corrcoef(worthy, found)[0, 1]
    right.set(xlabel="trustworthiness in truth, never shown", ylabel="value of the latent atom")
    right.set_title(f"The latent trait is found: correlation {alike:.2f}")
    right.spines[["top", "right"]].set_visible(False)
    return figure
