"""Sparse matrices laid out for cards: rows in slices, sorted by length, entries side by side.

A slice holds `SLICE` rows, entry after entry: the first entries of all its rows, then the second
ones, so that neighbours read neighbours. All rows of a slice are as long as its longest, which
costs little where rows are sorted by length. Rows that are far too long are cut into pieces, whose
sums are columns of their own. Sums have one order, and results are the same in every run.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor

SLICE = 128  # rows: four warps, a row for each thread
_LONGEST = 256  # entries of a row: a thread adds them up one after another
_SPANS = 8  # different widths, at most, that are worth a launch each
_UNROLLED = 8  # entries, at most, that a kernel reads at once


class Slices(NamedTuple):
    """Rows of a sparse matrix; the column of an entry of -1 is stored as its complement."""

    starts: Tensor  #: (slices + 1) int32: where the blocks of every slice begin
    columns: Tensor  #: (blocks, SLICE) int32
    values: Tensor | None  #: (blocks, SLICE) float32, or none where all of them are 1 or -1
    exact: Tensor | None  #: the same in float64, where float32 is not exact
    spans: tuple[tuple[int, int, int], ...]  #: first and last slice, their width; -1: any

    @property
    def n_rows(self) -> int:
        """Number of rows with those that fill up slices."""
        return (len(self.starts) - 1) * self.columns.shape[1]

    def entries(self, dtype: torch.dtype) -> Tensor | None:
        """Return the entries for sums in some precision, or none where they are signs."""
        return self.values if dtype != torch.double or self.exact is None else self.exact


class Matrix(NamedTuple):
    """A product by a matrix: first the sums of pieces of long rows, then its rows.

    A vector that it is to be multiplied by has `room` entries: those of the columns, a slice of
    zeros, and room for the pieces.
    """

    rows: Slices
    pieces: tuple[tuple[int, Slices], ...]  #: where their sums go in the vector, and their rows
    room: int

    def vector(self, dtype: torch.dtype) -> Tensor:
        """Return a vector of zeros with its room."""
        return torch.zeros(self.room, dtype=dtype, device=self.rows.columns.device)


def whole_slices(n: int) -> int:
    """Return the number of rows of so many slices as hold `n` rows."""
    return -(-n // SLICE) * SLICE


def make_matrix(rows: Tensor, columns: Tensor, values: Tensor, n_rows: int, n_cols: int) -> Matrix:
    """Lay out the entries of a matrix, which are sorted by row; sizes are those of whole slices."""
    signs = bool((values.abs() == 1).all())
    room = n_cols + SLICE
    pieces = []
    while True:
        lengths = torch.bincount(rows, minlength=n_rows)
        if len(rows) == 0 or int(lengths.max()) <= _LONGEST:
            break
        number, cut, owners = _cut(rows, lengths)
        n = whole_slices(len(owners))
        of_piece = number[cut]
        sizes = torch.bincount(of_piece, minlength=n)
        made = _lay_out(of_piece, sizes, columns[cut], values[cut], n_cols, signs)
        pieces.append((room, made))
        sums = room + torch.arange(len(owners), device=rows.device)
        columns = torch.cat([columns[~cut], sums])
        values = torch.cat([values[~cut], values.new_ones(len(owners))])
        rows, order = torch.sort(torch.cat([rows[~cut], owners]), stable=True)
        columns = columns[order]
        values = values[order]
        room += n
    return Matrix(_lay_out(rows, lengths, columns, values, n_cols, signs), tuple(pieces), room)


def _cut(rows: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the piece of every entry, which entries are in long rows, and the pieces' rows."""
    each = torch.where(lengths > _LONGEST, -(-lengths // _LONGEST), 0)
    first = each.cumsum(0) - each
    owners = torch.repeat_interleave(torch.arange(len(lengths), device=rows.device), each)
    return first[rows] + _places(rows, lengths) // _LONGEST, lengths[rows] > _LONGEST, owners


def _places(rows: Tensor, lengths: Tensor) -> Tensor:
    """Return which entry of its row every entry is."""
    return torch.arange(len(rows), device=rows.device) - (lengths.cumsum(0) - lengths)[rows]


def _lay_out(
    rows: Tensor, lengths: Tensor, columns: Tensor, values: Tensor, empty: int, signs: bool
) -> Slices:
    """Put entries into slices, which are filled up with a column that is empty."""
    widths = lengths.view(-1, SLICE).amax(1)
    starts = torch.cat([widths.new_zeros(1), widths.cumsum(0)])
    size = int(starts[-1]) * SLICE
    where = (starts[rows // SLICE] + _places(rows, lengths)) * SLICE + rows % SLICE
    out = torch.full((size,), empty, dtype=torch.int32, device=rows.device)
    coded = torch.where(values < 0, -1 - columns, columns) if signs else columns
    out[where] = coded.to(torch.int32)
    single = None
    exact = None
    if not signs:
        exact = torch.zeros(size, dtype=torch.double, device=rows.device)
        exact[where] = values
        single = exact.float()
        exact = None if bool((single == exact).all()) else exact.view(-1, SLICE)
        single = single.view(-1, SLICE)
    return Slices(starts.to(torch.int32), out.view(-1, SLICE), single, exact, _spans(widths))


def _spans(widths: Tensor) -> tuple[tuple[int, int, int], ...]:
    """Return runs of slices of one small width each, or one of all of them."""
    found, counts = torch.unique_consecutive(widths, return_counts=True)
    if len(found) > _SPANS or (len(found) and int(found.max()) > _UNROLLED):
        return ((0, len(widths), -1),)
    ends = counts.cumsum(0)
    return tuple(zip((ends - counts).tolist(), ends.tolist(), found.tolist(), strict=True))


# ---- products ----------------------------------------------------------------------------------


def multiply(matrix: Matrix, vector: Tensor, *, squares: bool = False) -> Tensor:
    """Return the product by a vector with its room, whose part for pieces is written.

    With `squares`, all entries of the matrix are squared.
    """
    add_pieces(matrix, vector, squares=squares)
    return row_sums(matrix.rows, vector, squares=squares)


def add_pieces(matrix: Matrix, vector: Tensor, *, squares: bool = False) -> None:
    """Write the sums of pieces of long rows into a vector."""
    for start, rows in matrix.pieces:
        vector[start : start + rows.n_rows] = row_sums(rows, vector, squares=squares)


def row_sums(rows: Slices, vector: Tensor, *, squares: bool = False) -> Tensor:
    """Return the products of all rows with a vector, in its precision."""
    if by_kernel(vector):
        from structlearn._src.cuda import slice_kernels

        return slice_kernels.row_sums(rows, vector, squares)
    entries = rows.entries(vector.dtype)
    columns = rows.columns
    if entries is None:
        terms = vector[torch.where(columns < 0, -1 - columns, columns)]
        terms = terms if squares else torch.where(columns < 0, -terms, terms)
    else:
        terms = (entries * entries if squares else entries) * vector[columns]
    if len(rows.spans) == 1 and rows.spans[0][2] >= 0:
        return terms.view(len(rows.starts) - 1, -1, SLICE).sum(1).view(-1)
    sums = torch.segment_reduce(terms, "sum", offsets=rows.starts.long(), axis=0, unsafe=True)
    return sums.view(-1)


def by_kernel(tensor: Tensor) -> bool:
    """Return whether kernels of Triton are to be used for a tensor."""
    return (tensor.is_cuda or os.environ.get("TRITON_INTERPRET") == "1") and _has_triton()


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None
