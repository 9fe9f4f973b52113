"""Read rules from text."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from structlearn._src.common.errors import GreedyCoefficientWarning, RuleError, warn
from structlearn._src.rules import syntax
from structlearn._src.rules.linear import OperandChain, Unfit, linear, regroup, same_form
from structlearn._src.rules.syntax_error import explain
from structlearn._src.rules.write import write_linear

if TYPE_CHECKING:
    from structlearn._src.rules.build import Draft


def parse(text: str, *, greedy: bool = False) -> syntax.Program:
    """Read a program in PSL's rule language.

    Parameters
    ----------
    text
        Rules, weighted (``2: P(A) -> Q(A) ^2``) or hard (``P(A) -> Q(A) .``), with comments.
    greedy
        Read coefficients as PSL does: ``1 - 0.5 * P(A)`` as ``(1 - 0.5) * P(A)``. Where this makes
        a difference there is a warning, whatever the choice.

    Returns
    -------
    tuple of Rule
        In the order of the text. A rule whose filter has a disjunction becomes one rule for each
        of its parts, as in PSL.

    Raises
    ------
    RuleError
        With the line, the column, a caret, and what to do.

    Examples
    --------
    >>> from structlearn._src.rules.parse import parse
    >>> rule, = parse("20: Knows(A, B) & Likes(A, X) -> Likes(B, X) ^2")
    >>> rule.weight, rule.squared, len(rule.body.literals)
    (20.0, True, 3)
    """
    read = _drafts(text)
    if not read:
        raise RuleError("the text has no rule: at least one is needed", text)
    return tuple(rule for draft in read for rule in _rules(draft, text, greedy))


def parse_rule(text: str, *, greedy: bool = False) -> syntax.Rule:
    """Read the `text` of one rule, `greedy` as in `parse`; what PSL refuses is refused."""
    rules = parse(text, greedy=greedy)
    if len(rules) != 1:
        raise RuleError(f"{len(rules)} rules were given where one is needed", text)
    return rules[0]


def _drafts(text: str) -> tuple[Draft, ...]:
    # Loading lark takes longer than most programs take to parse.
    from lark.exceptions import UnexpectedInput, VisitError

    from structlearn._src.rules.build import drafts

    try:
        return drafts(text)
    except UnexpectedInput as error:
        raise explain(error, text) from None
    except Unfit as unfit:
        raise _wrong(unfit, text) from None
    except VisitError as error:
        if isinstance(error.orig_exc, Unfit):
            raise _wrong(error.orig_exc, text) from None
        raise


def _wrong(unfit: Unfit, text: str, line: int = 1, column: int = 1) -> RuleError:
    return RuleError(str(unfit), text, *(unfit.place or (line, column)))


def _rules(draft: Draft, text: str, greedy: bool) -> list[syntax.Rule]:
    source = text[draft.span]
    try:
        bodies = _bodies(draft, source, greedy)
    except Unfit as unfit:
        raise _wrong(unfit, text, *draft.place) from None
    return [syntax.Rule(body, draft.weight, draft.squared, source, draft.place) for body in bodies]


def _bodies(draft: Draft, source: str, greedy: bool) -> list[syntax.Clause] | list[syntax.Linear]:
    """Fold arithmetic, and split filters into one rule for each part of a disjunction."""
    if isinstance(draft.body, syntax.Clause):
        return [draft.body]
    left, operator, right = draft.body
    form = _reading(left, operator, right, greedy)
    if isinstance(form, Unfit):
        raise form
    other = _reading(left, operator, right, not greedy)
    if isinstance(other, Unfit) or not same_form(form, other):
        proper, psl = (other, form) if greedy else (form, other)
        message = _differ(source, proper, psl, greedy)
        warn(message, GreedyCoefficientWarning)
    choices = itertools.product(*draft.filters)
    return [replace(form, filters=filters) for filters in choices]


def _reading(
    left: OperandChain, operator: syntax.Inequality, right: OperandChain, greedy: bool
) -> syntax.Linear | Unfit:
    try:
        if greedy:
            return linear(regroup(left), operator, regroup(right))
        return linear(left, operator, right)
    except Unfit as unfit:
        return unfit


def _differ(
    source: str, proper: syntax.Linear | Unfit, psl: syntax.Linear | Unfit, greedy: bool
) -> str:
    shown = [
        f"nothing, as {form}" if isinstance(form, Unfit) else repr(write_linear(form))
        for form in (proper, psl)
    ]
    return (
        f"the rule {source!r} means {shown[0]}, but PSL reads {shown[1]}; taken here is the "
        f"{'second' if greedy else 'first'}: set parentheses, or choose by greedy"
    )
