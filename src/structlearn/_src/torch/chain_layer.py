"""Chains as a layer: losses of two worlds on top of any network that scores labels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from structlearn._src.common import checks
from structlearn._src.common.arrays import Ints, offsets_of
from structlearn._src.common.document import completed
from structlearn._src.common.errors import ArgumentError
from structlearn._src.inference.chain_batch import Chains
from structlearn._src.learn.loss import make_cost, make_loss
from structlearn._src.learn.objective import FREE_ONLY
from structlearn._src.torch import card_chain
from structlearn._src.torch.chain_checks import check_batch, check_possible
from structlearn._src.torch.chain_function import (
    ChainDifference,
    ChainSpec,
    ended_values,
    gradients,
)
from structlearn._src.torch.chain_layer_doc import CHAIN_LOSS
from structlearn._src.torch.table_worlds import (
    REDUCTIONS,
    add_ends,
    array,
    at_least_single,
    check_forbidden,
    check_scores,
    check_tensors,
    check_whole,
    draw_small,
    drawn_seed,
    full_mask,
    layer_loss,
    level,
    reduced,
    summed_out,
    tensor_like,
)

_WIDE = (torch.int64, torch.int32)  # types that hold -1 and the number of labels


@completed(CHAIN_LOSS)
class ChainLoss(nn.Module):
    r"""Loss of label sequences under a linear-chain model, for the scores of a network.

    With scores :math:`s_t(k)`, transitions :math:`A`, starts :math:`a` and ends :math:`b`,

    .. math:: \theta(y) = a_{y_1} + \sum_t s_t(y_t) + \sum_t A_{y_t y_{t+1}} + b_{y_T}

    and the loss of a sequence is the value of its free world minus the value of its clamped world,

    .. math:: \Phi(\theta + \Delta; \epsilon_y, \epsilon_h)
              - \Phi(\theta \text{ with the labels}; \epsilon_h) ,

    where positions labelled -1 are hidden. Gradients are the difference of two expectations.

    Parameters
    ----------
    n_labels
        Number of labels.
    loss
        "log" (CRF), "hinge", "latent-hinge", "marginal", "eps", "hybrid" or "perceptron".
    alpha
        Mixing weight of the log loss in "hybrid".
    eps_y, eps_h
        Temperatures of outputs and of hidden variables, instead of the defaults of the loss.
    cost : str or array-like
        Cost of a wrong label in losses with a margin: "hamming", "hamming-mean", or an array of
        costs by true label, or by true and predicted label.
    transitions
        Whether the layer has transitions, starts and ends of its own to learn.
    hidden_states
        Number of hidden states beside every label. Scores then have one more axis,
        (B, T, labels, states), which is summed out at the temperature `eps_h`.
    forbidden
        "BIO", "BIOES", "IOB1", or pairs (a, b) of labels where b must not follow a.
    names
        Names of the labels, if `forbidden` uses them; numbers by default.
    reduction
        "mean" or "sum" over the sequences, or "none".
    n_jobs
        Number of threads; all cores by default.

    Attributes
    ----------
    transitions, starts, ends
        Parameters of shape (n_labels, n_labels), (n_labels,) and (n_labels,).

    Notes
    -----
    CPU tensors are processed by compiled loops in double precision, tensors on a GPU by Triton
    kernels in their own precision, and derivatives of higher order by plain PyTorch.

    References
    ----------
    W. Ping, Q. Liu and A. Ihler, "Marginal structured SVM with hidden variables", 2014.
    Q. Shi et al., "A hybrid loss for multiclass and structured prediction", 2014.

    Examples
    --------
    >>> import torch
    >>> layer = ChainLoss(3, loss="hybrid", alpha=0.9)
    >>> scores = torch.zeros(2, 4, 3, requires_grad=True)
    >>> labels = torch.tensor([[0, 1, -1, 2], [2, 2, 1, 0]])
    >>> layer(scores, labels).backward()
    >>> scores.grad.shape
    torch.Size([2, 4, 3])
    >>> [len(path) for path in layer.decode(scores)]
    [4, 4]
    """

    def __init__(
        self,
        n_labels: int,
        loss: str = "log",
        *,
        alpha: float = 0.5,
        eps_y: float | None = None,
        eps_h: float | None = None,
        cost: Any = "hamming",
        transitions: bool = True,
        hidden_states: int | None = None,
        forbidden: str | Collection[tuple[Any, Any]] | None = None,
        names: Sequence[Any] | None = None,
        reduction: str = "mean",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__()
        self.n_labels = checks.integer("n_labels", n_labels, low=1)
        self.reduction = checks.one_of("reduction", reduction, REDUCTIONS)
        if hidden_states is not None:
            checks.integer("hidden_states", hidden_states, low=1)
        self.hidden_states = hidden_states
        self.n_jobs = n_jobs
        self._loss = layer_loss(loss, alpha, eps_y, eps_h)
        made = ChainSpec(self._loss, make_cost(cost, n_labels), n_jobs=n_jobs)
        # Hidden states are summed out beforehand, for each part of the loss as it demands.
        self._specs = (made,) if hidden_states is None else made.split()
        self._free = ChainSpec(make_loss("log"), sides=FREE_ONLY, n_jobs=n_jobs)
        self._best = ChainSpec(make_loss("perceptron"), sides=FREE_ONLY, n_jobs=n_jobs)
        self.transitions: nn.Parameter | None = None
        self.starts: nn.Parameter | None = None
        self.ends: nn.Parameter | None = None
        if checks.boolean("transitions", transitions):
            self.transitions = nn.Parameter(torch.empty(n_labels, n_labels))
            self.starts = nn.Parameter(torch.empty(n_labels))
            self.ends = nn.Parameter(torch.empty(n_labels))
        self._forbid(forbidden, names)
        self.reset_parameters()

    def _forbid(self, rule: Any, names: Sequence[Any] | None) -> None:
        """Keep what is forbidden as -inf, in buffers that move with the layer."""
        if names is not None and not isinstance(names, Sequence):
            raise ArgumentError(f"names={names!r} must be a list, one name for each label")
        listed = list(range(self.n_labels)) if names is None else list(names)
        if len(listed) != self.n_labels:
            raise ArgumentError(f"names: {len(listed)} were given for {self.n_labels} labels")
        self._never = rule is not None
        if rule is None:
            return
        found = check_forbidden(rule, listed)
        for name, never in (("first", found.first), ("last", found.last), ("pairs", found.pairs)):
            added = np.where(never, -np.inf, 0.0)
            self.register_buffer(f"_never_{name}", torch.from_numpy(added), persistent=False)

    def reset_parameters(self) -> None:
        """Draw small transitions, starts and ends."""
        draw_small(self)

    def extra_repr(self) -> str:
        """Return the text that `repr` shows of the layer."""
        return f"n_labels={self.n_labels}, reduction={self.reduction!r}"

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        transitions: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch."""
        losses = [self._losses(spec, scores, labels, mask, transitions) for spec in self._specs]
        total = losses[0] if len(losses) == 1 else torch.stack(losses).sum(0)
        return reduced(total, self.reduction)

    def _losses(
        self, spec: ChainSpec, scores: Tensor, labels: Tensor, mask: Tensor | None,
        transitions: Tensor | None,
    ) -> Tensor:  # fmt: skip
        """Return the losses (B,) of some parts of the loss."""
        check_tensors(
            scores=scores, labels=labels, mask=mask, transitions=transitions, layer=self.transitions
        )
        nodes = self._node_scores(scores, spec.loss.eps_h)
        check_whole("labels", labels, tuple(nodes.shape[:2]))
        if labels.dtype not in _WIDE:  # others wrap around where they are compared
            labels = labels.long()
        if not card_chain.fits(nodes):
            nodes, edges, inside = self._tables(scores, mask, transitions, spec.loss.eps_h)
            return _apply(spec, nodes, edges, labels, inside)[0]
        edges = self._edges(nodes, transitions)
        both = self.starts, self.ends
        ends = [nodes.new_zeros(self.n_labels) if t is None else t.to(nodes) for t in both]
        if self._never:
            edges = edges + self._never_pairs.to(edges)
            ends = [ends[0] + self._never_first.to(edges), ends[1] + self._never_last.to(edges)]
        some = None if mask is None else full_mask(mask, nodes)
        # The way around `torch.compile` takes a while, and is not needed where nothing is compiled.
        apply = _apply_ended if torch.compiler.is_compiling() else ended_values
        return apply(spec, nodes, edges, *ends, labels, some)  # type: ignore[no-any-return]

    def log_partition(
        self, scores: Tensor, mask: Tensor | None = None, transitions: Tensor | None = None
    ) -> Tensor:
        """Return the log partition functions: sums over all paths, in the log domain."""
        nodes, edges, mask = self._tables(scores, mask, transitions)
        return _apply(self._free, nodes, edges, _no_labels(mask), mask)[0]

    def marginals(
        self, scores: Tensor, mask: Tensor | None = None, transitions: Tensor | None = None
    ) -> Tensor:
        """Return the probabilities of labels; differentiable."""
        nodes, edges, mask = self._tables(scores, mask, transitions)
        return self._gradients(nodes, edges, mask)[1]

    def entropy(
        self, scores: Tensor, mask: Tensor | None = None, transitions: Tensor | None = None
    ) -> Tensor:
        r"""Return the entropy of the paths, :math:`\log Z - E[\theta]`; differentiable."""
        nodes, edges, mask = self._tables(scores, mask, transitions)
        # No entropy changes, but it is a difference of numbers as large as the scores.
        nodes = level(nodes, -1)
        edges = level(edges, -2, -1)
        if edges.ndim == 2:
            edges = edges.expand(len(nodes), nodes.shape[1] - 1, -1, -1)
        values, by_nodes, by_edges = self._gradients(nodes, edges, mask)
        return values - _product(nodes, by_nodes) - _product(edges, by_edges)

    def _gradients(
        self, nodes: Tensor, edges: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Log partition functions, and their gradients by the tables, which are marginals."""
        batch = self._free, nodes, edges, _no_labels(mask), mask
        values, by_nodes, by_edges = _apply(*batch)
        if any(_differentiated(t) for t in (nodes, edges)):
            by_nodes, by_edges = gradients(*batch, torch.ones_like(values))
        return values, by_nodes, by_edges

    @torch.compiler.disable
    def decode(
        self, scores: Tensor, mask: Tensor | None = None, transitions: Tensor | None = None
    ) -> list[list[int]]:
        """Return the best labels of every sequence."""
        nodes, edges, inside = self._tables(scores, mask, transitions)
        batch = nodes.detach(), edges.detach(), None, _no_labels(inside), inside, None
        found = card_chain.solve(self._best, *batch)
        if found is not None:
            pairs = zip(found.by_scores.argmax(2).tolist(), inside.sum(1).tolist(), strict=True)
            return [path[:length] for path, length in pairs]
        chains, offsets = self._chains(scores, mask, transitions)
        values, labels = chains.best()
        check_possible(values)
        return _cut(labels, offsets)

    @torch.compiler.disable
    def k_best(
        self, scores: Tensor, k: int, mask: Tensor | None = None, transitions: Tensor | None = None
    ) -> tuple[Tensor, list[list[list[int]]]]:
        """Return the best paths and their scores."""
        chains, offsets = self._chains(scores, mask, transitions)
        values, labels = chains.k_best(checks.integer("k", k, low=1))
        check_possible(values[:, 0])
        paths = [_cut(row, offsets) for row in labels]
        found = [
            [paths[j][i] for j in range(k) if values[i, j] > -np.inf] for i in range(len(values))
        ]
        return tensor_like(values, scores), found

    @torch.compiler.disable
    def sample(
        self,
        scores: Tensor,
        n: int = 1,
        mask: Tensor | None = None,
        transitions: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return independent exact draws of paths."""
        chains, offsets = self._chains(scores, mask, transitions)
        drawn = chains.draw(checks.integer("n", n, low=1), drawn_seed(generator))
        check_possible(np.where(drawn[0, offsets[:-1]] < 0, np.inf, 0.0))
        lengths = np.diff(offsets)
        out = np.full((n, len(lengths), scores.shape[1]), -1)
        out[:, np.arange(scores.shape[1]) < lengths[:, None]] = drawn
        return torch.from_numpy(out).to(scores.device)

    def _chains(
        self, scores: Tensor, mask: Tensor | None, transitions: Tensor | None
    ) -> tuple[Chains, Ints]:
        nodes, edges, inside = self._tables(scores, mask, transitions)
        check_batch(nodes, edges, _no_labels(inside), inside)
        kept = array(inside)
        offsets = offsets_of(kept.sum(axis=1))
        tables = array(edges)
        tables = tables[None] if tables.ndim == 2 else tables[kept[:, 1:]]
        return Chains(array(nodes)[kept], tables, offsets, self.n_jobs), offsets

    def _tables(
        self,
        scores: Tensor,
        mask: Tensor | None,
        transitions: Tensor | None,
        eps_h: float | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return nodes (B, T, K), edges and mask with all that the layer adds."""
        check_tensors(scores=scores, mask=mask, transitions=transitions, layer=self.transitions)
        nodes = self._node_scores(scores, self._loss.eps_h if eps_h is None else eps_h)
        mask = full_mask(mask, nodes)
        edges = self._edges(nodes, transitions)
        if self.starts is not None and self.ends is not None:
            nodes = add_ends(nodes, mask, self.starts, self.ends)
        if self._never:
            nodes = add_ends(nodes, mask, self._never_first, self._never_last)
            edges = edges + self._never_pairs.to(edges)
        return nodes, edges, mask

    def _node_scores(self, scores: Tensor, eps_h: float) -> Tensor:
        """Return scores of labels, hidden states summed out, in single precision or better."""
        if self.hidden_states is None:
            check_scores(scores, 3, (self.n_labels,))
            nodes = at_least_single(scores)
        else:
            check_scores(scores, 4, (self.n_labels, self.hidden_states))
            nodes = summed_out(at_least_single(scores), eps_h)
        if nodes.shape[0] == 0 or nodes.shape[1] == 0:
            raise ArgumentError("scores hold no sequence, or sequences without positions")
        return nodes

    def _edges(self, nodes: Tensor, more: Tensor | None) -> Tensor:
        """Return one table (K, K), or one for each edge."""
        size = (self.n_labels, self.n_labels)
        own = self.transitions
        edges = nodes.new_zeros(size) if own is None else own.to(nodes.dtype)
        if more is None:
            return edges
        each = (nodes.shape[0], nodes.shape[1] - 1, *size)
        if tuple(more.shape) not in (size, each):
            raise ArgumentError(
                f"transitions of shape {tuple(more.shape)} were given; {size} or {each} is needed"
            )
        return edges + more.to(nodes.dtype)


@torch.compiler.disable
def _apply(
    spec: ChainSpec, nodes: Tensor, edges: Tensor, labels: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return values, and the gradients of their sum as constants; `torch.compile` stays out."""
    found: tuple[Tensor, Tensor, Tensor] = ChainDifference.apply(spec, nodes, edges, labels, mask)
    return found


_apply_ended = torch.compiler.disable(ended_values)  # `torch.compile` stays out


def _no_labels(mask: Tensor) -> Tensor:
    return torch.full_like(mask, -1, dtype=torch.long)


def _differentiated(tensor: Tensor) -> bool:
    """Tell whether derivatives by a tensor are wanted, backward or forward."""
    backward = torch.is_grad_enabled() and tensor.requires_grad
    return backward or torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None


def _product(tables: Tensor, marginals: Tensor) -> Tensor:
    """Expected tables (B,); what cannot happen counts for nothing."""
    each = torch.where(marginals > 0, tables, 0.0) * marginals
    return each.flatten(1).sum(1)


def _cut(labels: Ints, offsets: Ints) -> list[list[int]]:
    return [part.tolist() for part in np.split(labels, offsets[1:-1])]
