"""Queries: what they leave out, they never enumerate."""

from __future__ import annotations

import itertools

import pytest

from structlearn._src.rules.ground import ground
from structlearn._src.rules.parse import parse_rule
from structlearn._src.rules.plan import flat_clause, flat_linear
from structlearn._src.rules.sums import Sums
from structlearn._src.rules.tables import Tables

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
