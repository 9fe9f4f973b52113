"""The losses of a batch of chains as one differentiable function of node and edge tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from structlearn._src.common.arrays import Bools, Floats, Ints, offsets_of
from structlearn._src.graph.batch import Sequences
from structlearn._src.learn.loss import Cost, Loss
from structlearn._src.learn.objective import BOTH
from structlearn._src.learn.world import InferenceSettings
from structlearn._src.torch import card_chain
from structlearn._src.torch.chain_checks import check_batch, check_possible
from structlearn._src.torch.plain_chain import FLOOR, chain_losses
from structlearn._src.torch.table_worlds import (
    add_ends,
    array,
    full_mask,
    last_places,
    table_objective,
    tensor_like,
)


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
        if card_chain.elsewhere(nodes):
            return _elsewhere(spec, nodes, edges, labels, mask)
        check_batch(nodes, edges, labels, mask)
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
        if each or all_alike(factors):
            by_edges = by_edges * (factors[:, None, None, None] if each else factors[0])
            return by_nodes * factors[:, None, None], by_edges
        if card_chain.elsewhere(nodes):
            return _elsewhere(spec, nodes, edges, labels, mask, factors)[1:]
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


class EndedDifference(torch.autograd.Function):
    """The same on a card with starts and ends (K,) beside the nodes, all in one launch."""

    @staticmethod
    def forward(
        spec: ChainSpec, nodes: Tensor, edges: Tensor, starts: Tensor, ends: Tensor,
        labels: Tensor, mask: Tensor | None,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Return the values (B,) and their gradients by all tables, those of a sum."""
        return _ended(spec, nodes, edges, starts, ends, labels, mask)

    setup_context = staticmethod(ChainDifference.setup_context)

    @staticmethod
    def backward(ctx: Any, factors: Tensor, *_: Any) -> Any:
        """Gradient by all tables; itself differentiable where that is asked for."""
        nodes, edges, starts, ends, labels, mask, *found = ctx.saved_tensors
        tables = nodes, edges, starts, ends
        if torch.is_grad_enabled():
            found = torch.func.vjp(_plain_ended(ctx.spec, labels, mask), *tables)[1](factors)
        elif found and all_alike(factors):
            factor = factors[0]
            found = [by * factor for by in found]
        else:
            _, *found = _ended(ctx.spec, *tables, labels, mask, factors)
        return None, *found, None, None

    @staticmethod
    def jvp(ctx: Any, _: Any, *along: Any) -> Any:
        """Derivative along tangents, by the plain loops."""
        batch = ctx.saved_tensors[:6]
        tables = tuple(t.contiguous() for t in batch[:4])  # tangents do not go with expanded ones
        tangents = tuple(
            torch.zeros_like(t) if tangent is None else tangent.contiguous()
            for t, tangent in zip(tables, along[:4], strict=True)
        )
        values = torch.func.jvp(_plain_ended(ctx.spec, *batch[4:]), tables, tangents)[1]
        return values, None, None, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], spec: ChainSpec, *tensors: Any
    ) -> tuple[Any, Any]:
        """Take the batches one by one."""
        moved = _to_front(tensors, in_dims[1:], info.batch_size)
        each = ([None if t is None else t[i] for t in moved] for i in range(info.batch_size))
        found = [EndedDifference.apply(spec, *batch) for batch in each]
        return tuple(torch.stack(parts) for parts in zip(*found, strict=True)), (0,) * 5


class QuickDifference(torch.autograd.Function):
    """The same without transforms of `torch.func`: they would make calls as slow as kernels."""

    @staticmethod
    def forward(ctx: Any, spec: ChainSpec, *tensors: Any) -> Tensor:
        """Return the values (B,)."""
        nodes, edges, starts, ends, labels, mask = tensors
        found = card_chain.solve(spec, nodes, edges, (starts, ends), labels, mask, None)
        by: list[Tensor] = []
        ctx.kept = None
        if found is not None and found.by_each is None:
            values = found.values
            ctx.kept = found.kept()
        else:
            values, *by = _folded(spec, *tensors) if found is None else _parts(found)
        ctx.spec = spec
        ctx.save_for_backward(*tensors, *by)
        ctx.save_for_forward(*tensors)
        return values

    @staticmethod
    def backward(ctx: Any, factors: Tensor, *_: Any) -> Any:
        """Gradient by all tables; itself differentiable where that is asked for."""
        kept = ctx.kept
        ctx.kept = None  # it is changed in place, so that another call solves the chains again
        if kept is None or torch.is_grad_enabled() or not all_alike(factors):
            return EndedDifference.backward(ctx, factors)
        return None, *card_chain.finished(kept, factors), None, None

    @staticmethod
    def jvp(ctx: Any, *along: Any) -> Any:
        """Derivative along tangents, by the plain loops."""
        return EndedDifference.jvp(ctx, *along)[0]


