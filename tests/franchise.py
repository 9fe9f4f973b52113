"""The hierarchical Dirichlet process by its restaurants: exact probabilities of short paths."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

import numpy as np


def path_probabilities(offsets, alpha, gamma):
    """Probability of every path, up to names, by all ways to seat its customers."""
    starts, T = set(offsets[:-1]), int(offsets[-1])
    found = defaultdict(float)

    def walk(t, path, rows, tables, p):
        if t == T:
            found[tuple(path)] += p
            return
        row = rows[0 if t in starts else path[-1] + 1]
        total, dishes = sum(row.values()), sum(tables)
        for k in list(row):
            if row[k]:
                step(t, path, rows, tables, k, False, p * row[k] / (total + alpha))
        new = p * alpha / (total + alpha) / (dishes + gamma)
        for k in range(len(tables) + 1):
            step(t, path, rows, tables, k, True, new * ([*tables, gamma])[k])

    def step(t, path, rows, tables, k, opens, p):
        place = 0 if t in starts else path[-1] + 1
        rows[place][k] += 1
        after = list(tables)
        if opens:
            after = [*after, 0] if k == len(after) else after
            after[k] += 1
        walk(t + 1, [*path, k], rows, after, p)
        rows[place][k] -= 1

    walk(0, [], defaultdict(Counter), [], 1.0)
    return dict(found)


def joint_paths(logs, rows, slices):
    """Probabilities of all paths of one sequence given slices, by enumeration."""
    T, K = logs.shape
    paths = list(itertools.product(range(K), repeat=T))
    weights = np.zeros(len(paths))
    for i, path in enumerate(paths):
        before = [0, *(z + 1 for z in path[:-1])]
        if all(rows[b, z] > u for b, z, u in zip(before, path, slices, strict=True)):
            weights[i] = sum(logs[t, z] for t, z in enumerate(path)) + 1e9
    known = weights != 0.0
    weights[known] = np.exp(weights[known] - weights[known].max())
    return paths, weights / weights.sum()
