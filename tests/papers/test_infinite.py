"""Experiments with infinite models: their parts, and versions small enough for seconds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from papers.base import Settings
from papers.experiments import infinite, infinite_chain, infinite_motion


def test_states_take_the_number_of_the_truth():
    found = infinite_chain.matched(np.array([2, 2, 0, 0, 1, 2]), np.array([1, 1, 0, 1, 0, 0]))
    assert found.tolist() == [1, 1, 0, 0, 0, 1]


def test_local_features_do_not_depend_on_place_and_direction():
    """Turning a track by an angle changes nothing."""
    rng = np.random.default_rng(0)
    angle = 0.7
    heading = rng.uniform(-3, 3, 6)
    places = rng.normal(size=(6, 2))
    turned = places @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    tracks = [
        np.column_stack([where, np.sin(to), np.cos(to)])
        for where, to in ((places, heading), (5.0 + turned, heading + angle))
    ]
    one, other = map(infinite_motion.local, tracks)
    np.testing.assert_allclose(one, other, atol=1e-9)
    np.testing.assert_allclose(np.hypot(one[:, 2], one[:, 3]), one[:, 1])
    straight = np.column_stack([np.arange(4.0), np.zeros(4), np.zeros(4), np.ones(4)])
    np.testing.assert_allclose(infinite_motion.local(straight), [[0, 1, 1, 0]] * 4)


def test_chain_study():
    accuracies, behind = infinite_chain.study(Settings(quick=True), "same")
    names = accuracies.column("model")
    models = list(infinite_chain.models(0))
    assert names[: len(models)] == models
    assert set(infinite_chain.PAPER) < set(names)
    assert all(0.0 <= e.mean <= 100.0 for e in accuracies.column("positive"))
    oracle, gisvm = (names.index(n) for n in ("oracle, step alone", "GiSVM"))
    lead = accuracies.column("vague")[oracle].mean - accuracies.column("vague")[gisvm].mean
    assert behind.column("vague")[0].mean == pytest.approx(lead)


def test_states_are_shown():
    bars = infinite_chain.recovered(0, quick=True)
    assert len(bars) == 7
    assert {len(bar) for bar in bars.values()} == {100}
    image = infinite_chain.draw(bars).axes[0].images[0].get_array()
    assert image.shape == (7, 100, 3)


@pytest.mark.data
@pytest.mark.parametrize("run", [infinite.run, infinite_motion.bees, infinite_motion.actions])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_quick_runs(data_folder, run):
    record = run(Settings(quick=True))
    assert json.dumps(record.plain())
    for table in record.tables:
        assert len(table.rows) >= 5


@pytest.mark.data
def test_speakers_are_kept_apart(data_folder):
    rows = list(infinite.parkinsons("row", 0))
    assert len(rows) == 5
    assert sum(len(split.y_test) for split in rows) == 195
    groups = list(infinite.parkinsons("speaker", 0))
    assert {len(split.X[0]) for split in groups} == {10}


def test_what_models_of_actions_choose_from():
    for name, model in infinite_motion.models(seed=0, sweeps=1).items():
        for chosen in ParameterGrid(infinite_motion.GRIDS[name]):
            assert clone(model).set_params(**chosen).get_params().items() >= chosen.items()


class Constant:
    """A classifier that always says the same, and remembers what it was given."""

    def __init__(self, label):
        self.label = label

    def fit(self, X, y):
        self.given = X, y
        return self

    def predict(self, X):
        return np.full(len(X), self.label)

    def score(self, X, y):
        return float(np.mean(self.predict(X) == y))


def test_scores_of_a_split():
    split = infinite.Split(np.zeros((2, 1)), np.array([0, 1]), np.zeros((4, 1)), np.arange(4) % 2)
    accuracy, f1 = split.scores(Constant(1))
    assert accuracy == 50.0
    assert f1 == pytest.approx(100.0 * (0.0 + 2 / 3) / 2)  # no label 0 was found


def test_rows_of_sequences_are_joined_and_cut_again():
    model = Constant(7)
    alone = infinite_motion.Alone(model)
    X = [np.zeros((2, 3)), np.ones((4, 3))]
    Y = [np.array([7, 7]), np.array([1, 7, 1, 1])]
    alone.fit(X, Y)
    assert model.given[0].shape == (6, 3)
    assert model.given[1].tolist() == [7, 7, 1, 7, 1, 1]
    assert [found.tolist() for found in alone.predict(X)] == [[7, 7], [7, 7, 7, 7]]
    assert alone.score(X, Y) == 0.5


def test_everyone_in_the_paper_is_compared():
    assert set(infinite.models(0, quick=True)) == set(infinite.PAPER)
    assert set(infinite.models(0)) == set(infinite.PAPER)
    assert set(infinite_motion.models(0, sweeps=1)) == set(infinite_motion.PAPER)
