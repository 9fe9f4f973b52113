r"""Chains in plain PyTorch: differentiable to any order, on any device.

The compiled loops of the library serve tensors in memory of the host, to first order. These
recursions serve second derivatives and other devices, and say the same in a few lines:

.. math:: \Phi(\theta; \epsilon_y, \epsilon_h) = \epsilon_y \log \sum_y \exp\Bigl(
          \frac{1}{\epsilon_y} \epsilon_h \log \sum_h \exp \frac{\theta(y, h)}{\epsilon_h}\Bigr)

with the positions of a chain in two kinds: outputs :math:`y` and hidden ones :math:`h`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from structlearn._src.common.errors import ArgumentError
from structlearn._src.learn.loss import Cost, Loss

#: In the place of minus infinity, whose differences are not numbers; sums of many stay finite.
FLOOR = -1e30


def soft_max(values: Tensor, dim: int, eps: float) -> Tensor:
    r""":math:`\epsilon \log \sum \exp(x / \epsilon)` over an axis; the maximum at 0."""
    if eps == 0.0:
        return values.max(dim).values
    return eps * torch.logsumexp(values / eps, dim)


def chain_value(
    nodes: Tensor, edges: Tensor, mask: Tensor, hidden: Tensor, eps_y: float, eps_h: float
) -> Tensor:
    """Return the soft maximum (B,) of chains with nodes (B, T, K) and edges (..., K, K).

    Edges are one table, or (B, T - 1, K, K). Positions outside `mask` (B, T), a prefix, do not
    count; those that are `hidden` (B, T) have the temperature `eps_h`, the others `eps_y`.
    """
    nodes = nodes.clamp(min=FLOOR)
    edges = edges.clamp(min=FLOOR)
    if eps_y == eps_h:
        return _one_temperature(nodes, edges, mask, eps_y)
    return _two_temperatures(nodes, edges, mask, hidden, eps_y, eps_h)


def _table(edges: Tensor, t: int) -> Tensor:
    """Tables (B or 1, K, K) of the edges that lead to position `t`."""
    return edges[None] if edges.ndim == 2 else edges[:, t - 1]


def _one_temperature(nodes: Tensor, edges: Tensor, mask: Tensor, eps: float) -> Tensor:
    """Forward recursion: the soft maximum of all that ends in a state."""
    ahead = nodes[:, 0]
    for t in range(1, nodes.shape[1]):
        new = soft_max(ahead[:, :, None] + _table(edges, t), 1, eps) + nodes[:, t]
        ahead = torch.where(mask[:, t, None], new, ahead)
    return soft_max(ahead, 1, eps)


def _two_temperatures(
    nodes: Tensor, edges: Tensor, mask: Tensor, hidden: Tensor, eps_y: float, eps_h: float
) -> Tensor:
    """Sum runs of hidden positions out first, for every pair of outputs around them.

    `outer` (B, K) is the soft maximum of all up to the last output, by its state; `inner` (B, K, K)
    what hidden positions after it add, by its state and that of the present position.
    """
    states = nodes.shape[2]
    same = nodes.new_full((states, states), FLOOR).fill_diagonal_(0.0)
    one = torch.arange(states, device=nodes.device) == 0
    # Before the first position lies an output with a single state, which adds nothing.
    outer = torch.where(one, 0.0, FLOOR).to(nodes).expand(len(nodes), -1)
    inner = nodes[:, :1, :].expand(-1, states, -1)
    for t in range(nodes.shape[1]):
        if t:
            reached = inner[:, :, :, None] + _table(edges, t)[:, None]
            inner_new = soft_max(reached, 2, eps_h) + nodes[:, t, None, :]
        else:
            inner_new = inner
        outer_new = soft_max(outer[:, :, None] + inner_new, 1, eps_y)
        output = ~hidden[:, t]
        counted = mask[:, t]
        outer = torch.where((output & counted)[:, None], outer_new, outer)
        inner_new = torch.where(output[:, None, None], same, inner_new)
        inner = torch.where(counted[:, None, None], inner_new, inner)
    return soft_max(outer + soft_max(inner, 2, eps_h), 1, eps_y)


def chain_losses(
    nodes: Tensor,
    edges: Tensor,
    labels: Tensor,
    mask: Tensor,
    loss: Loss,
    cost: Cost | None,
    sides: tuple[bool, bool],
) -> Tensor:
    """Return free less clamped values (B,), or one of them alone."""
    hidden = labels < 0
    total = nodes.new_zeros(len(nodes))
    for part in loss.parts:
        if sides[0]:
            costs = _costs(labels, mask, cost, nodes) if part.with_cost and cost else 0.0
            free = chain_value(nodes + costs, edges, mask, hidden, part.eps_y, part.eps_h)
            total = total + part.share * free
        if sides[1]:
            states = torch.arange(nodes.shape[2], device=nodes.device)
            open_ = hidden[:, :, None] | (labels[:, :, None] == states)
            kept = torch.where(open_, nodes, FLOOR)
            clamped = chain_value(kept, edges, mask, hidden, part.eps_h, part.eps_h)
            total = total - part.share * clamped
    return total


def _costs(labels: Tensor, mask: Tensor, cost: Cost, like: Tensor) -> Tensor:
    """Cost of every state of every position (B, T, K), 0 where there is no label."""
    known = (labels >= 0) & mask
    if cost.whole:
        raise ArgumentError(
            "cost='zero-one' is no sum over positions, so that it has no second derivatives and no "
            "losses on a card; use 'hamming' or 'hamming-mean'"
        )
    matrix = torch.as_tensor(cost.matrix, dtype=like.dtype, device=like.device)
    # Outside the mask there may be any number; inside, -1.
    rows = torch.where(known[:, :, None], matrix[torch.where(known, labels, 0)], 0.0)
    if not cost.mean:
        return rows
    return rows / known.sum(1).clamp(min=1)[:, None, None]
