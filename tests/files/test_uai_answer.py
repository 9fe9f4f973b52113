"""Answers in the text form of the UAI competitions."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structlearn._src.common.errors import ArgumentError, FormatError
from structlearn.uai import UaiAnswer, read_answer, write_answer


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("answer") / "answer"


def test_texts_follow_the_competition():
    assert UaiAnswer("PR", -math.log(10)).text() == "PR\n-1.0\n"
    assert UaiAnswer("PR", -math.inf).text() == "PR\n-inf\n"
    rows = [[0.1, 0.9], [0.2, 0.2, 0.6]]
    assert UaiAnswer("MAR", marginals=rows).text() == "MAR\n2 2 0.1 0.9 3 0.2 0.2 0.6\n"
    assert UaiAnswer("MAP", assignment=np.array([0, 1, 0])).text() == "MAP\n3 0 1 0\n"
    assert UaiAnswer("MMAP", assignment={6: 0, 3: 1}).text() == "MMAP\n2 6 0 3 1\n"


def test_mappings_are_put_in_the_order_of_variables():
    assert UaiAnswer("MAP", assignment={1: 5, 10: 7, 0: 6}).text() == "MAP\n3 6 5 7\n"
    assert UaiAnswer("MAP", assignment={"b": 1, "a": 0}).text() == "MAP\n2 1 0\n"
    rows = {1: [1.0], 0: [0.5, 0.5]}
    assert UaiAnswer("MAR", marginals=rows).text() == "MAR\n2 2 0.5 0.5 1 1.0\n"


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (UaiAnswer("PR", math.nan), "log_z"),
        (UaiAnswer("PR", "3"), "log_z"),
        (UaiAnswer("PR"), "log_z"),
        (UaiAnswer("MAR", 1.0), "marginals"),
        (UaiAnswer("MAP", assignment=[0, -1]), "state"),
        (UaiAnswer("MAP", assignment=[0.5]), "state"),
        (UaiAnswer("MAP"), "assignment"),
        (UaiAnswer("MMAP"), "assignment"),
        (UaiAnswer("MMAP", assignment={"rain": 1}), "variable"),
        (UaiAnswer("MPE", assignment=[0]), "task"),
    ],
)
def test_what_is_no_answer_is_refused(path, answer, named):
    path.write_text("old")
    with pytest.raises(ArgumentError, match=named):
        write_answer(answer, path)
    assert path.read_text() == "old"


@settings(deadline=None, max_examples=60)
@given(
    st.floats(-1e6, 1e6),
    st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=4), max_size=5),
    st.dictionaries(st.integers(0, 99), st.integers(0, 9)),
)
def test_answers_read_back(path, log_z, marginals, states):
    write_answer(UaiAnswer("PR", log_z), path)
    assert read_answer(path).log_z == pytest.approx(log_z, rel=1e-14)
    write_answer(UaiAnswer("MAR", marginals=marginals), path)
    assert [row.tolist() for row in read_answer(path).marginals] == marginals
    write_answer(UaiAnswer("MAP", assignment=list(states.values())), path)
    assert list(read_answer(path).assignment.values()) == list(states.values())
    write_answer(UaiAnswer("MMAP", assignment=states), path)
    assert read_answer(path).assignment == states


def test_last_of_several_counts_and_mpe_is_map(path):
    path.write_text("PR\n-1\n-BEGIN-\n-2\n-BEGIN-\n-3\n")
    assert read_answer(path).log_z == pytest.approx(-3 * math.log(10))
    path.write_text("MPE\n2 1 0\n")
    assert read_answer(path) == ("MAP", None, None, {0: 1, 1: 0})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "starts with"),
        (b"XYZ 1", "'XYZ'"),
        (b"\x00\xff\xfe", "starts with"),
        (b"PR", "0 numbers"),
        (b"PR 1 2", "2 numbers"),
        (b"PR x", "'x' is not a number"),
        (b"MAR", "0 numbers"),
        (b"MAR 2 2 0.5 0.5", "4 numbers"),
        (b"MAR 1 3 0.5 0.5", "4 numbers"),
        (b"MAR 1 1 1 1 1", "5 numbers"),
        (b"MAR 1 2 0.5 y", "'y' is not a number"),
        (b"MAP 2 1", "2 numbers"),
        (b"MAP 1 -1", "'-1' must be a whole number"),
        (b"MMAP 1 1", "2 numbers"),
        (b"MMAP 2 1 0 1 1", "state 0 and in state 1"),
    ],
)
def test_wrong_answers_are_refused(path, content, words):
    path.write_bytes(content)
    with pytest.raises(FormatError, match=words) as caught:
        read_answer(path)
    assert str(path) in str(caught.value)


@pytest.mark.data
def test_competition_answers(data_folder):
    index = json.loads((data_folder / "uai/index.json").read_text())
    kinds = set()
    for name, entry in index.items():
        for answer in (data_folder / "uai").glob(f"{name}.uai.*[PR]"):
            found = read_answer(answer)
            kinds.add(found.task)
            assert answer.suffix == f".{found.task}"
            if found.task == "PR":
                assert found.log_z / math.log(10) == pytest.approx(entry["log10Z_reference"])
            elif found.task == "MAR":
                assert len(found.marginals) == entry["n"]
                assert all(row.sum() == pytest.approx(1, abs=1e-5) for row in found.marginals)
            else:
                expected = entry["n"] if found.task == "MAP" else entry["query"]
                assert len(found.assignment) == expected
    assert kinds == {"PR", "MAR", "MAP", "MMAP"}
