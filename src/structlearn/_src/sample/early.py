r"""A first look at the split of a large state: what its first positions say of it.

Most splits of large states are hopeless, and some thousand of their positions tell. So these are
looked at first: with :math:`r` the log ratio of the split as if there were no others, it goes on
with probability :math:`\min(1, e^a)`, where :math:`a` is :math:`r` with a slack taken off, and is
accepted with what is left of its own ratio; for a merge, :math:`a` has the other sign. That is
delayed acceptance, which keeps the posterior whatever :math:`r` says, as long as a split and the
merge that undoes it agree on it.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.kernels.chain import beam
from structlearn._src.kernels.draw import allocate as kernels
from structlearn._src.sample.hdp import Process, Restaurant
from structlearn._src.sample.hmm import HmmModel
from structlearn._src.sample.sides import FittedSides, Sides, Union

LARGE = 2**12  # positions of states that are looked at first
_FIRST = 2**11  # positions that are looked at, to the end of their run
_SLACK = {True: 20.0, False: 50.0}  # of log ratios, by whether sides are fitted: few in the first
# positions say nothing of the sides of one after the other, where hardly any leave


def head(model: HmmModel, union: Union, process: Process | Restaurant) -> int:
    """Return how many positions are looked at first, 0 if there is no such look."""
    n = len(union.positions)
    if n < LARGE or isinstance(process, Restaurant) or not model.conjugate:
        return 0
    ends = np.flatnonzero(~union.linked[_FIRST:])
    return _FIRST + int(ends[0]) if len(ends) else 0


def draw(
    model: HmmModel, proposal: Sides, process: Process, states: tuple[int, int], rng: Generator
) -> tuple[Bools, float, float] | None:
    """Draw sides; return them, their log probability, and the log ratio of the first look.

    None if the move is rejected by that.
    """
    if head(model, proposal.union, process) == 0:
        return *proposal.draw(rng), 0.0
    sides = np.full(len(proposal.union.positions), -1)
    uniforms = rng.random(len(sides))
    early = look(model, proposal, process, states, uniforms, sides)
    if np.log(rng.random()) >= early:
        return None
    log_probability = proposal.allot(uniforms, sides, len(sides))
    return sides == 1, log_probability, early


def look(
    model: HmmModel,
    proposal: Sides,
    process: Process,
    states: tuple[int, int],
    uniforms: Floats,
    sides: Ints,
) -> float:
    """Draw the first sides, those that are -1; return what is clear of their log ratio.

    It is that of a split whose sides are two `states` of the process, and 0 without a look.
    """
    n = head(model, proposal.union, process)
    if n == 0:
        return 0.0
    log_proposal = proposal.allot(uniforms, sides, n)
    log_ratio = log_early(model, proposal.union, process, states, sides[:n], log_proposal)
    slack = _SLACK[isinstance(proposal, FittedSides)]
    return float(np.sign(log_ratio) * max(abs(log_ratio) - slack, 0.0))


def log_early(
    model: HmmModel,
    union: Union,
    process: Process,
    states: tuple[int, int],
    sides: Ints,
    log_proposal: float,
) -> float:
    """Log ratio of a split by its first positions, whose `sides` have `states` of their own.

    These are states of the `process`; `log_proposal` is the log probability that they are drawn.
    """
    one, two = states
    n = len(sides)
    positions = union.positions[:n]
    second = sides == 1
    total = -log_proposal
    for emission in model.conjugate:
        parts = [emission.statistics_at(positions[side]) for side in (~second, second)]
        both = tuple(np.concatenate([a, b, a + b]) for a, b in zip(*parts, strict=True))
        left, right, whole = emission.log_evidence(both)
        total += left + right - whole
    apart = np.zeros((process.n_states + 1, process.n_states), np.int64)
    joint = apart.copy()
    around = union.before[:n], union.after[:n]
    kernels.count_around(*around, second, one, two, apart)
    kernels.count_around(*around, second, one, one, joint)
    masses = process.masses
    total += beam.log_urns(apart, masses, process.alpha, np.array(states))
    masses[one] += masses[two]
    total -= beam.log_urns(joint, masses, process.alpha, np.array([one]))
    return float(total)
