"""Tables of atoms in another process: the same, or a named error."""

from __future__ import annotations

import pytest

from structlearn._src.rules.retrace import TableSource, checksums
from structlearn._src.rules.tables import Tables
from structlearn.errors import PlaceError


def tables(**given):
    found = Tables({"Near": 2, "Good": 1})
    for how, data in given.items():
        getattr(found, how)("Near" if how == "observe" else "Good", data)
    return found


def test_large_numbers_have_checksums():
    n = 20_000
    found = tables(
        observe=[(2**30 - 1 - i, "a", 0.5) for i in range(n)], target=[(i,) for i in range(n)]
    )
    assert [count for count, _ in checksums(found).values()] == [n, n]


@pytest.mark.parametrize(
    "other", [[("a", "b", 0.5)], [("b", "a", 1.0)], [("a", "c", 1.0)], [("a", "b"), ("b", "a")]]
)
def test_other_atoms_have_other_checksums(other):
    ours = checksums(tables(observe=[("a", "b", 1.0)]))
    assert ours == checksums(tables(observe=[("a", "b", 1.0)]))
    assert ours["Near"] != checksums(tables(observe=other))["Near"]


def test_codes_of_texts_do_not_count():
    ours = tables(observe=[("a", "b", 1.0)])
    theirs = Tables({"Near": 2, "Good": 1})
    theirs.learn_code("zebra")  # as a constant of a rule
    theirs.observe("Near", [("a", "b", 1.0)])
    assert theirs.code("a") != ours.code("a")
    assert checksums(theirs) == checksums(ours)


def test_rows_travel_and_files_are_read_again(tmp_path):
    path = tmp_path / "near.txt"
    path.write_text("a\tb\t0.5\nb\tc\t1\n")
    by_file = TableSource.of(tables(observe=path))
    assert not by_file.copied
    by_rows = TableSource.of(tables(observe=[("a", "b", 0.5), ("b", "c", 1.0)], target=[("a",)]))
    assert by_rows.calls is None
    assert checksums(by_rows.tables())["Near"] == checksums(by_file.tables())["Near"]
    assert by_rows.tables().n_free == 1
    path.write_text("a\tb\t0.6\nb\tc\t1\n")
    with pytest.raises(PlaceError, match="Near"):
        by_file.tables()
    path.unlink()
    with pytest.raises(PlaceError, match="Near"):
        by_file.tables()
