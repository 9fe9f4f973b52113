"""What a file, a row or a frame says about atoms is taken as it stands, and nothing else."""

from __future__ import annotations

import gzip

import duckdb
import numpy as np
import pytest

from structlearn._src.common.errors import AtomError, FormatError, StructlearnError
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
        (np.array([[b"ann"]]), "argument b'ann' is of type bytes"),
        ([(["a", "b"],)], r"argument \['a', 'b'\] is of type list"),
    ],
)
def test_what_is_no_row_is_named(given, words):
    with pytest.raises(StructlearnError, match=words):
        observed(given)


# ---- nothing of a text file is lost without a word

FAR = "a{0}{0}{0}{0}{0}{0}{0}0.5\n"


@pytest.mark.parametrize("many", [0, 4000])
@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("p.csv", '"ann"lee,1\n', r"line 1 of 'p.csv' goes on behind the end of a quote"),
        ("p.csv", '\xef\xbb\xbf"ann"lee,1\n', r"line 1 of 'p.csv' goes on behind"),  # with a mark
        ("p.csv", '\xef\xbb\xbf"ann,1\n', "line 1 of 'p.csv' has a quote that is not closed"),
        ("p.csv", 'bob,1\n"ann,1\n', "line 2 of 'p.csv' has a quote that is not closed"),
        ("p.csv", '"a\nb",1\n"c\n', "line 3 of 'p.csv' has a quote that is not closed"),
        ("p.csv", FAR.format(","), "line 1 of 'p.csv' has 8 columns"),
        ("p.csv", '"a\nb",,,,,c\n', "line 2 of 'p.csv' has 6 columns"),
        ("p.txt", FAR.format("\t"), "line 1 of 'p.txt' has 8 columns"),
        ("p.txt", "\t0.5\n", "line 1 of 'p.txt' has no argument 1 of P"),
        ("p.txt", "a\r\r\nb\r\r\n", "some carriage returns stand alone"),
        ("p.csv", "a\r\nb\rcd\r\n", "some carriage returns stand alone"),
        ("p.txt", "a\n\xe4\n", "line 2 is not in UTF-8"),
    ],
)
def test_what_duckdb_would_drop_is_refused(tmp_path, name, text, words, many):
    mark = "," if name.endswith("csv") else "\t"
    more = "".join(f"a{i}{mark}0.5\n" for i in range(many))
    path = tmp_path / name
    path.write_bytes((text + more).encode("latin-1"))
    with pytest.raises(StructlearnError, match=words):
        observed(path)


def test_cells_that_are_empty_may_follow(tmp_path):
    assert observed(put(tmp_path / "p.csv", 'a,1,,,,\n"b",0.5,"",\n')) == [
        ("P('a')", 1.0),
        ("P('b')", 0.5),
    ]
    assert observed(put(tmp_path / "q.csv", '\ufeff"a,b",1\n')) == [("P('a,b')", 1.0)]
    assert observed(put(tmp_path / "p.txt", "a\t1\t\t\t\n")) == [("P('a')", 1.0)]


def test_a_header_may_be_anything(tmp_path):
    path = tmp_path / "p.txt"
    path.write_bytes("gr\xf6\xdfe\ta\tb\tc\n".encode("latin-1") + b"a\n")
    tables = Tables({"P": 1}, n_jobs=1)
    tables.observe("P", path, header=True)
    assert listed(tables) == [("P('a')", 1.0)]


def test_a_damaged_gzip_file_is_refused(tmp_path):
    whole = gzip.compress("".join(f"x{i * 7919 % 1009}\ty{i}\n" for i in range(300)).encode())
    path = tmp_path / "p.txt.gz"
    rng = np.random.default_rng(0)
    for place in rng.integers(20, len(whole), 40):
        data = bytearray(whole)
        data[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(data))
        with pytest.raises(FormatError, match=r"'.*p\.txt\.gz' cannot be read"):
            observed(path, 2)
    path.write_bytes(whole)
    assert len(observed(path, 2)) == 300


# ---- few atoms are read here, many by DuckDB: as the same

PIECES = (
    *("a", "bob", "7", "007", "-1", "1073741823", "1073741824", "0.5", "1", "1e-1", "", " ", "  "),
    *(
        "\u3000",
        "\xa0x",
        "it's",
        "#",
        "\\N",
        "NULL",
        "nan",
        "1_0",
        "2",
        "\0",
        "\x0b",
        "\x85",
        "\xe9",
    ),
)
QUOTED = (
    '"a b"',
    '"x,y"',
    '""',
    ' "q"',
    '"q" ',
    '"say ""so"""',
    '"two\nlines"',
    'mid"dle',
    '  "r"',
)


def outcome(tables, name, path, header):
    tables.declare(name, 2)
    try:
        tables.observe(name, path, header=header)
    except AtomError as error:
        return str(error).replace(name, "P").replace(path.name, "")
    return [(atom.replace(name, "P"), value) for atom, value in listed(tables, name)]


@pytest.mark.parametrize(("ends", "mark"), [(".csv", ","), (".txt", "\t")])
def test_short_files_are_read_as_duckdb_reads_them(tmp_path, ends, mark):
    rng = np.random.default_rng(7)
    pieces = PIECES + (QUOTED if ends == ".csv" else ())
    short = tmp_path / f"p{ends}"
    packed = tmp_path / f"p{ends}.gz"
    lists = 0
    for i in range(400):
        if i % 100 == 0:
            tables = Tables({}, n_jobs=1)
        width = int(rng.choice([2, 3]))
        lines = [
            mark.join(rng.choice(pieces, width if rng.random() < 0.95 else rng.integers(1, 5)))
            for _ in range(rng.choice([1, 2, 5]))
        ]
        text = str(rng.choice(["\n", "\r\n", "\n\n"])).join([*lines, ""])
        short.write_bytes(text.encode())
        packed.write_bytes(gzip.compress(text.encode()))
        header = bool(rng.random() < 0.2)
        found = outcome(tables, f"S{i}", short, header)
        assert found == outcome(tables, f"Z{i}", packed, header), text
        lists += isinstance(found, list)
    assert lists > 40


def test_few_rows_are_taken_as_frames_are():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    few, frames = Tables({"P": 2}, n_jobs=1), Tables({"P": 2}, n_jobs=1)
    for i in range(20):
        rows = [(str(a), str(b), 0.5) for a, b in rng.choice(PIECES[:7], (rng.integers(1, 6), 2))]
        few.observe("P", rows)
        frames.observe("P", pandas.DataFrame(rows))
        assert listed(few) == listed(frames), i
    known = "SELECT * FROM constants ORDER BY code"
    same = frames.connection.execute(known).fetchall()
    assert few.connection.execute(known).fetchall() == same
    assert few.relation("P").n_observed == frames.relation("P").n_observed == len(listed(few))


def test_texts_that_are_no_letters_are_refused():
    with pytest.raises(StructlearnError, match="P"):
        observed([("\ud800",)])
    with pytest.raises(StructlearnError, match="P"):
        observed([("\ud800",)] * 2000)


def test_digits_may_be_many():
    tables = Tables({"P": 1}, n_jobs=1)
    tables.target("P", [("9" * 5000,), (7,)])
    assert tables.find("P", ["9" * 5000]) == 0
