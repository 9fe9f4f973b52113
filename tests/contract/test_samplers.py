"""What every sampler promises: its prior, resumption, interrupts, threads, and how it ended."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from franchise import path_probabilities
from geweke import OFFSETS, FlatGaussian, HmmCase, MixtureCase, deviations
from papers.comparators import InfiniteLogit, SwitchingSVM, TruncatedSVM
from papers.comparators.infinite_logit import Logit
from structlearn import InfiniteHMM, InfiniteSVM, MaxMarginHMM
from structlearn._src.common.errors import BurnInWarning
from structlearn._src.common.watch import Ending, Watch
from structlearn._src.sample.emission import Gaussian
from structlearn._src.sample.hdp import Gamma
from structlearn._src.sample.hinge import Hinge, LabelEmission
from structlearn._src.sample.hmm import HmmModel
from structlearn._src.sample.hmm_sampler import HmmSampler, merge_sweeps
from structlearn._src.sample.mixture import MixtureModel, MixtureSampler
from structlearn._src.sample.priors import NormalWishart
from structlearn._src.sample.runner import MarkovChain, Schedule, run, streams

# ---- the prior is reproduced -------------------------------------------------------------

HINGE = Hinge(0.4, 1.0, 0.8)
RIGHT = {
    "points": (HmmCase("points"), 600),
    "diagonal": (HmmCase("diagonal"), 600),
    "symbols": (HmmCase("symbols"), 800),
    "labels": (HmmCase("labels"), 400),
    "max-margin mixture": (MixtureCase(HINGE, HINGE), 600),
    "max-margin mixture, moves": (MixtureCase(HINGE, HINGE, 3), 600),
    "logit mixture": (MixtureCase(Logit(0.8), Logit(0.8)), 400),
}
WRONG = {
    "merging": (HmmCase("points", merges=range(10**6)), 200),  # a search, not a draw
    "a flattened density": (HmmCase("points", 0, gaussian=FlatGaussian, n_sweeps=3), 800),
    "another loss": (MixtureCase(HINGE, Hinge(1.5, 1.0, 0.8)), 600),
}


@pytest.mark.parametrize("name", RIGHT)
def test_data_and_sweeps_in_turn_keep_the_prior(name):
    """Geweke's test, in standard errors of the numbers of draws: no mean is off by 4.5 of them."""
    case, n_sweeps = RIGHT[name]
    assert np.abs(deviations(case, 800, n_sweeps)).max() < 4.5


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_sampler_is_found(name):
    case, n_sweeps = WRONG[name]
    assert np.abs(deviations(case, 800, n_sweeps)).max() > 4.5


def _franchise(offsets, alpha, gamma):
    """Distribution of the number of states, a priori."""
    found = np.zeros(int(offsets[-1]) + 1)
    for path, probability in path_probabilities(offsets, alpha, gamma).items():
        found[max(path) + 1] += probability
    return found


def _restaurant(n, alpha):
    """Distribution of the number of components, a priori."""
    found = np.zeros(n + 1)
    found[0] = 1.0
    for i in range(n):
        opens = alpha / (alpha + i)
        found = (1.0 - opens) * found + opens * np.append(0.0, found[:-1])
    return found


ONE = {"random_state": 0, "n_jobs": 1, "n_chains": 1}
LONG = {"burn_in": 0, "n_draws": 800, "n_start": 2, **ONE}
FIXED = {"alpha0": 1.5, "gamma0": 2.0, "merge": False, "n_moves": 1}
NOTHING = {"C": 1e-9}  # labels that say nothing
ONE_SEEN = [np.array([[1.0], [np.nan]]), np.full((3, 1), np.nan)]  # a single point says nothing
STIFF = {"strength": 1e9, "degrees": 1e9, "concentration": 1.5}  # all components are the same
PRIORS = {
    "InfiniteHMM": (InfiniteHMM(**LONG, **FIXED), (ONE_SEEN,)),
    "InfiniteHMM, symbols": (
        InfiniteHMM(emission="categorical", **LONG, **FIXED),
        ([["a", None], [None] * 3],),
    ),
    "MaxMarginHMM": (MaxMarginHMM(**LONG, **FIXED, **NOTHING), (ONE_SEEN, [[0, 1], [1, 0, 1]])),
    "MaxMarginHMM, labels alone": (
        MaxMarginHMM(likelihood=False, **LONG, **FIXED, **NOTHING),
        ([np.zeros((2, 1)), np.ones((3, 1))], [[0, 1], [1, 0, 1]]),
    ),
    "InfiniteSVM": (InfiniteSVM(**LONG, **STIFF, **NOTHING), (np.eye(5), [0, 1, 0, 1, 1])),
}


