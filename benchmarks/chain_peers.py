"""Losses of chains by pytorch-crf and torch-struct, on the same tensors as ours.

Where these packages are not installed, they are looked for in the folder out/peers of the
repository, which travels to a machine without a network:
``pip install --no-deps --target out/peers pytorch-crf torch-struct``.
"""

from __future__ import annotations

import pathlib
import sys
import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "out" / "peers"


class Batch(NamedTuple):
    """Chains of equal lengths, and what transitions, first and last labels are worth."""

    scores: Tensor  #: (B, T, K)
    transitions: Tensor  #: (K, K)
    starts: Tensor  #: (K,)
    ends: Tensor  #: (K,)
    labels: Tensor  #: (B, T)

    @property
    def tables(self) -> tuple[Tensor, ...]:
        """All that has a gradient."""
        return self[:4]

    @classmethod
    def of(cls, scores: Tensor, edges: Tensor, ends: tuple[Tensor, ...], labels: Tensor) -> Batch:
        """Tables with gradients of their own."""
        made = (t.detach().clone().requires_grad_() for t in (scores, edges, *ends))
        return cls(*made, labels)


def adopt(layer: torch.nn.Module, batch: Batch, names: tuple[str, str, str]) -> None:
    """Let a layer use the tables of a batch in place of its parameters."""
    for name, table in zip(names, batch.tables[1:], strict=True):
        delattr(layer, name)
        setattr(layer, name, table)


def pytorch_crf(batch: Batch) -> Callable[[], Tensor]:
    """Return what computes the sum of the losses."""
    _find()
    from torchcrf import CRF

    layer = CRF(len(batch.transitions), batch_first=True).to(batch.scores.device)
    adopt(layer, batch, ("transitions", "start_transitions", "end_transitions"))
    # Its own mask is of bytes, of which PyTorch warns.
    inside = torch.ones_like(batch.labels, dtype=torch.bool)
    return lambda: -layer(batch.scores, batch.labels, inside)


def torch_struct(batch: Batch) -> Callable[[], Tensor]:
    """Return what computes the sum of the losses; labels are turned into parts beforehand."""
    _find()
    from torch_struct import LinearChain, LinearChainCRF

    scores, transitions, starts, ends, labels = batch
    # Made by a loop in Python over labels alone: a program may keep them, so they do not count.
    parts = LinearChain.to_parts(labels.cpu(), scores.shape[2]).to(scores)

    def loss() -> Tensor:
        potentials = scores[:, 1:, :, None] + transitions.T  # (B, T - 1, next label, label)
        first = (scores[:, 0] + starts)[:, None, None, :]
        potentials = torch.cat([potentials[:, :1] + first, potentials[:, 1:]], 1)
        last = potentials[:, -1:] + ends[:, None]
        potentials = torch.cat([potentials[:, :-1], last], 1)
        return -LinearChainCRF(potentials).log_prob(parts).sum()

    return loss


PEERS = {"pytorch-crf": pytorch_crf, "torch-struct": torch_struct}


def with_gradients(batch: Batch, loss: Callable[[], Tensor]) -> tuple[Tensor, ...]:
    """Return the loss and its gradients by all tables."""
    value = loss()
    return value.detach(), *torch.autograd.grad(value, batch.tables)


def _find() -> None:
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    warnings.filterwarnings("ignore", message=".*arg_constraints")
