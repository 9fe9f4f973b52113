"""Two worlds whose parameters are tensors: no weights, only tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from structlearn._src.common import checks
from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.graph.batch import Graphs, Sequences
from structlearn._src.learn.loss import Cost, Loss, make_loss
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.learn.world import InferenceSettings
from structlearn._src.model.model import Examples, LinearModel, Tables

REDUCTIONS = ("mean", "sum", "none")


@dataclass(frozen=True, eq=False)
class TableObjective(StructuredObjective):
    """The two worlds of a batch as a function of the tables of its factors."""

    def push(self, weights: Any) -> Tables:
        """Return the tables, which are the weights here."""
        return weights

    def pull(self, gradient: Tables) -> Any:
        """Return the gradient by the tables."""
        return gradient


def table_objective(
    structure: Sequences | Graphs,
    labels: Ints,
    loss: Loss,
    cost: Cost | None,
    settings: InferenceSettings,
) -> TableObjective:
    """Return the worlds of a batch."""
    n_groups = 2 if isinstance(structure, Sequences) else len(structure.groups)
    ones = np.ones(structure.n_examples)
    examples = Examples(structure, ((),) * n_groups, labels, ones)
    return TableObjective(LinearModel(()), examples, loss, cost, settings=settings)


def array(tensor: torch.Tensor) -> NDArray[Any]:
    """Return what a tensor holds, floats as float64, in memory of the host."""
    host = tensor.detach().cpu()
    return (host.double() if host.is_floating_point() else host).numpy()


def tensor_like(values: NDArray[Any], like: torch.Tensor) -> torch.Tensor:
    """Return an array as a tensor of the type and on the device of another one."""
    return torch.from_numpy(np.ascontiguousarray(values)).to(like)


def layer_loss(name: str, alpha: float, eps_y: float | None, eps_h: float | None) -> Loss:
    """Return the loss of a layer; what it does not use is checked all the same."""
    checks.number("alpha", alpha, low=0.0, high=1.0)
    return make_loss(name, eps_y, eps_h, alpha)


def check_scores(scores: Any, axes: int, n_labels: int) -> None:
    """Refuse scores that are no floating-point tensor with the labels on the last axis."""
    if not isinstance(scores, torch.Tensor) or not scores.is_floating_point():
        raise ArgumentError("scores must be a tensor of floating-point numbers")
    if scores.ndim != axes or scores.shape[-1] != n_labels:
        raise ArgumentError(
            f"scores of shape {tuple(scores.shape)} were given; {axes} axes are needed, the last "
            f"of them over the {n_labels} labels"
        )


def check_devices(**tensors: torch.Tensor | None) -> None:
    """Refuse tensors that lie on different devices."""
    found = {name: str(t.device) for name, t in tensors.items() if t is not None}
    if len(set(found.values())) > 1:
        told = ", ".join(f"{name} on {device}" for name, device in found.items())
        raise ArgumentError(f"the tensors lie on different devices: {told}; move them to one")


def add_ends(
    nodes: torch.Tensor, mask: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor
) -> torch.Tensor:
    """Add what first and last labels are worth to the scores of those positions."""
    first = torch.arange(nodes.shape[1], device=nodes.device) == 0
    last = mask & ~torch.cat([mask[:, 1:], torch.zeros_like(mask[:, :1])], 1)
    nodes = nodes + torch.where(first[:, None], starts.to(nodes.dtype), 0.0)
    return nodes + torch.where(last[..., None], ends.to(nodes.dtype), 0.0)


def at_least_single(tensor: torch.Tensor) -> torch.Tensor:
    """Return half precision as single precision, as losses are computed under autocast."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def reduced(losses: torch.Tensor, reduction: str) -> torch.Tensor:
    """Return the mean or the sum of the losses of all examples, or all of them."""
    if reduction == "mean":
        return losses.mean()
    return losses.sum() if reduction == "sum" else losses
