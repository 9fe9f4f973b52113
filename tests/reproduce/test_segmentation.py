"""Noisy images with hidden labels, small and easy enough for seconds."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn.data.synthetic import noisy_images, quadrants
from structlearn.objective.loss import make_loss
from structlearn.reproduce import segmentation
from structlearn.reproduce.base import Settings
from structlearn.reproduce.segmentation import RIVALS

STAGES = [(60, 1.0), (30, 0.3), (30, 0.1)]


def _accuracy(name, variance, share):
    truth, rng = quadrants(6, 8), np.random.default_rng(4)
    images, labels = noisy_images(truth, 6, variance, share, rng)
    new, _ = noisy_images(truth, 5, variance, 0.0, rng)
    centred = images - images.mean(), labels, new - images.mean()
    return segmentation._accuracy(RIVALS[name], *centred, truth, STAGES)


@pytest.mark.parametrize("name", RIVALS)
def test_everyone_learns_images_that_are_easy(name):
    """With little noise the answer can be read off each pixel, though half are not labelled."""
    assert _accuracy(name, variance=0.01, share=0.5) > 97.0


@pytest.mark.parametrize("name", RIVALS)
def test_neighbours_help(name):
    """Everyone does better than the best rule that looks at one pixel at a time."""
    truth = quadrants(6, 8)
    images, _ = noisy_images(truth, 100, 2.0, 0.0, 0)
    often = np.log(np.bincount(truth.ravel()))
    guess = (often - (images[..., None] - np.arange(5)) ** 2 / (2 * 2.0)).argmax(axis=-1)
    alone = 100.0 * np.mean(guess == truth)
    assert _accuracy(name, variance=2.0, share=0.0) > alone + 10.0


@pytest.mark.parametrize("name", RIVALS)
def test_everyone_ends_near_its_own_loss(name):
    """Stages soften what is hard, by less and less; the latent SVM's maxima stay maxima."""
    learner, temperatures = RIVALS[name]
    loss = make_loss(learner.loss)
    assert list(temperatures) == sorted(temperatures, reverse=True)
    assert temperatures[-1] <= 0.1
    if name in ("L", "H"):
        assert all(loss.softened(t) == loss for t in temperatures)


def test_the_quick_version():
    told = []
    record = segmentation.run(Settings(quick=True, progress=lambda share, text: told.append(text)))
    (table,) = record.tables
    assert table.columns == ("hidden (%)", *RIVALS)
    assert [row[0] for row in table.rows] == [0, 50]
    assert len(told) >= 2
    assert record.pictures["curves"]().axes
