"""Seeds and independent random streams."""

from __future__ import annotations

import numpy as np

from structlearn._src.common.errors import ArgumentError

Seed = int | np.random.Generator | np.random.RandomState | None


def generator(random_state: Seed) -> np.random.Generator:
    """Return a generator for `random_state`: an int repeats, None is fresh, a Generator is used.

    A RandomState, numpy's older kind, gives the seed.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(int(random_state.randint(2**31)))
    whole = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    if random_state is None or (whole and random_state >= 0):
        return np.random.default_rng(random_state)
    raise ArgumentError(
        f"random_state={random_state!r} must be None, a whole number of at least 0, or a numpy "
        f"Generator or RandomState"
    )
