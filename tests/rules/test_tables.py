"""Atoms in DuckDB: every way in, the same atoms out; what is wrong is named."""

from __future__ import annotations

import copy
import gzip
import pickle
import tempfile
from concurrent.futures import ThreadPoolExecutor

import duckdb
import numpy as np
import pytest
from scipy.sparse import csr_array

from structlearn._src.common.errors import ArgumentError, AtomError, DataNotFoundError, FormatError
from structlearn._src.rules.ground_program import GroundProgram
from structlearn._src.rules.parse import parse
from structlearn._src.rules.tables import Tables

ROWS = [("ann", "tea", 0.25), ("bob", "tea", 1.0), ("7", "ice, cold", 0.5), ("-1", "01", 0.0)]


def listed(tables, name):
    """All atoms of a predicate as texts, with values, in order."""
    relation = tables.relation(name)
    rows = tables.connection.execute(f"SELECT {relation.keys}, value FROM {relation.table}")
    return [(tables.atom_text(relation, row[:-1]), row[-1]) for row in rows.fetchall()]


EXPECTED = [
    ("Likes('ann', 'tea')", 0.25),
    ("Likes('bob', 'tea')", 1.0),
    ("Likes('7', 'ice, cold')", 0.5),
    ("Likes('-1', '01')", 0.0),
]


def _columns():
    first, second, value = zip(*ROWS, strict=True)
    return {"who": list(first), "what": list(second), "v": list(value)}


def _pandas(folder):
    return pytest.importorskip("pandas").DataFrame(_columns())


def _polars(folder):
    return pytest.importorskip("polars").DataFrame(_columns())


def _arrow(folder):
    return pytest.importorskip("pyarrow").table(_columns())


def _csv(folder):
    lines = [f'{a},"{b}",{v}' for a, b, v in ROWS]
    (folder / "x.csv").write_text("\n".join(lines))
    return folder / "x.csv"


def _tabs(folder):
    lines = ["\t".join(map(str, row)) + "\n" for row in ROWS]
    (folder / "it's.txt").write_text("".join(lines[:3]))
    (folder / "y.txt").write_text("".join(lines[3:]))
    return [folder / "it's.txt", str(folder / "y.txt")]


def _parquet(folder):
    path = folder / "x.parquet"
    values = ", ".join(f"('{a}', '{b}', {v})" for a, b, v in ROWS)
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT * FROM (VALUES {values})) TO '{path}' (FORMAT parquet)")
    return path


def _lists(folder):
    return [list(row) for row in ROWS]


@pytest.mark.parametrize(
    "make", [_pandas, _polars, _arrow, _csv, _tabs, _parquet, _lists], ids=lambda f: f.__name__[1:]
)
def test_every_way_in_gives_the_same_atoms(make, tmp_path):
    tables = Tables({"Likes": 2}, n_jobs=1)
    tables.observe("likes", make(tmp_path))
    assert listed(tables, "Likes") == EXPECTED
    assert (tables.relation("LIKES").n_observed, tables.n_free) == (4, 0)


@pytest.mark.parametrize("kind", [np.int64, np.float64, np.uint8, str])
def test_whole_numbers_are_the_same_in_any_type(kind):
    tables = Tables({"Edge": 2, "Node": 1}, n_jobs=1)
    tables.observe("Node", [["3"], ["12"]])
    tables.target("Edge", np.array([[3, 12], [12, 3]]).astype(kind))
    assert tables.names([0, 1]) == ["Edge('3', '12')", "Edge('12', '3')"]
    atoms, (left, right) = tables.arguments("Edge")
    given = [3, 12] if kind is not str else ["3", "12"]
    assert (atoms.tolist(), left.tolist(), right.tolist()) == ([0, 1], given, given[::-1])
    assert left.dtype == (np.int64 if kind is not str else object)


def test_a_frame_of_numbers_keeps_its_type():
    frame = pytest.importorskip("pandas").DataFrame({"a": [3, 2**31], "v": [0.5, 1]})
    tables = Tables({"Node": 1}, n_jobs=1)
    tables.observe("Node", frame)
    assert listed(tables, "Node") == [("Node('3')", 0.5), (f"Node('{2**31}')", 1.0)]


