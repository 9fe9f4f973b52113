"""Grids with hidden labels: the objects, and noisy images, in versions of seconds."""

from __future__ import annotations

import numpy as np
import pytest
from papers_toys import quick

from papers.base import Settings, Unit
from papers.catalogue import EXPERIMENTS
from papers.experiments import objects
from papers.experiments.grids import make_examples, make_model
from papers.experiments.trio import HIDDEN_CRF, LATENT, MARGINAL, TRIO, objective
from papers.inside import HIDDEN, InferenceSettings

SHAPES = [(2, 3), (3, 2)]
LABELS = np.array([0, -1, 1, 0, 1, 1, -1, 0, 0, 1, 1, -1])


def examples():
    features = np.random.default_rng(0).normal(size=(12, 2))
    return make_examples(SHAPES, features, LABELS, 2), features


def test_nodes_without_a_label_are_hidden_and_edges_are_those_of_grids():
    found, _ = examples()
    wiring = found.structure.wiring
    np.testing.assert_array_equal(wiring.roles == HIDDEN, LABELS < 0)
    assert [len(group) for group in found.structure.groups] == [12, 4 + 3, 3 + 4]


@pytest.mark.parametrize("learner", [MARGINAL, LATENT, HIDDEN_CRF], ids=lambda t: t.letter)
def test_objectives_are_those_of_listing_all_labellings(learner):
    found, features = examples()
    model = make_model(2, 2)
    rng = np.random.default_rng(1)
    weights = rng.normal(size=model.n_weights)
    nodes = features @ weights[:4].reshape(2, 2)
    right, down = weights[4:8].reshape(2, 2), weights[8:].reshape(2, 2)
    losses = 0.0
    for first, (_, columns) in zip((0, 6), SHAPES, strict=True):
        truth = LABELS[first : first + 6]
        every = np.indices((2,) * 6).reshape(6, -1).T
        scores = sum(nodes[first + i, every[:, i]] for i in range(6))
        for i in range(6):
            if (i + 1) % columns:
                scores = scores + right[every[:, i], every[:, i + 1]]
            if i + columns < 6:
                scores = scores + down[every[:, i], every[:, i + columns]]
        seen = truth >= 0
        wrong = (every[:, seen] != truth[seen]).sum(axis=1)
        fits = wrong == 0
        eps_y, eps_h = {"M": (0.0, 1.0), "L": (0.0, 0.0), "H": (1.0, 1.0)}[learner.letter]
        cost = 0.0 if learner is HIDDEN_CRF else wrong
        _, which = np.unique(every[:, seen], axis=0, return_inverse=True)
        sums = [soft((scores + cost)[which.ravel() == g], eps_h) for g in range(which.max() + 1)]
        losses += soft(np.array(sums), eps_y) - soft(scores[fits], eps_h)
    goal = objective(learner, model, found, 2, InferenceSettings(method="exact", n_jobs=1))
    assert goal.value(weights) == pytest.approx(0.5 * weights @ weights + losses, rel=1e-9)


def soft(values, eps):
    top = values.max()
    return top if eps == 0.0 else top + eps * np.log(np.exp((values - top) / eps).sum())


def test_the_quick_version_of_segmentation():
    done = quick(EXPERIMENTS["segmentation"], trials=1)
    report = EXPERIMENTS["segmentation"].report(done)
    (table,) = report.tables
    assert table.column("hidden (%)") == [10, 90]
    assert all(table.column(t.letter)[0].mean > 40.0 for t in TRIO)  # chance has 20
    assert len(report.claims) == 3


def test_shares_of_objects_are_those_of_both_halves():
    given = EXPERIMENTS["objects"].units(Settings(trials=2))
    assert len(given) == 2 * 2 * 3
    done = [
        Unit(
            each, {"patches": [10] * 5, "right": [5 + each["half"] + (each["learner"] == "M")] * 5}
        )
        for each in given
    ]
    found = objects.shares(done)
    np.testing.assert_allclose(found["M"], np.full((2, 5), 65.0))
    np.testing.assert_allclose(found["L"], np.full((2, 5), 55.0))


@pytest.mark.data
def test_the_quick_version_of_objects(data_folder):
    done = quick(EXPERIMENTS["objects"], most=3)
    assert all(sum(unit.found["right"]) > 0 for unit in done)
    table, *_ = EXPERIMENTS["objects"].report(done).tables
    assert table.column("object") == [*objects.OBJECTS, "mean"]
