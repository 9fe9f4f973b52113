"""From lark's tree to the syntax: one method per rule of the grammar.

The only module that imports lark; `parse` loads it when the first rule is read.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.lark import PostLex
from lark.tree import Meta

from structlearn._src.rules import syntax
from structlearn._src.rules.linear import OperandChain, Unfit, coefficient, number, operate

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_SIGNS: dict[str, syntax.Sign] = {"+": "+", "-": "-", "*": "*", "/": "/"}
_FUNCTIONS: dict[str, syntax.Sign] = {"@Min": "min", "@Max": "max"}
_COMPARISONS: dict[str, syntax.Comparator] = {
    "EQUAL": "==",
    "UNEQUAL": "!=",
    "MINUS": "!=",
    "PAIR": "%",
    "CARET": "%",
}
_ENDS = frozenset({"RPAR", "NUMBER", "COUNT", "STRING", "NAME"})
_SURE_ENDS = frozenset({"DOT", "RBRACE", "POWER"})
_DECIDING = frozenset({"RELATION", "_THEN", "_IF"})  # one of them in a rule
_OPENING = frozenset({"LPAR", "LSQB", "LBRACE"})
_CLOSING = frozenset({"RPAR", "RSQB", "RBRACE"})
_DEEPEST = 100  # brackets in each other: far from what exhausts Python's stack
_MOST_RULES = 1000  # that one rule may become: each is a query over all atoms
_STARTS = frozenset({"NAME", "LPAR", "NOT", "NUMBER", "COUNT", "STRING", "FUNCTION"})


#: A filter's condition: conjunctions of literals, of which one must hold.
Condition = list[tuple[syntax.Literal, ...]]


@dataclass(frozen=True)
class Draft:
    """A rule as read: its arithmetic still in chains, each filter as the parts of a disjunction."""

    body: syntax.Clause | tuple[OperandChain, Any, OperandChain]
    filters: tuple[list[syntax.Filter], ...]
    weight: float | None
    squared: bool
    span: slice
    place: syntax.TextPlace


class Breaks(PostLex):
    """Put a break before what must be a new rule without weight, and refuse deep nesting.

    A break follows a full stop, a power or a filter; or it starts a line although the line before
    could have ended: a coefficient and its atom on two lines need a ``*``. A minus sign at the
    start of a line goes on with the rule, unless that would give it a second relation.
    """

    always_accept = ()

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Pass the tokens on, with breaks between them."""
        before = None
        depth = 0
        decided = False  # whether the rule has its arrow or its relation
        ahead: deque[Token] = deque()
        for token in _drained(ahead, stream):
            depth += (token.type in _OPENING) - (token.type in _CLOSING)
            if depth > _DEEPEST:
                raise Unfit(f"brackets are nested more than {_DEEPEST} deep", _place(token))
            open_end = decided and depth == 0 and _may_start(token, before)
            if _starts(token, before) or (open_end and _decides_again(token, ahead, stream)):
                decided = False
                yield Token.new_borrow_pos("_BREAK", "", token)
            decided = token.type in _DECIDING or (decided and token.type != "WEIGHT")
            yield token
            before = token


def _drained(ahead: deque[Token], stream: Iterator[Token]) -> Iterator[Token]:
    """Tokens that were looked at already, then the others."""
    while True:
        if ahead:
            yield ahead.popleft()
        elif (token := next(stream, None)) is not None:
            yield token
        else:
            return


def _starts(token: Token, before: Token | None) -> bool:
    if before is None:
        return False
    if before.type in _SURE_ENDS:
        return token.type in _STARTS or token.type == "MINUS"
    new_line = before.end_line != token.line
    return token.type in _STARTS and new_line and before.type in _ENDS


def _may_start(token: Token, before: Token | None) -> bool:
    """Whether a token is a minus sign at the start of a line, behind what could have ended."""
    if before is None or token.type != "MINUS":
        return False
    return before.type in _ENDS and before.end_line != token.line


