"""Politicians on Twitter, and whom they retweet, mention and follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from papers.arrays import Floats, Ints
from structlearn.datasets import data_path

_TOP = 20  # most retweeted users, as in the paper on paired-dual learning


@dataclass(frozen=True, eq=False)
class Politicians:
    """Members of the US congress and others, by number [1]_.

    Attributes
    ----------
    parties
        (users,) "D", "R" or "I".
    pairs
        (links, 2) Sources and targets, by relation: "retweet", "mention", "follow".

    References
    ----------
    .. [1] Z. Xiao et al., "TIMME: Twitter ideology-detection via multi-task multi-relational
       embedding", KDD 2020.
    """

    parties: list[str]
    pairs: dict[str, Ints]

    @classmethod
    def load(cls) -> Politicians:
        """Read ``twitter_politicians`` in the data folder."""
        rows = _rows("relations.csv")
        kinds = np.array([row[0] for row in rows])
        links = np.array([row[1:3] for row in rows], np.int64)
        apart = links[:, 0] != links[:, 1]
        pairs = {kind: links[apart & (kinds == kind)] for kind in ("retweet", "mention", "follow")}
        return cls([row[1] for row in _rows("users.csv")], pairs)

    @cached_property
    def top(self) -> list[int]:
        """The most retweeted users."""
        counts = np.bincount(self.pairs["retweet"][:, 1], minlength=len(self.parties))
        return sorted(np.argsort(-counts, kind="stable")[:_TOP].tolist())

    @cached_property
    def users(self) -> list[int]:
        """Others, who have retweeted a top user."""
        links = self.pairs["retweet"]
        fans = set(links[np.isin(links[:, 1], self.top), 0].tolist())
        return sorted(fans - set(self.top))

    @cached_property
    def retweets(self) -> Floats:
        """(others, top users) 1 where one has retweeted the other."""
        found = np.zeros((len(self.parties), len(self.parties)))
        found[tuple(self.pairs["retweet"].T)] = 1.0
        return found[np.ix_(self.users, self.top)]

    def among(self, kind: str, users: set[int]) -> list[tuple[int, int]]:
        """Return the pairs of a relation within a set of users."""
        return [(a, b) for a, b in self.pairs[kind].tolist() if a in users and b in users]


def _rows(name: str) -> list[list[str]]:
    lines = data_path("twitter_politicians", name).read_text().splitlines()
    return [line.split(",") for line in lines[1:]]
