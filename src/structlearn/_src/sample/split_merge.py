r"""Split-merge moves: they split a state in two, or merge two, so that their number mixes.

Transitions and the parameters of conjugate emissions are integrated out, so that moves act on paths
:math:`Z` and sticks :math:`\beta` alone. Their target is

.. math:: p(Z, \beta) \propto \gamma^K \beta_u^{\gamma - 1} \prod_k \beta_k^{-1} \;
          p(Z \mid \alpha, \beta) \prod_k p(x_k) ,

with the log evidence of what every state has seen; in a mixture there are no sticks, and
:math:`p(Z) \propto \alpha^K \prod_k \Gamma(n_k)`. Two positions are drawn: if they share a state,
a split that separates them is proposed, else a merge of their states. The stick is broken at a
uniform place. Parameters of non-conjugate emissions are proposed anew, in large states only for
moves that would be accepted without them: delayed acceptance. So are splits whose first positions
say that they are hopeless, as in `early`.

Which positions leave in a split is drawn as in `sides`.

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
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.common.watch import must_end
from structlearn._src.kernels.draw import allocate as kernels
from structlearn._src.sample import early, hdp
from structlearn._src.sample.anchors import (
    choose_places,
    choose_states,
    log_choice,
    members,
    telling,
)
from structlearn._src.sample.emission import Conjugate, Emission
from structlearn._src.sample.hdp import Process
from structlearn._src.sample.hmm import HmmModel, HmmState, HmmStatistics
from structlearn._src.sample.runner import streams
from structlearn._src.sample.sides import (
    FittedSides,
    SequentialSides,
    Union,
    fit_sides,
    sequential_sides,
)

SLACK = 20.0  # of log ratios: what labels make up for, where points and paths say no


class Anchors(NamedTuple):
    """The two positions that a move begins with, and how the split of their states is proposed."""

    places: Ints
    by_state: bool  #: whether states were drawn before the positions
    emissions: Sequence[Emission]  #: those that tell the sides of a split apart
    fitted: bool  #: whether sides are fitted, or chosen one after the other


class _Standing(NamedTuple):
    """What the probability of a state of the sampler depends on, and the states that matter."""

    process: Process
    found: HmmStatistics
    states: list[int]


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
    emissions = telling(model, rng)
    fitted = rng.random() < 0.5
    places = choose_states(state, found, rng) if by_state else choose_places(model, rng)
    if places is None:
        return state, found, False
    one, two = state.states[places]
    propose = _split if one == two else _merge
    moved = propose(model, state, found, Anchors(places, by_state, emissions, fitted), rng)
    return (state, found, False) if moved is None else (*moved, True)


def propose_merge(
    model: HmmModel, state: HmmState, found: HmmStatistics, pair: tuple[int, int], rng: Generator
) -> tuple[HmmState, HmmStatistics] | None:
    """Propose to merge two given states; None if that is rejected."""
    places = members(state, found, pair, rng)
    return _merge(model, state, found, Anchors(places, True, telling(model, rng), False), rng)


def split_and_merge(
    model: HmmModel, state: HmmState, found: HmmStatistics, n_moves: int, rng: Generator
) -> tuple[HmmState, HmmStatistics, int]:
    """Propose moves one after the other; return also how many were accepted.

    Most are rejected, so that threads try the next ones at the same time, as if those before were:
    what follows one that is accepted is tried again. Every move has a random stream of its own, so
    that this changes no draw. In the first sweep there are fewer where the time is over.
    """
    seeds = rng.integers(2**63, size=(n_moves, 4))
    # Where all is conjugate, a move takes a millisecond, half of it with the interpreter's lock:
    # only moves that fit classifiers are worth a thread.
    long = model.non_conjugate and model.n_positions > threads.GRAIN["positions"]
    ahead = threads.workers(model.n_jobs) if long else 1
    n_accepted = begun = 0
    while begun < n_moves and not (begun and must_end()):
        outcomes = _tried(model, state, found, seeds[begun : begun + ahead])
        last = next((i for i, (*_, moved) in enumerate(outcomes) if moved), len(outcomes) - 1)
        state, found, accepted = outcomes[last]
        n_accepted += accepted
        begun += last + 1
    return state, found, n_accepted


def _tried(
    model: HmmModel, state: HmmState, found: HmmStatistics, seeds: Ints
) -> list[tuple[HmmState, HmmStatistics, bool]]:
    """Return what single moves from one state come to, each with a random stream of its own."""
    outcomes = [(state, found, False)] * len(seeds)

    def work(first: int, last: int) -> None:
        for i in range(first, last):
            if not any(accepted for *_, accepted in outcomes[:i]):  # else it is tried again
                outcomes[i] = split_or_merge(model, state, found, np.random.default_rng(seeds[i]))

    threads.run(work, [(i, i + 1) for i in range(len(seeds))], model.n_jobs)
    return outcomes


def _split(
    model: HmmModel, state: HmmState, found: HmmStatistics, anchors: Anchors, rng: Generator
) -> tuple[HmmState, HmmStatistics] | None:
    """Propose to separate two positions that share a state; None if that is rejected."""
    k = int(state.states[anchors.places[0]])
    union = Union.of(state.states, model.offsets, anchors.places, [found.places(state.states, k)])
    share = rng.random()
    process = state.process.split(k, share)
    proposal = _propose(model, union, anchors, process, (k, state.n_states), rng)
    drawn = early.draw(model, proposal, process, (k, state.n_states), rng)
    if drawn is None:
        return None
    sides, log_proposal, clear = drawn
    after = split_statistics(model, found, union, k, sides)
    old = _Standing(state.process, found, [k])
    log_ratio = _log_gain(model, old, _Standing(process, after, [k, state.n_states]))
    log_ratio += state.process.log_size(k) - log_proposal
    right = float(sides.sum())
    n_states = process.n_states
    log_ratio += log_choice(n_states, len(sides) - right, right) if anchors.by_state else 0.0
    threshold = clear + np.log(rng.random())
    if threshold >= _first_stage(model, log_ratio):
        return None  # before anything as long as all paths is copied
    apart = {k: union.positions[~sides], state.n_states: union.positions[sides]}
    new = split_states(state, k, apart[state.n_states], share)
    change = Change(state, {k: union.positions}, new, apart)
    proposed = _accepted(model, change, log_ratio, threshold, rng)
    return None if proposed is None else (proposed, _listed(after, found, change))


def _merge(
    model: HmmModel, state: HmmState, found: HmmStatistics, anchors: Anchors, rng: Generator
) -> tuple[HmmState, HmmStatistics] | None:
    """Propose to merge the states of two positions; None if that is rejected."""
    one, two = map(int, state.states[anchors.places])
    after = merge_statistics(found, one, two)
    process = state.process.merge(one, two)
    place = one - (two < one)
    old = _Standing(state.process, found, [one, two])
    log_ratio = _log_gain(model, old, _Standing(process, after, [place]))
    log_ratio -= process.log_size(place)
    sizes = found.counts.sum(0)[[one, two]].astype(float)
    log_ratio -= log_choice(state.n_states, *sizes) if anchors.by_state else 0.0
    threshold, first = np.log(rng.random(2))
    bound = threshold + first if sizes.sum() >= early.LARGE else threshold
    if bound >= _first_stage(model, log_ratio):
        return None  # whatever the probability of the split back, which is at most 1
    places = [found.places(state.states, k) for k in (one, two)]
    union = Union.of(state.states, model.offsets, anchors.places, places)
    proposal = _propose(model, union, anchors, state.process, (one, two), rng)
    sides = union.sides.astype(np.int64)
    clear = -early.look(model, proposal, state.process, (one, two), np.empty(0), sides)
    if first >= clear:
        return None
    threshold += clear
    log_ratio += proposal.log_probability(union.sides)
    new = merge_states(state, one, two)
    apart = {one: union.positions[~union.sides], two: union.positions[union.sides]}
    change = Change(state, apart, new, {place: union.positions})
    proposed = _accepted(model, change, log_ratio, threshold, rng)
    return None if proposed is None else (proposed, _listed(after, found, change))


def _listed(after: HmmStatistics, before: HmmStatistics, change: Change) -> HmmStatistics:
    """Add the positions of all states, where they are known, to the statistics after a move."""
    if not before.members:
        return after
    rest = [own for k, own in enumerate(before.members) if k not in change.before]
    for k in sorted(change.after):
        rest.insert(k, change.after[k])
    return after._replace(members=tuple(rest))


def _propose(
    model: HmmModel,
    union: Union,
    anchors: Anchors,
    process: Process,
    sides: tuple[int, int],
    rng: Generator,
) -> FittedSides | SequentialSides:
    """Return how sides are proposed; both are states of `process`."""
    if anchors.fitted:
        return fit_sides(union, anchors.emissions, rng)
    return sequential_sides(union, anchors.emissions, process, sides, rng)


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
    stage = _first_stage(model, log_ratio)
    if threshold >= stage:
        return None
    proposed, log_weight = _exchange(model, change, rng)
    return proposed if np.log(rng.random()) < log_ratio - stage + log_weight else None


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


def _log_gain(model: HmmModel, old: _Standing, new: _Standing) -> float:
    """Return by how much the log density of paths, sticks and what states have seen grows."""
    values = [s.process.log_density_at(s.found.counts, s.states) for s in (old, new)]
    n = len(old.states)
    for i, emission in enumerate(model.emissions):
        if isinstance(emission, Conjugate):  # all states at once: most of it is overhead
            both = zip(old.found.emitted[i], new.found.emitted[i], strict=True)
            given = tuple(np.concatenate([a[old.states], b[new.states]]) for a, b in both)
            logs = emission.log_evidence(given)
            values[0] += float(logs[:n].sum())
            values[1] += float(logs[n:].sum())
    return values[1] - values[0]


def split_statistics(
    model: HmmModel, found: HmmStatistics, union: Union, k: int, sides: Bools
) -> HmmStatistics:
    """Return the statistics where one side of a state has become the last one.

    What the smaller side has seen is summed up; the larger one has the rest.
    """
    n = len(found.counts)
    counts = np.zeros((n + 1, n), np.int64)
    counts[:-1, :-1] = found.counts
    kernels.recount(union.before, union.after, sides, k, n - 1, counts)
    small = bool(2 * np.count_nonzero(sides) <= len(sides))
    positions = union.positions[sides if small else ~sides]
    emitted = []
    for emission, own in zip(model.emissions, found.emitted, strict=True):
        part = emission.statistics_at(positions) if isinstance(emission, Conjugate) else ()
        rest = tuple(a[k] - b[0] for a, b in zip(own, part, strict=True))
        pairs = [(r, b[0]) if small else (b[0], r) for b, r in zip(part, rest, strict=True)]
        both = zip(own, pairs, strict=True)
        emitted.append(tuple(_separated(a, k, left, right) for a, (left, right) in both))
    return HmmStatistics(counts, tuple(emitted))


def _separated(array: Floats, k: int, left: Floats, right: Floats) -> Floats:
    """Return an array whose entry `k` has become two, of which the second is the last one."""
    found = np.concatenate([array, np.asarray(right)[None]])
    found[k] = left
    return found
