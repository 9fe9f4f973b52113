"""Sequences on a card: objectives and fits equal those of the host."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from structlearn import SequenceLabeler
from structlearn._src.common.place import at

pytest.importorskip("triton")
pytest.importorskip("torch")
# Triton reads the variable when it is imported, so these tests run in a process of their own.
INSIDE = os.environ.get("TRITON_INTERPRET") == "1"
inside = pytest.mark.skipif(not INSIDE, reason="runs in the interpreter, by the first test")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:TRITON_")
LABELS = np.array(["B-x", "I-x", "O"])


@pytest.mark.skipif(INSIDE, reason="this is the interpreter")
def test_all_of_these_in_the_interpreter():
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stdout[-3000:]
    assert run.stdout.splitlines()[0].count(".") > 6  # tests that passed, not skipped ones


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def cuda():
    from structlearn._src.places.cuda import Cuda

    return Cuda("cpu")


def words(rng, n=9):
    """Sequences of words, each with a bag of attributes."""
    lengths = rng.integers(1, 6, n)
    return [[{f"w{rng.integers(6)}": 1.0, "size": rng.normal()} for _ in range(k)] for k in lengths]


def labels(rng, X, hidden=0.0, legal=False):
    drawn = [rng.integers(0, 3, len(x)) for x in X]
    if legal:  # nothing inside before a beginning
        drawn = [np.where(y == 1, 2, y) for y in drawn]
    return [
        [None if rng.random() < hidden else str(LABELS[i]) for i in y] if hidden else
        [str(LABELS[i]) for i in y]
        for y in drawn
    ]  # fmt: skip


@inside
@pytest.mark.parametrize(
    ("options", "hidden"),
    [
        ({}, 0.0),
        ({"features": "sparse"}, 0.0),
        ({"loss": "log"}, 0.4),
        ({"loss": "hinge", "cost": "hamming-mean"}, 0.0),
        ({"loss": "hybrid", "alpha": 0.3, "C": 3.0}, 0.0),
        ({"forbidden": "BIO"}, 0.0),
    ],
)
def test_objectives_equal_those_of_the_host(rng, options, hidden):
    X = words(rng)
    Y = labels(rng, X, hidden, legal="forbidden" in options)
    host = SequenceLabeler(**options).objective(X, Y)
    card = cuda().objective(host)
    assert type(card) is not type(host)
    weights = rng.normal(size=host.n_weights)
    expected = host.value_gradient(weights)
    found = card.value_gradient(weights)
    assert found.value == pytest.approx(expected.value, rel=1e-5)
    np.testing.assert_allclose(found.gradient, expected.gradient, atol=1e-5)
    np.testing.assert_allclose(card.losses(weights), host.losses(weights), atol=1e-5)
    bound = card.linearise(weights)
    assert bound.value(weights) == pytest.approx(expected.value, rel=1e-5)


@inside
def test_dense_features_of_frequent_kinds(rng):
    """A constant feature is in more rows than one block of threads adds up."""
    X = [np.column_stack([np.ones(40), rng.normal(size=(40, 2))]) for _ in range(8)]
    Y = [[str(LABELS[i]) for i in rng.integers(0, 3, 40)] for _ in X]
    from scipy.sparse import csr_array

    for kind in (np.asarray, csr_array):
        host = SequenceLabeler().objective([kind(x) for x in X], Y)
        card = cuda().objective(host)
        weights = rng.normal(size=host.n_weights)
        expected = host.value_gradient(weights).gradient
        found = card.value_gradient(weights).gradient
        np.testing.assert_allclose(found, expected, atol=1e-4)


@inside
def test_a_fit_has_the_same_optimum(rng):
    X = words(rng, 6)
    Y = labels(rng, X)
    options = {"max_iter": 60, "tol": 1e-5, "solver": "lbfgs"}
    host = SequenceLabeler(**options).fit(X, Y)
    with at(cuda()):
        card = SequenceLabeler(**options).fit(X, Y)
    assert card.value_ == pytest.approx(host.value_, rel=1e-4)
    for mine, other in zip(card.predict(X), host.predict(X), strict=True):
        assert list(mine) == list(other)


@inside
@pytest.mark.parametrize("sizes", [True, False])
def test_steps_on_a_card_are_those_of_the_host(rng, tmp_path, sizes):
    """With a diagonal and without; a checkpoint keeps them on the host, with the same weights."""
    kept = slice(None) if sizes else slice(1)
    X = [[dict([*x.items()][kept]) for x in sentence] for sentence in words(rng, 6)]
    Y = labels(rng, X)
    options = {"max_iter": 12, "tol": None, "solver": "lbfgs", "features": "sparse"}
    seen = []
    with at(cuda()):
        moved = SequenceLabeler(
            **options, callbacks=[lambda event: seen.append(event.weights.copy())]
        ).fit(X, Y)
        saved = SequenceLabeler(**options, checkpoint=tmp_path / "run").fit(X, Y)
    host = SequenceLabeler(**options).fit(X, Y)
    for found in (moved, saved):
        assert found.value_ == pytest.approx(host.value_, rel=1e-5)
        np.testing.assert_allclose(found.weights_, host.weights_, atol=2e-3)
    assert len(seen) == 12
    # The best are kept: single precision decides which of the last steps these are.
    assert min(np.abs(weights - moved.weights_).max() for weights in seen) < 1e-6


@inside
def test_which_steps_are_taken_on_a_card(rng):
    from structlearn._src.cuda.card_lbfgs import CardLbfgs
    from structlearn.solvers import Lbfgs, Owlqn

    X = words(rng, 3)
    host = SequenceLabeler().objective(X, labels(rng, X))
    card = cuda().objective(host)
    assert cuda().solver(Lbfgs(memory=3), card) == CardLbfgs(memory=3)
    for solver, objective in ((Owlqn(), card), (Lbfgs(), host)):
        assert cuda().solver(solver, objective) is solver


@inside
def test_solvers_of_single_sequences_leave_cards_alone(rng):
    X = words(rng, 4)
    Y = labels(rng, X)
    with at(cuda()), pytest.raises(ValueError, match="card"):
        SequenceLabeler(solver="sdca").fit(X, Y)


def test_no_card_no_work():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a card")
    from structlearn import on
    from structlearn.errors import PlaceError

    with pytest.raises(PlaceError, match="cuda"), on("cuda"):
        pytest.fail("a block was entered")
