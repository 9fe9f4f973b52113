"""Which constants stand for the variables of a rule in groundings that hold a given atom.

Grounding keeps the free atoms and one constant of every form, into which the observed atoms are
summed. That is all inference needs, and it saves memory; people want to read the rest, so it is
found again, for the groundings of one atom.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from structlearn._src.rules.ground import forms_of
from structlearn._src.rules.plan import Flat, Slot
from structlearn._src.rules.syntax import Atom, Clause, Constant, Linear, Rule, Variable, rewritten
from structlearn._src.rules.tables import Tables

_DIGITS = 9  # of a form's constant: sums of the same values may differ by rounding


class Binding(NamedTuple):
    """One grounding in words."""

    text: str  #: the rule with constants in the place of its variables
    observed: tuple[tuple[str, float], ...]  #: atoms with known values


#: What tells the forms of one rule apart: their free atoms with coefficients, and their constants.
FormKey = tuple[frozenset[tuple[int, float]], float]


def form_key(terms: Iterable[tuple[int, float]], constant: float) -> FormKey:
    """Return what tells a form, of atoms and their coefficients, from the others of its rule."""
    totals: dict[int, float] = defaultdict(float)
    for atom, coefficient in terms:
        totals[atom] += coefficient
    rounded = {atom: round(total, _DIGITS) for atom, total in totals.items()}
    kept = frozenset((atom, total) for atom, total in rounded.items() if total)
    return kept, round(float(constant), _DIGITS) + 0.0


def find_bindings(rule: Rule, tables: Tables, variable: int) -> dict[FormKey, list[Binding]]:
    """Return the groundings of a rule that hold a free atom, by their forms; none for sums.

    Several groundings may have the same form. A weighted rule with ``=`` has two forms for each
    grounding, one for either sign.
    """
    found: dict[FormKey, list[Binding]] = defaultdict(list)
    for form in _flat_forms(rule, tables):
        for slots in form.cases():
            for key, binding in _groundings(rule, form, slots, variable):
                found[key].append(binding)
    return found


def _flat_forms(rule: Rule, tables: Tables) -> list[Flat]:
    """The linear forms of a rule, as in grounding."""
    return [form for form, _ in forms_of(rule, tables) if isinstance(form, Flat)]


def _groundings(
    rule: Rule, form: Flat, slots: Sequence[Slot], variable: int
) -> Iterator[tuple[FormKey, Binding]]:
    """Find the groundings of one case that hold the atom."""
    tables = form.tables
    join = form.join(slots)
    opened = [slot for slot in slots if slot.is_open and slot.mode != "seen"]
    if not opened:
        return
    join.conditions.append(f"{variable} IN ({', '.join(f'{s.alias}.atom' for s in opened)})")
    atoms = [f"coalesce({slot.alias}.atom, -1) AS v{i}" for i, slot in enumerate(slots)]
    values = [f"coalesce({slot.alias}.value, 0) AS x{i}" for i, slot in enumerate(slots)]
    terms = [f"{column} AS c{i}" for i, column in enumerate(join.bound.values())]
    chosen = ", ".join([*atoms, *values, *terms, f"{form.constant_of(slots)} AS b"])
    query = f"SELECT {chosen} {join.clause()} ORDER BY ALL"
    found = tables.connection.execute(query).fetchnumpy()
    texts = [tables.texts(found[f"c{i}"]) for i in range(len(terms))]
    for row, constant in enumerate(found["b"].tolist()):
        numbers = [int(found[f"v{i}"][row]) for i in range(len(slots))]
        known = {
            slot.atom: float(found[f"x{i}"][row]) for i, slot in enumerate(slots) if numbers[i] < 0
        }
        free = {slot.atom for i, slot in enumerate(slots) if numbers[i] >= 0}
        constants = {name: Constant(texts[i][row]) for i, name in enumerate(join.bound)}
        entries = [
            (atom, slot.coefficient) for atom, slot in zip(numbers, slots, strict=True) if atom >= 0
        ]
        key = form_key(entries, constant)
        yield key, _in_words(rule, constants, known, free)


def _in_words(
    rule: Rule, constants: Mapping[str, Constant], known: Mapping[Atom, float], free: set[Atom]
) -> Binding:
    """Put constants in the place of variables, and list the observed atoms.

    Atoms that the query leaves out are 1 wherever the others are listed.
    """

    def bind(part: Any) -> Any:
        return constants.get(part.name) if isinstance(part, Variable) else None

    body: Clause | Linear = rewritten(rule.body, bind)
    words = body.text() if isinstance(body, Linear) else str(body)
    seen = dict.fromkeys(atom for atom in rule.atoms if atom not in free)
    observed = tuple((str(rewritten(atom, bind)), known.get(atom, 1.0)) for atom in seen)
    return Binding(words, observed)
