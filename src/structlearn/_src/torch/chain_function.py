"""The losses of a batch of chains as one differentiable function of node and edge tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from structlearn._src.common.arrays import Bools, Floats, Ints, offsets_of
from structlearn._src.common.errors import ArgumentError, ImpossibleEvidenceError
from structlearn._src.graph.batch import Sequences
from structlearn._src.learn.loss import Cost, Loss
from structlearn._src.learn.objective import BOTH
from structlearn._src.learn.world import InferenceSettings
from structlearn._src.torch.plain_chain import FLOOR, chain_losses
from structlearn._src.torch.table_worlds import array, table_objective, tensor_like


@dataclass(frozen=True, eq=False)
class ChainSpec:
    """What is computed of a batch of chains."""

    loss: Loss
    cost: Cost | None = None
    sides: tuple[bool, bool] = BOTH  #: which worlds count, the free and the clamped one
    n_jobs: int | None = None

    def split(self) -> tuple[ChainSpec, ...]:
        """Return the parts of the loss one by one; their values add up."""
        parts = self.loss.parts
        return tuple(replace(self, loss=Loss((part,), part.eps_h)) for part in parts)

    def solve(
        self, nodes: Floats, edges: Floats, labels: Ints, mask: Bools, counts: Floats | None
    ) -> tuple[Floats, Floats, Floats]:
        """Values of all chains, and the gradients of their sum, each taken `counts` times."""
        lengths = mask.sum(axis=1)
        sequences = Sequences(offsets_of(lengths), nodes.shape[2])
        each = edges.ndim == 4
        rows = edges[mask[:, 1:]] if each else edges[None]
        settings = InferenceSettings(method="exact", n_jobs=self.n_jobs)
        objective = table_objective(sequences, labels[mask], self.loss, self.cost, settings)
        tables = (nodes[mask], rows.reshape(len(rows), nodes.shape[2] ** 2))
        with np.errstate(invalid="ignore"):  # what is impossible is told from the values
            values, gradient, _ = objective.compare(tables, None, self.sides, counts)
        by_nodes = np.zeros_like(nodes)
        by_nodes[mask] = gradient[0]
        by_edges = np.zeros_like(edges)
        if each:
            by_edges[mask[:, 1:]] = gradient[1].reshape(-1, *edges.shape[2:])
        else:
            by_edges[...] = gradient[1].reshape(edges.shape)
        return values, by_nodes, by_edges


class ChainDifference(torch.autograd.Function):
    r"""Free less clamped values of chains.

    The gradient by the tables is the difference of the expectations of both worlds. It is found
    together with the values, summed over the batch; only if chains count differently in what
    follows are the worlds solved again.
    """

    @staticmethod
    def forward(
        spec: ChainSpec, nodes: Tensor, edges: Tensor, labels: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the values (B,) and their gradients, those of a sum over the batch."""
        check_batch(nodes, edges, labels, mask)
        if nodes.device.type != "cpu":
            return _by_autograd(spec, nodes, edges, labels, mask)
        values, *by = spec.solve(array(nodes), array(edges), array(labels), array(mask), None)
        check_possible(values, spec.sides[1])
        return tensor_like(values, nodes), tensor_like(by[0], nodes), tensor_like(by[1], edges)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what the gradient needs."""
        ctx.spec = inputs[0]
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*inputs[1:], *output[1:])
        ctx.save_for_forward(*inputs[1:], *output[1:])

    @staticmethod
    def backward(ctx: Any, factors: Tensor, *_: Any) -> Any:
        """Gradient by nodes and edges; itself differentiable where that is asked for."""
        nodes, edges, labels, mask, by_nodes, by_edges = ctx.saved_tensors
        batch = ctx.spec, nodes, edges, labels, mask
        if torch.is_grad_enabled():
            return None, *gradients(*batch, factors), None, None
        return None, *_Scaled.apply(*batch, by_nodes, by_edges, factors), None, None

    @staticmethod
    def jvp(ctx: Any, _: Any, along_nodes: Any, along_edges: Any, *__: Any) -> Any:
        """Derivative along tangents: forward mode, which `torch.func.hessian` takes."""
        nodes, edges, labels, mask, _, _ = ctx.saved_tensors
        tables = nodes.contiguous(), edges.contiguous()  # tangents do not go with expanded ones
        along = tuple(
            torch.zeros_like(t) if tangent is None else tangent.contiguous()
            for t, tangent in zip(tables, (along_nodes, along_edges), strict=True)
        )
        return torch.func.jvp(_plain(ctx.spec, labels, mask), tables, along)[1], None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], spec: ChainSpec, *tensors: Tensor
    ) -> tuple[Any, Any]:
        """Make one long batch of several."""
        n = info.batch_size
        nodes, edges, labels, mask = _to_front(tensors, in_dims[1:], n)
        if edges.ndim == 3:  # one table for each of the batches
            size = (*nodes.shape[:2], nodes.shape[2] - 1, *edges.shape[1:])
            edges = edges[:, None, None].expand(size)
        flat = [t.flatten(0, 1) for t in (nodes, edges, labels, mask)]
        found = ChainDifference.apply(spec, *flat)
        return tuple(t.unflatten(0, (n, -1)) for t in found), (0, 0, 0)


class _Scaled(torch.autograd.Function):
    """The gradient of values that count by factors (B,): scaled, or found anew."""

    @staticmethod
    def forward(
        spec: ChainSpec,
        nodes: Tensor,
        edges: Tensor,
        labels: Tensor,
        mask: Tensor,
        by_nodes: Tensor,
        by_edges: Tensor,
        factors: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return the gradients by nodes and edges."""
        each = edges.ndim == 4
        if each or bool((factors == factors[0]).all()):
            by_edges = by_edges * (factors[:, None, None, None] if each else factors[0])
            return by_nodes * factors[:, None, None], by_edges
        if nodes.device.type != "cpu":
            return gradients(spec, nodes, edges, labels, mask, factors)
        arrays = array(nodes), array(edges), array(labels), array(mask)
        _, new_nodes, new_edges = spec.solve(*arrays, array(factors))
        return tensor_like(new_nodes, nodes), tensor_like(new_edges, edges)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep nothing: second derivatives go another way."""

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], spec: ChainSpec, *tensors: Tensor
    ) -> tuple[Any, Any]:
        """Take the batches one by one: factors differ where gradients are taken one by one."""
        moved = _to_front(tensors, in_dims[1:], info.batch_size)
        found = [_Scaled.apply(spec, *(t[i] for t in moved)) for i in range(info.batch_size)]
        return tuple(torch.stack(parts) for parts in zip(*found, strict=True)), (0, 0)


def _to_front(tensors: tuple[Tensor, ...], dims: tuple[int | None, ...], n: int) -> list[Tensor]:
    """Return all tensors with the axis that is mapped over in front."""
    return [
        t.expand(n, *t.shape) if dim is None else t.movedim(dim, 0)
        for t, dim in zip(tensors, dims, strict=True)
    ]


def _plain(spec: ChainSpec, labels: Tensor, mask: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the values of a batch as a function of nodes and edges in plain PyTorch."""

    def values(nodes: Tensor, edges: Tensor) -> Tensor:
        # On the host in double precision, as the compiled loops are: both give one gradient.
        kind = torch.double if nodes.device.type == "cpu" else nodes.dtype
        tables = nodes.to(kind), edges.to(kind)
        losses = chain_losses(*tables, labels, mask, spec.loss, spec.cost, spec.sides)
        return losses.to(nodes.dtype)

    return values


