"""What went wrong in a text that is no program, and what to do about it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from structlearn._src.common.errors import RuleError

if TYPE_CHECKING:
    from lark.exceptions import UnexpectedInput


# Tokens that are no fixed text of the grammar.
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
    "NOT": "!",
    "_THEN": "->",
    "_IF": "<-",
    "_AND": "&",
    "_OR": "|",
    "$END": "the end",
}
_SIGNS = {"→": "->", "⇒": "->", "←": "<-", "∧": "&", "¬": "!", "≤": "<=", "≥": ">="}
_NEXT = "$END WEIGHT _BREAK"
_LOGIC = "_THEN _IF _AND _OR"
_NO_OR = "a body with '|': its literals are joined by '&' only, so write one rule for each part"
_NEAR = 1000  # letters on either side that are looked at: patterns take the square of it
_QUOTE = "a quote is not closed, here or before"


class Hint(NamedTuple):
    """What to say of a mistake, and how to know it."""

    words: str
    kinds: str = ""  #: the token that came is one of these; "?" is no token at all
    at: str = ""  #: pattern of the text around the place, which is written as ¦
    expected: str = ""  #: all of these could have come
    absent: str = ""  #: none of these could have come

    def fits(self, kind: str, expected: frozenset[str], marked: str) -> bool:
        """Whether this is the mistake."""
        return (
            (not self.kinds or kind in self.kinds.split())
            and expected.issuperset(self.expected.split())
            and expected.isdisjoint(self.absent.split())
            and re.search(self.at, marked) is not None
        )


# The first that fits words the error.
_HINTS = (
    Hint(_QUOTE, "?", at=r"""¦['"]"""),
    Hint(_QUOTE, at=r"""(?s)('[^'\n]*\n[^']*'|"[^"\n]*\n[^"]*")¦"""),
    Hint("a number has a '+' in its exponent: leave it out, as in 1E3", "PLUS", at=r"\d[eE]¦"),
    Hint("a number starts with its point: write a digit before it, as in 0.5", at=r"¦\.\d"),
    Hint(
        "a rule has neither a weight nor a full stop: write a weight before it, as in '1: ...', "
        "or ' .' behind it",
        _NEXT,
        expected="DOT",
    ),
    Hint("a rule has two weights: keep one", "WEIGHT", at=":¦"),
    Hint(
        "a rule has both a weight and a full stop: drop the full stop, or the weight to make the "
        "rule hard",
        "DOT",
        expected="WEIGHT",
        absent="NAME",
    ),
    Hint("'=>' is no arrow: write '->'", at="¦=>|=¦>"),
    Hint("'<->' is no arrow: write two rules, one with '->' and one with '<-'", at="<-¦>"),
    Hint("'=' compares sums; two terms are compared by '=='", at="¦=(?!=)", expected="EQUAL"),
    Hint(
        "an arithmetic rule compares by '<=', '>=' or '='; '==' and '!=' compare two terms",
        "EQUAL UNEQUAL",
        expected="RELATION",
    ),
    Hint(
        "strict comparisons are not known: write '<=' or '>=', and '->' for an arrow", "?", "¦[<>]"
    ),
    Hint(
        "a parenthesis is not closed: ')' is missing",
        f"_THEN _IF RELATION DOT {_NEXT}",
        expected="RPAR",
    ),
    Hint("a rule has two arrows: write two rules", "_THEN _IF", at="(->|>>|<-|<<)[^:.¦]*¦"),
    Hint(_NO_OR, "_THEN", expected="_OR"),
    Hint(
        "'!' stands before one atom: write the negation out",
        "_AND",
        expected="RPAR",
        absent="_OR PLUS",
    ),
    Hint(_NO_OR, "_OR", expected="_THEN"),
    Hint(
        "a head with '&': its literals are joined by '|' only, so write one rule for each part",
        "_AND",
        expected="_OR",
    ),
    Hint("a potential is linear or squared: write '^1' or '^2', or nothing for '^1'", "CARET"),
    Hint("a constant needs quotes: write '{value}'", "NUMBER", expected="PLUS STRING"),
    Hint(
        "a number stands where an atom is needed: rules with numbers compare sums, as in "
        "Q(A) <= 0.5",
        "NUMBER COUNT",
        expected="NOT",
    ),
    Hint(
        "a minus sign stands before an atom: write '-1 * {value}(...)'",
        "NAME",
        at="-¦",
        expected="NUMBER",
    ),
    Hint(
        "a filter belongs to an arithmetic rule, at its end: in a body write its atoms instead",
        "LBRACE",
        expected="WEIGHT",
        absent="NAME",
    ),
    Hint("':-' is no arrow: write '<-'", at="¦:-"),
    Hint(
        "words are no operators: write '&' for and, '|' for or, '!' for not",
        at=r"(?i)¦(and|or|not)|\b(and|or|not)¦",
    ),
    Hint(
        "a weight needs a colon behind it, as in '1: ...'",
        _LOGIC,
        at=r"(^|\n)\s*[\d.]+\s+\w[^\n¦]*¦",
    ),
    Hint(
        "arithmetic and logic are mixed: a rule has either an arrow or one of '<=', '>=' and '='",
        _LOGIC,
        expected="PLUS",
    ),
    Hint("a comma stands between literals: join them by '&'", "COMMA", expected="_AND"),
    Hint(
        "a line ends in a coefficient and the next starts with an atom: write '*' between them",
        "_BREAK",
        at=r"\d¦",
    ),
    Hint("'{value}' is no part of the language: write '{sign}'", "?", f"¦[{''.join(_SIGNS)}]"),
    Hint("the only functions are @Max[a, b] and @Min[a, b]", "?", "¦@"),
    Hint("the text ends in the middle of a rule: {wanted} is missing", "$END"),
    Hint("a new line starts in the middle of a rule: {wanted} is missing", "_BREAK"),
    Hint("'{value}' is no part of the language", "?"),
    Hint("'{value}' cannot stand here: {wanted} is needed"),
)


def explain(error: UnexpectedInput, text: str) -> RuleError:
    """Word an error of the parser, with a suggestion where the mistake is a known one."""
    from lark.exceptions import UnexpectedToken

    place = error.pos_in_stream or 0
    kind = "?"
    value = text[place : place + 1]
    expected: frozenset[str] = frozenset()
    if isinstance(error, UnexpectedToken):
        kind = error.token.type
        value = str(error.token)
        place = len(text) if kind == "$END" else place
        expected = frozenset(error.accepts or error.expected)
    before = text[:place].rstrip()
    marked = f"{before[-_NEAR:]}¦{text[place : place + _NEAR]}"
    reason = next(hint.words for hint in _HINTS if hint.fits(kind, expected, marked))
    # What is missing is missing at the end of the line before.
    start = len(before) if kind in _NEXT.split() and not before.endswith(":") else place
    words = {"value": value, "wanted": _wanted(expected), "sign": _SIGNS.get(value)}
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    return RuleError(reason.format(**words), text, line, column)


def _wanted(expected: frozenset[str]) -> str:
    from structlearn._src.rules.build import parser

    fixed = {
        each.name: each.pattern.value for each in parser().terminals if each.pattern.type == "str"
    }
    names = [name for kind, name in (_NAMES | fixed).items() if kind in expected]
    *front, last = names[:6] or ["something else"]
    return f"{', '.join(front)} or {last}" if front else last
