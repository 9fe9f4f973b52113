"""Files of DuckDB as sources: their tables are read by name."""

from __future__ import annotations

import duckdb
import pytest

from structlearn._src.common.errors import DataNotFoundError, FormatError
from structlearn._src.rules.tables import Tables

ROWS = [("ann", "tea", 0.25), ("bob", "tea", 1.0), ("-1", "01", 0.0)]


def test_a_file_of_duckdb_is_read_by_table(tmp_path):
    path = tmp_path / "given.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE likes (a VARCHAR, b VARCHAR, v DOUBLE)")
        connection.executemany("INSERT INTO likes VALUES (?, ?, ?)", ROWS)
        connection.execute("CREATE VIEW who AS SELECT a FROM likes")
        connection.execute("CREATE SCHEMA more")
        connection.execute("CREATE TABLE more.who2 AS SELECT a FROM likes")
    tables = Tables({"Likes": 2, "Who": 1}, source=path, n_jobs=1)
    tables.observe("Likes", "likes")
    tables.target("Who", "who")
    tables.target("Who", "WHO")
    tables.target("Who", "more.who2")
    assert tables.n_free == len({row[0] for row in ROWS})
    assert tables.count(f"{tables.relation('Likes').table} WHERE value = 0.25") == 1
    assert tables.names([0, 2]) == ["Who('ann')", "Who('-1')"]


def test_a_source_must_be_of_duckdb(tmp_path):
    (tmp_path / "given.duckdb").write_text("no tables")
    with pytest.raises(FormatError, match=r"given\.duckdb: this is no file of DuckDB"):
        Tables({}, source=tmp_path / "given.duckdb")
    with pytest.raises(DataNotFoundError, match="there is no file"):
        Tables({}, source=tmp_path / "none.duckdb")


def test_a_view_of_the_source_reads_no_other_file(tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("a\nb\n")
    path = tmp_path / "given.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE own AS SELECT 'x' AS a")
        connection.execute("CREATE VIEW fine AS SELECT * FROM own")
        connection.execute(f"CREATE VIEW other AS SELECT * FROM read_csv('{secret}')")
    tables = Tables({"P": 1}, source=path, n_jobs=1)
    tables.target("P", "fine")
    assert tables.names([0]) == ["P('x')"]
    with pytest.raises(FormatError, match="a view that reads other files"):
        tables.observe("P", "other")
