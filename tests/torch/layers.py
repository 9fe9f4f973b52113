"""Losses of chains and graphs by enumeration, for tests of layers."""

from __future__ import annotations

import itertools

import numpy as np

import naive
from structlearn._src.learn.loss import NAMED, make_cost, make_loss

LOSSES = tuple(NAMED)


def scores_of(nodes, edges, pairs):
    """Score of every assignment, the last node fastest; `edges` has a table for each pair."""
    n, states = nodes.shape
    return np.array(
        [
            sum(nodes[i, s] for i, s in enumerate(path))
            + sum(table[path[i], path[j]] for (i, j), table in zip(pairs, edges, strict=True))
            for path in itertools.product(range(states), repeat=n)
        ]
    )


def loss_of(nodes, edges, pairs, labels, name, alpha=0.5, cost="hamming"):
    """Loss of one example: the parts of the loss, each by enumeration."""
    states = nodes.shape[1]
    matrix = make_cost(cost, states)
    rows = naive.cost_rows(labels, matrix.matrix, matrix.mean)
    scores = scores_of(nodes, edges, pairs)
    cards = [states] * len(nodes)
    return sum(
        part.share
        * naive.two_worlds(
            scores, cards, labels, part.eps_y, part.eps_h, rows if part.with_cost else None
        )[0]
        for part in make_loss(name, alpha=alpha).parts
    )


def chain_pairs(n):
    return [(t, t + 1) for t in range(n - 1)]
