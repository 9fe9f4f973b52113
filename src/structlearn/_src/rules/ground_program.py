"""A program of rules over atoms: its weights, what was given for its predicates, its groundings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import (
    ArgumentError,
    BrokenRuleWarning,
    InfeasibleError,
    RepeatedRuleWarning,
    SilentRuleWarning,
    UnreachedAtomWarning,
    did_you_mean,
    warn,
)
from structlearn._src.field.hinges import EQUAL
from structlearn._src.rules.ground import Grounding, broken, estimate, ground
from structlearn._src.rules.interrupt import interruptible
from structlearn._src.rules.parse import predicates_of, read_rules
from structlearn._src.rules.program import PARTITIONS, ProgramFile
from structlearn._src.rules.room import Room
from structlearn._src.rules.syntax import (
    Clause,
    Constant,
    Number,
    Program,
    Rule,
    Variable,
    rewritten,
)
from structlearn._src.rules.tables import Tables

_SHOWN = 5  # atoms, rules or constraints named in one message
_METHODS = dict(zip(PARTITIONS, ("observe", "target", "truth"), strict=True))


# ---- rules with weights --------------------------------------------------------------------


def read_weighted_rules(rules: str | Sequence[str | Rule], *, greedy: bool = False) -> Program:
    """Read rules that are to be weighed: their weights are checked, and repeated ones are told."""
    program = read_rules(rules, greedy=greedy)
    for i, weight in enumerate(weights_of(program)):
        _check_weight(program, i, weight)
    _warn_of_repeated(program)
    return program


def weights_of(program: Program) -> Floats:
    """(rules) Weights, infinite for hard rules."""
    return np.array([np.inf if rule.weight is None else rule.weight for rule in program])


def with_weights(program: Program, weights: Any, *, greedy: bool = False) -> Program:
    """Give rules other weights: an array, or a mapping from what `find_rules` takes."""
    if isinstance(weights, Mapping):
        new = weights_of(program)
        for key, value in weights.items():
            new[find_rules(program, key, greedy=greedy)] = checks.numbers("weights", value)
    else:
        new = checks.numbers("weights", weights)
    if new.shape != (len(program),):
        raise ArgumentError(
            f"weights of shape {new.shape} were given for {len(program)} rules: give one "
            f"for each, infinite for hard rules"
        )
    for i, weight in enumerate(new):
        _check_weight(program, i, weight)
    return tuple(map(_reweighted, program, new.tolist()))


def _reweighted(rule: Rule, weight: float) -> Rule:
    if rule.weight is None or weight == rule.weight:
        return rule  # with its text as it was written
    new = replace(rule, weight=weight)
    return replace(new, text=str(new))


def find_rules(program: Program, key: Any, *, greedy: bool = False) -> list[int]:
    """Numbers of the rules that a number or a text, with any weight, stands for.

    A text with a disjunction in its filter is several rules.
    """
    if isinstance(key, str):
        wanted = set(map(_without_weight, read_rules(key, greedy=greedy)))
        found = [i for i, rule in enumerate(program) if _without_weight(rule) in wanted]
        if not found:
            raise ArgumentError(f"there is no rule {key!r}{did_you_mean(key, map(str, program))}")
        return found
    if checks.integer("the number of a rule", key) >= len(program):
        raise ArgumentError(f"there is no rule {key}: the {len(program)} rules count from 0")
    return [int(key)]


def _without_weight(rule: Rule) -> str:
    return str(replace(rule, weight=None if rule.weight is None else 1.0))


def split_rules(program: Program, key: Any, by: str, tables: Tables, *, greedy: bool) -> Program:
    """Replace rules by copies, one for each constant that atoms have for the variable `by`."""
    chosen = find_rules(program, key, greedy=greedy)
    copies: list[Rule] = []
    for i, rule in enumerate(program):
        copies += _copies(rule, by, tables) if i in chosen else [rule]
    return read_weighted_rules(copies)


def _copies(rule: Rule, by: str, tables: Tables) -> list[Rule]:
    """Copies of a rule with constants in the place of a variable; all its atoms must have them."""
    found = [
        tables.constants(atom.predicate, place)
        for atom in rule.atoms
        for place, term in enumerate(atom.terms)
        if term == Variable(by)
    ]
    if not found or rule.weight is None:
        why = "is hard, so it has no weight to split" if found else f"has no variable {by!r}"
        raise ArgumentError(f"the rule {str(rule)!r} {why}")
    values = sorted(set.intersection(*found))
    if not values:
        raise ArgumentError(
            f"no constant stands for {by!r} in all atoms of {str(rule)!r}: give the atoms first"
        )
    bodies = (rewritten(rule.body, {Variable(by): Constant(value)}.get) for value in values)
    return [replace(rule, body=body, text="") for body in bodies]


def rule_name(program: Program, number: int) -> str:
    """Say which rule: its number, its line and its text."""
    rule = program[number]
    return f"rule {number + 1} (line {rule.place.line}), {rule.text or str(rule)!r}"


def _warn_of_repeated(program: Program) -> None:
    first: dict[Any, int] = {}
    before = [first.setdefault(_meaning(rule), i) for i, rule in enumerate(program)]
    pairs = [f"{i + 1} as {j + 1}" for i, j in enumerate(before) if j < i]
    if pairs:
        warn(
            f"of {len(program)} rules some repeat an earlier one ({', '.join(pairs)}): all of "
            f"them are used, whereas PSL keeps the first; leave the others out to agree with it",
            RepeatedRuleWarning,
        )


def _meaning(rule: Rule) -> Any:
    """What PSL tells rules apart by: not their weights, nor the order of literals."""
    said = frozenset(rule.body.literals) if isinstance(rule.body, Clause) else rule.body
    return said, rule.squared, rule.weight is None


def _check_weight(program: Program, number: int, weight: float) -> None:
    """Refuse a weight that a rule cannot have."""
    hard = program[number].weight is None
    if hard and weight != np.inf:
        name = rule_name(program, number)
        raise ArgumentError(f"{name}, is hard, so its weight is infinite, not {weight}")
    if not hard and not 0 <= weight <= checks.MOST:
        raise ArgumentError(
            f"{rule_name(program, number)}, has the weight {Number(weight)}: weights must be "
            f"at least 0 and at most {checks.MOST:g}; to say the opposite, negate the rule"
        )


# ---- over atoms ----------------------------------------------------------------------------


class RuleSize(NamedTuple):
    """How many groundings one rule has."""

    rule: str
    groundings: int  #: hinges, or hard constraints
    broken: int = 0  #: groundings of a hard rule that observed atoms alone do not keep


class GroundProgram:
    """Tables of atoms for some rules, and the groundings of the rules over them.

    The weights of the rules may change later, see `reweigh`; the `options` are those of `Tables`.
    A `memory_limit` such as ``"2GB"`` holds for the whole program: tables spill to disk, and forms
    that take too much of it lie in files.
    """

    def __init__(self, rules: Program, *, memory_limit: str | None = None, **options: Any) -> None:
        self.rules = rules
        self._room = Room(memory_limit)
        arities = {each.name: each.arity for each in predicates_of(rules)}
        self.tables = Tables(arities, memory=self._room.of_tables, **options)
        self._grounding: Grounding | None = None

    # ---- atoms -----------------------------------------------------------------------------

    def add(
        self,
        how: str,
        data: Mapping[str, Any] | None,
        more: Mapping[str, Any] | None = None,
        header: Any = False,
    ) -> None:
        """Add atoms by predicate; `how` is the name of a method of `Tables`."""
        if not isinstance(header, int | np.bool_):  # atoms of a predicate of this name
            more = {**(more or {}), "header": header}
            header = False
        if not isinstance(data, Mapping | None):
            raise ArgumentError(
                f"{how} was given a {type(data).__name__}: name the predicate, as in "
                f"{how}({next(iter(self.tables.relations.values())).name}=...)"
            )
        for name, each in {**(data or {}), **(more or {})}.items():
            self._add(how, name, each, header)

    def _add(self, how: str, predicate: str, data: Any, header: bool) -> None:
        with interruptible():
            getattr(self.tables, how)(predicate, data, header=bool(header))
        if how != "truth":
            self._grounding = None

    def replace_rules(self, rules: Program) -> None:
        """Ground other rules, over the same predicates, on the atoms so far."""
        self.rules = rules
        self._grounding = None

    def read(self, program: ProgramFile, split: str) -> None:
        """Add the atoms of a split of a program that was read from files."""
        own = {rule.body for rule in program.more.get(split, ())}
        if not own <= {rule.body for rule in self.rules}:
            warn(
                f"the program has rules for {split} alone, which the model has not: make it from "
                f"program.rules_for({split!r}), or by RuleModel.from_file",
                SilentRuleWarning,
            )
        for declared in program.declarations:
            name = declared.predicate.name
            self.tables.declare(name, declared.predicate.arity)
            for partition, how in _METHODS.items():
                for source in declared.sources(partition, split):
                    self._add(how, name, source, False)

    def need_targets(self) -> None:
        """Refuse a program without targets."""
        if not self.tables.n_free:
            raise ArgumentError("there are no targets: say by target(...) what is to be found")

    def predicates_with_targets(self, name: str | None = None) -> list[str]:
        """Return the names of all predicates that have targets, or that of the one named."""
        if name is None:
            return [each.name for each in self.tables.relations.values() if each.n_free]
        relation = self.tables.relation(name)
        if not relation.n_free:
            raise ArgumentError(
                f"{relation.name} has no targets, so there is nothing to find: name a predicate "
                f"that was given to target(...)"
            )
        return [relation.name]

    def targets(self, predicate: str) -> tuple[Ints, dict[str, NDArray[Any]]]:
        """Return the numbers of a predicate's targets, and their arguments in named columns."""
        atoms, arguments = self.tables.arguments(predicate)
        return atoms, dict(zip(self.tables.relation(predicate).titles, arguments, strict=True))

    def blocks(
        self, predicate: str | None, category: int | Sequence[int] | None
    ) -> tuple[Ints, Ints]:
        """Return the numbers of a predicate's targets, and what is the same within a block.

        Targets of a block differ in the arguments `category` alone, counted from 0, or from -1 at
        the end; the last if not given.
        """
        name, *others = self.predicates_with_targets(predicate)
        if others:
            raise ArgumentError(f"predicate is needed to make blocks: {name} or {others[0]}")
        atoms, arguments = self.tables.arguments(name)
        arity = len(arguments)
        given = np.atleast_1d(np.asarray(-1 if category is None else category))
        if given.dtype.kind != "i" or not ((-arity <= given) & (given < arity)).all():
            raise ArgumentError(
                f"category={category!r} must be numbers of arguments of {name}: from 0 to "
                f"{arity - 1}, or negative from the end"
            )
        kept = np.setdiff1d(np.arange(arity), given % arity)
        codes = [np.unique(arguments[i], return_inverse=True)[1] for i in kept]
        return atoms, np.stack([np.zeros(len(atoms), np.int64), *codes], axis=1)

    def labels(self, predicate: str | None = None) -> Floats:
        """(targets) True values, NaN where none is known, or for those of other predicates."""
        labels = self.tables.labels()
        if predicate is not None:
            (name,) = self.predicates_with_targets(predicate)
            others = np.ones(len(labels), np.bool_)
            others[self.tables.arguments(name)[0]] = False
            labels[others] = np.nan
        return labels

    def refuse_truth(self, latent: str) -> None:
        """Raise an error if a predicate that is latent on purpose has a true value."""
        known = np.flatnonzero(~np.isnan(self.labels(latent)))
        if len(known):
            raise ArgumentError(
                f"{self.tables.relation(latent).name} is latent, but "
                f"{self.tables.names(known[:1])[0]} has a truth: leave it out of latent, or its "
                f"truth out of the data"
            )

    # ---- grounding -------------------------------------------------------------------------

    def sizes(self, *, count_broken: bool = False) -> list[RuleSize]:
        """Count the groundings of every rule without making them."""
        with interruptible():
            counts = estimate(self.rules, self.tables)
            missed = broken(self.rules, self.tables) if count_broken else [0] * len(counts)
        return list(map(RuleSize, map(str, self.rules), counts, missed))

    @property
    def grounding(self) -> Grounding:
        """The ground program, made once for the same atoms."""
        with self.tables.lock:  # the first of several threads makes it
            if self._grounding is None:
                self.need_targets()
                with interruptible(), self._room.grounding(self.tables):
                    made = ground(self.rules, self.tables, self._room.store)
                    self._warn(made)
                self._grounding = made
            return self._grounding

    def reweigh(self, rules: Program) -> None:
        """Take the same rules with other weights, in the grounding too."""
        self.rules = rules
        if self._grounding is not None:
            self._grounding = replace(self._grounding, rules=rules)

    def _warn(self, grounding: Grounding) -> None:
        silent = [rule_name(grounding.rules, i) for i in grounding.silent]
        if silent:
            empty = [each.name for each in self.tables.relations.values() if not each.size]
            why = f"; no atoms were given for {', '.join(empty)}" if empty else ""
            many = "have" if len(silent) > 1 else "has"
            told = f"{_some(silent, joint='; ')}, {many} no groundings and no effect{why}"
            warn(told, SilentRuleWarning)
        counts = broken(grounding.rules, self.tables)
        missed = [f"{rule_name(grounding.rules, i)}, {n} times" for i, n in enumerate(counts) if n]
        if missed:
            warn(
                f"observed atoms alone break {_some(missed, joint='; ')}: no values of the targets "
                f"can repair that, and these groundings are left out, as in PSL",
                BrokenRuleWarning,
            )
        unreached = grounding.unreached
        if len(unreached):
            names = self.tables.names(unreached[:_SHOWN])
            warn(
                f"no rule reaches {_some(names, len(unreached))}, so nothing determines the "
                f"value, which stays at 0.5",
                UnreachedAtomWarning,
            )

    @contextmanager
    def contradictions_named(self) -> Iterator[None]:
        """Let errors name rules and atoms instead of numbers of forms."""
        try:
            yield
        except InfeasibleError as error:
            texts = [_constraint(self.grounding, form) for form in error.forms[:_SHOWN]]
            raise InfeasibleError(
                f"the hard rules cannot all hold: {_some(texts, len(error.forms), '; ')}; give one "
                f"of them a weight, or correct the data",
                error.forms,
            ) from None


def _some(names: Sequence[str], n: int | None = None, joint: str = ", ") -> str:
    """Name the first few of many."""
    n = len(names) if n is None else n
    more = f" and {n - _SHOWN} more" if n > _SHOWN else ""
    return joint.join(names[:_SHOWN]) + more


def _constraint(grounding: Grounding, form: int) -> str:
    """Write a hard constraint with the names of its atoms."""
    hinges = grounding.hinges
    entries = slice(hinges.offsets[form], hinges.offsets[form + 1])
    names = grounding.tables.names(hinges.variables[entries])
    terms = (f"{a:+g} {name}" for a, name in zip(hinges.coefficients[entries], names, strict=True))
    sign = "=" if hinges.kinds[form] == EQUAL else "<="
    rule = grounding.rules[hinges.groups[form]]
    return f"{' '.join(terms)} {hinges.constants[form]:+g} {sign} 0 of {rule.text!r}"
