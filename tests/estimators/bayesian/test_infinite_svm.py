"""InfiniteSVM and InfiniteLogit: scikit-learn's checks, recovery, seeds, errors and interrupts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import estimator_checks_generator

from papers.comparators import InfiniteLogit
from papers.data.switching import Switching
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.bayesian.infinite_svm import InfiniteSVM

SHORT = {"burn_in": 20, "n_draws": 10, "n_start": 5, "random_state": 0, "n_chains": 1}
CHECKS = list(estimator_checks_generator(InfiniteSVM(**SHORT), mark="skip"))
MODELS = [InfiniteSVM, InfiniteLogit]


@pytest.mark.parametrize("number", range(len(CHECKS)))
@pytest.mark.filterwarnings("ignore")  # several checks provoke warnings on purpose
def test_scikit_learn_check(number):
    estimator, check = CHECKS[number]
    check(estimator)


def clouds(seed=0, n=120):
    """Three clouds, in each of which another line tells the classes apart."""
    rng = np.random.default_rng(seed)
    places = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    z, noise = rng.integers(3, size=n), rng.normal(size=(n, 2))
    lines = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])
    return places[z] + noise, np.where((noise * lines[z]).sum(axis=1) > 0, "up", "down"), z


@pytest.mark.parametrize("model", MODELS)
def test_components_and_their_classifiers_are_found(model):
    X, y, z = clouds(0, 200)
    found = model(burn_in=60, n_draws=20, n_start=8, spread=0.1, random_state=1).fit(X, y)
    new, truth, _ = clouds(1, 300)
    assert found.score(new, truth) > 0.9
    assert LinearSVC().fit(X, y).score(new, truth) < 0.75
    counts = np.zeros((found.assigned_.max() + 1, 3))
    np.add.at(counts, (found.assigned_, z), 1)
    assert counts.max(axis=1).sum() >= 195  # components do not reach over clouds
    assert 3 <= found.n_components_ <= 12
    np.testing.assert_allclose(found.predict_proba(new).sum(axis=1), 1.0)
    assert found.classes_.tolist() == ["down", "up"]


def test_near_what_a_single_step_can_tell():
    """Within 2.5 points of the Bayes rule of one step, on average over sets."""
    behind = []
    for seed in range(8):
        chain = Switching.draw("vague", random_state=[0, seed])
        train, test = chain.sample(500, [1, seed]), chain.sample(2000, [2, seed])
        model = InfiniteSVM(
            burn_in=60, n_draws=60, n_start=10, spread=0.25, concentration=2.0, random_state=0
        )
        model.fit(train.features, train.labels)
        oracle = chain.label_probabilities(test.features, alone=True)[:, 1] > 0.5
        right = (model.predict(test.features) == test.labels).mean()
        behind.append(100 * ((oracle == test.labels).mean() - right))
    assert np.mean(behind) < 2.5


def test_chains_and_threads_give_the_same_draws():
    X, y, _ = clouds(2, 40)
    options = SHORT | {"n_chains": 2, "burn_in": 3, "n_draws": 4}
    one, two = (InfiniteSVM(**options | {"n_jobs": n}).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert len(one.draws_) == 8
    assert [chain.sweeps for chain in one.chains_] == [7, 7]
    traces = one.traces()
    assert {name: rows.shape for name, rows in traces.items()} == dict.fromkeys(
        ("n_components", "concentration", "log_potential"), (2, 4)
    )
    assert one.diagnostics()["n_components"]["mean"] == traces["n_components"].mean()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("C", 0.0), ("cost", -1.0), ("variance", 0.0), ("spread", 0.0), ("strength", 0.0),
        ("concentration", 0.0), ("concentration", (1.0, 0.0)), ("degrees", 1.9), ("n_start", 0),
        ("burn_in", -1), ("n_draws", 0), ("thin", 0), ("n_chains", 0), ("n_jobs", 0),
        ("time_limit", -1.0), ("random_state", "x"), ("warm_start", 1), ("progress", 3),
    ],
)  # fmt: skip
def test_bad_parameters(name, value):
    X, y, _ = clouds(0, 10)
    with pytest.raises(ArgumentError, match=name):
        InfiniteSVM(**SHORT | {name: value}).fit(X, y)


def test_one_class_is_refused():
    with pytest.raises(ArgumentError, match="y has one class only, 'a'"):
        InfiniteSVM(**SHORT).fit(np.eye(3), ["a", "a", "a"])
