"""What a rule program says, as plain data: the parser makes it, checks and grounding read it.

Places and texts do not count when two of these are compared. ``str`` writes each of them in PSL's
language, so that `parse` reads the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, NamedTuple
from typing import Literal as OneOf


class TextPlace(NamedTuple):
    """Where something stands in the text; both count from 1."""

    line: int
    column: int


START = TextPlace(1, 1)
_ESCAPED = {"\n": "n", "\t": "t", "\r": "r", "\b": "b", "\f": "f", "\\": "\\", "'": "'"}


@dataclass(frozen=True)
class Variable:
    """An argument that stands for every constant."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Constant:
    """A quoted argument."""

    value: str

    def __str__(self) -> str:
        letters = (f"\\{_ESCAPED[c]}" if c in _ESCAPED else c for c in self.value)
        return f"'{''.join(letters)}'"


@dataclass(frozen=True)
class SumVariable:
    """An argument ``+B``: the atom stands for the sum over all its values."""

    name: str

    def __str__(self) -> str:
        return f"+{self.name}"


Term = Variable | Constant | SumVariable


def variables_of(terms: Iterable[Term]) -> list[str]:
    """Name the variables among terms, each once, without those that are summed."""
    return list(dict.fromkeys(term.name for term in terms if isinstance(term, Variable)))


@dataclass(frozen=True)
class Atom:
    """A predicate and its arguments. Names of predicates do not depend on case."""

    predicate: str
    terms: tuple[Term, ...]
    place: TextPlace = field(default=START, compare=False)

    @property
    def summed(self) -> list[str]:
        """Names of the variables over which the atom is summed."""
        return [term.name for term in self.terms if isinstance(term, SumVariable)]

    @property
    def names(self) -> list[str]:
        """Names of all its variables, the summed ones last."""
        return variables_of(self.terms) + self.summed

    def __str__(self) -> str:
        return f"{self.predicate}({', '.join(map(str, self.terms))})"


Comparator = OneOf["==", "!=", "%"]


@dataclass(frozen=True)
class Predicate:
    """A declared predicate; open where some of its atoms are to be inferred."""

    name: str
    arity: int
    open: bool = False


@dataclass(frozen=True)
class Comparison:
    """``==``, ``!=``, or ``%``, which takes every unordered pair once; decided in grounding."""

    operator: Comparator
    left: Term
    right: Term
    place: TextPlace = field(default=START, compare=False)

    @property
    def terms(self) -> tuple[Term, Term]:
        """Both sides."""
        return self.left, self.right

    def __str__(self) -> str:
        return f"({self.left} {self.operator} {self.right})"


@dataclass(frozen=True)
class Literal:
    """An atom or a comparison, negated or not."""

    atom: Atom | Comparison
    negated: bool = False

    def __str__(self) -> str:
        return f"{'!' if self.negated else ''}{self.atom}"


@dataclass(frozen=True)
class Clause:
    """A logical rule as a disjunction: negated literals of the body, then those of the head.

    `body` says how many come from the body, so that the rule can be written as it was read; it has
    no meaning beyond that, and two clauses that differ in it alone are equal.
    """

    literals: tuple[Literal, ...]
    body: int = field(default=0, compare=False)

    def __str__(self) -> str:
        cut = self.body if self.body < len(self.literals) else 0  # without a head: a disjunction
        body = [str(Literal(each.atom, not each.negated)) for each in self.literals[:cut]]
        arrow = f"{' & '.join(body)} -> " if body else ""
        return arrow + " | ".join(map(str, self.literals[cut:]))


@dataclass(frozen=True)
class Number:
    """A number."""

    value: float

    def __str__(self) -> str:
        text = repr(float(self.value) + 0.0).replace("e+", "e")  # PSL knows no e+5 and no -0
        return text.removesuffix(".0")


@dataclass(frozen=True)
class Count:
    """``|B|``: how many values the sum over ``B`` has."""

    variable: str

    def __str__(self) -> str:
        return f"|{self.variable}|"


Sign = OneOf["+", "-", "*", "/", "min", "max"]


@dataclass(frozen=True)
class Operation:
    """Two coefficients under ``+ - * /``, ``min`` or ``max``."""

    operator: Sign
    left: Coefficient
    right: Coefficient

    @property
    def strength(self) -> int:
        """How strongly the operator binds; functions have brackets of their own."""
        return {"+": 1, "-": 1, "*": 2, "/": 2}.get(self.operator, 3)

    def __str__(self) -> str:
        if self.operator in ("min", "max"):
            return f"@{self.operator.title()}[{self.left}, {self.right}]"
        left = _operand(self.left, self.strength)
        return f"{left} {self.operator} {_operand(self.right, self.strength + 1)}"


