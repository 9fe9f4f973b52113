"""From chains of arithmetic to linear forms, folded properly or as PSL folds them.

PSL takes all coefficients it can get before it looks for an atom: it reads ``1 - 0.5 * P(A)`` as
``(1 - 0.5) * P(A)``, and ``Q(A) / 2 + 3`` as ``Q(A) / (2 + 3)``. Here products bind first, as on
paper; PSL's way is kept as a choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from structlearn._src.rules import syntax

ZERO = syntax.Number(0.0)
ONE = syntax.Number(1.0)
_COMPUTE: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else math.inf,
    "min": min,
    "max": max,
}


@dataclass(frozen=True)
class OperandChain:
    """Operands with the operators between them, as read: no precedence yet."""

    operands: tuple[Operand, ...]
    operators: tuple[syntax.Sign, ...]


Factor = syntax.Atom | syntax.Comparison
Operand = syntax.Coefficient | Factor | OperandChain
Form = tuple[tuple[syntax.Coefficient, Factor | None], ...]


class Unfit(ValueError):  # noqa: N818  an event inside the parser, which words the error
    """A chain that is no linear form, and why."""

    def __init__(self, reason: str, place: syntax.TextPlace | None = None) -> None:
        super().__init__(reason)
        self.place = place


def number(value: float, place: syntax.TextPlace | None = None) -> syntax.Number:
    """Make a number, unless it is too large for one."""
    if not math.isfinite(value):
        raise Unfit("a number is too large", place)
    return syntax.Number(value)


def operate(
    operator: syntax.Sign, left: syntax.Coefficient, right: syntax.Coefficient
) -> syntax.Coefficient:
    """Join two coefficients; numbers are computed at once."""
    if operator == "/" and right == ZERO:
        raise Unfit("a coefficient divides by 0")
    if isinstance(left, syntax.Number) and isinstance(right, syntax.Number):
        return number(_COMPUTE[operator](left.value, right.value))
    if operator in ("+", "-") and right == ZERO:
        return left
    if operator == "+" and left == ZERO:
        return right
    if operator == "*" and left == ONE:
        return right
    if operator in ("*", "/") and right == ONE:
        return left
    return syntax.Operation(operator, left, right)


def evaluate(coefficient: syntax.Coefficient, counts: dict[str, float]) -> float:
    """Compute a coefficient; `counts` has the number of values of every summed variable."""
    if isinstance(coefficient, syntax.Number):
        return coefficient.value
    if isinstance(coefficient, syntax.Count):
        return counts[coefficient.variable]
    left, right = evaluate(coefficient.left, counts), evaluate(coefficient.right, counts)
    return _COMPUTE[coefficient.operator](left, right)


def counted(coefficient: syntax.Coefficient) -> frozenset[str]:
    """Name the variables whose counts a coefficient needs."""
    if isinstance(coefficient, syntax.Count):
        return frozenset({coefficient.variable})
    if isinstance(coefficient, syntax.Operation):
        return counted(coefficient.left) | counted(coefficient.right)
    return frozenset()


def linear(left: OperandChain, operator: syntax.Inequality, right: OperandChain) -> syntax.Linear:
    """Bring both sides to the left: atoms in the order of the text, then one constant."""
    form = fold(left) + _negative(fold(right))
    constant: syntax.Coefficient = ZERO
    for value, factor in form:
        if factor is None:
            constant = operate("+", constant, value)
    atoms = tuple(syntax.Summand(v, each) for v, each in form if isinstance(each, syntax.Atom))
    tests = tuple(each for _, each in form if isinstance(each, syntax.Comparison))
    if not atoms:
        raise Unfit("the rule compares numbers: at least one atom is needed")
    end = () if constant == ZERO else (syntax.Summand(constant),)
    return syntax.Linear(atoms + end, operator, tests=tests)


def fold(chain: OperandChain) -> Form:
    """Fold a chain to a sum of coefficients times atoms; products bind first."""
    form: Form = ()
    for sign, piece in _pieces(chain):
        form += piece if sign == "+" else _negative(piece)
    return form


def coefficient(chain: OperandChain) -> syntax.Coefficient:
    """Fold a chain that has no atoms to one coefficient."""
    total: syntax.Coefficient = ZERO
    for sign, piece in _pieces(chain):
        for value, factor in piece:
            if factor is not None:
                raise Unfit("an atom stands where a coefficient is needed", factor.place)
            total = operate(sign, total, value)
    return total


def same_form(left: syntax.Linear, right: syntax.Linear) -> bool:
    """Say whether two readings of one rule mean the same, whatever the counts.

    Coefficients are piecewise rational in the counts: those that agree at a few odd points agree.
    """
    variables = sorted(counted_by(left) | counted_by(right))
    return all(
        _close(_at(left, counts), _at(right, counts))
        for scale in (math.e, 5.77, 11.13)
        for counts in [{name: scale + 1.9 * place for place, name in enumerate(variables)}]
    )


def counted_by(form: syntax.Linear) -> frozenset[str]:
    """Name the variables whose counts a form needs."""
    return frozenset().union(*(counted(summand.coefficient) for summand in form.summands))


def regroup(chain: OperandChain) -> OperandChain:
    """Set the parentheses that PSL sees: around every longest run of coefficients.

    Only a divisor gives back what the next atom needs: ``Q(A) / 2 + 3 P(A)`` stays as it is.
    """
    operands: list[Operand] = []
    operators: list[syntax.Sign] = []
    begin = 0
    while begin < len(chain.operands):
        end = _run(chain, begin)
        operands.append(_part(chain, begin, end))
        operators.extend(chain.operators[end - 1 : end])
        begin = end
    return OperandChain(tuple(operands), tuple(operators))


def has_atom(operand: Operand) -> bool:
    """Say whether an operand is more than a coefficient."""
    if isinstance(operand, OperandChain):
        return any(map(has_atom, operand.operands))
    return isinstance(operand, Factor)


def _run(chain: OperandChain, begin: int) -> int:
    """Find the end of the run of coefficients from `begin`; anything else is a run of its own."""
    end = begin + 1
    if has_atom(chain.operands[begin]):
        return end
    while end < len(chain.operands) and not has_atom(chain.operands[end]):
        end += 1
    divides = begin > 0 and chain.operators[begin - 1] == "/"
    if divides and chain.operators[end - 1 : end] == ("*",):
        sums = [i for i in range(begin + 1, end) if chain.operators[i - 1] in ("+", "-")]
        return sums[-1] if sums else end
    return end


def _part(chain: OperandChain, begin: int, end: int) -> Operand:
    if end > begin + 1:
        return OperandChain(chain.operands[begin:end], chain.operators[begin : end - 1])
    operand = chain.operands[begin]
    return regroup(operand) if isinstance(operand, OperandChain) else operand


def _product(operands: tuple[Operand, ...], operators: tuple[syntax.Sign, ...]) -> Form:
    """Fold one product or quotient from left to right."""
    if not operators and isinstance(operands[0], OperandChain) and has_atom(operands[0]):
        return fold(operands[0])
    factor: syntax.Coefficient = ONE
    atom: Factor | None = None
    for operator, operand in zip(("*", *operators), operands, strict=True):
        if not has_atom(operand):
            if operator == "*" and atom is not None:
                raise Unfit("a coefficient stands before its atom, as in 2 * P(A)", atom.place)
            factor = operate(operator, factor, _value(operand))
        elif isinstance(operand, Factor) and operator == "*" and atom is None:
            atom = operand
        elif isinstance(operand, Factor):
            raise Unfit("two atoms are multiplied, or one divides: not linear", operand.place)
        else:
            raise Unfit("a sum of atoms is multiplied: write the coefficient before every atom")
    return ((factor, atom),)


def _value(operand: Operand) -> syntax.Coefficient:
    if isinstance(operand, OperandChain):
        return coefficient(operand)
    assert not isinstance(operand, Factor)
    return operand


def _pieces(chain: OperandChain) -> Iterator[tuple[syntax.Sign, Form]]:
    """Cut a chain at its plus and minus signs, and fold the products between them."""
    begin = 0
    sign: syntax.Sign = "+"
    for end in range(1, len(chain.operands) + 1):
        operator = chain.operators[end - 1] if end < len(chain.operands) else "+"
        if operator in ("+", "-"):
            yield sign, _product(chain.operands[begin:end], chain.operators[begin : end - 1])
            begin = end
            sign = operator


def _at(form: syntax.Linear, counts: dict[str, float]) -> dict[syntax.Atom | None, float]:
    """Evaluate the coefficients of a form, summed per atom."""
    values: dict[syntax.Atom | None, float] = {None: 0.0}
    for summand in form.summands:
        value = values.get(summand.atom, 0.0) + evaluate(summand.coefficient, counts)
        values[summand.atom] = value
    return values


def _close(left: dict[syntax.Atom | None, float], right: dict[syntax.Atom | None, float]) -> bool:
    return left.keys() == right.keys() and all(
        math.isclose(left[atom], right[atom], rel_tol=1e-9, abs_tol=1e-12) for atom in left
    )


def _negative(form: Form) -> Form:
    return tuple((operate("*", syntax.Number(-1.0), value), factor) for value, factor in form)
