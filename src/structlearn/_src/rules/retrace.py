"""The same tables of atoms in another process: from the same files, or from what is in them."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

from structlearn._src.common.errors import DataNotFoundError, FormatError, PlaceError
from structlearn._src.rules.tables import Call, Tables

_PRIMES = (1_000_003, 1_299_709, 15_485_863, 32_452_843)  # as factors of arguments in checksums
_MODULUS = 2**31 - 1  # a prime; sums of as many rows as there may be fit into 64 bits


@dataclass(frozen=True)
class TableSource:
    """Where another process finds the atoms of this one.

    Files are read again by whoever needs them, if all atoms came from files; otherwise the tables
    travel.
    """

    arities: dict[str, int]
    calls: list[Call] | None
    sums: dict[str, tuple[int, ...]]
    copied: bytes = b""

    @classmethod
    def of(cls, tables: Tables) -> TableSource:
        """Say where these tables can be had."""
        arities = {each.name: each.arity for each in tables.relations.values()}
        if tables.calls is not None:
            return cls(arities, list(tables.calls), checksums(tables))
        return cls(arities, None, {}, pickle.dumps(tables))

    def tables(self) -> Tables:
        """Return the same tables; refuse files that cannot be read here, or differ."""
        if self.calls is None:
            found: Tables = pickle.loads(self.copied)
            return found
        tables = Tables(self.arities)
        for how, predicate, paths, header in self.calls:
            try:
                getattr(tables, how)(predicate, paths, header=header)
            except (DataNotFoundError, FormatError, OSError) as error:
                raise PlaceError(
                    f"the atoms of {predicate} cannot be read there ({error}): put the files where "
                    f"all workers find them under the same paths, or give rows or a frame, which "
                    f"are sent"
                ) from None
        for name, sums in checksums(tables).items():
            if sums != self.sums[name]:
                paths = [path for _, each, more, _ in self.calls if each == name for path in more]
                raise PlaceError(
                    f"the atoms of {name} in {', '.join(paths)} are not the same there as here: "
                    f"give all workers the same files"
                )
        return tables


def checksums(tables: Tables) -> dict[str, tuple[int, ...]]:
    """Return for every predicate what differs, as good as surely, where its atoms differ.

    Codes of texts may differ between processes, so that their texts count.
    """
    found: dict[str, Any] = {}
    texts = f"(SELECT code, (md5_number_lower(text) % {_MODULUS})::BIGINT AS h FROM constants)"
    for relation in tables.relations.values():
        joins = codes = ""
        for i in range(relation.arity):
            joins += f" LEFT JOIN {texts} AS n{i} ON a{i} = n{i}.code"
            codes += f"coalesce(n{i}.h, a{i}::BIGINT) * {_PRIMES[i % len(_PRIMES)]} + "
        each = f"({codes}(atom::BIGINT + 2) * 611953 + (value * 1e6)::BIGINT) % {_MODULUS}"
        counted = "count(*), coalesce(sum(each), 0)::BIGINT"
        query = f"SELECT {counted} FROM (SELECT {each} AS each FROM {relation.table}{joins})"
        found[relation.name] = tables.connection.execute(query).fetchall()[0]
    return found
