"""Draws are compared with probabilities found by listing everything."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from papers.data.synthetic import (
    HiddenField,
    Spread,
    chessboard,
    neighbours,
    noisy_images,
    quadrants,
)
from structlearn.errors import ArgumentError


def _probabilities(field):
    """Probability of every pair of inputs and cells, as an array (inputs..., cells...)."""
    n, states = field.cells.shape
    scores = np.empty((states,) * (2 * n))
    for values in itertools.product(range(states), repeat=2 * n):
        x = values[:n]
        z = values[n:]
        score = sum(field.inputs[i, x[i]] + field.cells[i, z[i]] for i in range(n))
        score += sum(field.sight[i, x[i], z[i]] for i in range(n))
        score += sum(
            table[z[i], z[j]] for (i, j), table in zip(field.edges, field.pairs, strict=True)
        )
        scores[values] = score
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


@pytest.mark.parametrize("shape", [(4, 1), (1, 4), (2, 2), (3, 1)])
def test_samples_have_the_probabilities_of_the_field(shape):
    n_samples = 40_000
    field = HiddenField.draw(*shape, states=2, spread=Spread(0.5, 0.5, 0.5), random_state=3)
    inputs, cells = field.sample(n_samples, random_state=5)
    wanted = _probabilities(field).ravel()
    places = np.ravel_multi_index(
        tuple(np.concatenate([inputs, cells], axis=1).T), (2,) * (2 * inputs.shape[1])
    )
    counts = np.bincount(places, minlength=len(wanted))
    # Pearson's statistic has about as much mean as there are outcomes, and twice that variance.
    expected = n_samples * wanted
    often = expected > 5
    statistic = ((counts - expected)[often] ** 2 / expected[often]).sum()
    assert statistic < often.sum() + 5 * np.sqrt(2 * often.sum())
    assert counts[~often].sum() <= 10 + 3 * expected[~often].sum()


def test_a_wide_grid_has_the_right_means():
    field = HiddenField.draw(3, 3, states=2, random_state=1)
    _, cells = field.sample(20_000, random_state=2)
    alone = field.cells + np.log(np.exp(field.inputs[:, :, None] + field.sight).sum(axis=1))
    every = np.array(list(itertools.product(range(2), repeat=9)))
    scores = alone[np.arange(9), every].sum(axis=1)
    for (i, j), table in zip(field.edges, field.pairs, strict=True):
        scores += table[every[:, i], every[:, j]]
    weights = np.exp(scores - scores.max())
    np.testing.assert_allclose(
        cells.mean(axis=0), weights @ every / weights.sum(), atol=5 * 0.5 / np.sqrt(20_000)
    )


def test_outputs_touch_hidden_cells_only():
    hidden = chessboard(4, 5)
    edges = neighbours(4, 5)
    assert len(edges) == 3 * 5 + 4 * 4
    assert (hidden[edges[:, 0]] != hidden[edges[:, 1]]).all()
    assert set(np.diff(edges).ravel()) == {1, 5}


def test_spread_is_that_of_the_potentials():
    spread = Spread(0.1, 0.2, 0.3, 1.0, 2.0, 3.0)
    field = HiddenField.draw(60, 60, states=3, spread=spread, random_state=0)
    hidden = field.hidden
    found = [
        field.inputs, field.cells[~hidden], field.cells[hidden],
        field.sight[~hidden], field.sight[hidden], field.pairs,
    ]  # fmt: skip
    np.testing.assert_allclose([x.std() for x in found], spread, rtol=0.05)


def test_another_spread_keeps_the_random_numbers():
    one = HiddenField.draw(5, random_state=7)
    two = HiddenField.draw(5, random_state=7, spread=Spread(hidden_input=0.0))
    np.testing.assert_array_equal(one.pairs, two.pairs)
    assert not two.sight[two.hidden].any()
    np.testing.assert_array_equal(one.sight[~one.hidden], two.sight[~two.hidden])


def test_quadrants_and_an_ellipse():
    truth = quadrants()
    assert truth.shape == (20, 40)
    assert [truth[0, 0], truth[0, -1], truth[-1, 0], truth[-1, -1], truth[10, 20]] == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert 0.15 < (truth == 4).mean() < 0.3
    np.testing.assert_array_equal(truth == 4, (truth == 4)[::-1, ::-1])


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_images_lack_the_asked_share_of_labels(share):
    truth = quadrants()
    images, labels = noisy_images(truth, 5, 2.0, share, random_state=0)
    np.testing.assert_array_equal((labels < 0).sum(axis=(1, 2)), round(share * truth.size))
    seen = labels >= 0
    np.testing.assert_array_equal(labels[seen], np.broadcast_to(truth, labels.shape)[seen])
    assert (images - truth).std() == pytest.approx(np.sqrt(2.0), rel=0.05)
    if 0 < share < 1:
        assert (labels[0] != labels[1]).any()


def test_bad_arguments_are_named():
    with pytest.raises(ArgumentError, match="rows=0"):
        HiddenField.draw(0)
    with pytest.raises(ArgumentError, match="n_samples=0"):
        HiddenField.draw(3, random_state=0).sample(0)
    with pytest.raises(ArgumentError, match=r"share=1\.5"):
        noisy_images(quadrants(), 1, 1.0, 1.5)
