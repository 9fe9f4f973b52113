"""The prior, and exact posteriors of short sequences, are what the sampler draws from."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from franchise import path_probabilities
from structlearn._src.common import watch
from structlearn._src.common.watch import Ending, Watch
from structlearn._src.sample import early, hdp, mixture, split_merge
from structlearn._src.sample.emission import Categorical, Gaussian
from structlearn._src.sample.hdp import Gamma
from structlearn._src.sample.hinge import Hinge, LabelEmission
from structlearn._src.sample.hmm import HmmModel, draw_given_paths, start, statistics
from structlearn._src.sample.hmm_sampler import HmmSampler
from structlearn._src.sample.mixture import MixtureModel, MixtureSampler
from structlearn._src.sample.priors import NormalWishart
from structlearn._src.sample.runner import MarkovChain, Schedule, run
from structlearn._src.sample.sides import FittedSides, SequentialSides

OFFSETS = np.array([0, 2, 5])
KNOWN = NormalWishart(np.zeros(1), 0.5, 8.0, np.array([[6.0]]))


def _features(path):
    """How many states a path has, and which positions share one: means of these are compared."""
    path = np.asarray(path)
    numbers = np.arange(1, len(path) + 1) == len(set(path.tolist()))
    return np.concatenate([numbers, (path[:, None] == path).ravel()]).astype(float)


def _error(paths, expected):
    """Largest difference between frequencies in draws and exact probabilities."""
    exact = sum(q * _features(path) for path, q in expected.items())
    return np.abs(np.mean([_features(path) for path in paths], axis=0) - exact).max()


@pytest.mark.parametrize("n_moves", [0, 2])
def test_prior_is_reproduced_without_data(n_moves):
    """The first test of all: paths of several sequences, against all ways to seat customers."""
    rng = np.random.default_rng(1)
    model = HmmModel(OFFSETS, (), 1.5, 2.0)
    state, paths = start(model, np.zeros(5, np.int64), rng), []
    for _ in range(1500):
        state, _ = HmmSampler(model, n_moves=n_moves).step(state, rng, 0)
        paths.append(state.states)
    expected = path_probabilities(OFFSETS, 1.5, 2.0)
    assert sum(expected.values()) == pytest.approx(1.0)
    assert _error(paths, expected) < 0.08


def test_prior_of_concentrations_is_reproduced_without_data():
    rng = np.random.default_rng(2)
    model = HmmModel(OFFSETS, (), Gamma(2.0, 1.0), Gamma(3.0, 2.0))
    state = start(model, np.zeros(5, np.int64), rng)
    alpha, gamma = [], []
    for _ in range(1500):
        state, info = HmmSampler(model).step(state, rng, 0)
        alpha.append(info.alpha0)
        gamma.append(info.gamma0)
    assert np.mean(alpha) == pytest.approx(2.0, abs=0.25)
    assert np.mean(gamma) == pytest.approx(1.5, abs=0.15)
    assert np.std(alpha) == pytest.approx(np.sqrt(2.0), abs=0.3)
    assert np.std(gamma) == pytest.approx(np.sqrt(3.0) / 2, abs=0.15)


def _points(seed=3):
    x = np.random.default_rng(seed).normal(size=(5, 1)) + np.array([[-2], [2], [-2], [-2], [2.0]])
    seen = np.array([True, True, True, False, True])
    return Gaussian(np.where(seen[:, None], x, 0.0), seen, KNOWN)


def _posterior(part, alpha, gamma):
    """Exact posterior of paths."""
    weights = {}
    for path, p in path_probabilities(OFFSETS, alpha, gamma).items():
        found = part.statistics(np.array(path), max(path) + 1)
        weights[path] = p * np.exp(part.log_evidence(found).sum())
    total = sum(weights.values())
    return {path: w / total for path, w in weights.items()}


@pytest.mark.parametrize("kind", ["points", "symbols"])
def test_posterior_of_paths_by_enumeration(kind):
    rng = np.random.default_rng(4)
    part = _points() if kind == "points" else Categorical(np.array([0, 1, 0, -1, 1]), np.ones(2))
    model = HmmModel(OFFSETS, (part,), 1.5, 2.0)
    state, paths = start(model, np.arange(5), rng), []
    for i in range(1000):
        state, _ = HmmSampler(model, n_moves=i % 2).step(state, rng, 0)
        paths.append(state.states)
    assert _error(paths, _posterior(part, 1.5, 2.0)) < 0.08


def _no_density(gamma, sticks):
    return 0.0


def _no_proposal(self, sides):
    return 0.0


BROKEN = [
    pytest.param(hdp, "", None, 2400, 0.0, 0.06, id="as it is"),
    pytest.param(hdp, "log_sticks", _no_density, 300, 0.3, 1.0, id="without the density of sticks"),
    *(
        pytest.param(kind, "log_probability", _no_proposal, 600, 0.12, 1.0, id=kind.__name__)
        for kind in (FittedSides, SequentialSides)  # without how likely a split is
    ),
]


@pytest.mark.parametrize(("owner", "name", "instead", "sweeps", "least", "most"), BROKEN)
def test_moves_alone_keep_the_posterior(owner, name, instead, sweeps, least, most, monkeypatch):
    """Splits and unions with draws of sticks, no beam; each term left out is found."""
    if name:
        monkeypatch.setattr(owner, name, instead)
    if name == "log_probability":  # which draws tell too
        draw = owner.draw
        monkeypatch.setattr(owner, "draw", lambda self, rng: (draw(self, rng)[0], 0.0))
    rng, part = np.random.default_rng(5), _points()
    model = HmmModel(OFFSETS, (part,), 1.5, 2.0)
    state, paths = start(model, np.zeros(5, np.int64), rng), []
    for _ in range(sweeps):
        found = statistics(model, state)
        for _ in range(2):
            state, found, _ = split_merge.split_or_merge(model, state, found, rng)
        drawn = hdp.draw_process(state.process, found.counts, 1.5, 2.0, rng)
        state = state._replace(process=drawn)
        paths.append(state.states)
    assert least <= _error(paths, _posterior(part, 1.5, 2.0)) <= most


LABELS, SLOPES = np.array([1, 0, 1, 1, -1]), np.array([[1.0], [0.8], [-0.6], [1.5], [1.0]])


def _label_evidence(rows, c=0.6, variance=1.5):
    """Potential of the labels of some positions, integrated over the weights of one state."""
    sign = np.where(LABELS[rows] == 1, 1.0, -1.0) * (LABELS[rows] >= 0)
    grid = np.linspace(-12.0, 12.0, 1201)
    losses = np.maximum(0.0, 1.0 - np.multiply.outer(grid, sign * SLOPES[rows, 0]))
    logs = -2.0 * c * (losses * (sign != 0.0)).sum(1) - grid**2 / (4.0 * variance)
    return np.exp(logs).sum() * (grid[1] - grid[0]) / np.sqrt(4.0 * np.pi * variance)


@pytest.mark.parametrize("likelihood", [True, False])
@pytest.mark.parametrize("moves_alone", [False, True])
def test_posterior_of_paths_with_labels(moves_alone, likelihood):
    """Weights integrated out by quadrature; by the beam, and by moves alone."""
    rng, points = np.random.default_rng(13), _points()
    labelled = LabelEmission(SLOPES, LABELS, 2, Hinge(0.6, 1.0, 1.5))
    emissions = (points, labelled) if likelihood else (labelled,)
    model = HmmModel(OFFSETS, emissions, 1.5, 2.0)
    prior = _posterior(points, 1.5, 2.0) if likelihood else path_probabilities(OFFSETS, 1.5, 2.0)
    exact = {}
    for path, p in prior.items():
        groups = [np.flatnonzero(np.array(path) == k) for k in set(path)]
        exact[path] = p * np.prod([_label_evidence(rows) for rows in groups])
    total = sum(exact.values())
    state, paths = start(model, np.arange(5), rng), []
    for _ in range(2000 if moves_alone else 3500):  # paths by the beam mix slowly
        if moves_alone:
            found = statistics(model, state)
            for _ in range(3):
                state, found, _ = split_merge.split_or_merge(model, state, found, rng)
            state = draw_given_paths(model, state, rng, found)
        else:
            state, _ = HmmSampler(model).step(state, rng, 0)
        paths.append(state.states)
    assert _error(paths, {path: p / total for path, p in exact.items()}) < 0.08


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_same_seed_same_chain_whatever_the_threads(n_jobs):
    rng = np.random.default_rng(7)
    x = np.concatenate([rng.normal(-3, 1, (9000, 1)), rng.normal(3, 1, (9000, 1))])
    gaussian = Gaussian(x, np.ones(len(x), bool), KNOWN)
    labelled = LabelEmission(x, rng.integers(-1, 4, len(x)), 4, Hinge())
    model = HmmModel(np.arange(0, 18_001, 1000), (gaussian, labelled), 1.0, 1.0, n_jobs)
    alone = HmmModel(model.offsets, model.emissions, 1.0, 1.0, 1)
    states = []
    for own in (model, alone):
        stream = np.random.default_rng(8)
        state = start(own, stream.integers(0, 3, len(x)), stream)
        for _ in range(2):
            state, _ = HmmSampler(own, n_moves=4).step(state, stream, 0)
        states.append(state)
    assert np.array_equal(states[0].states, states[1].states)
    assert np.array_equal(states[0].process.rows, states[1].process.rows)
    for one, two in zip(states[0].parameters, states[1].parameters, strict=True):
        assert all(map(np.array_equal, one, two))


def test_states_are_learnt_after_a_start():
    rng = np.random.default_rng(11)
    model = HmmModel(OFFSETS, (_points(),), 1.0, 1.0)
    state = start(model, np.array([7, 7, 2, 2, 9]), rng)
    assert state.states.tolist() == [1, 1, 0, 0, 2]
    assert draw_given_paths(model, state, rng).process.rows.shape == (4, 4)


@pytest.mark.parametrize("n_start", [1, 3, 12])
def test_number_of_states_grows_and_shrinks(n_start):
    """Five separated states in four dimensions are found from too few and from too many."""
    rng = np.random.default_rng(12)
    truth = np.repeat(rng.integers(5, size=60), 8)
    x = 5.0 * rng.normal(size=(5, 4))[truth] + rng.normal(size=(480, 4))
    known = NormalWishart(np.zeros(4), 0.1, 6.0, np.cov(x.T))
    part = Gaussian(x - x.mean(0), np.ones(480, bool), known)
    model = HmmModel(np.array([0, 480]), (part,), Gamma(1.0, 1.0), Gamma(1.0, 1.0))
    state = start(model, rng.integers(n_start, size=480), rng)
    for i in range(80):
        state, _ = HmmSampler(model, 1, 4, range(20, 80, 20)).step(state, rng, i)
    pairs = set(zip(state.states.tolist(), truth.tolist(), strict=True))
    assert state.n_states == 5
    assert len(pairs) <= 7


@pytest.fixture
def ticking(monkeypatch):
    """A clock that goes on by a second whenever it is read, and the number of moves so far."""
    ticks = count()
    moves = []
    clock = SimpleNamespace(monotonic=lambda: float(next(ticks)))
    monkeypatch.setattr(watch, "time", clock)

    move = split_merge.split_or_merge
    for module in (split_merge, mixture):
        monkeypatch.setattr(module, "split_or_merge", lambda *a: moves.append(1) or move(*a))
    return moves


def _samplers(n_moves):
    """Samplers with moves: of paths, and of a mixture."""
    rng = np.random.default_rng(0)
    V = rng.normal(size=(12, 2))
    points = Gaussian(V, np.ones(12, bool), NormalWishart(np.zeros(2), 0.5, 8.0, np.eye(2)))
    labelled = LabelEmission(V, rng.integers(2, size=12), 2, Hinge(1.0, 1.0, 1.0))
    yield HmmSampler(HmmModel(np.array([0, 12]), (points,), 1.5, 2.0), 3, n_moves)
    yield MixtureSampler(MixtureModel.of(points, labelled, 1.0), 3, n_moves)


@pytest.mark.parametrize("i", [0, 1])
def test_moves_hold_a_time_limit(ticking, i):
    """The first sweep gets fewer of them; a later one is left, as if it had not begun."""
    sampler = list(_samplers(200))[i]
    begun = sampler.begin(np.random.default_rng(1))

    def ended(time_limit, sweeps):
        chain = MarkovChain(begun, np.random.default_rng(2))
        ticking.clear()
        return chain, run(sampler, [chain], Schedule(0, sweeps), watch=Watch(time_limit))

    chain, ending = ended(10.0, 3)
    assert (ending, chain.sweeps) == (Ending.TIME, 1)
    assert 1 < len(ticking) < 20
    whole, _ = ended(None, 2)
    assert len(ticking) == 400
    chain, ending = ended(600.0, 3)
    assert (ending, chain.sweeps) == (Ending.TIME, 1)
    assert 200 < len(ticking) < 350
    run(sampler, [chain], Schedule(0, 2))
    np.testing.assert_equal(chain.draws, whole.draws)


@pytest.mark.parametrize("broken", [False, True])
def test_a_first_look_keeps_the_posterior(broken, monkeypatch):
    """Sides of the first positions are looked at without slack; it must be the same look both ways.

    Broken, merges have none.
    """
    monkeypatch.setattr(early, "LARGE", 2)
    monkeypatch.setattr(early, "_FIRST", 1)
    monkeypatch.setattr(early, "_SLACK", {True: 0.0, False: 0.0})
    looks, look = [], early.look

    def seen(model, proposal, process, states, uniforms, sides):
        found = look(model, proposal, process, states, uniforms, sides)
        looks.append(found)
        return 0.0 if broken and len(uniforms) == 0 else found

    monkeypatch.setattr(early, "look", seen)
    rng, part = np.random.default_rng(5), _points()
    model = HmmModel(OFFSETS, (part,), 1.5, 2.0)
    state, paths = start(model, np.zeros(5, np.int64), rng), []
    for _ in range(1200 if broken else 3000):
        found = statistics(model, state)
        for _ in range(2):
            state, found, _ = split_merge.split_or_merge(model, state, found, rng)
        drawn = hdp.draw_process(state.process, found.counts, 1.5, 2.0, rng)
        state = state._replace(process=drawn)
        paths.append(state.states)
    error = _error(paths, _posterior(part, 1.5, 2.0))
    assert np.count_nonzero(looks) > 300
    assert error > 0.1 if broken else error < 0.05
