"""What pulls an atom: slopes against finite differences, and the wording."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError, AtomError
from structlearn._src.field.hinges import HINGE
from structlearn._src.rules.explain import explain, find_atom, read_atom
from structlearn._src.rules.ground import ground
from structlearn._src.rules.parse import parse
from structlearn._src.rules.tables import Tables

RULES = """
2: P(A) & Q(A) -> S(A, B) ^2
0.5: S(A, B) & S(B, A) -> Q(A)
1: !Q(A)
3: Q(A) + S(A, B) = 0.7 ^2
S(A, +B) <= 1.2 .
"""


@pytest.fixture(scope="module")
def grounding():
    rng = np.random.default_rng(0)
    names = ["a", "b", "c"]
    tables = Tables({"P": 1, "Q": 1, "S": 2}, n_jobs=1)
    tables.observe("P", [(n, rng.random()) for n in names])
    tables.target("Q", [(n,) for n in names])
    tables.target("S", [(m, n) for m in names for n in names])
    rules = parse(RULES.replace("-> S(A, B)", "-> S(A, A)"))
    return ground(rules, tables)


def pulls_at(grounding, atom, y):
    """Pulls by the forces of hinges that are not at their kink."""
    hinges = grounding.hinges
    above = np.maximum(hinges.values(y), 0)
    slopes = np.where(hinges.powers == 2, 2 * above, above > 0) * (hinges.kinds == HINGE)
    number = find_atom(grounding.tables, atom) if isinstance(atom, str) else atom
    return explain(grounding, number, y, grounding.weights[hinges.groups] * slopes)


def test_slopes_are_derivatives_of_the_energy(grounding):
    rng = np.random.default_rng(1)
    hinges, step = grounding.hinges, 1e-6
    for atom in range(hinges.n_variables):
        y = rng.random(hinges.n_variables)
        move = np.eye(hinges.n_variables)[atom] * step
        higher = hinges.energy(y + move, grounding.weights)
        lower = hinges.energy(y - move, grounding.weights)
        pulls = pulls_at(grounding, atom, y)
        assert sum(p.slope for p in pulls) == pytest.approx((higher - lower) / (2 * step), abs=1e-6)
        sizes = [abs(p.slope) for p in pulls]
        assert sizes == sorted(sizes, reverse=True)


def test_a_pull_says_what_is_in_it(grounding):
    y = np.full(grounding.hinges.n_variables, 0.5)
    pulls = [p for p in pulls_at(grounding, "Q('b')", y) if p.rule == 3]
    assert {tuple(name for name, _, _ in p.atoms) for p in pulls} == {
        ("Q('b')", f"S('b', '{n}')") for n in "abc"
    }
    pull = pulls[0]
    assert (pull.slope, pull.distance) == (pytest.approx(1.8), pytest.approx(0.3))
    assert (pull.constant, pull.hard) == (-0.7, False)
    assert pull.text == "3: Q(A) + S(A, B) = 0.7 ^2"
    assert str(pull).startswith("down 1.8  Q('b') + S('b', ")


def test_a_pull_names_the_observed_atoms_of_its_grounding(grounding):
    """The constant of a form is what the atoms that it names add up to."""
    y = np.full(grounding.hinges.n_variables, 0.9)
    y[3:] = 0.1
    (pull,) = [p for p in pulls_at(grounding, "Q('b')", y) if p.rule == 0]
    assert pull.grounding == "P('b') & Q('b') -> S('b', 'b')"
    ((name, value),) = pull.observed
    assert name == "P('b')"
    assert pull.constant == pytest.approx(value - 1.0)
    assert f"P('b') = {value:.3g}" in str(pull)


def test_equal_forms_are_told_apart():
    tables = Tables({"Knows": 2, "Smokes": 1, "Open": 1}, n_jobs=1)
    friends = ["ann", "bob", "7"]
    tables.observe("Knows", [(friend, "cyd") for friend in friends])
    tables.observe("Smokes", [(friend,) for friend in friends])
    tables.target("Smokes", [("cyd",)])
    ground_program = ground(parse("1: Knows(A, B) & Smokes(A) & (A != B) -> Smokes(B)"), tables)
    pulls = pulls_at(ground_program, "Smokes('cyd')", np.zeros(1))
    assert {pull.grounding for pull in pulls} == {
        f"Knows('{friend}', 'cyd') & Smokes('{friend}') & ('{friend}' != 'cyd') -> Smokes('cyd')"
        for friend in friends
    }
    assert all(len(pull.observed) == 2 for pull in pulls)


def forms_in(ground_program):
    """Every form as its terms, sorted, and its constant."""
    hinges = ground_program.hinges
    ends = zip(hinges.offsets[:-1].tolist(), hinges.offsets[1:].tolist(), strict=True)
    names = ground_program.tables.names(np.arange(hinges.n_variables))
    atoms, factors = hinges.variables.tolist(), hinges.coefficients.tolist()
    return [
        (sorted((names[v], a) for v, a in zip(atoms[i:j], factors[i:j], strict=True)), b)
        for (i, j), b in zip(ends, hinges.constants.tolist(), strict=True)
    ]


@pytest.mark.parametrize(
    "rule",
    [
        "1: Knows(A, B) & Open(A) -> Open(B)",
        "1: Open(A) / 2 + Open(B) <= 0.1",
        "1: Open(A) - Open(B) = 0.25",
        "Open(A) - Open(B) <= 0.25 .",
        "1: Open(A) + Open(A) + Open(B) - Open(B) <= 0.25",
        "1: Open(A) + 2 Smokes(A) + Smokes(B) >= 2 Open(B)",
    ],
)
def test_the_words_of_a_pull_ground_to_its_form(rule):
    """Forms of the same atoms differ in their coefficients: who pulls whom."""
    tables = Tables({"Knows": 2, "Smokes": 1, "Open": 1}, n_jobs=1)
    names = ["ann", "it's", "cyd"]
    tables.observe("Knows", [(m, n) for m in names for n in names])
    tables.observe("Smokes", [("ann", 0.5), ("it's", 0.25), ("cyd", 0.5)])
    tables.target("Open", [(n,) for n in names])
    whole = ground(parse(rule), tables)
    told = 0
    for y in np.random.default_rng(2).random((4, 3)):
        for pull in (p for atom in range(3) for p in pulls_at(whole, atom, y)):
            words = f"{pull.grounding} ." if pull.hard else f"1: {pull.grounding}"
            form = sorted((name, a) for name, a, _ in pull.atoms), pull.constant
            assert form in forms_in(ground(parse(words), tables))
            told += 1
    assert told


def test_every_pull_of_a_rule_without_sums_has_its_words(grounding):
    y = np.random.default_rng(4).random(grounding.hinges.n_variables)
    for atom in range(grounding.hinges.n_variables):
        for pull in pulls_at(grounding, atom, y):
            assert bool(pull.grounding) == (pull.rule != 4)
            mentioned = [name for name, _, _ in pull.atoms] + [name for name, _ in pull.observed]
            assert not pull.grounding or all(name in pull.grounding for name in mentioned)


def test_slopes_are_forces_times_coefficients(grounding):
    y = np.full(grounding.hinges.n_variables, 0.5)
    forces = np.arange(1.0, grounding.hinges.n_forms + 1)
    found = explain(grounding, 5, y, forces)
    entries = np.flatnonzero(grounding.hinges.variables == 5)
    forms = np.searchsorted(grounding.hinges.offsets, entries, "right") - 1
    expected = forces[forms] * grounding.hinges.coefficients[entries]
    assert sorted(p.slope for p in found) == pytest.approx(sorted(expected))


def test_constraints_are_listed_where_they_are_tight(grounding):
    loose = np.full(grounding.hinges.n_variables, 0.3)
    tight = np.full(grounding.hinges.n_variables, 0.4)
    assert not any(p.hard for p in pulls_at(grounding, "S(a, b)", loose))
    (pull,) = [p for p in pulls_at(grounding, "S(a, b)", tight) if p.hard]
    assert pull.slope == 0
    assert str(pull).startswith("holds  +1 S('a', 'a') [0.4]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Likes('bob', 'green tea')", ("Likes", ["bob", "green tea"])),
        ("Likes(bob, green tea)", ("Likes", ["bob", "green tea"])),
        (" P ( 7 ) ", ("P", ["7"])),
        ("R('a, b', \"it's\")", ("R", ["a, b", "it's"])),
        ("R('a, b, c', '(d)')", ("R", ["a, b, c", "(d)"])),
        (r"R('it\'s, so, it is', bob)", ("R", ["it's, so, it is", "bob"])),
    ],
)
def test_atoms_are_read_with_and_without_quotes(text, expected):
    assert read_atom(text) == expected


@pytest.mark.parametrize("text", ["", "P", "P(", "P('a') + Q('a')", "2 P('a')"])
def test_what_is_no_atom_is_refused(text):
    with pytest.raises(ArgumentError, match="is not an atom; write it as in"):
        read_atom(text)


def test_a_name_reads_back_as_the_atom():
    constants = ["a", "O'Brien", 'say "hi"', "a, b, c", "(x)", "tab\t", "\x01", "ä\\", " b", "7"]
    tables = Tables({"P": 1}, n_jobs=1)
    tables.target("P", [(each,) for each in constants])
    names = tables.names(range(len(constants)))
    assert [read_atom(name) for name in names] == [("P", [each]) for each in constants]


def test_unknown_atoms_are_refused(grounding):
    with pytest.raises(AtomError, match=r"Q\('z'\) is not listed"):
        find_atom(grounding.tables, "Q(z)")
    with pytest.raises(ArgumentError, match="12 is not an atom"):
        find_atom(grounding.tables, 12)
