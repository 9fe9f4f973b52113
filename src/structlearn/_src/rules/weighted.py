"""Rules with weights that can be read and set: by all at once, by number, or by text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Bools, Floats
from structlearn._src.common.errors import (
    ArgumentError,
    RepeatedRuleWarning,
    RuleError,
    did_you_mean,
    warn,
)
from structlearn._src.rules.check import atoms_of, check
from structlearn._src.rules.parse import parse
from structlearn._src.rules.syntax import Clause, Constant, Predicate, Program, Rule, Variable
from structlearn._src.rules.write import write, write_number


class WeightedRules:
    """A program and its weights, which may differ from those in its text; `greedy` as in `parse`.

    Rules are a text, or a list of texts and of rules that were read before.
    """

    def __init__(self, rules: str | Sequence[str | Rule], greedy: bool = False) -> None:
        self.greedy = greedy
        self._read = _read_rules(rules, greedy)  # with the weights of the text
        _warn_of_repeated(self._read)
        self._weights = np.array([rule.weight or 0.0 for rule in self._read])

    def __len__(self) -> int:
        return len(self._read)

    @property
    def program(self) -> Program:
        """The rules with their present weights."""
        return tuple(map(reweighted, self._read, self._weights))

    @property
    def texts(self) -> list[str]:
        """The same as text."""
        return [write(rule) for rule in self.program]

    @property
    def predicates(self) -> list[Predicate]:
        """The predicates of the rules, as they are first written."""
        return _predicates(self._read)

    @property
    def weights(self) -> Floats:
        """(rules) Weights, infinite for hard rules; may be set by an array or a mapping."""
        hard = [rule.weight is None for rule in self._read]
        return np.where(hard, np.inf, self._weights)

    @weights.setter
    def weights(self, weights: Any) -> None:
        new = self.weights
        if isinstance(weights, Mapping):
            for key, value in weights.items():
                new[self.find(key)] = _numbers(value)
        else:
            new = _numbers(weights)
        if new.shape != (len(self),):
            raise ArgumentError(
                f"weights of shape {new.shape} were given for {len(self)} rules: give one "
                f"for each, infinite for hard rules"
            )
        for i in range(len(self)):
            _check_weight(self._read, i, new[i])
        self._weights = np.where(np.isinf(new), 0.0, new)

    @property
    def soft_weights(self) -> Floats:
        """(rules) Weights as a field takes them: 0 for hard rules."""
        return self._weights

    def split(self, key: Any, by: str, constants: Callable[[str, int], set[str]]) -> WeightedRules:
        """Return the rules with copies of some, one for each constant of the variable `by`.

        `constants` returns those that a predicate's atoms have in one place.
        """
        chosen = self.find(key)
        program: list[Rule] = []
        for i, rule in enumerate(self.program):
            program += _copies(rule, by, constants) if i in chosen else [rule]
        return WeightedRules(program, self.greedy)

    def chosen(self, keys: Iterable[Any]) -> Bools:
        """(rules) Which rules are among those that numbers or texts stand for."""
        which = np.zeros(len(self), np.bool_)
        for key in keys:
            which[self.find(key)] = True
        return which

    def find(self, key: Any) -> list[int]:
        """Numbers of the rules that a number or a text, with any weight, stands for.

        A text with a disjunction in its filter is several rules.
        """
        if isinstance(key, str):
            wanted = set(map(_without_weight, _read_rules(key, self.greedy)))
            found = [i for i, rule in enumerate(self._read) if _without_weight(rule) in wanted]
            if not found:
                raise ArgumentError(f"there is no rule {key!r}{did_you_mean(key, self.texts)}")
            return found
        if checks.integer("the number of a rule", key) >= len(self):
            raise ArgumentError(f"there is no rule {key}: the {len(self)} rules count from 0")
        return [int(key)]


def reweighted(rule: Rule, weight: float) -> Rule:
    """Give a rule another weight, unless it is hard."""
    if rule.weight is None or weight == rule.weight:
        return rule
    new = replace(rule, weight=float(weight))
    return replace(new, text=write(new))


def _copies(rule: Rule, by: str, constants: Callable[[str, int], set[str]]) -> list[Rule]:
    """Copies of a rule with constants in the place of a variable; all its atoms must have them."""
    found = [
        constants(atom.predicate, place)
        for atom in atoms_of(rule.body)
        for place, term in enumerate(atom.terms)
        if term == Variable(by)
    ]
    if not found or rule.weight is None:
        why = "is hard, so it has no weight to split" if found else f"has no variable {by!r}"
        raise ArgumentError(f"the rule {write(rule)!r} {why}")
    values = sorted(set.intersection(*found))
    if not values:
        raise ArgumentError(
            f"no constant stands for {by!r} in all atoms of {write(rule)!r}: give the atoms first"
        )
    bodies = (_put(rule.body, Variable(by), Constant(value)) for value in values)
    return [replace(rule, body=body, text="") for body in bodies]


def _put(part: Any, variable: Variable, constant: Constant) -> Any:
    """Put a constant in the place of a variable, in all parts of a rule."""
    if part == variable:
        return constant
    if isinstance(part, tuple) and not hasattr(part, "_fields"):
        return tuple(_put(each, variable, constant) for each in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    inner = {each.name: getattr(part, each.name) for each in fields(part)}
    return type(part)(**{name: _put(each, variable, constant) for name, each in inner.items()})


def rule_name(program: Program, number: int) -> str:
    """Say which rule: its number, its line and its text."""
    rule = program[number]
    return f"rule {number + 1} (line {rule.place.line}), {rule.text or write(rule)!r}"


def _read_rules(rules: str | Sequence[str | Rule], greedy: bool) -> Program:
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
            _check_weight(program, i, rule.weight)
    return check(program, _predicates(program))


def _warn_of_repeated(program: Program) -> None:
    first: dict[Any, int] = {}
    before = [first.setdefault(_meaning(rule), i) for i, rule in enumerate(program)]
    pairs = [f"{i + 1} as {j + 1}" for i, j in enumerate(before) if j < i]
    if pairs:
        warn(
            f"of {len(program)} rules some say the same as one before ({', '.join(pairs)}): all of "
            f"them count, where PSL keeps the first; leave the others out to agree with it",
            RepeatedRuleWarning,
        )


def _meaning(rule: Rule) -> Any:
    """What PSL tells rules apart by: not their weights, nor the order of literals."""
    said = frozenset(rule.body.literals) if isinstance(rule.body, Clause) else rule.body
    return said, rule.squared, rule.weight is None


def _parsed(text: Any, greedy: bool) -> Program:
    if isinstance(text, Rule):
        return (text,)
    if not isinstance(text, str):
        raise ArgumentError(f"{text!r} is no rule: give texts, or rules that were read before")
    return parse(text, greedy=greedy)


def _predicates(program: Program) -> list[Predicate]:
    found: dict[str, Predicate] = {}
    for rule in program:
        for atom in atoms_of(rule.body):
            new = Predicate(atom.predicate, len(atom.terms))
            found.setdefault(atom.predicate.lower(), new)
    return list(found.values())


def _without_weight(rule: Rule) -> str:
    return write(replace(rule, weight=None if rule.weight is None else 1.0))


def _check_weight(program: Program, number: int, weight: float) -> None:
    """Refuse a weight that a rule cannot have."""
    hard = program[number].weight is None
    if hard and weight != np.inf:
        name = rule_name(program, number)
        raise ArgumentError(f"{name}, is hard, so its weight is infinite, not {weight}")
    if not hard and not 0 <= weight <= checks.MOST:
        raise ArgumentError(
            f"{rule_name(program, number)}, has the weight {write_number(weight)}: weights must be "
            f"at least 0 and at most {checks.MOST:g}; to say the opposite, negate the rule"
        )


def _numbers(weights: Any) -> Floats:
    try:
        return np.array(weights, np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"the weights {weights!r} are not all numbers") from None
