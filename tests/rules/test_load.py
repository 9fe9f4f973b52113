"""What a file, a row or a frame says about atoms is taken as it stands, and nothing else."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from structlearn._src.common.errors import AtomError, StructlearnError
from structlearn._src.rules.tables import Tables


def listed(tables, name="P"):
    """All atoms of a predicate with their values, in order."""
    relation = tables.relation(name)
    rows = tables.connection.execute(f"SELECT {relation.keys}, value FROM {relation.table}")
    return [(tables.atom_text(relation, row[:-1]), row[-1]) for row in rows.fetchall()]


def observed(data, arity=1, **options):
    tables = Tables({"P": arity}, n_jobs=1, **options)
    tables.observe("P", data)
    return listed(tables)


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["obs[1].txt", "obs*.txt", "o?s.csv", "[d]/p.txt", "o'b.txt"])
def test_a_path_is_no_pattern(tmp_path, name):
    for other in ("obs1.txt", "obsx.txt", "oxs.csv", "d/p.txt"):
        put(tmp_path / other, "bob\n")
    assert observed(put(tmp_path / name, "ann\n")) == [("P('ann')", 1.0)]


@pytest.mark.parametrize("folder", ["fold=0", "lr=0.1/seed=3", "c0=zz", "value=0.5"])
def test_names_of_folders_are_no_data(tmp_path, folder):
    path = put(tmp_path / folder / "p.txt", "ann\n")
    other = path.with_name("p[1].parquet")
    duckdb.execute(f"COPY (SELECT 'bob' AS who) TO '{other}'")
    assert observed(path) == [("P('ann')", 1.0)]
    assert observed(other) == [("P('bob')", 1.0)]
    assert observed([path, other]) == [("P('ann')", 1.0), ("P('bob')", 1.0)]


def test_texts_in_quotes_may_go_over_lines(tmp_path):
    path = put(tmp_path / "p.csv", '"a\nb",0.5\n"say ""c""",1\n')
    assert observed(path) == [("P('a\\nb')", 0.5), ("P('say \"c\"')", 1.0)]


@pytest.mark.parametrize(
    ("text", "arity", "atoms"),
    [
        ("ann \n  bob\n \t\n\n   \n", 1, ["P('ann')", "P('bob')"]),
        (" ann\t b c \ndan\te\t\n", 2, ["P('ann', ' b c')", "P('dan', 'e')"]),
        ("ann \tb \t1 \n", 2, ["P('ann ', 'b ')"]),
    ],
)
def test_blanks_around_a_line_are_no_part_of_it(tmp_path, text, arity, atoms):
    found = observed(put(tmp_path / "p.txt", text), arity)
    assert found == [(atom, 1.0) for atom in atoms]


@pytest.mark.parametrize("name", ["p.txt", "p.csv"])
def test_lines_have_values_or_not_all_of_them(tmp_path, name):
    mark = "," if name.endswith("csv") else "\t"
    path = put(tmp_path / name, "a;0\n\nb;0.5\n\nc\n".replace(";", mark))
    with pytest.raises(AtomError, match=r"line 5 .* has no value of P, but line 1 .* has"):
        observed(path)
    plain = put(tmp_path / f"q{name}", "d\n")
    whole = put(path, f"a{mark}0\n")
    assert observed([whole, plain]) == [("P('a')", 0.0), ("P('d')", 1.0)]  # file by file


def test_rows_have_values_or_not_all_of_them():
    with pytest.raises(AtomError, match="row 2 of P has 2 columns and row 1 has 1: give all rows"):
        observed([("a",), ("b", 0.5)])


def test_types_of_numpy_and_truth_values_are_those_of_python():
    rows = [(np.float32(1), np.float32(0.5)), (np.True_, np.float16(1)), (2.0, np.int8(0))]
    frame = {"a": np.array([1.0, 2.0], np.float32)}
    assert observed(rows) == [("P('1')", 0.5), ("P('True')", 1.0), ("P('2')", 0.0)]
    assert observed(frame) == [("P('1')", 1.0), ("P('2')", 1.0)]
    pandas = pytest.importorskip("pandas")
    assert observed(pandas.DataFrame({"a": [True, False]})) == observed([(True,), (False,)])
    for lost in (np.float32("nan"), pandas.NA, pandas.NaT):
        with pytest.raises(AtomError, match="has no argument 1"):
            observed([(lost,)])


@pytest.mark.parametrize(
    ("given", "back"),
    [
        ([("1",), ("7",)], ["1", "7"]),
        ([(1,), (7.0,)], [1, 7]),
        ([(1,), ("7",)], ["1", "7"]),
        ({"who": ["1", "7"]}, ["1", "7"]),
        (np.array([["1"], ["7"]]), ["1", "7"]),
        ([("a",), (7,)], ["a", "7"]),
    ],
)
def test_arguments_come_back_as_they_were_given(given, back):
    tables = Tables({"P": 1}, n_jobs=1)
    tables.target("P", given)
    assert tables.arguments("P")[1][0].tolist() == back
    assert [tables.find("P", [each]) for each in back] == [0, 1]
    assert tables.find("P", [np.float32(7)]) == 1
    tables.target("P", [("9",)])
    assert tables.arguments("P")[1][0].tolist() == [*map(str, back), "9"]


def test_frames_of_texts_come_back_as_texts():
    pandas = pytest.importorskip("pandas")
    tables = Tables({"P": 2}, n_jobs=1)
    tables.target("P", pandas.DataFrame({"a": ["1", "7"], "b": [1, 7]}))
    left, right = tables.arguments("P")[1]
    assert left.tolist() == ["1", "7"]
    assert right.tolist() == [1, 7]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["x" * 300], "no file"),
        (["a\0b"], "no file"),
        ([{"a": 1}], "must be sequences"),
        ([{"a"}], "must be sequences"),
        ([np.array("a")], "must be sequences"),
        ({"who": 3}, "columns of P"),
        ({"who": ["a", "b"], "value": [1.0]}, "columns of P"),
    ],
)
def test_what_is_no_row_is_named(given, words):
    with pytest.raises(StructlearnError, match=words):
        observed(given)
