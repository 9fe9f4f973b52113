"""Fewer states by search: for the time before draws are kept, as these steps are no draws."""

from __future__ import annotations

import numpy as np

from structlearn._src.common.arrays import Ints
from structlearn._src.sample import hdp
from structlearn._src.sample.chain import Model, State, Tally, occupied, tally
from structlearn._src.sample.emission import Arrays, Conjugate
from structlearn._src.sample.split_merge import (
    conjugate,
    log_evidence,
    merge_states,
    merge_tally,
    proposing,
)

_NEAREST = 3  # pairs that are looked at for each state


def merge_alike(model: Model, state: State) -> State:
    """Join the two states that gain most by it, as long as any two gain.

    The gain is that of the log evidence of what was seen and of the paths given sticks; of parts
    whose parameters cannot be integrated out, that of the worth of fitted ones.
    """
    found = tally(model, state)
    while state.n_states > 1 and conjugate(model):
        for gain, one, two in _likely(model, state, found):
            fitted, more = _union(model, state, one, two)
            if gain + more > 0.0:
                break
        else:
            break
        state, found = merge_states(state, one, two), merge_tally(found, one, two)
        for i, parameters in fitted.items():
            for array, row in zip(state.parameters[i], parameters, strict=True):
                array[one - (two < one)] = row[0]
    return state


def _likely(model: Model, state: State, found: Tally) -> list[tuple[float, int, int]]:
    """Return gains and states of unions that gain without parts that are not conjugate.

    The best comes first. They are sought among those that explain best what was seen.
    """
    n = found.counts.shape[1]
    ones, twos = np.triu_indices(n, 1)
    gains = np.zeros(len(ones))
    for part, own in zip(model.parts, found.statistics, strict=True):
        if isinstance(part, Conjugate):
            alone = part.log_evidence(own)
            gains += part.log_evidence(tuple(a[ones] + a[twos] for a in own))
            gains -= alone[ones] + alone[twos]
    unions = [
        (float(gains[i]) + _paths_gain(state, found, one, two), one, two)
        for i in np.argsort(-gains)[: _NEAREST * n]
        for one, two in [(int(ones[i]), int(twos[i]))]
    ]
    return sorted((union for union in unions if union[0] > 0.0), reverse=True)


def _paths_gain(state: State, found: Tally, one: int, two: int) -> float:
    alpha, _, sticks, _ = state.process
    whole = sticks.copy()
    whole[one] += whole[two]
    joined = merge_tally(Tally(found.counts, ()), one, two).counts
    paths = hdp.log_probability(joined, alpha, np.delete(whole, two))
    return paths - hdp.log_probability(found.counts, alpha, sticks)


def _union(model: Model, state: State, one: int, two: int) -> tuple[dict[int, Arrays], float]:
    """Return fitted parameters of a union by part, and what they are worth more than two states."""
    fitted: dict[int, Arrays] = {}
    more, own = 0.0, [np.flatnonzero(state.states == k) for k in (one, two)]
    for i, part in proposing(model):
        fitted[i], worth = part.at(np.concatenate(own)).fitted()
        more += worth - sum(part.at(positions).fitted()[1] for positions in own)
    return fitted, more


def dissolve_small(model: Model, state: State) -> State:
    """Hand the positions of states below the mean size to other states, where that gains.

    For states that lie between others and have little of each: joining one of them gains nothing.
    """
    sizes = np.bincount(state.states)
    small = [k for k in np.argsort(sizes, kind="stable") if sizes[k] < sizes.mean()]
    gone: set[int] = set()
    value = _value(model, state) if conjugate(model) else 0.0
    for k in small if conjugate(model) else ():
        left = np.array([j for j in range(state.n_states) if j != k and j not in gone])
        new = _without(model, state, int(k), left)
        if (after := _value(model, new)) > value:
            state, value = new, after
            gone.add(int(k))
    return occupied(state)


def _without(model: Model, state: State, k: int, left: Ints) -> State:
    """Let every position of state `k` take the best of the states that are `left`."""
    positions = np.flatnonzero(state.states == k)
    logs = np.log(np.bincount(state.states, minlength=state.n_states)[left] * np.ones((1, 1)))
    logs = np.repeat(logs, len(positions), 0)
    for part, parameters in zip(model.parts, _central(model, state), strict=True):
        chosen = tuple(a[left] for a in parameters)
        part.at(positions).add_logs(chosen, 0, len(positions), logs)
    states = state.states.copy()
    states[positions] = left[logs.argmax(1)]
    return state._replace(states=states)


def _central(model: Model, state: State) -> list[Arrays]:
    """Return the parameters of parts: in the middle of what is known where that is easy."""
    return [
        part.typical(part.statistics(state.states, state.n_states))
        if isinstance(part, Conjugate)
        else parameters
        for part, parameters in zip(model.parts, state.parameters, strict=True)
    ]


def _value(model: Model, state: State) -> float:
    """Log evidence of what was seen, and of the paths given sticks."""
    found = tally(model, state)
    value = hdp.log_probability(found.counts, state.process.alpha, state.process.sticks)
    logs = np.zeros((model.n_positions, state.n_states))
    for i, part in proposing(model):
        part.add_logs(state.parameters[i], 0, model.n_positions, logs)
    own = np.take_along_axis(logs, state.states[:, None], 1).sum()
    return value + log_evidence(model, found) + float(own)
