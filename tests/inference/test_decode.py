"""Predictions of graphs: the same whatever stands beside a graph, and with a word if unsure."""

import warnings

import numpy as np
import pytest

from structlearn import GridLabeler
from structlearn.errors import InferenceWarning

pytestmark = pytest.mark.filterwarnings("ignore")


def textures(rng, shapes):
    images, labels = [], []
    for rows, columns in shapes:
        i, j = np.mgrid[:rows, :columns]
        label = ((i // 2 + j // 3 + rng.integers(3)) % 3).astype(int)
        images.append(label[:, :, None] + 1.5 * rng.normal(size=(rows, columns, 2)))
        labels.append(label)
    return images, labels


@pytest.fixture(scope="module")
def labeler():
    """Its weights are so strong that messages on wide images do not rest."""
    rng = np.random.default_rng(0)
    X, Y = textures(rng, [(6, 6)] * 3)
    model = GridLabeler(neighbours=8, loss="perceptron", max_iter=3, tol=None).fit(X, Y)
    model.weights_ = 2.0 * rng.normal(size=model.weights_.shape)
    return model


MIXED = [(3, 4), (11, 11), (2, 9), (11, 12), (3, 3)]


@pytest.mark.parametrize("inference", ["auto", "bp", "trw"])
@pytest.mark.parametrize("ask", ["predict", "predict_marginals"])
def test_neither_company_nor_order_nor_chance_nor_threads_matter(labeler, inference, ask):
    X, _ = textures(np.random.default_rng(1), MIXED)
    labeler.set_params(inference=inference, random_state=None, n_jobs=1)
    together = getattr(labeler, ask)(X)
    labeler.set_params(n_jobs=2)
    backwards = getattr(labeler, ask)(X[::-1])[::-1]
    alone = [getattr(labeler, ask)([x])[0] for x in X]
    for a, b, c in zip(together, backwards, alone, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
        np.testing.assert_allclose(a, c, rtol=0, atol=1e-12)


def test_messages_that_do_not_rest_bring_a_warning(labeler):
    X, _ = textures(np.random.default_rng(2), [(12, 12), (2, 3)])
    labeler.set_params(inference="auto", n_jobs=1)
    with pytest.warns(InferenceWarning, match="1 of 2"):
        labeler.predict_marginals(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labeler.predict_marginals(X[1:])  # narrow, and so exact


def test_narrow_images_are_exact_beside_wide_ones(labeler):
    X, _ = textures(np.random.default_rng(3), MIXED)
    labeler.set_params(inference="auto", n_jobs=1)
    mixed = labeler.predict_marginals(X)
    labeler.set_params(inference="exact")
    for i in (0, 2, 4):
        np.testing.assert_allclose(mixed[i], labeler.predict_marginals([X[i]])[0], atol=1e-9)
