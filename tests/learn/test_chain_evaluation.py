"""One pass over labelled sequences against the worlds, for any number of threads."""

from __future__ import annotations

from dataclasses import replace
from threading import Thread

import numpy as np
import pytest

from chain_objectives import chains
from structlearn._src.common import threads
from structlearn._src.kernels.chain.evaluate import PHASES
from structlearn._src.kernels.jit import lean
from structlearn._src.kernels.team import done, make_board, take
from structlearn._src.learn import chain_evaluation
from structlearn._src.learn.objective import TwoWorlds
from structlearn._src.model.model import LinearModel
from structlearn._src.model.term import PairsTerm, Sparse
from structlearn._src.text.rows import from_dense

KINDS = {
    "sparse": {"features": "sparse"},
    "pairs": {"features": "pairs", "edges": "seen"},
    "no edges": {"features": "pairs", "edges": "none"},
    "bars": {"features": "sparse", "bars": True, "weighted": True},
    "single": {"features": "sparse", "longest": 1, "edges": "none"},
}


@pytest.fixture(autouse=True)
def _small_ranges(monkeypatch):
    monkeypatch.setitem(threads.GRAIN, "features", 20)
    monkeypatch.setitem(threads.GRAIN, "sequences", 20)


def text(loss, values):
    """Features of many labels, of few, and of few positions, as words are, perhaps with values."""
    plain = chains(seed=5, n=40, states=9, loss=loss, features="pairs", edges="seen")
    labels, rng = plain.examples.labels, np.random.default_rng(5)
    x = np.zeros((len(labels), 60))
    for d in range(60):
        near = rng.random(len(labels)) < 0.3 if d < 10 else labels == d % 9
        x[near if d < 40 else rng.choice(len(labels), d % 4), d] = 1.0
    x *= rng.normal(size=x.shape) if values else 1.0
    features = Sparse(from_dense(x))
    model = LinearModel(((PairsTerm.seen(features, labels, 9),), *plain.model.groups[1:]))
    inputs = ((features,), *plain.examples.inputs[1:])
    return replace(plain, model=model, examples=replace(plain.examples, inputs=inputs))


@pytest.mark.parametrize("values", [False, True])
def test_features_are_rare_or_frequent_and_of_few_labels_or_many(values):
    objective = text("log", values)
    chains_, layout = objective.chain_arrays, objective.chain_layout
    assert len(layout.moves.which) > 0
    assert 0 < layout.n_common < len(layout.moves.origins)
    assert layout.rare[-1] > 0
    weights = np.random.default_rng(0).normal(size=objective.n_weights)
    primal, back = layout.to_kernel(chains_, weights, 2), np.zeros(len(weights))
    layout.from_kernel(chains_, primal, back, 2)
    np.testing.assert_array_equal(back, weights)


@pytest.mark.parametrize("loss", ["log", "hinge", "hybrid"])
@pytest.mark.parametrize("kind", [*KINDS, "words", "numbers"])
def test_values_and_gradients_are_those_of_the_worlds(kind, loss):
    if kind in KINDS:
        objective = chains(seed=3, n=40, loss=loss, **KINDS[kind])
    else:
        objective = text(loss, kind == "numbers")
    rng = np.random.default_rng(0)
    for scale in (0.1, 3.0):
        weights = rng.normal(0.0, scale, objective.n_weights)
        want = TwoWorlds.loss_gradient(objective, weights)
        for n_jobs in (1, 2, 3, 8):
            same = replace(objective, settings=replace(objective.settings, n_jobs=n_jobs))
            got = same.loss_gradient(weights)
            assert same._evaluation is not None
            np.testing.assert_allclose(got.value, want.value, rtol=1e-10)
            np.testing.assert_allclose(got.gradient, want.gradient, rtol=1e-8, atol=1e-9)
            loss = TwoWorlds.loss_value(objective, weights)
            assert same.loss_value(weights) == pytest.approx(loss, rel=1e-10)
            for _ in range(3):  # whoever helps whom
                again = same.loss_gradient(weights)
                np.testing.assert_array_equal(again.gradient, got.gradient)
            penalised = same.value_gradient(weights).gradient
            np.testing.assert_allclose(penalised, got.gradient + weights, rtol=1e-12, atol=1e-12)


@lean
def hold(board, phase):
    """Clear a range, as far as others can see, and take its first sequence."""
    take(board, phase)
    done(board, phase)
    take(board, phase)


@lean
def release(board, phase):
    """Let the others go on."""
    done(board, phase)


def test_sequences_of_a_range_are_added_in_their_order(monkeypatch):
    """While a thread has not added its sequence, another one can only compute the next."""
    objective = text("log", values=False)
    objective = replace(objective, settings=replace(objective.settings, n_jobs=1))
    weights = np.random.default_rng(0).normal(size=objective.n_weights)
    rest = objective.take(np.arange(1, objective.n_examples)).loss_gradient(weights)
    boards, rooms, found = [], [], []

    def held(phases):
        boards.append(make_board(phases))
        hold(boards[-1], PHASES)
        return boards[-1]

    monkeypatch.setattr(chain_evaluation, "make_board", held)

    def cleared(scratch):
        rooms.append(np.zeros(scratch.size))
        return rooms[-1]

    monkeypatch.setattr(threads.Scratch, "take", cleared)
    thread = Thread(target=lambda: found.append(objective.loss_gradient(weights)), daemon=True)
    thread.start()
    thread.join(0.2)  # it would be through long before
    assert not rooms[0][objective.chain_layout.size :].any()
    release(boards[0], PHASES)
    thread.join(60.0)
    np.testing.assert_allclose(found[0].gradient, rest.gradient, atol=1e-12)


def test_weights_that_cannot_be_written_to():
    objective = chains(features="pairs", loss="log")
    weights = np.ones(objective.n_weights)
    want = objective.value_gradient(weights)
    weights.flags.writeable = False
    np.testing.assert_array_equal(objective.value_gradient(weights).gradient, want.gradient)


def test_a_tangent_counts():
    """A copy with a tangent must not use what was made for the objective without one."""
    objective = chains(features="sparse", loss="log")
    weights = np.random.default_rng(1).normal(size=objective.n_weights)
    value, gradient, _ = objective.loss_gradient(weights)
    bound = objective.linearise(weights)
    got = bound.loss_gradient(weights)
    assert got.value == pytest.approx(value)
    np.testing.assert_allclose(got.gradient, gradient, atol=1e-9)
    other = np.zeros(objective.n_weights)
    assert bound.loss_gradient(other).value >= objective.loss_gradient(other).value - 1e-9


def test_dense_features_do_not_take_this_way():
    assert chains(loss="log")._evaluation is None
