"""Losses of chains on a card by all their parts: which kernel solves what."""

from __future__ import annotations

import torch
from torch import Tensor

from structlearn._src.cuda.fused_chain import (
    MOST_STATES,
    CardChains,
    CardFound,
    Task,
    solve_log,
    solve_scaled,
)
from structlearn._src.cuda.fused_chain import finished as finished
from structlearn._src.cuda.inspection import Inspection
from structlearn._src.learn.loss import Cost, Loss

_KINDS = (torch.float32, torch.float64)


def refuses(batch: CardChains, loss: Loss, cost: Cost | None) -> str:
    """Return why kernels cannot solve a loss, or an empty string."""
    if batch.sizes[2] > MOST_STATES:
        return f"there are more than {MOST_STATES} states"
    if batch.scores.dtype not in _KINDS:
        return f"numbers of type {batch.scores.dtype} are none of theirs"
    if cost is not None and cost.whole and any(part.with_cost for part in loss.parts):
        return "the cost is no sum over positions"
    return ""


def two_temperatures(loss: Loss) -> bool:
    """Tell whether hidden labels have a temperature of their own, for which there is no kernel."""
    return any(part.eps_y != part.eps_h for part in loss.parts)


def inspect(batch: CardChains, loss: Loss) -> Inspection:
    """Begin to look for what is wrong with a batch."""
    return Inspection(batch, min((part.eps_y for part in loss.parts if part.eps_y), default=1.0))


def solve(
    batch: CardChains,
    loss: Loss,
    cost: Cost | None,
    clamp: bool = True,
    factors: Tensor | None = None,
    products: bool = True,
    kind: torch.dtype = torch.float64,
) -> CardFound:
    """Return free less clamped values with gradients, and flags of those not to be trusted.

    In gradients chains count by their `factors`; without `clamp` the free world is alone. Products
    of matrices are taken where they are possible, or the log domain alone; nothing is waited for.
    Values are added in double precision, and returned as numbers of some `kind`.
    """
    found: CardFound | None = None
    for part in loss.parts:
        costs = _costs(batch, cost) if part.with_cost and cost is not None else None
        task = Task(part.eps_y, part.share, clamp, costs, factors, kind)
        quick = products and part.eps_y > 0.0 and _single(batch)
        each = solve_scaled(batch, task) if quick else solve_log(batch, task)
        found = each if found is None else found.plus(each)
    assert found is not None, "a loss has parts"
    return found


def settle(
    found: CardFound,
    batch: CardChains,
    loss: Loss,
    cost: Cost | None,
    clamp: bool = True,
    factors: Tensor | None = None,
    kind: torch.dtype = torch.float64,
) -> tuple[CardFound, bool]:
    """Solve again in the log domain if there are flags, and tell if there are some even then.

    These come from input that is wrong, or that leaves chains no path.
    """
    if not bool(found.flags.any()):
        return found, False
    found = solve(batch, loss, cost, clamp, factors, False, kind)
    return found, bool(found.flags.any())


def _single(batch: CardChains) -> bool:
    """Tell whether products of matrices can take a batch: one table in single precision."""
    return not batch.each and batch.scores.dtype == torch.float32


def _costs(batch: CardChains, cost: Cost) -> tuple[Tensor, Tensor]:
    """Return the cost by true and given label, and what it is multiplied by in every chain."""
    assert batch.labels is not None, "costs are for labels"
    like = batch.scores
    matrix = torch.as_tensor(cost.matrix, dtype=like.dtype, device=like.device)
    if not cost.mean:
        return matrix, like.new_ones(batch.sizes[0])
    return matrix, 1.0 / _known(batch).clamp(min=1).to(like.dtype)


def _known(batch: CardChains) -> Tensor:
    """Return how many labels every chain has."""
    assert batch.labels is not None, "costs are for labels"
    known = batch.labels >= 0
    if batch.bases is None or batch.lengths is None:
        return (known if batch.mask is None else known & batch.mask).sum(1)
    before = torch.cat([known.new_zeros(1, dtype=torch.long), known.cumsum(0)])
    return before[batch.bases + batch.lengths] - before[batch.bases]
