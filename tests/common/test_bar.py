"""The bar: on a terminal one line that is overwritten, elsewhere a line now and then."""

from __future__ import annotations

import logging
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from structlearn import SequenceLabeler, grid, infer
from structlearn._src.common import bar as module
from structlearn._src.common.bar import ProgressBar, draw, spell
from structlearn._src.common.watch import Approach, Ending, Watch

X = [[["a"], ["b"]], [["b"]]]
Y = [["x", "y"], ["y"]]


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now

    def strftime(self, form):
        return "12:00:00"


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def bar(monkeypatch, clock):
    """A bar on a terminal."""
    monkeypatch.setenv("COLUMNS", "100")
    made = ProgressBar()
    made.terminal = True
    made.begin()
    return made


def test_times():
    assert [spell(x) for x in (0.04, 59.96, 100, 3599, 3660)] == [
        "0.0 s",
        "60.0 s",
        "1 min 40 s",
        "59 min 59 s",
        "1 h 01 min",
    ]


def test_the_bar_fills():
    cells = [draw(share).count("#") for share in (0.0, 0.5, 0.999, 1.0, 1.5)]
    assert cells == [0, 8, 15, 16, 16]
    assert draw(None) == ""


def test_rate_and_time_left(clock, bar, capsys):
    bar(0.0, "iteration 0")
    assert "/s" not in capsys.readouterr().err
    clock.now += 2.0
    bar(0.25, "iteration 10, objective 5")
    shown = capsys.readouterr().err
    assert shown.startswith("\r####---")
    assert "iteration 10, objective 5  5/s, 2.0 s, about 6.0 s left" in shown
    assert "\n" not in shown


def test_a_long_line_keeps_its_end_and_the_next_covers_it(clock, bar, capsys):
    bar(None, "long " * 40)
    first = capsys.readouterr().err
    assert len(first) == 100  # with the return before it
    assert first.endswith("  0.0 s")
    clock.now += 1.0
    bar(None, "short")
    assert len(capsys.readouterr().err) == 100
    bar.clear()
    assert capsys.readouterr().err.strip() == ""
    bar.clear()
    assert capsys.readouterr().err == ""


def test_without_a_terminal_there_is_a_line_every_few_seconds(clock, capsys):
    bar = ProgressBar(every=5.0)
    for i in range(100):
        clock.now += 0.11
        bar(i / 100, f"sweep {i} of 100")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("12:00:00  45% sweep 45 of 100  9.09/s, 5.1 s, about ")


def test_other_work_has_its_own_rate(clock, bar, capsys):
    bar(0.5, "iteration 50")
    clock.now += 1.0
    bar(0.9, "iteration 90")
    assert "40/s" in capsys.readouterr().err
    clock.now += 1.0
    bar(0.1, "sweep 1")
    assert "/s" not in capsys.readouterr().err


def test_the_way_to_a_tolerance_is_on_a_log_scale():
    approach = Approach()
    assert math.isnan(approach.share(math.inf))
    assert approach.share(1e6) == 0.0
    assert approach.share(1e3) == pytest.approx(0.5)
    assert approach.share(math.nan) == pytest.approx(0.5)
    assert approach.share(0.0) == 1.0


def test_loops_in_loops_share_the_way_and_time_counts():
    told = []
    watch = Watch(progress=lambda share, words: told.append(share))

    def outer():
        watch.repeat(lambda: False, 2, str)
        return False

    assert watch.repeat(outer, 2, str) is Ending.LIMIT
    assert told == [0.25, 0.5, 0.5, 0.75, 1.0, 1.0]
    told.clear()
    watch.repeat(lambda: False, 4, str, lambda: 0.6)
    assert told == [0.6, 0.6, 0.75, 1.0]
    told.clear()
    watch.repeat(lambda: False, 2, str, lambda: math.nan)
    assert told == [0.5, 1.0]
    told.clear()
    Watch(1e-9, lambda share, words: told.append(share)).repeat(lambda: False, 100, str)
    assert told == [1.0]


def test_a_limit_is_no_end_to_draw(clock, bar, capsys):
    Watch(progress=bar).repeat(lambda: False, 2, lambda: "iteration 1", lambda: math.nan)
    assert capsys.readouterr().err.startswith("\riteration 1")


def test_progress_true_shows_a_bar_on_standard_error(capsys):
    SequenceLabeler(progress=True).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "iteration" in err
    assert "objective" in err
    assert "100%" in err.splitlines()[-1]  # the only line, unless kernels had to be compiled
    graph = grid(np.zeros((2, 2, 2)), np.eye(2))
    infer(graph, "marginals", method="bp", progress=True)
    assert "sweep" in capsys.readouterr().err
    assert logging.getLogger("structlearn").handlers == []


@pytest.mark.parametrize("progress", [None, False])
def test_without_it_nothing_is_shown(progress, capsys):
    SequenceLabeler(progress=progress).fit(X, Y)
    assert capsys.readouterr() == ("", "")


def test_what_the_log_is_told_is_shown_above_the_bar(clock, bar, capsys):
    def work():
        bar(0.5, "working")
        logging.getLogger("structlearn").info("compiling")
        return "done"

    assert bar.around(work, lambda: "worked") == "done"
    logging.getLogger("structlearn").info("not shown")
    text = capsys.readouterr().err
    assert "\rstructlearn: compiling\n" in text
    assert text.endswith(f"\r{'#' * 16}  worked  0.0 s\n")


def test_whoever_asks_for_verbose_is_told_of_progress():
    with pytest.raises(TypeError, match="progress=True"):
        SequenceLabeler(verbose=1)
    with pytest.raises(ValueError, match="progress=True"):
        SequenceLabeler().set_params(verbose=1)


class Widget:
    """Stands for a bar of tqdm in a notebook."""

    made: list = []  # noqa: RUF012

    def __init__(self, **options):
        self.options, self.n, self.told, self.closed = options, 0.0, [], False
        Widget.made.append(self)

    def set_description_str(self, text):
        self.told.append(text)

    def refresh(self):
        pass

    def close(self):
        self.closed = True


class ZMQInteractiveShell:
    """Has the name of the shell behind a notebook."""


@pytest.fixture
def notebook(monkeypatch):
    shell = SimpleNamespace(get_ipython=ZMQInteractiveShell)
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace(notebook=None))
    monkeypatch.setitem(sys.modules, "tqdm.notebook", SimpleNamespace(tqdm=Widget))
    Widget.made.clear()


def test_a_notebook_has_a_widget(notebook, capsys):
    graph = grid(np.zeros((30, 30, 2)), np.eye(2))
    infer(graph, "marginals", method="bp", random_state=0, progress=True)
    assert Widget.made  # one for each loop
    assert all(widget.closed and widget.told for widget in Widget.made)
    assert Widget.made[0].n == 1.0
    assert capsys.readouterr().err == ""


def test_a_notebook_without_tqdm_has_lines(notebook, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.notebook", None)
    assert type(module.make_bar()) is ProgressBar


def test_who_watches(notebook, monkeypatch):
    assert module.is_watched()
    monkeypatch.delitem(sys.modules, "IPython")
    assert module.is_watched() == sys.stderr.isatty()
