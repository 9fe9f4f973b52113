"""Geweke's test: a sampler and draws of the data, in turn, must leave everything at its prior.

The potentials of max-margin labels are no probabilities: drawing labels by them tilts the prior by
the sum of the potentials of all labels, which the draws from the prior have as their weights.

J. Geweke, "Getting it right: joint distribution tests of posterior simulators", JASA 2004.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from structlearn._src.sample.emission import Categorical, Gaussian
from structlearn._src.sample.hdp import Gamma, Process
from structlearn._src.sample.hinge import Hinge, LabelEmission, prior_weights
from structlearn._src.sample.hmm import HmmModel, HmmState
from structlearn._src.sample.hmm_sampler import HmmSampler
from structlearn._src.sample.mixture import MixtureModel, MixtureSampler, MixtureState
from structlearn._src.sample.priors import NormalGamma, NormalWishart

OFFSETS = np.array([0, 4, 14])
SEEN = np.arange(14) != 3
CONCENTRATION = Gamma(3.0, 2.0)
N_LABELS = 3


def restaurant(counts, mass, rng):
    """Draw from a Chinese restaurant process with these numbers of customers."""
    return int(rng.choice(len(counts) + 1, p=np.append(counts, mass) / (sum(counts) + mass)))


def draw_path(alpha, gamma, rng):
    """Draw a path from its prior, by the franchise of restaurants."""
    rows, dishes, path = defaultdict(Counter), [], []
    for t in range(int(OFFSETS[-1])):
        row = rows[None if t in OFFSETS else path[-1]]
        eaten = list(row)
        place = restaurant([row[k] for k in eaten], alpha, rng)
        if place == len(eaten):  # a new table, whose dish comes from the franchise
            dish = restaurant(dishes, gamma, rng)
            dishes = [*dishes, 0] if dish == len(dishes) else dishes
            dishes[dish] += 1
        else:
            dish = eaten[place]
        row[dish] += 1
        path.append(dish)
    return np.array(path)


def draw_labels(classifier, scores, rng):
    """Draw labels by their potentials; also return the log of the sums of these."""
    every = [classifier.log_potential(scores, np.full(len(scores), y)) for y in range(N_LABELS)]
    logs = np.stack(every, axis=1)
    return (logs + rng.gumbel(size=logs.shape)).argmax(axis=1), logsumexp(logs, axis=1)


class HmmCase(NamedTuple):
    """Infinite hidden Markov models with one kind of emissions."""

    kind: str
    n_moves: int = 1
    merges: range = range(0)
    gaussian: type[Gaussian] = Gaussian  #: what sweeps take for the density of points
    n_sweeps: int = 1  #: of the sampler for each draw of the data: more find smaller errors

    def emissions(self, state, rng):
        """Draw data given the states and parameters, if there are any; also a log weight."""
        n = int(OFFSETS[-1])
        if self.kind == "symbols":
            drawn = np.zeros(n, np.int64)
            if state is not None:
                logs = state.parameters[0][0][state.states]
                drawn = (logs + rng.gumbel(size=logs.shape)).argmax(axis=1)
            return (Categorical(np.where(SEEN, drawn, -1), np.array([1.0, 2.0])),), 0.0
        known = NormalWishart(np.zeros(1), 0.4, 8.0, np.array([[6.0]]))
        if self.kind == "diagonal":
            known = NormalGamma(np.zeros(2), 0.5, 8.0, np.array([6.0, 3.0]))
        points = np.zeros((n, len(known.mean)))
        if state is not None:
            means, bands, _ = state.parameters[0]
            points = rng.normal(size=points.shape) / bands[state.states][:, :, 0]
            points = np.where(SEEN[:, None], means[state.states] + points, 0.0)
        gaussian = self.gaussian(points, SEEN, known)
        if self.kind != "labels":
            return (gaussian,), 0.0
        loss, features = Hinge(0.8, 1.0, 1.5), np.linspace(-1.2, 1.5, n)[:, None]
        labels, log_weight = np.full(n, -1), np.zeros(n)
        if state is not None:
            scores = np.einsum("tlm,tm->tl", state.parameters[1][0][state.states], features)
            labels, log_weight = draw_labels(loss, scores, rng)
        labels = np.where(SEEN, labels, -1)
        return (gaussian, LabelEmission(features, labels, N_LABELS, loss)), log_weight[SEEN].sum()

    def prior(self, rng):
        """Draw a state and its data from the prior, with their log weight."""
        alpha, gamma = rng.gamma(CONCENTRATION.shape, 1.0 / CONCENTRATION.rate, 2)
        path = draw_path(alpha, gamma, rng)
        n = int(path.max()) + 1
        parameters = tuple(e.draw_prior(n, rng) for e in self.emissions(None, rng)[0])
        sticks = rng.dirichlet(np.ones(n + 1))  # a sweep begins with paths, which rows must allow
        state = HmmState(
            path, Process(alpha, gamma, sticks, np.tile(sticks, (n + 1, 1))), parameters
        )
        return state, *self.emissions(state, rng)

    def step(self, state, rng, sweep):
        """Draw the data anew, and all else given the data."""
        model = HmmModel(OFFSETS, self.emissions(state, rng)[0], CONCENTRATION, CONCENTRATION)
        sampler = HmmSampler(model, n_moves=sweep % 2 * self.n_moves, merges=self.merges)
        for _ in range(self.n_sweeps):
            state, _ = sampler.step(state, rng, sweep)
        return state, model.emissions

    def statistics(self, state, emissions):
        """Return numbers whose means are compared; none depends on how states are numbered.

        The last ones say how well parameters explain the data, which errors in densities change.
        """
        z, first = state.states, state.states[0]
        found = [state.n_states, state.process.alpha, state.process.gamma, z[0] == z[1]]
        found += [z[2] == z[4], z[0] == z[2]]
        for arrays in state.parameters:
            own = np.exp(arrays[0][first]) if self.kind == "symbols" else arrays[0][first]
            found += [own.ravel()[-1], own.ravel()[-1] ** 2, own.ravel()[0] ** 2]
        if self.kind in ("points", "diagonal"):
            found.append(state.parameters[0][1][first, 0, 0] ** 2)
        if self.kind != "symbols":  # squared distances to the own state, near 1 by their density
            means, bands, _ = state.parameters[0]
            away = ((emissions[0].data - means[z]) * bands[z, :, 0])[SEEN]
            found.append(np.minimum(away**2, 4.0).mean())
        for emission, parameters in zip(emissions, state.parameters, strict=True):
            logs = np.zeros((len(z), state.n_states))
            for t, k in itertools.product(np.flatnonzero(SEEN), range(state.n_states)):
                logs[t, k] = fit_of(emission, parameters, t, k)
            found += [logs[np.arange(len(z)), z].sum(), logs[0, z[1]], logs[4, z[5]]]
        return np.array(found, float)


class FlatGaussian(Gaussian):
    """Densities of a quarter of the log that they should have: states depend less on points."""

    def densities(self, parameters):
        means, bands, constants = parameters
        return super().densities((means, 0.5 * bands, 0.25 * constants))


def fit_of(emission, parameters, t, k):
    """How well a state explains a position: squared distance, probability or log potential."""
    if isinstance(emission, Categorical):
        return np.exp(parameters[0][k, emission.data[t]])
    if isinstance(emission, Gaussian):
        means, bands, _ = parameters
        return np.exp(-0.1 * ((emission.data[t] - means[k]) ** 2 * bands[k, :, 0] ** 2).sum())
    scores = parameters[0][k] @ emission.features[t]
    return emission.loss.log_potential(scores[None], emission.labels[t : t + 1])[0]


class MixtureCase(NamedTuple):
    """Mixtures of classifiers; `sampled` may have another classifier than labels are drawn by."""

    classifier: Hinge
    sampled: Hinge
    n_moves: int = 0

    def data(self, state, rng):
        """Draw rows and labels given components and weights; also return a log weight."""
        prior = NormalWishart(np.full(1, 0.2), 0.5, 5.0, np.array([[2.0]]))
        n, K = len(state.assigned), len(state.weights)
        V = np.linspace(-1.2, 1.5, n)[:, None]
        many = NormalWishart(
            np.tile(prior.mean, (K, 1)), np.full(K, prior.strength), np.full(K, prior.degrees),
            np.tile(prior.scale, (K, 1, 1)),
        )  # fmt: skip
        means, roots = many.draw(rng)
        X = means[state.assigned] + rng.normal(size=(n, 1)) / roots[state.assigned][:, :, 0]
        scores = np.einsum("tlm,tm->tl", state.weights[state.assigned], V)
        labels, logs = draw_labels(self.classifier, scores, rng)
        labels[1] = logs[1] = -1
        points = Gaussian(X, np.ones(n, bool), prior)
        labelled = LabelEmission(V, labels, N_LABELS, self.sampled)
        return MixtureModel.of(points, labelled, CONCENTRATION), logs.sum() - logs[1]

    def prior(self, rng):
        """Draw a state and its data from the prior, with their log weight."""
        alpha = rng.gamma(CONCENTRATION.shape, 1.0 / CONCENTRATION.rate)
        assigned: list[int] = []
        for _ in range(6):
            sizes = np.bincount(assigned) if assigned else []
            assigned.append(restaurant(list(sizes), alpha, rng))
        shape = (max(assigned) + 1, N_LABELS, 1)
        weights = prior_weights(self.classifier.variance, shape, rng)
        state = MixtureState.of(np.array(assigned), weights, alpha)
        return state, *self.data(state, rng)

    def step(self, state, rng, sweep):
        """Draw the data anew, and all else given the data."""
        data, _ = self.data(state, rng)
        sampler = MixtureSampler(data, n_moves=sweep % 2 * self.n_moves)
        return sampler.step(state, rng, sweep)[0], data

    def statistics(self, state, data):
        """Return numbers whose means are compared; none depends on how components are numbered."""
        z, own = state.assigned, state.weights[state.assigned[0], :, 0]
        pairs = [z[0] == z[1], z[2] == z[5]]
        points, labelled = data.emissions
        away = np.minimum(np.abs(points.data[:, 0, None] - points.data[:, 0]), 3.0)
        scores = np.einsum("tlm,tm->tl", state.weights[z], labelled.features)
        fits = [
            (away * (z[:, None] == z)).sum(),
            self.classifier.log_potential(scores, labelled.labels).sum(),
        ]
        return np.array([len(state.weights), state.concentration, *pairs, *own**2, *fits], float)


def deviations(case, n_prior, n_sweeps, seed=0, chains=40):
    """Return by how many standard errors the means of chains are off those of the prior.

    Every chain begins with a draw from the prior, and would stay there. Chains are independent, so
    that their means tell their errors, however long their memory is.
    """
    rng = np.random.default_rng(seed)
    drawn = [case.prior(rng) for _ in range(n_prior)]
    logs = np.array([log_weight for _, _, log_weight in drawn])
    shares = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    values = np.array([case.statistics(state, data) for state, data, _ in drawn])
    expected = shares @ values
    variance = shares**2 @ (values - expected) ** 2
    means = []
    for first in rng.choice(n_prior, chains, p=shares):
        state, found = drawn[first][0], []
        for sweep in range(n_sweeps // chains):
            state, data = case.step(state, rng, sweep)
            found.append(case.statistics(state, data))
        means.append(np.mean(found, axis=0))
    variance += np.var(means, axis=0, ddof=1) / chains
    return (np.mean(means, axis=0) - expected) / np.sqrt(variance)
