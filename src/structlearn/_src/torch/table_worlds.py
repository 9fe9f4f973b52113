"""Two worlds whose parameters are tensors: no weights, only tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from structlearn._src.common import checks
from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import ArgumentError, QueryError
from structlearn._src.graph.batch import Graphs, Sequences
from structlearn._src.learn.loss import Cost, Loss, make_loss
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.learn.world import InferenceSettings
from structlearn._src.model.model import Examples, LinearModel, Tables
from structlearn._src.text.labels import Forbidden, forbidden_transitions
from structlearn._src.torch.plain_chain import soft_max

REDUCTIONS = ("mean", "sum", "none")
_META = torch.device("meta")


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


def array(tensor: Tensor) -> NDArray[Any]:
    """Return what a tensor holds, floats as float64, in memory of the host."""
    host = tensor.detach().cpu()
    return (host.double() if host.is_floating_point() else host).numpy()


def tensor_like(values: NDArray[Any], like: Tensor) -> Tensor:
    """Return an array as a tensor of the type and on the device of another one."""
    return torch.from_numpy(np.asarray(values, order="C")).to(like)  # single numbers stay so


def layer_loss(name: str, alpha: float, eps_y: float | None, eps_h: float | None) -> Loss:
    """Return the loss of a layer; what it does not use is checked all the same."""
    checks.number("alpha", alpha, low=0.0, high=1.0)
    return make_loss(name, eps_y, eps_h, alpha)


def check_scores(scores: Any, axes: int, last: tuple[int, ...]) -> None:
    """Refuse scores that are no floating-point tensor with these last axes."""
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        raise ArgumentError("scores must be a tensor of floating-point numbers")
    if scores.ndim != axes or tuple(scores.shape[-len(last) :]) != last:
        raise ArgumentError(
            f"scores of shape {tuple(scores.shape)} were given; {axes} axes are needed, the last "
            f"of size {' and '.join(map(str, last))}: labels, then hidden states if there are any"
        )


def check_forbidden(rule: Any, labels: list[Any]) -> Forbidden:
    """Return which labels must not follow which; pairs must be of these labels."""
    found = forbidden_transitions(labels, rule)
    if not isinstance(rule, str):
        unknown = {label for pair in rule for label in pair} - set(labels)
        if unknown:
            raise ArgumentError(f"forbidden: {unknown.pop()!r} is none of the labels {labels}")
    return found


def check_tensors(**given: Any) -> None:
    """Refuse what is no tensor, and tensors that lie on different devices; None is left out."""
    found = {name: t for name, t in given.items() if t is not None}
    devices = set()
    for name, t in found.items():
        if not isinstance(t, Tensor):
            raise ArgumentError(f"{name} must be a tensor; a {type(t).__name__} was given")
        if t.layout is not torch.strided or t.is_complex():
            kind = "complex" if t.is_complex() else str(t.layout).removeprefix("torch.")
            raise ArgumentError(f"{name} is {kind}; a dense tensor of real numbers is needed")
        devices.add(t.device)
    if devices == {_META}:
        told = " and ".join(found)
        raise ArgumentError(f"{told} on the device meta hold no numbers; move them to another")
    if len(devices) > 1:
        told = ", ".join(f"{name} on {t.device}" for name, t in found.items())
        raise ArgumentError(f"the tensors lie on different devices: {told}; move them to one")


def check_given(**given: Any) -> None:
    """Refuse None as well, in the place of what cannot be left out."""
    for name, t in given.items():
        if t is None:
            raise ArgumentError(f"{name} must be a tensor; None was given")
    check_tensors(**given)


def check_whole(name: str, given: Tensor, shape: tuple[int, ...]) -> None:
    """Refuse what is no tensor of whole numbers of this shape."""
    if not isinstance(given, Tensor) or given.is_meta:
        check_given(**{name: given})  # which says so
    numbers = not (given.is_floating_point() or given.is_complex() or given.dtype == torch.bool)
    if not numbers or tuple(given.shape) != shape:
        raise ArgumentError(
            f"{name} of shape {tuple(given.shape)} and type {given.dtype} were given; whole "
            f"numbers of shape {shape} are needed"
        )


def whole_numbers(name: str, given: Tensor, shape: tuple[int, ...]) -> Ints:
    """Return a tensor of whole numbers as an array."""
    check_whole(name, given, shape)
    return array(given).astype(np.int64)


def level(tables: Tensor, *axes: int) -> Tensor:
    """Return tables whose largest finite entries over some axes are 0."""
    tops = tables.detach().amax(axes, keepdim=True)
    return tables - torch.where(tops.isfinite(), tops, 0.0)


def draw_small(layer: nn.Module) -> None:
    """Draw all parameters from -0.1 to 0.1, as other layers of this kind begin."""
    for parameter in layer.parameters(recurse=False):
        nn.init.uniform_(parameter, -0.1, 0.1)


def drawn_seed(generator: torch.Generator | None) -> np.random.Generator:
    """Return a generator for draws on the host, seeded by one of PyTorch."""
    if not isinstance(generator, torch.Generator | None):
        raise ArgumentError(f"generator={generator!r} must be a torch.Generator, or None")
    device = None if generator is None else generator.device
    drawn = torch.randint(2**62, (), generator=generator, device=device)
    return np.random.default_rng(int(drawn))


def full_mask(mask: Tensor | None, scores: Tensor) -> Tensor:
    """Return which positions of scores (B, T, ...) count, as booleans; all by default."""
    shape = scores.shape[:2]
    if mask is None:
        return torch.ones(shape, dtype=torch.bool, device=scores.device)
    if mask.shape != shape:
        raise ArgumentError(f"mask has shape {tuple(mask.shape)}; {tuple(shape)} is needed")
    return mask.bool()


def add_ends(nodes: Tensor, mask: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
    """Add what first and last labels are worth to the scores of those positions."""
    first = torch.arange(nodes.shape[1], device=nodes.device) == 0
    nodes = nodes + torch.where(first[:, None], starts.to(nodes.dtype), 0.0)
    return nodes + torch.where(last_places(mask)[..., None], ends.to(nodes.dtype), 0.0)


def last_places(mask: Tensor) -> Tensor:
    """Return which positions (B, T) are the last that count."""
    return mask & ~torch.cat([mask[:, 1:], torch.zeros_like(mask[:, :1])], 1)


def summed_out(scores: Tensor, eps: float) -> Tensor:
    """Return the soft maximum over hidden states, the last axis; -inf where none is possible."""
    never = (scores == -torch.inf).all(-1)  # the derivative of their sum is no number
    found = soft_max(torch.where(never[..., None], 0.0, scores), -1, eps)
    return torch.where(never, -torch.inf, found)


def at_least_single(tensor: Tensor) -> Tensor:
    """Return half precision as single precision, as losses are computed under autocast."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """Return the mean or the sum of the losses of all examples, or all of them."""
    if reduction == "mean":
        return losses.sum() / len(losses)  # a sum tells its gradient that all count alike
    return losses.sum() if reduction == "sum" else losses


class FirstOrder(torch.autograd.Function):
    """A gradient that was found as a number: its own derivatives are refused, and not taken for 0.

    PyTorch's `once_differentiable` refuses them only where what follows a layer is curved.
    """

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *_: Tensor) -> Tensor:
        """Return the gradient by tables that follow it here."""
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> Any:
        """Refuse."""
        raise QueryError(
            "losses of graphs, grids and fields have first derivatives only; those of chains have "
            "second ones"
        )
