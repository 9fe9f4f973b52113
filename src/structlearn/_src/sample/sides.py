r"""How a split proposes which positions leave, and how likely any of its proposals is.

Two clusters begin at two positions, the anchors. In one way they are fitted by a few rounds: the
best sides given the clusters, and the clusters given the sides; then all sides are drawn together,
from a chain. It finds clusters that are apart. In the other way positions choose their sides one
after the other, given those before them, with all parameters integrated out. It knows about as much
of any sides as these themselves tell, so that states that are alike, however their positions are
shared out, can merge again. Positions that follow each other are linked; in a mixture no two are.

All this depends on the union of the sides and on the anchors alone, so that a merge knows the
probability of the split back.

References
----------
D. Dahl, "Sequentially-allocated merge-split sampler for conjugate and nonconjugate Dirichlet
process mixture models", technical report, Texas A&M University, 2005.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, cast

import numpy as np
from numpy.random import Generator

from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.kernels.draw import allocate as kernels
from structlearn._src.kernels.draw import posterior, two_sides
from structlearn._src.kernels.draw.density import lane_workspace
from structlearn._src.kernels.draw.moments import n_products
from structlearn._src.kernels.lanes import LANES
from structlearn._src.sample.emission import Arrays, Categorical, Emission, Gaussian
from structlearn._src.sample.factors import in_lanes, joint_densities, seen_by
from structlearn._src.sample.hdp import Process, Restaurant
from structlearn._src.sample.hinge import LabelEmission
from structlearn._src.sample.priors import NormalGamma, NormalWishart

_Kind = TypeVar("_Kind")

_ROUNDS = 5  # of fitting two clusters, most of which stay the same after two or three
_BLOCK = 50  # positions that follow each other are fitted together, so that links are seen
_BLOCKS = 40  # of these at most: more hardly move the clusters
_WINDOW = 10  # positions before and after an anchor that its cluster begins with
_TOGETHER = 8  # times as many positions as there are lanes are looked at together
_RIDGE = 1.0  # of the regressions of labels, whose features have variances of 1
_FIRM = 8.0  # log odds of a label by its score: right labels have about 0.9, and others 0


class Union(NamedTuple):
    """Positions of one state, or of two that may become one."""

    positions: Ints
    anchors: Ints  #: where the two anchors are among `positions`
    sides: Bools  #: which positions share the state of the second, and not of the first
    before: Ints  #: row of the transition to every position, -1 from one of the union
    after: Ints  #: state of the next position, -1 in the union or at the end of a sequence
    parts: dict[Emission, Emission]  #: of these positions, as far as they were asked for

    def part(self, emission: Emission) -> Emission:
        """Return an emission for the positions of the union."""
        if emission not in self.parts:
            self.parts[emission] = emission.subset(self.positions)
        return self.parts[emission]

    @property
    def linked(self) -> Bools:
        """Which positions follow the one before in their sequence."""
        return self.before < 0

    @staticmethod
    def of(states: Ints, offsets: Ints, anchors: Ints, places: Sequence[Ints] = ()) -> Union:
        """Find the positions that share the states of two; their `places` may be known."""
        one, two = states[anchors]
        if not places:
            places = [np.flatnonzero(states == k) for k in ((one,) if one == two else (one, two))]
        positions, sides = _joined(places)
        before, after = np.empty((2, len(positions)), np.int64)
        kernels.surround(states, offsets, positions, before, after)
        return Union(positions, np.searchsorted(positions, anchors), sides, before, after, {})


def _joined(places: Sequence[Ints]) -> tuple[Ints, Bools]:
    """Return the positions of one state or two in their order, and which are of the second."""
    if len(places) == 1:
        return places[0], np.zeros(len(places[0]), bool)
    positions = np.concatenate(places)
    order = np.argsort(positions, kind="stable")  # merges the two runs
    return positions[order], order >= len(places[0])


class Sides(ABC):
    """How the positions of a union are shared out."""

    union: Union

    @abstractmethod
    def allot(self, uniforms: Floats, sides: Ints, n: int) -> float:
        """Draw those of the first `n` sides that are -1; return the log probability of all `n`.

        The sides of the anchors are set, whether they are among these or not.
        """

    def draw(self, rng: Generator) -> tuple[Bools, float]:
        """Draw which positions are on the second side, and the log probability of this."""
        n = len(self.union.positions)
        sides = np.full(n, -1)
        log_probability = self.allot(rng.random(n), sides, n)
        return sides == 1, log_probability

    def log_probability(self, sides: Bools) -> float:
        """Log probability that these are drawn."""
        return self.allot(np.empty(0), sides.astype(np.int64), len(sides))


@dataclass(frozen=True, eq=False)
class FittedSides(Sides):
    """Sides that are drawn together, by a chain that was fitted to two clusters."""

    union: Union
    emissions: Sequence[Emission]
    clusters: list[Arrays]
    chain: two_sides.SideChain

    def allot(self, uniforms: Floats, sides: Ints, n: int) -> float:
        """Draw sides, as above; what comes next must begin a run."""
        odds = _odds(self.emissions, self.clusters, self.union.positions[:n])
        weights = np.empty(n)
        return float(two_sides.draw_sides(odds, self.chain, uniforms, weights, sides))


def fit_sides(union: Union, emissions: Sequence[Emission], rng: Generator) -> FittedSides:
    """Fit two clusters, and return the chain of sides, which are certain at the anchors."""
    n = len(union.positions)
    some = _some(n, rng)
    linked = union.linked[some] & (np.diff(some, prepend=-2) == 1)
    fitted = [emission.subset(union.positions[some]) for emission in emissions]
    clusters = _seeds(union, emissions)
    tables = np.ones((2, 2))
    share = 0.0
    before = np.zeros(0, bool)
    for _ in range(_ROUNDS):
        sides = np.empty(len(some), np.int64)
        odds = _odds(fitted, clusters, np.arange(len(some)))
        two_sides.best_sides(odds, linked, share, np.log(tables), sides)
        if np.array_equal(sides, before):  # nothing changes any more
            break
        before = sides
        clusters = [e.refined(sides, 2, own) for e, own in zip(fitted, clusters, strict=True)]
        share, tables = _shares(sides, linked)
    chain = two_sides.SideChain(union.linked, float(np.exp(share)), tables, union.anchors)
    return FittedSides(union, emissions, clusters, chain)


def _shares(sides: Ints, linked: Bools) -> tuple[float, Floats]:
    """Return log odds of the second side where runs begin, and shares of those that follow each.

    As if each had been seen once more.
    """
    begun = np.bincount(sides[~linked], minlength=2) + 1.0
    after = np.flatnonzero(linked)
    pairs = np.bincount(2 * sides[after - 1] + sides[after], minlength=4).reshape(2, 2) + 1.0
    return float(np.log(begun[1] / begun[0])), pairs / pairs.sum(1, keepdims=True)


def _some(n: int, rng: Generator) -> Ints:
    """Return positions to fit to: all, or blocks of them."""
    if n <= _BLOCK * _BLOCKS:
        return np.arange(n)
    blocks = np.sort(rng.choice(n // _BLOCK, _BLOCKS, replace=False))
    return (_BLOCK * blocks[:, None] + np.arange(_BLOCK)).ravel()


def _seeds(union: Union, emissions: Sequence[Emission]) -> list[Arrays]:
    """Fit the two clusters to the anchors, and to what is linked to these nearby."""
    near = [_near(union.linked, int(a)) for a in union.anchors]
    sides = np.repeat([0, 1], [len(own) for own in near])
    positions = union.positions[np.concatenate(near)]
    return [emission.subset(positions).refined(sides, 2, None) for emission in emissions]


def _near(linked: Bools, anchor: int) -> Ints:
    """Return the positions of the run of an anchor that are near it."""
    first = max(anchor - _WINDOW, 0)
    run = np.cumsum(~linked[first : anchor + _WINDOW + 1])
    return first + np.flatnonzero(run == run[anchor - first])


def _odds(emissions: Sequence[Emission], clusters: list[Arrays], positions: Ints) -> Floats:
    """Return the log odds of the second cluster at some positions."""
    odds = np.empty(len(positions))
    found = in_lanes(joint_densities(emissions, clusters))
    workspace = lane_workspace(found)
    two_sides.weigh_sides(found, seen_by(emissions), positions, workspace, odds)
    return odds


# ---- one after the other -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SequentialSides(Sides):
    """Sides that positions choose one after the other, each given those before it.

    `process` has both `sides` as states of their own. Positions come in their order in sequences,
    and in a mixture at random.
    """

    union: Union
    emissions: Sequence[Emission]
    process: Process | Restaurant
    sides: tuple[int, int]
    order: Ints

    def allot(self, uniforms: Floats, sides: Ints, n: int) -> float:
        """Draw the sides of the first `n` positions of the order, as above."""
        points = _points(self.emissions, len(sides))
        labelled = _regressions(self.emissions)
        width = points.centres.shape[2]
        rows, away = np.empty((2, width, LANES))
        height = n_products(width, True)
        workspace = posterior.PointWorkspace(
            rows, away, np.empty(LANES), np.empty(LANES * _TOGETHER), np.empty((width, width)),
            np.empty((width + 1, LANES)), np.empty((height, LANES)), np.empty(height),
        )  # fmt: skip
        scratch = kernels.AllocationScratch(np.empty(labelled.features.shape[1]), np.empty(2))
        return float(
            kernels.allocate(
                self.order[:n], self.union.positions, self.union.anchors, self._links(), points,
                _symbols(self.emissions), labelled, workspace, scratch,
                uniforms, sides,
            )
        )  # fmt: skip

    def _links(self) -> kernels.Links:
        """Return transitions of which none is counted yet, and what lies around the union."""
        around = self.union.before, self.union.after
        if isinstance(self.process, Restaurant):
            none = np.zeros((1, 2)), np.zeros((2, 2)), np.zeros((2, 1)), np.zeros(2)
            return kernels.Links(*around, *none)
        masses = self.process.masses
        return kernels.Links(
            *around,
            _repeated(masses[list(self.sides)], 1 + len(masses)),
            _repeated(masses[list(self.sides)], 2),
            _repeated(masses, 2),
            np.full(2, self.process.alpha),
        )


def sequential_sides(
    union: Union,
    emissions: Sequence[Emission],
    process: Process | Restaurant,
    sides: tuple[int, int],
    rng: Generator,
) -> SequentialSides:
    """Return sides that positions choose one after the other, in an order that is drawn here."""
    order = np.arange(len(union.positions))
    if isinstance(process, Restaurant):
        order = np.append(union.anchors, rng.permutation(np.delete(order, union.anchors)))
    return SequentialSides(union, emissions, process, sides, order)


def _repeated(array: Floats, n: int) -> Floats:
    """Return so many copies of an array: `np.tile` takes several times as long."""
    return np.repeat(array[None], n, axis=0)


def _part_of(kind: type[_Kind], emissions: Sequence[Emission]) -> _Kind | None:
    """Return the emission of a kind, if there is one."""
    parts = (emission for emission in emissions if isinstance(emission, kind))
    return cast("_Kind | None", next(parts, None))


def _points(emissions: Sequence[Emission], n: int) -> posterior.PointPosteriors:
    """Return posteriors of `n` points given none; without Gaussians there are no features."""
    found = _part_of(Gaussian, emissions)
    if found is None:
        prior: NormalWishart | NormalGamma = NormalGamma(np.zeros(0), 1.0, 1.0, np.zeros(0))
        data, seen = np.zeros((0, 0)), np.zeros(0, bool)
    else:
        prior = found.prior
        data = found.data
        seen = found.seen
    full = isinstance(prior, NormalWishart)
    groups, width = (1, prior.width) if full else (prior.width, 1)
    scale = prior.scale.reshape(groups, width, width)
    lower = np.linalg.cholesky(scale)
    roots = np.diagonal(lower, axis1=1, axis2=2)
    return posterior.PointPosteriors(
        data,
        seen,
        np.zeros(2, np.int64),
        _repeated(prior.mean.reshape(groups, width), 2),
        _repeated(lower / roots[:, None, :], 2),
        _repeated(roots**2, 2),
        _repeated(roots**-2.0, 2),
        np.zeros((2, groups, width, width)),
        np.zeros((2, groups, width)),
        np.zeros((2, groups)),
        _repeated(scale, 2),
        np.zeros(2, np.int64),
        np.empty((2, n // posterior.LAG + 1), np.int64),
        float(prior.strength),
        float(prior.degrees),
    )


def _symbols(emissions: Sequence[Emission]) -> kernels.SymbolMasses:
    found = _part_of(Categorical, emissions)
    if found is None:
        return kernels.SymbolMasses(np.zeros(0, np.int64), np.ones((2, 1)))
    return kernels.SymbolMasses(found.data, _repeated(found.prior, 2))


def _regressions(emissions: Sequence[Emission]) -> kernels.Regressions:
    found = _part_of(LabelEmission, emissions)
    features, labels, n_labels = np.zeros((0, 0)), np.zeros(0, np.int64), 1
    if found is not None:
        features, labels, n_labels = found.features, found.labels, found.n_labels
    M = features.shape[1]
    inverses = _repeated(np.eye(M) / _RIDGE, 2)
    return kernels.Regressions(features, labels, inverses, np.zeros((2, n_labels, M)), _FIRM)
