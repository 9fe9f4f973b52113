"""Rules in words: reading them, naming them, checking their weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from structlearn._src.common.errors import ArgumentError, RuleError
from structlearn._src.field.hinges import EQUAL
from structlearn._src.rules.check import atoms_of, check
from structlearn._src.rules.ground import Grounding
from structlearn._src.rules.parse import parse
from structlearn._src.rules.syntax import Predicate, Program, Rule
from structlearn._src.rules.write import write, write_number

SHOWN = 5  # atoms, rules or constraints named in one message


def read_rules(rules: str | Sequence[str | Rule], greedy: bool) -> Program:
    """Read a program, and check it against its own predicates."""
    if isinstance(rules, str):
        program = parse(rules, greedy=greedy)
    elif not isinstance(rules, Iterable):
        raise ArgumentError(
            f"rules={rules!r} are no rules: give a text or a list of them; files are read by "
            f"RuleModel.from_file"
        )
    else:
        program = tuple(rule for each in rules for rule in _parsed(each, greedy))
    if not program:
        raise RuleError("there are no rules: at least one is needed")
    for i, rule in enumerate(program):
        if rule.weight is not None:
            check_weight(rule_name(program, i), rule, rule.weight)
    return check(program, predicates(program))


def _parsed(text: Any, greedy: bool) -> Program:
    if isinstance(text, Rule):
        return (text,)
    if not isinstance(text, str):
        raise ArgumentError(f"{text!r} is no rule: give texts, or rules that were read before")
    return parse(text, greedy=greedy)


def predicates(program: Program) -> list[Predicate]:
    """The predicates of a program, as they are first written."""
    found: dict[str, Predicate] = {}
    for rule in program:
        for atom in atoms_of(rule.body):
            new = Predicate(atom.predicate, len(atom.terms))
            found.setdefault(atom.predicate.lower(), new)
    return list(found.values())


def weighted(rule: Rule, weight: float) -> Rule:
    """Give a rule another weight, unless it is hard."""
    if rule.weight is None:
        return rule
    new = replace(rule, weight=float(weight))
    return replace(new, text=write(new)) if weight != rule.weight else rule


def bare(rule: Rule) -> str:
    """A rule without its weight."""
    return write(replace(rule, weight=None if rule.weight is None else 1.0))


def check_weight(name: str, rule: Rule, weight: float) -> None:
    """Refuse a weight that a rule cannot have."""
    if rule.weight is None and weight != np.inf:
        raise ArgumentError(f"{name} is hard, so its weight is infinite, not {weight}")
    if rule.weight is not None and not 0 <= weight < np.inf:
        raise ArgumentError(
            f"{name} has the weight {write_number(weight)}: weights must be finite and at least 0; "
            f"to say the opposite, negate the rule"
        )


def rule_name(program: Program, number: int) -> str:
    """Say which rule: its number, its line and its text."""
    rule = program[number]
    return f"rule {number + 1} (line {rule.place.line}), {rule.text or write(rule)!r},"


def some(names: Sequence[str], n: int | None = None, joint: str = ", ") -> str:
    """Name the first few of many."""
    n = len(names) if n is None else n
    more = f" and {n - SHOWN} more" if n > SHOWN else ""
    return joint.join(names[:SHOWN]) + more


def constraint(grounding: Grounding, form: int) -> str:
    """Write a hard constraint with the names of its atoms."""
    hinges = grounding.hinges
    entries = slice(hinges.offsets[form], hinges.offsets[form + 1])
    names = grounding.tables.names(hinges.variables[entries])
    terms = (f"{a:+g} {name}" for a, name in zip(hinges.coefficients[entries], names, strict=True))
    sign = "=" if hinges.kinds[form] == EQUAL else "<="
    rule = grounding.rules[hinges.groups[form]]
    return f"{' '.join(terms)} {hinges.constants[form]:+g} {sign} 0 of {rule.text!r}"
