"""What a rule program says, as plain data: the parser writes it, checks and grounding read it.

Places and texts do not count when two of these are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import NamedTuple


class Place(NamedTuple):
    """Where something stands in the text; both count from 1."""

    line: int
    column: int


START = Place(1, 1)


@dataclass(frozen=True)
class Variable:
    """An argument that stands for every constant."""

    name: str


@dataclass(frozen=True)
class Constant:
    """A quoted argument."""

    value: str


@dataclass(frozen=True)
class SumVariable:
    """An argument ``+B``: the atom stands for the sum over all its values."""

    name: str


Term = Variable | Constant | SumVariable


@dataclass(frozen=True)
class Atom:
    """A predicate and its arguments. Names of predicates do not depend on case."""

    predicate: str
    terms: tuple[Term, ...]
    place: Place = field(default=START, compare=False)


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
    place: Place = field(default=START, compare=False)

    @property
    def terms(self) -> tuple[Term, Term]:
        """Both sides."""
        return self.left, self.right


@dataclass(frozen=True)
class Literal:
    """An atom or a comparison, negated or not."""

    atom: Atom | Comparison
    negated: bool = False


@dataclass(frozen=True)
class Clause:
    """A logical rule as a disjunction: negated literals of the body, then those of the head.

    `body` says how many come from the body, so that the rule can be written as it was read; it has
    no meaning beyond that, and two clauses that differ in it alone are equal.
    """

    literals: tuple[Literal, ...]
    body: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Number:
    """A number."""

    value: float


@dataclass(frozen=True)
class Count:
    """``|B|``: how many values the sum over ``B`` has."""

    variable: str


Sign = OneOf["+", "-", "*", "/", "min", "max"]


@dataclass(frozen=True)
class Operation:
    """Two coefficients under ``+ - * /``, ``min`` or ``max``."""

    operator: Sign
    left: Coefficient
    right: Coefficient


Coefficient = Number | Count | Operation


@dataclass(frozen=True)
class Summand:
    """A coefficient times an atom, or the coefficient alone where there is no atom."""

    coefficient: Coefficient
    atom: Atom | None = None


@dataclass(frozen=True)
class Filter:
    """``{B: P(B) & !R(A, B)}``: which values a sum variable takes; all `literals` must hold."""

    variable: str
    literals: tuple[Literal, ...]
    place: Place = field(default=START, compare=False)


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


@dataclass(frozen=True)
class Rule:
    """One rule: a `body`, whose distance is `squared` or not; without a weight a hard constraint.

    Its `text` and its `place` in a file are for messages.
    """

    body: Clause | Linear
    weight: float | None
    squared: bool = False
    text: str = field(default="", compare=False)
    place: Place = field(default=START, compare=False)


Program = tuple[Rule, ...]
