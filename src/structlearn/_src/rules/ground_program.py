"""A program of rules over atoms: what was given for its predicates, and its groundings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import (
    ArgumentError,
    BrokenRuleWarning,
    InfeasibleError,
    SilentRuleWarning,
    UnreachedAtomWarning,
    warn,
)
from structlearn._src.field.hinges import EQUAL
from structlearn._src.rules.check import check
from structlearn._src.rules.database import interruptible
from structlearn._src.rules.ground import Grounding, broken, estimate, ground
from structlearn._src.rules.load import column_names
from structlearn._src.rules.program import PARTITIONS, ProgramFile
from structlearn._src.rules.syntax import Predicate, Program
from structlearn._src.rules.tables import Tables
from structlearn._src.rules.weighted import WeightedRules, reweighted, rule_name

_SHOWN = 5  # atoms, rules or constraints named in one message
_METHODS = dict(zip(PARTITIONS, ("observe", "target", "truth"), strict=True))


class RuleSize(NamedTuple):
    """How many groundings one rule has."""

    rule: str
    groundings: int  #: hinges, or hard constraints
    broken: int = 0  #: groundings of a hard rule that observed atoms alone do not keep


class GroundProgram:
    """Tables of atoms for some rules, and the groundings of the rules over them.

    The weights of the rules may change later, see `reweigh`; for the rest see `Tables`.
    """

    def __init__(
        self,
        rules: WeightedRules,
        *,
        source: str | Path | None = None,
        n_jobs: int | None = None,
        memory: str | None = None,
    ) -> None:
        if memory is not None and not re.fullmatch(r"[0-9]+(\.[0-9]+)? ?[KMGT]i?B", str(memory)):
            raise ArgumentError(f"memory={memory!r} is no size; write it as in '2GB' or '500MB'")
        self.rules = rules
        self.columns: dict[str, list[str]] = {}  # names of the arguments of targets
        arities = {each.name: each.arity for each in rules.predicates}
        self.tables = Tables(arities, source=source, n_jobs=n_jobs, memory=memory)
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
        relation = self.tables.relation(predicate)
        given = list(data) if isinstance(data, tuple) else data
        with interruptible():
            getattr(self.tables, how)(predicate, given, header=bool(header))
        if how == "target":
            names = column_names(given, relation.arity)
            unnamed = [f"argument{i + 1}" for i in range(relation.arity)]
            self.columns.setdefault(relation.name, names or unnamed)
        if how != "truth":
            self._grounding = None

    def replace_rules(self, rules: WeightedRules) -> None:
        """Ground other rules, over the same predicates, on the atoms so far."""
        self.rules = rules
        self._grounding = None

    def read(self, program: ProgramFile, split: str) -> None:
        """Add the atoms of a split of a program that was read from files."""
        own = {rule.body for rule in program.more.get(split, ())}
        if not own <= {rule.body for rule in self.rules.program}:
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
        """Refuse to go on where nothing is to be found."""
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
        return atoms, dict(zip(self.columns[predicate], arguments, strict=True))

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
        program = self._checked()
        with interruptible():
            counts = estimate(program, self.tables)
            missed = broken(program, self.tables) if count_broken else [0] * len(counts)
        return list(map(RuleSize, self.rules.texts, counts, missed))

    @property
    def grounding(self) -> Grounding:
        """The ground program, made once for the same atoms."""
        with self.tables.lock:  # the first of several threads makes it
            if self._grounding is None:
                program = self._checked()
                self.need_targets()
                with interruptible():
                    made = ground(program, self.tables)
                    self._warn(made)
                self._grounding = made
            return self._grounding

    def reweigh(self) -> None:
        """Have the present weights of the rules in the grounding too."""
        if self._grounding is not None:
            weights = self.rules.soft_weights
            rules = tuple(map(reweighted, self._grounding.rules, weights))
            self._grounding = replace(self._grounding, rules=rules, weights=weights)

    def _checked(self) -> Program:
        """The rules, checked against what is open by now."""
        relations = self.tables.relations.values()
        known = [Predicate(each.name, each.arity, each.n_free > 0) for each in relations]
        return check(self.rules.program, known)

    def _warn(self, grounding: Grounding) -> None:
        silent = [rule_name(grounding.rules, i) for i in grounding.silent]
        if silent:
            empty = [each.name for each in self.tables.relations.values() if not each.size]
            why = f"; no atoms were given for {', '.join(empty)}" if empty else ""
            many = "ground to nothing and have" if len(silent) > 1 else "grounds to nothing and has"
            warn(f"{_some(silent, joint='; ')}, {many} no effect{why}", SilentRuleWarning)
        counts = broken(grounding.rules, self.tables)
        missed = [f"{rule_name(grounding.rules, i)}, {n} times" for i, n in enumerate(counts) if n]
        if missed:
            warn(
                f"observed atoms alone break {_some(missed, joint='; ')}: no values of the targets "
                f"can mend that, and these groundings are left out, as in PSL",
                BrokenRuleWarning,
            )
        lost = grounding.unreached
        if len(lost):
            warn(
                f"no rule reaches {_some(self.tables.names(lost[:_SHOWN]), len(lost))}, so "
                f"nothing speaks about the value, which stays at 0.5",
                UnreachedAtomWarning,
            )

    @contextmanager
    def contradictions_named(self) -> Iterator[None]:
        """Have errors speak about rules and atoms instead of numbers of forms."""
        try:
            yield
        except InfeasibleError as error:
            texts = [_constraint(self.grounding, form) for form in error.forms[:_SHOWN]]
            raise InfeasibleError(
                f"the hard rules cannot all hold: {_some(texts, len(error.forms), '; ')}; give one "
                f"of them a weight, or mend the data",
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
