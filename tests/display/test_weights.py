"""The weights that a display draws are those of the model."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn import GridLabeler, SequenceClassifier, SequenceLabeler
from structlearn._src.common.errors import ArgumentError
from structlearn._src.display.weights import TransitionDisplay

X = [[["the"], ["cat"]], [["a"], ["dog"], ["sleeps"]]]
Y = [["B", "I"], ["B", "I", "O"]]


def texts(display):
    n = len(display.weights)
    return np.array([text.get_text() for text in display.ax_.texts]).reshape(n, n)


def names(display):
    return [text.get_text() for text in display.ax_.get_yticklabels()]


def test_transitions_of_labels():
    labeler = SequenceLabeler(forbidden="BIO").fit(X, Y)
    display = TransitionDisplay.from_estimator(labeler).plot(title="Chunks")
    np.testing.assert_array_equal(display.weights, labeler.transitions_)
    assert names(display) == ["B", "I", "O"]
    assert display.ax_.get_title() == "Chunks"
    written = texts(display)
    assert written[2, 1] == "\u00d7"  # I must not follow O
    assert (written == "\u00d7").sum() == 1
    assert written[0, 1] == f"{labeler.transitions_[0, 1]:.1f}"
    drawn = display.ax_.images[0].get_array()
    assert np.ma.getmaskarray(np.ma.masked_invalid(drawn)).sum() == 1
    low, high = display.ax_.images[0].get_clim()
    assert low == -high


def test_transitions_of_hidden_states():
    labeler = SequenceLabeler(hidden="layer", hidden_states=2, random_state=0).fit(X, Y)
    display = TransitionDisplay.from_estimator(labeler).plot(legend=False)
    assert names(display) == ["0", "1"]
    assert display.figure_.axes == [display.ax_]


def test_one_of_several_tables():
    rng = np.random.default_rng(0)
    whole = SequenceClassifier(hidden_states=2, random_state=0, max_iter=5, tol=0.5)
    whole.fit([rng.normal(size=(3, 2)) for _ in range(4)], [0, 1, 0, 1])
    display = TransitionDisplay.from_estimator(whole, which=1)
    np.testing.assert_array_equal(display.weights, whole.transitions_[1])
    assert display.state_names == ["0", "1"]
    images = [rng.normal(size=(2, 3)) for _ in range(2)]
    ways = GridLabeler(directions=True).fit(images, [(image > 0) * 1 for image in images])
    display = TransitionDisplay.from_estimator(ways, which=0)
    assert display.state_names == ["0", "1"]
    for which in (None, 2, -1):
        with pytest.raises(ArgumentError, match="2 tables of transitions; choose one from 0 to 1"):
            TransitionDisplay.from_estimator(ways, which=which)


def test_many_states_have_colours_only():
    display = TransitionDisplay(np.zeros((20, 20))).plot()
    assert len(display.ax_.texts) == 0


@pytest.mark.parametrize("shape", [(), (2,), (2, 3), (2, 2, 2)])
def test_bad_shapes(shape):
    with pytest.raises(ArgumentError, match=r"need \(states, states\)"):
        TransitionDisplay(np.zeros(shape))
