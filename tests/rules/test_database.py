"""A database for several threads, in pickles, and in folders with odd names."""

from __future__ import annotations

import copy
import pickle
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from structlearn._src.rules.ground_program import GroundProgram
from structlearn._src.rules.tables import Tables
from structlearn._src.rules.weighted import WeightedRules

RULES = "2: Knows(A, B) & Likes(A) -> Likes(B) ^2\n1: !Likes(A)\nLikes(A) <= 0.9 ."


def program():
    made = GroundProgram(WeightedRules(RULES), n_jobs=1)
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


def test_a_predicate_may_be_called_header():
    made = GroundProgram(WeightedRules("1: Header(A) -> Q(A)"), n_jobs=1)
    made.add("observe", None, {}, header=[("a",)])
    made.add("target", None, {"Q": [("a",)]})
    assert made.grounding.counts.tolist() == [1]
