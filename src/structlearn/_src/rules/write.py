"""Write rules as text: what `parse` reads back as the same rule."""

from __future__ import annotations

import re

from structlearn._src.rules import syntax

_ESCAPED = {"\n": "n", "\t": "t", "\r": "r", "\b": "b", "\f": "f", "\\": "\\", "'": "'"}


def write(rule: syntax.Rule) -> str:
    """Write one rule, such as ``2: P(A) -> Q(A) ^2``."""
    if isinstance(rule.body, syntax.Linear):
        body = write_linear(rule.body, rule.weight is None)
        filters = "".join(f" {write_filter(each)}" for each in rule.body.filters)
    else:
        body = write_clause(rule.body)
        filters = ""
    if rule.weight is None:
        return f"{body} .{filters}"
    return f"{write_number(rule.weight)}: {body}{' ^2' if rule.squared else ''}{filters}"


def write_clause(clause: syntax.Clause) -> str:
    """Write a clause as body and head, or as a disjunction where it has no body or no head."""
    cut = clause.body if clause.body < len(clause.literals) else 0
    body = [syntax.Literal(each.atom, not each.negated) for each in clause.literals[:cut]]
    arrow = f"{' & '.join(map(_literal, body))} -> " if body else ""
    return arrow + " | ".join(map(_literal, clause.literals[cut:]))


def write_linear(form: syntax.Linear, guard: bool = False) -> str:
    """Write a linear form: atoms left, a number right.

    With `guard` it does not start with a minus sign, which would belong to a rule before it.
    """
    *front, last = form.summands
    right = 0.0
    if last.atom is None and isinstance(last.coefficient, syntax.Number):
        right = -last.coefficient.value
    else:
        front.append(last)
    left = _summand(front[0], guard) + "".join(map(_next_summand, front[1:]))
    left += "".join(f" + {write_atom(test)}" for test in form.tests)
    return f"{left} {form.operator} {write_number(right)}"


def write_filter(clause: syntax.Filter) -> str:
    """Write a filter."""
    return f"{{{clause.variable}: {' & '.join(map(_literal, clause.literals))}}}"


def write_atom(atom: syntax.Atom | syntax.Comparison) -> str:
    """Write an atom, or a comparison in parentheses."""
    if isinstance(atom, syntax.Comparison):
        return f"({_term(atom.left)} {atom.operator} {_term(atom.right)})"
    return f"{atom.predicate}({', '.join(map(_term, atom.terms))})"


def write_number(value: float) -> str:
    """Write a number so that it reads back as the same; PSL knows no ``e+5``, and 0 has no sign."""
    return re.sub(r"\.0$", "", repr(float(value) + 0.0)).replace("e+", "e")


def _literal(literal: syntax.Literal) -> str:
    return ("!" if literal.negated else "") + write_atom(literal.atom)


def _term(term: syntax.Term) -> str:
    if isinstance(term, syntax.Constant):
        letters = (f"\\{_ESCAPED[c]}" if c in _ESCAPED else c for c in term.value)
        return f"'{''.join(letters)}'"
    return f"+{term.name}" if isinstance(term, syntax.SumVariable) else term.name


def _summand(summand: syntax.Summand, guard: bool = False) -> str:
    if summand.atom is None:
        return f"({_coefficient(summand.coefficient)})"
    if summand.coefficient == syntax.Number(1.0):
        return write_atom(summand.atom)
    factor = _coefficient(summand.coefficient, 2)
    factor = f"({factor})" if guard and factor.startswith("-") else factor
    return f"{factor} * {write_atom(summand.atom)}"


def _next_summand(summand: syntax.Summand) -> str:
    factor = summand.coefficient
    if isinstance(factor, syntax.Number) and factor.value < 0:
        positive = syntax.Summand(syntax.Number(-factor.value), summand.atom)
        return f" - {_summand(positive)}"
    return f" + {_summand(summand)}"


def _coefficient(factor: syntax.Coefficient, strength: int = 0) -> str:
    """Write a coefficient, in parentheses where it binds weaker than what is around it."""
    if isinstance(factor, syntax.Number):
        return write_number(factor.value)
    if isinstance(factor, syntax.Count):
        return f"|{factor.variable}|"
    sign = factor.operator
    if sign in ("min", "max"):
        return f"@{sign.title()}[{_coefficient(factor.left)}, {_coefficient(factor.right)}]"
    own = 1 if sign in ("+", "-") else 2
    text = f"{_coefficient(factor.left, own)} {sign} {_coefficient(factor.right, own + 1)}"
    return f"({text})" if own < strength else text
