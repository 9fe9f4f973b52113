"""One sweep over everything that an infinite hidden Markov model does not know."""

from __future__ import annotations

import numpy as np

from structlearn._src.sample.chain import Info, Model, State, draw_paths, learn, tally
from structlearn._src.sample.merge import dissolve_small, merge_alike
from structlearn._src.sample.split_merge import conjugate, split_or_merge


def sweep(
    model: Model,
    state: State,
    rng: np.random.Generator,
    *,
    n_moves: int = 0,
    merge: bool = False,
) -> tuple[State, Info]:
    """Draw paths, move states, and draw everything else.

    Parameters
    ----------
    n_moves
        How many times a split or a union of states is proposed.
    merge
        Whether to join states that are alike and to dissolve small ones, which a chain whose
        draws are kept must not do.
    """
    state, tried, log_density = draw_paths(model, state, rng)
    found, moved = tally(model, state), 0
    movable = conjugate(model) or not model.parts  # else nothing tells how to part a state
    for _ in range(n_moves if movable else 0):
        state, found, accepted = split_or_merge(model, state, found, rng)
        moved += accepted
    if merge:
        state = dissolve_small(model, merge_alike(model, state))
        found = tally(model, state)
    state = learn(model, state, rng, found)
    now = state.process
    return state, Info(state.n_states, tried, moved, now.alpha, now.gamma, log_density)
