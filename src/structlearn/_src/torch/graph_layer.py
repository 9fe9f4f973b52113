"""Graphs as a layer: losses of two worlds on top of any network that scores labels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from structlearn._src.common import checks
from structlearn._src.common.arrays import Ints
from structlearn._src.common.document import completed
from structlearn._src.common.errors import ArgumentError
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
from structlearn._src.torch.graph_layer_doc import GRAPH_LOSS
from structlearn._src.torch.graph_queries import GraphQueries
from structlearn._src.torch.table_worlds import (
    REDUCTIONS,
    at_least_single,
    check_forbidden,
    check_given,
    check_scores,
    check_tensors,
    draw_small,
    drawn_seed,
    layer_loss,
    reduced,
    summed_out,
    table_objective,
    whole_numbers,
)

_PLANS = 16  # batches whose elimination orders and worlds are kept: planning costs more than use


class _Plans:
    """The worlds of the batches used last, for any thread; copies of a layer begin without any."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[Hashable, GraphBatch] = {}

    def find(self, key: Hashable, make: Callable[[], GraphBatch]) -> GraphBatch:
        """Return what is kept for a key, or make it; of too many, that used longest ago goes."""
        with self._lock:
            batch = self._kept.pop(key, None)
        batch = make() if batch is None else batch
        with self._lock:
            self._kept[key] = batch
            if len(self._kept) > _PLANS:
                del self._kept[next(iter(self._kept))]
        return batch

    def __reduce__(self) -> tuple[type[_Plans], tuple[()]]:
        """Be copied and pickled as nothing: plans are made again when needed."""
        return _Plans, ()


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
        hidden_states: int | None = None,
        forbidden: Collection[tuple[int, int]] | None = None,
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
        self._hidden: tuple[int, ...] = ()
        if hidden_states is not None:
            self._hidden = (checks.integer("hidden_states", hidden_states, low=1),)
            if len({part.eps_h for part in self._loss.parts}) > 1:
                raise ArgumentError(
                    f"hidden_states with loss={loss!r} are summed out at one temperature, 1 in the "
                    f"log loss and eps_h={eps_h} in the other part; use eps_h=1"
                )
        self._cost = make_cost(cost, n_labels)
        self._plans = _Plans()
        self._shape = (kinds, n_labels, n_labels)
        self.transitions: nn.Parameter | None = None
        if checks.boolean("transitions", transitions):
            self.transitions = nn.Parameter(torch.empty(self._shape))
        self._never: Tensor | None
        never = None
        if forbidden is not None:
            pairs = check_forbidden(forbidden, list(range(n_labels))).pairs
            never = torch.from_numpy(np.where(pairs, -np.inf, 0.0))
        self.register_buffer("_never", never, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw small transitions.

        Examples
        --------
        >>> from structlearn.torch import GraphLoss
        >>> layer = GraphLoss(3)
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
        >>> GraphLoss(3).extra_repr()
        "n_labels=3, inference='auto'"
        """
        return f"n_labels={self.n_labels}, inference={self.inference!r}"

    def _node_scores(self, scores: Tensor, axes: int) -> Tensor:
        """Return scores of labels, hidden states summed out, in single precision or better."""
        check_scores(scores, axes + len(self._hidden), (self.n_labels, *self._hidden))
        nodes = at_least_single(scores)
        return summed_out(nodes, self._loss.eps_h) if self._hidden else nodes

    def _no_scores(self, labels: Tensor) -> Tensor:
        """Return scores of 0 for the places that have these labels."""
        return torch.zeros(*labels.shape, self.n_labels, *self._hidden, device=labels.device)

    def _batch(self, labels: Ints, sizes: Ints, scopes: tuple[Ints, ...]) -> GraphBatch:
        """Return the worlds of a batch, kept from an earlier call if there was one."""

        def make() -> GraphBatch:
            graphs = lay_out(self.n_labels, sizes, scopes)
            settings = InferenceSettings(method=self.inference, n_jobs=self.n_jobs)
            objective = table_objective(graphs, labels, self._loss, self._cost, settings)
            if self.sweeps is not None:
                objective = objective.with_budget(Budget(self.sweeps))
            return GraphBatch(objective, None)

        how = self.inference, self.sweeps, self.n_jobs  # attributes that users may change
        parts = labels, sizes, *scopes
        return self._plans.find((*how, *(part.tobytes() for part in parts)), make)

    def _losses(self, batch: GraphBatch, tables: tuple[Tensor, ...], memory: Memory) -> Tensor:
        if memory is not None:
            batch = GraphBatch(batch.objective, memory)
        losses: Tensor = GraphDifference.apply(batch, *tables)
        return reduced(losses, self.reduction)

    def _edge_tables(self, nodes: Tensor, more: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        """Return tables (1 or edges, K * K) of every kind of edges: the layer's, and `more`."""
        tables = nodes.new_zeros(self._shape)
        if self.transitions is not None:
            tables = self.transitions.to(nodes.dtype)
        if self._never is not None:
            tables = tables + self._never.to(nodes)
        own = tuple(tables.flatten(1)[:, None])
        if more is None:
            return own
        added = (part.to(nodes.dtype).flatten(1) for part in more)
        return tuple(mine + part for mine, part in zip(own, added, strict=True))

    def _check_shape(self, transitions: Tensor, each: tuple[int, ...]) -> None:
        """Refuse tables that are neither shared by the edges of a kind nor one for each."""
        if tuple(transitions.shape) not in (self._shape, each):
            raise ArgumentError(
                f"transitions of shape {tuple(transitions.shape)} were given; {self._shape} or "
                f"{each}, one for each edge, is needed"
            )

    def _ask(
        self, batch: GraphBatch, tables: tuple[Tensor, ...], rng: np.random.Generator | None = None
    ) -> GraphQueries:
        """Return what answers questions about a batch; draws are made with `rng`."""
        options = Options(n_jobs=self.n_jobs, rng=rng or np.random.default_rng())
        return GraphQueries(batch.graphs, tables, self.inference, options)


@completed(GRAPH_LOSS)
class GraphLoss(GraphLayer):
    r"""Loss of labels on graphs with any edges, for the scores of a network.

    .. math:: \theta(y) = \sum_i s_i(y_i) + \sum_{(i, j)} A_{y_i y_j}

    with scores :math:`s` of nodes and a table :math:`A` for edges. The loss of a graph is the value
    of its free world minus the value of its clamped world; nodes labelled -1 are hidden.

    Parameters
    ----------
    n_labels
        Number of labels.
    loss
        As in `ChainLoss`.
    **options
        The other parameters, as follows.
    alpha, eps_y, eps_h, cost, reduction, n_jobs
        As in `ChainLoss`.
    transitions
        Whether the layer has an edge table of its own to learn.
    hidden_states
        Number of hidden states beside every label, as in `ChainLoss`: one more axis of scores.
    forbidden
        Pairs (a, b) of labels: an edge whose first node has a must not end in b.
    inference
        "auto" is exact where elimination is fast, otherwise message passing; "exact", "bp" or
        "trw".
    sweeps
        Number of message sweeps per call, each of which continues from the `memory` that it is
        given: paired learning. Gradients then treat the messages as constants. By default messages
        are passed until they converge.

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

    @torch.compiler.disable
    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        edges: Tensor,
        graphs: Tensor | None = None,
        transitions: Tensor | None = None,
        memory: Memory = None,
    ) -> Tensor:
        """Return the loss of a batch of graphs, whose nodes are concatenated."""
        check_given(scores=scores, labels=labels)
        batch, tables = self._prepare(scores, labels, edges, graphs, transitions)
        return self._losses(batch, tables, memory)

    def begin(self, labels: Tensor, edges: Tensor, graphs: Tensor | None = None) -> Memory:
        """Return the memory of a batch before any inference."""
        check_given(labels=labels)
        scores = self._no_scores(labels.flatten())
        return self._prepare(scores, labels, edges, graphs, None)[0].objective.begin()

    @torch.compiler.disable
    def decode(
        self,
        scores: Tensor,
        edges: Tensor,
        graphs: Tensor | None = None,
        transitions: Tensor | None = None,
    ) -> Tensor:
        """Return the best labels."""
        return self._ask(*self._prepare(scores, None, edges, graphs, transitions)).best(
            self._loss.eps_h
        )

    @torch.compiler.disable
    def marginals(
        self,
        scores: Tensor,
        edges: Tensor,
        graphs: Tensor | None = None,
        transitions: Tensor | None = None,
    ) -> Tensor:
        """Return the probabilities of labels."""
        return self._ask(*self._prepare(scores, None, edges, graphs, transitions)).marginals()

    @torch.compiler.disable
    def entropy(
        self,
        scores: Tensor,
        edges: Tensor,
        graphs: Tensor | None = None,
        transitions: Tensor | None = None,
    ) -> Tensor:
        r"""Return the entropy of the labellings of every graph, :math:`\log Z - E[\theta]`."""
        return self._ask(*self._prepare(scores, None, edges, graphs, transitions)).entropy()

    @torch.compiler.disable
    def k_best(
        self,
        scores: Tensor,
        edges: Tensor,
        k: int,
        graphs: Tensor | None = None,
        transitions: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the best labellings and their scores; exact, or refused."""
        checks.integer("k", k, low=1)
        return self._ask(*self._prepare(scores, None, edges, graphs, transitions)).k_best(k)

    @torch.compiler.disable
    def sample(
        self,
        scores: Tensor,
        edges: Tensor,
        n: int = 1,
        graphs: Tensor | None = None,
        transitions: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return independent exact draws of labellings; exact, or refused."""
        checks.integer("n", n, low=1)
        batch = self._prepare(scores, None, edges, graphs, transitions)
        return self._ask(*batch, drawn_seed(generator)).sample(n)

    def _prepare(
        self,
        scores: Tensor,
        labels: Tensor | None,
        edges: Tensor,
        graphs: Tensor | None,
        transitions: Tensor | None,
    ) -> tuple[GraphBatch, tuple[Tensor, ...]]:
        nodes = self._node_scores(scores, 2)
        check_given(scores=scores, edges=edges)
        check_tensors(scores=scores, labels=labels, edges=edges, graphs=graphs)
        n = len(scores)
        numbers = np.full(n, -1) if labels is None else whole_numbers("labels", labels, (n,))
        members = np.zeros(n, np.int64) if graphs is None else whole_numbers("graphs", graphs, (n,))
        pairs = whole_numbers("edges", edges, (edges.numel() // 2, 2))
        self._check(numbers, pairs, members)
        order = np.argsort(members[pairs[:, 0]], kind="stable")
        batch = self._batch(numbers, np.bincount(members), (pairs[order],))
        check_tensors(scores=scores, transitions=transitions, layer=self.transitions)
        if transitions is not None:
            self._check_shape(transitions, (len(pairs), *self._shape[1:]))
            if len(transitions) == len(pairs):
                transitions = transitions[torch.from_numpy(order).to(transitions.device)]
        more = None if transitions is None else (transitions,)
        return batch, (nodes, *self._edge_tables(nodes, more))

    def _check(self, labels: Ints, edges: Ints, graphs: Ints) -> None:
        check_labels(labels, self.n_labels)
        n = len(labels)
        if n == 0:
            raise ArgumentError("scores hold no node")
        if len(edges) and (edges.min() < 0 or edges.max() >= n):
            wrong = int(((edges < 0) | (edges >= n)).any(axis=1).argmax())
            raise ArgumentError(
                f"edges: edge {wrong} joins {edges[wrong].tolist()}; nodes are 0 to {n - 1}"
            )
        if len(edges) and (edges[:, 0] == edges[:, 1]).any():
            raise ArgumentError("edges: some node is joined to itself; leave such edges out")
        steps = np.diff(graphs)
        if graphs[0] != 0 or (steps < 0).any() or (steps > 1).any():
            raise ArgumentError("graphs must number the graphs from 0 in rising order")
        if (graphs[edges[:, 0]] != graphs[edges[:, 1]]).any():
            raise ArgumentError("edges: some edge joins two graphs")
