"""Check rules against the predicates they speak of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NoReturn, TypeVar

from structlearn._src.common.errors import RuleError, did_you_mean
from structlearn._src.rules import syntax
from structlearn._src.rules.linear import counted_by
from structlearn._src.rules.write import write, write_atom

Known = Mapping[str, syntax.Predicate]
Part = TypeVar("Part", syntax.Literal, syntax.Summand)


def check(program: syntax.Program, predicates: Iterable[syntax.Predicate]) -> syntax.Program:
    """Check every rule, and spell its predicates as they are declared.

    Parameters
    ----------
    program
        The rules.
    predicates
        All that the rules may use. Their names do not depend on case.

    Raises
    ------
    RuleError
        If a predicate is not declared or has another arity, a variable has no values to range
        over, a summed variable is used twice, or a filter does not fit its rule.
    """
    known = {predicate.name.lower(): predicate for predicate in predicates}
    return tuple(check_rule(rule, known) for rule in program)


def check_rule(rule: syntax.Rule, known: Known) -> syntax.Rule:
    """Check one rule; `known` has the predicates by their names in lower case."""
    for atom in atoms_of(rule.body):
        _check_atom(rule, atom, known)
    if isinstance(rule.body, syntax.Clause):
        _check_clause(rule, rule.body)
    else:
        _check_linear(rule, rule.body, known)
    return replace(rule, body=_spelled(rule.body, known))


def atoms_of(body: syntax.Clause | syntax.Linear) -> Iterator[syntax.Atom]:
    """List the atoms of a rule, those of its filters last; comparisons are none."""
    parts: Iterable[syntax.Literal | syntax.Summand]
    if isinstance(body, syntax.Clause):
        parts = body.literals
    else:
        parts = [*body.summands, *(each for clause in body.filters for each in clause.literals)]
    return (each.atom for each in parts if isinstance(each.atom, syntax.Atom))


def variables_of(terms: Iterable[syntax.Term]) -> list[str]:
    """Name the variables among terms, each once, without those that are summed."""
    return list(dict.fromkeys(term.name for term in terms if isinstance(term, syntax.Variable)))


def _check_atom(rule: syntax.Rule, atom: syntax.Atom, known: Known) -> None:
    declared = known.get(atom.predicate.lower())
    if declared is None:
        names = [predicate.name for predicate in known.values()]
        _refuse(
            rule,
            f"{atom.predicate!r} is not a known predicate{did_you_mean(atom.predicate, names)}",
            atom.place,
        )
    if declared.arity != len(atom.terms):
        _refuse(
            rule,
            f"{write_atom(atom)} has {len(atom.terms)} arguments, but {declared.name} takes "
            f"{declared.arity}",
            atom.place,
        )


def _check_clause(rule: syntax.Rule, clause: syntax.Clause) -> None:
    for atom in atoms_of(clause):
        if any(isinstance(term, syntax.SumVariable) for term in atom.terms):
            _refuse(
                rule,
                f"{write_atom(atom)} sums in a logical rule: only arithmetic rules can",
                atom.place,
            )
    if not any(variables_of(_terms(each.atom)) for each in clause.literals):
        _refuse(rule, "the rule has no variables: at least one is needed", rule.place)
    _check_bound(rule, clause)


def _check_bound(rule: syntax.Rule, clause: syntax.Clause) -> None:
    """Every variable needs values: those of an atom that is positive in the body."""
    bound = {
        name
        for each in clause.literals
        if each.negated and isinstance(each.atom, syntax.Atom)
        for name in variables_of(each.atom.terms)
    }
    for literal in clause.literals:
        for name in variables_of(_terms(literal.atom)):
            if name not in bound:
                _refuse(rule, _unbound(name, literal, clause), literal.atom.place)


def _unbound(name: str, literal: syntax.Literal, clause: syntax.Clause) -> str:
    shown = write_atom(literal.atom)
    if len(clause.literals) == 1:
        return f"{shown} stands alone, so {name!r} has no values: for a prior write {shown} >= 1"
    return (
        f"the variable {name!r} of {shown} is in no positive atom of the body, so it has no "
        f"values: add an atom with it to the body, or use one of the body's variables"
    )


def _check_linear(rule: syntax.Rule, form: syntax.Linear, known: Known) -> None:
    atoms = [each.atom for each in form.summands if each.atom is not None]
    if len(set(atoms)) == 1 < len(atoms):
        _refuse(rule, f"{write_atom(atoms[0])} is all there is: write it once", atoms[1].place)
    sums = _check_sums(rule, atoms)
    for name in sorted(counted_by(form) - sums):
        _refuse(rule, f"|{name}| counts what is not summed: write +{name} in an atom", rule.place)
    plain = {name for atom in atoms for name in variables_of(atom.terms)}
    for test in form.tests:
        for name in [each for each in variables_of(_terms(test)) if each not in plain]:
            _refuse(
                rule,
                f"{write_atom(test)} may use variables that are in an atom and not summed, but "
                f"{name!r} is not",
                test.place,
            )
    for name, times in Counter(clause.variable for clause in form.filters).items():
        if times > 1:
            _refuse(rule, f"{name!r} has {times} filters: join them by '&' in one", rule.place)
    for clause in form.filters:
        _check_filter(rule, clause, sums, plain, known)


def _check_sums(rule: syntax.Rule, atoms: list[syntax.Atom]) -> set[str]:
    """List the summed variables, each in one place only."""
    sums: set[str] = set()
    plain = {name for atom in atoms for name in variables_of(atom.terms)}
    for atom in atoms:
        for name in (term.name for term in atom.terms if isinstance(term, syntax.SumVariable)):
            if name in sums or name in plain:
                _refuse(
                    rule,
                    f"the summed variable {name!r} is used twice: give every sum its own",
                    atom.place,
                )
            sums.add(name)
    return sums


def _check_filter(
    rule: syntax.Rule, clause: syntax.Filter, sums: set[str], plain: set[str], known: Known
) -> None:
    if clause.variable not in sums:
        _refuse(
            rule,
            f"the filter is for {clause.variable!r}, which is not summed: only a variable with "
            f"'+' can be filtered{did_you_mean(clause.variable, sums)}",
            clause.place,
        )
    for atom in (each.atom for each in clause.literals):
        if isinstance(atom, syntax.Atom) and known[atom.predicate.lower()].open:
            _refuse(
                rule,
                f"{atom.predicate} is open, so {write_atom(atom)} is not known before inference: "
                f"a filter needs closed predicates",
                atom.place,
            )
        for term in _terms(atom):
            name = getattr(term, "name", clause.variable)
            if isinstance(term, syntax.SumVariable) or name not in plain | {clause.variable}:
                _refuse(
                    rule,
                    f"{write_atom(atom)} in a filter may use {clause.variable!r} and variables of "
                    f"the rule that are not summed, but {name!r} is neither",
                    atom.place,
                )


def _terms(atom: syntax.Atom | syntax.Comparison) -> tuple[syntax.Term, ...]:
    return atom.terms if isinstance(atom, syntax.Atom) else (atom.left, atom.right)


def _refuse(rule: syntax.Rule, reason: str, place: syntax.Place) -> NoReturn:
    if not rule.text:
        raise RuleError(f"{reason}, in {write(rule)!r}")
    # Blanks before the rule bring its text to where its places say it is.
    text = "\n" * (rule.place.line - 1) + " " * (rule.place.column - 1) + rule.text
    raise RuleError(reason, text, *place)


def _spelled(body: syntax.Clause | syntax.Linear, known: Known) -> syntax.Clause | syntax.Linear:
    """The same with predicates as they are declared."""
    if isinstance(body, syntax.Clause):
        return replace(body, literals=_respelled(body.literals, known))
    filters = tuple(
        replace(each, literals=_respelled(each.literals, known)) for each in body.filters
    )
    return replace(body, summands=_respelled(body.summands, known), filters=filters)


def _respelled(parts: tuple[Part, ...], known: Known) -> tuple[Part, ...]:
    return tuple(
        replace(each, atom=replace(each.atom, predicate=known[each.atom.predicate.lower()].name))
        if isinstance(each.atom, syntax.Atom)
        else each
        for each in parts
    )
