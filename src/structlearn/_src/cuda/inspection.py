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


class _Slate:
    """Words in memory of the host that a card writes to, and what tells that it has."""

    def __init__(self, device: torch.device) -> None:
        there = device.type == "cuda"
        self.words = torch.zeros(kernel.MARKS.value, dtype=torch.int32, pin_memory=there)
        self.event = torch.cuda.Event() if there else None

    def read(self) -> int:
        """Return all marks, once the card has got there, and wipe them off."""
        if self.event is not None:
            self.event.synchronize()
        words = self.words.tolist()
        if not any(words):
            return 0
        self.words.zero_()
        return sum(word << i for i, word in enumerate(words))


# PyTorch does not know that kernels write to slates: they are kept, whatever becomes of a call.
_slates: list[_Slate] = []
_free: dict[torch.device, list[_Slate]] = {}


class Inspection:
    """What was seen, once the card has got there."""

    def __init__(self, batch: CardChains, eps: float) -> None:
        """Look at chains that lie row by row, whose least temperature above 0 is given."""
        scores = batch.scores
        B, T, K = scores.shape
        # Tables for each edge are not looked at.
        self.given = kernel.LOOSE.value if batch.each else 0
        self.device = scores.device
        self.slate = self._slate()
        ends = batch.ends or (scores, scores)
        tensors = (
            scores, batch.edges, *ends, scores if batch.labels is None else batch.labels,
            scores if batch.mask is None else batch.mask, self.slate.words,
        )  # fmt: skip
        _inspect(
            -(-B * T // _ROWS), tensors, (B * T, T, MOST_SPREAD * eps),
            K=K, BK=tile_width(K), ROWS=_ROWS, ENDS=batch.ends is not None,
            MASKED=batch.mask is not None, LABELLED=batch.labels is not None,
            SHARED=not batch.each,
        )  # fmt: skip
        if self.slate.event is not None:
            self.slate.event.record(torch.cuda.current_stream(self.device))

    def _slate(self) -> _Slate:
        """Return a slate that is not in use, if need be a new one."""
        free = _free.setdefault(self.device, [])
        try:
            return free.pop()
        except IndexError:
            made = _Slate(self.device)
            _slates.append(made)
            return made

    @cached_property
    def marks(self) -> int:
        """All that was found; what follows in the card's queue is not waited for."""
        found = self.slate.read() | self.given
        _free[self.device].append(self.slate)
        return found

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
