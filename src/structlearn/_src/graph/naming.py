"""A graph as it is at one moment, for answers about it: the wiring and the names."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from structlearn._src.common.errors import GraphError
from structlearn._src.graph.wiring import Wiring


class NamedWiring(NamedTuple):
    """A graph as it is now, without its tables: what answers keep, and later additions leave."""

    wiring: Wiring
    places: dict[Hashable, int] | None  # by name, in order; never changed in place

    @property
    def names(self) -> Sequence[Hashable]:
        """Names of the variables, in order."""
        return range(len(self.wiring.cards)) if self.places is None else tuple(self.places)

    def variable_index(self, name: Hashable) -> int:
        """Index of the variable called `name`."""
        return find_name(name, self.places, len(self.wiring.cards))


@dataclass(frozen=True, eq=False)
class NamedWirings:
    """Many graphs as they are now; each is put together when it is looked at."""

    wirings: list[Wiring]
    places: list[dict[Hashable, int] | None]

    def __len__(self) -> int:
        return len(self.wirings)

    def __getitem__(self, g: int) -> NamedWiring:
        return NamedWiring(self.wirings[g], self.places[g])


def find_name(name: Hashable, index: dict[Hashable, int] | None, count: int) -> int:
    """Index of a variable among `count`, which are called by their numbers without an `index`."""
    if index is None:
        if isinstance(name, (int, np.integer)) and 0 <= name < count:
            return int(name)
    elif isinstance(name, Hashable) and name in index:
        return index[name]
    raise GraphError(
        f"there is no variable named {name!r}; the graph has {count} variables"
        f"{_sample_of_names(index, count)}"
    )


def _sample_of_names(names: Iterable[Hashable] | None, count: int) -> str:
    if not count:
        return ""
    if names is None:
        return f" named 0 to {count - 1}"
    shown = ", ".join(map(repr, islice(names, 5)))
    return f" named {shown}{', ...' if count > 5 else ''}"
