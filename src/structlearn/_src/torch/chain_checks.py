"""What batches of chains must be."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import ArgumentError, ImpossibleEvidenceError


def check_batch(nodes: Tensor, edges: Tensor, labels: Tensor, mask: Tensor) -> None:
    """Refuse masks with holes, labels that do not exist and tables that are no numbers."""
    if not bool(mask.any(1).all()):
        row = int((~mask.any(1)).nonzero()[0])
        raise ArgumentError(f"mask: sequence {row} has no position; every sequence needs one")
    before = torch.cat([torch.ones_like(mask[:, :1]), mask[:, :-1]], 1)
    if bool((mask & ~before).any()):
        row = int((mask & ~before).any(1).nonzero()[0])
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
