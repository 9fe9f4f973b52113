"""Made-up frames of people who interact, in place of annotations that are not to be had."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from papers import checks
from papers.arrays import Floats, Ints

ACTIONS = ("other", "handshake", "hug", "high-five", "kiss")
PLACES = ("overlap", "adjacent-left", "adjacent-right", "near-left", "near-right", "far")
POSES = 5  # profile left and right, frontal left and right, backwards

_PEOPLE = np.array([0.35, 0.25, 0.2, 0.1, 0.06, 0.04])  # of 2 to 7 people in a frame
_SHARES = np.array([0.0, 0.32, 0.3, 0.08, 0.3])  # of actions; high-fives are rare
_NOBODY = 0.2  # frames in which nobody interacts
_SECOND = 0.4  # frames of four and more with a second pair
_JOINED = 0.25  # hugs that a third person joins
_WRONG = 0.15  # annotated interactions between people who do not interact
#: How often two people who do the same (or nothing) stand so: overlapping, adjacent, near, far.
_STANDING = np.array(
    [
        [0.1, 0.2, 0.3, 0.4],
        [0.05, 0.6, 0.3, 0.05],
        [0.6, 0.35, 0.05, 0.0],
        [0.05, 0.45, 0.45, 0.05],
        [0.5, 0.45, 0.05, 0.0],
    ]
)
_ALIKE = {1: 3, 3: 1, 2: 4, 4: 2}  # actions whose pictures look alike
_CLEAR, _BLURRED = 1.2, 0.7  # mean score of the action itself, and of the one that is alike


class Frame(NamedTuple):
    """People in one frame.

    Attributes
    ----------
    scores
        (people, 5) Of the actions, as a classifier of single people gives them.
    edges
        (interactions, 2) Annotated interactions, every one in both directions.
    between
        (interactions, 150) Place of the second person from the first, times the scores of the
        poses of the first, times those of the second.
    actions
        (people,) Numbers in `ACTIONS`.
    """

    scores: Floats
    edges: Ints
    between: Floats
    actions: Ints


def draw_frames(n_frames: int, rng: np.random.Generator) -> list[Frame]:
    """Draw frames of two to seven people."""
    checks.integer("n_frames", n_frames, low=1)
    return [_draw(rng) for _ in range(n_frames)]


def _draw(rng: np.random.Generator) -> Frame:
    n = int(2 + rng.choice(len(_PEOPLE), p=_PEOPLE))
    groups = _groups(n, rng)
    actions = np.zeros(n, np.int64)
    linked: list[tuple[int, int]] = []
    for action, members in groups:
        actions[members] = action
        linked += [(a, b) for i, a in enumerate(members) for b in members[i + 1 :]]
    linked += [
        (a, b)
        for a in range(n)
        for b in range(a + 1, n)
        if (a, b) not in linked and rng.random() < _WRONG / n
    ]
    poses = _poses(n, linked, rng)
    edges, between = [], []
    for a, b in linked:
        together = int(actions[a]) if actions[a] == actions[b] else 0
        for i, j, place in ((a, b, 0), (b, a, 1)):
            edges.append((i, j))
            between.append((i, j, place, together))
    places = _places(between, rng)
    features = [
        np.multiply.outer(np.eye(len(PLACES))[r], np.outer(poses[i], poses[j])).ravel()
        for (i, j, _, _), r in zip(between, places, strict=True)
    ]
    width = len(PLACES) * POSES * POSES
    return Frame(
        _scores(actions, rng),
        np.array(edges, np.int64).reshape(-1, 2),
        np.array(features).reshape(-1, width),
        actions,
    )


def _groups(n: int, rng: np.random.Generator) -> list[tuple[int, list[int]]]:
    """Who does what together; people stand from left to right in the order of their numbers."""
    if rng.random() < _NOBODY:
        return []
    order = rng.permutation(n).tolist()
    groups = []
    for _ in range(2 if n >= 4 and rng.random() < _SECOND else 1):
        action = int(rng.choice(len(ACTIONS), p=_SHARES))
        size = 3 if action == 2 and len(order) > 2 and rng.random() < _JOINED else 2
        if len(order) < size:
            break
        groups.append((action, sorted(order[:size])))
        order = order[size:]
    return groups


def _scores(actions: Ints, rng: np.random.Generator) -> Floats:
    """What a classifier of single people says: little, and actions that look alike get a share."""
    means = np.zeros((len(actions), len(ACTIONS)))
    for i, action in enumerate(actions):
        means[i, action] = _CLEAR
        if int(action) in _ALIKE:
            means[i, _ALIKE[int(action)]] = _BLURRED
    return means + rng.normal(size=means.shape)


def _poses(n: int, linked: list[tuple[int, int]], rng: np.random.Generator) -> Floats:
    """(people, 5) Soft poses: whoever interacts is turned to the other."""
    scores = rng.normal(0.0, 0.7, (n, POSES))
    for a, b in linked:  # a stands to the left of b
        scores[a, 1 + 2 * rng.integers(2)] += 1.5
        scores[b, 2 * rng.integers(2)] += 1.5
    soft = np.exp(scores)
    return soft / soft.sum(axis=1, keepdims=True)


def _places(between: list[tuple[int, int, int, int]], rng: np.random.Generator) -> list[int]:
    """Where the second stands from the first; the way back is mirrored."""
    places: list[int] = []
    for i, j, back, action in between:
        if back:
            there = places[-1]
            places.append({1: 2, 2: 1, 3: 4, 4: 3}.get(there, there))
            continue
        far = int(rng.choice(4, p=_STANDING[action]))
        right = int(j > i)
        places.append({0: 0, 1: 1 + right, 2: 3 + right, 3: 5}[far])
    return places
