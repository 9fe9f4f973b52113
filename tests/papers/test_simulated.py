"""Hidden chains and grids, on versions small enough for seconds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from papers_toys import quick

from papers.base import Estimate
from papers.catalogue import EXPERIMENTS
from papers.data.synthetic import Spread
from papers.experiments import convergence, uncertainty
from papers.experiments.field import AVERAGED, CHAIN, GRID, WAYS, Trial
from papers.experiments.trio import MARGINAL, TRIO

SMALL = replace(CHAIN, rows=5, states=2, n_train=6, n_test=7)


def _scores(field, inputs):
    """Log potentials of all labellings of the cells, given the inputs of one example."""
    n, states = field.cells.shape
    every = np.indices((states,) * n).reshape(n, -1).T
    scores = sum(
        field.cells[i, every[:, i]] + field.sight[i, inputs[i], every[:, i]] for i in range(n)
    )
    for (i, j), table in zip(field.edges, field.pairs, strict=True):
        scores = scores + table[every[:, i], every[:, j]]
    return every, scores


def test_true_weights_are_those_of_the_field():
    """Marginal MAP with the weights of the field is what listing all labellings finds."""
    trial = Trial.draw(SMALL, [3, 1])
    field, seen = trial.field, ~trial.field.hidden
    inputs, _ = field.sample(SMALL.n_train + SMALL.n_test, _data_stream([3, 1]))
    right = []
    for x, z in zip(inputs[SMALL.n_train :], trial.truth, strict=True):
        every, scores = _scores(field, x)
        outputs, which = np.unique(every[:, seen], axis=0, return_inverse=True)
        sums = np.bincount(which.ravel(), np.exp(scores))
        right.append(outputs[sums.argmax()] == z[seen])
    nodes = np.concatenate([field.sight, field.cells[:, None]], axis=1)
    weights = np.concatenate([nodes.ravel(), field.pairs.ravel()])
    assert trial.accuracy(MARGINAL, weights) == pytest.approx(100 * np.mean(right))


def _data_stream(seed):
    return np.random.default_rng(np.random.SeedSequence(seed).spawn(3)[1])


def test_hidden_cells_have_no_labels_and_weights_are_untied():
    trial = Trial.draw(CHAIN, [0, 0])
    labels = trial.train.labels.reshape(20, 20)
    assert (labels[:, 1::2] == -1).all()
    assert (labels[:, ::2] >= 0).all()
    assert trial.model.n_weights == 20 * 4 + 20 * 16 + 19 * 16
    assert Trial.draw(GRID, [0, 0]).model.n_weights == 36 * 20 + 60 * 16


def test_another_spread_keeps_start_and_pairs():
    one, two = (Trial.draw(CHAIN, [1, 2], Spread(hidden_input=s)) for s in (3.0, 0.0))
    np.testing.assert_array_equal(one.start, two.start)
    np.testing.assert_array_equal(one.field.pairs, two.field.pairs)


@pytest.mark.parametrize("learner", TRIO, ids=lambda learner: learner.letter)
def test_bounds_never_rise_with_exact_inference(learner):
    fit = Trial.draw(SMALL, [0, 0]).fit(learner, "CCCP, never rising")
    assert fit.n_iter > 1
    assert (np.diff(fit.history.value) <= 1e-9 * fit.history.value[1:]).all()


def test_averages_beat_the_start_and_chance():
    trial = Trial.draw(CHAIN, [0, 1])
    for learner in TRIO:
        fit = trial.fit(learner, AVERAGED)
        assert fit.value < 0.6 * trial.objective(learner).value(trial.start)
        assert trial.accuracy(learner, fit.weights) > 50.0  # chance has 25


def test_messages_train_on_a_grid():
    trial = Trial.draw(replace(GRID, rows=4), [0, 0])
    fit = trial.fit(MARGINAL, "SGD, the paper's steps")
    assert fit.value < 0.7 * trial.objective(MARGINAL).value(trial.start)
    assert trial.accuracy(MARGINAL, fit.weights) > 50.0


def test_likelihoods_are_those_of_listing_all_labellings():
    trial = Trial.draw(SMALL, [4, 1])
    weights = np.random.default_rng(0).normal(size=trial.model.n_weights)
    nodes, edges = trial.model.push(weights, trial.test.inputs, 1)
    nodes, edges = nodes.reshape(7, 5, 2), edges.reshape(7, 4, 2, 2)
    every = np.indices((2,) * 5).reshape(5, -1).T
    logs = []
    for x, e, z in zip(nodes, edges, trial.truth, strict=True):
        scores = sum(x[i, every[:, i]] for i in range(5))
        scores = scores + sum(e[i, every[:, i], every[:, i + 1]] for i in range(4))
        fits = (every[:, ::2] == z[::2]).all(axis=1)
        logs.append(np.log(np.exp(scores[fits]).sum() / np.exp(scores).sum()))
    assert trial.likelihood(weights) == pytest.approx(np.mean(logs), rel=1e-9)


def test_table_2_has_a_row_for_every_way():
    done = quick(EXPERIMENTS["chain"])
    report = EXPERIMENTS["chain"].report(done)
    (table,) = report.tables
    assert table.column("trained by") == list(WAYS)
    for learner in TRIO:
        assert all(40.0 < cell.mean < 100.0 for cell in table.column(learner.letter))
    assert len(report.claims) == 5


def test_table_3_has_all_five_models():
    done = quick(EXPERIMENTS["hidden-potentials"])
    (table,) = EXPERIMENTS["hidden-potentials"].report(done).tables
    assert table.column("sigma_h") == ["10", "0.1"]
    for name in uncertainty.MODELS:
        assert all(40.0 < cell.mean < 100.0 for cell in table.column(name))


@pytest.mark.parametrize("name", ["likelihood", "hidden-evidence", "convergence"])
def test_quick_versions(name):
    report = EXPERIMENTS[name].report(quick(EXPERIMENTS[name]))
    assert report.tables
    assert report.claims


def test_maximising_wavers_most():
    (table,) = EXPERIMENTS["convergence"].report(quick(EXPERIMENTS["convergence"])).tables
    wavering = [cell.mean for cell in table.column("wavering (%)")]
    assert wavering[1] > wavering[0] > 5 * wavering[2] > 0


def test_error_falls_with_training_size():
    done = quick(EXPERIMENTS["training-size"])
    (table,) = EXPERIMENTS["training-size"].report(done).tables
    for learner in TRIO:
        few, many = (cell.mean for cell in table.column(learner.letter))
        assert many < few


def test_wavering_of_known_curves():
    curves = np.array([[9.0, 9.0, 9.0, 9.0, 1.0, 3.0, 1.0, 3.0]])
    assert convergence.wavering(curves) == pytest.approx([100.0])


def test_estimates():
    assert Estimate.of([1.0, 3.0]) == (2.0, pytest.approx(1.0))
