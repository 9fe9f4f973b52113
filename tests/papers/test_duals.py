"""Experiments with paired-dual learning: their fields against slow versions, and quick runs."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from papers.base import Settings
from papers.experiments import duals, faces, trust
from papers.experiments.duals import Curve, Race
from structlearn._src.field.examples import make_field_examples
from structlearn._src.field.hinges import Hinges
from structlearn._src.learn.field_objective import FieldObjective

# ---- curves --------------------------------------------------------------------------------


def test_steps_until():
    curve = Curve("", np.array([2.0, 4, 8]), np.array([3.0, 1, 2]), np.zeros(3), np.zeros(1))
    assert [curve.until(x) for x in (3.5, 1.5, 0.5)] == [2.0, 4.0, float("inf")]


def test_race():
    """All learners go down from the same weights, and count the steps of both worlds."""
    rng = np.random.default_rng(0)
    n, m = 10, 60
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    hinges = Hinges(
        np.arange(0, 2 * m + 1, 2), pairs.ravel(), rng.normal(size=2 * m), rng.normal(size=m),
        np.zeros(m), np.full(m, 2), np.arange(m) % 5, n, 5,
    )  # fmt: skip
    labels = np.where(np.arange(n) < 3, np.nan, np.round(rng.random(n)))
    objective = FieldObjective(make_field_examples(hinges, labels, strength=0.3))
    start = objective.value(objective.start)
    curves = Race(updates=20, warm_up=3, points=5).run(objective, lambda w: float(w.sum()))
    for curve in curves:
        assert curve.values[-1] < start
        assert curve.scores[-1] == curve.weights.sum()
        assert (np.diff(curve.steps) > 0).all()
    assert curves[0].steps[-1] == 2 * (20 + 1 + 3)
    assert curves[1].steps[-1] <= 10 * curves[0].steps[-1]
    table = duals.table("toy", [curves, curves], "sum")
    assert table.column("learner") == ["paired, N=1", "paired, N=10", "EM", "subgradient"]
    own = 100 * curves[3].until(1.01 * curves[3].values[-1]) / curves[3].steps[-1]
    assert table.rows[3][4] == f"{own:.1f}"
    assert duals.draw(curves, "sum") is not None


# ---- trust ---------------------------------------------------------------------------------


def test_forms_of_triads():
    """Against a loop over all triples, by the truth of the clause at random values."""
    rng = np.random.default_rng(0)
    links = np.array([(a, b) for a, b in itertools.permutations(range(5), 2) if rng.random() < 0.6])
    network = trust.Network(links, np.round(rng.random(len(links))), np.arange(len(links)) % 8)
    held = network.folds == 0
    grounding = network.field(np.ones(len(links), bool), held)
    hinges, (atoms, (sources, targets)) = grounding.hinges, grounding.tables.arguments("Trusts")
    y = rng.random(hinges.n_variables)
    known = {tuple(link): value for link, value in zip(links.tolist(), network.trust, strict=True)}
    ends = zip(sources.tolist(), targets.tolist(), strict=True)
    known |= {link: y[atom] for atom, link in zip(atoms, ends, strict=True)}
    asked = {tuple(link) for link in links[held].tolist()}

    def slow(first, second, one, other):
        """Sum of squared distances to satisfaction over triples with an open link."""
        total = 0.0
        for a, b, c in itertools.permutations(range(5), 3):
            ends = {"A": a, "B": b, "C": c}
            three = [tuple(ends[x] for x in pair) for pair in (first, second, "AC")]
            if all(link in known for link in three) and asked.intersection(three):
                p, q, r = (known[link] for link in three)
                p, q = (1 - p if one else p), (1 - q if other else q)
                head = r if one == other else 1 - r
                total += max(p + q - 1 - head, 0.0) ** 2
        return total

    kinds = itertools.product(("AB", "BA"), ("BC", "CB"), (False, True), (False, True))
    found = hinges.hinges(y)
    np.testing.assert_allclose(found[:16], [slow(*kind) for kind in kinds], atol=1e-9)
    assert found[:16].min() >= 0.0
    assert found[:16].max() > 0.0


def test_folds_of_links():
    rng = np.random.default_rng(1)
    links = np.array(list(itertools.permutations(range(6), 2)))
    network = trust.Network(links, np.round(rng.random(30)), np.arange(30) % 8)
    learn, test = network.split(3)
    for grounding, fold in ((learn, 2), (test, 3)):
        labels = grounding.tables.labels()
        held = network.folds == fold
        np.testing.assert_array_equal(labels[: held.sum()], network.trust[held])
        assert np.isnan(labels[held.sum() :]).all()
    assert learn.tables.relation("Knows").size == 30 - (network.folds == 3).sum()
    assert 0.0 < network.means(3) <= 1.0


# ---- faces ---------------------------------------------------------------------------------


def images(seed=0, n=6):
    return np.random.default_rng(seed).random((n, 64, 64))


def test_blocks_and_back():
    some = images()
    small = faces.blocks(some, 16)
    assert small[2, 5] == pytest.approx(some[2, 16:32, 16:32].mean())
    made = faces.Faces(some, images(1), 16, 8)
    mean = made.outputs(some).mean(axis=0)
    np.testing.assert_allclose(made.complete(mean[None])[0], some[:, 32:].mean(axis=0))
    flat = made.complete(mean[None] + 0.01)[0]
    np.testing.assert_allclose(flat, some[:, 32:].mean(axis=0) + 0.01)
    ramp = np.arange(4.0)[None, None, :] * np.ones((1, 3, 1))
    large = faces.enlarged(ramp, 2)
    np.testing.assert_allclose(large[0, 0], [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3])


def test_field_of_faces():
    """Energy by loops over states, inputs and outputs."""
    rng = np.random.default_rng(0)
    inputs = rng.random((3, 4))
    n_outputs = 5
    n_states = 6
    made = faces.Field(inputs, n_outputs)
    hinges = made.hinges
    weights, y = rng.random(hinges.n_groups), rng.random(hinges.n_variables)

    def square(value):
        return max(value, 0.0) ** 2

    total = 0.0
    w = iter(weights)
    values = y.reshape(3, -1)
    outputs = values[:, :n_outputs]
    states = values[:, n_outputs:]
    for side in range(4):
        for k, j in itertools.product(range(n_states), range(4)):
            weight = next(w)
            for x, z in zip(inputs[:, j], states[:, k], strict=True):
                total += weight * square((x - z, 1 - x - z, z - x, z - (1 - x))[side])
    for side in range(4):
        for k, j in itertools.product(range(n_states), range(n_outputs)):
            weight = next(w)
            for out, z in zip(outputs[:, j], states[:, k], strict=True):
                total += weight * square((z - out, z + out - 1, 1 - z - out, out - z)[side])
    for side in range(2):
        for j in range(n_outputs):
            weight = next(w)
            total += weight * sum(square((1 - out, out)[side]) for out in outputs[:, j])
    for k in range(n_states - 1):
        weight = next(w)
        total += weight * ((states[:, k] - states[:, k + 1]) ** 2).sum()
    assert next(w, None) is None
    assert hinges.energy(y, weights) == pytest.approx(total)
    known = made.labels(outputs)
    assert np.isnan(known).sum() == 3 * n_states
    np.testing.assert_array_equal(known[~np.isnan(known)], outputs.ravel())


# ---- quick runs ------------------------------------------------------------------------------


@pytest.mark.data
def test_quick_epinions(data_folder):
    record = trust.epinions(Settings(quick=True))
    learners, baseline = record.tables
    assert float(learners.rows[0][3]) < 30.0  # percent of what EM takes, in this small version
    assert float(learners.rows[0][-1]) > float(baseline.rows[0][-1])
    assert json.loads(json.dumps(record.plain()))["name"] == "epinions"


@pytest.mark.data
def test_quick_faces(data_folder):
    record = faces.run(Settings(quick=True))
    learners, baselines = record.tables
    assert float(learners.rows[0][-1]) < baselines.rows[0][1].mean
    assert record.pictures["faces"]() is not None
