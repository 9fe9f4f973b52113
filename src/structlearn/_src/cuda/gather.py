"""Linear maps from weights to tables on a card, and their adjoints, without atomics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from structlearn._src.common.arrays import Ints
from structlearn._src.model.term import Features, LinearTerm, PairsTerm, Sparse, TableTerm, Term

_LONG = 256  # entries of a sum that one block of threads adds up: frequent features have more


@dataclass(frozen=True)
class RowSums:
    """Sparse rows: each is a weighted sum of rows of a matrix, long ones in two stages."""

    entries: Tensor  #: which rows are added
    amounts: Tensor | None  #: how much of each, None for all of it
    offsets: Tensor  #: where pieces of at most `_LONG` entries begin
    pieces: Tensor | None  #: where the pieces of a row begin; None if rows have one each

    @classmethod
    def of(cls, offsets: Ints, entries: Any, values: Any, device: str) -> RowSums:
        """Take sparse rows to a card."""
        counts = np.maximum(-(-np.diff(offsets) // _LONG), 1)
        first = np.repeat(offsets[:-1], counts)
        within = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
        begins = np.append(first + within * _LONG, offsets[-1])
        pieces = None if (counts == 1).all() else np.append(0, np.cumsum(counts))

        def up(array: Any, kind: Any = np.int64) -> Tensor:
            return torch.from_numpy(np.asarray(array, kind)).to(device)

        amounts = up(values, np.float32) if len(values) else None
        return cls(up(entries), amounts, up(begins), None if pieces is None else up(pieces))

    def multiply(self, matrix: Tensor) -> Tensor:
        """Return the sums of the rows of a matrix (columns, size)."""
        found = _bags(self.entries, matrix, self.offsets, self.amounts)
        if self.pieces is None:
            return found
        every = torch.arange(len(found), device=found.device)
        return _bags(every, found, self.pieces, None)


def _bags(entries: Tensor, matrix: Tensor, offsets: Tensor, amounts: Tensor | None) -> Tensor:
    return embedding_bag(
        entries, matrix, offsets, mode="sum", per_sample_weights=amounts, include_last_offset=True
    )


class CardTerm:
    """One term of a linear model with the features of all its rows on a card."""

    def __init__(self, term: Term, features: Features, device: str) -> None:
        self.term = term
        self.dense: Tensor | None = None
        if isinstance(features, Sparse):
            self.rows = RowSums.of(*features.rows[:3], device)
            self.columns = RowSums.of(*features.columns, device)
        elif features is not None:
            self.dense = torch.from_numpy(np.asarray(features, np.float32)).to(device)
        self.places: Tensor | None = None  # of weights in a matrix (features, size)
        if isinstance(term, PairsTerm):
            owners = np.repeat(np.arange(len(term.offsets) - 1), np.diff(term.offsets))
            self.places = torch.from_numpy(owners * term.size + term.states).to(device)
        elif isinstance(term, TableTerm) and term.ties is not None:
            self.places = torch.tensor(term.ties, device=device)

    def push(self, weights: Tensor) -> Tensor:
        """Return tables (rows, size), one row if all factors have the same."""
        if isinstance(self.term, TableTerm):
            if self.places is None:
                return weights[None]
            return torch.cat([weights, weights.new_zeros(1)])[self.places][None]
        matrix = self._matrix(weights)
        return self.rows.multiply(matrix) if self.dense is None else self.dense @ matrix

    def pull(self, marginals: Tensor) -> Tensor:
        """Return the adjoint of `push`."""
        if isinstance(self.term, TableTerm):
            total = marginals.sum(0)
            if self.places is None:
                return total
            # A product with marks of equal weights in the place of additions in any order.
            marks = (
                self.places[None, :]
                == torch.arange(self.term.n_weights, device=total.device)[:, None]
            )
            return marks.to(total.dtype) @ total
        found = self.columns.multiply(marginals) if self.dense is None else self.dense.T @ marginals
        return found.reshape(-1) if self.places is None else found.reshape(-1)[self.places]

    def _matrix(self, weights: Tensor) -> Tensor:
        """Return the weights by feature and entry of the table."""
        size = self.term.size
        if isinstance(self.term, LinearTerm):
            return weights.reshape(-1, size)
        assert isinstance(self.term, PairsTerm)
        matrix = weights.new_zeros((len(self.term.offsets) - 1) * size)
        matrix[self.places] = weights
        return matrix.reshape(-1, size)