def gradients(
    spec: ChainSpec, nodes: Tensor, edges: Tensor, labels: Tensor, mask: Tensor, factors: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients as functions of nodes, edges and factors."""
    pull = torch.func.vjp(_plain(spec, labels, mask), nodes, edges)[1]
    found: tuple[Tensor, Tensor] = pull(factors)
    return found


def _by_autograd(
    spec: ChainSpec, nodes: Tensor, edges: Tensor, labels: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return values and gradients on another device than the host's."""
    values = _plain(spec, labels, mask)
    found, pull = torch.func.vjp(values, nodes.detach(), edges.detach())[:2]
    impossible = found.abs() > -0.5 * FLOOR
    check_possible(np.where(array(impossible), np.inf, array(found)), spec.sides[1])
    return found, *pull(torch.ones_like(found))


def check_batch(nodes: Tensor, edges: Tensor, labels: Tensor, mask: Tensor) -> None:
    """Refuse masks with holes, labels that do not exist and tables that are no numbers."""
    if not bool(mask[:, 0].all()):
        row = int((~mask[:, 0]).nonzero()[0])
        raise ArgumentError(f"mask: sequence {row} has no position; every sequence needs one")
    if bool((mask[:, 1:] & ~mask[:, :-1]).any()):
        row = int((mask[:, 1:] & ~mask[:, :-1]).any(1).nonzero()[0])
        raise ArgumentError(
            f"mask: sequence {row} has a hole; positions that count must come first, as in "
            f"[True, True, False]"
        )
    states = nodes.shape[2]
    wrong = ((labels < -1) | (labels >= states)) & mask
    if bool(wrong.any()):
        row, place = wrong.nonzero()[0].tolist()
        raise ArgumentError(
            f"labels: position {place} of sequence {row} has the label {int(labels[row, place])}; "
            f"labels are 0 to {states - 1}, or -1 where there is none"
        )
    _check_numbers(nodes, edges, mask)


def _check_numbers(nodes: Tensor, edges: Tensor, mask: Tensor) -> None:
    bad = (torch.isnan(nodes) | (nodes == torch.inf)).any(2) & mask
    if bool(bad.any()):
        row, place = bad.nonzero()[0].tolist()
        raise ArgumentError(
            f"scores: position {place} of sequence {row} has a score that is NaN or plus infinity"
        )
    bad = (torch.isnan(edges) | (edges == torch.inf)).any(-1).any(-1)
    if bool((bad & mask[:, 1:] if edges.ndim == 4 else bad).any()):
        raise ArgumentError("transitions: some entry is NaN or plus infinity")


def check_possible(values: Floats, labelled: bool = False) -> None:
    """Refuse sequences without a finite value: all that is asked for is ruled out."""
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        what = " that agrees with its labels" if labelled else ""
        raise ImpossibleEvidenceError(
            f"scores of minus infinity or forbidden transitions leave sequence {bad[0]} no path"
            f"{what}; loosen them"
        )
