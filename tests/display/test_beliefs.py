"""Labels and marginals that displays draw are those of the answers and estimators."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from structlearn import FactorGraph, GridLabeler, SequenceLabeler, chain, grid, hidden_grid, infer
from structlearn._src.common.errors import ArgumentError, QueryError
from structlearn._src.display.beliefs import ChainDisplay, GridDisplay
from structlearn._src.display.pictures import PALETTE, new_figure
from structlearn._src.text.columns import parse_columns

SHAPE = (3, 5)


@pytest.fixture
def graph():
    rng = np.random.default_rng(0)
    return grid(rng.normal(0, 2, (*SHAPE, 3)), 0.5 * np.eye(3))


@pytest.fixture
def line():
    rng = np.random.default_rng(1)
    return chain(rng.normal(0, 1, (7, 3)), np.eye(3))


def png(figure):
    file = io.BytesIO()
    figure.savefig(file)
    return file.getvalue()


def shown(display):
    return np.asarray(display.ax_.images[0].get_array())


def tick_texts(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


# ---- grids -------------------------------------------------------------------------------


def test_labels_on_a_grid(graph):
    best = infer(graph, "map")
    display = GridDisplay.from_answer(best, SHAPE, state_names=["a", "b", "c"]).plot(title="Best")
    wanted = np.array([best.assignment[v] for v in range(15)]).reshape(SHAPE)
    np.testing.assert_array_equal(display.values, wanted)
    np.testing.assert_array_equal(shown(display), wanted)
    assert display.ax_.get_title() == "Best"
    bar = display.figure_.axes[1]
    assert tick_texts(bar) == ["a", "b", "c"]
    colours = display.ax_.images[0].to_rgba(wanted.astype(float))
    np.testing.assert_allclose(colours[0, 0], to_rgba(PALETTE[wanted[0, 0]]))
    assert png(display.figure_).startswith(b"\x89PNG")


def test_marginals_on_a_grid(graph):
    soft = infer(graph, "marginals")
    table = np.array([soft.marginals[v] for v in range(15)])
    for show, wanted in (
        ("labels", table.argmax(1)),
        ("certainty", table.max(1)),
        (2, table[:, 2]),
    ):
        display = GridDisplay.from_answer(soft, SHAPE, show=show).plot()
        np.testing.assert_array_equal(shown(display), wanted.reshape(SHAPE))
        label = display.figure_.axes[1].get_ylabel()
        assert label == ("" if show == "labels" else "probability")


def test_outputs_of_a_hidden_grid():
    rng = np.random.default_rng(2)
    graph = hidden_grid(rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3, 4)), np.eye(4),
                        rng.normal(size=(2, 4)))  # fmt: skip
    best = infer(graph, "marginal_map")
    display = GridDisplay.from_answer(best, (2, 3))
    np.testing.assert_array_equal(display.values.ravel(), list(best.assignment.values()))
    soft = infer(graph, "marginals")
    hidden = GridDisplay.from_answer(soft, (2, 3), variables=range(6, 12))
    wanted = [soft.marginals[v].argmax() for v in range(6, 12)]
    np.testing.assert_array_equal(hidden.values.ravel(), wanted)
    joint = infer(graph, "map")
    hidden = GridDisplay.from_answer(joint, (2, 3), variables=range(6, 12))
    np.testing.assert_array_equal(
        hidden.values.ravel(), [joint.assignment[v] for v in range(6, 12)]
    )


def test_named_variables():
    graph = FactorGraph()
    graph.add_variables("abcd")
    for name, value in zip("abcd", (1.0, -1.0, -1.0, 1.0), strict=True):
        graph.add_factor([name], [0.0, value])
    display = GridDisplay.from_answer(infer(graph, "map"), (2, 2), variables=["d", "c", "b", "a"])
    np.testing.assert_array_equal(display.values, [[1, 0], [0, 1]])


def test_unknown_labels_stay_blank_and_given_axes_are_used():
    ax = new_figure().subplots()
    display = GridDisplay([[0, -1], [1, 1]], n_states=4, colours="gray").plot(ax, legend=False)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.figure_.axes == [ax]
    assert np.ma.getmaskarray(ax.images[0].get_array()).tolist() == [[False, True], [False, False]]
    assert display.state_names == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shape": (4, 5)}, "15 variables for 20 places"),
        ({"shape": (2, 2), "variables": range(3)}, "3 variables for 4 places"),
        ({"show": "entropy"}, "'entropy'"),
        ({"show": 3}, "from 0 to 2"),
        ({"state_names": ["a"]}, "1 state names"),
    ],
)
def test_bad_grids(options, words, graph):
    soft = infer(graph, "marginals")
    with pytest.raises(ArgumentError, match=words):
        GridDisplay.from_answer(soft, **{"shape": SHAPE, **options})


def test_answers_that_cannot_be_shown(graph, line):
    with pytest.raises(QueryError, match="no marginals"):
        GridDisplay.from_answer(infer(graph, "partition"), SHAPE)
    with pytest.raises(QueryError, match="no marginals"):
        GridDisplay.from_answer(infer(graph, "map"), SHAPE, show="certainty")
    with pytest.raises(QueryError, match="no assignment"):
        ChainDisplay.from_answer(infer(line, "partition"))
    with pytest.raises(ArgumentError, match="rows, columns"):
        GridDisplay([1, 2, 3])
    with pytest.raises(ArgumentError, match="kind='area'"):
        GridDisplay([[1]], kind="area")


# ---- chains ------------------------------------------------------------------------------


def test_marginals_along_a_chain(line):
    soft, best = infer(line, "marginals"), infer(line, "map")
    truth = np.array([0, 0, 1, 1, 2, -1, 0])
    display = ChainDisplay.from_answer(
        soft, paths={"MAP": best, "truth": truth}, state_names=["low", "middle", "high"]
    ).plot(title="A line")
    table = np.array([soft.marginals[v] for v in range(7)])
    np.testing.assert_array_equal(display.marginals, table)
    tops = np.cumsum(table, axis=1)
    for k, area in enumerate(display.ax_.collections):
        corners = area.get_paths()[0].vertices
        for t in range(7):  # above the middle of a position the area ends at the running sum
            edge = corners[np.isclose(corners[:, 0], t + 0.5)][:, 1]
            assert np.isclose(edge, tops[t, k]).any()
        np.testing.assert_allclose(area.get_facecolor()[0], to_rgba(PALETTE[k]))
    assert tick_texts(display.ax_) == ["0%", "50%", "100%", "MAP", "truth"]
    strip = np.asarray(display.ax_.images[1].get_array())[0]
    wanted = [to_rgba("white" if k < 0 else PALETTE[k]) for k in truth]
    np.testing.assert_allclose(strip, wanted)
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names == ["high", "middle", "low"]
    assert display.ax_.get_xlim() == (-0.5, 6.5)
    assert png(display.figure_).startswith(b"\x89PNG")


def test_strips_alone_and_a_part_of_a_chain(line):
    best, soft = infer(line, "map"), infer(line, "marginals")
    display = ChainDisplay.from_answer(best).plot(legend=False)
    assert display.marginals is None
    np.testing.assert_array_equal(display.paths["map"], list(best.assignment.values()))
    assert tick_texts(display.ax_) == ["map"]
    assert display.ax_.get_legend() is None
    some = ChainDisplay.from_answer(soft, variables=[4, 2], paths={"MAP": best})
    np.testing.assert_array_equal(some.marginals, [soft.marginals[4], soft.marginals[2]])
    np.testing.assert_array_equal(some.paths["MAP"], [best.assignment[4], best.assignment[2]])


def test_lengths_must_agree():
    with pytest.raises(ArgumentError, match=r"\[2, 3\]"):
        ChainDisplay(np.ones((2, 2)), paths={"a": [0, 1, 1]})
    with pytest.raises(ArgumentError, match="lengths"):
        ChainDisplay()


# ---- estimators --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def segmenter():
    rng = np.random.default_rng(3)
    truth = np.array([["sky"] * 4, ["sky"] * 4, ["sea"] * 4])
    images = [(truth == "sea") + 0.3 * rng.normal(size=truth.shape) for _ in range(3)]
    return GridLabeler(edges="potts").fit(images, [truth] * 3), images[0]


def test_predictions_on_a_grid(segmenter):
    labeler, image = segmenter
    display = GridDisplay.from_estimator(labeler, image).plot()
    assert display.state_names == ["sea", "sky"]
    np.testing.assert_array_equal(labeler.classes_[shown(display)], labeler.predict([image])[0])
    for show in ("labels", "certainty"):
        named = GridDisplay.from_estimator(labeler, image, show=show, state_names=["blue", "grey"])
        assert named.state_names == ["blue", "grey"]
    (soft,) = labeler.predict_marginals([image])
    for show, wanted in (("certainty", soft.max(axis=2)), (0, soft[..., 0])):
        display = GridDisplay.from_estimator(labeler, image, show=show).plot()
        np.testing.assert_array_equal(shown(display), wanted)
    with pytest.raises(ArgumentError, match="from 0 to 1"):
        GridDisplay.from_estimator(labeler, image, show=2)


def test_predictions_along_a_sequence():
    X, Y = [[["the"], ["cat"]], [["a"], ["dog"], ["sleeps"]]], [["D", "N"], ["D", "N", "V"]]
    labeler = SequenceLabeler(C=10.0).fit(X, Y)
    given = {"truth": ["D", "N", None], "other": np.array(["V", "X", "N"], object)}
    display = ChainDisplay.from_estimator(labeler, X[1], paths=given).plot()
    np.testing.assert_array_equal(display.marginals, labeler.predict_marginals(X)[1])
    assert list(display.paths) == ["predicted", "truth", "other"]
    np.testing.assert_array_equal(labeler.classes_[display.paths["predicted"]], ["D", "N", "V"])
    np.testing.assert_array_equal(display.paths["truth"], [0, 1, -1])
    np.testing.assert_array_equal(display.paths["other"], [2, -1, 1])
    assert display.state_names == ["D", "N", "V"]
    words = ["determiner", "noun", "verb"]
    named = ChainDisplay.from_estimator(labeler, X[1], paths=given, state_names=words)
    assert named.state_names == words
    np.testing.assert_array_equal(named.paths["truth"], [0, 1, -1])


def test_predictions_along_a_sentence_of_columns():
    text = parse_columns(b"the\ncat\n\na\ndog\nsleeps\n")
    labeler = SequenceLabeler(template="U:%x[0,0]\nB").fit(text, [["D", "N"], ["D", "N", "V"]])
    display = ChainDisplay.from_estimator(labeler, text)
    np.testing.assert_array_equal(display.marginals, labeler.predict_marginals(text)[0])
