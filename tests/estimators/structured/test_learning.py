"""What plain messages claim is checked: against exact inference, or against a bound."""

import warnings

import numpy as np
import pytest

from structlearn import GraphLabeler, GridLabeler, MulticlassClassifier, SequenceClassifier
from structlearn import SequenceLabeler as Labeler
from structlearn.errors import InferenceWarning

CLASSES = 4


def regions(seed, count, rows, columns, noise=2.0):
    """Images of a few regions each, their labels, and the same with every second label hidden."""
    rng = np.random.default_rng(seed)
    colours = rng.normal(size=(CLASSES, 3))
    at = np.stack(np.mgrid[:rows, :columns], axis=-1)
    X, Y, hidden = [], [], []
    for _ in range(count):
        centres = rng.random((4, 2)) * (rows, columns)
        nearest = np.square(at[:, :, None] - centres).sum(axis=-1).argmin(axis=-1)
        labels = rng.integers(CLASSES, size=4)[nearest]
        X.append(colours[labels] + noise * rng.normal(size=(rows, columns, 3)))
        Y.append(labels)
        hidden.append(np.where(rng.random(labels.shape) < 0.5, -1, labels))
    return X, Y, hidden


def told(recorded):
    return [each for each in recorded if issubclass(each.category, InferenceWarning)]


def fitted(X, Y, inference, max_iter=60, **options):
    """A labeler, and whether it was warned of its inference."""
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        labeler = GridLabeler(inference=inference, max_iter=max_iter, random_state=0, **options)
        labeler.fit(X, Y)
    return labeler, bool(told(recorded))


def exact_value(labeler, X, Y):
    """The objective at the weights that were learnt, by elimination."""
    exact = GridLabeler(inference="exact", loss=labeler.loss).objective(X, Y)
    return exact.value(labeler.weights_)


def accuracy(labeler, X, Y):
    found = labeler.predict(X)
    return np.mean([(a == b).mean() for a, b in zip(found, Y, strict=True)])


def test_a_false_objective_brings_a_warning():
    false = 0
    for seed in range(5):
        X, _, Y = regions(seed, 3, 5, 8)
        plain, warned = fitted(X, Y, "bp")
        off = exact_value(plain, X, Y) > 1.1 * plain.value_
        assert warned or not off
        false += off
    assert false >= 2


def test_a_false_objective_of_a_hinge_brings_one_too():
    X, _, Y = regions(0, 3, 5, 12)
    plain, warned = fitted(X, Y, "bp", max_iter=1000, loss="latent-hinge")
    assert exact_value(plain, X, Y) > 1.1 * plain.value_
    assert warned


def test_narrow_graphs_are_learnt_exactly():
    X, _, Y = regions(1, 2, 5, 6)
    exact, warned = fitted(X, Y, "auto", max_iter=20)
    assert not warned
    assert exact_value(exact, X, Y) == pytest.approx(exact.value_)


def test_the_default_learns_anew_where_messages_fail():
    """Eight rows are too wide to learn exactly, but not to judge."""
    X, _, Y = regions(2, 3, 7, 8)
    plain, _ = fitted(X, Y, "bp")
    labeler, warned = fitted(X, Y, "auto")
    assert warned
    assert "tree-reweighted" in labeler.status_ or labeler.value_ == pytest.approx(
        exact_value(labeler, X, Y)
    )
    assert exact_value(labeler, X, Y) < exact_value(plain, X, Y) + 1e-6


@pytest.mark.parametrize("seed", [0, 1])
def test_no_labeler_is_worse_than_its_pixels_in_silence(seed):
    """Too wide for exact inference altogether: the bound is the judge."""
    X, Y, hidden = regions(seed, 12, 9, 9)
    alone, _ = fitted(X[:3], hidden[:3], "auto", edges="none")
    labeler, warned = fitted(X[:3], hidden[:3], "auto")
    assert warned or accuracy(labeler, X[3:], Y[3:]) >= accuracy(alone, X[3:], Y[3:])


@pytest.mark.parametrize("loss", ["marginal", "hybrid"])
def test_objectives_below_zero_are_false(loss):
    """Where outputs are maximised and hidden variables summed, messages bound nothing."""
    rng = np.random.default_rng(1)
    halves = (np.indices((7, 8)).sum(axis=0) > 6).astype(int)
    X = [halves + rng.normal(0.0, 0.5, halves.shape) for _ in range(2)]
    Y = [halves] * 2
    options = {"loss": loss, "hidden": "layer", "max_iter": 20}
    false, warned = fitted(X, Y, "trw", **options)
    assert false.value_ < 0
    assert warned
    labeler, warned = fitted(X, Y, "auto", **options)
    assert "tree-reweighted" not in labeler.status_
    assert warned == (labeler.value_ < 0)


def test_nothing_is_said_where_messages_are_right():
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(6, 6, 2)) for _ in range(4)]
    Y = [(x[:, :, 0] + 0.3 * rng.normal(size=(6, 6)) > 0).astype(int) for x in X]
    labeler, warned = fitted(X, Y, "bp", max_iter=200)
    assert not warned
    assert labeler.value_ == pytest.approx(exact_value(labeler, X, Y), rel=0.02)


def test_tree_reweighted_objectives_are_bounds_where_nothing_is_hidden():
    rng = np.random.default_rng(4)
    X, Y, _ = regions(4, 2, 4, 5)
    bound = GridLabeler(inference="trw").objective(X, Y)
    exact = GridLabeler(inference="exact").objective(X, Y)
    for scale in (0.1, 1.0, 5.0):
        weights = scale * rng.normal(size=exact.n_weights)
        assert bound.value(weights) >= exact.value(weights) - 1e-3 * abs(exact.value(weights))


def test_every_labeler_takes_tree_reweighted_messages():
    rng = np.random.default_rng(5)
    rows = [rng.normal(size=(n, 3)) for n in (4, 6, 5)]
    labels = [(row[:, 0] > 0).astype(int) for row in rows]
    ring = [(row, np.array([[i, (i + 1) % len(row)] for i in range(len(row))])) for row in rows]
    images = [rng.normal(size=(3, 4, 2)) for _ in range(3)]
    pixels = [(image[:, :, 0] > 0).astype(int) for image in images]
    whole = np.array([0, 1, 0])
    cases = [
        (Labeler, rows, labels),
        (GraphLabeler, ring, labels),
        (GridLabeler, images, pixels),
        (SequenceClassifier, rows, whole),
        (MulticlassClassifier, np.concatenate(rows), np.concatenate(labels)),
    ]
    for kind, X, Y in cases:
        model = kind(inference="trw", max_iter=20, tol=None, random_state=0).fit(X, Y)
        same = kind(inference="trw", max_iter=20, tol=None, random_state=0).fit(X, Y)
        np.testing.assert_array_equal(model.weights_, same.weights_)
        assert len(model.predict(X)) == len(X)
