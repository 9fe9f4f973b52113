"""The hierarchical Dirichlet process: its draws against exact conditionals, and its densities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from structlearn._src.common.errors import ArgumentError
from structlearn._src.sample import hdp
from structlearn._src.sample.hdp import Gamma, Process

COUNTS = np.array([[2, 0], [5, 3], [1, 7]])


def test_one_sequence_cut_in_two_has_two_starts():
    states = np.array([0, 1, 1, 0])
    whole = hdp.count_transitions(states, np.array([0, 4]), 2)
    cut = hdp.count_transitions(states, np.array([0, 2, 4]), 2)
    assert whole.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert cut.tolist() == [[1, 1], [0, 1], [1, 0]]


def test_grown_until_nothing_beyond_can_be_reached():
    rng = np.random.default_rng(9)
    rows = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.4, 0.4, 0.2]])
    process = hdp.Process(2.0, 2.0, np.array([0.4, 0.4, 0.2]), rows)
    grown = hdp.grow(process, 1e-4, rng)
    assert grown.rows[:, -1].max() <= 1e-4
    np.testing.assert_allclose(grown.rows.sum(1), 1.0)
    np.testing.assert_allclose(grown.sticks.sum(), 1.0)
    np.testing.assert_allclose(grown.rows[:3, :2], rows[:, :2])
    kept = hdp.keep(grown, np.array([0, 1]))
    np.testing.assert_allclose(kept.rows, rows)


def test_dirichlet_draws_with_tiny_parameters():
    rng = np.random.default_rng(10)
    drawn = hdp.draw_dirichlet(np.tile([1e-9, 3e-9, 0.0], (4000, 1)), rng)
    assert np.isfinite(drawn).all()
    np.testing.assert_allclose(drawn.sum(1), 1.0)
    assert drawn[:, 0].mean() == pytest.approx(0.25, abs=0.03)
    plain = hdp.draw_dirichlet(np.tile([2.0, 3.0, 5.0], (4000, 1)), rng)
    np.testing.assert_allclose(plain.mean(0), [0.2, 0.3, 0.5], atol=0.01)
    np.testing.assert_allclose(plain.var(0), [0.16 / 11, 0.21 / 11, 0.25 / 11], rtol=0.1)


def test_states_without_end_are_a_named_error():
    rng = np.random.default_rng(0)
    few = hdp.Process(1.0, 1e9, np.array([0.5, 0.5]), np.full((2, 2), 0.5))
    with pytest.raises(ArgumentError, match="lower gamma0"):
        hdp.grow(few, 1e-6, rng)


def test_growing_keeps_what_there_is():
    rng = np.random.default_rng(1)
    small = hdp.Process(2.0, 3.0, np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.2, 0.8]]))
    large = hdp.grow(small, 1e-3, rng)
    n = large.n_states
    assert large.rows.shape == (n + 1, n + 1)
    assert large.rows[:, -1].max() <= 1e-3
    assert n > 4
    np.testing.assert_allclose(large.rows.sum(1), 1.0)
    np.testing.assert_allclose(large.sticks.sum(), 1.0)
    np.testing.assert_array_equal(large.rows[:2, 0], small.rows[:, 0])
    np.testing.assert_array_equal(small.rows, [[0.7, 0.3], [0.2, 0.8]])


def test_states_that_are_forgotten_leave_their_mass():
    rng = np.random.default_rng(2)
    rows = rng.dirichlet(np.ones(4), 4)
    process = hdp.Process(1.0, 2.0, rng.dirichlet(np.ones(4)), rows)
    kept = hdp.keep(process, np.array([2, 0]))
    assert kept.n_states == 2
    np.testing.assert_allclose(kept.sticks[:2], process.sticks[[2, 0]])
    np.testing.assert_allclose(kept.rows[:, :2], rows[[0, 3, 1]][:, [2, 0]])
    np.testing.assert_allclose(kept.rows.sum(1), 1.0)
    np.testing.assert_allclose(kept.sticks.sum(), 1.0)


def test_paths_have_the_probability_of_urns():
    """One customer after another, in any order of the rows."""
    alpha, sticks, total = 1.7, np.array([0.3, 0.5, 0.2]), 0.0
    for row in COUNTS:
        eaten = np.zeros(2)
        for k in np.repeat([0, 1], row):
            total += np.log((alpha * sticks[k] + eaten[k]) / (alpha + eaten.sum()))
            eaten[k] += 1
    process = Process(alpha, 1.0, sticks, np.zeros((3, 3)))
    assert process.log_probability(COUNTS) == pytest.approx(total)


def test_differences_need_no_other_rows_and_columns():
    """One process against another, where a state is split in two."""
    rng = np.random.default_rng(6)
    counts = rng.integers(4, size=(4, 3))
    split = np.pad(counts, ((0, 1), (0, 1)))
    split[:, 3] = split[:, 1] // 2
    split[:, 1] -= split[:, 3]
    split[4] = split[2] // 2
    split[2] -= split[4]
    process = Process(1.7, 1.2, np.array([0.3, 0.4, 0.2, 0.1]), np.zeros((4, 4)))
    apart = process.split(1, 0.3)
    whole = [
        p.log_probability(c) + hdp.log_sticks(1.2, p.sticks)
        for p, c in ((process, counts), (apart, split))
    ]
    some = process.log_density_at(counts, [1]), apart.log_density_at(split, [1, 3])
    assert some[1] - some[0] == pytest.approx(whole[1] - whole[0])


def test_density_of_sticks_by_its_formula():
    sticks, gamma = np.array([0.3, 0.5, 0.2]), 1.4
    expected = np.log(gamma**2 * 0.2 ** (gamma - 1.0) / (0.3 * 0.5))
    assert hdp.log_sticks(gamma, sticks) == pytest.approx(expected)


def test_tables_are_at_least_one_and_at_most_the_customers():
    rng, sticks = np.random.default_rng(3), np.array([0.3, 0.5, 0.2])
    drawn = np.array([hdp.draw_tables(COUNTS, 1.7, sticks, rng) for _ in range(2000)])
    assert np.all((drawn >= np.minimum(COUNTS, 1)) & (drawn <= COUNTS))
    masses = 1.7 * sticks[:2]
    expected = [[sum(m / (m + i) for i in range(n)) for m, n in zip(masses, row, strict=True)]
                for row in COUNTS]  # fmt: skip
    np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=0.1)


def _table_probabilities(n, mass):
    """Probability of every number of tables of some customers: one may be opened by each."""
    found = np.array([1.0])
    for i in range(n):
        opens = mass / (mass + i)
        found = np.append(found * (1.0 - opens), 0.0) + np.append(0.0, found * opens)
    return found


@pytest.mark.parametrize("seated", [2**13, 10])
@pytest.mark.parametrize("n", [2, 5, 60, 900])
@pytest.mark.parametrize("mass", [1e-3, 0.2, 3.0, 150.0, 1e6])
def test_numbers_of_tables_have_their_exact_probabilities(n, mass, seated, monkeypatch):
    """Also where random numbers run out within a cell, time and again."""
    monkeypatch.setattr(hdp, "_SEATED", seated)
    counts = np.full((41, 40), n if seated > 10 else min(n, 60))
    probabilities = _table_probabilities(counts[0, 0], mass)
    rng, sticks = np.random.default_rng(8), np.append(np.full(40, 1.0 / 40), 0.0)
    drawn = [hdp.draw_tables(counts, 40 * mass, sticks, rng).ravel() for _ in range(3)]
    found = np.bincount(np.concatenate(drawn), minlength=len(probabilities)).astype(float)
    expected = probabilities * found.sum()
    often = expected > 5.0
    rest = np.array([found[~often].sum(), expected[~often].sum()])
    assert rest[0] <= rest[1] + 6.0 * np.sqrt(rest[1] + 1.0)
    if often.sum() > 1:
        share = found[often].sum() / expected[often].sum()
        assert stats.chisquare(found[often], share * expected[often]).pvalue > 1e-5


def _grid_moments(log_density):
    grid = np.linspace(0.005, 30.0, 6000)
    logs = log_density(grid)
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    mean = shares @ grid
    return mean, np.sqrt(shares @ grid**2 - mean**2)


@pytest.mark.parametrize("concentration", ["alpha", "gamma"])
def test_concentrations_are_drawn_from_their_conditionals(concentration):
    """Against the density on a grid: alpha given tables of all rows, gamma given tables."""
    rng, prior = np.random.default_rng(4), Gamma(2.0, 1.5)
    visits, tables, value, found = np.array([2, 8, 8]), 7, 1.0, []
    for _ in range(4000):
        if concentration == "alpha":
            value = hdp.draw_alpha(prior, value, visits, tables, rng)
        else:
            value = hdp.draw_gamma(prior, value, 3, tables, rng)
        found.append(value)

    def log_density(a):
        logs = (prior.shape - 1.0) * np.log(a) - prior.rate * a
        if concentration == "alpha":
            rows = sum(gammaln(a) - gammaln(a + n) for n in visits)
            return logs + tables * np.log(a) + rows
        return logs + 3 * np.log(a) + gammaln(a) - gammaln(a + tables)

    mean, deviation = _grid_moments(log_density)
    assert np.mean(found) == pytest.approx(mean, abs=0.1 * deviation)
    assert np.std(found) == pytest.approx(deviation, rel=0.1)


def test_fixed_concentrations_stay():
    rng = np.random.default_rng(5)
    process = hdp.Process(1.5, 2.5, np.array([0.4, 0.4, 0.2]), np.zeros((3, 3)))
    drawn = hdp.draw_process(process, COUNTS, 1.5, 2.5, rng)
    assert (drawn.alpha, drawn.gamma) == (1.5, 2.5)
    np.testing.assert_allclose(drawn.rows.sum(1), 1.0)
    assert hdp.first_value(Gamma(3.0, 2.0)) == 1.5
