"""Faces to complete: inputs, weights to begin with, baselines, and what learning predicts."""

from __future__ import annotations

import numpy as np
import pytest

from papers.data.faces import Faces, blocks
from papers.experiments.faces import Completer, Field, archetypes, objective_of, start


@pytest.fixture(scope="module")
def faces():
    """Smooth images whose lower half follows from the upper one."""
    rng = np.random.default_rng(0)
    shades = rng.uniform(0.2, 0.8, (14, 1, 1))
    ramp = np.linspace(-0.1, 0.1, 64)[None, None, :]
    images = np.clip(shades + ramp + rng.normal(0.0, 0.02, (14, 64, 64)), 0.0, 1.0)
    return Faces(images[:10], images[10:], 16, 16)


def test_inputs_are_stretched_around_the_median_and_rounded(faces):
    inputs = faces.inputs(faces.train)
    n = inputs.shape[1] // 2
    assert n == 2 * 4
    assert inputs.min() >= 0.0
    assert inputs.max() <= 1.0
    off = blocks(faces.train[:, :32], 16) - faces.median
    np.testing.assert_array_equal(inputs[:, n:], off > 0)
    inside = (inputs[:, :n] > 0.0) & (inputs[:, :n] < 1.0)
    np.testing.assert_allclose(inputs[:, :n][inside], 0.5 + 2.5 * off[inside])
    assert (inputs[:, n:].mean(axis=0) == 0.5).all()  # the median is in the middle


def test_errors_are_squares_of_256_levels(faces):
    halves = faces.test[:, 32:]
    assert faces.error(halves) == 0.0
    assert faces.error(halves + 1 / 255) == pytest.approx(1.0)


def test_baselines_by_hand(faces):
    found = faces.baselines()
    mean = faces.train[:, 32:].mean(axis=0)
    wanted = np.mean((255.0 * (mean - faces.test[:, 32:])) ** 2)
    assert found["mean face"] == pytest.approx(wanted)
    assert found["ridge regression"] < 0.2 * found["mean face"]  # upper halves tell the shade


def test_states_begin_apart(faces):
    field = Field(faces.inputs(faces.train), faces.outputs(faces.train).shape[1])
    weights = start(faces, field, np.random.default_rng(0))
    assert weights.shape == (field.hinges.n_groups,)
    assert weights.min() >= 0.0
    first = weights[field.parts[0].groups].reshape(6, -1)
    assert len({tuple(row) for row in first.round(6)}) == 6
    averages = np.concatenate([part.groups for part in field.parts[8:10]])
    assert (weights[averages] == 1.0).all()


def test_groups_of_parts_follow_each_other(faces):
    parts = Field(faces.inputs(faces.train), 8).parts
    ends = [int(part.groups.max()) + 1 for part in parts]
    assert parts[0].groups.min() == 0
    assert [int(part.groups.min()) for part in parts[1:]] == ends[:-1]


def test_the_field_with_its_first_weights_beats_nothing_known(faces):
    """Completion by first weights keeps within the mean face's error; learning has a start."""
    objective = objective_of(faces, np.random.default_rng(0))
    completer = Completer(faces)
    halves = completer.halves(objective.start)
    assert halves.shape == faces.test[:, 32:].shape
    assert halves.min() >= 0.0
    assert halves.max() <= 1.0
    assert completer(objective.start) == pytest.approx(faces.error(halves), rel=0.05)
    assert np.isfinite(objective.value(objective.start))


def test_what_a_state_stands_for_is_the_best_completion(faces):
    """Against the energy of the field itself, with states fixed and one output at a time."""
    made = Field(faces.inputs(faces.train)[:1], 8)
    rng = np.random.default_rng(3)
    weights = rng.uniform(0.0, 1.0, made.hinges.n_groups)
    found = archetypes(made, weights)
    assert found.shape == (6, 8)
    values = np.linspace(0.0, 1.0, 101)
    for k, j in ((0, 0), (5, 7), (2, 3)):
        y = np.zeros(made.hinges.n_variables)
        y[8 + k] = 1.0
        y[:8] = found[k]
        energies = []
        for value in values:
            y[j] = value
            energies.append(made.hinges.energy(y, weights))
        assert found[k, j] == pytest.approx(values[np.argmin(energies)], abs=0.011)
