"""Curves that displays draw are those of messages, histories and probabilities."""

from __future__ import annotations

import io

import numpy as np
import pytest

from structlearn import SequenceLabeler, grid, infer, load, save
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.history import History
from structlearn._src.display.curves import ConvergenceDisplay, DominanceDisplay, HistoryDisplay
from structlearn._src.display.pictures import new_figure
from structlearn._src.learn.dominance import Dominance

X = [[["the"], ["cat"]], [["a"], ["dog"], ["sleeps"]]]
Y = [["D", "N"], ["D", "N", "V"]]


@pytest.fixture
def graph():
    rng = np.random.default_rng(0)
    return grid(rng.normal(0, 2, (3, 5, 3)), 0.5 * np.eye(3))


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


# ---- messages ----------------------------------------------------------------------------


def test_convergence_is_that_of_the_messages(graph):
    display = ConvergenceDisplay.from_graph(graph, sweeps=200, tol=1e-7).plot(title="Rest")
    for schedule, trace in display.traces.items():
        answer = infer(graph, "marginals", method="bp", schedule=schedule, tol=1e-7, damping=0.0,
                       restarts=0)  # fmt: skip
        assert len(trace) == answer.iterations
        assert trace[-1] == pytest.approx(answer.residual, rel=1e-6, abs=1e-12)
        assert trace[-1] <= 1e-7 < trace[:-1].min()
    lines = display.ax_.get_lines()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [
        "sequential", "flooding", "residual", "tolerance 1e-07",
    ]  # fmt: skip
    np.testing.assert_array_equal(lines[0].get_ydata(), display.traces["sequential"])
    assert display.ax_.get_yscale() == "log"
    short = ConvergenceDisplay.from_graph(graph, schedules=["flooding"], sweeps=2)
    assert len(short.traces["flooding"]) == 2


def test_convergence_with_zeros_and_unknown_query(graph):
    display = ConvergenceDisplay({"a": [1.0, 0.0]}).plot(new_figure().subplots())
    assert np.isnan(display.ax_.get_lines()[0].get_ydata()[1])
    with pytest.raises(ArgumentError, match="query='mean'"):
        ConvergenceDisplay.from_graph(graph, "mean")


# ---- fits --------------------------------------------------------------------------------


def history(*rows):
    out = History()
    for iteration, seconds, value, gap in rows:
        out.add(iteration, seconds, value, gap=gap)
    return out


@pytest.fixture
def two():
    nan = np.nan
    slow = history((0, 0.0, 9.0, nan), (1, 0.5, nan, nan), (2, 1.0, 4.0, 3.0), (3, 2.0, 2.0, 0.5))
    quick = history((1, 0.1, 3.0, 1.0), (2, 0.3, 1.0, 0.0))
    return {"slow": slow, "quick": quick}


def lines(display):
    return [line.get_xydata().tolist() for line in display.ax_.get_lines()]


def test_values_against_time(two):
    display = HistoryDisplay(two).plot(title="Race")
    assert lines(display) == [[[0, 9], [1, 4], [2, 2]], [[0.1, 3], [0.3, 1]]]
    assert legend(display) == ["slow", "quick"]
    ax = display.ax_
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("seconds", "objective", "Race")
    assert ax.get_yscale() == "linear"


def test_lines_in_the_same_axes_look_different(two):
    ax = new_figure().subplots()
    for name, one in two.items():
        HistoryDisplay({name: one}).plot(ax)
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.get_lines()}) == 2


def test_what_else_a_history_knows(two):
    display = HistoryDisplay(two).plot(new_figure().subplots(), show="gap", against="iteration")
    assert lines(display) == [[[2, 3], [3, 0.5]], [[1, 1]]]  # 0 has no place on this axis
    assert display.ax_.get_yscale() == "log"
    above = HistoryDisplay(two).plot(show="excess", against="iteration")
    assert lines(above) == [[[0, 8], [2, 3], [3, 1]], [[1, 2]]]
    known = HistoryDisplay(two, optimum=0.5).plot(show="excess", against="iteration")
    assert lines(known)[1] == [[1, 2.5], [2, 0.5]]


def test_the_history_of_an_estimator(tmp_path):
    labeler = SequenceLabeler().fit(X, Y)
    display = HistoryDisplay.from_estimator(labeler).plot()
    assert lines(display) == [
        np.stack([labeler.history_.seconds, labeler.history_.value], 1).tolist()
    ]
    assert legend(display) == ["SequenceLabeler"]
    assert lines(HistoryDisplay(labeler.history_).plot()) == lines(display)
    assert legend(HistoryDisplay.from_estimator(labeler, name="CRF").plot()) == ["CRF"]
    save(labeler, tmp_path / "model")
    again = HistoryDisplay.from_estimator(load(tmp_path / "model"))
    with pytest.raises(ArgumentError, match="no times"):
        again.plot()
    assert lines(again.plot(against="iteration"))[0][-1][0] == labeler.n_iter_


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"show": "loss"}, "show='loss'"),
        ({"against": "sweeps"}, "against='sweeps'"),
        ({"show": "gradient"}, "has no gradient norm"),
        ({"show": "slope"}, "has no gradient norm"),  # its earlier name
    ],
)
def test_bad_histories(options, words, two):
    with pytest.raises(ArgumentError, match=words):
        HistoryDisplay(two).plot(**options)


def test_no_history_at_all():
    with pytest.raises(ArgumentError, match="empty"):
        HistoryDisplay({})


# ---- dominance ---------------------------------------------------------------------------


def test_probabilities_in_rising_order():
    found = Dominance(true=np.array([0.7, np.nan, 0.1]), best=np.array([0.7, 0.4, 0.3]))
    display = DominanceDisplay(found).plot()
    best, true, half = lines(display)
    assert best == [[1, 0.3], [2, 0.4], [3, 0.7]]
    assert true == [[1, 0.1], [2, 0.7]]
    assert {y for _, y in half} == {0.5}
    assert display.ax_.get_title() == "2 of 3 without a dominant labelling"


def test_the_dominance_of_an_estimator():
    labeler = SequenceLabeler(C=10.0).fit(X, Y)
    display = DominanceDisplay.from_estimator(labeler, X, Y).plot(title="Sure")
    wanted = np.sort(labeler.dominance(X, Y).true)
    np.testing.assert_array_equal(np.array(lines(display)[1])[:, 1], wanted)
    assert display.ax_.get_title() == "Sure"
    file = io.BytesIO()
    display.figure_.savefig(file)
    assert file.getvalue().startswith(b"\x89PNG")
