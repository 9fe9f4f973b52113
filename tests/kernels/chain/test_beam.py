from __future__ import annotations

import itertools

import numpy as np
import pytest

from franchise import joint_paths
from structlearn._src.kernels.chain import beam
from structlearn._src.kernels.draw.density import NO_DENSITIES, SymbolDensities, lane_workspace
from structlearn._src.kernels.jit import lean


@lean
def draw_paths(
    densities, transitions, slices, uniforms, offsets, first, last, workspace, lanes, states, counts
):
    """Call what only kernels call."""
    return beam.draw_paths(
        densities, transitions, slices, uniforms, offsets, first, last, workspace, lanes, states,
        counts,
    )  # fmt: skip


@lean
def cut(states, offsets, rows, first, last, least, out):
    """The same."""
    return beam.cut(states, offsets, rows, first, last, least, out)


def _drawn(logs, rows, slices, uniforms, offsets, first, last, states):
    """Draw paths for a table of log densities: every position has a symbol of its own."""
    symbols = SymbolDensities(np.arange(len(logs)), np.ascontiguousarray(logs.T))
    densities = NO_DENSITIES._replace(symbols=symbols)
    K = logs.shape[1]
    longest = int(np.diff(offsets).max())
    workspace = beam.beam_workspace(longest, longest, K)
    counts = np.zeros((K + 1, K), np.int64)
    total = draw_paths(
        densities, beam.sorted_transitions(rows), slices, uniforms, offsets, first, last,
        workspace, lane_workspace(densities), states, counts,
    )  # fmt: skip
    return total, counts


def _problem(seed, T=4, K=3, apart=1.0):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(K + 1), K + 1)
    path = rng.integers(K, size=T)  # one path at least is open
    along = rows[np.append(0, path[:-1] + 1), path]
    return rng, apart * rng.normal(size=(T, K)), rows, along * rng.random(T)


def _frequencies(rng, logs, rows, slices, paths, n=4000):
    """How often the kernel draws every path; all draws are sequences of one call."""
    T, K = logs.shape
    states, offsets = np.empty(n * T, np.int64), np.arange(0, n * T + 1, T)
    many = np.tile(logs, (n, 1)), rows, np.tile(slices, n), rng.random(n * T)
    _drawn(*many, offsets, 0, n, states)
    codes = states.reshape(n, T) @ K ** np.arange(T - 1, -1, -1)
    return np.bincount(codes, minlength=len(paths)) / n


def _printed(rng, logs, rows, slices, paths):
    """Path probabilities of the paper's eq. 25: weight pi in the backward pass."""
    T, K = logs.shape
    filtered = np.zeros((T, K))
    for t in range(T):
        reach = rows[0, :K] > slices[0] if t == 0 else filtered[t - 1] @ (rows[1:, :K] > slices[t])
        filtered[t] = reach * np.exp(logs[t])
        filtered[t] /= filtered[t].sum()
    found = []
    for path in paths:
        p = filtered[-1, path[-1]]
        for t in range(T - 2, -1, -1):
            pi = rows[1:, path[t + 1]]
            weights = filtered[t] * np.where(pi > slices[t + 1], pi, 0.0)
            p *= weights[path[t]] / weights.sum() if weights.sum() else 0.0
        found.append(p)
    return np.array(found)


@pytest.mark.parametrize("broken", [False, True], ids=["kernel", "printed eq. 25"])
def test_paths_given_slices_by_enumeration(broken):
    """The weights of open transitions are all alike; with those of eq. 25 this check fails."""
    worst = 0.0
    for seed in range(8):
        rng, logs, rows, slices = _problem(seed)
        paths, expected = joint_paths(logs, rows, slices)
        found = (_printed if broken else _frequencies)(rng, logs, rows, slices, paths)
        worst = max(worst, np.abs(found - expected).max())
    assert (worst < 0.035) is not broken


