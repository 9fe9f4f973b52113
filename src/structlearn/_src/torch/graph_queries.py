"""Questions to graphs whose tables are tensors; those with no possible labelling are refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from structlearn._src.common.errors import QueryError
from structlearn._src.graph.batch import Graphs, potentials_to_tables, tables_to_potentials
from structlearn._src.inference import decode
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.entropy import Entropies, entropies
from structlearn._src.torch.graph_function import check_possible, checked_arrays
from structlearn._src.torch.table_worlds import FirstOrder, array, tensor_like


class GraphQueries(NamedTuple):
    """Graphs with their tables, and how to infer."""

    graphs: Graphs
    tables: tuple[Tensor, ...]
    method: str
    options: Options

    def best(self, eps_h: float) -> Tensor:
        """Return the best label of every node."""
        arrays = checked_arrays(self.tables)
        labels = decode.best(self.graphs, arrays, eps_h, self.options, self.method)
        # Where nothing is possible labels are -1 or any: all of them have no finite score.
        potentials = tables_to_potentials(self.graphs, arrays)
        check_possible(np.isneginf(self.graphs.wiring.score(potentials, labels.clip(0))))
        return self._labels(labels)

    def marginals(self) -> Tensor:
        """Return the probabilities (nodes, labels)."""
        found = decode.marginals(
            self.graphs, checked_arrays(self.tables), self.options, self.method
        )
        nothing = found.sum(axis=1) < 0.5  # where no labelling is possible all are 0
        check_possible(np.logical_or.reduceat(nothing, self.graphs.variables[:-1]))
        return tensor_like(found, self.tables[0])

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        """Return the scores (graphs, k) and labels (k, nodes) of the best labellings."""
        arrays = checked_arrays(self.tables)
        scores, labels = decode.k_best(self.graphs, arrays, k, self.options, self.method)
        check_possible(np.isneginf(scores[:, 0]))
        return tensor_like(scores, self.tables[0]), self._labels(labels)

    def sample(self, n: int) -> Tensor:
        """Return draws (n, nodes)."""
        arrays = checked_arrays(self.tables)
        values, labels = decode.draws(self.graphs, arrays, n, self.options, self.method)
        check_possible(np.isneginf(values))
        return self._labels(labels)

    def entropy(self) -> Tensor:
        """Return the entropies (graphs,)."""
        found: Tensor = GraphEntropy.apply(self, *self.tables)
        return found

    def _labels(self, labels: Any) -> Tensor:
        return torch.from_numpy(labels).to(self.tables[0].device)


class GraphEntropy(torch.autograd.Function):
    """Entropies of graphs, with gradients where they are exact."""

    @staticmethod
    def forward(ctx: Any, asked: GraphQueries, *tables: Tensor) -> Tensor:
        """Return the entropies (graphs,)."""
        potentials = tables_to_potentials(asked.graphs, checked_arrays(tables))
        problem = Problem(asked.graphs.wiring, potentials)
        wanted = any(ctx.needs_input_grad)
        found = entropies(problem, asked.options, asked.method, wanted)
        check_possible(~np.isfinite(found.values))
        ctx.graphs = asked.graphs
        ctx.found = found
        ctx.save_for_backward(*tables)
        return tensor_like(found.values, tables[0])

    @staticmethod
    def backward(ctx: Any, factors: Tensor) -> Any:
        """Multiply what was found with the values."""
        found: Entropies = ctx.found
        by_graph = array(factors)
        guessed = ~found.exact & (by_graph != 0.0)
        if guessed.any():
            raise QueryError(
                f"the entropy of graph {int(np.argmax(guessed))} is an estimate from messages "
                f"and has no gradient; use inference='exact' where elimination fits into memory, "
                f"or detach it"
            )
        tables = ctx.saved_tensors
        each = np.repeat(by_graph, np.diff(ctx.graphs.wiring.graph_tables))
        parts = potentials_to_tables(ctx.graphs, found.slopes * each, tuple(map(array, tables)))
        by = (tensor_like(part, table) for part, table in zip(parts, tables, strict=True))
        return None, *(FirstOrder.apply(part, factors, *tables) for part in by)
