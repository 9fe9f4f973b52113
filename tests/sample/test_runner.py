from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from structlearn._src.common.watch import Watch
from structlearn._src.sample.runner import Chain, Schedule, run, streams, traced


class Told(NamedTuple):
    value: float


def _step(state, rng, i):
    new = state + rng.normal()
    return new, Told(new)


def _chains(n=3, seed=0):
    return [Chain(0.0, rng) for rng in streams(np.random.default_rng(seed), n)]


def _draws(chains):
    return [chain.draws for chain in chains]


def test_schedule_keeps_every_so_many_after_burn_in():
    schedule = Schedule(burn_in=4, n_draws=3, thin=2)
    assert [i for i in range(schedule.sweeps) if schedule.keeps(i)] == [5, 7, 9]


def test_draws_do_not_depend_on_threads_nor_on_pauses():
    schedule, found = Schedule(5, 6, 2), []
    for n_jobs in (1, 3):
        chains = _chains()
        assert run(_step, chains, schedule, n_jobs=n_jobs) == "done"
        found.append(_draws(chains))
    paused = _chains()
    run(_step, paused, Schedule(5, 2, 2))
    assert run(_step, paused, schedule) == "done"
    assert found[0] == found[1] == _draws(paused)
    assert len({tuple(draws) for draws in found[0]}) == 3
    assert traced(paused, "value", 5).shape == (3, 12)


def test_interrupt_keeps_draws():
    def step(state, rng, i):
        if i == 7:
            raise KeyboardInterrupt
        return _step(state, rng, i)

    chains = _chains(1)
    assert run(step, chains, Schedule(3, 10)) == "interrupted"
    assert len(chains[0].draws) == 4
    assert run(_step, chains, Schedule(3, 10)) == "done"
    whole = _chains(1)
    run(_step, whole, Schedule(3, 10))
    assert _draws(whole) == _draws(chains)


def test_an_interrupt_within_a_sweep_takes_no_random_numbers():
    """The sweep has drawn some when it ends: the next one draws them again."""

    def step(state, rng, i):
        found = _step(state, rng, i)
        if i == 7:
            raise KeyboardInterrupt
        return found

    chains, whole = _chains(1), _chains(1)
    assert run(step, chains, Schedule(3, 10)) == "interrupted"
    for each in (chains, whole):
        assert run(_step, each, Schedule(3, 10)) == "done"
    assert _draws(chains) == _draws(whole)


def test_an_interrupt_after_a_sweep_keeps_all_of_it_or_nothing():
    class Torn(list):
        def append(self, value):
            raise KeyboardInterrupt

    chain, whole = _chains(1)[0], _chains(1)[0]
    chain.trace = Torn()
    with pytest.raises(KeyboardInterrupt):
        chain.advance(_step, kept=True)
    assert (chain.sweeps, chain.state, chain.draws) == (0, 0.0, [])
    chain.trace = []
    for each in (chain, whole):
        each.advance(_step, kept=True)
    assert (chain.state, chain.draws, chain.trace) == (whole.state, whole.draws, whole.trace)


def test_a_copy_goes_on_by_itself():
    (chain,) = _chains(1)
    chain.advance(_step, kept=True)
    other = chain.copy()
    other.advance(_step, kept=True)
    assert (chain.sweeps, len(chain.draws)) == (1, 1)
    chain.advance(_step, kept=True)
    assert chain.draws == other.draws


def test_the_last_sweep_is_told():
    told = []
    watch = Watch(None, lambda fraction, words: told.append((fraction, words)))
    assert run(_step, _chains(), Schedule(1, 3), watch=watch) == "done"
    assert told[-1] == (1.0, "sweep 4 of 4")
    late = Watch(0.0, lambda fraction, words: None)
    assert run(_step, _chains(), Schedule(0, 1), watch=late) == "done"  # in time, all the same


def test_time_limit_and_progress():
    told = []
    watch = Watch(0.0, lambda fraction, words: told.append((fraction, words)))
    assert run(_step, _chains(), Schedule(2, 2), watch=watch) == "time"
    assert told == [(0.25, "sweep 1 of 4")]


def test_errors_of_steps_are_raised():
    def step(state, rng, i):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(step, _chains(), Schedule(2, 2), n_jobs=2)
