"""Grids as a layer: losses of two worlds on top of any network that scores the labels of pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.learn.world import Memory
from structlearn._src.torch.graph_function import GraphBatch, check_labels
from structlearn._src.torch.graph_layer import GraphLayer, whole_numbers
from structlearn._src.torch.table_worlds import (
    array,
    at_least_single,
    check_devices,
    check_scores,
)


class GridLoss(GraphLayer):
    """Loss of label images, for the scores of a network.

    As `GraphLoss`, on grids: pixels are joined to their neighbours, with one table for each
    direction.

    Parameters
    ----------
    n_labels
        Number of labels.
    neighbours
        4 or 8.
    loss, alpha, eps_y, eps_h, cost, reduction, n_jobs, transitions, inference, sweeps
        As in `GraphLoss`.

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

    def forward(
        self,
        scores: torch.Tensor,
        labels: torch.Tensor,
        mask: torch.Tensor | None = None,
        transitions: torch.Tensor | None = None,
        memory: Memory = None,
    ) -> torch.Tensor:
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
            (kinds, K, K) Tables to add to those of the layer.
        memory
            What `begin` returned: where messages stand, brought up to date in place.
        """
        check_devices(scores=scores, labels=labels)
        batch, tables, _ = self._prepare(scores, labels, mask, transitions)
        return self._losses(batch, tables, memory)

    def begin(self, labels: torch.Tensor, mask: torch.Tensor | None = None) -> Memory:
        """Return the memory of a batch before any inference."""
        scores = torch.zeros(*labels.shape, self.n_labels)
        return self._prepare(scores, labels, mask, None)[0].objective.begin()

    def decode(
        self,
        scores: torch.Tensor,
        mask: torch.Tensor | None = None,
        transitions: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the best labels (B, H, W), -1 outside the mask."""
        batch, tables, inside = self._read(scores, mask, transitions)
        out = torch.full(inside.shape, -1, device=scores.device)
        out[inside] = self._best(batch.graphs, tables)
        return out

    def marginals(
        self,
        scores: torch.Tensor,
        mask: torch.Tensor | None = None,
        transitions: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the probabilities (B, H, W, K) of labels, 0 outside the mask."""
        batch, tables, inside = self._read(scores, mask, transitions)
        found = self._marginals(batch.graphs, tables)
        out = found.new_zeros((*inside.shape, self.n_labels))
        out[inside] = found
        return out

    def _read(
        self, scores: torch.Tensor, mask: torch.Tensor | None, transitions: torch.Tensor | None
    ) -> tuple[GraphBatch, tuple[torch.Tensor, ...], torch.Tensor]:
        return self._prepare(scores, torch.full(scores.shape[:3], -1), mask, transitions)

    def _prepare(
        self,
        scores: torch.Tensor,
        labels: torch.Tensor,
        mask: torch.Tensor | None,
        transitions: torch.Tensor | None,
    ) -> tuple[GraphBatch, tuple[torch.Tensor, ...], torch.Tensor]:
        check_scores(scores, 4, self.n_labels)
        shape = tuple(scores.shape[:3])
        numbers = whole_numbers("labels", labels, shape)
        inside = np.ones(shape, np.bool_) if mask is None else array(mask).astype(np.bool_)
        if inside.shape != shape or not inside.any(axis=(1, 2)).all():
            raise ArgumentError(f"mask must have shape {shape}, and a pixel in every image")
        check_labels(numbers[inside], self.n_labels)
        kinds = _grid_edges(inside, self.neighbours)
        batch = self._batch(numbers[inside], inside.sum(axis=(1, 2)), kinds)
        where = torch.from_numpy(inside).to(scores.device)
        nodes = at_least_single(scores[where])
        tables = self._edge_tables(nodes, transitions, [len(kind) for kind in kinds])
        return batch, (nodes, *tables), where


def _grid_edges(inside: Any, neighbours: int) -> tuple[Ints, ...]:
    """Edges of all images by direction, between pixels that count, numbered image by image."""
    at = np.full(inside.shape, -1)
    at[inside] = np.arange(inside.sum())
    pairs = [(at[:, :, :-1], at[:, :, 1:]), (at[:, :-1], at[:, 1:])]
    if neighbours == 8:
        pairs += [(at[:, :-1, :-1], at[:, 1:, 1:]), (at[:, :-1, 1:], at[:, 1:, :-1])]
    joined = (np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs)
    return tuple(both[(both >= 0).all(axis=1)] for both in joined)