def _decides_again(before: Token, ahead: deque[Token], stream: Iterator[Token]) -> bool:
    """Look for a relation up to the next place at which a rule may begin or end."""
    for token in stream:
        ahead.append(token)
        if token.type in _SURE_ENDS or token.type == "WEIGHT":
            return False
        if _starts(token, before) or _may_start(token, before):
            return False
        if token.type in _DECIDING:
            return True
        before = token
    return False


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
        filters = tuple(part for part in rest if isinstance(part, list))
        value = number(float(re.sub(r"[\s:]", "", weight)), _place(weight)).value
        return _draft(meta, body, filters, value, power == "^2")

    @v_args(meta=True, inline=True)
    def hard(self, meta: Meta, body: Any, *filters: list[syntax.Filter]) -> Draft:
        return _draft(meta, body, filters, None, False)

    def clause(self, body: list[syntax.Literal], head: list[syntax.Literal]) -> syntax.Clause:
        negated = [syntax.Literal(literal.atom, not literal.negated) for literal in body]
        return syntax.Clause(tuple(_unique([*negated, *head])), len(negated))

    def reversed(self, head: list[syntax.Literal], body: list[syntax.Literal]) -> syntax.Clause:
        return self.clause(body, head)

    def disjunction(self, head: list[syntax.Literal]) -> syntax.Clause:
        return self.clause([], head)

    def body(self, *literals: syntax.Literal) -> list[syntax.Literal]:
        return _once(literals)

    head = body

    def literal(self, *parts: Any) -> syntax.Literal:
        return syntax.Literal(parts[-1], negated=len(parts) % 2 == 0)

    def linear(
        self, left: OperandChain, relation: Token, right: OperandChain
    ) -> tuple[OperandChain, str, OperandChain]:
        return left, str(relation), right

    def chain(self, *parts: Any) -> OperandChain:
        flat = [piece for part in parts for piece in (part if isinstance(part, tuple) else (part,))]
        return OperandChain(tuple(flat[::2]), tuple(_SIGNS[sign] for sign in flat[1::2]))

    def scaled(self, factor: Any, atom: syntax.Atom) -> tuple[Any, str, syntax.Atom]:
        return factor, "*", atom

    group = chain

    def number(self, *parts: Token) -> syntax.Number:
        return number(float("".join(parts)), _place(parts[-1]))

    def count(self, bars: Token) -> syntax.Count:
        return syntax.Count(bars.strip("| \t\r\n"))

    def function(self, name: Token, left: OperandChain, right: OperandChain) -> syntax.Coefficient:
        return operate(_FUNCTIONS[name], coefficient(left), coefficient(right))

    def filter(self, name: Token, condition: Condition) -> list[syntax.Filter]:
        return [syntax.Filter(str(name), literals, _place(name)) for literals in condition]

    def either(self, *parts: Condition) -> Condition:
        return list(itertools.chain(*parts))

    def conjunct(self, *parts: Condition) -> Condition:
        _refuse_many(parts, parts[0][0][0].atom.place)
        return [tuple(itertools.chain(*choice)) for choice in itertools.product(*parts)]

    def unit(self, *parts: Any) -> Condition:
        return [(self.literal(*parts),)]

    def atom(self, name: Token, *terms: syntax.Term) -> syntax.Atom:
        return syntax.Atom(str(name), terms, _place(name))

    def summed(self, _: Token, name: Token) -> syntax.SumVariable:
        return syntax.SumVariable(_name(name))

    @v_args(meta=True, inline=True)
    def comparison(
        self, meta: Meta, left: syntax.Term, operator: Token, right: syntax.Term
    ) -> syntax.Comparison:
        place = syntax.TextPlace(meta.line, meta.column)
        return syntax.Comparison(_COMPARISONS[operator.type], left, right, place)

    def variable(self, name: Token) -> syntax.Variable:
        return syntax.Variable(_name(name))

    def constant(self, quoted: Token) -> syntax.Constant:
        return syntax.Constant(
            re.sub(r"\\(.)", lambda hit: _ESCAPES.get(hit[1], hit[1]), quoted[1:-1])
        )


def _refuse_many(parts: Sequence[Sequence[Any]], place: syntax.TextPlace) -> None:
    """Refuse filters whose disjunctions would make too many rules, before they are made."""
    many = math.prod(map(len, parts))
    if many > _MOST_RULES:
        raise Unfit(
            f"the disjunctions in filters make {many} rules of one, and at most {_MOST_RULES} are "
            f"made: give what a filter says as a predicate of its own",
            place,
        )


def _draft(
    meta: Meta,
    body: Any,
    filters: tuple[list[syntax.Filter], ...],
    weight: float | None,
    squared: bool,
) -> Draft:
    if filters:
        _refuse_many(filters, filters[0][0].place)
    span = slice(meta.start_pos, meta.end_pos)
    return Draft(body, filters, weight, squared, span, syntax.TextPlace(meta.line, meta.column))


def _once(literals: tuple[syntax.Literal, ...]) -> list[syntax.Literal]:
    """Count what is written twice once; PSL refuses where only one thing is left."""
    unique = _unique(literals)
    if len(unique) == 1 < len(literals):
        raise Unfit("the same literal is written twice: write it once", literals[1].atom.place)
    return unique


def _unique(literals: Iterable[syntax.Literal]) -> list[syntax.Literal]:
    first: dict[syntax.Literal, syntax.Literal] = {}
    for literal in literals:
        first.setdefault(_key(literal), literal)
    return list(first.values())


def _key(literal: syntax.Literal) -> syntax.Literal:
    if isinstance(literal.atom, syntax.Comparison):
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


def _place(token: Token) -> syntax.TextPlace:
    return syntax.TextPlace(token.line or 1, token.column or 1)
