"""Graphs as a layer: losses of two worlds on top of any network that scores labels."""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from torch import nn

from structlearn._src.common import checks
from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.graph.batch import Graphs
from structlearn._src.inference import decode
from structlearn._src.inference.base import Options
from structlearn._src.inference.names import OFFERED
from structlearn._src.learn.loss import make_cost
from structlearn._src.learn.world import Budget, InferenceSettings, Memory
from structlearn._src.torch.graph_function import (
    GraphBatch,
    GraphDifference,
    check_labels,
    lay_out,
)
from structlearn._src.torch.table_worlds import (
    REDUCTIONS,
    array,
    at_least_single,
    check_devices,
    check_scores,
    layer_loss,
    reduced,
    table_objective,
    tensor_like,
)

_SMALL = 0.1  # bound of uniform first transitions
_PLANS = 16  # batches whose elimination orders and worlds are kept: planning costs more than use


class GraphLayer(nn.Module):
    """What layers of graphs have in common: a loss, edge tables, and how to infer."""

    def __init__(
        self,
        n_labels: int,
        loss: str = "log",
        *,
        kinds: int,
        alpha: float = 0.5,
        eps_y: float | None = None,
        eps_h: float | None = None,
        cost: Any = "hamming",
        transitions: bool = True,
        inference: str = "auto",
        sweeps: int | None = None,
        reduction: str = "mean",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__()
        self.n_labels = checks.integer("n_labels", n_labels, low=1)
        self.reduction = checks.one_of("reduction", reduction, REDUCTIONS)
        self.inference = checks.one_of("inference", inference, OFFERED)
        self.sweeps = sweeps if sweeps is None else checks.integer("sweeps", sweeps, low=1)
        self.n_jobs = n_jobs
        self._loss = layer_loss(loss, alpha, eps_y, eps_h)
        self._cost = make_cost(cost, n_labels)
        self._settings = InferenceSettings(method=inference, n_jobs=n_jobs)
        self._plans: OrderedDict[bytes, GraphBatch] = OrderedDict()
        self._shape = (kinds, n_labels, n_labels)
        self.transitions: nn.Parameter | None = None
        if checks.boolean("transitions", transitions):
            self.transitions = nn.Parameter(torch.empty(self._shape))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw small transitions."""
        for parameter in self.parameters(recurse=False):
            nn.init.uniform_(parameter, -_SMALL, _SMALL)

    def extra_repr(self) -> str:
        """Say what the layer is."""
        return f"n_labels={self.n_labels}, inference={self.inference!r}"

    # ---- worlds ----------------------------------------------------------------------------

    def _batch(self, labels: Ints, sizes: Ints, scopes: tuple[Ints, ...]) -> GraphBatch:
        """Return the worlds of a batch, kept from an earlier call if there was one."""
        key = b"|".join(part.tobytes() for part in (labels, sizes, *scopes))
        if key in self._plans:
            self._plans.move_to_end(key)
            return self._plans[key]
        graphs = lay_out(self.n_labels, sizes, scopes)
        objective = table_objective(graphs, labels, self._loss, self._cost, self._settings)
        if self.sweeps is not None:
            objective = objective.with_budget(Budget(self.sweeps))
        batch = self._plans[key] = GraphBatch(objective, None)
        if len(self._plans) > _PLANS:
            self._plans.popitem(last=False)
        return batch

    def _losses(
        self, batch: GraphBatch, tables: tuple[torch.Tensor, ...], memory: Memory
    ) -> torch.Tensor:
        if memory is not None:
            batch = GraphBatch(batch.objective, memory)
        return reduced(_apply(batch, tables), self.reduction)

    def _edge_tables(
        self, nodes: torch.Tensor, more: torch.Tensor | None, counts: list[int]
    ) -> tuple[torch.Tensor, ...]:
        """Return a table for each kind of edges: one (1, K * K), or one for each edge."""
        check_devices(scores=nodes, transitions=more, layer=self.transitions)
        tables = nodes.new_zeros(self._shape)
        if self.transitions is not None:
            tables = self.transitions.to(nodes.dtype)
        flat = tables.flatten(1)[:, None]
        if more is None:
            return tuple(flat)
        if tuple(more.shape) == self._shape:
            return tuple(flat + more.to(nodes.dtype).flatten(1)[:, None])
        each = (sum(counts), *self._shape[1:])
        if tuple(more.shape) != each:
            raise ArgumentError(
                f"transitions of shape {tuple(more.shape)} were given; {self._shape} or {each}, "
                f"one for each edge, is needed"
            )
        parts = more.to(nodes.dtype).flatten(1).split(counts)
        return tuple(own + part for own, part in zip(flat, parts, strict=True))

    # ---- what follows from scores ------------------------------------------------------------

    def _best(self, graphs: Graphs, tables: tuple[torch.Tensor, ...]) -> torch.Tensor:
        options = Options(n_jobs=self.n_jobs)
        arrays = tuple(map(array, tables))
        labels = decode.best(graphs, arrays, self._loss.eps_h, options, self.inference)
        return torch.from_numpy(labels).to(tables[0].device)

    def _marginals(self, graphs: Graphs, tables: tuple[torch.Tensor, ...]) -> torch.Tensor:
        arrays = tuple(map(array, tables))
        found = decode.marginals(graphs, arrays, Options(n_jobs=self.n_jobs), self.inference)
        return tensor_like(found, tables[0])

    @abstractmethod
    def forward(self, scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the loss of a batch."""


@torch.compiler.disable
def _apply(batch: GraphBatch, tables: tuple[torch.Tensor, ...]) -> torch.Tensor:
    values: torch.Tensor = GraphDifference.apply(batch, *tables)
    return values


class GraphLoss(GraphLayer):
    r"""Loss of labels on graphs with any edges, for the scores of a network.

    .. math:: \theta(y) = \sum_i s_i(y_i) + \sum_{(i, j)} A_{y_i y_j}

    with scores :math:`s` of nodes and a table :math:`A` for edges. The loss of a graph is the value
    of its free world less that of its clamped world; nodes labelled -1 are hidden.

    Parameters
    ----------
    n_labels
        Number of labels.
    loss, alpha, eps_y, eps_h, cost, reduction, n_jobs
        As in `ChainLoss`.
    transitions
        Whether the layer has an edge table of its own to learn.
    inference
        "auto" is exact where elimination is quick, else by messages; "exact", "bp" or "trw".
    sweeps
        Number of message sweeps of a call, which then goes on from the `memory` that it is given:
        paired learning. By default messages go on until they rest.

    Attributes
    ----------
    transitions
        Parameter of shape (1, n_labels, n_labels).

    Examples
    --------
    >>> import torch
    >>> layer = GraphLoss(2, loss="marginal")
    >>> scores = torch.zeros(3, 2, requires_grad=True)
    >>> edges = torch.tensor([[0, 1], [1, 2], [2, 0]])
    >>> layer(scores, torch.tensor([0, -1, 1]), edges).backward()
    >>> scores.grad.shape
    torch.Size([3, 2])
    """

    def __init__(self, n_labels: int, loss: str = "log", **options: Any) -> None:
        super().__init__(n_labels, loss, kinds=1, **options)

    def forward(  # type: ignore[override]
        self,
        scores: torch.Tensor,
        labels: torch.Tensor,
        edges: torch.Tensor,
        graphs: torch.Tensor | None = None,
        transitions: torch.Tensor | None = None,
        memory: Memory = None,
    ) -> torch.Tensor:
        """Return the loss of a batch of graphs whose nodes lie one after another.

        Parameters
        ----------
        scores
            (N, K) of all labels at all nodes.
        labels
            (N,) From 0 to K - 1, or -1 where the label is not known.
        edges
            (E, 2) Pairs of nodes.
        graphs
            (N,) Which graph each node belongs to, in rising order; one graph by default.
        transitions
            (1, K, K) or (E, K, K) Tables to add to that of the layer.
        memory
            What `begin` returned: where messages stand, brought up to date in place.
        """
        check_devices(scores=scores, labels=labels)
        batch, tables = self._prepare(scores, labels, edges, graphs, transitions)
        return self._losses(batch, tables, memory)

    def begin(
        self, labels: torch.Tensor, edges: torch.Tensor, graphs: torch.Tensor | None = None
    ) -> Memory:
        """Return the memory of a batch before any inference."""
        scores = torch.zeros(len(labels), self.n_labels)
        return self._prepare(scores, labels, edges, graphs, None)[0].objective.begin()

    def decode(
        self,
        scores: torch.Tensor,
        edges: torch.Tensor,
        graphs: torch.Tensor | None = None,
        transitions: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the best labels (N,)."""
        return self._best(*self._read(scores, edges, graphs, transitions))

    def marginals(
        self,
        scores: torch.Tensor,
        edges: torch.Tensor,
        graphs: torch.Tensor | None = None,
        transitions: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the probabilities (N, K) of labels."""
        return self._marginals(*self._read(scores, edges, graphs, transitions))

    def _read(
        self,
        scores: torch.Tensor,
        edges: torch.Tensor,
        graphs: torch.Tensor | None,
        transitions: torch.Tensor | None,
    ) -> tuple[Graphs, tuple[torch.Tensor, ...]]:
        labels = torch.full(scores.shape[:1], -1)
        batch, tables = self._prepare(scores, labels, edges, graphs, transitions)
        return batch.graphs, tables

    def _prepare(
        self,
        scores: torch.Tensor,
        labels: torch.Tensor,
        edges: torch.Tensor,
        graphs: torch.Tensor | None,
        transitions: torch.Tensor | None,
    ) -> tuple[GraphBatch, tuple[torch.Tensor, ...]]:
        check_scores(scores, 2, self.n_labels)
        n = len(scores)
        numbers = whole_numbers("labels", labels, (n,))
        members = np.zeros(n, np.int64) if graphs is None else whole_numbers("graphs", graphs, (n,))
        pairs = whole_numbers("edges", edges, (len(edges), 2))
        self._check(numbers, pairs, members)
        order = np.argsort(members[pairs[:, 0]], kind="stable")
        batch = self._batch(numbers, np.bincount(members), (pairs[order],))
        if transitions is not None and len(transitions) == len(pairs):
            transitions = transitions[torch.from_numpy(order).to(transitions.device)]
        nodes = at_least_single(scores)
        return batch, (nodes, *self._edge_tables(nodes, transitions, [len(pairs)]))

    def _check(self, labels: Ints, edges: Ints, graphs: Ints) -> None:
        check_labels(labels, self.n_labels)
        n = len(labels)
        if n == 0:
            raise ArgumentError("scores hold no node")
        if len(edges) and (edges.min() < 0 or edges.max() >= n):
            raise ArgumentError(f"edges: nodes are 0 to {n - 1}; others are named")
        if len(edges) and (edges[:, 0] == edges[:, 1]).any():
            raise ArgumentError("edges: some node is joined to itself; leave such edges out")
        steps = np.diff(graphs)
        if graphs[0] != 0 or (steps < 0).any() or (steps > 1).any():
            raise ArgumentError("graphs must number the graphs from 0 in rising order")
        if (graphs[edges[:, 0]] != graphs[edges[:, 1]]).any():
            raise ArgumentError("edges: some edge joins two graphs")


def whole_numbers(name: str, given: torch.Tensor, shape: tuple[int, ...]) -> Ints:
    """Return a tensor of whole numbers as an array."""
    if given.is_floating_point() or tuple(given.shape) != shape:
        raise ArgumentError(
            f"{name} of shape {tuple(given.shape)} and type {given.dtype} were given; whole "
            f"numbers of shape {shape} are needed"
        )
    return array(given).astype(np.int64)
