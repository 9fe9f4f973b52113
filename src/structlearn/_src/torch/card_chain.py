"""Batches of chains that kernels on a card can solve, and what goes wrong with them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from structlearn._src.common.errors import TooWideError
from structlearn._src.torch.chain_checks import check_batch, check_possible
from structlearn._src.torch.table_worlds import add_ends, array, full_mask

if TYPE_CHECKING:
    from structlearn._src.cuda.fused_chain import CardFound
    from structlearn._src.torch.chain_function import ChainSpec

#: Devices that kernels run on; in tests they are interpreted on the host.
DEVICES = ["cuda"]


@cache
def _kernels() -> Any:
    """Return the module that launches kernels, None without Triton."""
    try:
        from structlearn._src.cuda import chain_loss
    except ImportError:
        return None
    return chain_loss


def fits(tensor: Tensor) -> bool:
    """Tell whether a tensor lies where kernels run."""
    return tensor.device.type in DEVICES and _kernels() is not None


def elsewhere(tensor: Tensor) -> bool:
    """Tell whether the compiled loops of the host do not serve a tensor."""
    return tensor.device.type != "cpu" or fits(tensor)


def solve(
    spec: ChainSpec, nodes: Tensor, edges: Tensor, ends: tuple[Tensor, Tensor] | None,
    labels: Tensor, mask: Tensor | None, factors: Tensor | None,
) -> CardFound | None:  # fmt: skip
    """Return values and gradients by kernels; None where there are none for such a batch."""
    if not fits(nodes) or not spec.sides[0]:
        return None
    kernels = _kernels()
    ends = None if ends is None else (ends[0].contiguous(), ends[1].contiguous())
    factors = None if factors is None else factors.contiguous()
    try:
        batch = kernels.CardChains.of(nodes, edges, ends, labels, mask)
        if kernels.refuses(batch, spec.loss, spec.cost):
            return None
        seen = kernels.inspect(batch, spec.loss)  # the first that the card does, the last to read
        if kernels.two_temperatures(spec.loss) and seen.hidden:
            return None
        given = batch, spec.loss, spec.cost, spec.sides[1], factors
        found = kernels.solve(*given, kind=nodes.dtype)
        wrong = seen.wrong
        if seen.loose and not wrong:
            found, wrong = kernels.settle(found, *given, nodes.dtype)
    except torch.OutOfMemoryError as error:
        raise full(nodes) from error
    if wrong:
        inside = full_mask(mask, nodes)
        folded = nodes if ends is None else add_ends(nodes, inside, *ends)
        check_batch(folded, edges, labels, inside)
        flags = array(found.flags)
        check_possible(np.where(flags, np.inf, array(found.values)), spec.sides[1])
    return found  # type: ignore[no-any-return]


def full(nodes: Tensor) -> TooWideError:
    """Return what says that a card has too little memory for a batch."""
    return TooWideError(
        f"the card has no memory left for scores of shape {tuple(nodes.shape)} and several times "
        f"as much for inference; give smaller batches"
    )


def finished(kept: tuple[Tensor, Tensor], factor: Tensor) -> tuple[Tensor, ...]:
    """Return all gradients times one factor, from what kernels have left for them."""
    found: tuple[Tensor, ...] = _kernels().finished(*kept, factor)
    return found
