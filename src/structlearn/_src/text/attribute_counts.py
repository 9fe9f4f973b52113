"""Attributes of several parts of the data: which there are, and how often they occur, in all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from structlearn._src.common.arrays import Ints
from structlearn._src.text.attributes import Attributes
from structlearn._src.text.rows import Rows
from structlearn._src.text.strings import Strings
from structlearn._src.text.template import Template


class AttributeCounts(NamedTuple):
    """Keys of attributes, and how often they occur, by dictionary; those of several parts add up.

    Keys mean the same wherever vocabularies are the same, unless a template row needs stages.
    """

    keys: list[Ints]
    counts: list[Ints]

    @classmethod
    def of(cls, attributes: Attributes, rows: Rows) -> AttributeCounts:
        """Count the attributes for one label in some rows."""
        counts = np.bincount(rows.columns, minlength=len(attributes.unigram))
        return cls(attributes.unigram.keys(), attributes.unigram.cut(counts))

    def __add__(self, other: AttributeCounts) -> AttributeCounts:  # type: ignore[override]
        merged = [_add_up(*four) for four in zip(*self, *other, strict=True)]
        return AttributeCounts([keys for keys, _ in merged], [counts for _, counts in merged])

    def attributes(
        self, template: Template, vocabularies: Sequence[Strings], min_count: int = 1
    ) -> Attributes:
        """Return those that occur at least so often, over the same vocabularies."""
        new = Attributes.over(template, vocabularies)
        for table, keys, counts in zip(new.unigram.tables, *self, strict=True):
            table.learn(keys[counts >= min_count])
        return new


def _add_up(keys: Ints, counts: Ints, others: Ints, more: Ints) -> tuple[Ints, Ints]:
    found, places = np.unique(np.append(keys, others), return_inverse=True)
    totals = np.bincount(places, np.append(counts, more), len(found))
    return found, totals.astype(np.int64)
