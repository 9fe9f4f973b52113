"""What is learnt from: structures, features, labels and how much each example counts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from structlearn._src.common.arrays import Floats, Ints, block_indices
from structlearn._src.graph.batch import Graphs, Sequences
from structlearn._src.model.features import take_rows
from structlearn._src.model.model import Inputs


@dataclass(frozen=True, eq=False)
class Examples:
    """A batch of examples.

    Parameters
    ----------
    structure
        Which factors and variables belong to which example.
    inputs
        Features of every term of every group.
    labels
        (variables,) State of every variable, -1 where it is hidden.
    weights
        (examples,) How much each counts.
    """

    structure: Sequences | Graphs
    inputs: Inputs
    labels: Ints
    weights: Floats

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return self.structure.n_examples

    @property
    def hidden(self) -> bool:
        """Whether any variable is hidden."""
        return bool((self.labels < 0).any())

    def at_two_temperatures(self) -> Examples:
        """Return examples whose hidden variables may have a temperature of their own."""
        if isinstance(self.structure, Graphs) or not self.hidden:
            return self
        graphs = self.structure.graphs()
        return replace(self, structure=replace(graphs, groups=graphs.groups[: len(self.inputs)]))

    def take(self, which: Ints) -> Examples:
        """Return some of the examples."""
        structure = self.structure
        inputs = tuple(
            tuple(
                None if x is None else take_rows(x, block_indices(structure.rows(g), which))
                for x in features
            )
            for g, features in enumerate(self.inputs)
        )
        labels = self.labels[block_indices(structure.variables, which)]
        return Examples(structure.take(which), inputs, labels, np.asarray(self.weights[which]))
