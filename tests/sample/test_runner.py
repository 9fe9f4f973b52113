from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from structlearn._src.common.watch import Ending, Watch
from structlearn._src.sample.runner import (
    MarkovChain,
    Schedule,
    effective_size,
    r_hat,
    run,
    streams,
    traced,
)


class Told(NamedTuple):
    value: float


class Walk:
    """A random walk, which may raise in one of its sweeps."""

    def __init__(self, error=None, sweep=-1):
        self.error = error
        self.sweep = sweep

    def begin(self, rng):
        return 0.0

    def step(self, state, rng, sweep):
        new = state + rng.normal()
        if sweep == self.sweep:
            raise self.error
        return new, Told(new)


WALK = Walk()


def _chains(n=3, seed=0):
    return [MarkovChain(WALK.begin(rng), rng) for rng in streams(np.random.default_rng(seed), n)]


def _draws(chains):
    return [chain.draws for chain in chains]


def test_schedule_keeps_every_so_many_after_burn_in():
    schedule = Schedule(burn_in=4, n_draws=3, thin=2)
    assert [i for i in range(schedule.sweeps) if schedule.keeps(i)] == [5, 7, 9]


def test_draws_do_not_depend_on_threads_nor_on_pauses():
    schedule, found = Schedule(5, 6, 2), []
    for n_jobs in (1, 3):
        chains = _chains()
        assert run(WALK, chains, schedule, n_jobs=n_jobs) is Ending.DONE
        found.append(_draws(chains))
    paused = _chains()
    run(WALK, paused, Schedule(5, 2, 2))
    assert run(WALK, paused, schedule) is Ending.DONE
    assert found[0] == found[1] == _draws(paused)
    assert len({tuple(draws) for draws in found[0]}) == 3
    assert traced(paused, "value", 5).shape == (3, 12)


def test_an_interrupt_keeps_draws_and_takes_no_random_numbers():
    """The sweep has drawn some when it ends: the next one draws them again."""
    chains, whole = _chains(1), _chains(1)
    assert run(Walk(KeyboardInterrupt, 7), chains, Schedule(3, 10)) is Ending.INTERRUPTED
    assert len(chains[0].draws) == 4
    for each in (chains, whole):
        assert run(WALK, each, Schedule(3, 10)) is Ending.DONE
    assert _draws(chains) == _draws(whole)


def test_an_interrupt_after_a_sweep_keeps_all_of_it_or_nothing():
    class Torn(list):
        def append(self, value):
            raise KeyboardInterrupt

    chain, whole = _chains(1)[0], _chains(1)[0]
    chain.trace = Torn()
    with pytest.raises(KeyboardInterrupt):
        chain.advance(WALK, kept=True)
    assert (chain.sweeps, chain.state, chain.draws) == (0, 0.0, [])
    chain.trace = []
    for each in (chain, whole):
        each.advance(WALK, kept=True)
    assert (chain.state, chain.draws, chain.trace) == (whole.state, whole.draws, whole.trace)


def test_a_copy_goes_on_by_itself():
    (chain,) = _chains(1)
    chain.advance(WALK, kept=True)
    other = chain.copy()
    other.advance(WALK, kept=True)
    assert (chain.sweeps, len(chain.draws)) == (1, 1)
    chain.advance(WALK, kept=True)
    assert chain.draws == other.draws


def test_the_last_sweep_is_told():
    told = []
    watch = Watch(None, lambda fraction, words: told.append((fraction, words)))
    assert run(WALK, _chains(), Schedule(1, 3), watch=watch) is Ending.DONE
    assert told[-1] == (1.0, "sweep 4 of 4")
    late = Watch(0.0, lambda fraction, words: None)
    assert run(WALK, _chains(), Schedule(0, 1), watch=late) is Ending.DONE  # in time, all the same


def test_time_limit_and_progress():
    told = []
    watch = Watch(0.0, lambda fraction, words: told.append((fraction, words)))
    assert run(WALK, _chains(), Schedule(2, 2), watch=watch) is Ending.TIME
    assert told == [(0.25, "sweep 1 of 4")]


def test_errors_of_steps_are_raised():
    with pytest.raises(ZeroDivisionError):
        run(Walk(ZeroDivisionError, 1), _chains(), Schedule(2, 2), n_jobs=2)


# ---- diagnostics -------------------------------------------------------------------------


def _autoregressive(rho, shape, rng):
    x = np.zeros(shape)
    for t in range(1, shape[1]):
        x[:, t] = rho * x[:, t - 1] + rng.normal(size=shape[0])
    return x[:, 50:]


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_effective_size_of_autoregressive_chains(rho):
    draws = _autoregressive(rho, (4, 4050), np.random.default_rng(1))
    expected = draws.size * (1 - rho) / (1 + rho)
    assert effective_size(draws) == pytest.approx(expected, rel=0.15)
    assert r_hat(draws) < 1.01


def test_chains_that_disagree_are_found():
    rng = np.random.default_rng(2)
    draws = rng.normal(size=(4, 500))
    places = draws + np.array([0, 0, 0, 2.0])[:, None]
    widths = draws * np.array([1, 1, 1, 5.0])[:, None]
    drifting = draws + np.linspace(0, 3, 500)
    for wrong in (places, widths, drifting):
        assert r_hat(wrong) > 1.1
    assert effective_size(places) < 50


def test_few_or_constant_draws():
    assert np.isnan(r_hat(np.zeros((2, 3))))
    assert np.isnan(effective_size(np.zeros((2, 3))))
    assert r_hat(np.ones((2, 10))) == 1.0
    assert effective_size(np.ones((2, 10))) == 20.0
    assert r_hat(np.repeat([[0.0], [1.0]], 10, axis=1)) == np.inf
