"""Tables in DuckDB: in memory, spilling to disk, for several threads, and in pickles."""

from __future__ import annotations

import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structlearn._src.common.checks import integer
from structlearn._src.common.errors import DataNotFoundError, FormatError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Database:
    """A database of its own in memory, which may read tables of the file `source`.

    Each thread works through a cursor of its own; `lock` is for those who change what is in it.
    """

    def __init__(self, source: str | Path | None, n_jobs: int | None, memory: str | None) -> None:
        self._source = None if source is None else Path(source)
        self._settings = n_jobs if n_jobs is None else integer("n_jobs", n_jobs, low=1), memory
        self._connect()

    def _connect(self) -> None:
        import duckdb  # takes as long to load as NumPy, and few need it

        self.lock = threading.RLock()
        self._cursors = threading.local()
        self._database = duckdb.connect()
        spill = Path(tempfile.gettempdir()) / f"structlearn-{uuid.uuid4().hex}"
        self._database.execute(f"SET temp_directory = '{quoted(spill)}'")
        n_jobs, memory = self._settings
        if n_jobs is not None:
            self._database.execute(f"SET threads = {n_jobs}")
        if memory is not None:
            self._database.execute("SET memory_limit = ?", [memory])
        if self._source is not None:
            _attach(self._database, self._source)

    @property
    def connection(self) -> DuckDBPyConnection:
        """The cursor of this thread."""
        if not hasattr(self._cursors, "own"):
            self._cursors.own = self._database.cursor()
        return self._cursors.own

    def count(self, table: str) -> int:
        """Number of rows of a table or of a query in parentheses."""
        return self.connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]

    def find_table(self, name: str) -> str:
        """The full name of a table or a view of the source; empty if there is none."""
        if self._source is None:
            return ""
        found = self.connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_catalog = 'source' AND lower(?) IN "
            "(lower(table_name), lower(table_schema || '.' || table_name)) "
            "ORDER BY table_schema <> 'main', table_schema, table_name",
            [name],
        ).fetchall()
        if not found:
            return ""
        table = ".".join(["source", *map(identifier, found[0])])
        _refuse_foreign(self._source, table)
        return table

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


def quoted(text: str | Path) -> str:
    """The inside of a text in SQL."""
    return str(text).replace("'", "''")


def identifier(name: str) -> str:
    """A name in SQL, whatever its letters."""
    return '"' + name.replace('"', '""') + '"'


def _attach(connection: DuckDBPyConnection, source: Path) -> None:
    import duckdb

    if not source.is_file():
        raise DataNotFoundError(f"there is no file {str(source)!r}: check the path")
    try:
        connection.execute(f"ATTACH '{quoted(source)}' AS source (READ_ONLY)")
    except (duckdb.IOException, duckdb.BinderException) as error:
        reason = str(error).partition("\n")[0]
        raise FormatError(f"{source}: this is no file of DuckDB ({reason})") from None


def _refuse_foreign(source: Path, table: str) -> None:
    """Refuse a view that reads other files: who names a table asks for what is in the source."""
    import duckdb

    with duckdb.connect() as alone:
        _attach(alone, source)
        alone.execute("SET enable_external_access = false")
        try:
            alone.execute(f"DESCRIBE SELECT * FROM {table}")
        except duckdb.PermissionException:
            raise FormatError(
                f"{table} of {str(source)!r} is a view that reads other files: give these files "
                f"themselves, or make a table of it"
            ) from None


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise what stops DuckDB as the rest of Python would."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except RuntimeError as error:
        # Ctrl-C within a query comes as a bare RuntimeError: DuckDB has no type for that.
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise
    except duckdb.OutOfMemoryException:
        raise MemoryError(
            "the groundings need more memory than there is, or than memory= allows; estimate() "
            "says which rules are large"
        ) from None
