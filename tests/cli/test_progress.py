"""The line of progress."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from structlearn._src.cli.progress import ProgressLine


@pytest.mark.parametrize("gap", [math.inf, math.nan])
def test_what_is_not_known_of_an_iteration_is_not_told(gap, capsys):
    history = SimpleNamespace(seconds=[0.0, 1.25])
    event = SimpleNamespace(iteration=3, value=2.5, gap=gap, gradient=0.125, history=history)
    ProgressLine(wanted=True).iteration(event)
    assert capsys.readouterr().err == "iteration 3: objective 2.5, gradient 0.125, 1.2 s\n"


def test_quiet_wins(capsys):
    line = ProgressLine(wanted=True, quiet=True)
    line(0.5, "working")
    line.clear()
    assert capsys.readouterr().err == ""