def test_a_text_has_one_code_wherever_it_stands():
    tables = Tables({"Knows": 2, "P": 1}, n_jobs=1)
    tables.observe("Knows", [("a", "1"), ("a", "2"), ("b", "a")])
    tables.observe("P", [["b"], ["c"]])
    codes = tables.connection.execute("SELECT text FROM constants ORDER BY code").fetchall()
    assert codes == [("a",), ("b",), ("c",)]
    assert listed(tables, "Knows")[2] == ("Knows('b', 'a')", 1.0)


@pytest.mark.parametrize("name", ["x.txt", "x.csv", "x.csv.gz", "x.tsv"])
def test_ends_of_lines_do_not_matter(tmp_path, name):
    mark = b"," if "csv" in name else b"\t"
    text = b"a,b,1\r\nc,d,0.5\r\n\r\ne,#f,1".replace(b",", mark)
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    tables = Tables({"Knows": 2}, n_jobs=1)
    tables.observe("Knows", tmp_path / name)
    assert listed(tables, "Knows") == [
        ("Knows('a', 'b')", 1.0),
        ("Knows('c', 'd')", 0.5),
        ("Knows('e', '#f')", 1.0),
    ]


def test_a_header_is_skipped_on_demand(tmp_path):
    path = tmp_path / "obs.csv"
    path.write_text("who,value\na,0.5\n")
    tables = Tables({"P": 1}, n_jobs=1)
    tables.observe("P", path, header=True)
    assert listed(tables, "P") == [("P('a')", 0.5)]


def test_atoms_keep_their_number_as_targets_come_in():
    tables = Tables({"P": 1, "Q": 1}, n_jobs=1)
    tables.target("P", [["x"], ["y"]])
    tables.target("Q", [["5"]])
    tables.target("P", [["z"], ["x"], ["w"]])
    names = ["P('x')", "P('y')", "Q('5')", "P('z')", "P('w')"]
    assert tables.names(range(5)) == names
    assert tables.names([4, 0, 4]) == [names[4], names[0], names[4]]
    assert [tables.find("p", [x]) for x in "xyzw"] == [0, 1, 3, 4]
    assert tables.arguments("P")[0].tolist() == [0, 1, 3, 4]
    assert tables.arguments("P")[1][0].tolist() == ["x", "y", "z", "w"]


def test_labels_are_nan_where_nothing_is_known():
    tables = Tables({"P": 1, "Q": 1}, n_jobs=1)
    tables.target("P", [["x"], ["y"]])
    tables.target("Q", [["x"]])
    tables.truth("P", [["y", 0.25], ["unknown", 1.0]])
    np.testing.assert_array_equal(tables.labels(), [np.nan, 0.25, np.nan])


def test_equal_rows_are_one_atom():
    tables = Tables({"P": 1}, n_jobs=1)
    tables.observe("P", [["a", 0.5], ["b", 1.0], ["a", 0.5]])
    tables.observe("P", [["b", 1.0], ["c", 0.0]])
    assert listed(tables, "P") == [("P('a')", 0.5), ("P('b')", 1.0), ("P('c')", 0.0)]
    assert tables.relation("P").n_observed == 3


@pytest.fixture
def tables():
    made = Tables({"P": 1, "Knows": 2}, n_jobs=1)
    made.observe("P", [["a", 0.5]])
    made.target("P", [["t"]])
    return made


def test_no_memory_for_a_database_is_a_memory_error(monkeypatch):
    def refuse():
        raise duckdb.OutOfMemoryException("Allocation failure")

    monkeypatch.setattr(duckdb, "connect", refuse)
    with pytest.raises(MemoryError, match="memory"):
        Tables({})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["b", 1.5]], r"row 1 of the rows gives P\('b'\) the value 1.5: a truth value must be"),
        ([["c", 1.0], ["b", float("nan")]], r"row 2 of the rows gives P\('b'\) the value nan"),
        ([["b", None]], r"gives P\('b'\) the value None"),
        ([["b", "high"]], r"gives P\('b'\) the value 'high'"),
        ([["b", -0.1]], "must be a number of"),
        ([["b"], ["c", 1, 2]], "row 2 has 3 columns, but P takes 1 argument"),
        ([[]], "row 1 has 0 columns"),
        ([3], "must be sequences of 1 arguments"),
        (csr_array(np.eye(2)), "must be sequences of 1 arguments"),
        ([["b", 1.0], [None, 1.0]], "row 2 of the rows has no argument 1 of P: give all 1"),
        ([[float("nan"), 1.0]], "row 1 of the rows has no argument 1 of P"),
        ([["a", 0.75]], r"P\('a'\) is given twice, with the values 0.5 and 0.75"),
        ([["b", 0.0], ["b", 1.0]], r"P\('b'\) is given twice, with the values 0.0 and 1.0"),
        ([["t", 0.0]], r"P\('t'\) is given as observed and as a target"),
    ],
)
def test_bad_rows_are_named_and_nothing_is_added(tables, rows, message):
    with pytest.raises(AtomError, match=message):
        tables.observe("P", rows)
    assert tables.relation("P").n_observed == 1


