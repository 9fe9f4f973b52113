r"""Moves that split a state in two, or join two, so that the number of states mixes.

Transitions and the parameters of conjugate parts are integrated out, so that moves act on paths
:math:`Z` and sticks :math:`\beta` alone. Their target is

.. math:: p(Z, \beta) \propto \gamma^K \beta_u^{\gamma - 1} \prod_k \beta_k^{-1} \;
          p(Z \mid \alpha, \beta) \prod_k p(x_k) ,

with the log evidence of what every state has seen. Two positions are drawn: if they share a state,
a split that separates them is proposed, else a merge of their states. Which positions leave in a
split is drawn given two clusters, fitted to the union and begun at the two positions; a merge fits
them too, to know the probability of the split back. The stick is broken at a uniform place.
Parameters that are not conjugate are proposed anew, but only for moves that would be accepted
without them: delayed acceptance.

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
from numpy.random import Generator
from scipy.special import expit

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.sample import hdp
from structlearn._src.sample.emission import Arrays, Conjugate
from structlearn._src.sample.hdp import Process
from structlearn._src.sample.hmm import HmmModel, HmmState, HmmStatistics
from structlearn._src.sample.runner import streams

_ROUNDS = 5  # of fitting two clusters, most of which stay the same after two or three
_FITTED = 2000  # positions that they are fitted to at most: more hardly move them


class Anchors(NamedTuple):
    """The two positions that a move begins with, and whether states were drawn before them."""

    places: Ints
    by_state: bool


class AnchorPair(NamedTuple):
    """Two positions, and all that share their states."""

    positions: Ints
    anchors: Ints  #: where the two are among `positions`
    emissions: Sequence[Conjugate]  #: of `positions` alone
    sides: Bools  #: which positions share the state of the second, and not of the first

    @staticmethod
    def of(model: HmmModel, state: HmmState, anchors: Ints) -> AnchorPair:
        """Find the positions that share the states of two."""
        one, two = state.states[anchors]
        positions = np.flatnonzero((state.states == one) | (state.states == two))
        emissions = [emission.subset(positions) for emission in model.conjugate]
        sides = (state.states[positions] == two) & (one != two)
        return AnchorPair(positions, np.searchsorted(positions, anchors), emissions, sides)


def split_or_merge(
    model: HmmModel, state: HmmState, found: HmmStatistics, rng: Generator
) -> tuple[HmmState, HmmStatistics, bool]:
    """Propose one move; return the state, its statistics, and whether the move was accepted.

    Afterwards transitions and the parameters of conjugate emissions are stale and must be drawn.
    """
    by_state = rng.random() < 0.5
    places = _choose_states(state, rng) if by_state else _choose(model.n_positions, rng)
    if places is None:
        return state, found, False
    one, two = state.states[places]
    propose = _split if one == two else _merge
    moved = propose(model, state, found, Anchors(places, by_state), rng)
    return (state, found, False) if moved is None else (*moved, True)


def _choose(n: int, rng: Generator) -> Ints | None:
    """Draw two of `n` places; None if there are not as many."""
    return rng.choice(n, 2, replace=False) if n > 1 else None


def _choose_states(state: HmmState, rng: Generator) -> Ints | None:
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


def log_choice(n_states: int, n_one: float, n_two: float) -> float:
    """Log ratio of how likely `_choose_states` draws two positions: merged, against split.

    With the number of states where they are split, and the sizes of the two.
    """
    n = n_one + n_two
    return float(np.log(n) + np.log(n - 1.0) - np.log(n_states) - np.log(n_one) - np.log(n_two))


def _split(
    model: HmmModel, state: HmmState, found: HmmStatistics, anchors: Anchors, rng: Generator
) -> tuple[HmmState, HmmStatistics] | None:
    """Propose to separate two positions that share a state; None if that is rejected."""
    pair = AnchorPair.of(model, state, anchors.places)
    k = int(state.states[anchors.places[0]])
    odds = _log_odds(pair, rng)
    sides = rng.random(len(odds)) < expit(odds)
    sides[pair.anchors] = [False, True]
    new = split_states(state, k, pair.positions[sides], rng.random())
    counts = hdp.count_transitions(new.states, model.offsets, new.n_states)
    after = HmmStatistics(counts, _separated(model, found, pair, k, sides))
    gain = _log_target(model, new, after, [k, -1]) - _log_target(model, state, found, [k])
    log_ratio = gain + np.log(state.process.sticks[k]) - log_proposal(odds, sides, pair)
    right = float(sides.sum())
    log_ratio += log_choice(new.n_states, len(sides) - right, right) if anchors.by_state else 0.0
    if np.log(rng.random()) >= log_ratio:
        return None
    apart = {k: pair.positions[~sides], state.n_states: pair.positions[sides]}
    proposed, log_weight = _exchange(model, state, {k: pair.positions}, new, apart, rng)
    return (proposed, after) if np.log(rng.random()) < log_weight else None


def _merge(
    model: HmmModel, state: HmmState, found: HmmStatistics, anchors: Anchors, rng: Generator
) -> tuple[HmmState, HmmStatistics] | None:
    """Propose to merge the states of two positions; None if that is rejected."""
    one, two = map(int, state.states[anchors.places])
    after = merge_statistics(found, one, two)
    sticks = _merged(state.process.sticks, one, two)
    sizes = found.counts.sum(0)[[one, two]].astype(float)
    new = state._replace(process=state.process._replace(sticks=sticks))
    place = one - (two < one)
    gain = _log_target(model, new, after, [place])
    gain -= _log_target(model, state, found, [one, two])
    log_ratio = gain - np.log(state.process.sticks[[one, two]].sum())
    log_ratio -= log_choice(state.n_states, *sizes) if anchors.by_state else 0.0
    threshold = np.log(rng.random())
    if threshold >= log_ratio:  # the probability of the split back, at most 1, is not needed
        return None
    pair = AnchorPair.of(model, state, anchors.places)
    if threshold >= log_ratio + log_proposal(_log_odds(pair, rng), pair.sides, pair):
        return None
    joined = merge_states(state, one, two)
    apart = {one: pair.positions[~pair.sides], two: pair.positions[pair.sides]}
    proposed, log_weight = _exchange(model, state, apart, joined, {place: pair.positions}, rng)
    return (proposed, after) if np.log(rng.random()) < log_weight else None


def _exchange(
    model: HmmModel,
    state: HmmState,
    before: Mapping[int, Ints],
    new: HmmState,
    after: Mapping[int, Ints],
    rng: Generator,
) -> tuple[HmmState, float]:
    """Propose parameters that are not conjugate for states that a move made, with their positions.

    Returns the new state with them, and their log weight less that of the parameters before. Every
    task has a stream of its own, so that threads change nothing.
    """
    parameters = [tuple(a.copy() for a in own) for own in new.parameters]
    tasks = [
        (i, emission.subset(positions), k, made)
        for i, emission in model.non_conjugate
        for made, groups in ((False, before), (True, after))
        for k, positions in groups.items()
    ]
    own = streams(rng, len(tasks))
    log_weights = np.zeros(len(tasks))

    def work(first: int, last: int) -> None:
        i, emission, k, made = tasks[first]
        if not made:
            given = tuple(a[k : k + 1] for a in state.parameters[i])
            log_weights[first] = -emission.log_weight_of(given)
            return
        proposed, log_weights[first] = emission.propose(own[first])
        for array, row in zip(parameters[i], proposed, strict=True):
            array[k] = row[0]

    threads.run(work, [(t, t + 1) for t in range(len(tasks))], model.n_jobs)
    return new._replace(parameters=tuple(parameters)), float(log_weights.sum())


def split_states(state: HmmState, k: int, leaving: Ints, share: float) -> HmmState:
    """Let some positions of state `k` leave for a new one, which gets the rest of its stick."""
    alpha, gamma, sticks, _ = state.process
    states = state.states.copy()
    states[leaving] = state.n_states
    whole = sticks[k]
    sticks = np.insert(sticks, len(sticks) - 1, (1.0 - share) * whole)
    sticks[k] = share * whole
    parameters = tuple(
        tuple(np.concatenate([a, a[k : k + 1]]) for a in arrays) for arrays in state.parameters
    )
    return HmmState(states, Process(alpha, gamma, sticks, _stale(sticks)), parameters)


def merge_states(state: HmmState, one: int, two: int) -> HmmState:
    """Merge two states; the parameters of the first stay."""
    numbers = np.arange(state.n_states)
    numbers[two] = one
    numbers[numbers > two] -= 1
    parameters = tuple(tuple(np.delete(a, two, 0) for a in own) for own in state.parameters)
    alpha, gamma, sticks, _ = state.process
    sticks = _merged(sticks, one, two)
    process = Process(alpha, gamma, sticks, _stale(sticks))
    return HmmState(numbers[state.states], process, parameters)


def merge_statistics(found: HmmStatistics, one: int, two: int) -> HmmStatistics:
    """Return the statistics where two states are one."""
    counts = found.counts.copy()
    counts[:, one] += counts[:, two]
    counts[one + 1] += counts[two + 1]
    counts = np.delete(np.delete(counts, two, 1), two + 1, 0)
    emitted = tuple(tuple(_merged(a, one, two) for a in own) for own in found.emitted)
    return HmmStatistics(counts, emitted)


def log_evidence(
    model: HmmModel, found: HmmStatistics, states: slice | list[int] = slice(None)
) -> float:
    """Log evidence of what states have seen, by conjugate emissions."""
    return sum(
        float(emission.log_evidence(tuple(a[states] for a in own)).sum())
        for emission, own in zip(model.emissions, found.emitted, strict=True)
        if isinstance(emission, Conjugate)
    )


def _log_target(model: HmmModel, state: HmmState, found: HmmStatistics, states: list[int]) -> float:
    """Log density of paths, sticks and what some states have seen: those that a move changes."""
    _, gamma, sticks, _ = state.process
    paths = hdp.log_probability(found.counts, state.process.alpha, sticks)
    return paths + hdp.log_sticks(gamma, sticks) + log_evidence(model, found, states)


def _separated(
    model: HmmModel, found: HmmStatistics, pair: AnchorPair, k: int, sides: Bools
) -> tuple[Arrays, ...]:
    """Return statistics where one side of a state has become the last one."""
    both = iter([e.statistics(sides.astype(np.int64), 2) for e in pair.emissions])
    return tuple(
        tuple(
            np.concatenate([a[:k], b[:1], a[k + 1 :], b[1:]])
            for a, b in zip(own, next(both), strict=True)
        )
        if isinstance(emission, Conjugate)
        else ()
        for emission, own in zip(model.emissions, found.emitted, strict=True)
    )


def _merged(array: Floats, one: int, two: int) -> Floats:
    joined = array.copy()
    joined[one] += joined[two]
    return np.delete(joined, two, 0)


def _log_odds(pair: AnchorPair, rng: Generator) -> Floats:
    """Fit two clusters from the two positions; return the log odds of the second for all."""
    n = len(pair.positions)
    some = rng.choice(n, _FITTED, replace=False) if n > _FITTED else np.arange(n)
    fitted = [e.subset(some) for e in pair.emissions]
    seeds = [e.subset(pair.anchors) for e in pair.emissions]
    clusters = [e.posterior_mean(e.statistics(np.arange(2), 2)) for e in seeds]
    share = 0.0
    before = np.zeros(0, bool)
    for _ in range(_ROUNDS):
        sides = _difference(fitted, clusters, len(some)) + share > 0.0
        if np.array_equal(sides, before):  # nothing changes any more
            break
        before = sides
        clusters = [e.posterior_mean(e.statistics(sides.astype(np.int64), 2)) for e in fitted]
        share = float(np.log((sides.sum() + 1.0) / (len(sides) - sides.sum() + 1.0)))
    return _difference(pair.emissions, clusters, n) + share


def _difference(emissions: Sequence[Conjugate], clusters: Sequence[Arrays], n: int) -> Floats:
    logs = np.zeros((n, 2))
    for emission, parameters in zip(emissions, clusters, strict=True):
        emission.add_log_densities(parameters, 0, n, logs)
    return logs[:, 1] - logs[:, 0]


def log_proposal(odds: Floats, sides: Bools, pair: AnchorPair) -> float:
    """Log probability that positions go to these sides; that of the two anchors is certain."""
    logs = -np.logaddexp(0.0, np.where(sides, -odds, odds))
    logs[pair.anchors] = 0.0
    return float(logs.sum())


def _stale(sticks: Floats) -> Floats:
    """Rows of the right shape that are to be drawn: NaN, so that nobody reads them before."""
    return np.full((len(sticks), len(sticks)), np.nan)
