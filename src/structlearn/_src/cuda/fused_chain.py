"""Losses of a batch of chains and their gradients on a card, by kernels in Triton."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from structlearn._src.cuda.launcher import Launcher
from structlearn._src.cuda.log_kernel import log_chains
from structlearn._src.cuda.scale_kernel import scale_gradient
from structlearn._src.cuda.scaled_kernel import scaled_chains

MOST_STATES = 128  # a program holds all transitions at once
_TILE = 4096  # transitions that a program of the log domain holds at once: 32 for each thread


class Choice(NamedTuple):
    """How the kernel of products is launched."""

    chains: int  #: that one program takes, at least 16 as products demand
    warps: int
    precision: str  #: of products: "ieee", or "tf32x3", three on tensor cores that are as good


# The best of those tried on an H200 with 4096 chains of 64 positions and 22 states, and with 256 of
# 512 positions and 50 states: `benchmarks/gpu_chains.py`.
_SMALL = Choice(16, 4, "tf32x3")
_LARGE = Choice(16, 8, "tf32x3")
_scaled = Launcher(scaled_chains)
_log = Launcher(log_chains)
_scale = Launcher(scale_gradient)
_TILE_SIDE = 32  # states up to which four warps hold all transitions
_COLUMNS = 32  # that a program adds up: 128 bytes of a row
_ROWS = 64  # that it reads at once: 16 numbers for each thread
_SCALED = 4096  # numbers that a program scales: 32 for each thread


class CardChains(NamedTuple):
    """Chains of unequal lengths as they lie in memory of a card.

    Packed ones have all their positions one after another, (N, K), without any between chains.
    """

    scores: Tensor  #: (B, T, K), or (N, K)
    edges: Tensor  #: (K, K), or (B, T - 1, K, K)
    ends: tuple[Tensor, Tensor] | None = None  #: (K,) what first and last labels are worth
    labels: Tensor | None = None  #: (B, T), -1 where hidden; None if nothing asks for them
    mask: Tensor | None = None  #: (B, T), None if all positions count
    lengths: Tensor | None = None  #: (B,)
    order: Tensor | None = None  #: (B,) long chains first, so that those of one block are alike
    bases: Tensor | None = None  #: (B,) where packed chains begin
    longest: int = 0  #: of packed chains

    @classmethod
    def of(
        cls, scores: Tensor, edges: Tensor, ends: tuple[Tensor, Tensor] | None = None,
        labels: Tensor | None = None, mask: Tensor | None = None,
    ) -> CardChains:  # fmt: skip
        """Return a batch, whose tensors lie in memory row by row."""
        lengths = order = None
        if mask is not None:
            mask = mask.contiguous()
            lengths = mask.sum(1)
            order = torch.argsort(lengths, descending=True)
        labels = None if labels is None else labels.contiguous()
        return cls(scores.contiguous(), edges.contiguous(), ends, labels, mask, lengths, order)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Number of chains, most positions, states."""
        if self.bases is None:
            B, T, K = self.scores.shape
            return B, T, K
        return len(self.bases), self.longest, self.scores.shape[1]

    @property
    def each(self) -> bool:
        """Whether every edge has a table of its own."""
        return self.edges.ndim > 2


class Task(NamedTuple):
    """What is computed of a batch: one part of a loss, free less clamped."""

    eps: float = 1.0
    share: float = 1.0
    clamp: bool = True  #: whether the value of the clamped world is taken off
    costs: tuple[Tensor, Tensor] | None = None  #: (K, K) by true label, and (B,) factors of it
    factors: Tensor | None = None  #: (B,) how much chains count in gradients
    kind: torch.dtype = torch.float64  #: of values


