"""Random rule programs, against brute-force grounding and an independent solver."""

from __future__ import annotations

import itertools
import random

import naive_ground
import numpy as np

from campaign.base import expect
from campaign.fields import SMALL, Field, independent_point, least_violation
from structlearn import RuleModel
from structlearn._src.field.hinges import AT_MOST, EQUAL, HINGE
from structlearn.errors import InfeasibleError, StructlearnError
from structlearn.rules import parse

PROGRAMS = 10
ARITIES = {"P": 1, "R": 2, "Q": 1, "S": 2, "T": 2}
CLOSED = ("P", "R")
NAMES = ("a", "b", "7", "it's")
VALUES = (0.0, 0.25, 0.6, 1.0)


class Writer:
    """Writes rules and atoms from random numbers."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.random = random.Random(int(rng.integers(2**62)))
        self.names = self.random.sample(NAMES, self.random.choice((2, 3, 3)))

    def pick(self, *given):
        return self.random.choice(given)

    def chance(self, p):
        return self.random.random() < p

    def world(self):
        """Values of atoms by predicate, None for targets; all of the open ones are listed."""
        kinds = {"P": (1.0, *VALUES), "R": (1.0,) * 4 + VALUES, "Q": (None, None, *VALUES)}
        kinds |= {"S": (None,) * 3 + VALUES, "T": (None,)}
        atoms = {}
        for name, kind in kinds.items():
            keys = list(itertools.product(self.names, repeat=ARITIES[name]))
            listed = 0.7 if name in CLOSED else 1.1
            rows = {key: self.pick(*kind) for key in keys if self.chance(listed)}
            atoms[name] = rows or {keys[0]: 1.0}
        return atoms

    # ---- rules ---------------------------------------------------------------------------

    def quoted(self):
        name = self.pick(*self.names).replace("'", "\\'")
        return f"'{name}'"

    def atom(self, predicates, term):
        name = self.pick(*predicates)
        return f"{name}({', '.join(term() for _ in range(ARITIES[name]))})"

    def rule(self):
        """A rule, weighted or hard."""
        body = self.logic() if self.chance(0.6) else self.arithmetic()
        filters = ""
        if isinstance(body, tuple):
            body, filters = body
        if self.chance(0.15):
            return f"{body} . {filters}"
        weight = self.pick(1, 1, 2.5, 0.1, 100, 0.001, 0)
        return f"{weight}: {body} {self.pick('', '', '^2', '^2', '^1')} {filters}"

    def logic(self):
        bound = []

        def first():
            if self.chance(0.9):
                bound.append(self.pick("A", "A", "B", "C"))
                return bound[-1]
            return self.quoted()

        body = [self.atom("PRQSSST", first) for _ in range(self.pick(1, 1, 2, 2, 3))]

        def inner():
            return self.pick(*bound, *bound, self.quoted())

        more = [f"!{self.atom('PRQST', inner)}" for _ in range(self.pick(0, 0, 0, 1))]
        if self.chance(0.3):
            more.append(f"({inner()} {self.pick('==', '!=', '!=', '%')} {inner()})")
        head = [
            self.pick("", "", "!") + self.atom("PRQSSST", inner)
            for _ in range(self.pick(0, 1, 1, 1, 2))
        ]
        if not head:
            return " | ".join(f"!{atom}" for atom in body)
        return f"{' & '.join([*body, *more])} -> {' | '.join(head)}"

    def arithmetic(self):
        plain = ["A", "A", "B", self.quoted()]
        summed = []

        def term():
            if self.chance(0.3):
                summed.append(f"X{len(summed)}")
                return f"+{summed[-1]}"
            return self.pick(*plain)

        parts = []
        for _ in range(self.pick(1, 2, 2, 3)):
            atom = self.atom("PRQSSST", term)
            parts.append(self.pick("", "", "2 * ", "0.5 * ", "-1 * ", "3.25 * ") + atom)
        constant = self.pick("0", "1", "0.5", "2", "-0.25")
        if summed and self.chance(0.3):
            constant = f"{self.pick('1 * ', '0.5 * ')}|{self.pick(*summed)}|"
        body = f"{' + '.join(parts)} {self.pick('<=', '>=', '=')} {constant}"
        filters = [f"{{{name}: {self.condition(name)}}}" for name in summed if self.chance(0.4)]
        return body, " ".join(filters)

    def condition(self, name):
        def term():
            return self.pick(name, name, self.quoted())

        parts = [self.pick("", "", "!") + self.atom("PR", term) for _ in range(self.pick(1, 1, 2))]
        return self.pick(" & ", " || ").join(parts)


def field_of(rules, weights, atoms):
    """The ground program by brute force, and the numbers of its targets."""
    names = [
        (name.lower(), key) for name, rows in atoms.items() for key, v in rows.items() if v is None
    ]
    places = {name: i for i, name in enumerate(names)}
    counted = naive_ground.ground(rules, naive_ground.World(atoms))
    forms = [form for form, times in counted.items() for _ in range(times)]
    A = np.zeros((len(forms), len(names)))
    for row, (*_, terms) in zip(A, forms, strict=True):
        for name, coefficient in terms:
            row[places[name]] += coefficient
    owners = np.array([form[0] for form in forms], int)
    hard = np.array([rule.weight is None for rule in rules])[owners]
    equal = np.array([form[1] for form in forms], bool)
    return places, Field(
        A,
        np.array([form[2] for form in forms]),
        np.where(hard, np.where(equal, EQUAL, AT_MOST), HINGE),
        np.where([rules[i].squared for i in owners], 2, 1),
        owners,
        weights,
    )


def check(rng: np.random.Generator) -> None:
    """Ground and solve some programs."""
    for _ in range(PROGRAMS):
        writer = Writer(rng)
        text = "\n".join(writer.rule() for _ in range(writer.pick(1, 2, 3, 4)))
        atoms = {name: rows for name, rows in writer.world().items() if f"{name}(" in text}
        if any(v is None for rows in atoms.values() for v in rows.values()):
            compare(text, atoms, rng)


def compare(text, atoms, rng):
    """See that a program means what brute force makes of it, and that its answer is the best."""
    about = f"{text!r} over {atoms}"
    try:
        rules = parse(text)
        model = RuleModel(text, time_limit=5.0, n_jobs=1)
        for name, rows in atoms.items():
            model.observe({name: [(*key, v) for key, v in rows.items() if v is not None]})
            model.target({name: [key for key, v in rows.items() if v is None]})
        hinges = model.grounding_.hinges
    except StructlearnError as error:
        expect(error.__class__.__name__ in ("RuleError", "AtomError"), error, about)
        return  # unsafe variables, filters over open predicates and the like
    weights = np.where(
        [rule.weight is None for rule in rules], 0.0, [r.weight or 0.0 for r in rules]
    )
    places, field = field_of(rules, weights, atoms)
    order = targets(model, places)
    for _ in range(3):
        y = rng.random(len(places))
        same_forms(field, hinges, y, y[order], weights, about)
    if not len(field.A):
        return
    try:
        result = model.result_
    except InfeasibleError:
        expect(not least_violation(field) < SMALL, "not infeasible:", about)
        return
    y = np.empty(len(places))
    y[order] = result.y
    judge(field, result, y, about)


def targets(model, places):
    """Which of the targets of brute force every variable of the model is."""
    order = np.empty(model.grounding_.hinges.n_variables, int)
    for name in model.tables.relations:
        numbers, columns = model.tables.arguments(name)
        for number, key in zip(numbers, zip(*columns, strict=True), strict=True):
            order[number] = places[name.lower(), tuple(map(str, key))]
    return order


def same_forms(field, hinges, y, mine, weights, about):
    """Energies agree at a point, and so do the values of hard constraints, in some order."""
    energy = hinges.energy(mine, weights)
    right = field.energy(y)
    expect(
        abs(energy - right) <= 1e-5 * (1.0 + abs(right)), f"energy {energy}, not {right}:", about
    )
    values = np.sort(hinges.values(mine)[hinges.hard])
    wanted = np.sort((field.A @ y + field.b)[field.kinds != HINGE])
    expect(len(values) == len(wanted), "another number of hard forms:", about)
    expect(np.allclose(values, wanted, atol=1e-5), "other hard forms:", about)


def judge(field, result, y, about):
    """The answer is as good as it says, and no other point is better by more than the gap."""
    size = 1.0 + field.each.max(initial=0.0)
    energy = field.energy(y)
    # Forms of brute force are rounded to six digits.
    close = 1e-5 * (size + abs(energy)) * len(field.A)
    expect(abs(energy - result.energy) <= close, f"{result!r} has energy {energy}:", about)
    missed = field.violations(y).max(initial=0.0)
    expect(not result.converged or missed <= 2e-5, f"{result!r} misses {missed}:", about)
    point = independent_point(field)
    if point is None or field.violations(point).max(initial=0.0) > 1e-6:
        return
    other = field.energy(point)
    expect(result.lower <= other + close, f"{result!r}, but {other} at {point}:", about)
    expect(not result.converged or energy <= other + close, f"{result!r}, but {other}:", about)