def test_paths_where_densities_are_far_apart():
    """What vanished beside a path that is closed later must come back."""
    rows = np.array([[0.5, 0.5, 0.0], [0.9, 0.05, 0.05], [0.3, 0.6, 0.1]])
    logs = np.array([[0.0, -2000.0], [0.0, -2000.5], [-3000.0, -0.5], [0.0, 0.3]])
    slices = np.array([0.1, 0.2, 0.5, 0.1])  # 0 to 1 is closed, and so is 1 to 0 at step 2
    paths, expected = joint_paths(logs, rows, slices)
    found = _frequencies(np.random.default_rng(0), logs, rows, slices, paths)
    np.testing.assert_allclose(found, expected, atol=0.03)
    slices[1:] = [0.04, 0.02, 0.01]
    logs[2, 0] = -np.inf
    paths, expected = joint_paths(logs, rows, slices)
    found = _frequencies(np.random.default_rng(0), logs, rows, slices, paths)
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_some_sequences_are_drawn_as_among_all():
    """Log densities are those of the sequences asked for; their sum along the paths is told."""
    rng, T, K = np.random.default_rng(1), 12, 3
    offsets, rows = np.array([0, 3, 4, 9, 12]), rng.dirichlet(np.ones(K + 1), K + 1)
    logs, slices, uniforms = rng.normal(size=(T, K)), np.full(T, 1e-9), rng.random(T)
    whole, part = np.empty(T, np.int64), np.full(T, -1)
    total, counts = _drawn(logs, rows, slices, uniforms, offsets, 0, 4, whole)
    assert total == pytest.approx(logs[np.arange(T), whole].sum())
    assert counts.sum() == T
    some, _ = _drawn(logs, rows, slices, uniforms[3:9].copy(), offsets, 1, 3, part)
    assert part.tolist() == [-1] * 3 + whole[3:9].tolist() + [-1] * 3
    assert some == pytest.approx(logs[np.arange(3, 9), whole[3:9]].sum())


@pytest.mark.parametrize("K", [1, 32, 33, 70])
def test_paths_are_those_of_a_filter_of_all_states(K):
    """The same uniforms draw the same states, whatever lists of states and blocks of positions."""
    rng = np.random.default_rng(K)
    T = 29
    offsets = np.array([0, 8, 9, 29])
    rows = rng.dirichlet(np.full(K + 1, 0.1), K + 1)
    path = rng.integers(K, size=T)
    before = np.append(0, path[:-1] + 1)
    before[offsets[:-1]] = 0
    slices = np.minimum(rows[before, path], 0.05) * rng.random(T)
    logs, uniforms = 3.0 * rng.normal(size=(T, K)), rng.random(T)
    found = np.empty(T, np.int64)
    _drawn(logs, rows, slices, uniforms, offsets, 0, 3, found)
    for start, stop in itertools.pairwise(offsets):
        expected = _filtered_path(*(a[start:stop] for a in (logs, slices, uniforms)), rows)
        assert found[start:stop].tolist() == expected


def _filtered_path(logs, slices, uniforms, rows):
    """Filter forward and draw backward, by tables of all states."""
    T, K = logs.shape
    filtered = np.zeros((T, K))
    for t in range(T):
        ways = rows[:1, :K] if t == 0 else rows[1:, :K]
        reach = (np.ones(1) if t == 0 else filtered[t - 1]) @ (ways > slices[t])
        filtered[t] = reach * np.exp(logs[t] - logs[t].max())
        filtered[t] /= filtered[t].sum()
    states = []
    for t in range(T - 1, -1, -1):
        weights = filtered[t]
        if states:
            weights = weights * (rows[1:, states[0]] > slices[t + 1])
        sums = np.cumsum(weights)
        states.insert(0, int(np.searchsorted(sums, uniforms[t] * sums[-1], side="right")))
    return states


def test_transitions_along_paths():
    rng, states, offsets = np.random.default_rng(2), np.array([1, 1, 0, 2, 0]), np.array([0, 3, 5])
    rows, out, counts = rng.random((4, 4)), np.full(5, 2.0), np.zeros((4, 3), np.int64)
    out[0] = 0.0  # is raised to the least
    least = min(cut(states, offsets, rows, c, c + 1, 0.5, out) for c in (1, 0))
    along = [(0, 1), (2, 1), (2, 0), (0, 2), (3, 0)]
    np.testing.assert_allclose(out[1:], [2.0 * rows[cell] for cell in along[1:]])
    assert out[0] == 0.5 * rows[along[0]]
    assert least == out.min()
    for c in (0, 1):
        beam.count(states, offsets, c, c + 1, counts)
    assert sorted(zip(*map(list, np.nonzero(counts)), strict=True)) == sorted(along)
    assert counts.sum() == 5


@pytest.mark.parametrize(
    ("count", "mass"), [(30, 0.7), (3, 5.0), (0, 1.0), (500, 1e-3), (9, 1e-290), (40, 1e12)]
)
def test_tables_have_the_distribution_of_customers_one_by_one(count, mass):
    """Mean and variance, with random numbers that run out again and again."""
    rng, n = np.random.default_rng(0), 4000
    tables, place, calls = np.zeros((1, n), np.int64), np.zeros(2, np.int64), 1
    counts = np.full((1, n), count)
    while not beam.draw_tables(
        np.full(n, mass), counts.ravel(), rng.random(7), place, tables.ravel()
    ):
        calls += 1
    chances = mass / (mass + np.arange(count))
    assert tables.mean() == pytest.approx(chances.sum(), abs=0.08)
    assert tables.var() == pytest.approx((chances * (1.0 - chances)).sum(), abs=0.15)
    assert tables.min() >= min(count, 1)
    assert calls > 100 or count in (0, 9)  # these need no random numbers, or few
