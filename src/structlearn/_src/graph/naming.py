"""A graph as it is at one moment, for answers about it: the wiring and the names."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from structlearn._src.common.errors import GraphError
from structlearn._src.graph.wiring import Wiring


class NamedWiring(NamedTuple):
    """A graph as it is now, without its tables: what answers keep, and later additions leave."""

    wiring: Wiring
    own_names: list[Hashable] | None  # never changed in place, nor are the places
    places: dict[Hashable, int]

    @property
    def names(self) -> Sequence[Hashable]:
        """Names of the variables, in order."""
        return range(len(self.wiring.cards)) if self.own_names is None else self.own_names

    def variable_index(self, name: Hashable) -> int:
        """Index of the variable called `name`."""
        return find_name(name, self.own_names, self.places, len(self.wiring.cards))


def find_name(
    name: Hashable, names: list[Hashable] | None, index: dict[Hashable, int], count: int
) -> int:
    """Index of a variable among `count`, which are called by their indices without `names`."""
    if names is None:
        if isinstance(name, (int, np.integer)) and 0 <= name < count:
            return int(name)
    elif isinstance(name, Hashable) and name in index:
        return index[name]
    raise GraphError(
        f"there is no variable named {name!r}; the graph has {count} variables"
        f"{_sample_of_names(names, count)}"
    )


def _sample_of_names(names: list[Hashable] | None, count: int) -> str:
    if not count:
        return ""
    if names is None:
        return f" named 0 to {count - 1}"
    shown = ", ".join(map(repr, names[:5]))
    return f" named {shown}{', ...' if count > 5 else ''}"
