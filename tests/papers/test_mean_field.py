"""Truncated mixtures: scikit-learn's checks, what they learn, and their limits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.mixture import BayesianGaussianMixture
from sklearn.utils.estimator_checks import estimator_checks_generator

from papers.comparators.mean_field import Machine, SwitchingSVM, TruncatedSVM
from papers.data.switching import Switching
from structlearn import load, save
from structlearn.errors import ArgumentError

SHORT = TruncatedSVM(n_components=4, max_iter=10, random_state=0)
CHECKS = list(estimator_checks_generator(SHORT, mark="skip"))


@pytest.mark.parametrize("number", range(len(CHECKS)))
@pytest.mark.filterwarnings("ignore")  # several checks provoke warnings on purpose
def test_scikit_learn_check(number):
    estimator, check = CHECKS[number]
    check(estimator)


def rings(seed, n=200):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 2))
    return X, (np.hypot(*X.T) > 2).astype(int)


def test_it_learns_what_no_line_tells():
    model = TruncatedSVM(spread=0.1, random_state=0).fit(*rings(0))
    assert model.score(*rings(1)) > 0.85
    assert 2 < model.n_components_ <= 20


def test_without_a_loss_it_is_a_gaussian_mixture():
    """Gaussians and sizes are those of scikit-learn's variational mixture."""
    rng = np.random.default_rng(0)
    sizes = (20, 40, 60)
    places = np.repeat([[0.0, 0.0], [9.0, 9.0], [0.0, 9.0]], sizes, axis=0)
    X = places + rng.normal(size=(120, 2))
    model = TruncatedSVM(C=1e-9, n_components=3, max_iter=30, tol=0.0, spread=0.5, random_state=1)
    model.fit(X, np.arange(120) % 2)
    theirs = BayesianGaussianMixture(
        n_components=3, weight_concentration_prior=1.0, mean_precision_prior=0.1,
        mean_prior=np.zeros(2), degrees_of_freedom_prior=4.0, covariance_prior=0.5 * np.eye(2),
        reg_covar=0.0, max_iter=500, tol=1e-9, random_state=0,
    ).fit((X - X.mean(axis=0)) / X.std(axis=0))  # fmt: skip
    order = np.argsort(model.shares_.sum(axis=0))
    others = np.argsort(theirs.weights_)
    after = model.after_
    assert model.shares_.sum(axis=0)[order] == pytest.approx(sizes, abs=0.1)
    np.testing.assert_allclose(after.mean[order], theirs.means_[others], atol=1e-3)
    covariances = after.scale / after.degrees[:, None, None]
    np.testing.assert_allclose(covariances[order], theirs.covariances_[others], atol=1e-3)


def test_the_pull_of_labels_is_the_gradient_of_the_loss():
    """Raising the share of a component lowers the smoothed hinge by its pull."""
    rng = np.random.default_rng(1)
    V = rng.normal(size=(30, 2))
    labels = np.arange(30) % 3
    shares = rng.dirichlet(np.ones(4), 30)
    machine = Machine(0.7, 1.0)
    pull = machine.fit(shares, V, labels)
    each = machine.scores(V)
    eps = 0.05
    step = 1e-6

    def loss(given):
        total = np.einsum("tk,tkl->tl", given, each)
        own = total[np.arange(30), labels]
        raised = total + (np.arange(3) != labels[:, None])
        top = raised.max(axis=1)
        soft = top + eps * np.log(np.exp((raised - top[:, None]) / eps).sum(axis=1))
        return 1.4 * (soft - own)

    for k in range(4):
        moved = shares.copy()
        moved[:, k] += step
        np.testing.assert_allclose((loss(shares) - loss(moved)) / step, pull[:, k], atol=1e-4)


def test_chains():
    chain = Switching.draw("positive", random_state=3)
    train, test = chain.sample(300, 1), chain.sample(500, 2)
    model = SwitchingSVM(spread=0.25, max_iter=20, random_state=0)
    labels = np.array(["no", "yes"])[train.labels]
    halves = [train.features[:150], train.features[150:]], [labels[:150], labels[150:]]
    model.fit(*halves)
    found = model.predict([test.features])[0]
    assert (found == np.array(["no", "yes"])[test.labels]).mean() > 0.7
    assert model.score(*halves) > 0.7
    again = model.predict(test.features, lengths=[200, 300])
    assert [len(part) for part in again] == [200, 300]
    assert model.classes_.tolist() == ["no", "yes"]


def test_chains_without_likelihood_know_one_rule():
    X = np.random.default_rng(2).normal(size=(200, 2))
    y = (X[:, 0] > X[:, 1]).astype(int)
    model = SwitchingSVM(likelihood=False, n_components=4, max_iter=5, random_state=0)
    assert model.fit([X], [np.where(np.arange(200) % 3, y, -1)]).score([X], [y]) > 0.9


@pytest.mark.parametrize(
    ("name", "value"),
    [("C", 0.0), ("variance", -1.0), ("concentration", 0.0), ("n_components", 0), ("tol", -1.0)],
)
@pytest.mark.parametrize("model", [TruncatedSVM, SwitchingSVM])
def test_bad_parameters(model, name, value):
    X = np.arange(4.0)[:, None]
    y = np.array([0, 1, 0, 1])
    with pytest.raises(ArgumentError, match=name):
        model(**{name: value}).fit([X] if model is SwitchingSVM else X, [y])


def test_bad_sequences():
    X = [np.zeros((3, 2)), np.zeros((2, 1))]
    with pytest.raises(ArgumentError, match="sequence 1 has 1 features"):
        SwitchingSVM().fit(X, [[0, 1, 0], [1, 1]])
    with pytest.raises(ArgumentError, match="at least two classes"):
        SwitchingSVM().fit(X[:1], [[1, 1, 1]])
    with pytest.raises(ArgumentError, match="2 steps are missing"):
        SwitchingSVM().fit([np.array([[1.0], [np.nan], [np.nan]])], [[0, 1, 1]])


@pytest.mark.parametrize("change", [{"time_limit": 0.0}, {"max_iter": 1}, {"tol": 1.0}])
def test_files_know_how_the_rounds_ended(change, tmp_path):
    """Also where that is not what the number of rounds says."""
    X, y = rings(0)
    model = TruncatedSVM(**{"n_components": 3, "tol": 0.0, "random_state": 0} | change).fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.ended_ is model.ended_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
