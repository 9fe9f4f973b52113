"""Features in the order in which solvers read them, against a slow version."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn import SequenceLabeler
from structlearn._src.common import threads
from structlearn._src.learn import chain_layout
from structlearn._src.model.term import PairsTerm


def problem(rng, valued, n_sentences=40, vocabulary=30, labels=7):
    """Frequent words with many labels, and rare ones with few."""
    X, Y = [], []
    for _ in range(n_sentences):
        n = int(rng.integers(1, 9))
        words = np.minimum(rng.zipf(1.4, size=(n, 3)), vocabulary)
        marked = [[f"{k}={w}" for k, w in enumerate(row)] for row in words]
        if valued:
            marked = [{name: float(rng.normal()) for name in row} for row in marked]
        X.append(marked)
        Y.append([f"l{(w + int(rng.random() < 0.02)) % labels}" for w in words[:, 0]])
    return SequenceLabeler(features="sparse").objective(X, Y)


def slow_layout(data, term, states):
    """Return for every position the rows of weights, and the single ones, that are read."""
    counts = np.diff(term.offsets)
    times = np.bincount(data.columns, minlength=len(counts))
    positions = []
    for t in range(len(data.rows) - 1):
        rows, common, rare = [], [], []
        for e in range(data.rows[t], data.rows[t + 1]):
            d = data.columns[e]
            x = data.values[e] if len(data.values) else 1.0
            own = range(term.offsets[d], term.offsets[d + 1])
            if chain_layout._SHARE * counts[d] >= states:
                row = np.zeros(states)
                row[term.states[own]] = np.array(own) + 1.0
                rows.append((x, row))
            else:
                kind = rare if times[d] <= chain_layout._RARE else common
                kind.extend((x, k + 1.0, term.states[k]) for k in own)
        positions.append((rows, common, rare))
    return positions


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("valued", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_entries_are_read_in_the_right_order(seed, valued, n_jobs, monkeypatch):
    monkeypatch.setitem(threads.GRAIN, "features", 20)
    monkeypatch.setattr(chain_layout, "_PIECE", 16)
    objective = problem(np.random.default_rng(seed), valued)
    chains, term = objective.chain_arrays, objective.model.groups[0][0]
    assert isinstance(term, PairsTerm)
    found = chain_layout.lay_out(chains, term, n_jobs)
    layout = found.layout
    numbers = np.arange(1.0, objective.n_weights + 1.0)
    primal = found.to_kernel(chains, numbers, n_jobs)
    seen = {"rows": 0, "common": 0, "rare": 0}
    for t, (rows, common, rare) in enumerate(slow_layout(chains.data, term, chains.states)):
        wide = slice(*layout.rows[t : t + 2])
        single = slice(*layout.single_rows[t : t + 2])
        assert found.rare[t + 1] - found.rare[t] == len(rare)
        np.testing.assert_array_equal(
            primal.wide[layout.columns[wide]].reshape(-1, chains.states),
            np.reshape([row for _, row in rows], (-1, chains.states)),
        )
        together = common + rare
        for given, want in (
            (primal.singles[layout.singles[single]], [k for _, k, _ in together]),
            (layout.single_states[single], [s for *_, s in together]),
        ):
            np.testing.assert_array_equal(given, want)
        if valued:
            np.testing.assert_array_equal(layout.values[wide], [x for x, _ in rows])
            np.testing.assert_array_equal(layout.single_values[single], [x for x, *_ in together])
        else:
            assert layout.values.size == layout.single_values.size == 0
        for kind, entries in zip(seen, (rows, common, rare), strict=True):
            seen[kind] += len(entries)
    assert all(seen.values())
    back = np.zeros(len(numbers))
    found.from_kernel(chains, primal, back, n_jobs)
    np.testing.assert_array_equal(back, numbers)
