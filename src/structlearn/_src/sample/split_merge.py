r"""Split-merge moves: they split a state in two, or merge two, so that their number mixes.

Transitions and the parameters of conjugate emissions are integrated out, so that moves act on paths
:math:`Z` and sticks :math:`\beta` alone. Their target is

.. math:: p(Z, \beta) \propto \gamma^K \beta_u^{\gamma - 1} \prod_k \beta_k^{-1} \;
          p(Z \mid \alpha, \beta) \prod_k p(x_k) ,

with the log evidence of what every state has seen; in a mixture there are no sticks, and
:math:`p(Z) \propto \alpha^K \prod_k \Gamma(n_k)`. Two positions are drawn: if they share a state,
a split that separates them is proposed, else a merge of their states. The stick is broken at a
uniform place. Parameters of non-conjugate emissions are proposed anew, in large states only for
moves that would be accepted without them: delayed acceptance.

Which positions leave in a split is drawn from a chain of two sides (`launch`). Two clusters begin
at the two positions, the anchors, and are fitted by a few rounds: the best sides given the
clusters, and the clusters given the sides. Positions that follow each other are linked; in a
mixture no two are. All this depends on the union of the sides and on the anchors alone, so that a
merge knows the probability of the split back.

References
----------
S. Jain and R. Neal, "A split-merge Markov chain Monte Carlo procedure for the Dirichlet process
mixture model", JCGS 2004.
S. Jain and R. Neal, "Splitting and merging components of a nonconjugate Dirichlet process mixture
model", Bayesian Analysis 2007.
J. Christen and C. Fox, "Markov chain Monte Carlo using an approximation", JCGS 2005.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.inference.chain_batch import Chains
from structlearn._src.sample import hdp
from structlearn._src.sample.emission import Arrays, Conjugate, Emission
from structlearn._src.sample.hdp import Process
from structlearn._src.sample.hmm import HmmModel, HmmState, HmmStatistics
from structlearn._src.sample.runner import streams

SLACK = 20.0  # of log ratios: what labels make up for, where points and paths say no
_ROUNDS = 5  # of fitting two clusters, most of which stay the same after two or three
_BLOCK = 50  # positions that follow each other are fitted together, so that links are seen
_BLOCKS = 40  # of these at most: more hardly move the clusters
_SCORED = 2**13  # positions whose densities are found at a time
_WINDOW = 10  # positions before and after an anchor that its cluster begins with


class Anchors(NamedTuple):
    """The two positions that a move begins with, and how the split of their states is proposed."""

    places: Ints
    by_state: bool  #: whether states were drawn before the positions
    emissions: Sequence[Emission]  #: those that tell the sides of a split apart


class Change(NamedTuple):
    """A state and what a move makes of it, with the positions of the states that it changes."""

    state: HmmState
    before: Mapping[int, Ints]
    new: HmmState
    after: Mapping[int, Ints]


def split_or_merge(
    model: HmmModel, state: HmmState, found: HmmStatistics, rng: Generator
) -> tuple[HmmState, HmmStatistics, bool]:
    """Propose one move; return the state, its statistics, and whether the move was accepted.

    Afterwards transitions and the parameters of conjugate emissions are stale and must be drawn.
    """
    by_state = rng.random() < 0.5
    labelled = not model.conjugate or rng.random() < 0.5
    emissions = model.emissions if labelled else model.conjugate
    places = _choose_states(state, rng) if by_state else _choose(model.n_positions, rng)
    if places is None:
        return state, found, False
    one, two = state.states[places]
    propose = _split if one == two else _merge
    moved = propose(model, state, found, Anchors(places, by_state, emissions), rng)
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
    """Log ratio of how likely `_choose_states` draws two positions: in one state, against in two.

    `n_states` counts the states where the two are apart, whose sizes are `n_one` and `n_two`.
    """
    n = n_one + n_two
    return float(np.log(n) + np.log(n - 1.0) - np.log(n_states) - np.log(n_one) - np.log(n_two))


def _split(
    model: HmmModel, state: HmmState, found: HmmStatistics, anchors: Anchors, rng: Generator
) -> tuple[HmmState, HmmStatistics] | None:
    """Propose to separate two positions that share a state; None if that is rejected."""
    union = Union.of(state.states, model.offsets, anchors.places)
    k = int(state.states[anchors.places[0]])
    chain = launch(union, anchors.emissions, rng, model.n_jobs)
    sides = chain.draw(1, rng)[0].astype(bool)
    new = split_states(state, k, union.positions[sides], rng.random())
    counts = hdp.count_transitions(new.states, model.offsets, new.n_states, model.n_jobs)
    after = HmmStatistics(counts, _separated(model, found, union, k, sides))
    log_ratio = _log_target(model, new.process, after, [k, -1])
    log_ratio -= _log_target(model, state.process, found, [k])
    log_ratio += state.process.log_size(k) - log_proposal(chain, sides)
    right = float(sides.sum())
    log_ratio += log_choice(new.n_states, len(sides) - right, right) if anchors.by_state else 0.0
    apart = {k: union.positions[~sides], state.n_states: union.positions[sides]}
    change = Change(state, {k: union.positions}, new, apart)
    proposed = _accepted(model, change, log_ratio, np.log(rng.random()), rng)
    return None if proposed is None else (proposed, after)


def _merge(
    model: HmmModel, state: HmmState, found: HmmStatistics, anchors: Anchors, rng: Generator
) -> tuple[HmmState, HmmStatistics] | None:
    """Propose to merge the states of two positions; None if that is rejected."""
    one, two = map(int, state.states[anchors.places])
    after = merge_statistics(found, one, two)
    process = state.process.merge(one, two)
    place = one - (two < one)
    log_ratio = _log_target(model, process, after, [place]) - process.log_size(place)
    log_ratio -= _log_target(model, state.process, found, [one, two])
    sizes = found.counts.sum(0)[[one, two]].astype(float)
    log_ratio -= log_choice(state.n_states, *sizes) if anchors.by_state else 0.0
    threshold = np.log(rng.random())
    if threshold >= _first_stage(model, log_ratio):
        return None  # whatever the probability of the split back, which is at most 1
    union = Union.of(state.states, model.offsets, anchors.places)
    chain = launch(union, anchors.emissions, rng, model.n_jobs)
    log_ratio += log_proposal(chain, union.sides)
    new = merge_states(state, one, two)
    apart = {one: union.positions[~union.sides], two: union.positions[union.sides]}
    change = Change(state, apart, new, {place: union.positions})
    proposed = _accepted(model, change, log_ratio, threshold, rng)
    return None if proposed is None else (proposed, after)


def _first_stage(model: HmmModel, log_ratio: float) -> float:
    """Return the log ratio of the first stage of delayed acceptance.

    Of a log ratio without the parameters of non-conjugate emissions, it is that which these will
    hardly make up for. It changes its sign with the direction of a move, which is all that delayed
    acceptance needs. Where nothing is conjugate, the second stage decides everything.
    """
    slack = (SLACK if model.conjugate else np.inf) if model.non_conjugate else 0.0
    return float(np.sign(log_ratio) * max(abs(log_ratio) - slack, 0.0))


def _accepted(
    model: HmmModel, change: Change, log_ratio: float, threshold: float, rng: Generator
) -> HmmState | None:
    """Return the new state, with parameters proposed where not conjugate; None if rejected.

    `log_ratio` is that of Metropolis and Hastings without these.
    """
    early = _first_stage(model, log_ratio)
    if threshold >= early:
        return None
    proposed, log_weight = _exchange(model, change, rng)
    return proposed if np.log(rng.random()) < log_ratio - early + log_weight else None


def _exchange(model: HmmModel, change: Change, rng: Generator) -> tuple[HmmState, float]:
    """Propose parameters of non-conjugate emissions for the states that a move made.

    Returns the new state with them, and their log weight less that of the parameters before. Every
    task has a stream of its own, so that threads change nothing.
    """
    parameters = [tuple(a.copy() for a in own) for own in change.new.parameters]
    tasks = [
        (i, emission.subset(positions), k, made)
        for i, emission in model.non_conjugate
        for made, groups in ((False, change.before), (True, change.after))
        for k, positions in groups.items()
    ]
    own = streams(rng, len(tasks))
    log_weights = np.zeros(len(tasks))

    def work(first: int, last: int) -> None:
        i, emission, k, made = tasks[first]
        if not made:
            given = tuple(a[k : k + 1] for a in change.state.parameters[i])
            log_weights[first] = -emission.log_weight_of(given, own[first])
            return
        proposed, log_weights[first] = emission.propose(own[first])
        for array, row in zip(parameters[i], proposed, strict=True):
            array[k] = row[0]

    threads.run(work, [(t, t + 1) for t in range(len(tasks))], model.n_jobs)
    return change.new._replace(parameters=tuple(parameters)), float(log_weights.sum())


def split_states(state: HmmState, k: int, leaving: Ints, share: float) -> HmmState:
    """Let some positions of state `k` leave for a new one, which gets the rest of its stick."""
    states = state.states.copy()
    states[leaving] = state.n_states
    parameters = tuple(
        tuple(np.concatenate([a, a[k : k + 1]]) for a in arrays) for arrays in state.parameters
    )
    return state._replace(
        states=states, process=state.process.split(k, share), parameters=parameters
    )


def merge_states(state: HmmState, one: int, two: int) -> HmmState:
    """Merge two states; the parameters of the first stay."""
    numbers = np.arange(state.n_states)
    numbers[two] = one
    numbers[numbers > two] -= 1
    parameters = tuple(tuple(np.delete(a, two, 0) for a in own) for own in state.parameters)
    process = state.process.merge(one, two)
    return state._replace(states=numbers[state.states], process=process, parameters=parameters)


def merge_statistics(found: HmmStatistics, one: int, two: int) -> HmmStatistics:
    """Return the statistics where two states are one."""
    columns = hdp.add_up(found.counts.T, one, two)
    counts = hdp.add_up(columns.T, one + 1, two + 1)
    emitted = tuple(tuple(hdp.add_up(a, one, two) for a in own) for own in found.emitted)
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


def _log_target(
    model: HmmModel, process: Process, found: HmmStatistics, states: list[int]
) -> float:
    """Log density of paths, sticks and what some states have seen: those that a move changes."""
    return process.log_density(found.counts) + log_evidence(model, found, states)


def _separated(
    model: HmmModel, found: HmmStatistics, union: Union, k: int, sides: Bools
) -> tuple[Arrays, ...]:
    """Return statistics where one side of a state has become the last one."""
    both = (
        emission.subset(union.positions).statistics(sides.astype(np.int64), 2)
        if isinstance(emission, Conjugate)
        else ()
        for emission in model.emissions
    )
    return tuple(
        tuple(
            np.concatenate([a[:k], b[:1], a[k + 1 :], b[1:]])
            for a, b in zip(own, parts, strict=True)
        )
        for own, parts in zip(found.emitted, both, strict=True)
    )


# ---- how a split proposes who leaves -----------------------------------------------------


class Union(NamedTuple):
    """Positions of one state, or of two that may become one."""

    positions: Ints
    anchors: Ints  #: where the two anchors are among `positions`
    sides: Bools  #: which positions share the state of the second, and not of the first
    linked: Bools  #: which positions follow the one before in their sequence

    @staticmethod
    def of(states: Ints, offsets: Ints, anchors: Ints) -> Union:
        """Find the positions that share the states of two."""
        one, two = states[anchors]
        member = (states == one) | (states == two)
        positions = np.flatnonzero(member)
        linked = np.diff(positions, prepend=-2) == 1
        starts = offsets[:-1]
        linked[np.searchsorted(positions, starts[member[starts]])] = False
        sides = (states[positions] == two) & (one != two)
        return Union(positions, np.searchsorted(positions, anchors), sides, linked)


def launch(
    union: Union, emissions: Sequence[Emission], rng: Generator, n_jobs: int | None = 1
) -> Chains:
    """Return the chain of two sides, which are certain at the anchors."""
    n = len(union.positions)
    some = _some(n, rng)
    linked = union.linked[some] & (np.diff(some, prepend=-2) == 1)
    fitted = [emission.subset(union.positions[some]) for emission in emissions]
    clusters = _seeds(union, emissions)
    table = np.zeros((2, 2))
    share = np.zeros(2)
    before = np.zeros(0, bool)
    for _ in range(_ROUNDS):
        sides = _chain(fitted, clusters, linked, share, table, 1).best()[1]
        if np.array_equal(sides, before):  # nothing changes any more
            break
        before = sides
        clusters = [e.refined(sides, 2, own) for e, own in zip(fitted, clusters, strict=True)]
        share = _log_shares(sides[~linked])
        pairs = np.flatnonzero(linked)
        table = np.array([_log_shares(sides[pairs[sides[pairs - 1] == k]]) for k in (0, 1)])
    if len(some) < n:
        fitted = [emission.subset(union.positions) for emission in emissions]
    chain = _chain(fitted, clusters, union.linked, share, table, n_jobs)
    chain.nodes[union.anchors, [1, 0]] = -np.inf
    return chain


def log_proposal(chain: Chains, sides: Bools) -> float:
    """Log probability that a chain of two sides draws these."""
    linked = np.ones(len(sides), bool)
    linked[chain.offsets[:-1]] = False
    after = np.flatnonzero(linked)
    chosen = sides.astype(np.int64)
    score = chain.nodes[np.arange(len(sides)), chosen].sum()
    score += chain.edges[0, chosen[after - 1], chosen[after]].sum()
    return float(score - chain.log_partition().sum())


def _some(n: int, rng: Generator) -> Ints:
    """Return positions to fit to: all, or blocks of them."""
    if n <= _BLOCK * _BLOCKS:
        return np.arange(n)
    blocks = np.sort(rng.choice(n // _BLOCK, _BLOCKS, replace=False))
    return (_BLOCK * blocks[:, None] + np.arange(_BLOCK)).ravel()


def _seeds(union: Union, emissions: Sequence[Emission]) -> list[Arrays]:
    """Fit the two clusters to the anchors, and to what is linked to these nearby."""
    run = np.cumsum(~union.linked)
    near = [
        np.flatnonzero((run == run[a]) & (np.abs(np.arange(len(run)) - a) <= _WINDOW))
        for a in union.anchors
    ]
    sides = np.repeat([0, 1], [len(own) for own in near])
    positions = union.positions[np.concatenate(near)]
    return [emission.subset(positions).refined(sides, 2, None) for emission in emissions]


def _chain(
    emissions: Sequence[Emission],
    clusters: list[Arrays],
    linked: Bools,
    share: Floats,
    table: Floats,
    n_jobs: int | None,
) -> Chains:
    nodes = np.zeros((len(linked), 2))

    def work(first: int, last: int) -> None:
        for emission, parameters in zip(emissions, clusters, strict=True):
            emission.add_log_densities(parameters, first, last, nodes[first:last])

    ends = [*range(0, len(linked), _SCORED), len(linked)]
    threads.run(work, list(pairwise(ends)), n_jobs)
    nodes[~linked] += share
    offsets = np.append(np.flatnonzero(~linked), len(linked))
    return Chains(nodes, table[None], offsets, n_jobs)


def _log_shares(sides: Ints) -> Floats:
    """Return the log shares of both sides, as if each had been seen once more."""
    counts = np.bincount(sides, minlength=2) + 1.0
    return np.log(counts / counts.sum())
