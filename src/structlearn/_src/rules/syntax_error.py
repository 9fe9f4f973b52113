"""What went wrong in a text that is no program, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from structlearn._src.common.errors import RuleError

if TYPE_CHECKING:
    from lark.exceptions import UnexpectedInput


class ParseContext(NamedTuple):
    """Where reading stopped: what came, what could have come, and the text on both sides."""

    kind: str
    value: str
    expected: frozenset[str]
    before: str
    after: str

    @property
    def after_rule(self) -> bool:
        """Whether the rule could have ended here."""
        return "WEIGHT" in self.expected and "NAME" not in self.expected


_NAMES = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a quoted constant",
    "COUNT": "a count |B|",
    "WEIGHT": "a weight",
    "POWER": "^2",
    "RELATION": "<=, >= or =",
    "EQUAL": "==",
    "UNEQUAL": "!=",
    "PAIR": "%",
    "NOT": "!",
    "PLUS": "+",
    "MINUS": "-",
    "TIMES": "*",
    "OVER": "/",
    "_THEN": "->",
    "_IF": "<-",
    "_AND": "&",
    "_OR": "|",
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "[",
    "RSQB": "]",
    "LBRACE": "{",
    "RBRACE": "}",
    "COMMA": ",",
    "COLON": ":",
    "DOT": ".",
    "$END": "the end",
}
_NO_STOP = (
    "a rule has neither a weight nor a full stop: write a weight before it, as in '1: ...', "
    "or ' .' behind it"
)
_LOGIC = ("_THEN", "_IF", "_AND", "_OR")
_NEXT = ("$END", "WEIGHT", "_BREAK")
_SIGNS = {"→": "->", "⇒": "->", "←": "<-", "∧": "&", "¬": "!", "≤": "<=", "≥": ">="}
_ARROW = r"(->|>>|<-|<<)"
_WORDS = r"(?i)\b(and|or|not)"
_LONG = r"""(?s)('[^'\n]*\n[^']*'|"[^"\n]*\n[^"]*")$"""  # a constant over several lines

# The first that fits words the error.
_HINTS: tuple[tuple[Callable[[ParseContext], bool], str], ...] = (
    (
        lambda s: s.value in ("'", '"') or bool(re.search(_LONG, s.before)),
        "a quote is not closed, here or before",
    ),
    (
        lambda s: bool(re.search(r"\d[eE]$", s.before)) and s.kind == "PLUS",
        "a number has a '+' in its exponent: leave it out, as in 1E3",
    ),
    (
        lambda s: bool(re.match(r"\.\d", s.after)),
        "a number starts with its point: write a digit before it, as in 0.5",
    ),
    (lambda s: s.kind in _NEXT and "DOT" in s.expected, _NO_STOP),
    (
        lambda s: s.kind == "WEIGHT" and s.before.endswith(":"),
        "a rule has two weights: keep one",
    ),
    (
        lambda s: s.kind == "DOT" and s.after_rule,
        "a rule has both a weight and a full stop: drop the full stop, or the weight to make the "
        "rule hard",
    ),
    (
        lambda s: s.after.startswith("=>") or (s.before.endswith("=") and s.value == ">"),
        "'=>' is no arrow: write '->'",
    ),
    (
        lambda s: s.before.endswith("<-") and s.value == ">",
        "'<->' is no arrow: write two rules, one with '->' and one with '<-'",
    ),
    (
        lambda s: s.value == "=" and "EQUAL" in s.expected,
        "'=' compares sums; two terms are compared by '=='",
    ),
    (
        lambda s: s.kind in ("EQUAL", "UNEQUAL") and "RELATION" in s.expected,
        "an arithmetic rule compares by '<=', '>=' or '='; '==' and '!=' compare two terms",
    ),
    (
        lambda s: s.value in ("<", ">"),
        "strict comparisons are not known: write '<=' or '>=', and '->' for an arrow",
    ),
    (
        lambda s: "RPAR" in s.expected and s.kind in ("_THEN", "_IF", "RELATION", "DOT", *_NEXT),
        "a parenthesis is not closed: ')' is missing",
    ),
    (
        lambda s: s.kind in ("_THEN", "_IF") and bool(re.search(_ARROW + r"[^:.]*$", s.before)),
        "a rule has two arrows: write two rules",
    ),
    (
        lambda s: s.kind == "_THEN" and "_OR" in s.expected,
        "a body with '|': its literals are joined by '&' only, so write one rule for each part",
    ),
    (
        lambda s: s.kind == "_AND" and "RPAR" in s.expected and len(s.expected) == 1,
        "'!' stands before one atom: write the negation out",
    ),
    (
        lambda s: s.kind == "_OR" and "_THEN" in s.expected,
        "a body with '|': its literals are joined by '&' only, so write one rule for each part",
    ),
    (
        lambda s: s.kind == "_AND" and "_OR" in s.expected,
        "a head with '&': its literals are joined by '|' only, so write one rule for each part",
    ),
    (
        lambda s: s.kind == "CARET",
        "a potential is linear or squared: write '^1' or '^2', or nothing for '^1'",
    ),
    (
        lambda s: s.kind == "NUMBER" and {"PLUS", "STRING"} <= s.expected,
        "a constant needs quotes: write '{value}'",
    ),
    (
        lambda s: s.kind in ("NUMBER", "COUNT") and "NOT" in s.expected,
        "a number stands where an atom is needed: rules with numbers compare sums, as in "
        "Q(A) <= 0.5",
    ),
    (
        lambda s: s.kind == "NAME" and s.before.endswith("-") and "NUMBER" in s.expected,
        "a minus sign stands before an atom: write '-1 * {value}(...)'",
    ),
    (
        lambda s: s.kind == "LBRACE" and s.after_rule,
        "a filter belongs to an arithmetic rule, at its end: in a body write its atoms instead",
    ),
    (
        lambda s: s.after.startswith(":-"),
        "':-' is no arrow: write '<-'",
    ),
    (
        lambda s: bool(re.match(_WORDS, s.after) or re.search(_WORDS + "$", s.before)),
        "words are no operators: write '&' for and, '|' for or, '!' for not",
    ),
    (
        lambda s: s.kind in _LOGIC and bool(re.search(r"(^|\n)\s*[\d.]+\s+\w[^\n]*$", s.before)),
        "a weight needs a colon behind it, as in '1: ...'",
    ),
    (
        lambda s: s.kind in _LOGIC and not s.expected.isdisjoint(("PLUS", "RELATION")),
        "arithmetic and logic are mixed: a rule has either an arrow or one of '<=', '>=' and '='",
    ),
    (
        lambda s: s.kind == "COMMA" and "_AND" in s.expected,
        "a comma stands between literals: join them by '&'",
    ),
    (
        lambda s: s.kind == "_BREAK" and s.before[-1:].isdigit(),
        "a line ends in a coefficient and the next starts with an atom: write '*' between them",
    ),
    (lambda s: s.value in _SIGNS, "'{value}' is no part of the language: write '{sign}'"),
    (lambda s: s.value == "@", "the only functions are @Max[a, b] and @Min[a, b]"),
    (lambda s: s.kind == "$END", "the text ends in the middle of a rule: {wanted} is missing"),
    (
        lambda s: s.kind == "_BREAK",
        "a new line starts in the middle of a rule: {wanted} is missing",
    ),
    (lambda s: not s.kind, "'{value}' is no part of the language"),
    (lambda s: True, "'{value}' cannot stand here: {wanted} is needed"),
)


def explain(error: UnexpectedInput, text: str) -> RuleError:
    """Word an error of the parser, with a suggestion where the mistake is a known one."""
    context = _context(error, text)
    reason = next(words for fits, words in _HINTS if fits(context))
    # What is missing is missing at the end of the line before.
    missing = context.kind in _NEXT and not context.before.endswith(":")
    start = len(context.before) if missing else len(text) - len(context.after)
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    words = {"value": context.value, "wanted": _wanted(context.expected)}
    return RuleError(reason.format(**words, sign=_SIGNS.get(context.value)), text, line, column)


def _context(error: UnexpectedInput, text: str) -> ParseContext:
    from lark.exceptions import UnexpectedToken

    place = error.pos_in_stream or 0
    if not isinstance(error, UnexpectedToken):
        return ParseContext("", text[place], frozenset(), text[:place].rstrip(), text[place:])
    kind = error.token.type
    value = str(error.token)
    place = len(text) if kind == "$END" else place
    expected = frozenset(error.accepts or error.expected)
    return ParseContext(kind, value, expected, text[:place].rstrip(), text[place:])


def _wanted(expected: frozenset[str]) -> str:
    names = [name for kind, name in _NAMES.items() if kind in expected]
    *front, last = names[:6] or ["something else"]
    return f"{', '.join(front)} or {last}" if front else last
