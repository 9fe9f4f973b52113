"""From lark's tree to the syntax: one method per rule of the grammar.

The only module that imports lark; `parse` loads it when the first rule is read.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.lark import PostLex
from lark.tree import Meta

from structlearn._src.rules.linear import OperandChain, Unfit, coefficient, number, operate
from structlearn._src.rules.syntax import (
    Atom,
    Both,
    Clause,
    Coefficient,
    Comparator,
    Comparison,
    Condition,
    Constant,
    Count,
    Either,
    Filter,
    Literal,
    Not,
    Number,
    Place,
    Sign,
    SumVariable,
    Term,
    Variable,
)

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_SIGNS: dict[str, Sign] = {
    "+": "+",
    "-": "-",
    "*": "*",
    "/": "/",
    "@Min": "min",
    "@Max": "max",
}
_COMPARISONS: dict[str, Comparator] = {
    "==": "==",
    "!=": "!=",
    "~=": "!=",
    "-": "!=",
    "%": "%",
    "^": "%",
}
_ENDS = frozenset({"RPAR", "NUMBER", "COUNT", "STRING", "NAME"})
_SURE_ENDS = frozenset({"DOT", "RBRACE", "POWER"})
_STARTS = frozenset({"NAME", "LPAR", "NOT", "NUMBER", "COUNT", "STRING", "FUNCTION"})


@dataclass(frozen=True)
class Draft:
    """A rule as read: its arithmetic still in chains, its filters with their disjunctions."""

    body: Clause | tuple[OperandChain, Any, OperandChain]
    filters: tuple[Filter, ...]
    weight: float | None
    squared: bool
    span: slice
    place: Place


class Breaks(PostLex):
    """Put a break before what must be a new rule without weight.

    It follows a full stop, a power or a filter; or it starts a line although the line before could
    have ended: a coefficient and its atom on two lines need a ``*``.
    """

    always_accept = ()

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Pass the tokens on, with breaks between them."""
        before = None
        for token in stream:
            if before is not None and token.type in _STARTS and _may_end(before, token):
                yield Token.new_borrow_pos("_BREAK", "", token)
            yield token
            before = token


def _may_end(before: Token, token: Token) -> bool:
    new_line = before.end_line != token.line
    return before.type in _SURE_ENDS or (new_line and before.type in _ENDS)


@functools.cache
def parser() -> Lark:
    """Build the parser, once in a process."""
    grammar = resources.files("structlearn._src.rules").joinpath("grammar.lark").read_text("utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        postlex=Breaks(),
        propagate_positions=True,
        maybe_placeholders=False,
    )


def drafts(text: str) -> tuple[Draft, ...]:
    """Read the rules of a text, not yet folded."""
    return _Build().transform(parser().parse(text))