@pytest.mark.parametrize("name", PRIORS)
def test_data_that_say_nothing_leave_the_number_of_states_at_its_prior(name):
    model, data = PRIORS[name]
    fitted = copy.deepcopy(model).fit(*data)
    if isinstance(model, InfiniteSVM):
        expected, counts = _restaurant(5, 1.5), fitted.traces()["n_components"][0]
    else:
        expected, counts = _franchise(np.array([0, 2, 5]), 1.5, 2.0), fitted.traces()["n_states"][0]
    batches = np.eye(6)[counts].reshape(20, -1, 6).mean(axis=1)
    errors = batches.std(axis=0, ddof=1) / np.sqrt(20)
    assert np.all(np.abs(batches.mean(axis=0) - expected) < 4.5 * errors + 0.002)
    assert errors.max() < 0.05


# ---- samplers go on where they were ------------------------------------------------------


def _hmm_sampler(kind):
    case = HmmCase(kind)
    _, emissions, _ = case.prior(np.random.default_rng(1))
    model = HmmModel(OFFSETS, emissions, Gamma(1.0, 1.0), Gamma(1.0, 1.0), 2)
    return HmmSampler(model, n_start=3, n_moves=2, merges=merge_sweeps(8))


def _mixture_sampler(classifier):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 2))
    prior = NormalWishart(np.zeros(2), 0.5, 5.0, np.eye(2))
    labelled = LabelEmission(X, rng.integers(-1, 3, 12), 3, classifier)
    points = Gaussian(X, np.ones(12, bool), prior)
    model = MixtureModel.of(points, labelled, Gamma(1.0, 1.0))
    return MixtureSampler(model, 4, 0 if isinstance(classifier, Logit) else 2)


SAMPLERS = {
    **{kind: _hmm_sampler(kind) for kind in ("points", "diagonal", "symbols", "labels")},
    "max-margin mixture": _mixture_sampler(Hinge()),
    "logit mixture": _mixture_sampler(Logit()),
}


def _chains(sampler, n=2):
    return [MarkovChain(sampler.begin(rng), rng) for rng in streams(np.random.default_rng(0), n)]


def _same(one, two):
    """Whether two states, or tuples of these, are the same bit for bit."""
    if isinstance(one, tuple | list):
        return len(one) == len(two) and all(map(_same, one, two))
    return np.array_equal(one, two)


def _interrupting(n):
    told = []

    def tell(fraction, words):
        told.append(words)
        if len(told) == n:
            raise KeyboardInterrupt

    return tell


@pytest.mark.parametrize("name", SAMPLERS)
def test_two_short_runs_are_one_long_run(name):
    sampler = SAMPLERS[name]
    whole, paused = _chains(sampler), _chains(sampler)
    assert run(sampler, whole, Schedule(8, 8)) is Ending.DONE
    for n_draws in (0, 8):
        assert run(sampler, paused, Schedule(8, n_draws)) is Ending.DONE
    for one, two in zip(whole, paused, strict=True):
        assert _same(one.draws, two.draws)
        assert one.trace == two.trace


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_run_does_not_depend_on_threads_nor_interrupts(name):
    sampler = SAMPLERS[name]
    whole, other = _chains(sampler), _chains(sampler)
    run(sampler, whole, Schedule(2, 6), n_jobs=1)
    assert run(sampler, other, Schedule(2, 6), n_jobs=2, watch=Watch(None, _interrupting(5))) is (
        Ending.INTERRUPTED
    )
    assert [len(chain.draws) for chain in other] == [3, 3]
    assert run(sampler, other, Schedule(2, 6), n_jobs=2) is Ending.DONE
    assert all(_same(one.draws, two.draws) for one, two in zip(whole, other, strict=True))


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_step_changes_no_state_that_it_is_given(name):
    sampler, rng = SAMPLERS[name], np.random.default_rng(4)
    state = sampler.begin(rng)
    for sweep in range(3):
        kept = copy.deepcopy(state)
        new, _ = sampler.step(state, rng, sweep)
        assert _same(state, kept)
        state = new


