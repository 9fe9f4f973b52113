"""A program of rules with its weights, its atoms and its groundings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import (
    ArgumentError,
    SilentRuleWarning,
    UnreachedAtomWarning,
    did_you_mean,
    warn,
)
from structlearn._src.common.watch import Progress
from structlearn._src.estimators.base import Estimator
from structlearn._src.estimators.fields.frames import column_names
from structlearn._src.estimators.fields.hinge_field import HingeField
from structlearn._src.estimators.run import threads
from structlearn._src.field.admm import HingeResult
from structlearn._src.rules.check import check
from structlearn._src.rules.ground import Grounding, estimate, ground
from structlearn._src.rules.ground import broken as count_broken
from structlearn._src.rules.program import PARTITIONS, ProgramFile, read_program
from structlearn._src.rules.syntax import Predicate, Program, Rule
from structlearn._src.rules.tables import Tables
from structlearn._src.rules.words import (
    SHOWN,
    bare,
    check_weight,
    predicates,
    read_rules,
    rule_name,
    some,
    weighted,
)
from structlearn._src.rules.write import write

_ADDERS = dict(zip(PARTITIONS, ("observe", "target", "truth"), strict=True))


class Size(NamedTuple):
    """What one rule comes to."""

    rule: str
    groundings: int  #: hinges, or hard constraints
    broken: int = 0  #: groundings of a hard rule that observed atoms alone do not keep


class RuleProgram(Estimator):
    """Rules with weights, over atoms: what a model of rules is made of."""

    def __init__(
        self,
        rules: str | Sequence[str | Rule],
        *,
        tol: float = 1e-6,
        max_iter: int = 5000,
        greedy: bool = False,
        source: str | Path | None = None,
        n_jobs: int | None = None,
        memory: str | None = None,
        time_limit: float | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.rules, self.greedy = rules, greedy
        self.tol, self.max_iter = tol, max_iter
        self.source, self.n_jobs, self.memory = source, n_jobs, memory
        self.time_limit, self.progress = time_limit, progress
        self._tables: Tables | None
        self._grounding: Grounding | None
        self._field: HingeField | None
        self._last: HingeResult | Floats | None  # where inference begins
        self._program = read_rules(rules, greedy)
        self._weights = np.array([rule.weight or 0.0 for rule in self._program])
        self.clear()

    @classmethod
    def from_file(
        cls,
        model: str | Path,
        data: str | Path | Mapping[str, str | Path] | None = None,
        *,
        split: str = "infer",
        greedy: bool = False,
        **parameters: Any,
    ) -> Self:
        """Read rules and atoms from files of PSL.

        Parameters
        ----------
        model : path
            A JSON file of PSL 2.4, or rules in a file that ends in ``.psl``.
        data : path or mapping of split to path, optional
            The ``.data`` files of a ``.psl`` file; those beside it if not given.
        split : {"infer", "learn", "validation", "all"}
            Which data, beside those for all splits.
        greedy, **parameters
            Of the model, see above.
        """
        program = read_program(model, data, greedy=greedy)
        return cls(program.rules, greedy=greedy, **parameters).read(program, split)

    # ---- parameters, as scikit-learn has them ----------------------------------------------

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; new rules begin anew, without atoms."""
        super().set_params(**parameters)
        if parameters.keys() & {"rules", "greedy", "source"}:
            self.__init__(**self.get_params())  # type: ignore[misc]
        self._field = None
        return self

    # ---- atoms -----------------------------------------------------------------------------

    def observe(
        self, data: Mapping[str, Any] | None = None, /, *, header: bool = False, **atoms: Any
    ) -> Self:
        """Add atoms with known values: columns of arguments, and perhaps one of values, else 1.

        Parameters
        ----------
        data : mapping, optional
            Data by predicate; the same as keywords.
        header : bool, default=False
            Skip the first line of text files.
        **atoms : frame, rows, path or paths, or name of a table
            By predicate: a frame of pandas, polars or Arrow; a list of rows; files with commas
            (``.csv``), tabs (any other) or Parquet; the name of a table in `source`.
        """
        return self._add("observe", data, atoms, header)

    def target(
        self, data: Mapping[str, Any] | None = None, /, *, header: bool = False, **atoms: Any
    ) -> Self:
        """Add atoms whose values are to be found; data as in `observe`, without values."""
        return self._add("target", data, atoms, header)

    def truth(
        self, data: Mapping[str, Any] | None = None, /, *, header: bool = False, **atoms: Any
    ) -> Self:
        """Add true values of targets, for `fit` and `score`; data as in `observe`."""
        return self._add("truth", data, atoms, header)

    def read(self, program: ProgramFile, split: str = "infer") -> Self:
        """Take the atoms of a split of a program that was read from files, in place of others."""
        self.clear()
        for declared in program.declarations:
            name = declared.predicate.name
            self.tables.declare(name, declared.predicate.arity)
            for partition, add in _ADDERS.items():
                for source in declared.sources(partition, split):
                    self._add(add, {name: source}, {}, False)
        return self

    def clear(self) -> Self:
        """Forget all atoms; the weights stay."""
        self._tables = self._grounding = self._field = self._last = None
        self._columns: dict[str, list[str]] = {}
        return self

    def _add(
        self, how: str, data: Mapping[str, Any] | None, more: Mapping[str, Any], header: bool
    ) -> Self:
        if not isinstance(data, Mapping | None):
            raise ArgumentError(
                f"{how} was given a {type(data).__name__}: name the predicate, as in "
                f"{how}({next(iter(self.tables.relations.values())).name}=...)"
            )
        for name, each in {**(data or {}), **more}.items():
            relation = self.tables.relation(name)
            given = list(each) if isinstance(each, tuple) else each
            with _database():
                getattr(self.tables, how)(name, given, header=header)
            if how == "target":
                names = column_names(given, relation.arity)
                self._columns.setdefault(relation.name, names or _unnamed(relation.arity))
            if how != "truth":
                self._forget()
        return self

    def _forget(self) -> None:
        """Ground anew; of what was inferred only the values are still worth something."""
        self._field = self._grounding = None
        if isinstance(self._last, HingeResult):
            self._last = self._last.y

    @property
    def tables(self) -> Tables:
        """The atoms, in DuckDB."""
        if self._tables is None:
            _check_memory(self.memory)
            arities = {each.name: each.arity for each in predicates(self._program)}
            self._tables = Tables(
                arities, source=self.source, n_jobs=threads(self.n_jobs), memory=self.memory
            )
        return self._tables

    # ---- grounding -------------------------------------------------------------------------

    def estimate(self, *, broken: bool = False) -> list[Size]:
        """Count the groundings of every rule without making them.

        Parameters
        ----------
        broken : bool, default=False
            Also count the groundings of hard rules that observed atoms alone do not keep. No values
            of the targets can mend them, and inference leaves them out, as PSL does. It takes
            longer, as all observed atoms are joined.
        """
        program = self._checked()
        with _database():
            counts = estimate(program, self.tables)
            missed = count_broken(program, self.tables) if broken else [0] * len(counts)
        return list(map(Size, self.rules_, counts, missed))

    @property
    def grounding_(self) -> Grounding:
        """The ground program, made once for the same atoms."""
        if self._grounding is None:
            program = self._checked()
            self._need_targets()
            with _database():
                self._grounding = ground(program, self.tables)
            self._warn(self._grounding)
        return self._grounding

    def _need_targets(self) -> None:
        if not self.tables.n_free:
            raise ArgumentError("there are no targets: say by target(...) what is to be found")

    def _ground_field(self) -> HingeField:
        """Hinges and weights of now; made once for the same atoms and parameters."""
        if self._field is None:
            hinges = self.grounding_.hinges
            self._field = HingeField.of(
                hinges,
                self._weights,
                tol=self.tol,
                max_iter=self.max_iter,
                n_jobs=self.n_jobs,
                time_limit=self.time_limit,
                progress=self.progress,
            )
            self._field.start = _resume(self._last, hinges.n_variables)
        return self._field

    def _checked(self) -> Program:
        """The rules with the weights of now, checked against what is open now."""
        relations = self.tables.relations.values()
        return check(
            tuple(map(weighted, self._program, self._weights)),
            [Predicate(each.name, each.arity, each.n_free > 0) for each in relations],
        )

    def _warn(self, grounding: Grounding) -> None:
        silent = [rule_name(grounding.rules, i) for i in grounding.silent]
        if silent:
            empty = [each.name for each in self.tables.relations.values() if not each.size]
            why = f"; no atoms were given for {', '.join(empty)}" if empty else ""
            warn(f"{some(silent)} grounds to nothing and has no effect{why}", SilentRuleWarning)
        lost = grounding.unreached
        if len(lost):
            warn(
                f"no rule reaches {some(self.tables.names(lost[:SHOWN]), len(lost))}, so "
                f"nothing speaks about the value, which stays at 0.5",
                UnreachedAtomWarning,
            )

    # ---- weights ---------------------------------------------------------------------------

    @property
    def weights_(self) -> Floats:
        """(rules) Weights, infinite for hard rules."""
        hard = [rule.weight is None for rule in self._program]
        return np.where(hard, np.inf, self._weights)

    @weights_.setter
    def weights_(self, weights: Any) -> None:
        new = self.weights_
        if isinstance(weights, Mapping):
            for key, value in weights.items():
                new[self._numbers(key)] = _numbers(value)
        else:
            new = _numbers(weights)
        if new.shape != (len(self._program),):
            raise ArgumentError(
                f"weights of shape {new.shape} were given for {len(self._program)} rules: give one "
                f"for each, infinite for hard rules"
            )
        for i, rule in enumerate(self._program):
            check_weight(rule_name(self._program, i), rule, new[i])
        self._take(np.where(np.isinf(new), 0.0, new))

    def _take(self, weights: Floats) -> None:
        """Have these weights, 0 for hard rules, everywhere."""
        self._weights = weights
        if self._grounding is not None:
            rules = tuple(map(weighted, self._grounding.rules, weights))
            self._grounding = replace(self._grounding, rules=rules, weights=weights)
        if self._field is not None:
            self._field.weights_ = weights

    def _numbers(self, key: Any) -> list[int]:
        """Numbers of a rule, given by that or by its text, with any weight.

        A text with a disjunction in its filter is several rules.
        """
        if isinstance(key, str):
            texts, wanted = map(bare, self._program), set(map(bare, read_rules(key, self.greedy)))
            found = [i for i, text in enumerate(texts) if text in wanted]
            if not found:
                raise ArgumentError(f"there is no rule {key!r}{did_you_mean(key, self.rules_)}")
            return found
        if checks.integer("the number of a rule", key) >= len(self._program):
            n = len(self._program)
            raise ArgumentError(f"there is no rule {key}: the {n} rules count from 0")
        return [int(key)]

    @property
    def rules_(self) -> list[str]:
        """The rules as text, with the weights of now."""
        return [write(rule) for rule in map(weighted, self._program, self._weights)]


def _numbers(weights: Any) -> Floats:
    try:
        return np.array(weights, np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"the weights {weights!r} are not all numbers") from None


def _unnamed(arity: int) -> list[str]:
    return [f"argument{i + 1}" for i in range(arity)]


def _resume(last: HingeResult | Floats | None, n_variables: int) -> HingeResult | Floats | None:
    """Where inference begins: targets that were added since then in the middle."""
    if last is None or isinstance(last, HingeResult):
        return last
    return np.append(last, np.full(n_variables - len(last), 0.5))


@contextmanager
def _database() -> Iterator[None]:
    """Word what stops DuckDB as everything else does."""
    import duckdb

    try:
        yield
    except RuntimeError as error:
        if "interrupted" in str(error):
            raise KeyboardInterrupt from None
        raise
    except duckdb.OutOfMemoryException:
        raise MemoryError(
            "the groundings need more memory than there is, or than memory= allows; estimate() "
            "says which rules are large"
        ) from None


def _check_memory(given: Any) -> None:
    if given is not None and not re.fullmatch(r"[0-9]+(\.[0-9]+)? ?[KMGT]i?B", str(given)):
        raise ArgumentError(f"memory={given!r} is no size; write it as in '2GB' or '500MB'")
