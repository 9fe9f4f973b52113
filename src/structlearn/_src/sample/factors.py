"""What positions emit, by all emissions together, as kernels find it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from structlearn._src.kernels.draw.density import NO_DENSITIES, Densities
from structlearn._src.kernels.draw.two_sides import Seen
from structlearn._src.kernels.lanes import LANES
from structlearn._src.sample.emission import Arrays, Categorical, Emission, Gaussian
from structlearn._src.sample.hinge import LabelEmission

_NOTHING = Seen(*(np.zeros(shape, kind) for shape, kind in (
    ((0, 0), float), (0, bool), (0, np.int64), ((0, 0), float), (0, np.int64),
)))  # fmt: skip


def joint_densities(emissions: Sequence[Emission], parameters: Sequence[Arrays]) -> Densities:
    """Return the log densities of all emissions."""
    found = NO_DENSITIES
    none = NO_DENSITIES._asdict()
    for emission, given in zip(emissions, parameters, strict=True):
        own = emission.densities(given)._asdict().items()
        found = found._replace(**{name: part for name, part in own if part is not none[name]})
    return found


def in_lanes(densities: Densities) -> Densities:
    """Return the same with room for what is seen at some positions in place of all of them."""
    points, symbols, labels = densities
    return Densities(
        points._replace(seen=np.zeros(LANES, bool)),
        symbols._replace(data=np.zeros(LANES, np.int64)),
        labels._replace(labels=np.zeros(LANES, np.int64)),
    )


def seen_by(emissions: Sequence[Emission]) -> Seen:
    """Return what emissions see at all positions."""
    found = _NOTHING
    for emission in emissions:
        if isinstance(emission, Gaussian):
            found = found._replace(points=emission.data, shown=emission.seen)
        if isinstance(emission, Categorical):
            found = found._replace(symbols=emission.data)
        if isinstance(emission, LabelEmission):
            found = found._replace(features=emission.features, labels=emission.labels)
    return found
