"""Check rules against the predicates they speak of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from structlearn._src.common.errors import RuleError, did_you_mean
from structlearn._src.rules import syntax
from structlearn._src.rules.linear import Unfit, counted_by
from structlearn._src.rules.write import write, write_atom

Known = Mapping[str, syntax.Predicate]
Part = TypeVar("Part", syntax.Literal, syntax.Summand)


def check(program: syntax.Program, predicates: Iterable[syntax.Predicate]) -> syntax.Program:
    """Check every rule, and spell its predicates as they are declared, whatever their case.

    A `RuleError` says that a predicate is not declared or has another arity, a variable has no
    values to range over, a summed variable is used twice, or a filter does not fit its rule.
    """
    known = {predicate.name.lower(): predicate for predicate in predicates}
    return tuple(check_rule(rule, known) for rule in program)


def check_rule(rule: syntax.Rule, known: Known) -> syntax.Rule:
    """Check one rule; `known` has the predicates by their names in lower case."""
    try:
        for atom in atoms_of(rule.body):
            _check_atom(atom, known)
        if isinstance(rule.body, syntax.Clause):
            _check_clause(rule.body)
        else:
            _check_linear(rule.body, known)
    except Unfit as unfit:
        raise _refusal(rule, unfit) from None
    return replace(rule, body=_spelled(rule.body, known))


def _refusal(rule: syntax.Rule, unfit: Unfit) -> RuleError:
    if not rule.text:
        return RuleError(f"{unfit}, in {write(rule)!r}")
    # Blanks before the rule bring its text to where its places say it is.
    text = "\n" * (rule.place.line - 1) + " " * (rule.place.column - 1) + rule.text
    return RuleError(str(unfit), text, *(unfit.place or rule.place))


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


def _check_atom(atom: syntax.Atom, known: Known) -> None:
    declared = known.get(atom.predicate.lower())
    if declared is None:
        hint = did_you_mean(atom.predicate, [predicate.name for predicate in known.values()])
        raise Unfit(f"{atom.predicate!r} is not a known predicate{hint}", atom.place)
    if declared.arity != len(atom.terms):
        given = f"{write_atom(atom)} has {len(atom.terms)} arguments"
        raise Unfit(f"{given}, but {declared.name} takes {declared.arity}", atom.place)


def _check_clause(clause: syntax.Clause) -> None:
    """Every variable needs values: those of an atom that is positive in the body."""
    bound: set[str] = set()
    for atom in atoms_of(clause):
        if any(isinstance(term, syntax.SumVariable) for term in atom.terms):
            shown = write_atom(atom)
            raise Unfit(f"{shown} sums in a logical rule: only arithmetic rules can", atom.place)
    for each in clause.literals:
        if each.negated and isinstance(each.atom, syntax.Atom):
            bound.update(variables_of(each.atom.terms))
    if not any(variables_of(each.atom.terms) for each in clause.literals):
        raise Unfit("the rule has no variables: at least one is needed")
    for each in clause.literals:
        for name in variables_of(each.atom.terms):
            if name not in bound:
                raise Unfit(_unbound(name, each, clause), each.atom.place)


def _unbound(name: str, literal: syntax.Literal, clause: syntax.Clause) -> str:
    shown = write_atom(literal.atom)
    if len(clause.literals) == 1:
        return f"{shown} stands alone, so {name!r} has no values: for a prior write {shown} >= 1"
    return (
        f"the variable {name!r} of {shown} is in no positive atom of the body, so it has no "
        f"values: add an atom with it to the body, or use one of the body's variables"
    )


def _check_linear(form: syntax.Linear, known: Known) -> None:
    atoms = [each.atom for each in form.summands if each.atom is not None]
    if len(set(atoms)) == 1 < len(atoms):
        raise Unfit(f"{write_atom(atoms[0])} is all there is: write it once", atoms[1].place)
    plain = {name for atom in atoms for name in variables_of(atom.terms)}
    sums = _check_sums(atoms, plain)
    for name in sorted(counted_by(form) - sums):
        raise Unfit(f"|{name}| counts what is not summed: write +{name} in an atom")
    for test in form.tests:
        for name in [each for each in variables_of(test.terms) if each not in plain]:
            raise Unfit(
                f"{write_atom(test)} may use variables that are in an atom and not summed, but "
                f"{name!r} is not",
                test.place,
            )
    for name, times in Counter(clause.variable for clause in form.filters).items():
        if times > 1:
            raise Unfit(f"{name!r} has {times} filters: join them by '&' in one")
    for clause in form.filters:
        _check_filter(clause, sums, plain, known)


def _check_sums(atoms: list[syntax.Atom], plain: set[str]) -> set[str]:
    """List the summed variables, each in one place only."""
    sums: set[str] = set()
    for atom in atoms:
        for name in (term.name for term in atom.terms if isinstance(term, syntax.SumVariable)):
            if name in sums or name in plain:
                reason = f"the summed variable {name!r} is used twice: give every sum its own"
                raise Unfit(reason, atom.place)
            sums.add(name)
    return sums


def _check_filter(clause: syntax.Filter, sums: set[str], plain: set[str], known: Known) -> None:
    if clause.variable not in sums:
        raise Unfit(
            f"the filter is for {clause.variable!r}, which is not summed: only a variable with "
            f"'+' can be filtered{did_you_mean(clause.variable, sums)}",
            clause.place,
        )
    for atom in (each.atom for each in clause.literals):
        if isinstance(atom, syntax.Atom) and known[atom.predicate.lower()].open:
            raise Unfit(
                f"{atom.predicate} is open, so {write_atom(atom)} is not known before inference: "
                f"a filter needs closed predicates",
                atom.place,
            )
        for term in atom.terms:
            name = getattr(term, "name", clause.variable)
            if isinstance(term, syntax.SumVariable) or name not in plain | {clause.variable}:
                raise Unfit(
                    f"{write_atom(atom)} in a filter may use {clause.variable!r} and variables of "
                    f"the rule that are not summed, but {name!r} is neither",
                    atom.place,
                )


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
