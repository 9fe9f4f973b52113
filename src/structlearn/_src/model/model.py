"""All weights of a model: groups of factors, each group the sum of a few terms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from structlearn._src.common.arrays import Floats
from structlearn._src.model.features import Features
from structlearn._src.model.term import Term

#: One array per group of factors: (rows, size), a single row where all factors share one table.
Tables = tuple[Floats, ...]
#: For every group, the features of each of its terms.
Inputs = tuple[tuple[Features, ...], ...]


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear map from one flat array of weights to the tables of all groups, and its adjoint.

    Parameters
    ----------
    groups
        The terms of every group of factors; a group's tables are the sum of its terms.
    """

    groups: tuple[tuple[Term, ...], ...]

    @cached_property
    def blocks(self) -> tuple[tuple[slice, ...], ...]:
        """Where the weights of every term lie."""
        out = []
        start = 0
        for terms in self.groups:
            row = []
            for term in terms:
                row.append(slice(start, start + term.n_weights))
                start += term.n_weights
            out.append(tuple(row))
        return tuple(out)

    @cached_property
    def n_weights(self) -> int:
        """Number of weights."""
        return sum(term.n_weights for terms in self.groups for term in terms)

    def push(self, weights: Floats, inputs: Inputs, n_jobs: int | None = None) -> Tables:
        """Tables of every group."""
        out = []
        for terms, blocks, features in zip(self.groups, self.blocks, inputs, strict=True):
            parts = [
                term.push(weights[block], x, n_jobs)
                for term, block, x in zip(terms, blocks, features, strict=True)
            ]
            out.append(parts[0] if len(parts) == 1 else sum(parts[1:], parts[0]))
        return tuple(out)

    def pull(self, marginals: Tables, inputs: Inputs, n_jobs: int | None = None) -> Floats:
        """Adjoint of `push`."""
        parts = [
            term.pull(table, x, n_jobs)
            for terms, table, features in zip(self.groups, marginals, inputs, strict=True)
            for term, x in zip(terms, features, strict=True)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)
