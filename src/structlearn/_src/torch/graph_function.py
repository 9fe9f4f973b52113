"""The losses of a batch of graphs as one differentiable function of their tables."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.common.errors import ArgumentError, ImpossibleEvidenceError
from structlearn._src.graph.batch import Graphs, assemble
from structlearn._src.graph.wiring import OUTPUT
from structlearn._src.learn.world import Memory
from structlearn._src.torch.table_worlds import FirstOrder, TableObjective, array, tensor_like


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """Graphs side by side with their worlds: which tables belong to which nodes and edges."""

    objective: TableObjective
    memory: Memory  #: where inference goes on from, brought up to date by every call; or None

    @property
    def graphs(self) -> Graphs:
        """Who interacts with whom."""
        structure = self.objective.examples.structure
        assert isinstance(structure, Graphs)
        return structure

    def solve(
        self, tables: tuple[Floats, ...], counts: Floats | None = None, memory: Memory = None
    ) -> tuple[Floats, tuple[Floats, ...]]:
        """Values of all graphs, and the gradients of their sum, each taken `counts` times."""
        with np.errstate(invalid="ignore"):  # what is impossible is told from the values
            values, gradient, _ = self.objective.compare(tables, memory, counts=counts)
        return values, gradient


class GraphDifference(torch.autograd.Function):
    """Free less clamped values of graphs, as far as messages or elimination find them.

    The gradient by the tables is the difference of the expectations of both worlds; it is found
    together with the values, summed over the batch.
    """

    @staticmethod
    def forward(ctx: Any, batch: GraphBatch, *tables: Tensor) -> Tensor:
        """Return the values (graphs,)."""
        arrays = checked_arrays(tables)
        # Where inference stood is needed again if graphs count differently in what follows.
        ctx.before = deepcopy(batch.memory)
        values, ctx.gradient = batch.solve(arrays, None, batch.memory)
        check_possible(~np.isfinite(values))
        ctx.batch = batch
        ctx.save_for_backward(*tables)
        return tensor_like(values, tables[0])

    @staticmethod
    def backward(ctx: Any, factors: Tensor) -> Any:
        """Scale the gradient of the batch, or solve the worlds for these factors."""
        tables = ctx.saved_tensors
        if bool((factors == factors[0]).all()):
            found = [float(factors[0]) * part for part in ctx.gradient]
        else:
            arrays = tuple(map(array, tables))
            # A copy, since solving moves it on and there may be another backward pass.
            _, found = ctx.batch.solve(arrays, array(factors), deepcopy(ctx.before))
        parts = [tensor_like(part, t) for part, t in zip(found, tables, strict=True)]
        return None, *(FirstOrder.apply(part, factors, *tables) for part in parts)


def lay_out(n_labels: int, sizes: Ints, scopes: tuple[Ints, ...]) -> Graphs:
    """Return graphs with one node table per variable, and edges in groups, ordered by graph."""
    n = int(sizes.sum())
    variables = np.concatenate([[0], np.cumsum(sizes)])
    nodes = np.arange(n)[:, None]
    return assemble(np.full(n, n_labels), np.full(n, OUTPUT), variables, (nodes, *scopes))


def check_labels(labels: Ints, n_labels: int) -> None:
    """Refuse labels that do not exist."""
    wrong = np.flatnonzero((labels < -1) | (labels >= n_labels))
    if len(wrong):
        raise ArgumentError(
            f"labels: node {wrong[0]} has the label {labels[wrong[0]]}; labels are 0 to "
            f"{n_labels - 1}, or -1 where there is none"
        )


def checked_arrays(tables: tuple[Tensor, ...]) -> tuple[Floats, ...]:
    """Return tables of nodes and edges, none of them NaN or plus infinity."""
    arrays = tuple(map(array, tables))
    nodes, *edges = (np.isnan(table) | (table == np.inf) for table in arrays)
    bad = np.flatnonzero(nodes.any(axis=1))
    if len(bad):
        raise ArgumentError(f"scores: node {bad[0]} has a score that is NaN or plus infinity")
    if any(table.any() for table in edges):
        raise ArgumentError("transitions: some entry is NaN or plus infinity")
    return arrays


def check_possible(impossible: Bools) -> None:
    """Refuse graphs for which no possible labelling was found."""
    bad = np.flatnonzero(impossible)
    if len(bad):
        raise ImpossibleEvidenceError(
            f"no labelling of graph {bad[0]} was found that has its labels, where it has any, and "
            f"a finite score: scores of minus infinity rule too much out; loosen them"
        )
