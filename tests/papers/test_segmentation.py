"""Noisy images with hidden labels, small and easy enough for seconds."""

from __future__ import annotations

import numpy as np
import pytest

from papers.base import Settings
from papers.data.synthetic import noisy_images, quadrants
from papers.experiments import segmentation
from papers.experiments.segmentation import RIVALS
from structlearn._src.estimators.structured.graph import GridLabeler
from structlearn._src.graph.shapes import chain


def _accuracy(name, variance, share):
    truth = quadrants(6, 8)
    rng = np.random.default_rng(4)
    images, labels = noisy_images(truth, 6, variance, share, rng)
    new, _ = noisy_images(truth, 5, variance, 0.0, rng)
    centred = images - images.mean(), labels, new - images.mean()
    return segmentation.accuracy(RIVALS[name], *centred, truth, part=10)


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


def test_the_control_differs_from_the_marginal_svm_in_hidden_labels_alone():
    images, labels = noisy_images(quadrants(6, 8), 4, 2.0, 0.5, 1)
    known = np.maximum(labels, 0)
    for given, same in ((known, True), (labels, False)):
        one, two = (_weights(name, images, given) for name in ("M", "L cooled"))
        assert np.array_equal(one, two) == same


def _weights(name, images, labels):
    objective = GridLabeler(loss=RIVALS[name].learner.loss).objective([*images], [*labels])
    return segmentation.train(RIVALS[name], objective, part=20)


def test_labellings_are_whole():
    """Two pixels that must differ do, though each alone does not care."""
    graph = chain(np.zeros((2, 2)), np.array([[0.0, 1.0], [1.0, 0.0]]))
    wiring, potentials = graph.wiring, graph.potentials
    for learner in (RIVALS["M"].learner, RIVALS["L"].learner):
        found = segmentation.predict(learner, wiring, potentials)
        assert wiring.score(potentials, found) == pytest.approx([1.0])


def test_the_quick_version():
    told = []
    record = segmentation.run(Settings(quick=True, progress=lambda share, text: told.append(text)))
    assert record.tables == segmentation.run(Settings(quick=True)).tables
    (table,) = record.tables
    assert table.columns == ("hidden (%)", *RIVALS, "M - L", "M - H")
    assert [row[0] for row in table.rows] == [0, 50]
    assert len(told) >= 2
    assert record.pictures["curves"]().axes
