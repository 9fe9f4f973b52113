"""Arrays that Python holds, as kernels find them."""

from __future__ import annotations

import numpy as np
import pytest

import structlearn as sl
from structlearn._src.graph import joined
from structlearn._src.kernels import gather
from structlearn._src.kernels.launch import over


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_arrays_lie_one_after_the_other(n_jobs):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=n) for n in (3, 0, 1, 500, 7)]
    offsets = np.cumsum([0, *map(len, arrays)])
    out = np.empty(offsets[-1])
    assert gather.readable()
    objects = np.array(list(map(id, arrays)))
    unlike = np.zeros(1, np.bool_)
    over(gather.join_in_threads, [np.array([0, 2, 4, 5])], n_jobs, objects, offsets, out, unlike)
    np.testing.assert_array_equal(out, np.concatenate(arrays))
    assert not unlike[0]


def test_arrays_of_other_sizes_are_left_out():
    """Nothing is read beyond their ends."""
    arrays = [np.ones(2), np.ones(5), np.ones(3)]
    offsets = np.array([0, 2, 9, 12])
    out, unlike = np.zeros(12), np.zeros(1, np.bool_)
    objects = np.array(list(map(id, arrays)))
    over(gather.join_in_threads, [np.array([0, 3])], 1, objects, offsets, out, unlike)
    np.testing.assert_array_equal(out, [1.0] * 2 + [0.0] * 7 + [1.0] * 3)
    assert unlike[0]


def test_without_addresses_numpy_joins_them(monkeypatch):
    rng = np.random.default_rng(1)
    graphs = [sl.chain(rng.normal(size=(n, 2)), rng.normal(size=(n - 1, 2, 2))) for n in (2, 5, 3)]
    kept, tables = joined.taken_apart(graphs)
    offsets = joined.join(kept.wirings).graph_tables
    found = joined.joined_potentials(graphs, tables, offsets, 2)
    monkeypatch.setattr(gather, "readable", lambda: False)
    other = joined.joined_potentials(graphs, tables, offsets, 2)
    np.testing.assert_array_equal(found, other)
    np.testing.assert_array_equal(found, np.concatenate([g.potentials for g in graphs]))
