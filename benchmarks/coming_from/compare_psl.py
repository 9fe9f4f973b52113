"""One program by PSL, through pslpython, and by structlearn: values of the targets.

Run ``pip install pslpython`` (PSL itself needs Java), then
``python benchmarks/coming_from/compare_psl.py``. PSL stops where its ADMM steps become small, so
its values are near the minimum; ours come with a certified gap.
"""

from __future__ import annotations

import numpy as np
from comparison import Figure, conclude
from pslpython.model import Model
from pslpython.partition import Partition
from pslpython.predicate import Predicate
from pslpython.rule import Rule

from structlearn import RuleModel

RULES = [
    "20: Lived(P1, L) & Lived(P2, L) & (P1 != P2) -> Knows(P1, P2) ^2",
    "5: Lived(P1, L1) & Lived(P2, L2) & (P1 != P2) & (L1 != L2) -> !Knows(P1, P2) ^2",
    "10: Likes(P1, X) & Likes(P2, X) & (P1 != P2) -> Knows(P1, P2) ^2",
    "5: Knows(P1, P2) & Knows(P2, P3) & (P1 != P3) -> Knows(P1, P3) ^2",
    "1: !Knows(P1, P2) ^2",
    "Knows(P1, P2) = Knows(P2, P1) .",
]
PEOPLE = ["ann", "bob", "cyd", "dan", "eve"]
LIVED = [("ann", "york"), ("bob", "york"), ("cyd", "oslo"), ("dan", "oslo"), ("eve", "york")]
LIKES = [("ann", "tea", 0.9), ("cyd", "tea", 0.8), ("dan", "golf", 1.0), ("eve", "golf", 0.4)]
KNOWS = [(a, b) for a in PEOPLE for b in PEOPLE if a != b]


def theirs() -> dict[tuple[str, str], float]:
    model = Model("acquaintances")
    for name in ("Lived", "Likes", "Knows"):
        model.add_predicate(Predicate(name, size=2))
    for rule in RULES:
        model.add_rule(Rule(rule))
    for name, rows in (("Lived", LIVED), ("Likes", LIKES)):
        model.get_predicate(name).add_data(Partition.OBSERVATIONS, [list(row) for row in rows])
    model.get_predicate("Knows").add_data(Partition.TARGETS, [list(row) for row in KNOWS])
    found = model.infer(psl_options={"runtime.log.level": "ERROR"})
    rows = next(iter(found.values())).values.tolist()
    return {(str(a), str(b)): float(value) for a, b, value in rows}


def ours() -> RuleModel:
    model = RuleModel("\n".join(RULES))
    model.observe(Lived=LIVED, Likes=LIKES)
    return model.target(Knows=KNOWS)


def compare() -> list[Figure]:
    there = theirs()
    model = ours()
    frame = model.predict(frame="dict")
    value, first, second = frame.pop("value"), *frame.values()
    here = dict(zip(zip(first, second, strict=True), value, strict=True))
    gaps = [abs(there[pair] - here[pair]) for pair in KNOWS]
    print(f"energy here {model.energy_:.6f}, certified to {model.gap_:.1e}")
    return [
        Figure("Knows(ann, bob)", there["ann", "bob"], here["ann", "bob"], 0.01),
        Figure("Knows(ann, cyd)", there["ann", "cyd"], here["ann", "cyd"], 0.01),
        Figure("20 values, largest gap", 0.0, float(np.max(gaps)), 0.01),
    ]


if __name__ == "__main__":
    conclude("pslpython", compare())
