"""Grounding: against a slow grounder, PSL's own ground rules, and by hand."""

from __future__ import annotations

import itertools
import json
import random
import warnings
from collections import Counter

import naive_ground
import numpy as np
import pytest

from structlearn._src.common.errors import AtomError, GreedyCoefficientWarning, RuleError
from structlearn._src.common.memory import Store
from structlearn._src.field.hinges import AT_MOST, DTYPES, EQUAL, HINGE
from structlearn._src.rules import syntax
from structlearn._src.rules.ground import broken, estimate, ground
from structlearn._src.rules.parse import check, parse
from structlearn._src.rules.program import read_program
from structlearn._src.rules.tables import Tables

ARITIES = {"P": 1, "R": 2, "Q": 1, "S": 2, "T": 2}
CLOSED = ("P", "R")


def tables_of(atoms, arities=ARITIES, n_jobs=1):
    tables = Tables(arities, n_jobs=n_jobs)
    for name, rows in atoms.items():
        tables.observe(name, [(*key, v) for key, v in rows.items() if v is not None])
        tables.target(name, [key for key, v in rows.items() if v is None])
    return tables


def forms_of(grounding):
    """All forms as the slow grounder counts them."""
    hinges, found = grounding.hinges, Counter()
    names = {}
    for name in grounding.tables.relations:
        atoms, columns = grounding.tables.arguments(name)
        keys = zip(*(map(str, column) for column in columns), strict=True)
        names.update({int(i): (name, key) for i, key in zip(atoms, keys, strict=True)})
    for i in range(hinges.n_forms):
        entries = slice(hinges.offsets[i], hinges.offsets[i + 1])
        pairs = zip(hinges.variables[entries], hinges.coefficients[entries], strict=True)
        terms = tuple(sorted((names[int(v)], round(float(a), 6)) for v, a in pairs))
        constant = round(float(hinges.constants[i]), 6) + 0.0
        found[int(hinges.groups[i]), bool(hinges.kinds[i] == EQUAL), constant, terms] += 1
    return found


# ---- random programs --------------------------------------------------------------------------

NAMES = ("a", "10", "7")
VALUES = (0.0, 0.25, 0.6, 1.0)
NUMBERS = (-2.0, -1.0, 0.0, 0.5, 1.0, 1.0, 3.0)


def _world(rng):
    """Values of all atoms; where `gaps` is false, rules cannot reach any that is not listed."""
    gaps = rng.random() < 0.4
    kinds = {"P": (1.0, *VALUES), "R": (1.0,) * 8 + VALUES, "Q": (None, None, *VALUES)}
    kinds |= {"S": (None,) * 3 + VALUES, "T": (None,)}
    atoms = {}
    for name, kind in kinds.items():
        keys = list(itertools.product(NAMES, repeat=ARITIES[name]))
        listed = 0.7 if gaps or name in CLOSED else 1.1
        rows = {key: rng.choice(kind) for key in keys if rng.random() < listed}
        atoms[name] = rows or {keys[0]: 1.0}
    return atoms


def _term(rng):
    name = rng.choice("AAABBC")
    return syntax.Variable(name) if rng.random() < 0.9 else syntax.Constant(rng.choice(NAMES))


def _atom(rng, names, term):
    name = rng.choice(names)
    return syntax.Atom(name, tuple(term(rng) for _ in range(ARITIES[name])))


