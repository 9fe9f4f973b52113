"""How the tour prints: shares, running text, tables."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from papers.tour import command, image
from papers.tour.base import Stop, prose, share, table


def test_shares_are_percentages():
    assert [share(x) for x in (0.0, 0.1234, 1.0)] == ["0.0%", "12.3%", "100.0%"]


def test_running_text_is_broken_into_lines():
    words = "one two three " * 40
    lines = prose(words)
    assert max(map(len, lines)) <= 88
    assert " ".join(lines).split() == words.split()


def test_cells_stand_below_their_heads():
    head, *rows = table(["labels right", "whole lines"], {"a": [0.5, 0.25], "longer": [1.0, 0.0]})
    ends = [head.index("labels right") + len("labels right"), len(head)]
    for row, cells in zip(rows, (["50.0%", "25.0%"], ["100.0%", "0.0%"]), strict=True):
        assert [row[: ends[0]].split()[-1], row.split()[-1]] == cells
        assert len(row) == ends[1]


@pytest.mark.parametrize("name", command.STOPS)
def test_every_stop_is_a_module_that_runs(name):
    module = importlib.import_module(f"papers.tour.{name}")
    assert callable(module.run)
    assert module.__doc__


def test_a_stop_depends_on_its_generator_alone():
    room = importlib.import_module("papers.tour.room")
    one, other = (room.run(np.random.default_rng(3)) for _ in range(2))
    assert isinstance(one, Stop)
    assert one.lines == other.lines
    assert room.run(np.random.default_rng(4)).lines != one.lines
    assert set(one.pictures) == {"room"}


def test_the_scene_is_the_same_every_time():
    np.testing.assert_array_equal(image.scene(), image.scene())