# ---- estimators --------------------------------------------------------------------------

FEW = {"burn_in": 4, "n_draws": 4, "n_start": 4, **ONE}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2)) + np.repeat([[0, 0], [5, 5]], 20, axis=0)
Y = (X[:, 0] > 2.5).astype(int)
SYMBOLS = [list("abab" * 5), list("bbab" * 4)]
ESTIMATORS = {
    "InfiniteHMM": (InfiniteHMM(**FEW), (X,)),
    "InfiniteHMM, diagonal": (InfiniteHMM(covariance="diagonal", **FEW), (X,)),
    "InfiniteHMM, symbols": (InfiniteHMM(emission="categorical", **FEW), (SYMBOLS,)),
    "MaxMarginHMM": (MaxMarginHMM(**FEW), (X, Y)),
    "MaxMarginHMM, labels alone": (MaxMarginHMM(likelihood=False, **FEW), (X, Y)),
    "InfiniteSVM": (InfiniteSVM(**FEW), (X, Y)),
    "InfiniteLogit": (InfiniteLogit(**FEW), (X, Y)),
}


def _fitted(name, **changes):
    model, data = ESTIMATORS[name]
    return copy.deepcopy(model).set_params(**changes).fit(*data)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_how_sampling_ended(name):
    _, data = ESTIMATORS[name]
    whole = _fitted(name)
    assert (whole.ended_, whole.status_, len(whole.draws_)) == (Ending.DONE, "done", 4)
    with pytest.warns(BurnInWarning):
        late = _fitted(name, time_limit=0.0)
    assert (late.ended_, late.status_, len(late.draws_)) == (Ending.TIME, "time", 1)
    stopped = _fitted(name, progress=_interrupting(6), warm_start=True)
    assert stopped.ended_ is Ending.INTERRUPTED
    assert len(stopped.draws_) == 2
    assert len(stopped.predict(data[0])) == len(whole.predict(data[0]))
    on = stopped.set_params(progress=None).fit(*data)
    assert on.ended_ is Ending.DONE
    assert _same([c.draws for c in on.chains_], [c.draws for c in whole.chains_])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_more_draws_are_those_of_one_long_fit(name):
    _, data = ESTIMATORS[name]
    paused = _fitted(name, n_draws=2, warm_start=True)
    first = paused.chains_[0]
    paused.set_params(n_draws=4, n_jobs=2, time_limit=100.0).fit(*data)
    assert first.sweeps == 6  # the chains of before stay as they were
    assert _same([c.draws for c in paused.chains_], [c.draws for c in _fitted(name).chains_])
    assert paused.fit(*data).ended_ is Ending.DONE


@pytest.mark.parametrize("n_chains", [1, 2])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_threads_change_nothing(name, n_chains):
    one, two = (_fitted(name, n_chains=n_chains, n_jobs=n) for n in (1, 2))
    assert len(one.draws_) == 4 * n_chains
    assert _same([c.draws for c in one.chains_], [c.draws for c in two.chains_])


@pytest.mark.parametrize("model", [TruncatedSVM, SwitchingSVM])
def test_how_mean_field_ended(model):
    """Comparators do not sample, and run under the same watch."""
    few = {"n_components": 3, "random_state": 0}
    assert model(max_iter=2, tol=0.0, **few).fit(X, Y).ended_ is Ending.LIMIT
    assert model(tol=1.0, **few).fit(X, Y).ended_ is Ending.DONE
    late = model(time_limit=0.0, tol=0.0, **few).fit(X, Y)
    assert (late.ended_, late.n_iter_) == (Ending.TIME, 1)
    stopped = model(progress=_interrupting(2), tol=0.0, **few).fit(X, Y)
    assert (stopped.ended_, stopped.n_iter_) == (Ending.INTERRUPTED, 2)
    assert len(np.concatenate(stopped.predict([X]) if model is SwitchingSVM else [Y])) == 40