class CardFound(NamedTuple):
    """Values of chains and the gradients of their weighted sum."""

    values: Tensor  #: (B,)
    by_scores: Tensor  #: (B, T, K)
    parts: Tensor  #: (n, (K + 2) * K) gradients by one table for all edges, starts, ends: to add up
    flags: Tensor  #: (B,) not 0 where the numbers cannot be trusted
    by_each: Tensor | None = None  #: (B, T - 1, K, K) gradients by tables of each edge

    @property
    def by_edges(self) -> Tensor:
        """The gradient by edges, as these are."""
        return self.sums[0] if self.by_each is None else self.by_each

    @property
    def by_starts(self) -> Tensor:
        """The gradient (K,) by what first labels are worth."""
        return self.sums[1]

    @property
    def by_ends(self) -> Tensor:
        """The gradient (K,) by what last labels are worth."""
        return self.sums[2]

    @property
    def sums(self) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients (K, K), (K,) and (K,) by one table for all edges, starts and ends."""
        K = self.by_scores.shape[-1]
        by_edges, by_starts, by_ends = self.parts.sum(0).split((K * K, K, K))
        return by_edges.view(K, K), by_starts, by_ends

    def plus(self, other: CardFound) -> CardFound:
        """Return the sum with another part of the same loss."""
        both = zip(self._added(), other._added(), strict=True)
        return CardFound(*(None if a is None or b is None else a + b for a, b in both))

    def kept(self) -> tuple[Tensor, Tensor]:
        """Return what `finished` takes, never much more than the gradient by scores."""
        small = self.parts.numel() <= self.by_scores.numel()
        return self.by_scores, self.parts if small else self._added().parts

    def _added(self) -> CardFound:
        return self._replace(parts=self.parts.sum(0, keepdim=True))


def finished(by_scores: Tensor, parts: Tensor, factor: Tensor) -> tuple[Tensor, ...]:
    """Return gradients by scores, edges, starts and ends times one factor; `by_scores` is used up.

    A factor of 1, that of a sum of losses, takes no pass over memory, and nobody waits to know it.
    """
    rows, width = parts.shape
    n = by_scores.numel()
    K = by_scores.shape[-1]
    new = parts.new_empty
    found = by_scores, new(K, K), new(K), new(K)
    programs = -(-width // _COLUMNS) - (-n // _SCALED)
    _scale(
        programs, (by_scores, parts, factor, *found[1:]), (n, rows),
        K=K, COLUMNS=_COLUMNS, ROWS=_ROWS, SIZE=_SCALED,
    )  # fmt: skip
    return found


def solve_scaled(batch: CardChains, task: Task, choice: Choice | None = None) -> CardFound:
    """Solve one temperature above 0 in the scaled probability domain; one table for all edges."""
    choice = choice or (_SMALL if tile_width(batch.sizes[2]) <= _TILE_SIDE else _LARGE)
    return _launch(batch, task, choice.chains, choice.warps, choice.precision)


def solve_log(batch: CardChains, task: Task) -> CardFound:
    """Solve any temperature, any edges and both precisions in the log domain."""
    wide = tile_width(batch.sizes[2])
    chains = max(1, _TILE // wide**2)
    return _launch(batch, task, chains, 8 if wide**2 > _TILE else 4, None)


def tile_width(states: int) -> int:
    """Return the states of a tile: a power of 2, and products need at least 16."""
    return max(16, 1 << (states - 1).bit_length())


def _launch(
    batch: CardChains, task: Task, chains: int, warps: int, precision: str | None
) -> CardFound:
    """Call one of the kernels; without a precision that of the log domain."""
    B, T, K = batch.sizes
    wide = tile_width(K)
    programs = -(-B // chains)
    new = batch.scores.new_empty
    # Kernels write all that counts, and nothing outside the mask.
    made = torch.empty_like if batch.mask is None else torch.zeros_like
    by_scores = made(batch.scores)
    parts = new(programs, (K + 2) * K)
    values = new(B, dtype=task.kind)
    flags = new(B, dtype=torch.int32)
    workspace = new(2 * programs * T * chains * wide)
    none = batch.scores  # stands where a kernel reads nothing
    facts: dict[str, Any] = {
        "K": K, "BK": wide, "C": chains, "ENDS": batch.ends is not None,
        "COST": task.costs is not None, "MASKED": batch.mask is not None,
        "UNEQUAL": batch.lengths is not None, "PACKED": batch.bases is not None,
        "FACTORS": task.factors is not None, "CLAMP": task.clamp, "num_warps": warps,
    }  # fmt: skip
    given = (batch.labels, batch.mask, batch.lengths, batch.order, batch.bases)
    arrays = (
        batch.scores, batch.edges, *(batch.ends or (none, none)),
        *(none if t is None else t for t in given), *(task.costs or (none, none)),
        none if task.factors is None else task.factors, workspace, by_scores,
    )  # fmt: skip
    out = parts, values, flags
    numbers = B, T, 1.0 / task.eps if task.eps else 1.0, task.share
    by_each = None
    if precision is not None:
        _scaled(programs, (*arrays, *out), numbers, **facts, PRECISION=precision)
    else:
        by_each = made(batch.edges) if batch.each else None
        facts |= {"EACH": batch.each, "MAX": task.eps == 0.0}
        tensors = (*arrays, none if by_each is None else by_each, *out)
        _log(programs, tensors, numbers, **facts)
    return CardFound(values, by_scores, parts, flags, by_each)
