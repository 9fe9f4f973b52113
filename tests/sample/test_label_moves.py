"""Splits and merges of states that have labels alone, against exact posteriors."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from scipy import stats

from franchise import path_probabilities
from structlearn._src.sample import hdp, split_merge
from structlearn._src.sample.hinge import Hinge, LabelEmission
from structlearn._src.sample.hmm import HmmModel, draw_given_paths, start, statistics
from structlearn._src.sample.hmm_sampler import HmmSampler
from structlearn._src.sample.sides import FittedSides, SequentialSides

OFFSETS = np.array([0, 6])
STRETCH = np.repeat([0, 1], 3)  # with opposite rules for the label
FEATURES = np.array([[1.0], [-0.8], [0.9], [1.0], [-0.7], [1.1]])
LABELS = np.where(STRETCH == 1, FEATURES[:, 0] < 0, FEATURES[:, 0] > 0).astype(np.int64)
LOSS = Hinge(0.5, 1.0, 2.0)  # so mild that one state, two and three are all likely
CONCENTRATION = 1.0
MODEL = HmmModel(OFFSETS, (LabelEmission(FEATURES, LABELS, 2, LOSS),), CONCENTRATION, CONCENTRATION)

CHAINS = 40
BURN_IN = 20  # memory is of 2 to 6 sweeps: the integrated autocorrelation times of the statistics
KEPT = 40
MISTAKES = 1e-4  # probability that a sampler without error fails


def summary(path):
    """Numbers of a path whose means are compared: how many states, and which steps share one."""
    path = np.asarray(path)
    n = len(set(path.tolist()))
    together = (path[:, None] == path)[np.triu_indices(6, 1)]
    within = (STRETCH[:, None] == STRETCH)[np.triu_indices(6, 1)]
    found = [n == 1, n == 2, n >= 4, together[within].mean(), together[~within].mean()]
    found += [path[0] == path[1], path[2] == path[3], path[0] == path[5]]
    return np.array(found, float)


@cache
def evidence(rows):
    """Potential of the labels of some positions, integrated over the weights of one state.

    Of two labels the difference of the weights alone matters, which has twice the variance.
    """
    sign = np.where(LABELS[list(rows)] == 1, 1.0, -1.0)
    deviation = np.sqrt(2.0 * LOSS.variance)
    weights = deviation * np.linspace(-8.0, 8.0, 1601)
    losses = np.maximum(
        0.0, LOSS.cost - np.multiply.outer(weights, sign * FEATURES[list(rows), 0])
    ).sum(1)
    potentials = np.exp(-2.0 * LOSS.c * losses) * stats.norm.pdf(weights, scale=deviation)
    return potentials.sum() * (weights[1] - weights[0])


@cache
def expected():
    """Exact means of all summaries: over all paths, with weights integrated out."""
    mean, total = np.zeros(len(summary(STRETCH))), 0.0
    for path, p in path_probabilities(OFFSETS, CONCENTRATION, CONCENTRATION).items():
        groups = [tuple(np.flatnonzero(np.array(path) == k)) for k in set(path)]
        weight = p * np.prod([evidence(rows) for rows in groups])
        mean += weight * summary(path)
        total += weight
    return mean / total


def moves_alone(state, rng):
    """Draw states by splits and merges, no beam, and everything else given these."""
    found = statistics(MODEL, state)
    for _ in range(3):
        state, found, _ = split_merge.split_or_merge(MODEL, state, found, rng)
    return draw_given_paths(MODEL, state, rng, found)


def whole_sweeps(state, rng):
    return HmmSampler(MODEL, n_moves=2).step(state, rng, 0)[0]


def excess(sweep, seed=0):
    """Return how many times the largest error of a mean is as large as it may be.

    Half of the chains begin with one state, the others with as many as there are steps, so that
    chains which do not move fail too. Chains are independent: their means tell their standard
    errors, and Student's distribution how many of these an error may have, such that any of the
    summaries is beyond that with the probability of `MISTAKES` at most.
    """
    rng = np.random.default_rng(seed)
    means = []
    for first in itertools.islice(itertools.cycle([np.zeros(6, np.int64), np.arange(6)]), CHAINS):
        state, found = start(MODEL, first, rng), []
        for _ in range(BURN_IN + KEPT):
            state = sweep(state, rng)
            found.append(summary(state.states))
        means.append(np.mean(found[BURN_IN:], axis=0))
    errors = np.abs(np.mean(means, axis=0) - expected())
    standard = np.std(means, axis=0, ddof=1) / np.sqrt(CHAINS)
    standard = np.maximum(standard, 1e-12)  # chains that do not move have none
    most = stats.t.isf(0.5 * MISTAKES / len(errors), CHAINS - 1)
    return float((errors / (most * standard)).max())


@pytest.mark.parametrize("sweep", [moves_alone, whole_sweeps])
def test_states_with_labels_alone_have_their_exact_posterior(sweep):
    assert excess(sweep) < 1.0


def _nothing(*_args):
    return 0.0


def _stay(model, state, found, rng):
    return state, found, False


def _without_weight(self, rng, propose=LabelEmission.propose):
    return propose(self, rng)[0], 0.0


BROKEN = {
    "no move": [(split_merge, "split_or_merge", _stay)],
    "splits without their probability, fitted": [(FittedSides, "log_probability", _nothing)],
    "splits without it, one by one": [(SequentialSides, "log_probability", _nothing)],
    "sticks without their density": [(hdp, "log_sticks", _nothing)],
    "classifiers without the weights of their paths": [
        (LabelEmission, "propose", _without_weight),
        (LabelEmission, "log_weight_of", _nothing),
    ],
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_found(name, monkeypatch):
    """The bound of the test above is not so wide that broken moves pass."""
    for owner, attribute, instead in BROKEN[name]:
        monkeypatch.setattr(owner, attribute, instead)
    assert excess(moves_alone) > 1.0
