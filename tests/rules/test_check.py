"""Rules against the predicates they speak of."""

from __future__ import annotations

import pytest

from structlearn._src.common.errors import RuleError
from structlearn._src.rules.check import atoms_of, check
from structlearn._src.rules.parse import parse, parse_rule
from structlearn._src.rules.syntax import Atom, Clause, Literal, Predicate, Rule, Variable
from structlearn._src.rules.write import write

PREDICATES = [
    Predicate("P", 1),
    Predicate("R", 2),
    Predicate("Knows", 2),
    Predicate("Q", 1, open=True),
    Predicate("S", 2, open=True),
]

ACCEPTED = [
    "1: P(A) -> Q(A)",
    "1: !Q(A)",
    "1: Q(A) >= 1",
    "1: Q('a') >= 0.3",
    "1: P(A) & P(B) & (A != B) -> S(A, B) | S(B, A)",
    "1: P(A) & (A != 'a') -> Q(A)",
    "1: !P(A) & Q(A) -> Q(A)",
    "1: P(A) & Q('a') -> Q(A)",
    "1: P(A) -> P(A)",
    "1: Q(A) + Q(A) + P(A) <= 1",
    "S(+A, +B) = 1 .",
    "1: |B| * S(A, +B) <= P(A) {B: P(B) & !R(A, B)}",
    "1: S(A, +B) + Q(+C) <= |C| {C: P(C)} {B: R('x', B)}",
    "1: S(A, +B) + (A != 'x') <= 1 {B: B != A}",
]

REFUSED = [
    ("1: P(A) -> Zed(A)", 12, "'Zed' is not a known predicate"),
    ("1: Knws(A, B) -> Q(A)", 4, "'Knws' is not a known predicate; did you mean 'Knows'?"),
    ("1: P(A) -> Q(A, A)", 12, "Q(A, A) has 2 arguments, but Q takes 1"),
    ("1: S(A, +B) <= 1 {B: R(B)}", 22, "R(B) has 1 arguments, but R takes 2"),
    ("1: P('a') -> Q('a')", 1, "the rule has no variables"),
    ("1: Q(A)", 4, "for a prior write Q(A) >= 1"),
    ("1: P(A) -> Q(B)", 12, "the variable 'B' of Q(B) is in no positive atom of the body"),
    ("1: P(A) & !Q(B) -> Q(A)", 12, "the variable 'B' of Q(B)"),
    ("1: P(A) & (A != B) -> Q(A)", 12, "the variable 'B' of (A != B)"),
    ("1: P(A) & S(A, +B) -> Q(A)", 11, "sums in a logical rule"),
    ("Q(A) = Q(A) .", 8, "Q(A) is all there is: write it once"),
    ("1: S(A, +B) + S(+B, A) <= 1", 15, "the summed variable 'B' is used twice"),
    ("1: S(A, +B) + Q(B) <= 1", 4, "the summed variable 'B' is used twice"),
    ("1: S(+B, +B) <= 1", 4, "the summed variable 'B' is used twice"),
    ("1: |A| * Q(A) <= 1", 1, "|A| counts what is not summed"),
    ("1: Q(A) <= 1 {A: P(A)}", 15, "the filter is for 'A', which is not summed"),
    ("1: S(A, +B) <= 1 {B: P(B)} {B: P(A)}", 1, "'B' has 2 filters"),
    ("1: S(A, +B) <= 1 {B: Q(B)}", 22, "a filter needs closed predicates"),
    ("1: S(A, +B) <= 1 {B: R(B, C)}", 22, "but 'C' is neither"),
    ("1: S(+A, +B) <= 1 {B: R(A, B)}", 23, "but 'A' is neither"),
    ("1: S(A, +B) <= 1 {B: P(+B)}", 22, "but 'B' is neither"),
    ("1: S(A, +B) <= 1 {B: C != 'x'}", 22, "but 'C' is neither"),
    ("1: S(A, +B) + (A != B) <= 1", 16, "but 'B' is not"),
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted(text):
    rule = parse_rule(text)
    assert check((rule,), PREDICATES) == (rule,)


@pytest.mark.parametrize(("text", "column", "words"), REFUSED)
def test_refused_at_its_place(text, column, words):
    program = parse(f"1: P(A) -> Q(A)\n  {text}")
    with pytest.raises(RuleError) as caught:
        check(program, PREDICATES)
    assert words in caught.value.reason
    *_, shown, caret = str(caught.value).split("\n")
    assert (caught.value.line, caught.value.column) == (2, column + 2)
    assert shown == f"    {text}"
    assert caret.index("^") == column + 3


def test_predicates_are_spelled_as_declared():
    program = parse("1: p(A) & KNOWS(A, B) -> q(B)\n1: s(A, +B) <= 1 {B: !knows(B, A) & P(B)}")
    names = [
        [atom.predicate for atom in atoms_of(rule.body)] for rule in check(program, PREDICATES)
    ]
    assert names == [["P", "Knows", "Q"], ["S", "Knows", "P"]]


def test_a_rule_without_text_is_written_out():
    clause = Clause((Literal(Atom("P", (Variable("A"),)), negated=True), Literal(Atom("No", ()))))
    rule = Rule(clause, 1.0)
    with pytest.raises(RuleError, match="'No' is not a known predicate, in ") as caught:
        check((rule,), PREDICATES)
    assert write(rule) in str(caught.value)
