"""Sparse rows: turn them by columns, pick some of them, and leave entries out."""

from __future__ import annotations

from structlearn._src.kernels.jit import lean


@lean
def transpose(offsets, columns, values, out_offsets, out_rows, out_values):
    """Sort the entries of rows by column, by counting; no values stands for ones.

    `out_offsets` has one place more than it will fill, and starts at zero.
    """
    for entry in range(columns.size):
        out_offsets[columns[entry] + 2] += 1
    for c in range(2, out_offsets.size):
        out_offsets[c] += out_offsets[c - 1]
    for i in range(offsets.size - 1):
        for entry in range(offsets[i], offsets[i + 1]):
            place = out_offsets[columns[entry] + 1]
            out_offsets[columns[entry] + 1] += 1
            out_rows[place] = i
            if values.size:
                out_values[place] = values[entry]


@lean
def take(offsets, columns, values, which, out_offsets, out_columns, out_values):
    """Copy the rows `which` one after another; no values stands for ones."""
    for i in range(which.size):
        shift = out_offsets[i] - offsets[which[i]]
        for entry in range(offsets[which[i]], offsets[which[i] + 1]):
            out_columns[entry + shift] = columns[entry]
            if values.size:
                out_values[entry + shift] = values[entry]


@lean
def compact(offsets, columns, out_offsets, out_columns):
    """Copy rows without the entries whose column is negative; returns how many are left."""
    place = 0
    for i in range(offsets.size - 1):
        for entry in range(offsets[i], offsets[i + 1]):
            out_columns[place] = columns[entry]
            place += columns[entry] >= 0
        out_offsets[i + 1] = place
    return place
