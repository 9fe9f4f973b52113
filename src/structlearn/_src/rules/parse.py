"""Read rules from text, and check them against the predicates they speak of."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from structlearn._src.common.errors import (
    ArgumentError,
    GreedyCoefficientWarning,
    RuleError,
    did_you_mean,
    warn,
)
from structlearn._src.rules import syntax
from structlearn._src.rules.linear import (
    OperandChain,
    Unfit,
    counted_by,
    linear,
    regroup,
    same_form,
)
from structlearn._src.rules.syntax import START, TextPlace, variables_of
from structlearn._src.rules.syntax_error import explain

if TYPE_CHECKING:
    from structlearn._src.rules.build import Draft

Known = Mapping[str, syntax.Predicate]


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
    >>> from structlearn.rules import parse
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


def _wrong(unfit: Unfit, text: str, place: TextPlace = START) -> RuleError:
    return RuleError(str(unfit), text, *(unfit.place or place))


def _rules(draft: Draft, text: str, greedy: bool) -> list[syntax.Rule]:
    source = text[draft.span]
    try:
        bodies = _bodies(draft, source, greedy)
    except Unfit as unfit:
        raise _wrong(unfit, text, draft.place) from None
    return [syntax.Rule(body, draft.weight, draft.squared, source, draft.place) for body in bodies]


def _bodies(draft: Draft, source: str, greedy: bool) -> list[syntax.Clause] | list[syntax.Linear]:
    """Fold arithmetic, and split filters into one rule for each part of a disjunction."""
    if isinstance(draft.body, syntax.Clause):
        return [draft.body]
    proper = _reading(*draft.body)
    psl = _reading(*draft.body, greedy=True)
    taken = psl if greedy else proper
    if isinstance(taken, Unfit):
        raise taken
    if isinstance(proper, Unfit) or isinstance(psl, Unfit) or not same_form(proper, psl):
        warn(
            f"the rule {source!r} means {_shown(proper)}, but PSL reads {_shown(psl)}; taken here "
            f"is the {'second' if greedy else 'first'}: set parentheses, or choose by greedy",
            GreedyCoefficientWarning,
        )
    return [replace(taken, filters=filters) for filters in itertools.product(*draft.filters)]


def _reading(
    left: OperandChain, operator: syntax.Inequality, right: OperandChain, greedy: bool = False
) -> syntax.Linear | Unfit:
    try:
        if greedy:
            return linear(regroup(left), operator, regroup(right))
        return linear(left, operator, right)
    except Unfit as unfit:
        return unfit


def _shown(form: syntax.Linear | Unfit) -> str:
    return f"nothing, as {form}" if isinstance(form, Unfit) else repr(form.text())


def read_rules(rules: Any, *, greedy: bool = False) -> syntax.Program:
    """Read a text, or a list of texts and of rules that were read before; `greedy` as in `parse`.

    They are checked against the predicates that they themselves name.
    """
    if isinstance(rules, str):
        program = parse(rules, greedy=greedy)
    elif not isinstance(rules, Iterable):
        raise ArgumentError(
            f"rules={rules!r} are no rules: give a text or a list of them; files are read by "
            f"RuleModel.from_file"
        )
    else:
        program = tuple(rule for each in rules for rule in _parsed(each, greedy))
    if not program:
        raise RuleError("there are no rules: at least one is needed")
    return check(program, predicates_of(program))


def _parsed(given: Any, greedy: bool) -> syntax.Program:
    if isinstance(given, syntax.Rule):
        return (given,)
    if not isinstance(given, str):
        raise ArgumentError(f"{given!r} is no rule: give texts, or rules that were read before")
    return parse(given, greedy=greedy)


def predicates_of(program: syntax.Program) -> list[syntax.Predicate]:
    """List the predicates of rules, as they are first written."""
    found: dict[str, syntax.Predicate] = {}
    for atom in (atom for rule in program for atom in rule.atoms):
        new = syntax.Predicate(atom.predicate, len(atom.terms))
        found.setdefault(atom.predicate.lower(), new)
    return list(found.values())


# ---- against predicates --------------------------------------------------------------------


def check(program: syntax.Program, predicates: Iterable[syntax.Predicate]) -> syntax.Program:
    """Check every rule, and spell its predicates as they are declared, whatever their case.

    A `RuleError` says that a predicate is not declared or has another arity, a variable has no
    values to range over, a summed variable is used twice, or a filter does not fit its rule.
    """
    known = {predicate.name.lower(): predicate for predicate in predicates}
    return tuple(_checked(rule, known) for rule in program)


def _checked(rule: syntax.Rule, known: Known) -> syntax.Rule:
    """Check one rule; `known` has the predicates by their names in lower case."""
    try:
        for atom in rule.atoms:
            _check_atom(atom, known)
        if isinstance(rule.body, syntax.Clause):
            _check_clause(rule.body)
        else:
            _check_linear(rule.body, known)
    except Unfit as unfit:
        raise refusal(rule, unfit) from None

    def spelled(part: Any) -> Any:
        if isinstance(part, syntax.Atom):
            return replace(part, predicate=known[part.predicate.lower()].name)
        return None

    return syntax.rewritten(rule, spelled)


def refusal(rule: syntax.Rule, unfit: Unfit) -> RuleError:
    """Return the error of a rule that does not fit, with its place in the text if it has one."""
    if not rule.text:
        return RuleError(f"{unfit}, in {str(rule)!r}")
    # Blanks before the rule bring its text to where its places say it is.
    text = "\n" * (rule.place.line - 1) + " " * (rule.place.column - 1) + rule.text
    return _wrong(unfit, text, rule.place)


def _check_atom(atom: syntax.Atom, known: Known) -> None:
    declared = known.get(atom.predicate.lower())
    if declared is None:
        hint = did_you_mean(atom.predicate, [predicate.name for predicate in known.values()])
        raise Unfit(f"{atom.predicate!r} is not a known predicate{hint}", atom.place)
    if declared.arity != len(atom.terms):
        given = f"{atom} has {len(atom.terms)} arguments"
        raise Unfit(f"{given}, but {declared.name} takes {declared.arity}", atom.place)


def _check_clause(clause: syntax.Clause) -> None:
    """Every variable needs values: those of an atom that is positive in the body."""
    bound: set[str] = set()
    for each in clause.literals:
        atom = each.atom
        if isinstance(atom, syntax.Atom) and atom.summed:
            raise Unfit(f"{atom} sums in a logical rule: only arithmetic rules can", atom.place)
        if isinstance(atom, syntax.Atom) and each.negated:
            bound.update(variables_of(atom.terms))
    if not any(variables_of(each.atom.terms) for each in clause.literals):
        raise Unfit("the rule has no variables: at least one is needed")
    for each in clause.literals:
        for name in variables_of(each.atom.terms):
            if name not in bound:
                raise Unfit(_unbound(name, each, clause), each.atom.place)


def _unbound(name: str, literal: syntax.Literal, clause: syntax.Clause) -> str:
    shown = literal.atom
    if len(clause.literals) == 1:
        return f"{shown} stands alone, so {name!r} has no values: for a prior write {shown} >= 1"
    return (
        f"the variable {name!r} of {shown} is in no positive atom of the body, so it has no "
        f"values: add an atom with it to the body, or use one of the body's variables"
    )


def _check_linear(form: syntax.Linear, known: Known) -> None:
    atoms = [each.atom for each in form.summands if each.atom is not None]
    if len(set(atoms)) == 1 < len(atoms):
        raise Unfit(f"{atoms[0]} is all there is: write it once", atoms[1].place)
    plain = {name for atom in atoms for name in variables_of(atom.terms)}
    sums = _check_sums(atoms, plain)
    for name in sorted(counted_by(form) - sums):
        raise Unfit(f"|{name}| counts what is not summed: write +{name} in an atom")
    for test in form.tests:
        for name in [each for each in variables_of(test.terms) if each not in plain]:
            raise Unfit(
                f"{test} may use variables that are in an atom and not summed, but {name!r} is not",
                test.place,
            )
    for name, times in Counter(clause.variable for clause in form.filters).items():
        if times > 1:
            raise Unfit(f"{name!r} has {times} filters: join them by '&' in one")
    for clause in form.filters:
        _check_filter(clause, sums, plain, known)


def _check_sums(atoms: list[syntax.Atom], plain: set[str]) -> set[str]:
    """List the summed variables, each in one place only."""
    sums: set[str] = set()
    for atom in atoms:
        for name in atom.summed:
            if name in sums or name in plain:
                reason = f"the summed variable {name!r} is used twice: give every sum its own"
                raise Unfit(reason, atom.place)
            sums.add(name)
    return sums


def _check_filter(clause: syntax.Filter, sums: set[str], plain: set[str], known: Known) -> None:
    if clause.variable not in sums:
        raise Unfit(
            f"the filter is for {clause.variable!r}, which is not summed: only a variable with "
            f"'+' can be filtered{did_you_mean(clause.variable, sums)}",
            clause.place,
        )
    for atom in (each.atom for each in clause.literals):
        if isinstance(atom, syntax.Atom) and known[atom.predicate.lower()].open:
            raise Unfit(
                f"{atom.predicate} is open, so {atom} is not known before inference: "
                f"a filter needs closed predicates",
                atom.place,
            )
        for term in atom.terms:
            name = getattr(term, "name", clause.variable)
            if isinstance(term, syntax.SumVariable) or name not in plain | {clause.variable}:
                raise Unfit(
                    f"{atom} in a filter may use {clause.variable!r} and variables of "
                    f"the rule that are not summed, but {name!r} is neither",
                    atom.place,
                )
