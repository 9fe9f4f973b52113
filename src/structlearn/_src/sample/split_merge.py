r"""Moves that split a state in two, or join two, so that the number of states mixes.

Transitions and the parameters of conjugate parts are integrated out, so that moves act on paths
:math:`Z` and sticks :math:`\beta` alone. Their target is

.. math:: p(Z, \beta) \propto \gamma^K \beta_u^{\gamma - 1} \prod_k \beta_k^{-1} \;
          p(Z \mid \alpha, \beta) \prod_k p(x_k) ,

with the log evidence of what every state has seen. Two positions are drawn: if they share a state,
a split that parts them is proposed, else to join their states. Who goes where in a split is drawn
given two clusters that were fitted to the union from the two positions (which a move that joins
does too, to know how likely the split back is), and the stick is broken at a uniform place.
Parameters that are not conjugate are proposed anew, but only for moves that would be accepted
without them: an acceptance in two stages.

References
----------
S. Jain and R. Neal, "A split-merge Markov chain Monte Carlo procedure for the Dirichlet process
mixture model", JCGS 2004.
J. Christen and C. Fox, "Markov chain Monte Carlo using an approximation", JCGS 2005.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.sample import hdp
from structlearn._src.sample.chain import Model, State, Tally
from structlearn._src.sample.emission import Arrays, Conjugate, Proposing
from structlearn._src.sample.hdp import Process
from structlearn._src.sample.runner import streams

_ROUNDS = 5  # of fitting two clusters
_FITTED = 2000  # positions that they are fitted to at most


class Pair(NamedTuple):
    """Two positions, and all that share their states."""

    positions: Ints
    anchors: Ints  #: where the two are among `positions`
    parts: Sequence[Conjugate]  #: of `positions` alone
    sides: Bools  #: which positions share the state of the second, and not of the first

    @staticmethod
    def of(model: Model, state: State, anchors: Ints) -> Pair:
        """Find the positions that share the states of two."""
        one, two = state.states[anchors]
        positions = np.flatnonzero((state.states == one) | (state.states == two))
        parts = [part.at(positions) for part in conjugate(model)]
        sides = (state.states[positions] == two) & (one != two)
        return Pair(positions, np.searchsorted(positions, anchors), parts, sides)


def conjugate(model: Model) -> list[Conjugate]:
    """Return the parts whose parameters can be integrated out."""
    return [part for part in model.parts if isinstance(part, Conjugate)]


def proposing(model: Model) -> list[tuple[int, Proposing]]:
    """Return the parts whose parameters cannot be integrated out, with their places."""
    return [(i, part) for i, part in enumerate(model.parts) if isinstance(part, Proposing)]


def split_or_merge(
    model: Model, state: State, found: Tally, rng: np.random.Generator
) -> tuple[State, Tally, bool]:
    """Propose one move; return the new state, its tally, and whether they are new ones.

    Afterwards transitions and the parameters of conjugate parts are stale and must be drawn.
    """
    by_state = rng.random() < 0.5
    anchors = _choose_states(state, rng) if by_state else _choose(model.n_positions, rng)
    if anchors is None:
        return state, found, False
    propose = _split if state.states[anchors[0]] == state.states[anchors[1]] else _merge
    moved = propose(model, state, found, anchors, by_state, rng)
    return (state, found, False) if moved is None else (*moved, True)


def _choose(n: int, rng: np.random.Generator) -> Ints | None:
    """Draw two of `n` places; None if there are not as many."""
    return rng.choice(n, 2, replace=False) if n > 1 else None


def _choose_states(state: State, rng: np.random.Generator) -> Ints | None:
    """Draw two positions of one state, or two states and a position of each.

    All states are alike here, so that small ones get their turn too.
    """
    if rng.random() < 0.5:
        members = np.flatnonzero(state.states == rng.integers(state.n_states))
        found = _choose(len(members), rng)
        return None if found is None else members[found]
    chosen = _choose(state.n_states, rng)
    if chosen is None:
        return None
    return np.array([rng.choice(np.flatnonzero(state.states == k)) for k in chosen])


def _log_choice(n_states: int, n_one: float, n_two: float) -> float:
    """Log of how much likelier `_choose_states` draws two positions to join than to part.

    With the number of states where they are parted, and the sizes of the two.
    """
    n = n_one + n_two
    return float(np.log(n) + np.log(n - 1.0) - np.log(n_states) - np.log(n_one) - np.log(n_two))


def _split(
    model: Model,
    state: State,
    found: Tally,
    anchors: Ints,
    by_state: bool,
    rng: np.random.Generator,
) -> tuple[State, Tally] | None:
    """Propose to part two positions that share a state; None if that is not accepted."""
    pair, k = Pair.of(model, state, anchors), int(state.states[anchors[0]])
    odds = _log_odds(pair, rng)
    sides = rng.random(len(odds)) < expit(odds)
    sides[pair.anchors] = [False, True]
    new = split_states(state, k, pair.positions[sides], rng.random())
    counts = hdp.count_transitions(new.states, model.offsets, new.n_states)
    after = Tally(counts, _parted(model, found, pair, k, sides))
    gain = _log_target(model, new, after, [k, -1]) - _log_target(model, state, found, [k])
    log_ratio = gain + np.log(state.process.sticks[k]) - _log_proposal(odds, sides, pair)
    n, right = len(sides), float(sides.sum())
    log_ratio += _log_choice(new.n_states, n - right, right) if by_state else 0.0
    if np.log(rng.random()) >= log_ratio:
        return None
    apart = {k: pair.positions[~sides], state.n_states: pair.positions[sides]}
    proposed, worth = _exchange(model, state, {k: pair.positions}, new, apart, rng)
    return (proposed, after) if np.log(rng.random()) < worth else None


def _merge(
    model: Model,
    state: State,
    found: Tally,
    anchors: Ints,
    by_state: bool,
    rng: np.random.Generator,
) -> tuple[State, Tally] | None:
    """Propose to join the states of two positions; None if that is not accepted."""
    one, two = map(int, state.states[anchors])
    after, sticks = merge_tally(found, one, two), _merged_sticks(state, one, two)
    sizes = found.counts.sum(0)[[one, two]].astype(float)
    new = state._replace(process=state.process._replace(sticks=sticks))
    place = one - (two < one)
    gain = _log_target(model, new, after, [place])
    gain -= _log_target(model, state, found, [one, two])
    log_ratio = gain - np.log(state.process.sticks[[one, two]].sum())
    log_ratio -= _log_choice(state.n_states, *sizes) if by_state else 0.0
    threshold = np.log(rng.random())
    if threshold >= log_ratio:  # without a look at how likely the split is: at most 1
        return None
    pair = Pair.of(model, state, anchors)
    if threshold >= log_ratio + _log_proposal(_log_odds(pair, rng), pair.sides, pair):
        return None
    joined = merge_states(state, one, two)
    apart = {one: pair.positions[~pair.sides], two: pair.positions[pair.sides]}
    proposed, worth = _exchange(model, state, apart, joined, {place: pair.positions}, rng)
    return (proposed, after) if np.log(rng.random()) < worth else None


def _exchange(
    model: Model,
    state: State,
    before: Mapping[int, Ints],
    new: State,
    after: Mapping[int, Ints],
    rng: np.random.Generator,
) -> tuple[State, float]:
    """Propose parameters that are not conjugate for states that a move made, with their positions.

    Returns the new state with them, and their worth less that of the parameters before. All states
    have streams of their own, and are worked on side by side.
    """
    parameters = [tuple(a.copy() for a in own) for own in new.parameters]
    tasks = [
        (i, part.at(positions), k, made)
        for i, part in proposing(model)
        for made, groups in ((False, before), (True, after))
        for k, positions in groups.items()
    ]
    own, worths = streams(rng, len(tasks)), np.zeros(len(tasks))

    def work(first: int, last: int) -> None:
        i, part, k, made = tasks[first]
        if not made:
            given = tuple(a[k : k + 1] for a in state.parameters[i])
            worths[first] = -part.appraise(given)
            return
        proposed, worths[first] = part.propose(own[first])
        for array, row in zip(parameters[i], proposed, strict=True):
            array[k] = row[0]

    threads.run(work, [(t, t + 1) for t in range(len(tasks))], model.n_jobs)
    return new._replace(parameters=tuple(parameters)), float(worths.sum())


def split_states(state: State, k: int, leaving: Ints, share: float) -> State:
    """Let some positions of state `k` leave for a new one, which gets the rest of its stick."""
    states, (alpha, gamma, sticks, _) = state.states.copy(), state.process
    states[leaving] = state.n_states
    whole = sticks[k]
    sticks = np.insert(sticks, len(sticks) - 1, (1.0 - share) * whole)
    sticks[k] = share * whole
    parameters = tuple(
        tuple(np.concatenate([a, a[k : k + 1]]) for a in arrays) for arrays in state.parameters
    )
    return State(states, Process(alpha, gamma, sticks, _stale(sticks)), parameters)


def merge_states(state: State, one: int, two: int) -> State:
    """Join two states; the parameters of the first stay."""
    numbers = np.arange(state.n_states)
    numbers[two] = one
    numbers[numbers > two] -= 1
    parameters = tuple(tuple(np.delete(a, two, 0) for a in own) for own in state.parameters)
    sticks, (alpha, gamma, _, _) = _merged_sticks(state, one, two), state.process
    process = Process(alpha, gamma, sticks, _stale(sticks))
    return State(numbers[state.states], process, parameters)


def merge_tally(found: Tally, one: int, two: int) -> Tally:
    """Return what two states say as one."""
    counts = found.counts.copy()
    counts[:, one] += counts[:, two]
    counts[one + 1] += counts[two + 1]
    counts = np.delete(np.delete(counts, two, 1), two + 1, 0)
    statistics = tuple(tuple(_merged(a, one, two) for a in own) for own in found.statistics)
    return Tally(counts, statistics)


def log_evidence(model: Model, found: Tally, states: slice | list[int] = slice(None)) -> float:
    """Log evidence of what states have seen, and parameters of conjugate parts integrated out."""
    return sum(
        float(part.log_evidence(tuple(a[states] for a in own)).sum())
        for part, own in zip(model.parts, found.statistics, strict=True)
        if isinstance(part, Conjugate)
    )


def _log_target(model: Model, state: State, found: Tally, states: list[int]) -> float:
    """Log density of paths, sticks and what some states have seen: those that a move changes."""
    _, gamma, sticks, _ = state.process
    paths = hdp.log_probability(found.counts, state.process.alpha, sticks)
    return paths + hdp.log_sticks(gamma, sticks) + log_evidence(model, found, states)


def _parted(model: Model, found: Tally, pair: Pair, k: int, sides: Bools) -> tuple[Arrays, ...]:
    """Return statistics where one side of a state has become the last one."""
    parted = iter([part.statistics(sides.astype(np.int64), 2) for part in pair.parts])
    return tuple(
        tuple(
            np.concatenate([a[:k], b[:1], a[k + 1 :], b[1:]])
            for a, b in zip(own, next(parted), strict=True)
        )
        if isinstance(part, Conjugate)
        else ()
        for part, own in zip(model.parts, found.statistics, strict=True)
    )


def _merged(array: Floats, one: int, two: int) -> Floats:
    joined = array.copy()
    joined[one] += joined[two]
    return np.delete(joined, two, 0)


def _merged_sticks(state: State, one: int, two: int) -> Floats:
    return _merged(state.process.sticks, one, two)


def _log_odds(pair: Pair, rng: np.random.Generator) -> Floats:
    """Fit two clusters from the two positions; return the log odds of the second for all."""
    n, anchors = len(pair.positions), pair.anchors
    some = rng.choice(n, _FITTED, replace=False) if n > _FITTED else np.arange(n)
    fitted = [part.at(some) for part in pair.parts]
    seeds = [part.at(anchors) for part in pair.parts]
    clusters = [part.typical(part.statistics(np.arange(2), 2)) for part in seeds]
    share, before = 0.0, np.zeros(0, bool)
    for _ in range(_ROUNDS):
        sides = _difference(fitted, clusters, len(some)) + share > 0.0
        if np.array_equal(sides, before):  # nothing changes any more
            break
        before = sides
        clusters = [p.typical(p.statistics(sides.astype(np.int64), 2)) for p in fitted]
        share = float(np.log((sides.sum() + 1.0) / (len(sides) - sides.sum() + 1.0)))
    return _difference(pair.parts, clusters, n) + share


def _difference(parts: Sequence[Conjugate], clusters: Sequence[Arrays], n: int) -> Floats:
    logs = np.zeros((n, 2))
    for part, parameters in zip(parts, clusters, strict=True):
        part.add_logs(parameters, 0, n, logs)
    return logs[:, 1] - logs[:, 0]


def _log_proposal(odds: Floats, sides: Bools, pair: Pair) -> float:
    """Log probability that positions go to these sides; that of the two is certain."""
    logs = -np.logaddexp(0.0, np.where(sides, -odds, odds))
    logs[pair.anchors] = 0.0
    return float(logs.sum())


def _stale(sticks: Floats) -> Floats:
    """Rows of the right shape, to be drawn."""
    return np.full((len(sticks), len(sticks)), np.nan)
