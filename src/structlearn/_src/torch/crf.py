"""The call of pytorch-crf on this library's chains."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structlearn._src.common import checks
from structlearn._src.common.errors import ArgumentError
from structlearn._src.torch.chain_layer import ChainLoss
from structlearn._src.torch.table_worlds import (
    REDUCTIONS,
    add_ends,
    at_least_single,
    check_scores,
    check_tensors,
    check_whole,
    draw_small,
    full_mask,
    reduced,
)

_REDUCTIONS = (*REDUCTIONS, "token_mean")


class CRF(nn.Module):
    """Linear-chain CRF with the call, the parameters and the state dictionary of ``torchcrf.CRF``.

    A program that imports it from here instead of ``torchcrf`` works unchanged. `ChainLoss` offers
    more: margins, hybrid losses, unknown labels, marginals, k best paths.

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
        """Draw parameters from -0.1 to 0.1.

        Examples
        --------
        >>> layer = CRF(3)
        >>> layer.reset_parameters()
        >>> bool((layer.transitions.abs() <= 0.1).all())
        True
        """
        draw_small(self)

    def extra_repr(self) -> str:
        """Return the text that `repr` shows of the layer.

        Returns
        -------
        str
            Its main parameters.

        Examples
        --------
        >>> CRF(3).extra_repr()
        'num_tags=3'
        """
        return f"num_tags={self.num_tags}"

    @torch.compiler.disable
    def forward(
        self, emissions: Tensor, tags: Tensor, mask: Tensor | None = None, reduction: str = "sum"
    ) -> Tensor:
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

        Returns
        -------
        Tensor
            The log likelihood, a scalar, or an array of shape (batch,) with ``reduction="none"``.

        Examples
        --------
        >>> import torch
        >>> crf = CRF(5, batch_first=True)
        >>> tags = torch.zeros(2, 3, dtype=torch.long)
        >>> crf(torch.zeros(2, 3, 5), tags, reduction="none").shape
        torch.Size([2])
        """
        checks.one_of("reduction", reduction, _REDUCTIONS)
        scores, inside = self._batched(emissions, mask)
        check_whole("tags", tags, tuple(emissions.shape[:2]))
        check_tensors(emissions=emissions, tags=tags)
        labels = tags if self.batch_first else tags.T
        known = labels[inside]
        if bool((known < 0).any()):
            raise ArgumentError("tags below 0 were given; ChainLoss takes -1 for unknown labels")
        likelihood = -self._layer(scores, labels, inside, self.transitions)
        if reduction == "token_mean":
            return likelihood.sum() / known.numel()
        return reduced(likelihood, reduction)

    def decode(self, emissions: Tensor, mask: Tensor | None = None) -> list[list[int]]:
        """Return the best labels of every sequence.

        Parameters
        ----------
        emissions
            Scores of all labels at all positions, (batch, length, labels) with `batch_first`,
            otherwise (length, batch, labels).
        mask
            Which positions count: those in front; all by default.

        Returns
        -------
        list of lists of int
            Labels, as many as the mask has positions.

        Examples
        --------
        >>> import torch
        >>> CRF(2, batch_first=True).decode(torch.tensor([[[9.0, 0.0], [0.0, 9.0]]]))
        [[0, 1]]
        """
        scores, inside = self._batched(emissions, mask)
        return self._layer.decode(scores, inside, self.transitions)

    def _batched(self, emissions: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return scores (B, T, K), what begins and ends sequences added, and the mask."""
        check_tensors(emissions=emissions, mask=mask, layer=self.transitions)
        check_scores(emissions, 3, (self.num_tags,))
        both = at_least_single(emissions), full_mask(mask, emissions)
        scores, inside = both if self.batch_first else (t.transpose(0, 1) for t in both)
        return add_ends(scores, inside, self.start_transitions, self.end_transitions), inside
