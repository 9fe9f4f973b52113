"""The call of pytorch-crf on this library's chains."""

from __future__ import annotations

import torch
from torch import nn

from structlearn._src.common import checks
from structlearn._src.common.errors import ArgumentError
from structlearn._src.torch.chain_layer import ChainLoss
from structlearn._src.torch.table_worlds import add_ends

_REDUCTIONS = ("none", "sum", "mean", "token_mean")


class CRF(nn.Module):
    """Linear-chain CRF with the call, the parameters and the state dictionary of ``torchcrf.CRF``.

    A program that imports it from here in the place of ``torchcrf`` goes on as before. `ChainLoss`
    has more: margins, hybrid losses, labels that are not known, marginals, k best paths.

    Parameters
    ----------
    num_tags
        Number of labels.
    batch_first
        Whether tensors are (batch, length, ...); otherwise (length, batch, ...).

    Examples
    --------
    >>> import torch
    >>> crf = CRF(5, batch_first=True)
    >>> emissions = torch.zeros(2, 3, 5)
    >>> bool(crf(emissions, torch.zeros(2, 3, dtype=torch.long)) < 0)
    True
    """

    def __init__(self, num_tags: int, batch_first: bool = False) -> None:
        super().__init__()
        self.num_tags = checks.integer("num_tags", num_tags, low=1)
        self.batch_first = checks.boolean("batch_first", batch_first)
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        self._layer = ChainLoss(num_tags, transitions=False, reduction="none")
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw parameters from -0.1 to 0.1."""
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def extra_repr(self) -> str:
        """Say what the layer is."""
        return f"num_tags={self.num_tags}"

    def forward(
        self,
        emissions: torch.Tensor,
        tags: torch.Tensor,
        mask: torch.Tensor | None = None,
        reduction: str = "sum",
    ) -> torch.Tensor:
        """Return the conditional log likelihood of the tags.

        Parameters
        ----------
        emissions
            Scores of all labels at all positions.
        tags
            The labels.
        mask
            Which positions count: those in front.
        reduction
            "sum", "mean" over sequences, "token_mean", or "none".
        """
        checks.one_of("reduction", reduction, _REDUCTIONS)
        scores, inside = self._batched(emissions, mask)
        labels = tags if self.batch_first else tags.T
        known = labels if inside is None else labels[inside.bool()]
        if bool((known < 0).any()):
            raise ArgumentError("tags below 0 were given; ChainLoss takes labels not known")
        likelihood = -self._layer(scores, labels, inside, self.transitions)
        if reduction == "none":
            return likelihood
        if reduction == "mean":
            return likelihood.mean()
        total = likelihood.sum()
        return total if reduction == "sum" else total / known.numel()

    def decode(self, emissions: torch.Tensor, mask: torch.Tensor | None = None) -> list[list[int]]:
        """Return the best labels of every sequence."""
        scores, inside = self._batched(emissions, mask)
        return self._layer.decode(scores, inside, self.transitions)

    def _batched(
        self, emissions: torch.Tensor, mask: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return scores (B, T, K), what begins and ends sequences added, and the mask."""
        if emissions.ndim != 3:
            raise ArgumentError(
                f"emissions of shape {tuple(emissions.shape)} were given; 3 axes are needed"
            )
        scores = emissions if self.batch_first else emissions.transpose(0, 1)
        inside = mask if mask is None or self.batch_first else mask.T
        counted = scores.new_ones(scores.shape[:2], dtype=torch.bool)
        if inside is not None:
            counted = inside.bool()
        return add_ends(scores, counted, self.start_transitions, self.end_transitions), inside
