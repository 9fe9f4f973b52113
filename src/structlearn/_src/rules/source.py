"""A file of DuckDB as the source of atoms: its tables can be read by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from structlearn._src.common.errors import DataNotFoundError, FormatError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def attach(connection: DuckDBPyConnection, source: Path) -> None:
    """Let queries read the tables of a file of DuckDB, as those of ``source``."""
    import duckdb

    if not source.is_file():
        raise DataNotFoundError(f"there is no file {str(source)!r}: check the path")
    try:
        connection.execute(f"ATTACH '{quoted(source)}' AS source (READ_ONLY)")
    except (duckdb.IOException, duckdb.BinderException) as error:
        reason = str(error).partition("\n")[0]
        raise FormatError(f"{source}: this is no file of DuckDB ({reason})") from None


def find_table(connection: DuckDBPyConnection, source: Path, name: str) -> str:
    """The full name of a table or a view of the source; empty if there is none."""
    found = connection.execute(
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_catalog = 'source' AND lower(?) IN "
        "(lower(table_name), lower(table_schema || '.' || table_name)) "
        "ORDER BY table_schema <> 'main', table_schema, table_name",
        [name],
    ).fetchall()
    if not found:
        return ""
    table = ".".join(["source", *map(identifier, found[0])])
    _refuse_foreign(source, table)
    return table


def _refuse_foreign(source: Path, table: str) -> None:
    """Refuse a view that reads other files: who names a table asks for what is in the source."""
    import duckdb

    with duckdb.connect() as alone:
        attach(alone, source)
        alone.execute("SET enable_external_access = false")
        try:
            alone.execute(f"DESCRIBE SELECT * FROM {table}")
        except duckdb.PermissionException:
            raise FormatError(
                f"{table} of {str(source)!r} is a view that reads other files: give these files "
                f"themselves, or make a table of it"
            ) from None


def quoted(text: str | Path) -> str:
    """The inside of a text in SQL."""
    return str(text).replace("'", "''")


def identifier(name: str) -> str:
    """A name in SQL, whatever its letters."""
    return '"' + name.replace('"', '""') + '"'