def test_a_target_that_is_observed_is_named(tables):
    with pytest.raises(AtomError, match=r"P\('a'\) is given as observed and as a target"):
        tables.target("P", [["z"], ["a"]])
    assert tables.n_free == 1


def test_two_truths_are_named(tables):
    tables.truth("P", [["t", 1.0]])
    with pytest.raises(AtomError, match=r"P\('t'\) is given twice, with the values 0.0 and 1.0"):
        tables.truth("P", [["t", 0.0]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nc\n", "line 2 of 'bad.txt' has 1 column, but Knows takes 2 arguments"),
        ("a\tb\nc\td\t1\te\n", "line 2 of 'bad.txt' has 4 columns"),
        ("a\tb\t7\n", r"line 1 of 'bad.txt' gives Knows\('a', 'b'\) the value '7'"),
        ("a\tb\thigh\n", "the value 'high'"),
        ("a\t\t0.5\n", "line 1 of 'bad.txt' has no argument 2 of Knows: give all 2 of them"),
        ("a\tb\n\n\r\nc\td\t7\n", "line 4 of 'bad.txt'"),
    ],
)
def test_bad_lines_are_named(tables, tmp_path, text, message):
    (tmp_path / "bad.txt").write_text(text)
    with pytest.raises(AtomError, match=message):
        tables.observe("Knows", tmp_path / "bad.txt")


def test_lines_count_from_the_header(tables, tmp_path):
    with gzip.open(tmp_path / "bad.txt.gz", "wt") as file:
        file.write("from\tto\na\tb\nc\td\t7\n")
    with pytest.raises(AtomError, match=r"line 3 of 'bad\.txt\.gz'"):
        tables.observe("Knows", tmp_path / "bad.txt.gz", header=True)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("latin.txt", b"\xe4\tb\n"),
        ("plain.txt.gz", b"a\tb\n"),
        ("short.parquet", b"PAR1"),
    ],
)
def test_files_that_cannot_be_read_are_named(tables, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=f"the atoms of Knows in '.*{name}' cannot be read"):
        tables.observe("Knows", tmp_path / name)
    assert tables.relation("Knows").size == 0


def test_values_of_no_type_are_refused(tables):
    with pytest.raises(FormatError, match="the atoms of P cannot be read"):
        tables.observe("P", [["b", object()]])


def test_large_fractions_are_constants_too():
    frame = pytest.importorskip("pandas").DataFrame({"a": [1e20, np.inf, 2.0, 2.5]})
    tables = Tables({"P": 1}, n_jobs=1)
    tables.target("P", frame)
    assert tables.arguments("P")[1][0].tolist() == ["100000000000000000000", "inf", "2", "2.5"]


def test_the_bad_one_of_two_files_is_named(tables, tmp_path):
    (tmp_path / "good.txt").write_text("a\tb\n")
    (tmp_path / "bad.txt").write_text("b\tc\nc\n")
    with pytest.raises(AtomError, match=r"line 2 of 'bad\.txt' has 1 column"):
        tables.observe("Knows", [tmp_path / "good.txt", tmp_path / "bad.txt"])


def test_a_missing_value_in_a_frame_is_named(tables):
    frame = pytest.importorskip("pandas").DataFrame({"a": ["b"], "v": [np.nan]})
    with pytest.raises(AtomError, match=r"row 1 of the frame gives P\('b'\) the value"):
        tables.observe("P", frame)