def _clause(rng):
    body = [_atom(rng, "PRQSSST", _term) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
    bound = [t for atom in body for t in atom.terms if isinstance(t, syntax.Variable)]

    def inner(rng):
        return rng.choice([*bound, *bound, syntax.Constant(rng.choice(NAMES))])

    head = [_atom(rng, "PRQSSST", inner) for _ in range(rng.choice((0, 1, 1, 2)))]
    literals = [syntax.Literal(atom, True) for atom in body] + [
        syntax.Literal(atom) for atom in head
    ]
    if rng.random() < 0.4:
        operator = rng.choice(("==", "!=", "!=", "%"))
        comparison = syntax.Comparison(operator, inner(rng), inner(rng))
        literals.append(syntax.Literal(comparison, rng.random() < 0.7))
    return syntax.Rule(syntax.Clause(tuple(literals)), 1.0, text="a clause")


def _linear(rng):
    atoms = [_atom(rng, "PRQSSST", _term) for _ in range(rng.choice((1, 2, 2, 3)))]
    atoms = [_summing(atom, i) if rng.random() < 0.4 else atom for i, atom in enumerate(atoms)]
    names = [t.name for atom in atoms for t in atom.terms if isinstance(t, syntax.SumVariable)]
    summands = [syntax.Summand(_coefficient(rng, names), atom) for atom in (*atoms, None)]
    plain = [t for atom in atoms for t in atom.terms if isinstance(t, syntax.Variable)]
    filters = [
        syntax.Filter(name, _condition(rng, [syntax.Variable(name), syntax.Variable(name), *plain]))
        for name in names
        if rng.random() < 0.5
    ]
    operator, weight = rng.choice(("<=", ">=", "=")), rng.choice((1.0, None))
    tests = [_comparison(rng, plain)] if plain and rng.random() < 0.3 else []
    body = syntax.Linear(tuple(summands), operator, tuple(filters), tuple(tests))
    return syntax.Rule(body, weight, text="a sum")


def _comparison(rng, terms):
    return syntax.Comparison(
        rng.choice(("==", "!=", "%")), rng.choice(terms), _constant(rng, terms)
    )


def _constant(rng, terms):
    return rng.choice((*terms, syntax.Constant(rng.choice(NAMES))))


def _summing(atom, i):
    """Sum over the last argument, or over all."""
    first = 0 if i == 2 else len(atom.terms) - 1
    summed = [syntax.SumVariable(f"X{i}{k}") for k in range(first, len(atom.terms))]
    return syntax.Atom(atom.predicate, (*atom.terms[:first], *summed))


def _coefficient(rng, names):
    number = syntax.Number(rng.choice(NUMBERS))
    if not names or rng.random() < 0.6:
        return number
    count = syntax.Count(rng.choice(names))
    at_least_one = syntax.Operation("max", syntax.Number(1.0), count)
    return rng.choice(
        (count, syntax.Operation("/", number, at_least_one), syntax.Operation("-", count, number))
    )


def _condition(rng, terms):
    parts = []
    for _ in range(rng.choice((1, 1, 2))):
        atom = _atom(rng, CLOSED, lambda rng: rng.choice(terms))
        if rng.random() < 0.3:
            atom = _comparison(rng, terms)
        parts.append(syntax.Literal(atom, negated=rng.random() > 0.7))
    return tuple(parts)


FEW_ROWS = Store(6400)  # four rows at a time


@pytest.mark.parametrize("make", [_clause, _linear])
def test_forms_are_those_of_the_slow_grounder(make):
    filled = 0
    for seed in range(6):
        rng = random.Random(seed)
        atoms = _world(rng)
        tables, world = tables_of(atoms), naive_ground.World(atoms)
        for _ in range(12):  # making tables takes longer than grounding
            filled += _agrees(make(rng), tables, world)
    assert filled > 25


def _agrees(rule, tables, world):
    """Compare one rule, and say whether it has any forms."""
    try:
        expected = naive_ground.ground((rule,), world)
    except naive_ground.Missing:
        with pytest.raises(AtomError, match="neither observed nor a target"):
            ground((rule,), tables)
        return False
    assert forms_of(ground((rule,), tables)) == expected, rule
    assert forms_of(ground((rule,), tables, FEW_ROWS)) == expected, rule
    (count,) = estimate((rule,), tables)
    total = sum(expected.values())
    assert count == total if isinstance(rule.body, syntax.Clause) else count >= total
    return total > 0


def test_forms_in_files_are_the_same_arrays():
    atoms = {
        "Edge": {(str(i), str((i * 7 + k) % 60)): 1.0 for i in range(60) for k in range(4)},
        "Trust": {(str(i), str((i * 7 + k) % 60)): None for i in range(60) for k in range(4)},
    }
    tables = tables_of(atoms, {"Edge": 2, "Trust": 2})
    rules = parse("1: Edge(A, B) & Trust(A, B) & Edge(B, C) -> Trust(B, C) ^2\nTrust(+A, B) <= 2 .")
    whole = ground(rules, tables).hinges
    pieces = ground(rules, tables, FEW_ROWS).hinges
    assert pieces.store is FEW_ROWS
    assert whole.store is None
    assert whole.n_forms > 300
    for name in DTYPES:
        np.testing.assert_array_equal(getattr(pieces, name), getattr(whole, name), err_msg=name)
    left = tables.connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert ("fetched",) not in left


# ---- by hand ------------------------------------------------------------------------------------

SMALL = {
    "P": {("a",): 1.0, ("b",): 0.5, ("c",): 0.0},
    "R": {("a", "b"): 1.0, ("b", "c"): 0.3},
    "Q": {("a",): None, ("b",): None, ("c",): None},
    "S": {("a", "b"): None, ("a", "c"): None, ("b", "c"): None, ("b", "a"): None},
}
SMALL_ARITIES = {"P": 1, "R": 2, "Q": 1, "S": 2}


@pytest.fixture(scope="module")
def small():
    return tables_of(SMALL, SMALL_ARITIES)


def test_a_clause_is_its_distance_to_satisfaction(small):
    grounding = ground(parse("2: P(A) & !Q(A) -> S(A, 'c') ^2"), small)
    hinges = grounding.hinges
    assert hinges.constants.tolist() == [1.0, 0.5]
    assert hinges.coefficients.tolist() == [-1, -1, -1, -1]
    assert small.names(hinges.variables) == ["Q('a')", "S('a', 'c')", "Q('b')", "S('b', 'c')"]
    assert hinges.powers.tolist() == [2, 2]
    assert (grounding.weights.tolist(), grounding.hard.tolist()) == ([2.0], [False])


def test_kinds_powers_and_groups(small):
    grounding = ground(
        parse("1: Q(A) = 0.5 ^2\nQ(A) = 0.5 .\nQ(A) >= P(A) .\n3: !S(A, B)\nP(A) -> Q(A) ."), small
    )
    hinges = grounding.hinges
    assert hinges.kinds[hinges.groups == 0].tolist() == [HINGE] * 6
    assert hinges.kinds[hinges.groups == 1].tolist() == [EQUAL] * 3
    assert hinges.kinds[hinges.groups == 2].tolist() == [AT_MOST] * 2
    assert hinges.powers[hinges.groups == 0].tolist() == [2] * 6
    assert hinges.powers[hinges.groups == 3].tolist() == [1] * 4
    assert grounding.counts.tolist() == [6, 3, 2, 4, 2]
    assert grounding.hard.tolist() == [False, True, True, False, True]
    assert grounding.weights.tolist() == [1.0, 0.0, 0.0, 3.0, 0.0]
    assert (hinges.n_variables, hinges.n_groups) == (7, 5)


def test_an_atom_that_two_literals_reach_counts_twice(small):
    hinges = ground(parse("1: Q(A) & Q(B) & (A == B) -> P(A)"), small).hinges
    assert hinges.coefficients.tolist() == [2.0, 2.0]
    assert hinges.constants.tolist() == [-1.5, -1.0]


def test_a_literal_that_is_written_twice_counts_once(small):
    twice = ground(parse("1: P(A) -> Q(A) | !P(A)"), small)
    assert forms_of(twice) == forms_of(ground(parse("1: P(A) -> Q(A)"), small))


def test_an_atom_on_both_sides_of_a_sum_cancels(small):
    hinges = ground(parse("1: Q(A) = Q(B)"), small).hinges
    assert np.diff(hinges.offsets).tolist() == [2] * 12


def test_rules_and_atoms_without_each_other(small):
    grounding = ground(parse("1: R(A, 'zz') -> Q(A)\n1: R(A, B) -> Q(A)\n1: P(A) <= 1"), small)
    assert grounding.silent == [0, 2]
    assert small.names(grounding.unreached)[:2] == ["Q('c')", "S('a', 'b')"]


def test_an_atom_that_is_not_listed_is_named(small):
    with pytest.raises(AtomError, match=r"reaches S\('a', 'a'\), which is neither"):
        ground(parse("1: P(A) & P(B) -> S(A, B)"), small)


def test_an_atom_below_a_body_of_zero_need_not_be_listed(small):
    rules = parse("1: P(A) & P(B) & (A != B) -> S(A, B)")
    assert ground(rules, small).counts.tolist() == [2]


def test_a_filter_needs_observed_values(small):
    with pytest.raises(RuleError, match=r"Q has targets, so .* a filter needs closed predicates"):
        ground(parse("1: S(A, +B) <= 1 {B: Q(B)}"), small)


def test_a_count_of_nothing_cannot_divide(small):
    with pytest.raises(RuleError, match=r"divides by 0 where a sum has no atoms: write @Max"):
        ground(parse("1: S(A, +B) + Q(A) + 1 / |B| >= 5 {B: R(B, A)}"), small)


def test_broken_counts_what_observed_atoms_break():
    atoms = {"P": {("a",): 1.0, ("b",): 0.5}, "R": {("a", "b"): 1.0, ("a", "a"): 0.2}, **_free()}
    tables = tables_of(atoms, SMALL_ARITIES)
    rules = parse(
        "P(A) & R(A, B) -> P(B) .\nP(A) <= 0.7 .\nR(A, +B) = 1 .\n1: P(A) <= 0\nP(A) >= 0 ."
    )
    assert broken(rules, tables) == [1, 1, 1, 0, 0]
    assert ground(rules, tables).hinges.n_forms == 0


def _free():
    return {"Q": {("a",): None}, "S": {("a", "b"): None}}


def test_pairs_are_ordered_by_letters_as_in_psl():
    names = ["9", "10", "B", "a"]
    pairs = {(x, y): 1.0 for x in names for y in names}
    atoms = {"P": {("a",): 1.0}, "R": pairs, "Q": {(n,): None for n in names}}
    tables = tables_of(atoms, {"P": 1, "R": 2, "Q": 1})
    grounding = ground(parse("1: R(A, B) & (A % B) -> Q(A)"), tables)
    found = Counter(tables.names(grounding.hinges.variables))
    assert found == {"Q('10')": 3, "Q('9')": 2, "Q('B')": 1}


@pytest.mark.parametrize(
    ("comparison", "count"),
    [
        ("A % 'm'", 4),
        ("A % 'Z'", 2),
        ("'m' % A", 0),
        ("A != 'x'", 4),
        ("'x' == 'y'", 0),
        ("'x' != 'y'", 4),
    ],
)
def test_constants_that_no_atom_has_are_compared_as_others(comparison, count):
    tables = Tables({"P": 1, "Q": 1}, n_jobs=1)
    tables.observe("P", [("a",), ("b",), (7,), (12,)])
    tables.target("Q", [("a",), ("b",), (7,), (12,)])
    assert estimate(parse(f"1: P(A) & ({comparison}) -> Q(A)"), tables) == [count]
    with pytest.raises(AtomError, match=r"reaches Q\('z'\)"):
        ground(parse("1: P(A) -> Q('z')"), tables)


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(5)
    edges = {(str(i), str(j)) for i, j in rng.integers(0, 400, (9000, 2))}
    atoms = {
        "R": dict.fromkeys(sorted(edges), 1.0),
        "S": {e: None if rng.random() < 0.4 else float(rng.random()) for e in sorted(edges)},
    }
    rules = parse(
        "1: R(A, B) & R(B, C) & S(A, B) & S(B, C) & R(A, C) -> S(A, C)\n1: S(A, +B) / |B| = 0.3"
    )
    one, two = (
        ground(rules, tables_of(atoms, {"R": 2, "S": 2}, n_jobs)).hinges for n_jobs in (1, 2)
    )
    assert one.n_forms > 5000
    for name in ("offsets", "variables", "coefficients", "constants", "groups"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


# ---- PSL's own ground rules -----------------------------------------------------------------

# PSL drops these, though Q(a) = 1 breaks them: its test for what always holds is wrong here.
DROPPED_BY_PSL = ("1: @Min(2, 3) * Q(A) <= 1", "1: (1 + 2) * Q(A) <= 1")


@pytest.mark.data
def test_probes_of_psl(data_folder, small):
    table = json.loads((data_folder / "psl/grammar-probes.json").read_text())
    predicates = [syntax.Predicate(name, arity) for name, arity in SMALL_ARITIES.items()]
    seen = 0
    for probe in table["probes"]:
        if not probe["accepted"] or probe["rule"] in DROPPED_BY_PSL:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GreedyCoefficientWarning)
            rules = check(parse(probe["rule"], greedy=True), predicates)
        found = {key[1:]: n for key, n in forms_of(ground(rules, small)).items()}
        assert _rounded(found) == _rounded(_psl_forms(probe["ground"])), probe["rule"]
        seen += 1
    assert seen > 70


def _rounded(found):
    """PSL computes in single precision."""
    rounded = Counter()
    for (equal, constant, terms), n in found.items():
        key = tuple((name, round(a, 4)) for name, a in terms)
        rounded[equal, round(constant, 4) + 0.0, key] += n
    return rounded


def _psl_forms(rows):
    """Forms of PSL's ground rules; it lists some that are always satisfied."""
    world, found = naive_ground.World(SMALL), Counter()
    for row in rows:
        sign = -1.0 if row["op"] in ("|", ">=") else 1.0
        form = naive_ground.Form(-sign * row["constant"])
        if row["op"] == "|":
            form.constant = 1.0 - sum(a < 0 for _, a in row["terms"])
        for text, a in row["terms"]:
            name, arguments = text[:-1].split("(")
            form.add(world, syntax.Atom(name, ()), tuple(arguments.split(",")), sign * a)
        if form.is_kept(row["op"] == "="):
            found[row["op"] == "=", *form.signature()] += 1
    return found


@pytest.mark.data
@pytest.mark.parametrize("name", ["simple-acquaintances", "cora", "citeseer", "er-citeseer"])
def test_problems_of_psl(data_folder, name):
    folder = data_folder / "psl"
    grounding = ground(*_from_file(folder / name / "model.json"))
    hinges, stored = grounding.hinges, np.load(folder / f"ground/{name}.npz")
    psl = _colours(
        np.diff(stored["indptr"]),
        stored["indices"],
        stored["data"],
        stored["off"],
        stored["kind"],
        stored["rule"],
    )
    ours = _colours(
        np.diff(hinges.offsets),
        hinges.variables,
        hinges.coefficients,
        hinges.constants,
        hinges.kinds,
        hinges.groups,
    )
    np.testing.assert_array_equal(ours, psl)


def _from_file(path):
    program = read_program(path)
    tables = Tables({each.name: each.arity for each in program.predicates}, n_jobs=1)
    for each in program.declarations:
        for source in each.sources("observations"):
            tables.observe(each.predicate.name, source)
        for source in each.sources("targets"):
            tables.target(each.predicate.name, source)
    return program.rules, tables


def _colours(lengths, variables, coefficients, constants, kinds, rules):
    """Sorted colours of all forms after some rounds of refinement, whatever the atoms' order.

    PSL leaves out forms that miss by at most 1e-4, and keeps some that are always satisfied.
    """
    rows = np.repeat(np.arange(len(lengths)), lengths)
    top = constants + np.bincount(rows, np.maximum(coefficients, 0), len(lengths))
    kept = (lengths > 0) & ((kinds == EQUAL) | (top > 1.001e-4))
    inside = kept[rows]
    rows, variables = (np.cumsum(kept) - 1)[rows[inside]], variables[inside]
    factor = _mixed(np.round(coefficients[inside] * 1e4).astype(np.int64).astype(np.uint64))
    start = np.round(constants[kept] * 1e4).astype(np.int64) * 64 + 4 * rules[kept] + kinds[kept]
    atom = np.zeros(variables.max() + 1, np.uint64)
    for _ in range(4):
        form = start.astype(np.uint64)
        np.add.at(form, rows, _mixed(atom[variables] + factor))
        form = _mixed(form)
        sums = np.zeros_like(atom)
        np.add.at(sums, variables, _mixed(form[rows] + factor))
        atom = _mixed(atom + sums)
    return np.sort(form)


def _mixed(numbers):
    numbers = (numbers ^ (numbers >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    return numbers ^ (numbers >> np.uint64(29))
