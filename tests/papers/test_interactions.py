"""People who interact: the made-up frames, and the comparison of losses on few of them."""

from __future__ import annotations

import numpy as np
import pytest
from papers_toys import quick

from papers.catalogue import EXPERIMENTS
from papers.data.people import ACTIONS, draw_frames

MIRRORED = [0, 2, 1, 4, 3, 5]


def test_frames_have_the_structure_of_the_annotations():
    frames = draw_frames(300, np.random.default_rng(0))
    sizes = [len(frame.actions) for frame in frames]
    assert (min(sizes), max(sizes)) == (2, 7)
    counts = np.bincount(np.concatenate([frame.actions for frame in frames]))
    assert len(counts) == len(ACTIONS)
    assert counts[3] == counts.min() > 0  # high-fives are rare
    for frame in frames:
        assert frame.between.shape == (len(frame.edges), 150)
        pairs = {tuple(edge) for edge in frame.edges.tolist()}
        assert {(b, a) for a, b in pairs} == pairs
        alone = set(range(len(frame.actions))) - {a for a, _ in pairs}
        assert all(frame.actions[i] == 0 for i in alone)


def test_features_of_an_interaction_are_mirrored_on_the_way_back():
    frames = draw_frames(50, np.random.default_rng(1))
    for frame in frames:
        there, back = frame.between[::2], frame.between[1::2]
        for one, two in zip(there, back, strict=True):
            place = one.reshape(6, 5, 5)
            other = two.reshape(6, 5, 5)
            np.testing.assert_allclose(other, place[MIRRORED].transpose(0, 2, 1))
            assert place.sum() == pytest.approx(1.0)


def test_the_quick_version():
    done = quick(EXPERIMENTS["interactions"], trials=1)
    report = EXPERIMENTS["interactions"].report(done)
    rates, *confusions = report.tables
    assert rates.column("action") == [*ACTIONS, "all people"]
    for loss, table in zip(("hinge", "log", "hybrid"), confusions, strict=True):
        assert rates.column(loss)[-1].mean > 30.0  # chance has 20
        for row in table.rows:
            assert sum(row[1:]) == pytest.approx(100.0, abs=0.5)
    assert len(report.claims) == 4