def test_a_frame_of_the_wrong_width_is_named(tables):
    frame = pytest.importorskip("pandas").DataFrame({"a": ["b"]})
    with pytest.raises(AtomError, match="the frame has 1 column, but Knows takes 2 arguments"):
        tables.observe("Knows", frame)


def test_missing_files_are_named(tables):
    with pytest.raises(DataNotFoundError, match=r"there is no file 'nowhere\.txt'"):
        tables.observe("Knows", "nowhere.txt")
    with pytest.raises(DataNotFoundError, match=r"or write \('ann',\) if this is a row"):
        tables.observe("P", ["ann", "bob"])


def test_unknown_predicates_and_atoms_are_named(tables):
    with pytest.raises(ArgumentError, match=r"no predicate 'Know'.*did you mean 'Knows'"):
        tables.observe("Know", [])
    with pytest.raises(ArgumentError, match="P was given 2 arguments, but it takes 1"):
        tables.declare("p", 2)
    with pytest.raises(AtomError, match=r"P\('a'\) is observed: name one of the 1 targets"):
        tables.find("P", ["a"])
    with pytest.raises(AtomError, match=r"P\('zz'\) is not listed"):
        tables.find("P", ["zz"])
    with pytest.raises(AtomError, match=r"P\('a', 'b'\) has 2 arguments: 1 are needed"):
        tables.find("P", ["a", "b"])


def test_empty_data_add_nothing(tables):
    tables.observe("Knows", [])
    tables.target("Knows", [])
    assert tables.relation("Knows").size == 0
    assert tables.n_free == 1


def test_tables_spill_instead_of_failing():
    places = np.arange(600_000)
    frame = pytest.importorskip("pandas").DataFrame({"a": places, "b": places[::-1]})
    tables = Tables({"Edge": 2}, n_jobs=1, memory=20 * 10**6)
    tables.target("Edge", frame)
    assert tables.n_free == len(frame)
    short = Tables({"Edge": 2}, n_jobs=1, memory=20 * 10**6)
    short.connection.execute("SET temp_directory = ''")
    with pytest.raises(duckdb.OutOfMemoryException):
        short.target("Edge", frame)


# ---- for several threads, in pickles, and in folders with odd names

RULES = "2: Knows(A, B) & Likes(A) -> Likes(B) ^2\n1: !Likes(A)\nLikes(A) <= 0.9 ."


def program():
    made = GroundProgram(parse(RULES), n_jobs=1)
    made.add("observe", {"Knows": [(i, i + 1) for i in range(50)], "Likes": [("0", 0.9)]})
    made.add("target", {"Likes": [(i,) for i in range(1, 51)]})
    return made


def forms(made):
    hinges = made.grounding.hinges
    return hinges.variables.tolist(), hinges.coefficients.tolist(), hinges.constants.tolist()


@pytest.mark.parametrize("name", ["o'brien", "x'; COPY (SELECT 42) TO 'pwned.csv'; --"])
def test_a_folder_for_temporary_files_is_no_query(tmp_path, monkeypatch, name):
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
    tables = Tables({"P": 1}, n_jobs=1)
    tables.observe("P", [("a",)])
    assert tables.relation("P").size == 1
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
@pytest.mark.parametrize("grounded", [True, False])
def test_copies_are_whole_and_apart(again, grounded):
    made = program()
    if grounded:
        forms(made)
    twin = again(made)
    assert forms(twin) == forms(made)
    assert twin.tables.names([0, 49]) == ["Likes('1')", "Likes('50')"]
    twin.add("target", {"Likes": [("new",)]})
    assert (twin.tables.n_free, made.tables.n_free) == (51, 50)
    assert twin.targets("Likes")[1]["argument1"][-1] == "new"


def test_threads_ground_one_program_once():
    expected = forms(program())
    made = program()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: made.grounding, range(8)))
        names = list(pool.map(lambda i: made.tables.names([i]), range(50)))
    assert all(each is found[0] for each in found)
    assert forms(made) == expected
    assert names == [[f"Likes('{i + 1}')"] for i in range(50)]


def test_threads_add_atoms_to_one_program():
    made = program()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: made.add("target", {"Likes": [(f"t{i}",)]}), range(20)))
    assert made.tables.n_free == 70
    assert len(set(made.tables.names(range(70)))) == 70