Coefficient = Number | Count | Operation


def _operand(factor: Coefficient, strength: int) -> str:
    """Write a coefficient, in parentheses where it binds weaker than what is around it."""
    weak = isinstance(factor, Operation) and factor.strength < strength
    return f"({factor})" if weak else str(factor)


@dataclass(frozen=True)
class Summand:
    """A coefficient times an atom, or the coefficient alone where there is no atom."""

    coefficient: Coefficient
    atom: Atom | None = None

    def text(self, guard: bool = False) -> str:
        """Write it; with `guard` without a minus sign at its beginning."""
        if self.atom is None:
            return f"({self.coefficient})"
        if self.coefficient == Number(1.0):
            return str(self.atom)
        factor = _operand(self.coefficient, 2)
        factor = f"({factor})" if guard and factor.startswith("-") else factor
        return f"{factor} * {self.atom}"

    def next_text(self) -> str:
        """Write it behind others, with its sign."""
        factor = self.coefficient
        if isinstance(factor, Number) and factor.value < 0:
            return f" - {Summand(Number(-factor.value), self.atom).text()}"
        return f" + {self.text()}"


@dataclass(frozen=True)
class Filter:
    """``{B: P(B) & !R(A, B)}``: which values a sum variable takes; all `literals` must hold."""

    variable: str
    literals: tuple[Literal, ...]
    place: TextPlace = field(default=START, compare=False)

    def __str__(self) -> str:
        return f"{{{self.variable}: {' & '.join(map(str, self.literals))}}}"


Inequality = OneOf["<=", ">=", "="]


@dataclass(frozen=True)
class Linear:
    """An arithmetic rule: a sum, everything on its left, compared with 0.

    The parser puts the atoms first, in the order of the text and one summand for each mention, and
    then all constants as one, if they are not 0. Its comparisons, `tests`, add nothing to the sum:
    they say which groundings there are.
    """

    summands: tuple[Summand, ...]
    operator: Inequality
    filters: tuple[Filter, ...] = ()
    tests: tuple[Comparison, ...] = ()

    def text(self, guard: bool = False) -> str:
        """Write it without its filters: atoms left, a number right.

        With `guard` it does not start with a minus sign, which would belong to a rule before it.
        """
        *front, last = self.summands
        right = Number(0.0)
        if last.atom is None and isinstance(last.coefficient, Number):
            right = Number(-last.coefficient.value)
        else:
            front.append(last)
        left = front[0].text(guard) + "".join(each.next_text() for each in front[1:])
        tests = "".join(f" + {test}" for test in self.tests)
        return f"{left}{tests} {self.operator} {right}"


@dataclass(frozen=True)
class Rule:
    """One rule: a `body`, whose distance is `squared` or not; without a weight a hard constraint.

    Its `text` and its `place` in a file are for messages.
    """

    body: Clause | Linear
    weight: float | None
    squared: bool = False
    text: str = field(default="", compare=False)
    place: TextPlace = field(default=START, compare=False)

    @property
    def atoms(self) -> Iterator[Atom]:
        """The atoms of the rule, those of its filters last; comparisons are none."""
        parts: Iterable[Literal | Summand]
        if isinstance(self.body, Clause):
            parts = self.body.literals
        else:
            inside = (each for clause in self.body.filters for each in clause.literals)
            parts = (*self.body.summands, *inside)
        return (each.atom for each in parts if isinstance(each.atom, Atom))

    def __str__(self) -> str:
        filters = ""
        if isinstance(self.body, Linear):
            body = self.body.text(guard=self.weight is None)
            filters = "".join(f" {each}" for each in self.body.filters)
        else:
            body = str(self.body)
        if self.weight is None:
            return f"{body} .{filters}"
        return f"{Number(self.weight)}: {body}{' ^2' if self.squared else ''}{filters}"


Program = tuple[Rule, ...]


def rewritten(part: Any, change: Callable[[Any], Any]) -> Any:
    """Return a rule, or a part of one, with parts inside replaced by what `change` makes of them.

    It returns None for those that stay.
    """
    if isinstance(part, tuple) and not isinstance(part, TextPlace):
        return tuple(rewritten(each, change) for each in part)
    if is_dataclass(part) and not isinstance(part, type):
        inner = {each.name: rewritten(getattr(part, each.name), change) for each in fields(part)}
        part = replace(part, **inner)
    return part if (new := change(part)) is None else new
