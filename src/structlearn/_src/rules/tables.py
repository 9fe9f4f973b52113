"""Predicates and their atoms: tables in DuckDB, for several threads and in pickles."""

from __future__ import annotations

import tempfile
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.checks import integer
from structlearn._src.common.errors import ArgumentError, AtomError, did_you_mean
from structlearn._src.common.frames import column_names
from structlearn._src.rules.few import TEXTS, insert, whole
from structlearn._src.rules.given import atom_text
from structlearn._src.rules.interrupt import interruptible
from structlearn._src.rules.load import Stage, cell, file_paths, stage
from structlearn._src.rules.source import attach, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: How atoms were added: the name of a method, the predicate, paths, whether files have headers.
Call = tuple[str, str, list[str], bool]


@dataclass
class Relation:
    """A predicate, its table in DuckDB, and how many of its atoms are observed and free."""

    name: str
    arity: int
    table: str
    n_observed: int = 0
    n_free: int = 0
    numbers: tuple[bool, ...] = ()  #: which arguments of free atoms were all given as numbers
    titles: Sequence[str] = ()  #: of the columns with arguments of the first free atoms

    @property
    def size(self) -> int:
        """Number of atoms that are listed."""
        return self.n_observed + self.n_free

    @property
    def free(self) -> str:
        """The table of its free atoms alone: DuckDB then knows how few they are."""
        return f"{self.table}_free"

    @property
    def truth(self) -> str:
        """The table of true values."""
        return f"{self.table}_truth"

    @property
    def columns(self) -> list[str]:
        """Names of the columns with the arguments."""
        return [f"a{i}" for i in range(self.arity)]

    @property
    def keys(self) -> str:
        """The same in one text, for queries."""
        return ", ".join(self.columns)


