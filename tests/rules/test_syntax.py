"""What is written reads back as the same."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from structlearn._src.rules import syntax
from structlearn._src.rules.linear import Unfit, operate
from structlearn._src.rules.parse import parse, parse_rule

names = st.sampled_from(["A", "B", "X1", "x_y", "E", "e5", "not"])
plain = st.one_of(
    st.builds(syntax.Variable, names), st.builds(syntax.Constant, st.text(max_size=5))
)
terms = st.one_of(plain, st.builds(syntax.SumVariable, names))
predicates = st.sampled_from(["P", "Q", "Knows", "_r", "S$1", "E"])


def atoms(arguments):
    many = st.lists(arguments, min_size=1, max_size=3).map(tuple)
    return st.builds(syntax.Atom, predicates, many)


comparisons = st.builds(syntax.Comparison, st.sampled_from(["==", "!=", "%"]), plain, plain)
literals = st.builds(syntax.Literal, st.one_of(atoms(plain), comparisons), st.booleans())


@st.composite
def clauses(draw):
    parts = draw(st.lists(literals, min_size=1, max_size=5, unique=True))
    return syntax.Clause(tuple(parts), draw(st.integers(0, len(parts))))


def operated(parts):
    try:
        return operate(*parts)
    except Unfit:
        return syntax.Count("A")


floats = st.floats(-1e9, 1e9, allow_subnormal=False)
signs = st.sampled_from(["+", "-", "*", "/", "min", "max"])
coefficients = st.recursive(
    st.one_of(st.builds(syntax.Number, floats), st.builds(syntax.Count, names)),
    lambda inner: st.tuples(signs, inner, inner).map(operated),
    max_leaves=5,
)
conditions = st.lists(literals, min_size=1, max_size=3).map(tuple)


@st.composite
def linears(draw):
    summands = st.builds(syntax.Summand, coefficients, atoms(terms))
    parts = draw(st.lists(summands, min_size=1, max_size=4))
    constant = draw(st.one_of(st.none(), coefficients.filter(lambda c: c != syntax.Number(0.0))))
    if constant is not None:
        parts.append(syntax.Summand(constant))
    filters = draw(st.lists(st.builds(syntax.Filter, names, conditions), max_size=2))
    tests = draw(st.lists(comparisons, max_size=1))
    operator = draw(st.sampled_from(["<=", ">=", "="]))
    return syntax.Linear(tuple(parts), operator, tuple(filters), tuple(tests))


@st.composite
def rules(draw):
    body = draw(st.one_of(clauses(), linears()))
    weight = draw(st.one_of(st.none(), floats))
    return syntax.Rule(body, weight, weight is not None and draw(st.booleans()))


@settings(max_examples=150, deadline=None)
@given(rules())
def test_a_rule_reads_back(rule):
    text = str(rule)
    again = parse_rule(text)
    assert again == rule
    assert str(again) == text


@settings(max_examples=40, deadline=None)
@given(st.lists(rules(), min_size=1, max_size=4).map(tuple))
def test_a_program_reads_back(program):
    assert parse("\n".join(map(str, program))) == program


@settings(max_examples=40, deadline=None)
@given(rules())
def test_both_readings_of_what_is_written_agree(rule):
    # Warnings are errors here, so this also says that none is given.
    assert parse_rule(str(rule), greedy=True) == rule


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("20.0:Q(A)<<P(A)&(A!=B)^2", "20: P(A) & (A != B) -> Q(A) ^2"),
        ("!P(A) || Q(A).", "!P(A) | Q(A) ."),
        ("1: P(A) -> S(A)|!T(A)", "1: P(A) -> S(A) | !T(A)"),
        ("1e-3: Q(A) >= P(A) - 0.5", "0.001: Q(A) - P(A) >= -0.5"),
        ("-1 * Q(A) <= -0.5 .", "(-1) * Q(A) <= -0.5 ."),
        ("1: S(A,+B)/|B| <= 1 {B:!P(B)}", "1: 1 / |B| * S(A, +B) <= 1 {B: !P(B)}"),
        (
            "1: (|B|-1)*S(A,+B) <= 2*(|B|+1)",
            "1: (|B| - 1) * S(A, +B) + (-1 * (2 * (|B| + 1))) <= 0",
        ),
        ('1: R(A, "it\'s\\n") -> Q(A)', "1: R(A, 'it\\'s\\n') -> Q(A)"),
    ],
)
def test_how_it_looks(text, written):
    assert str(parse_rule(text)) == written


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_keep_their_bits(value):
    text = str(syntax.Number(value))
    assert float(text) == value
    assert "+" not in text


def test_sums_are_told_from_plain_atoms():
    variable = syntax.Variable("A")
    summed = syntax.Atom("P", (variable, syntax.SumVariable("B")))
    assert summed.summed == ["B"]
    assert summed.names == ["A", "B"]
    assert syntax.Atom("P", (variable, variable)).names == ["A"]


def test_parts_of_a_rule_are_replaced_wherever_they_stand():
    rule = parse_rule("1: R(A, +B) + (A != 'x') <= P(A) {B: R(A, B) & B != 'x'}")
    names = {syntax.Variable("A"): syntax.Constant("y")}
    text = "1: R('y', +B) - P('y') + ('y' != 'x') <= 0 {B: R('y', B) & (B != 'x')}"
    assert str(syntax.rewritten(rule, names.get)) == text
