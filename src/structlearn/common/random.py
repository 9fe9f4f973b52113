"""Seeds and independent random streams."""

from __future__ import annotations

import numpy as np

from structlearn.common.errors import ArgumentError

Seed = int | np.random.Generator | None


def generator(random_state: Seed) -> np.random.Generator:
    """Return a generator for `random_state`: an int repeats, None is fresh, a Generator is used."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    whole = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    if random_state is None or (whole and random_state >= 0):
        return np.random.default_rng(random_state)
    raise ArgumentError(
        f"random_state={random_state!r} must be None, a whole number of at least 0, or a numpy "
        f"Generator"
    )
