"""Sparse rows and keys of templates, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.kernels.text import expand, rows


def ragged(seed, n=5, width=4):
    rng = np.random.default_rng(seed)
    lists = [sorted(rng.choice(width, rng.integers(0, width), replace=False)) for _ in range(n)]
    offsets = np.append(0, np.cumsum([len(row) for row in lists]))
    columns = np.array([c for row in lists for c in row], np.int32)
    return lists, offsets, columns, rng.normal(size=len(columns))


@pytest.mark.parametrize("ones", [False, True])
def test_transpose_sorts_entries_by_column(ones):
    lists, offsets, columns, values = ragged(0)
    values = values[:0] if ones else values
    out_offsets, out_rows = np.zeros(6, np.int64), np.empty(len(columns), np.int32)
    out_values = np.empty_like(values)
    rows.transpose(offsets, columns, values, out_offsets, out_rows, out_values)
    for c in range(4):
        own = slice(out_offsets[c], out_offsets[c + 1])
        assert out_rows[own].tolist() == [i for i, row in enumerate(lists) if c in row]
        if not ones:
            assert out_values[own].tolist() == values[columns == c].tolist()


def test_take_copies_rows_in_the_order_asked_for():
    lists, offsets, columns, values = ragged(1)
    which = np.array([3, 0, 3])
    sizes = [len(lists[i]) for i in which]
    out_offsets = np.append(0, np.cumsum(sizes))
    out_columns, out_values = np.empty(out_offsets[-1], np.int32), np.empty(out_offsets[-1])
    rows.take(offsets, columns, values, which, out_offsets, out_columns, out_values)
    assert out_columns.tolist() == [c for i in which for c in lists[i]]
    assert out_values.tolist() == [v for i in which for v in values[offsets[i] : offsets[i + 1]]]


def test_compact_leaves_out_negative_columns():
    lists, offsets, columns, _ = ragged(2)
    marked = np.where(columns == 1, -1, columns).astype(np.int32)
    out_offsets, out_columns = np.zeros(6, np.int64), np.empty(len(columns) + 1, np.int32)
    n = rows.compact(offsets, marked, out_offsets, out_columns)
    kept = [[c for c in row if c != 1] for row in lists]
    assert out_columns[:n].tolist() == [c for row in kept for c in row]
    assert np.diff(out_offsets).tolist() == [len(row) for row in kept]


def test_keys_are_numbered_in_order_of_appearance_and_found_again():
    given = np.array([2**40, 7, -1, 7, 2**62, 2**40, 0], np.int64)
    slots, keys = np.zeros(16, np.int64), np.empty(8, np.int64)
    out = np.empty(len(given), np.int64)
    reached, count = expand.number(given, 0, slots, keys, 0, out)
    assert (reached, count) == (len(given), 4)
    assert out.tolist() == [0, 1, -1, 1, 2, 0, 3]
    assert keys[:count].tolist() == [2**40, 7, 2**62, 0]
    found = np.empty(3, np.int64)
    expand.find(np.array([0, 5, 7], np.int64), slots, keys, found)
    assert found.tolist() == [3, -1, 1]


def test_a_full_table_stops_numbering():
    given = np.arange(5)
    slots, keys = np.zeros(8, np.int64), np.empty(2, np.int64)
    out = np.empty(5, np.int64)
    assert expand.number(given, 0, slots, keys, 0, out) == (2, 2)


def test_cells_outside_a_sentence_have_digits_of_their_own():
    cells, offsets = np.array([0, 1, 2, 1, -1], np.int32), np.array([0, 3, 5])
    size, radix = 3, 10
    keys = np.zeros(5, np.int64)
    expand.push(cells, offsets, -1, size, radix, keys)
    assert keys.tolist() == [size, 0, 1, size, 1]
    keys = np.zeros(5, np.int64)
    expand.push(cells, offsets, 2, size, radix, keys)
    assert keys.tolist() == [2, radix - 1, radix - 2, radix - 1, radix - 2]
    expand.push(cells, offsets, 0, size, radix, keys)
    assert keys[-1] == -1
    assert keys[0] == 2 * radix
