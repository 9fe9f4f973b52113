"""Colours, names and figures."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError
from structlearn._src.display.beliefs import GridDisplay
from structlearn._src.display.pictures import PALETTE, numbers_of, state_colours, state_titles


def test_colours():
    assert state_colours(3) == list(PALETTE[:3])
    many = state_colours(20)
    assert len({tuple(c) for c in many}) == 20
    assert len(state_colours(1, "gray")) == 1
    assert state_colours(2, ("red", "blue", "green")) == ["red", "blue"]
    with pytest.raises(ArgumentError, match="2 colours were given for 3 states"):
        state_colours(3, ("red", "blue"))


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install structlearn\[plot\]"):
        GridDisplay([[0]]).plot()


def test_neither_matplotlib_early_nor_pyplot_ever():
    code = (
        "import sys; from structlearn import GridDisplay as G, ChainDisplay as C;"
        "early = 'matplotlib' in sys.modules;"
        "G([[0, 1]]).plot().figure_.canvas.draw(); C([[0.5, 0.5]]).plot().figure_.canvas.draw();"
        "sys.exit(early or 'matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_numbers_and_names():
    classes = np.array(["a", "b"])
    np.testing.assert_array_equal(
        numbers_of(["b", None, "a", "c", -1], classes), [1, -1, 0, -1, -1]
    )
    np.testing.assert_array_equal(numbers_of(np.array([["b"], ["a"]]), classes), [[1], [0]])
    np.testing.assert_array_equal(numbers_of([(1, 2)], np.array([None, (1, 2)], object)), [1])
    assert state_titles(None, 2) == ["0", "1"]
    assert state_titles([3, "x", "y"], 2) == ["3", "x"]
    with pytest.raises(ArgumentError, match="1 state names were given for 2 states"):
        state_titles(["x"], 2)
