r"""One look at a batch of chains before it is solved, while the host goes on.

Masks with holes, labels that do not exist and numbers that are none must be named. The host learns
of them without waiting for the kernel that solves the batch: this one runs before it, and takes
hundredths of its time. It also tells where the answers have to be looked at. With one table for
all edges and :math:`s = (\max A - \min A) / \epsilon`, sums of the scaled domain are at least
:math:`e^{-s}` and its betas at most :math:`e^{2s}`, whatever the scores: up to
`MOST_SPREAD` products of matrices need no check.
"""

from __future__ import annotations

from functools import cached_property

import torch

from structlearn._src.cuda import inspect_kernel as kernel
from structlearn._src.cuda.fused_chain import CardChains, tile_width
from structlearn._src.cuda.launcher import Launcher

MOST_SPREAD = 18.0  # exp(-18) and exp(36) are within the bounds of `scaled_kernel`
_WRONG = kernel.HOLES.value | kernel.LABELS.value | kernel.NUMBERS.value
_ROWS = 128  # positions that one program looks at
_inspect = Launcher(kernel.inspect_chains)


class Inspection:
    """What was seen, once the card has got there."""

    def __init__(self, batch: CardChains, eps: float) -> None:
        """Look at chains that lie row by row, whose least temperature above 0 is given."""
        scores = batch.scores
        B, T, K = scores.shape
        self.given = (
            0 if not batch.each else kernel.LOOSE.value
        )  # tables for each edge are not looked at
        self.found = torch.zeros(1, dtype=torch.int32, device=scores.device)
        ends = batch.ends or (scores, scores)
        tensors = (
            scores, batch.edges, *ends, scores if batch.labels is None else batch.labels,
            scores if batch.mask is None else batch.mask, self.found,
        )  # fmt: skip
        _inspect(
            -(-B * T // _ROWS), tensors, (B * T, T, MOST_SPREAD * eps),
            K=K, BK=tile_width(K), ROWS=_ROWS, ENDS=batch.ends is not None,
            MASKED=batch.mask is not None, LABELLED=batch.labels is not None,
            SHARED=not batch.each,
        )  # fmt: skip
        self.event: torch.cuda.Event | None = None
        if scores.device.type == "cuda":
            self.found = self.found.to("cpu", non_blocking=True)  # to pinned memory
            self.event = torch.cuda.Event()
            self.event.record()

    @cached_property
    def marks(self) -> int:
        """All that was found; what follows in the card's queue is not waited for."""
        if self.event is not None:
            self.event.synchronize()
        return int(self.found[0]) | self.given

    @property
    def wrong(self) -> bool:
        """Whether mask, labels or numbers are none."""
        return bool(self.marks & _WRONG)

    @property
    def loose(self) -> bool:
        """Whether paths may be lost, so that flags have to be looked at."""
        return bool(self.marks & kernel.LOOSE.value)

    @property
    def hidden(self) -> bool:
        """Whether there are hidden labels."""
        return bool(self.marks & kernel.HIDDEN.value)
