"""Joins of atoms: the rows of a query against loops over all tuples of atoms."""

import itertools
import random

import pytest

from structlearn._src.rules.join import Join, in_order, is_summed, names_of, never_equal, plain
from structlearn._src.rules.syntax import Atom, Comparison, Constant, SumVariable, Variable
from structlearn._src.rules.tables import Tables

A, B, C = map(Variable, "ABC")


def tables(rng):
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
    made, rows = tables(rng)
    terms = [A, B, C, Constant("x"), Constant("nobody")]
    atoms = [Atom("P", (A, B)), Atom("Q", (rng.choice(terms),)), Atom("P", (B, rng.choice(terms)))]
    join = Join(made)
    for i, atom in enumerate(atoms):
        join.add(atom, f"t{i}")
    join.conditions.append(join.compared(Comparison(operator, A, B), holds))
    query = f"(SELECT 1 {join.clause()})"
    test = COMPARED[operator]
    assert made.count(query) == by_hand(atoms, rows, lambda b: test(b[A], b[B]) == holds)


def test_an_outer_atom_keeps_rows_without_it():
    made = Tables({"P": 2, "Q": 1})
    made.observe("P", [("x", "y"), ("y", "x")])
    made.observe("Q", [("x", 0.25)])
    join = Join(made)
    join.add(Atom("P", (A, B)), "t0")
    join.add_outer(Atom("Q", (A,)), "t1")
    found = made.connection.execute(f"SELECT t1.value {join.clause()} ORDER BY ALL").fetchall()
    assert found == [(0.25,), (None,)]


def test_small_and_bound_atoms_come_first():
    atoms = [Atom("P", (A, B)), Atom("P", (B, C)), Atom("Q", (C,))]
    assert in_order(atoms, [10, 10, 10], 0) == [0, 1, 2]
    assert in_order(atoms, [10, 10, 10], 2) == [2, 1, 0]


def test_terms_that_can_never_be_equal():
    apart = {frozenset((A, B))}
    assert never_equal((A, C), (B, C), apart)
    assert never_equal((Constant("x"), A), (Constant("y"), A), set())
    assert not never_equal((A, C), (B, C), set())
    assert not never_equal((Constant("x"),), (A,), apart)


def test_sums_are_told_from_plain_atoms():
    summed = Atom("P", (A, SumVariable("B")))
    assert is_summed(summed)
    assert not is_summed(plain(summed))
    assert plain(summed).terms == (A, B)
    assert names_of(summed) == ["A", "B"]
