"""Grids as a layer: losses of two worlds on top of any network that scores the labels of pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from structlearn._src.common import checks
from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.learn.world import Memory
from structlearn._src.torch.graph_function import GraphBatch, check_labels
from structlearn._src.torch.graph_layer import GraphLayer
from structlearn._src.torch.table_worlds import (
    array,
    check_given,
    check_tensors,
    drawn_seed,
    whole_numbers,
)


class GridLoss(GraphLayer):
    """Loss of label images, for the scores of a network.

    As `GraphLoss`, on grids: pixels are joined to their neighbours, with one table for each
    direction.

    Parameters
    ----------
    n_labels
        Number of labels.
    loss
        As in `ChainLoss`.
    neighbours
        4 or 8.
    **options
        The other parameters of `GraphLoss`: alpha, eps_y, eps_h, cost, reduction, n_jobs,
        transitions, hidden_states, forbidden, inference and sweeps. Edges begin at the pixel that
        is above, or on the left in the same row.

    Attributes
    ----------
    transitions
        Parameter of shape (2 or 4, n_labels, n_labels): edges to the right, down and, with 8
        neighbours, down to the right and down to the left.

    Examples
    --------
    >>> import torch
    >>> layer = GridLoss(2, loss="log")
    >>> scores = torch.zeros(1, 3, 4, 2, requires_grad=True)
    >>> layer(scores, torch.zeros(1, 3, 4, dtype=torch.long)).backward()
    >>> layer.decode(scores).shape
    torch.Size([1, 3, 4])
    """

    def __init__(
        self, n_labels: int, loss: str = "log", *, neighbours: int = 4, **options: Any
    ) -> None:
        if neighbours not in (4, 8):
            raise ArgumentError(f"neighbours={neighbours!r}: a grid has 4 or 8")
        super().__init__(n_labels, loss, kinds=neighbours // 2, **options)
        self.neighbours = neighbours

    @torch.compiler.disable
    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        transitions: Tensor | None = None,
        memory: Memory = None,
    ) -> Tensor:
        """Return the loss of a batch of images.

        Parameters
        ----------
        scores
            (B, H, W, K) of all labels at all pixels.
        labels
            (B, H, W) From 0 to K - 1, or -1 where the label is not known.
        mask
            (B, H, W) Which pixels count; all by default.
        transitions
            (2 or 4, K, K) Tables to add to those of the layer; or (B, H, W, 2 or 4, K, K), for
            each pixel those of the edges that start there. Edges that leave the image are ignored.
        memory
            Result of `begin`: the state of message passing, which is updated in place.

        Returns
        -------
        Tensor
            The loss, a scalar, or an array of shape (B,) with ``reduction="none"``.

        Examples
        --------
        >>> import torch
        >>> layer = GridLoss(2, transitions=False)
        >>> scores = torch.tensor([[[[1.0, 0.0], [0.0, 3.0]]]])
        >>> round(layer(scores, torch.tensor([[[0, 1]]])).item(), 3)
        0.362
        """
        check_given(scores=scores, labels=labels)
        batch, tables, _ = self._prepare(scores, labels, mask, transitions)
        return self._losses(batch, tables, memory)

    def begin(self, labels: Tensor, mask: Tensor | None = None) -> Memory:
        """Return the memory of a batch before any inference.

        Parameters
        ----------
        labels
            (B, H, W) Labels, -1 where they are unknown.
        mask
            (B, H, W) Which pixels count; all by default.

        Returns
        -------
        tuple
            State of message passing, which calls of the layer update in place.

        Examples
        --------
        >>> import torch
        >>> layer = GridLoss(2, transitions=False)
        >>> scores = torch.tensor([[[[1.0, 0.0], [0.0, 3.0]]]])
        >>> memory = layer.begin(torch.tensor([[[0, -1]]]))
        >>> layer(scores, torch.tensor([[[0, -1]]]), memory=memory).shape
        torch.Size([])
        """
        check_given(labels=labels)
        scores = self._no_scores(labels)
        return self._prepare(scores, labels, mask, None)[0].objective.begin()

    @torch.compiler.disable
    def decode(
        self, scores: Tensor, mask: Tensor | None = None, transitions: Tensor | None = None
    ) -> Tensor:
        """Return the best labels.

        Parameters
        ----------
        scores
            (B, H, W, K) Scores of all labels at all pixels.
        mask
            (B, H, W) Which pixels count; all by default.
        transitions
            (2 or 4, K, K) or (B, H, W, 2 or 4, K, K) Tables to add to those of the layer.

        Returns
        -------
        Tensor of shape (B, H, W)
            One label for every pixel, -1 outside the mask.

        Examples
        --------
        >>> import torch
        >>> layer = GridLoss(2, transitions=False)
        >>> scores = torch.tensor([[[[1.0, 0.0], [0.0, 3.0]]]])
        >>> layer.decode(scores)
        tensor([[[0, 1]]])
        """
        batch, tables, inside = self._prepare(scores, None, mask, transitions)
        return _spread(self._ask(batch, tables).best(self._loss.eps_h), inside)

    @torch.compiler.disable
    def marginals(
        self, scores: Tensor, mask: Tensor | None = None, transitions: Tensor | None = None
    ) -> Tensor:
        """Return the probabilities of labels.

        Parameters
        ----------
        scores
            (B, H, W, K) Scores of all labels at all pixels.
        mask
            (B, H, W) Which pixels count; all by default.
        transitions
            (2 or 4, K, K) or (B, H, W, 2 or 4, K, K) Tables to add to those of the layer.

        Returns
        -------
        Tensor of shape (B, H, W, K)
            Probabilities, 0 outside the mask; not differentiable.

        Examples
        --------
        >>> import torch
        >>> layer = GridLoss(2, transitions=False)
        >>> scores = torch.tensor([[[[1.0, 0.0], [0.0, 3.0]]]])
        >>> layer.marginals(scores).shape
        torch.Size([1, 1, 2, 2])
        """
        batch, tables, inside = self._prepare(scores, None, mask, transitions)
        found = self._ask(batch, tables).marginals()
        out = found.new_zeros((*inside.shape, self.n_labels))
        out[inside] = found
        return out

    @torch.compiler.disable
    def entropy(
        self, scores: Tensor, mask: Tensor | None = None, transitions: Tensor | None = None
    ) -> Tensor:
        r"""Return the entropy of the label images, :math:`\log Z - E[\theta]`.

        Parameters
        ----------
        scores
            (B, H, W, K) Scores of all labels at all pixels.
        mask
            (B, H, W) Which pixels count; all by default.
        transitions
            (2 or 4, K, K) or (B, H, W, 2 or 4, K, K) Tables to add to those of the layer.

        Returns
        -------
        Tensor of shape (B,)
            Entropies in nats, as in `GraphLoss.entropy`: exact and differentiable once where
            inference is exact, otherwise an estimate without a gradient.

        Examples
        --------
        >>> import torch
        >>> layer = GridLoss(2, transitions=False)
        >>> scores = torch.tensor([[[[1.0, 0.0], [0.0, 3.0]]]])
        >>> layer.entropy(0.0 * scores).round(decimals=3)  # log(4), of 4 images
        tensor([1.3860])
        """
        batch, tables, _ = self._prepare(scores, None, mask, transitions)
        return self._ask(batch, tables).entropy()

    @torch.compiler.disable
    def k_best(
        self, scores: Tensor, k: int, mask: Tensor | None = None, transitions: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the best label images and their scores; exact, or refused.

        Parameters
        ----------
        scores
            (B, H, W, K) Scores of all labels at all pixels.
        k
            Number of label images for each image.
        mask
            (B, H, W) Which pixels count; all by default.
        transitions
            (2 or 4, K, K) or (B, H, W, 2 or 4, K, K) Tables to add to those of the layer.

        Returns
        -------
        tuple of Tensors of shapes (B, k) and (k, B, H, W)
            Scores, minus infinity where there are fewer; and labels, best first, -1 outside the
            mask and where there are none.

        Raises
        ------
        QueryError
            If ``inference`` is "bp" or "trw": messages do not rank labellings.
        TooWideError
            If the grid is too wide for elimination, or k too large for memory.

        Examples
        --------
        >>> import torch
        >>> layer = GridLoss(2, transitions=False)
        >>> scores = torch.tensor([[[[1.0, 0.0], [0.0, 3.0]]]])
        >>> layer.k_best(scores, 2)
        (tensor([[4., 3.]]), tensor([[[[0, 1]]],
        <BLANKLINE>
        <BLANKLINE>
                [[[1, 1]]]]))
        """
        checks.integer("k", k, low=1)
        batch, tables, inside = self._prepare(scores, None, mask, transitions)
        values, labels = self._ask(batch, tables).k_best(k)
        return values, _spread(labels, inside)

    @torch.compiler.disable
    def sample(
        self,
        scores: Tensor,
        n: int = 1,
        mask: Tensor | None = None,
        transitions: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return independent exact draws of label images; exact, or refused.

        Parameters
        ----------
        scores
            (B, H, W, K) Scores of all labels at all pixels.
        n
            Number of draws.
        mask
            (B, H, W) Which pixels count; all by default.
        transitions
            (2 or 4, K, K) or (B, H, W, 2 or 4, K, K) Tables to add to those of the layer.
        generator
            Generator of the seed; the default one of PyTorch if None.

        Returns
        -------
        Tensor of shape (n, B, H, W)
            Labels, -1 outside the mask.

        Raises
        ------
        QueryError
            If ``inference`` is "bp" or "trw": messages give no exact draws.
        TooWideError
            If the grid is too wide for elimination.

        Examples
        --------
        >>> import torch
        >>> layer = GridLoss(2, transitions=False)
        >>> scores = torch.tensor([[[[1.0, 0.0], [0.0, 3.0]]]])
        >>> layer.sample(scores, n=5, generator=torch.Generator().manual_seed(0)).shape
        torch.Size([5, 1, 1, 2])
        """
        checks.integer("n", n, low=1)
        batch, tables, inside = self._prepare(scores, None, mask, transitions)
        return _spread(self._ask(batch, tables, drawn_seed(generator)).sample(n), inside)

    def _prepare(
        self, scores: Tensor, labels: Tensor | None, mask: Tensor | None, transitions: Tensor | None
    ) -> tuple[GraphBatch, tuple[Tensor, ...], Tensor]:
        nodes = self._node_scores(scores, 4)
        shape = tuple(scores.shape[:3])
        numbers = np.full(shape, -1) if labels is None else whole_numbers("labels", labels, shape)
        check_tensors(scores=scores, mask=mask, transitions=transitions, layer=self.transitions)
        inside = np.ones(shape, np.bool_) if mask is None else array(mask).astype(np.bool_)
        if len(scores) == 0:
            raise ArgumentError("scores hold no image")
        if inside.shape != shape or not inside.any(axis=(1, 2)).all():
            raise ArgumentError(f"mask must have shape {shape}, and a pixel in every image")
        check_labels(numbers[inside], self.n_labels)
        kinds = _grid_edges(inside, self.neighbours)
        batch = self._batch(numbers[inside], inside.sum(axis=(1, 2)), kinds)
        where = torch.from_numpy(inside).to(scores.device)
        nodes = nodes[where]
        more = None
        if transitions is not None:
            self._check_shape(transitions, (*shape, *self._shape))
            more = tuple(transitions[:, None])
            if transitions.ndim > 3:
                own = transitions[where]
                more = tuple(own[torch.from_numpy(k[:, 0]), i] for i, k in enumerate(kinds))
        return batch, (nodes, *self._edge_tables(nodes, more)), where


def _spread(labels: Tensor, inside: Tensor) -> Tensor:
    """Put labels (..., pixels that count) into images (..., B, H, W), -1 elsewhere."""
    out = torch.full((*labels.shape[:-1], *inside.shape), -1, device=labels.device)
    out[..., inside] = labels
    return out


def _grid_edges(inside: Any, neighbours: int) -> tuple[Ints, ...]:
    """Edges of all images by direction, between pixels that count, numbered image by image."""
    at = np.full(inside.shape, -1)
    at[inside] = np.arange(inside.sum())
    pairs = [(at[:, :, :-1], at[:, :, 1:]), (at[:, :-1], at[:, 1:])]
    if neighbours == 8:
        pairs += [(at[:, :-1, :-1], at[:, 1:, 1:]), (at[:, :-1, 1:], at[:, 1:, :-1])]
    joined = (np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs)
    return tuple(both[(both >= 0).all(axis=1)] for both in joined)
