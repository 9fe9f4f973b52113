"""Chains with a rule in every state: their law, and the labels that their makers would predict."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from papers.data.switching import SETTINGS, Switching
from structlearn.errors import ArgumentError


@pytest.mark.parametrize("setting", list(SETTINGS))
def test_samples_follow_the_chain(setting):
    chain = Switching.draw(setting, random_state=0)
    np.testing.assert_allclose(chain.transitions.sum(axis=1), 1.0)
    steps = chain.sample(20_000, 1)
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (steps.states[:-1], steps.states[1:]), 1.0)
    np.testing.assert_allclose(
        pairs / pairs.sum(axis=1, keepdims=True), chain.transitions, atol=0.03
    )
    apart = steps.features[:, 0] - chain.means[steps.states]
    assert abs(apart.std() - 1.0) < 0.03
    np.testing.assert_array_equal(steps.labels, apart * chain.signs[steps.states] > 0)
    again = chain.sample(20_000, 1)
    np.testing.assert_array_equal(again.features, steps.features)


def test_sides():
    assert set(Switching.draw("vague", sides="same", random_state=0).signs) == {1.0}
    drawn = {tuple(Switching.draw("vague", random_state=i).signs) for i in range(30)}
    assert len(drawn) == 8


@pytest.mark.parametrize("alone", [True, False])
def test_label_probabilities_are_those_of_all_paths(alone):
    chain = Switching.draw("negative", random_state=2)
    x = chain.sample(5, 3).features[:, 0]
    expected = np.zeros(5)
    paths = list(itertools.product(range(3), repeat=5))
    weights = []
    for path in paths:
        z = np.array(path)
        moves = 1.0 if alone else chain.transitions[z[:-1], z[1:]].prod()
        weights.append(moves * norm.pdf(x - chain.means[z]).prod())
    for path, weight in zip(paths, np.array(weights) / np.sum(weights), strict=True):
        z = np.array(path)
        expected += weight * ((x - chain.means[z]) * chain.signs[z] > 0)
    found = chain.label_probabilities(x[:, None], alone=alone)
    np.testing.assert_allclose(found[:, 1], expected, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_unknown_choices():
    with pytest.raises(ArgumentError, match="setting"):
        Switching.draw("mixed")
    with pytest.raises(ArgumentError, match="sides"):
        Switching.draw("vague", sides="left")
    with pytest.raises(ArgumentError, match="n_steps"):
        Switching.draw("vague").sample(0)
