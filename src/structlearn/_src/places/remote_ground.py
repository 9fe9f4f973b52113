"""Grounding on workers of a cluster: each grounds a share of the bindings, and keeps its forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.field.hinges import DTYPES, Hinges
from structlearn._src.places import form_shard
from structlearn._src.places.form_shard import FormShard
from structlearn._src.places.kept import KeepingPlace
from structlearn._src.places.remote_consensus import SpreadForms
from structlearn._src.rules.ground import ground_forms
from structlearn._src.rules.interrupt import interruptible
from structlearn._src.rules.retrace import TableSource
from structlearn._src.rules.syntax import Program
from structlearn._src.rules.tables import Tables


@dataclass(frozen=True)
class Share:
    """One part of the groundings of a program, for a worker that can make it by itself."""

    rules: Program
    source: TableSource
    part: int
    parts: int

    def __call__(self) -> Hinges:
        """Ground it; the tables are not needed any more afterwards."""
        tables = self.source.tables()
        tables.share = self.part, self.parts
        with interruptible():
            return ground_forms(self.rules, tables)


class RemoteHinges(Hinges):
    """Forms that were grounded by workers, and stay there.

    Numbers of forms are known here. Whoever asks for the forms themselves, to explain or to learn,
    gets all of them, in the order of the workers.
    """

    spread: SpreadForms

    def __init__(self, spread: SpreadForms, n_variables: int, n_groups: int) -> None:
        (entries,) = spread.kept.ask(form_shard.occur, None)
        vars(self).update(
            spread=spread, n_variables=n_variables, n_groups=n_groups,
            counts=np.asarray(spread.counts), sizes=np.asarray(spread.sizes),
            absent=np.flatnonzero(np.asarray(entries) == 0),
        )  # fmt: skip

    @classmethod
    def ground(cls, place: KeepingPlace, rules: Program, tables: Tables) -> RemoteHinges:
        """Let every worker ground a share, all at the same time."""
        source = TableSource.of(tables)
        n = len(place.workers())
        spread = SpreadForms(place, lambda i: FormShard(Share(rules, source, i, n)), n)
        return cls(spread, tables.n_free, len(rules))

    @property
    def n_forms(self) -> int:
        """Number of hinges and hard constraints."""
        return self.spread.n_forms

    def __getattr__(self, name: str) -> Any:
        if name not in DTYPES:
            raise AttributeError(name)
        (parts,) = self.spread.kept.ask(form_shard.hand_over, name)
        array = _joined_offsets(parts) if name == "offsets" else np.concatenate(parts)
        array.flags.writeable = False
        vars(self)[name] = array
        return array

    def __reduce__(self) -> Any:
        arrays = [getattr(self, name) for name in DTYPES]
        return Hinges, (*arrays, self.n_variables, self.n_groups)


def _joined_offsets(parts: list[Ints]) -> Ints:
    lengths: list[Floats] = [np.diff(part) for part in parts]
    return np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
