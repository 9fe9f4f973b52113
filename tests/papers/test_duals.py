"""Experiments with paired-dual learning: their fields against slow versions, and quick runs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from papers.base import Unit
from papers.data.faces import Faces, blocks, enlarged
from papers.experiments import duals, faces, trust
from papers.experiments.duals import Course, Curve, Measure, Race
from papers.inside import FieldObjective, make_field_examples
from structlearn.fields import Hinges

# ---- curves --------------------------------------------------------------------------------


def curve(steps, values, scores=None):
    return Curve(*(np.array(x, float) for x in (steps, values, scores or np.zeros(len(steps)))))


def test_steps_until():
    one = curve([0, 2, 4, 8], [5, 3, 1, 2])
    assert [one.until(x) for x in (3.5, 1.5, 0.5)] == [2.0, 4.0, float("inf")]
    assert one.first == 2.0


def test_races_by_hand():
    race = Race(
        {
            duals.FINEST: curve([0, 2, 4], [10, 2, 1.005], [0, 0, 0.5]),
            duals.COARSER: curve([0, 20, 40], [10, 2, 1], [0, 0, 0.4]),
            duals.EM: curve([0, 50, 80], [10, 5, 1], [0, 0, 0.7]),
            duals.PRIMAL: curve([0, 3, 9], [10, 5, 0.9], [0, 0, 0.5]),
        }
    )
    assert race.share(duals.FINEST, duals.EM) == 4 / 80
    assert race.share(duals.FINEST, duals.PRIMAL) == float("inf")
    assert race.saved(duals.EM) == pytest.approx(100 * (1 - 4 / 80))
    assert race.saved(duals.PRIMAL) == 0.0
    assert race.good() == pytest.approx(10 - 0.9 * 9.1)
    assert race.lead(duals.EM) == 50 - 4
    assert race.gain(duals.FINEST, duals.EM) == pytest.approx(-0.2)


@pytest.fixture(scope="module")
def objective():
    rng = np.random.default_rng(0)
    n, m = 10, 60
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    hinges = Hinges(
        np.arange(0, 2 * m + 1, 2), pairs.ravel(), rng.normal(size=2 * m), rng.normal(size=m),
        np.zeros(m), np.full(m, 2), np.arange(m) % 5, n, 5,
    )  # fmt: skip
    labels = np.where(np.arange(n) < 3, np.nan, np.round(rng.random(n)))
    return FieldObjective(make_field_examples(hinges, labels, strength=0.3))


def test_learners_go_down_and_count_the_steps_of_both_worlds(objective):
    course = Course(updates=20, warm_up=3, sizes=(0.3,), points=5)
    units = []
    for learner in duals.LEARNERS:
        path = course.learn(learner, objective)
        found = path.curve(objective, lambda w: float(w.sum()), course.points)
        assert found["values"][-1] < found["values"][0] == objective.value(objective.start)
        assert found["scores"][-1] == path.weights[-1].sum()
        assert (np.diff(found["steps"]) > 0).all()
        units.append(Unit({"fold": 0, "learner": learner}, found))
    finest, coarser = (unit.found["steps"][-1] for unit in units[:2])
    assert finest == 2 * (20 + 1 + 3)
    assert coarser <= 10 * finest
    units.append(Unit({"fold": 0, "learner": duals.BASELINES}, {"scores": {"none": 0.0}}))
    made = duals.report(units, Measure("sum"))
    assert made.tables[0].column("learner") == list(duals.LEARNERS)
    assert made.tables[1].column("baseline") == ["none"]
    assert len(made.claims) == 7
    assert duals.draw(units, "sum") is not None


def test_the_size_of_steps_is_chosen_by_the_objective_that_is_learnt(objective):
    ends = {
        size: objective.value(Course(20, sizes=(size,)).learn(duals.PRIMAL, objective).weights[-1])
        for size in (0.001, 0.3)
    }
    chosen = Course(20, sizes=(0.001, 0.3)).learn(duals.PRIMAL, objective)
    assert ends[chosen.size] == min(ends.values())
    assert ends[0.001] > ends[0.3]


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
    small = blocks(some, 16)
    assert small[2, 5] == pytest.approx(some[2, 16:32, 16:32].mean())
    made = Faces(some, images(1), 16, 8)
    mean = made.outputs(some).mean(axis=0)
    np.testing.assert_allclose(made.complete(mean[None])[0], some[:, 32:].mean(axis=0))
    flat = made.complete(mean[None] + 0.01)[0]
    np.testing.assert_allclose(flat, some[:, 32:].mean(axis=0) + 0.01)
    ramp = np.arange(4.0)[None, None, :] * np.ones((1, 3, 1))
    large = enlarged(ramp, 2)
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
