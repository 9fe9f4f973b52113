"""Hinge-loss fields of any size, made from a seed without a database."""

from __future__ import annotations

import numpy as np

from structlearn.fields import Hinges

_SATISFIED = 1e-9  # a form that is never above this says nothing


def random_forms(forms: int, seed: int = 1, linear: float = 0.3) -> tuple[Hinges, np.ndarray]:
    """Hinges over one to three of a quarter as many variables, and the weights of 8 groups."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 4, forms)
    n = max(forms // 4, 4)
    first = rng.integers(n, size=forms)
    steps = rng.integers(1, n // 3, size=(forms, 2))  # below a third, so that none comes round
    wide = np.column_stack([first, first + steps[:, 0], first + steps.sum(axis=1)]) % n
    used = np.arange(3) < lengths[:, None]
    field = Hinges(
        np.append(0, np.cumsum(lengths)),
        wide[used],
        rng.normal(size=int(lengths.sum())),
        0.5 * rng.normal(size=forms),
        np.zeros(forms, np.int8),
        np.where(rng.random(forms) < linear, 1, 2),
        rng.integers(8, size=forms),
        n,
        8,
    )
    return field, rng.uniform(0.2, 2.0, 8)


def trust_forms(groups: int, seed: int = 1) -> tuple[Hinges, np.ndarray]:
    """Ground the program of `psl_models.trust` for so many groups, and return its weights.

    The forms are those that rules and tables give, in another order within each rule.
    """
    world = _TrustWorld(groups, seed)
    pieces = [
        world.clause(rule, atoms)
        for rule, atoms in enumerate([*_triads(world), *_pairs_and_traits(world)])
    ]
    lengths, variables, coefficients, constants, rules = map(
        np.concatenate, zip(*pieces, strict=True)
    )
    field = Hinges(
        np.append(0, np.cumsum(lengths)),
        variables,
        coefficients,
        constants,
        np.zeros(len(constants), np.int8),
        np.full(len(constants), 2),
        rules,
        world.n_targets,
        len(pieces),
    )
    return field, 0.6 + 0.025 * np.arange(len(pieces))


class _TrustWorld:
    """The atoms of the program: an edge is -1 where there is none; values are NaN for targets."""

    def __init__(self, groups: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        sizes = np.clip(np.exp(rng.normal(3.0, 0.35, groups)), 6, 60).astype(int)
        starts = np.append(0, np.cumsum(sizes))
        self.matrices = []
        pairs = []
        count = 0
        for n, start in zip(sizes, starts, strict=False):
            found = np.argwhere(~np.eye(n, dtype=bool) & (rng.random((n, n)) < 0.3))
            matrix = np.full((n, n), -1)
            matrix[found[:, 0], found[:, 1]] = count + np.arange(len(found))
            count += len(found)
            self.matrices.append(matrix)
            pairs.append(found + start)
        self.edges = np.concatenate(pairs)
        users = int(starts[-1])
        traits = rng.beta(3, 1.2, (2, users))
        camp = rng.random(users) < 0.5
        tail, head = self.edges.T
        chance = (traits[0, tail] + traits[1, head]) / 2
        chance += np.where(camp[tail] == camp[head], 0.25, -0.25)
        values = (rng.random(count) < chance).astype(float)
        hidden = rng.random(count) < 0.5
        self.prior = round(float(values.mean()), 6)
        # Atoms: edges, then both traits of every user, then the prior.
        self.values = np.concatenate(
            [np.where(hidden, np.nan, values), np.full(2 * users, np.nan), [self.prior]]
        )
        self.trusting = count + np.arange(users)
        self.trustworthy = count + users + np.arange(users)
        free = np.isnan(self.values)
        self.numbers = np.where(free, np.cumsum(free) - 1, -1)
        self.n_targets = int(free.sum())

    def clause(self, rule: int, literals: list[tuple[np.ndarray, int]]) -> tuple[np.ndarray, ...]:
        """Forms of a clause, given its literals in the body (sign 1 or -1, the last the head)."""
        atoms = np.column_stack([atoms for atoms, _ in literals])
        signs = np.array([sign for _, sign in literals])
        # The body is 1 - k + the sum of its k literals; a literal is y, or 1 - y if negated.
        body = len(signs) - 1
        constant = 1.0 - body + (signs[:-1] < 0).sum() - (signs[-1] < 0)
        coefficients = np.append(signs[:-1], -signs[-1]).astype(float)
        values = self.values[atoms]
        free = np.isnan(values)
        constants = constant + np.where(free, 0.0, coefficients * values).sum(axis=1)
        most = constants + (free * np.maximum(coefficients, 0.0)).sum(axis=1)
        kept = free.any(axis=1) & (most > _SATISFIED)
        free, atoms, constants = free[kept], atoms[kept], constants[kept]
        return (
            free.sum(axis=1),
            self.numbers[atoms[free]],
            np.broadcast_to(coefficients, free.shape)[free],
            constants,
            np.full(len(constants), rule),
        )


def _triads(world: _TrustWorld):
    """Literals of the rules on triads: two directions of each of two edges, four signs."""
    for first in (False, True):
        for second in (False, True):
            found = []
            for matrix in world.matrices:
                one = matrix.T if first else matrix
                two = matrix.T if second else matrix
                near = (one[:, :, None] >= 0) & (two[None] >= 0) & (matrix[:, None, :] >= 0)
                a, b, c = np.nonzero(near)
                found.append(np.column_stack([one[a, b], two[b, c], matrix[a, c]]))
            atoms = np.concatenate(found)
            for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                yield [
                    (atoms[:, 0], signs[0]),
                    (atoms[:, 1], signs[1]),
                    (atoms[:, 2], signs[0] * signs[1]),
                ]


def _pairs_and_traits(world: _TrustWorld):
    """Literals of the other rules, in the order of the program."""
    tail, head = world.edges.T
    edge = np.arange(len(tail))
    prior = np.full(len(tail), len(world.values) - 1)
    there = {pair: i for i, pair in enumerate(map(tuple, world.edges.tolist()))}
    back = np.array([there.get((b, a), -1) for a, b in world.edges.tolist()])
    mutual = back >= 0
    yield [(edge[mutual], 1), (back[mutual], 1)]
    yield [(edge[mutual], -1), (back[mutual], -1)]
    for other in (prior, world.trusting[tail], world.trustworthy[head]):
        yield [(other, 1), (edge, 1)]
        yield [(edge, 1), (other, 1)]
