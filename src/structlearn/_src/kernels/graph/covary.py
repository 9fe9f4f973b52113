r"""Elimination along a direction: how values and beliefs move when all tables move together.

Let the tables be :math:`\theta + t d`, at temperature 1. The derivative of a message by t is an
expectation under the conditional distribution of the variable of its bucket,

.. math:: \dot m_b(s) = \sum_{x_v} p(x_v \mid s) \, \dot t_b(s, x_v), \qquad
          p(x_v \mid s) = \exp(t_b(s, x_v) - m_b(s)) ,

so that the value moves by the expectation of d. Going back, the belief of a bucket moves by

.. math:: \dot \beta_b(s, x_v) = p(x_v \mid s) \bigl(\dot \beta(s)
          + \beta(s) (\dot t_b(s, x_v) - \dot m_b(s))\bigr) ,

the covariance of d with the entries of the tables: a product by the Hessian of log Z. Directions,
derivatives and beliefs have the layout of the store of `eliminate`, and blocks are taken twice, of
the tables and of their derivatives.
"""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.graph.eliminate import (
    load,
    move_on,
    open_bucket,
    spread_moving,
    spread_still,
)
from structlearn._src.kernels.jit import inner, lean


@inner
def _expectation(table, along, k, states, message):
    """Mean of `states` entries of `along` under the distribution of those of `table`."""
    total = 0.0
    if message > -np.inf:
        for x in range(states):
            total += np.exp(table[k + x] - message) * along[k + x]
    return total


@lean
def forward(cards, plan, store, along, block, other, first, last, value):
    """Push a direction through the buckets of the graphs first..last-1.

    The store is that of `eliminate.forward`. The tables of `along` are the direction; what the
    messages move by follows them, and `value` gets what the values move by.
    """
    for g in range(first, last):
        value[g] = 0.0
        for b in range(plan.graph_buckets[g], plan.graph_buckets[g + 1]):
            states = cards[plan.variables[b]]
            open_bucket(b, cards, plan, store, block)
            open_bucket(b, cards, plan, along, other)
            out = plan.message_offsets[b]
            for _ in range(block.split[2]):
                load(store, block)
                load(along, other)
                for k in range(0, block.split[1], states):
                    along[out] = _expectation(block.table, other.table, k, states, store[out])
                    out += 1
                move_on(b, cards, plan, block)
                move_on(b, cards, plan, other)
            if plan.parents[b] < 0:
                value[g] += along[plan.message_offsets[b]]


@inner
def _share(table, along, k, states, message, moved, belief, slope):
    """Turn entries of both tables into beliefs and what these move by."""
    for x in range(states):
        p = np.exp(table[k + x] - message) if message > -np.inf else 0.0
        table[k + x] = p * belief
        along[k + x] = p * (slope + belief * (along[k + x] - moved))


@lean
def backward(cards, plan, store, along, beliefs, slopes, block, other, first, last):
    """Beliefs of all factors and separators, and what they move by, both zero to begin with.

    `along` is what `forward` has left.
    """
    for g in range(first, last):
        for b in range(plan.graph_buckets[g + 1] - 1, plan.graph_buckets[g] - 1, -1):
            states = cards[plan.variables[b]]
            message = plan.message_offsets[b]
            if plan.parents[b] < 0:
                beliefs[message] = 1.0
            open_bucket(b, cards, plan, store, block)
            open_bucket(b, cards, plan, along, other)
            size = block.split[1]
            block.total[:size] = 0.0
            other.total[:size] = 0.0
            for _ in range(block.split[2]):
                load(store, block)
                load(along, other)
                for k in range(0, size, states):
                    _share(
                        block.table, other.table, k, states, store[message], along[message],
                        beliefs[message], slopes[message],
                    )  # fmt: skip
                    message += 1
                spread_moving(block, beliefs)
                spread_moving(other, slopes)
                move_on(b, cards, plan, block)
                move_on(b, cards, plan, other)
            spread_still(b, plan, block, beliefs)
            spread_still(b, plan, other, slopes)
