"""Experiments with infinite models: their parts, and versions small enough for seconds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from papers.base import Settings, Unit
from papers.data.switching import Switching
from papers.experiments import (
    infinite,
    infinite_chain,
    infinite_gaps,
    infinite_motion,
    infinite_states,
)
from papers.units import plain


def test_states_have_one_partner_each():
    truth = np.array([0, 0, 0, 1, 1, 1, 2, 2])
    states = np.array([5, 5, 3, 1, 1, 1, 1, 4])
    found = infinite_states.matched(states, truth)
    assert found.tolist() == [0, 0, 3, 1, 1, 1, 1, 2]
    assert infinite_states.one_to_one(states, truth) == 6 / 8
    split = np.arange(8)  # a state for each step: purity would be 1
    assert infinite_states.one_to_one(split, truth) == 3 / 8
    assert infinite_states.one_to_one(truth[::-1].copy(), truth[::-1]) == 1.0


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


def done(experiment, pick=lambda given: True):
    """Do the units of the quick version that are picked."""
    given = [each for each in experiment.units(Settings(quick=True)) if pick(each)]
    return [Unit(each, plain(experiment.work(**each))) for each in given]


def test_chain_study():
    experiment = infinite_chain.EXPERIMENTS[0]
    units = done(experiment)
    accuracies, behind = experiment.report(units).tables
    assert accuracies.column("model") == [
        *infinite_chain.PAPER,
        "oracle, step alone",
        "oracle, chain",
    ]
    assert all(0.0 <= e.mean <= 100.0 for e in accuracies.column("positive"))
    right = dict(zip(accuracies.column("model"), accuracies.column("vague"), strict=True))
    lead = right["oracle, step alone"].mean - right["GiSVM"].mean
    assert behind.column("vague")[0].mean == pytest.approx(lead)
    assert accuracies.column("states")[0] == ""  # an SVM has none
    assert all(e.mean >= 1.0 for e in accuracies.column("states")[2:5])


def test_states_are_shown():
    (experiment,) = infinite_states.EXPERIMENTS
    units = done(experiment)
    (table,) = experiment.report(units).tables
    assert len(table.rows) == 3 * 3
    assert len(experiment.report(units).claims) == 5
    figure = experiment.pictures["states"](units)
    assert figure.axes[1].images[0].get_array().shape == (10, 100, 3)
    assert all(1.0 <= e.mean <= 30.0 for e in table.column("states"))


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_quick_mixtures(data_folder):
    (experiment,) = infinite.EXPERIMENTS
    units = done(experiment)
    tables = experiment.report(units).tables
    assert [len(table.rows) for table in tables] == [len(infinite.SYSTEMS)] * 3
    assert tables[0].column("components")[-1].mean >= 1.0
    assert len(experiment.report(units).claims) == 7


@pytest.mark.data
@pytest.mark.parametrize("experiment", infinite_motion.EXPERIMENTS, ids=lambda e: e.name)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_quick_motions(data_folder, experiment):
    units = done(experiment, lambda given: given.get("features", "local") == "local")
    if experiment.name == "bee-dance":  # its report has all kinds of features
        units += [Unit({**u.given, "features": "as published"}, u.found) for u in units]
    for table in experiment.report(units).tables:
        assert len(table.rows) >= 5


@pytest.mark.data
def test_speakers_are_kept_apart(data_folder):
    rows = list(infinite.parkinsons("row", 0))
    assert len(rows) == 5
    assert sum(len(split.y_test) for split in rows) == 195
    groups = list(infinite.parkinsons("speaker", 0))
    assert {len(split.X[0]) for split in groups} == {10}


def test_what_models_of_actions_choose_from():
    every = infinite_motion.models(seed=0, sweeps=1)
    for name, grid in infinite_motion.GRIDS.items():
        for chosen in ParameterGrid(grid):
            params = clone(every[name]).set_params(**chosen).get_params()
            assert params.items() >= chosen.items()


def test_choices_are_made_by_those_who_are_held_out():
    rng = np.random.default_rng(0)
    Y = [np.full(4, i % 2) for i in range(8)]
    X = [rng.normal(y[:, None], 0.3, (4, 2)) for y in Y]
    chosen = infinite_motion.choose("SVM", X, Y, np.arange(8) < 2, seed=0)
    assert chosen in list(ParameterGrid(infinite_motion.GRIDS["SVM"]))


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
    assert set(infinite.models(0, quick=True)) == set(infinite.SYSTEMS) > set(infinite.PAPER)
    assert set(infinite.models(0)) == set(infinite.SYSTEMS)
    assert set(infinite_motion.models(0, sweeps=1)) > set(infinite_motion.PAPER)
    assert list(infinite_chain.models(0))[: len(infinite_chain.PAPER)] == list(infinite_chain.PAPER)


def test_gaps_are_taken_apart():
    experiment = infinite_gaps.EXPERIMENTS[0]
    units = done(experiment)
    ceilings, chain, rows, parts = experiment.report(units).tables
    assert len(ceilings.rows) == 2 * 3
    assert all(50.0 <= each.mean <= 100.0 for each in ceilings.column("oracle"))
    for model, table in ((infinite_gaps.CHAIN, chain), (infinite_gaps.ROWS, rows)):
        assert table.column("system") == list(infinite_gaps.SYSTEMS[model])
        held = table.column("system").index("true states held")
        assert table.column("states")[held].mean == 3.0
        own = [row[2].mean for row in parts.rows if row[0] == model]
        assert sum(own[:-1]) == pytest.approx(own[-1])
        behind = dict(zip(table.column("system"), table.column("all"), strict=True))
        assert own[-1] == pytest.approx(behind["paper's sampler"].mean)
    assert len(experiment.report(units).claims) == 9


@pytest.mark.parametrize("model", [infinite_gaps.InformedHMM, infinite_gaps.InformedSVM])
@pytest.mark.parametrize("held", [True, False])
def test_samplers_begin_at_the_states_that_they_are_told(model, held):
    steps = Switching.draw("positive", random_state=0).sample(60, 1)
    chain = model is infinite_gaps.InformedHMM
    learner = model(burn_in=0, n_draws=3, n_chains=1, n_moves=0, random_state=0, n_jobs=1)
    learner.told = steps.states, held
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three draws tell nothing of mixing
        learner.fit(*(([a] if chain else a) for a in (steps.features, steps.labels)))
    same = [np.array_equal(own.state.states, steps.states) for own in learner.chains_]
    assert all(same) == held


def test_svms_of_true_states_vote_by_the_shares_of_states():
    """States so far apart that each step tells its own: the label is that of the state's SVM."""
    chain = Switching(
        np.array([-30.0, 0.0, 30.0]), np.array([1.0, -1.0, 1.0]), np.full((3, 3), 1 / 3)
    )
    train, test = chain.sample(3000, 0), chain.sample(200, 1)
    learnt = infinite_gaps.learnt_chain(chain, train)
    np.testing.assert_allclose(learnt.means, chain.means, atol=0.2)
    np.testing.assert_allclose(learnt.transitions, chain.transitions, atol=0.07)
    found = infinite_gaps.svm_votes(learnt, train, test)
    assert (found == test.labels).mean() > 0.95
