"""Why an atom has its value: what every grounding with it pulls, and how much."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Floats, Ints, block_indices
from structlearn._src.common.errors import ArgumentError, RuleError
from structlearn._src.field.hinges import EQUAL, HINGE
from structlearn._src.rules.bindings import FormKey, find_bindings, form_key
from structlearn._src.rules.ground import Grounding
from structlearn._src.rules.parse import parse_rule
from structlearn._src.rules.syntax import Constant, Linear, Number
from structlearn._src.rules.tables import Tables

# What is in quotes, or an argument without: easier to write in a shell.
_ARGUMENT = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?<=[(,])\s*([^\s'",()][^'",()]*?)\s*(?=[,)])""",
    re.DOTALL,
)

#: A hard constraint holds with nothing to spare up to this; inference keeps it to 1e-6.
_ACTIVE = 1e-5


@dataclass(frozen=True)
class Pull:
    r"""What one grounding :math:`l(y) = b + \sum_k a_k y_k` does to an atom."""

    rule: int  #: its number
    text: str
    #: Derivative of the energy by the atom's value through this grounding,
    #: :math:`w p \max(l, 0)^{p - 1} a`: above 0 it pulls down, below 0 up.
    slope: float
    distance: float  #: :math:`l(y)`; the grounding is satisfied where it is at most 0
    hard: bool  #: whether it is a constraint: its pull is what the others make necessary
    atoms: tuple[tuple[str, float, float], ...]  #: the free ones: name, coefficient, value
    constant: float  #: what the observed atoms add to :math:`l`
    #: The rule with constants in the place of its variables; empty for rules with sums.
    grounding: str = ""
    observed: tuple[tuple[str, float], ...] = ()  #: atoms with known values: name, value

    def __str__(self) -> str:
        way = "down" if self.slope > 0 else "up" if self.slope < 0 else "holds"
        amount = f" {abs(self.slope):.4g}" if self.slope else ""
        if not self.grounding:
            terms = " ".join(f"{a:+g} {name} [{value:.3g}]" for name, a, value in self.atoms)
            return f"{way}{amount}  {terms} {self.constant:+.4g}  |  {self.text}"
        values = [*((name, value) for name, _, value in self.atoms), *self.observed]
        known = ", ".join(f"{name} = {value:.3g}" for name, value in values)
        return f"{way}{amount}  {self.grounding}  |  {known}"


def explain(grounding: Grounding, variable: int, values: Floats, forces: Floats) -> list[Pull]:
    """List the groundings that pull a target up or down, the strongest first.

    `forces` are the derivatives of the energy by each form at the `values`, which for linear hinges
    at their kink and for constraints do not follow from these. At the minimum the slopes of an atom
    strictly between 0 and 1 add up to 0. Constraints without anything to spare are listed too.
    """
    hinges = grounding.hinges
    entries = np.flatnonzero(hinges.variables == variable)
    forms = np.searchsorted(hinges.offsets, entries, "right") - 1
    distances = _distances(grounding, forms, values)
    slopes = forces[forms] * hinges.coefficients[entries]
    tight = np.where(hinges.kinds[forms] == EQUAL, 0.0, -distances) <= _ACTIVE
    shown = np.flatnonzero((slopes != 0) | ((hinges.kinds[forms] != HINGE) & tight))
    shown = shown[np.argsort(-np.abs(slopes[shown]), kind="stable")]
    atoms = np.unique(hinges.variables[block_indices(hinges.offsets, forms[shown])])
    names = dict(zip(atoms.tolist(), grounding.tables.names(atoms), strict=True))
    pulls = [
        _pull(grounding, int(forms[i]), float(slopes[i]), float(distances[i]), values, names)
        for i in shown
    ]
    return _in_words(grounding, variable, forms[shown], pulls)


def _distances(grounding: Grounding, forms: Ints, values: Floats) -> Floats:
    """Value of some forms."""
    hinges = grounding.hinges
    entries = block_indices(hinges.offsets, forms)
    owners = np.repeat(np.arange(len(forms)), np.diff(hinges.offsets)[forms])
    terms = hinges.coefficients[entries] * values[hinges.variables[entries]]
    return hinges.constants[forms] + np.bincount(owners, terms, len(forms))


def _in_words(
    grounding: Grounding, variable: int, forms: Ints, pulls: Sequence[Pull]
) -> list[Pull]:
    """Add to every pull which constants it speaks about; groundings of equal forms take turns."""
    hinges = grounding.hinges
    rules = sorted({pull.rule for pull in pulls})
    found = {i: find_bindings(grounding.rules[i], grounding.tables, variable) for i in rules}
    taken: Counter[tuple[int, FormKey]] = Counter()
    told = []
    for form, pull in zip(forms.tolist(), pulls, strict=True):
        entries = slice(hinges.offsets[form], hinges.offsets[form + 1])
        numbers, coefficients = hinges.variables[entries], hinges.coefficients[entries]
        terms = zip(numbers.tolist(), coefficients.tolist(), strict=True)
        key = form_key(terms, pull.constant)
        several = found[pull.rule].get(key, [])
        nth = taken[pull.rule, key]
        taken[pull.rule, key] += 1
        if nth < len(several):
            words, observed = several[nth]
            pull = replace(pull, grounding=words, observed=observed)
        told.append(pull)
    return told


def find_atom(tables: Tables, atom: str | Sequence[Any]) -> int:
    """Number of a target, given by its text, or by predicate and arguments."""
    if isinstance(atom, str):
        return tables.find(*read_atom(atom))
    if not isinstance(atom, Sequence) or len(atom) < 2 or not isinstance(atom[0], str):
        raise _no_atom(atom)
    return tables.find(atom[0], list(atom[1:]))


def _no_atom(given: Any) -> ArgumentError:
    return ArgumentError(f"{given!r} is not an atom; write it as in Likes('bob', 'tea')")


def read_atom(text: str) -> tuple[str, list[str]]:
    """Read an atom without variables, such as ``Likes('bob', tea)``; quotes may be left out."""
    quoted = _ARGUMENT.sub(lambda found: f"'{found[1]}'" if found[1] else found[0], text)
    try:
        body = parse_rule(f"{quoted} >= 1 .").body
    except RuleError:
        body = None
    first = body.summands[0] if isinstance(body, Linear) and len(body.summands) == 2 else None
    if first is None or first.atom is None or first.coefficient != Number(1.0):
        raise _no_atom(text)
    return first.atom.predicate, [t.value for t in first.atom.terms if isinstance(t, Constant)]


def _pull(
    grounding: Grounding,
    form: int,
    slope: float,
    distance: float,
    values: Floats,
    names: dict[int, str],
) -> Pull:
    hinges = grounding.hinges
    rule = int(hinges.groups[form])
    entries = slice(hinges.offsets[form], hinges.offsets[form + 1])
    terms = zip(
        hinges.variables[entries].tolist(), hinges.coefficients[entries].tolist(), strict=True
    )
    atoms = tuple((names[v], a, float(values[v])) for v, a in terms)
    hard = bool(hinges.kinds[form] != HINGE)
    constant = float(hinges.constants[form])
    return Pull(rule, grounding.rules[rule].text, slope, distance, hard, atoms, constant)