@v_args(inline=True)
class _Build(Transformer[Token, tuple[Draft, ...]]):
    """Make drafts of a tree: one method per rule of the grammar."""

    def start(self, *drafts: Draft) -> tuple[Draft, ...]:
        return drafts

    @v_args(meta=True, inline=True)
    def weighted(self, meta: Meta, weight: Token, body: Any, *rest: Any) -> Draft:
        power = rest[0] if rest and isinstance(rest[0], Token) else "^1"
        filters = tuple(part for part in rest if isinstance(part, Filter))
        value = number(float(weight.rstrip(": \t\r\n")), _place(weight)).value
        return _draft(meta, body, filters, value, power == "^2")

    @v_args(meta=True, inline=True)
    def hard(self, meta: Meta, body: Any, *filters: Filter) -> Draft:
        return _draft(meta, body, filters, None, False)

    def clause(self, body: list[Literal], head: list[Literal]) -> Clause:
        return _clause(body, head)

    def reversed(self, head: list[Literal], body: list[Literal]) -> Clause:
        return _clause(body, head)

    def disjunction(self, head: list[Literal]) -> Clause:
        return _clause([], head)

    def body(self, *literals: Literal) -> list[Literal]:
        return _once(literals)

    def head(self, *literals: Literal) -> list[Literal]:
        return _once(literals)

    def literal(self, *parts: Any) -> Literal:
        return Literal(parts[-1], negated=len(parts) > 1)

    def linear(
        self, left: OperandChain, relation: Token, right: OperandChain
    ) -> tuple[OperandChain, str, OperandChain]:
        return left, str(relation), right

    def chain(self, *parts: Any) -> OperandChain:
        flat = [piece for part in parts for piece in (part if isinstance(part, tuple) else (part,))]
        return OperandChain(tuple(flat[::2]), tuple(_SIGNS[sign] for sign in flat[1::2]))

    def scaled(self, factor: Any, atom: Atom) -> tuple[Any, str, Atom]:
        return factor, "*", atom

    group = chain

    def number(self, *parts: Token) -> Number:
        return number(float("".join(parts)), _place(parts[-1]))

    def count(self, bars: Token) -> Count:
        return Count(bars.strip("| \t\r\n"))

    def function(self, name: Token, left: OperandChain, right: OperandChain) -> Coefficient:
        return operate(_SIGNS[name], coefficient(left), coefficient(right))

    def filter(self, name: Token, condition: Condition) -> Filter:
        return Filter(str(name), condition, _place(name))

    def either(self, *inner: Condition) -> Condition:
        return Either(inner)

    def conjunct(self, *inner: Condition) -> Condition:
        return inner[0] if len(inner) == 1 else Both(inner)

    def not_atom(self, _: Token, atom: Atom) -> Condition:
        return Not(atom)

    def atom(self, name: Token, *terms: Term) -> Atom:
        return Atom(str(name), terms, _place(name))

    def summed(self, _: Token, name: Token) -> SumVariable:
        return SumVariable(_name(name))

    @v_args(meta=True, inline=True)
    def comparison(self, meta: Meta, left: Term, operator: Token, right: Term) -> Comparison:
        place = Place(meta.line, meta.column)
        return Comparison(_COMPARISONS[operator], left, right, place)

    def variable(self, name: Token) -> Variable:
        return Variable(_name(name))

    def constant(self, quoted: Token) -> Constant:
        return Constant(re.sub(r"\\(.)", lambda hit: _ESCAPES.get(hit[1], hit[1]), quoted[1:-1]))


def _draft(
    meta: Meta, body: Any, filters: tuple[Filter, ...], weight: float | None, squared: bool
) -> Draft:
    span = slice(meta.start_pos, meta.end_pos)
    return Draft(body, filters, weight, squared, span, Place(meta.line, meta.column))


def _clause(body: list[Literal], head: list[Literal]) -> Clause:
    negated = [Literal(literal.atom, not literal.negated) for literal in body]
    return Clause(tuple(_unique([*negated, *head])), len(negated))


def _once(literals: tuple[Literal, ...]) -> list[Literal]:
    """Count what is written twice once; PSL refuses where only one thing is left."""
    unique = _unique(literals)
    if len(unique) == 1 < len(literals):
        raise Unfit("the same literal is written twice: write it once", literals[1].atom.place)
    return unique


def _unique(literals: Iterable[Literal]) -> list[Literal]:
    first: dict[Literal, Literal] = {}
    for literal in literals:
        first.setdefault(_key(literal), literal)
    return list(first.values())


def _key(literal: Literal) -> Literal:
    if isinstance(literal.atom, Comparison):
        return literal
    return replace(literal, atom=replace(literal.atom, predicate=literal.atom.predicate.lower()))


def _name(token: Token) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", token):
        raise Unfit(
            f"{str(token)!r} cannot name a variable: it must start with a letter and go on with "
            f"letters, digits and '_'",
            _place(token),
        )
    return str(token)


def _place(token: Token) -> Place:
    return Place(token.line or 1, token.column or 1)
