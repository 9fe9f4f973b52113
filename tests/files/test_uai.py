"""Models, evidence and query variables in UAI files."""

from __future__ import annotations

import gzip
import itertools
import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from structlearn import FactorGraph, read_uai, write_uai
from structlearn._src.common.errors import ArgumentError, EvidenceError, FormatError
from structlearn._src.files.uai_evidence import read_evidence, read_variables, write_evidence
from structlearn._src.kernels.text import numbers as text

EXAMPLE = """MARKOV
3
2 2 3
2
2 0 1
3 0 1 2

4
 4.000 2.400
 1.000 0.000

12
 2.2500 3.2500 3.7500
 0.0000 0.0000 10.0000
 1.8750 4.0000 3.3330
 2.0000 2.0000 3.4000
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("uai")


def written(folder, content, name="model.uai"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def slowly(path):
    """Cards, scopes and plain tables, by splitting the text; no comments, no empty scopes."""
    words = iter(path.read_text().split())
    assert next(words) in ("MARKOV", "BAYES")
    cards = [int(next(words)) for _ in range(int(next(words)))]
    scopes = [[int(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
    tables = []
    for scope in scopes:
        flat = [float(next(words)) for _ in range(int(next(words)))]
        tables.append(np.reshape(flat, [cards[v] for v in scope]))
    assert next(words, None) is None
    return cards, scopes, tables


def assert_same_model(one, other):
    np.testing.assert_array_equal(one.cards, other.cards)
    np.testing.assert_array_equal(one.wiring.scope_offsets, other.wiring.scope_offsets)
    np.testing.assert_array_equal(one.wiring.scopes, other.wiring.scopes)
    np.testing.assert_allclose(one.potentials, other.potentials, rtol=0, atol=1e-12)


# ---- reading -----------------------------------------------------------------------------


def test_last_variable_of_a_scope_is_fastest(folder):
    graph = read_uai(written(folder, EXAMPLE))
    assert graph.cards.tolist() == [2, 2, 3]
    assert [graph.scope(f).tolist() for f in range(2)] == [[0, 1], [0, 1, 2]]
    np.testing.assert_allclose(np.exp(graph.table(0)), [[4, 2.4], [1, 0]])
    assert graph.table(0)[1, 1] == -np.inf
    assert np.exp(graph.table(1))[0, 1, 2] == pytest.approx(10)
    assert np.exp(graph.table(1))[1, 0, 1] == pytest.approx(4)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.replace("\n", "\r\n"),
        lambda s: s.replace("\n", " "),
        lambda s: s.replace(" ", "\n\t "),
        lambda s: "\n\n" + s.rstrip(),
        lambda s: "c\nc made by hand\n# 12 13\n  c x\n" + s,
        lambda s: s.replace("\n", "\nc 7 x\n") + "c the end",
        lambda s: s.replace("\n\n", "\n#\n# 1\n"),
        lambda s: s.replace(" 4.000 ", " +4 ").replace(" 0.000", " 0").replace("10.0000", "1.E+1"),
        lambda s: s.replace(" 4.000 ", " 400e-2 ").replace("10.0000", "00010"),
        lambda s: s.replace(" 0.0000", " .0").replace("3.4000", ".34E1"),
        lambda s: s.replace(" 4.000 ", f" 4.{'0' * 30} ").replace(" 0.0000", " 0e99999999999"),
        lambda s: s.replace("MARKOV", "BAYES"),
    ],
)
def test_other_spellings_of_the_same_model(folder, change):
    expected = read_uai(written(folder, EXAMPLE))
    assert_same_model(read_uai(written(folder, change(EXAMPLE), "other.uai")), expected)


def test_gzipped_whatever_the_name(folder):
    expected = read_uai(written(folder, EXAMPLE))
    packed = gzip.compress(EXAMPLE.encode(), mtime=0)
    for name in ("model.uai.gz", "packed.uai"):
        assert_same_model(read_uai(written(folder, packed, name)), expected)


@pytest.mark.parametrize(
    ("content", "cards", "total"),
    [
        ("MARKOV 2 2 3 3  0  1 1  0   1 0.5  3 1 2 3  1 4", [2, 3], 0.5 * 4 * 6 * 2),
        ("MARKOV 2 3 2 1  0  1 0.25", [3, 2], 0.25 * 6),
        ("MARKOV 1 3 2  0 0  1 2 1 0.5", [3], 3),
        ("MARKOV 0 1  0  1 7", [1], 7),
        ("MARKOV 0 1  0  1 1", [], 1),
        ("MARKOV 0 0", [], 1),
        ("MARKOV 2 2 2 1  0  1 0", [2, 2], 0),
        ("MARKOV 1 2 2  0  1 0   1 0   2 0 1", [2], 0),
    ],
)
def test_constants_are_kept(folder, content, cards, total):
    graph = read_uai(written(folder, content))
    assert graph.cards.tolist() == cards
    assert np.exp(naive.joint(graph)).sum() == pytest.approx(total)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.one_of(
            st.floats(0, allow_infinity=False).map(repr),
            st.decimals(0, 10**30, allow_nan=False).map(str),
            st.from_regex(r"[0-9]{0,25}\.[0-9]{1,25}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
            st.integers(0, 2**80).map(str),
        ),
        min_size=1,
        max_size=20,
    ),
    st.integers(1, 4),
)
def test_numbers_are_those_of_python(words, room):
    data = " ".join(words).encode()
    values = np.empty(len(words) + 1)
    slow = np.empty((room, 3), np.int64)
    at = count = 0
    while at < len(data):
        view = np.frombuffer(data, np.uint8)
        at, count, used, fine = text.numbers(view, at, values, count, slow)
        assert fine
        for row, first, end in slow[:used].tolist():
            values[row] = float(data[first:end])
    assert values[:count].tolist() == [float(word) for word in words]


def test_numbers_half_way_between_two_floats():
    rng = np.random.default_rng(0)
    words = [str((int(m) << 4) + 8) for m in rng.integers(2**52, 2**53, 500)]
    words += [f"{word}{tail}" for word in words for tail in (".0000001", "e-3", "e20")]
    data = " ".join(words).encode()
    values = np.empty(len(words) + 1)
    slow = np.empty((len(words) + 1, 3), np.int64)
    _, count, used, fine = text.numbers(np.frombuffer(data, np.uint8), 0, values, 0, slow)
    sure = np.setdiff1d(np.arange(count), slow[:used, 0])
    assert fine
    assert count == len(words)
    assert len(sure) > 0
    assert values[sure].tolist() == [float(words[i]) for i in sure]


def test_more_hard_numbers_than_fit_into_one_round(folder):
    n = 70_000
    words = [f"0.{k:05d}{'123456789' * 3}" for k in range(n)]
    path = written(folder, f"MARKOV 1 {n} 1 1 0 {n} {' '.join(words)}")
    expected = np.log([float(word) for word in words])
    assert read_uai(path).potentials.tolist() == expected.tolist()


# ---- files that are wrong ----------------------------------------------------------------

WRONG = [
    (b"", "is empty"),
    (b" \n\t\n", "is empty"),
    (b"c only words\n", "is empty|starts with MARKOV"),
    (b"\x00\x01\x02\xff" * 10, "line 1: a UAI model starts with MARKOV"),
    (b"\x1f\x8b\x08broken", "gzip"),
    (gzip.compress(EXAMPLE.encode(), mtime=0)[:-9], "gzip"),
    (b"LIMID\n1\n", "line 1: .*not 'LIMID'"),
    (b"c hello\n\nmarkov 0 0", "line 3: .*not 'markov'"),
    (b"MARKOV", "ends before the number of variables"),
    (b"MARKOV\n2.5\n2 2\n0", "line 2: the number of variables .*'2.5'"),
    (b"MARKOV\n-1\n0", "line 2: the number of variables .*'-1'"),
    (b"MARKOV\n5\n2 2\n", "line 3: the file ends, but has 5 variables"),
    (b"MARKOV\n1e300\n2 2\n", "the file ends"),
    (b"MARKOV\n1e999\n2 2\n", "the file ends"),
    (b"MARKOV\n2\n2\n0\n0\n", "line 4: variable 1 has '0' states"),
    (b"MARKOV\n2\n2\n-3\n0\n", "line 4: variable 1 has '-3' states"),
    (b"MARKOV\n1\n2.5\n0\n", "line 3: variable 0 has '2.5' states"),
    (b"MARKOV\n1\n1e12\n0\n", "line 3: variable 0 has '1e12' states"),
    (b"MARKOV\n2\n2 2\n", "ends before the number of factors"),
    (b"MARKOV\n2\n2 2\n-2\n", "line 4: the number of factors .*'-2'"),
    (b"MARKOV\n2\n2 2\n3\n1 0\n", "line 5: the file ends, but has 3 factors"),
    (b"MARKOV\n2\n2 2\n2\n2 0 1\n", "line 5: factor 1: the file ends inside the scopes"),
    (b"MARKOV\n2\n2 2\n1\n2 0\n", "line 5: factor 0: the file ends inside the scopes"),
    (b"MARKOV\n2\n2 2\n1\n1.5 0\n2 1 1\n", "line 5: factor 0: a scope starts .*'1.5'"),
    (b"MARKOV\n2\n2 2\n1\n-1 0\n2 1 1\n", "line 5: factor 0: a scope starts .*'-1'"),
    (b"MARKOV\n2\n2 2\n1\n2 0 2\n4 1 1 1 1\n", "line 5: factor 0: '2' is no variable; .*0 to 1"),
    (b"MARKOV\n2\n2 2\n1\n2 0 -1\n4 1 1 1 1\n", "line 5: factor 0: '-1' is no variable"),
    (b"MARKOV\n2\n2 2\n1\n2 0 0.5\n4 1 1 1 1\n", "line 5: factor 0: '0.5' is no variable"),
    (b"MARKOV\n2\n2 2\n1\n2 1 1\n4 1 1 1 1\n", "line 5: factor 0: variable '1' occurs twice"),
    (b"MARKOV\n1\n2\n1\n1 0\n", "line 5: factor 0: the file ends inside the tables.* 2 entries"),
    (b"MARKOV\n1\n2\n1\n1 0\n2 1\n", "line 6: factor 0: the file ends inside the tables"),
    (b"MARKOV\n1\n2\n1\n1 0\n\n3 1 1 1", r"line 7: .*variables \[0\] has 2 entries, not '3'"),
    (b"MARKOV\n1\n2\n1\n1 0\n\n1 1", r"line 7: .*variables \[0\] has 2 entries, not '1'"),
    (b"MARKOV\n1\n2\n1\n0\n0", r"line 6: .*variables \[\] has 1 entries, not '0'"),
    (b"MARKOV\n1\n2\n1\n1 0\n2\n1 -0.1", "line 7: factor 0: '-0.1' is no potential"),
    (b"MARKOV\n1\n2\n1\n1 0\n2\n1e400 1", "line 7: factor 0: '1e400' is no potential"),
    (b"MARKOV\n1\n2\n1\n1 0\n2\n1 nan", "line 7: 'nan' is not a number"),
    (b"MARKOV\n1\n2\n1\n1 0\n2\n1 inf", "line 7: 'inf' is not a number"),
    (b"MARKOV\n1\n2\n1\n1 0\n2\n1 0x1", "line 7: '0x1' is not a number"),
    (b"MARKOV\n1\n2\n1\n1 0\n2\n1 1_0", "line 7: '1_0' is not a number"),
    (b"MARKOV\n1\n2\n1\n1 0\n2\n1 .", r"line 7: '\.' is not a number"),
    (b"MARKOV\n1\n2\n1\n1 0\n2\n1 1e", "line 7: '1e' is not a number"),
    (b"MARKOV\n1\n2\n1\n1 0\n2\n1 1-2", "line 7: '1-2' is not a number"),
    (b"MARKOV\n1\n2\n1\n1 0\n2\n1 c 2", "line 7: 'c' is not a number"),
    (b"MARKOV\n1\n2\n1\n1 0\n2\n1 \xff\x00", r"line 7: '.*xff.*' is not a number"),
    (b"MARKOV\n1\n2\n1\n1 0\n2\n1 1\n\n7", "line 9: '7' follows the last table"),
    (b"MARKOV\n1\n2\n1\n1 0\n2\n1 1\nx", "line 8: 'x' is not a number"),
    (
        b"MARKOV 61" + b" 1" * 61 + b" 1 61 " + b" ".join(b"%d" % k for k in range(61)) + b" 1 1",
        "60",
    ),
]


@pytest.mark.parametrize(("content", "words"), WRONG)
def test_wrong_files_are_refused_with_the_reason(folder, content, words):
    path = written(folder, content, "wrong.uai")
    with pytest.raises(FormatError, match=words) as caught:
        read_uai(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("cut", range(len(EXAMPLE.rstrip()) - 6))
def test_no_beginning_of_a_file_is_a_file(folder, cut):
    with pytest.raises(FormatError):
        read_uai(written(folder, EXAMPLE[:cut], "cut.uai"))


def mutate(content, edits):
    out = bytearray(content)
    for kind, place, byte in edits:
        at = place % (len(out) + 1)
        if kind == "insert" or at == len(out):
            out.insert(at, byte)
        elif kind == "replace":
            out[at] = byte
        else:
            del out[at]
    return bytes(out)


BYTES = st.one_of(st.integers(0, 255), st.sampled_from(list(b"0123456789 .-+eEc#\n\r")))
EDITS = st.lists(
    st.tuples(st.sampled_from(["insert", "replace", "delete"]), st.integers(0, 10**6), BYTES),
    min_size=1,
    max_size=6,
)
SMALL = b"MARKOV\n3\n2 1 3\n3\n1 0\n2 2 0\n0\n\n2\n 0.4 1\n6\n 1 2 3\n 0 1e-2 .5\n1\n 2\n"


@settings(deadline=None, max_examples=200)
@given(edits=EDITS, packed=st.booleans(), number=st.sampled_from([b"1 1 0", b"1\n1 2 0", b"0"]))
def test_damaged_files_parse_or_raise_a_format_error(folder, edits, packed, number):
    content = gzip.compress(SMALL, mtime=0) if packed else SMALL
    for name, reader, original in (
        ("fuzz.uai", read_uai, content),
        ("fuzz.evid", read_evidence, number),
        ("fuzz.query", read_variables, b"3 1 2 0"),
    ):
        path = written(folder, mutate(original, edits), name)
        try:
            reader(path)
        except FormatError as error:
            message = str(error)
        else:
            message = name
        assert name in message


# ---- writing -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tree", "loopy", "chain", "forest"])
@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_reads_back(folder, kind, seed):
    rng = np.random.default_rng(seed)
    graph = naive.random_graph(rng, 7, 4, 4, kind, zeros=0.2, hidden=0.3)
    path = folder / ("round.uai.gz" if seed % 2 else "round.uai")
    write_uai(graph, path)
    again = read_uai(path)
    assert_same_model(again, graph)
    write_uai(again, folder / "second.uai")
    np.testing.assert_allclose(
        read_uai(folder / "second.uai").potentials, graph.potentials, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("shape", [(0, 0), (3, 0)])
def test_graphs_without_factors_read_back(folder, shape):
    graph = FactorGraph()
    graph.add_variables(shape[0], 3)
    write_uai(graph, folder / "bare.uai")
    again = read_uai(folder / "bare.uai")
    assert (again.cards.tolist(), again.n_factors) == ([3] * shape[0], 0)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(-700, 700) | st.just(-np.inf), min_size=1, max_size=9))
def test_all_potentials_survive(folder, potentials):
    graph = FactorGraph()
    graph.add_variable(None, len(potentials))
    graph.add_factor([0], potentials)
    write_uai(graph, folder / "wide.uai")
    np.testing.assert_allclose(
        read_uai(folder / "wide.uai").potentials, potentials, rtol=0, atol=1e-12
    )


def test_smallest_and_largest_numbers_of_a_file_survive(folder):
    path = written(folder, "MARKOV 1 4 1 1 0 4 5e-324 1e-310 1.7e308 0")
    write_uai(read_uai(path), folder / "again.uai")
    assert_same_model(read_uai(folder / "again.uai"), read_uai(path))


@pytest.mark.parametrize("value", [-1000.0, -730.123, 710.0])
def test_potentials_that_float64_cannot_exponentiate_are_refused(folder, value):
    graph = FactorGraph()
    graph.add_variable()
    graph.add_factor([0], [0, 0])
    graph.add_factor([0], [0, value])
    with pytest.raises(FormatError, match="factor 1 holds the log potential"):
        write_uai(graph, folder / "never.uai")
    assert not (folder / "never.uai").exists()


def network(tables, scopes, cards):
    graph = FactorGraph()
    graph.add_variables(len(cards), cards)
    with np.errstate(divide="ignore"):
        for scope, table in zip(scopes, tables, strict=True):
            graph.add_factor(scope, np.log(table))
    return graph


def test_bayesian_network_reads_back(folder):
    rows = [[[0.3, 0.7, 0.0]], [[0.2, 0.8]] * 3, [[[0.5, 0.5]] * 2] * 3]
    graph = network([rows[0][0], rows[1], rows[2]], [[0], [0, 2], [0, 2, 1]], [3, 2, 2])
    write_uai(graph, folder / "net.uai", kind="BAYES")
    assert (folder / "net.uai").read_text().startswith("BAYES\n3\n3 2 2\n3\n1 0\n")
    assert_same_model(read_uai(folder / "net.uai"), graph)
    assert np.exp(naive.joint(graph)).sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("tables", "scopes", "words"),
    [
        ([[0.5, 0.6], [[1, 0], [0, 1]]], [[0], [0, 1]], "factor 0 sums to 1.1"),
        ([[0.5, 0.5], [[1, 0], [0.5, 0.4]]], [[0], [0, 1]], "factor 1 sums to 0.9"),
        ([[0.5, 0.5], [0.5, 0.5]], [[0], [0]], "variable 0 in 2"),
        ([[0.5, 0.5]], [[1]], "variable 0 in 0"),
        ([[[0.5, 0.5]] * 2] * 2, [[0, 1], [1, 0]], "ancestors"),
    ],
)
def test_what_is_no_bayesian_network_is_not_written_as_one(folder, tables, scopes, words):
    with pytest.raises(FormatError, match=words):
        write_uai(network(tables, scopes, [2, 2]), folder / "no.uai", kind="BAYES")
    assert not (folder / "no.uai").exists()


def test_unknown_kind_is_refused(folder):
    with pytest.raises(ArgumentError, match="MARKOV"):
        write_uai(FactorGraph(), folder / "no.uai", kind="DAG")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = written(tmp_path, EXAMPLE)

    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr("structlearn._src.common.paths.os.replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        write_uai(read_uai(path), path)
    assert path.read_text() == EXAMPLE
    assert list(tmp_path.iterdir()) == [path]


# ---- evidence and queries ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", {}),
        ("\n \n", {}),
        ("0", {}),
        ("1\n0\n", {}),
        ("1 0", {}),
        ("1 4 2", {4: 2}),
        ("1\n1 0", {1: 0}),
        ("1\n4 2\n", {4: 2}),
        ("1\n1 4 2\n", {4: 2}),
        ("1 1 4 2", {4: 2}),
        ("1 1 1", {1: 1}),
        ("1\n1 1 1", {1: 1}),
        ("1\n2 0 1 1 0", {0: 1, 1: 0}),
        ("2 1 0 2 1", {1: 0, 2: 1}),
        ("2\n1 0\n2 1\n", {1: 0, 2: 1}),
        ("2\n0\n1\n5\n1\n", {0: 1, 5: 1}),
        ("2 0 1 5 1", {0: 1, 5: 1}),
        ("c seen\n# 1\n2 1 0\r\n2 1", {1: 0, 2: 1}),
        ("2 1 0 1 0", {1: 0}),
    ],
)
def test_both_layouts_of_evidence(folder, content, expected):
    assert read_evidence(written(folder, content, "x.evid")) == expected
    assert (
        read_evidence(written(folder, gzip.compress(content.encode(), mtime=0), "y.evid"))
        == expected
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("2\n0\n1 5 1\n", "2 samples"),
        ("2\n1 3 1\n1 3 0\n", "2 samples"),
        ("2 1 0 2", "neither"),
        ("1", "neither"),
        ("1 2 3 4", "neither"),
        ("0 1 1", "neither"),
        ("2 1 0\n1 1", "variable 1 is in state 0 and in state 1"),
        ("1 0\n-1", "line 2: '-1'"),
        ("1 0 1.0", "line 1: '1.0'"),
        ("1 0 x", "line 1: 'x'"),
        (b"1 0 \xb2", "line 1: "),
        ("1 0 " + "9" * 5000, "line 1: '99999999999999999999...'"),
    ],
)
def test_wrong_evidence_is_refused(folder, content, words):
    path = written(folder, content, "wrong.evid")
    with pytest.raises(FormatError, match=words) as caught:
        read_evidence(path)
    assert str(path) in str(caught.value)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.integers(0, 50), st.integers(0, 9)))
def test_evidence_reads_back_from_both_layouts(folder, evidence):
    path = folder / "back.evid"
    write_evidence(evidence, path)
    assert read_evidence(path) == evidence
    old = f"1\n{path.read_text()}"
    assert read_evidence(written(folder, old, "old.evid")) == evidence
    assert read_evidence(written(folder, old.replace("\n", " "), "old.evid")) == evidence


def test_evidence_to_write_must_be_whole_numbers(folder):
    with pytest.raises(ArgumentError, match="variable='rain'"):
        write_evidence({"rain": 1}, folder / "no.evid")


@pytest.mark.parametrize("seed", range(8))
def test_model_with_evidence_is_the_conditional_model(folder, seed):
    rng = np.random.default_rng(seed)
    graph = naive.random_graph(rng, 5, 3, 3, "loopy", zeros=0.1)
    write_uai(graph, folder / "seen.uai")
    observed = rng.choice(5, seed % 6, replace=False)
    evidence = {int(v): int(rng.integers(graph.cards[v])) for v in observed}
    write_evidence(evidence, folder / "seen.evid")
    expected = naive.joint(graph)
    for labels in itertools.product(*map(range, graph.cards)):
        if any(labels[v] != state for v, state in evidence.items()):
            expected[labels] = -np.inf
    for given_as in (evidence, folder / "seen.evid"):
        found = read_uai(folder / "seen.uai", given_as)
        np.testing.assert_array_equal(found.cards, graph.cards)
        np.testing.assert_allclose(naive.joint(found), expected, rtol=0, atol=1e-10)


def test_evidence_that_does_not_fit_the_model_is_refused(folder):
    path = written(folder, EXAMPLE)
    for content in ("1 7 0", "1 0 2"):
        with pytest.raises(FormatError, match=r"far\.evid: .*variable"):
            read_uai(path, written(folder, content, "far.evid"))
    with pytest.raises(EvidenceError):
        read_uai(path, {0: 2})


def test_query_variables(folder):
    assert read_variables(written(folder, "3 5\n0 2\n", "x.query")) == [5, 0, 2]
    assert read_variables(written(folder, "0", "x.query")) == []
    for content, words in (
        ("", "empty"),
        ("2 1", "count of 2"),
        ("2 1 1", "twice"),
        ("1 a", "'a'"),
    ):
        with pytest.raises(FormatError, match=words):
            read_variables(written(folder, content, "x.query"))


# ---- the competition's own files ---------------------------------------------------------


@pytest.mark.data
def test_competition_models_read_as_they_are(data_folder):
    models = sorted((data_folder / "uai").glob("*/*.uai"), key=lambda p: p.stat().st_size)[:40]
    assert models
    for path in models[::3]:
        graph = read_uai(path)
        cards, scopes, tables = slowly(path)
        assert graph.cards.tolist() == cards
        assert [graph.scope(f).tolist() for f in range(graph.n_factors)] == scopes
        flat = np.concatenate([table.ravel() for table in tables])
        np.testing.assert_allclose(np.exp(graph.potentials), flat, rtol=1e-13)


@pytest.mark.data
def test_scores_of_proved_assignments(data_folder):
    from structlearn._src.files.uai_answer import read_answer

    index = json.loads((data_folder / "uai/index.json").read_text())
    checked = 0
    for name, entry in index.items():
        path = data_folder / "uai" / f"{name}.uai"
        answer = path.with_name(f"{path.name}.MAP")
        if "map_ln" not in entry or not answer.exists() or entry["bytes"] > 10**6:
            continue
        evidence = read_evidence(f"{path}.evid")
        assert len(evidence) == entry["evidence"]
        labels = read_answer(answer).assignment
        assert read_uai(path).score(labels) == pytest.approx(entry["map_ln"], abs=1e-6)
        assert read_uai(path, evidence).score(labels) == pytest.approx(entry["map_ln"], abs=1e-6)
        checked += 1
    assert checked > 10


def test_megabytes_of_comments_take_no_memory(tmp_path):
    path = tmp_path / "a.uai"
    path.write_bytes(b"c a comment\n" * 100_000 + b"MARKOV 1 2 1 1 0 2 1 1")
    tracemalloc.start()
    try:
        assert read_uai(path).n_variables == 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 * path.stat().st_size