class Tables:
    """All atoms of a program: what is observed, what is to be found, and what is true.

    Atoms lie in DuckDB, in memory, and spill to a folder for temporary files where they do not
    fit. Arguments are kept as whole numbers: those from 0 to 2^30 - 1 stand for themselves, every
    other text has a code in one dictionary. A free atom has a number, counted from 0 in the order
    in which targets were given: its variable in `Hinges`. Case does not matter in predicates.

    DuckDB uses `memory` bytes at most, by default most of what there is.

    `calls` has how all atoms were added, as long as they came from files, so that others who can
    read these can do the same. A `share` ``(i, n)`` grounds one of ``n`` parts of the bindings.

    Each thread works through a cursor of its own; `lock` is for those who change what is in here.
    """

    def __init__(
        self,
        arities: Mapping[str, int],
        *,
        source: str | Path | None = None,
        n_jobs: int | None = None,
        memory: int | None = None,
    ) -> None:
        self.source = None if source is None else Path(source)
        self._threads = None if n_jobs is None else integer("n_jobs", n_jobs, low=1)
        self._memory = memory
        with interruptible():
            self._connect()
        self.connection.execute("CREATE TABLE constants (code INTEGER, text VARCHAR)")
        self.relations: dict[str, Relation] = {}
        self._covers: dict[tuple[Any, ...], bool] = {}
        self.n_free = 0
        self.share: tuple[int, int] | None = None
        self.calls: list[Call] | None = [] if source is None else None
        for name, arity in arities.items():
            self.declare(name, arity)

    def _connect(self) -> None:
        import duckdb  # takes as long to load as NumPy, and few need it

        self.lock = threading.RLock()
        self._cursors = threading.local()
        self._database = duckdb.connect()
        spill = Path(tempfile.gettempdir()) / f"structlearn-{uuid.uuid4().hex}"
        self._database.execute(f"SET temp_directory = '{quoted(spill)}'")
        if self._threads is not None:
            self._database.execute(f"SET threads = {self._threads}")
        if self._memory is not None:
            self.allow(self._memory)
        if self.source is not None:
            attach(self._database, self.source)

    def allow(self, memory: int) -> None:
        """Let DuckDB use so many bytes from now on; what it has beyond them goes to disk."""
        self._memory = memory
        self._database.execute(f"SET memory_limit = '{memory // 1000}KB'")

    @property
    def connection(self) -> DuckDBPyConnection:
        """The cursor of this thread."""
        if not hasattr(self._cursors, "own"):
            self._cursors.own = self._database.cursor()
        return self._cursors.own

    def count(self, table: str, parameters: list[Any] | None = None) -> int:
        """Number of rows of a table or of a query in parentheses."""
        query = f"SELECT count(*) FROM {table}"
        return self.connection.execute(query, parameters).fetchall()[0][0]

    def __getstate__(self) -> dict[str, Any]:
        with self.lock, tempfile.TemporaryDirectory() as folder:
            own = "WHERE database_name = current_database() AND NOT temporary"
            query = f"SELECT table_name FROM duckdb_tables() {own}"
            names = [name for (name,) in self.connection.execute(query).fetchall()]
            files = {}
            for name in names:
                path = Path(folder) / f"{name}.parquet"
                self.connection.execute(f"COPY {name} TO '{quoted(path)}'")
                files[name] = path.read_bytes()
        gone = ("lock", "_cursors", "_database")
        return {key: value for key, value in vars(self).items() if key not in gone} | {
            "files": files
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        files = state.pop("files")
        vars(self).update(state)
        self._connect()
        with tempfile.TemporaryDirectory() as folder:
            for name, data in files.items():
                path = Path(folder) / f"{name}.parquet"
                path.write_bytes(data)
                table = f"CREATE TABLE {name} AS SELECT * FROM '{quoted(path)}'"
                self.connection.execute(table)

    def declare(self, name: str, arity: int) -> None:
        """Add a predicate without atoms; again with the same arity does nothing."""
        known = self.relations.get(name.lower())
        if known is not None:
            if known.arity != arity:
                raise ArgumentError(
                    f"{known.name} was given {arity} arguments, but it takes {known.arity}: "
                    f"one predicate has one arity"
                )
            return
        relation = Relation(
            name, integer(f"arity of {name}", arity, low=1), f"p{len(self.relations)}"
        )
        typed = ", ".join(f"{column} INTEGER" for column in relation.columns)
        for table in (relation.table, relation.free, relation.truth):
            self.connection.execute(f"CREATE TABLE {table} ({typed}, value DOUBLE, atom INTEGER)")
        self.relations[name.lower()] = relation

    def relation(self, name: str) -> Relation:
        """Return a predicate by name."""
        known = self.relations.get(name.lower())
        if known is None:
            names = [relation.name for relation in self.relations.values()]
            raise ArgumentError(
                f"there is no predicate {name!r}; the program has {', '.join(names) or 'none'}"
                f"{did_you_mean(name, names)}"
            )
        return known

    def observe(self, predicate: str, data: Any, *, header: bool = False) -> None:
        """Add atoms with known values: a last column beside the arguments, or else 1.

        Data are as for `RuleModel.observe`; `header` skips the first line of text files.
        """
        relation = self.relation(predicate)
        with self.lock:
            relation.n_observed += self._add(relation, relation.table, data, header).length
            self._note("observe", predicate, data, header)

    def target(self, predicate: str, data: Any, *, header: bool = False) -> None:
        """Add free atoms, whose values are to be found; a column of values is not used."""
        relation = self.relation(predicate)
        if not relation.titles:
            unnamed = [f"argument{i + 1}" for i in range(relation.arity)]
            relation.titles = column_names(data, relation.arity) or unnamed
        with self.lock:
            found = self._add(relation, relation.table, data, header, free=True)
            if found.length:
                new = f"SELECT * FROM {relation.table} WHERE atom >= {self.n_free}"
                self.connection.execute(f"INSERT INTO {relation.free} {new}")
                known = relation.numbers or found.numbers
                relation.numbers = tuple(a and b for a, b in zip(known, found.numbers, strict=True))
            relation.n_free += found.length
            self.n_free += found.length
            self._note("target", predicate, data, header)

    def _note(self, how: str, predicate: str, data: Any, header: bool) -> None:
        """Remember how atoms were added."""
        paths = file_paths(data)
        if paths is None:
            self.calls = None
        elif self.calls is not None:
            self.calls.append((how, predicate, paths, header))

    def truth(self, predicate: str, data: Any, *, header: bool = False) -> None:
        """Add true values of free atoms, for learning and scores; the others are latent."""
        relation = self.relation(predicate)
        with self.lock:
            self._add(relation, relation.truth, data, header)

    def covers(self, wide: Relation, narrow: Relation, places: tuple[int, ...], one: bool) -> bool:
        """Whether `wide` lists an atom for each of `narrow` that is free or above 0.

        The arguments of the first are those at `places` of the second. With `one` it must be
        observed with value 1, and for each of `narrow` whatever its value. The answer is kept as
        long as no atoms are added.
        """
        key = (wide.table, narrow.table, places, one, wide.size, narrow.size)
        if key not in self._covers:
            agree = " AND ".join(f"w.a{i} = n.a{place}" for i, place in enumerate(places))
            if one:
                lone = f"{narrow.table} AS n ANTI JOIN {wide.table} AS w ON {agree} AND w.value = 1"
            else:
                rows = f"(SELECT * FROM {narrow.table} WHERE atom >= 0 OR value > 0)"
                lone = f"{rows} AS n ANTI JOIN {wide.table} AS w ON {agree}"
            self._covers[key] = self.count(lone) == 0
        return self._covers[key]

    def labels(self) -> Floats:
        """(free atoms) True values, NaN where none is known."""
        labels = np.full(self.n_free, np.nan)
        for relation in self.relations.values():
            found = self.connection.execute(
                f"SELECT known.atom, given.value FROM {relation.truth} AS given "
                f"JOIN {relation.free} AS known USING ({relation.keys})"
            ).fetchnumpy()
            labels[found["atom"]] = found["value"]
        return labels

    def arguments(self, predicate: str) -> tuple[Ints, list[NDArray[Any]]]:
        """Numbers of a predicate's free atoms, and a column for each of their arguments.

        A column of whole numbers alone that were given as numbers, or in a file, comes as such,
        any other as texts.
        """
        relation = self.relation(predicate)
        found = self.connection.execute(
            f"SELECT atom, {relation.keys} FROM {relation.free} ORDER BY atom"
        ).fetchnumpy()
        columns = [self._decode(found[column]) for column in relation.columns]
        for i in range(relation.arity):
            if relation.numbers and not relation.numbers[i]:
                columns[i] = columns[i].astype(str).astype(object)
        return found["atom"].astype(np.int64), columns

    def constants(self, predicate: str, place: int) -> set[str]:
        """All constants in one place of a predicate's atoms, as texts."""
        relation = self.relation(predicate)
        query = f"SELECT DISTINCT a{place} AS code FROM {relation.table}"
        return set(map(str, self._decode(self.connection.execute(query).fetchnumpy()["code"])))

    def names(self, atoms: Sequence[int] | Ints) -> list[str]:
        """Return the texts of free atoms, such as ``Likes('cyd', 'tea')``, given by number."""
        wanted = np.asarray(atoms, np.int64)
        names: dict[int, str] = {}
        for relation in [each for each in self.relations.values() if each.n_free]:
            found = self.connection.execute(
                f"SELECT atom, {relation.keys} FROM {relation.free} WHERE atom IN "
                f"(SELECT unnest(?::INTEGER[]))",
                [np.unique(wanted).tolist()],
            ).fetchnumpy()
            columns = [self._decode(found[column]) for column in relation.columns]
            rows = zip(found["atom"].tolist(), zip(*columns, strict=True), strict=True)
            names.update({atom: atom_text(relation.name, row) for atom, row in rows})
        return [names[atom] for atom in wanted.tolist()]

    def find(self, predicate: str, arguments: Sequence[Any]) -> int:
        """Number of a free atom."""
        relation = self.relation(predicate)
        texts = list(map(cell, arguments))
        text = atom_text(relation.name, texts)
        if len(arguments) != relation.arity:
            raise AtomError(f"{text} has {len(arguments)} arguments: {relation.arity} are needed")
        same = " AND ".join(f"a{i} = {self.code(each)}" for i, each in enumerate(texts))
        query = f"SELECT atom FROM {relation.table} WHERE {same}"
        found = self.connection.execute(query).fetchall()
        if not found or found[0][0] < 0:
            state = "observed" if found else "not listed"
            raise AtomError(f"{text} is {state}: name one of the {relation.n_free} targets")
        return found[0][0]

    def code(self, text: str) -> int:
        """Code of a constant; -1 where no atom has it."""
        number = whole(text)
        if number is not None:
            return number
        query = "SELECT code FROM constants WHERE text = ?"
        found = self.connection.execute(query, [text]).fetchall()
        return found[0][0] if found else -1

    def learn_code(self, text: str) -> int:
        """Code of a constant in a rule, a new one where no atom has it: it differs from others."""
        known = self.code(text)
        if known >= 0:
            return known
        new = TEXTS + self.count("constants")
        self.connection.execute("INSERT INTO constants VALUES (?, ?)", [new, text])
        return new

    def atom_text(self, relation: Relation, codes: Sequence[int]) -> str:
        """Write an atom whose arguments are given by their codes."""
        return atom_text(relation.name, [self._decode(np.array([code]))[0] for code in codes])

    def texts(self, codes: NDArray[Any]) -> list[str]:
        """Return the constants that codes stand for."""
        return list(map(str, self._decode(codes)))

    def _decode(self, codes: NDArray[Any]) -> NDArray[Any]:
        if not len(codes) or codes.max() < TEXTS:
            return codes.astype(np.int64)
        texts = self.connection.execute("SELECT text FROM constants ORDER BY code").fetchnumpy()
        decoded = codes.astype(str).astype(object)
        coded = codes >= TEXTS
        decoded[coded] = texts["text"][codes[coded] - TEXTS]
        return decoded

    def _add(
        self, relation: Relation, table: str, data: Any, header: bool, *, free: bool = False
    ) -> Stage:
        """Add atoms to a table and return how many were new."""
        found = stage(self, relation, data, header)
        value = f"0.0, {self.n_free} + rowid" if free else "value, -1"
        if found.columns is not None and insert(self, relation, table, found.columns, value):
            return found
        if self._has_repeated(relation, table, found.length):
            self._refuse_clash(relation, table, free)
            found = Stage(self._drop_repeated(relation, table), found.numbers)
        self.connection.execute(f"INSERT INTO {table} SELECT {relation.keys}, {value} FROM stage")
        return found

    def _has_repeated(self, relation: Relation, table: str, length: int) -> bool:
        distinct = self.count(f"(SELECT DISTINCT {relation.keys} FROM stage)")
        known = f"stage SEMI JOIN {table} USING ({relation.keys})"
        return distinct < length or self.count(known) > 0

    def _refuse_clash(self, relation: Relation, table: str, free: bool) -> None:
        new = f"{'0.0' if free else 'value'} AS value, {free} AS free FROM stage"
        found = self.connection.execute(
            f"SELECT {relation.keys}, min(value), max(value), min(free) < max(free) FROM "
            f"(SELECT {relation.keys}, value, atom >= 0 AS free FROM {table} "
            f"UNION ALL SELECT {relation.keys}, {new}) GROUP BY {relation.keys} "
            f"HAVING min(value) < max(value) OR min(free) < max(free) ORDER BY ALL LIMIT 1"
        ).fetchall()
        if not found:
            return
        *codes, low, high, mixed = found[0]
        how = "as observed and as a target" if mixed else f"twice, with the values {low} and {high}"
        raise AtomError(
            f"{self.atom_text(relation, codes)} is given {how}: every atom has one part to play"
        )

    def _drop_repeated(self, relation: Relation, table: str) -> int:
        """Leave in ``stage`` the first of equal rows, where the atom is not known yet."""
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE stage AS SELECT {relation.keys}, value FROM "
            f"(SELECT {relation.keys}, value, rowid AS line FROM stage) "
            f"ANTI JOIN {table} USING ({relation.keys}) QUALIFY "
            f"row_number() OVER (PARTITION BY {relation.keys} ORDER BY line) = 1 ORDER BY line"
        )
        return self.count("stage")