def ended_values(spec: ChainSpec, *tensors: Tensor | None) -> Any:
    """Return the values (B,) of chains with starts and ends on a card."""
    # Transforms show in no other way; where PyTorch hides them, the slower call is right always.
    transformed = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)
    if transformed():
        return EndedDifference.apply(spec, *tensors)[0]
    return QuickDifference.apply(spec, *tensors)


def _ended(
    spec: ChainSpec, nodes: Tensor, edges: Tensor, starts: Tensor, ends: Tensor, labels: Tensor,
    mask: Tensor | None, factors: Tensor | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return values and gradients by kernels, or with the ends in the nodes."""
    found = card_chain.solve(spec, nodes, edges, (starts, ends), labels, mask, factors)
    if found is not None:
        return _parts(found)
    return _folded(spec, nodes, edges, starts, ends, labels, mask, factors)


def _parts(found: Any) -> tuple[Tensor, ...]:
    """Return what kernels found: values, and gradients by nodes, edges, starts and ends."""
    by_edges, *by_ends = found.sums
    by_edges = by_edges if found.by_each is None else found.by_each
    return found.values, found.by_scores, by_edges, *by_ends


def _folded(
    spec: ChainSpec, nodes: Tensor, edges: Tensor, starts: Tensor, ends: Tensor, labels: Tensor,
    mask: Tensor | None, factors: Tensor | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return values and gradients with the ends in the nodes, where kernels cannot."""
    inside = full_mask(mask, nodes)
    folded = add_ends(nodes, inside, starts, ends)
    values, by_nodes, by_edges = _elsewhere(spec, folded, edges, labels, inside, factors)
    last = last_places(inside)[..., None]
    by_ends = torch.where(last, by_nodes, 0.0).sum((0, 1))
    return values, by_nodes, by_edges, by_nodes[:, 0].sum(0), by_ends


def _plain_ended(
    spec: ChainSpec, labels: Tensor, mask: Tensor | None
) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """Return the values of a batch as a function of all its tables in plain PyTorch."""

    def values(nodes: Tensor, edges: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
        inside = full_mask(mask, nodes)
        return _plain(spec, labels, inside)(add_ends(nodes, inside, starts, ends), edges)

    return values


def _to_front(tensors: tuple[Any, ...], dims: tuple[int | None, ...], n: int) -> list[Any]:
    """Return all tensors with the axis that is mapped over in front; None stays."""
    return [
        t if t is None else t.expand(n, *t.shape) if dim is None else t.movedim(dim, 0)
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


def _elsewhere(
    spec: ChainSpec, nodes: Tensor, edges: Tensor, labels: Tensor, mask: Tensor,
    factors: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return values and gradients on another device than the host's: by kernels, or by autograd."""
    found = card_chain.solve(spec, nodes, edges, None, labels, mask, factors)
    if found is not None:
        return found.values, found.by_scores, found.by_edges
    check_batch(nodes, edges, labels, mask)
    call = _plain(spec, labels, mask)
    try:
        values, pull = torch.func.vjp(call, nodes.detach(), edges.detach())[:2]
        by = pull(torch.ones_like(values) if factors is None else factors)
    except torch.OutOfMemoryError as error:
        raise card_chain.full(nodes) from error
    impossible = values.abs() > -0.5 * FLOOR
    check_possible(np.where(array(impossible), np.inf, array(values)), spec.sides[1])
    return values, *by


def all_alike(factors: Tensor) -> bool:
    """Tell whether all chains count alike; those of a sum do, which their strides tell."""
    return factors.stride(0) == 0 or bool((factors == factors[0]).all())
