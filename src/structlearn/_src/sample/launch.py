r"""How a split proposes who leaves: a chain of two sides, fitted to the union of two states.

Two clusters begin at two positions, the anchors, and are fitted by a few rounds: the best sides
given the clusters, and the clusters given the sides. Positions that follow each other are linked;
in a mixture no two are. All this depends on the union and the anchors alone, so that a merge knows
the probability of the split back.

References
----------
S. Jain and R. Neal, "Splitting and merging components of a nonconjugate Dirichlet process mixture
model", Bayesian Analysis 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.inference.chain_batch import Chains
from structlearn._src.sample.emission import Arrays, Conjugate, Emission

_ROUNDS = 5  # of fitting two clusters, most of which stay the same after two or three
_BLOCK = 50  # positions that follow each other are fitted together, so that links are seen
_BLOCKS = 40  # of these at most: more hardly move the clusters
_WINDOW = 10  # positions before and after an anchor that its cluster begins with


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
        follows = np.ones(len(states), bool)
        follows[offsets[:-1]] = False
        linked = follows[positions] & (np.diff(positions, prepend=-2) == 1)
        sides = (states[positions] == two) & (one != two)
        return Union(positions, np.searchsorted(positions, anchors), sides, linked)


def launch(union: Union, emissions: Sequence[Emission], rng: Generator) -> Chains:
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
        sides = _chain(fitted, clusters, linked, share, table).best()[1]
        if np.array_equal(sides, before):  # nothing changes any more
            break
        before = sides
        clusters = [_refitted(e, sides, own) for e, own in zip(fitted, clusters, strict=True)]
        share = _log_shares(sides[~linked])
        pairs = np.flatnonzero(linked)
        table = np.array([_log_shares(sides[pairs[sides[pairs - 1] == k]]) for k in (0, 1)])
    whole = [emission.subset(union.positions) for emission in emissions]
    chain = _chain(whole, clusters, union.linked, share, table)
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
    return [_refitted(emission.subset(positions), sides, None) for emission in emissions]


def _refitted(emission: Emission, sides: Ints, before: Arrays | None) -> Arrays:
    """Return the parameters of both clusters."""
    if isinstance(emission, Conjugate):
        return emission.posterior_mean(emission.statistics(sides, 2))
    return emission.refined(sides, 2, before)


def _chain(
    emissions: Sequence[Emission],
    clusters: list[Arrays],
    linked: Bools,
    share: Floats,
    table: Floats,
) -> Chains:
    nodes = np.zeros((len(linked), 2))
    for emission, parameters in zip(emissions, clusters, strict=True):
        emission.add_log_densities(parameters, 0, len(linked), nodes)
    nodes[~linked] += share
    offsets = np.append(np.flatnonzero(~linked), len(linked))
    return Chains(nodes, table[None], offsets, 1)


def _log_shares(sides: Ints) -> Floats:
    """Return the log shares of both sides, as if each had been seen once more."""
    counts = np.bincount(sides, minlength=2) + 1.0
    return np.log(counts / counts.sum())
