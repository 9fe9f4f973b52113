"""Sums over the positions of states: in threads, and of some positions."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.common.threads import launch
from structlearn._src.kernels.chain import pieces
from structlearn._src.kernels.draw import moments
from structlearn._src.kernels.draw.moments import Members
from structlearn._src.kernels.team import make_board
from structlearn._src.sample.emission import Categorical, Gaussian
from structlearn._src.sample.priors import NormalGamma, NormalWishart
from structlearn._src.sample.tally import tally


def _members(states, n):
    sizes = np.bincount(states, minlength=n)
    return Members(np.argsort(states, kind="stable"), np.append(0, np.cumsum(sizes)))


def _points(rng, D, full, n=90):
    seen = rng.random(n) < 0.8
    scale = np.eye(D) if full else np.ones(D)
    prior = (NormalWishart if full else NormalGamma)(np.zeros(D), 1.0, D + 2.0, scale)
    return Gaussian(np.where(seen[:, None], rng.normal(size=(n, D)), 0.0), seen, prior)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("D", [1, 3, 9])
@pytest.mark.parametrize("threads", [1, 3])
def test_moments_are_those_of_one_position_after_the_other(D, full, threads, monkeypatch):
    """By parts of five positions; state 2 does not occur, and some positions are not seen."""
    rng = np.random.default_rng(D)
    points = _points(rng, D, full)
    states = rng.choice([0, 1, 3, 4], p=[0.6, 0.2, 0.15, 0.05], size=90)
    monkeypatch.setattr("structlearn._src.sample.tally._PART", 5)
    found = tally(points, _members(states, 5), threads)
    for own, expected in zip(found, points.statistics(states, 5), strict=True):
        assert own.shape == expected.shape
        np.testing.assert_allclose(own, expected, atol=1e-12)


@pytest.mark.parametrize("full", [True, False])
def test_moments_of_some_positions(full):
    rng = np.random.default_rng(1)
    points, some = _points(rng, 4, full), np.sort(rng.choice(90, 27, replace=False))
    sums = moments.moment_sums(1, 1, 1, 4, full)
    workspace = moments.moment_workspace(4, full)
    moments.add_up_some(points.data, points.seen, some, full, sums, workspace)
    expected = points.subset(some).statistics(np.zeros(27, np.int64), 1)
    for own, other in zip((sums.counts, sums.sums, sums.outers), expected, strict=True):
        np.testing.assert_allclose(own.ravel(), other.ravel(), atol=1e-12)


@pytest.mark.parametrize("threads", [1, 3])
def test_symbols_are_counted(threads, monkeypatch):
    rng = np.random.default_rng(2)
    monkeypatch.setattr("structlearn._src.sample.tally._PART", 7)
    symbols = Categorical(rng.integers(-1, 4, 90), np.ones(4))
    states = rng.choice([0, 2, 3], size=90)
    (found,) = tally(symbols, _members(states, 5), threads)
    np.testing.assert_array_equal(found, symbols.statistics(states, 5)[0])


@pytest.mark.parametrize("threads", [1, 3])
def test_positions_are_listed_by_state(threads):
    """Pieces of several sequences whose paths are known: states that do not occur are left out."""
    rng = np.random.default_rng(3)
    offsets, borders = np.array([0, 10, 13, 40, 60]), np.array([0, 2, 3, 4])
    states = rng.choice([1, 2, 4], size=60)
    found = pieces.make_pieces(borders, 6, 60)
    for i in range(3):
        some = states[offsets[borders[i]] : offsets[borders[i + 1]]]
        found.visits[i, :6] = np.bincount(some, minlength=6)
    numbered = states.copy()
    launch(pieces.arrange_in_threads, threads - 1, make_board(1), offsets, found, numbered)
    expected = _members(states, 6)
    np.testing.assert_array_equal(found.members.positions, expected.positions)
    np.testing.assert_array_equal(found.members.starts, expected.starts)
    np.testing.assert_array_equal(numbered, np.searchsorted([1, 2, 4], states))
