"""A slow, obvious grounder: every binding of every variable, one at a time."""

from __future__ import annotations

import itertools
from collections import Counter

from structlearn._src.rules import syntax

SLACK = 1e-9


class Missing(Exception):  # noqa: N818
    """An open atom that nobody listed."""


class World:
    """Atoms by predicate: from arguments to an observed value, or None where free."""

    def __init__(self, atoms):
        self.atoms = {name.lower(): rows for name, rows in atoms.items()}
        self.open = {name: None in rows.values() for name, rows in self.atoms.items()}
        self.constants = sorted({c for rows in self.atoms.values() for row in rows for c in row})

    def rows(self, atom):
        return self.atoms[atom.predicate.lower()]

    def key(self, atom, binding):
        return tuple(
            t.value if isinstance(t, syntax.Constant) else binding[t.name] for t in atom.terms
        )

    def listed(self, atom, binding):
        return self.key(atom, binding) in self.rows(atom)

    def is_open(self, atom):
        return self.open[atom.predicate.lower()]


class Form:
    def __init__(self, constant):
        self.constant, self.terms = constant, Counter()

    def add(self, world, atom, key, coefficient):
        value = world.rows(atom).get(key, 0.0)
        if value is None:
            self.terms[atom.predicate.lower(), key] += coefficient
        else:
            self.constant += coefficient * value

    def signature(self):
        terms = sorted((name, round(x, 6)) for name, x in self.terms.items() if x)
        return round(self.constant, 6) + 0.0, tuple(terms)

    def is_kept(self, equal):
        alive = [x for x in self.terms.values() if x]
        top = self.constant + sum(max(x, 0) for x in alive)
        return bool(alive) and (equal or top > SLACK)


def bindings(names, constants):
    for values in itertools.product(constants, repeat=len(names)):
        yield dict(zip(names, values, strict=True))


def names_of(atoms, kind):
    found = [t.name for atom in atoms for t in atom.terms if isinstance(t, kind)]
    return list(dict.fromkeys(found))


def holds(comparison, binding):
    def text(term):
        return term.value if isinstance(term, syntax.Constant) else binding[term.name]

    left, right = text(comparison.left), text(comparison.right)
    if comparison.operator == "%":
        return left < right
    return (left == right) == (comparison.operator == "==")


def ground_clause(clause, world):
    literals = list(dict.fromkeys(clause.literals))
    tests = [each for each in literals if isinstance(each.atom, syntax.Comparison)]
    body = [each.atom for each in literals if each.negated and isinstance(each.atom, syntax.Atom)]
    head = [
        each.atom for each in literals if not each.negated and isinstance(each.atom, syntax.Atom)
    ]
    terms = [each.atom for each in literals]
    names = list(dict.fromkeys(t.name for a in terms for t in _terms(a) if hasattr(t, "name")))
    forms = []
    for binding in bindings(names, world.constants):
        if any(holds(each.atom, binding) != each.negated for each in tests):
            continue
        if not all(world.listed(atom, binding) for atom in body):
            continue
        best = 1.0
        for atom in body:
            value = world.rows(atom)[world.key(atom, binding)]
            best -= 0.0 if value is None else 1 - value
        if best <= SLACK:
            continue
        form = Form(1.0)
        for atom in body:
            form.constant -= 1
            form.add(world, atom, world.key(atom, binding), 1.0)
        for atom in head:
            if world.is_open(atom) and not world.listed(atom, binding):
                raise Missing(atom)
            form.add(world, atom, world.key(atom, binding), -1.0)
        forms.append(form)
    return [form for form in forms if form.is_kept(False)]


def _terms(atom):
    return (atom.left, atom.right) if isinstance(atom, syntax.Comparison) else atom.terms


def passes(literal, world, binding):
    if isinstance(literal.atom, syntax.Comparison):
        return holds(literal.atom, binding) != literal.negated
    value = world.rows(literal.atom).get(world.key(literal.atom, binding), 0.0)
    return (value > 0) != literal.negated


def number(coefficient, counts):
    if isinstance(coefficient, syntax.Number):
        return coefficient.value
    if isinstance(coefficient, syntax.Count):
        return float(counts[coefficient.variable])
    left, right = number(coefficient.left, counts), number(coefficient.right, counts)
    return {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: left / right,
        "min": lambda: min(left, right),
        "max": lambda: max(left, right),
    }[coefficient.operator]()


def ground_linear(body, world, sign, equal):
    atoms = [each.atom for each in body.summands if each.atom is not None]
    summed = names_of(atoms, syntax.SumVariable)
    names = [
        t.name
        for atom in atoms
        for t in atom.terms
        if not isinstance(t, (syntax.Constant, syntax.SumVariable))
    ]
    forms = []
    for binding in bindings(list(dict.fromkeys(names)), world.constants):
        if not all(holds(test, binding) for test in body.tests):
            continue
        own = {id(atom): names_of([atom], syntax.SumVariable) for atom in atoms}
        if not all(
            any(
                world.listed(atom, {**binding, **more})
                for more in bindings(own[id(atom)], world.constants)
            )
            for atom in atoms
        ):
            continue
        picked, counts = {}, dict.fromkeys(summed, 0)
        for atom in atoms:
            picked[id(atom)] = _picked(body, world, atom, binding, own[id(atom)])
            size = len(picked[id(atom)])
            if own[id(atom)] and not world.is_open(atom):
                size = _domain(body, world, atom, binding)
            counts.update(dict.fromkeys(own[id(atom)], size))
        form = Form(0.0)
        for each in body.summands:
            if each.atom is None:
                form.constant += sign * number(each.coefficient, counts)
                continue
            for key in picked[id(each.atom)]:
                form.add(world, each.atom, key, sign * number(each.coefficient, counts))
        forms.append(form)
    return [form for form in forms if form.is_kept(equal)]


def _passing(body, world, names, binding):
    tests = [one for each in body.filters if each.variable in names for one in each.literals]
    return all(passes(test, world, binding) for test in tests)


def _picked(body, world, atom, binding, names):
    found = []
    for more in bindings(names, world.constants):
        whole = {**binding, **more}
        if world.listed(atom, whole) and _passing(body, world, names, whole):
            found.append(world.key(atom, whole))
    return found


def _domain(body, world, atom, binding):
    """Values of the summed columns, among the rows that agree with the atom's constants."""
    fixed = {i: t.value for i, t in enumerate(atom.terms) if isinstance(t, syntax.Constant)}
    rows = [row for row in world.rows(atom) if all(row[i] == c for i, c in fixed.items())]
    names = {t.name: i for i, t in enumerate(atom.terms) if isinstance(t, syntax.SumVariable)}
    columns = [sorted({row[i] for row in rows}) for i in names.values()]
    return sum(
        _passing(body, world, names, {**binding, **dict(zip(names, values, strict=True))})
        for values in itertools.product(*columns)
    )


def ground(rules, world):
    """Count every form: (rule, equal, constant, terms)."""
    found = Counter()
    for i, rule in enumerate(rules):
        if isinstance(rule.body, syntax.Clause):
            groups = [(ground_clause(rule.body, world), False)]
        else:
            equal = rule.weight is None and rule.body.operator == "="
            signs = {"<=": [1], ">=": [-1], "=": [1] if equal else [1, -1]}[rule.body.operator]
            groups = [(ground_linear(rule.body, world, sign, equal), equal) for sign in signs]
        for forms, equal in groups:
            found.update((i, equal, *form.signature()) for form in forms)
    return found
