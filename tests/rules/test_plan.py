"""Queries: what they leave out, they never enumerate."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from structlearn._src.rules.ground import ground
from structlearn._src.rules.join import Join
from structlearn._src.rules.parse import parse_rule
from structlearn._src.rules.plan import Slot, flat_clause, flat_linear, in_order, never_equal
from structlearn._src.rules.sums import Sums
from structlearn._src.rules.syntax import Atom, Comparison, Constant, Variable
from structlearn._src.rules.tables import Relation, Tables

TRIAD = "1: Knows(A, B) & Knows(B, C) & Trusts(A, B) & Trusts(B, C) & Knows(A, C) -> Trusts(A, C)"


def make(knows, observed, targets):
    tables = Tables({"Knows": 2, "Trusts": 2, "Near": 2}, n_jobs=1)
    tables.observe("Knows", knows)
    tables.observe("Trusts", observed)
    tables.target("Trusts", targets)
    return tables


EDGES = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("b", "d")]


def used(tables, name, text=TRIAD):
    plan = flat_clause(parse_rule(text).body, tables).plan()
    return plan.rows.count(f"{tables.relation(name).table} AS")


def test_an_atom_that_only_says_what_exists_is_left_out():
    tables = make(EDGES, [(*e, 0.5) for e in EDGES[1:]], EDGES[:1])
    assert used(tables, "Knows") == 0
    assert used(tables, "Trusts") == 6  # three cases, in each one slot of three is free


@pytest.mark.parametrize("knows", [[*EDGES[1:], ("a", "b", 0.5)], EDGES[1:]])
def test_an_atom_that_says_more_stays(knows):
    rows = [(*row, 1.0)[:3] for row in knows]
    tables = make(rows, [(*e, 0.5) for e in EDGES[1:]], EDGES[:1])
    assert used(tables, "Knows") == 9


def test_what_covers_is_asked_anew_when_atoms_come_in():
    tables = make(EDGES, [(*e, 0.5) for e in EDGES[1:]], EDGES[:1])
    assert used(tables, "Knows") == 0
    tables.target("Trusts", [("d", "a")])
    assert used(tables, "Knows") == 9


def test_there_is_one_case_for_each_slot_that_may_be_free():
    tables = make(EDGES, [(*e, 0.5) for e in EDGES[1:]], EDGES[:1])
    query = flat_clause(parse_rule(TRIAD).body, tables).plan().rows
    assert query.count("UNION ALL") == 2
    alone = make(EDGES, [], EDGES)
    assert "UNION" not in flat_clause(parse_rule(TRIAD).body, alone).plan().rows


def test_rows_of_a_query_are_the_forms():
    """Observed values decide inside the query: 0.2 + 0.7 leaves nothing to break."""
    observed = [("a", "b", 0.2), ("b", "c", 0.7), ("c", "d", 0.9)]
    tables = make(EDGES, observed, [("a", "c"), ("b", "d")])
    rule = parse_rule(TRIAD)
    plan = flat_clause(rule.body, tables).plan()
    assert tables.count(f"({plan.rows})") == 1
    grounding = ground((rule,), tables)
    assert tables.names(grounding.hinges.variables) == ["Trusts('b', 'd')"]
    assert grounding.hinges.constants == pytest.approx([0.6])


def test_a_query_never_meets_groundings_without_free_atoms():
    observed = [(str(i), str(j), 1.0) for i in range(40) for j in range(40) if i != j]
    tables = make([], observed, [("0", "x")])
    body = parse_rule("1: Trusts(A, B) & Trusts(B, C) -> !Trusts(A, C)").body
    query = f"EXPLAIN ANALYZE {flat_clause(body, tables).plan().rows}"
    profile = tables.connection.execute(query).fetchall()[0][1].split()
    pairs = itertools.pairwise(profile)
    counts = [int(word.replace(",", "")) for word, after in pairs if after == "rows"]
    assert len(counts) > 10
    assert max(counts) <= len(observed) + 1  # all pairs of edges are 60840


@pytest.mark.parametrize("text", ["1: Knows(A, B) -> Near(B, A)", "1: Knows(A, B) <= 0.5"])
def test_rules_without_targets_have_no_plan(text):
    tables = make(EDGES, [], EDGES)
    body = parse_rule(text).body
    if "->" in text:
        assert flat_clause(body, tables).plan() is None
    else:
        assert flat_linear(body, tables, 1, False).plan() is None
        assert Sums(parse_rule("1: Knows(A, +B) <= 1").body, tables, 1, False).plan() is None


def test_slots_that_may_hold_one_atom_are_known():
    tables = make(EDGES, [], EDGES)
    body = "Trusts(A, B) & Trusts(B, C)"
    assert flat_clause(parse_rule(f"1: !{'Trusts(A, B)'}").body, tables).plan().twins == ()
    open_pair = flat_clause(parse_rule(f"1: {body} -> Near(A, C)").body, tables).plan()
    assert open_pair.twins == ((0, 1),)
    apart = flat_clause(parse_rule(f"1: {body} & (A != B) -> Near(A, C)").body, tables).plan()
    assert apart.twins == ()
    named = flat_linear(
        parse_rule("1: Trusts('a', B) + Trusts('b', B) <= 1").body, tables, 1, False
    ).plan()
    assert (named.twins, named.coefficients) == ((), (1.0, 1.0))


# ---- joins: rows of a query against loops over all tuples of atoms

A, B, C = map(Variable, "ABC")


def random_tables(rng):
    made = Tables({"P": 2, "Q": 1})
    pairs = [(a, b) for a in "xyz" for b in "xyz" if rng.random() < 0.6]
    made.observe("P", pairs)
    made.observe("Q", [(a,) for a in "xyz" if rng.random() < 0.7])
    rows = {"P": pairs, "Q": [row[:1] for row in listed(made, "Q")]}
    return made, rows


def listed(made, name):
    relation = made.relation(name)
    atoms = made.connection.execute(f"SELECT {relation.keys} FROM {relation.table}").fetchall()
    texts = dict(made.connection.execute("SELECT code, text FROM constants").fetchall())
    return [tuple(texts[code] for code in row) for row in atoms]


def by_hand(atoms, rows, keep):
    """Count the tuples of rows that agree in all variables and constants."""
    count = 0
    for chosen in itertools.product(*(rows[atom.predicate] for atom in atoms)):
        binding = {}
        pairs = [
            pair for atom, row in zip(atoms, chosen, strict=True)
            for pair in zip(atom.terms, row, strict=True)
        ]  # fmt: skip
        agrees = all(
            value == (term.value if isinstance(term, Constant) else binding.setdefault(term, value))
            for term, value in pairs
        )
        count += agrees and keep(binding)
    return count


COMPARED = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "%": lambda a, b: str(a) < str(b),
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("operator", COMPARED)
@pytest.mark.parametrize("holds", [True, False])
def test_rows_are_those_of_all_tuples_that_agree(seed, operator, holds):
    rng = random.Random(seed)
    made, rows = random_tables(rng)
    terms = [A, B, C, Constant("x"), Constant("nobody")]
    atoms = [Atom("P", (A, B)), Atom("Q", (rng.choice(terms),)), Atom("P", (B, rng.choice(terms)))]
    join = Join(made)
    for i, atom in enumerate(atoms):
        join.add(atom, made.relation(atom.predicate).table, f"t{i}")
    join.conditions.append(join.compared(Comparison(operator, A, B), holds))
    query = f"(SELECT 1 {join.clause()})"
    test = COMPARED[operator]
    assert made.count(query) == by_hand(atoms, rows, lambda b: test(b[A], b[B]) == holds)


def test_an_outer_atom_keeps_rows_without_it():
    made = Tables({"P": 2, "Q": 1})
    made.observe("P", [("x", "y"), ("y", "x")])
    made.observe("Q", [("x", 0.25)])
    join = Join(made)
    join.add(Atom("P", (A, B)), made.relation("P").table, "t0")
    join.add_outer(Atom("Q", (A,)), made.relation("Q").table, "t1")
    found = made.connection.execute(f"SELECT t1.value {join.clause()} ORDER BY ALL").fetchall()
    assert found == [(0.25,), (None,)]


def test_small_and_bound_atoms_come_first():
    relation = Relation("P", 2, "p0", n_observed=10, n_free=10)
    atoms = [Atom("P", (A, B)), Atom("P", (B, C)), Atom("P", (C, C))]
    slots = [Slot(atom, relation, 1.0, alias=f"t{i}") for i, atom in enumerate(atoms)]
    assert [slot.alias for slot in in_order(slots)] == ["t0", "t1", "t2"]
    slots[2] = replace(slots[2], mode="free")
    assert [slot.alias for slot in in_order(slots)] == ["t2", "t1", "t0"]


def test_atoms_that_can_never_be_equal():
    apart = {frozenset((A, B))}
    assert never_equal(Atom("P", (A, C)), Atom("P", (B, C)), apart)
    assert never_equal(Atom("P", (Constant("x"), A)), Atom("P", (Constant("y"), A)), set())
    assert not never_equal(Atom("P", (A, C)), Atom("P", (B, C)), set())
    assert not never_equal(Atom("Q", (Constant("x"),)), Atom("Q", (A,)), apart)
