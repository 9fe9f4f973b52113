"""Values as trees and arrays: there and back, by listed kinds alone."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError, FormatError
from structlearn._src.files.codec import Codec, CodecTable, path_of


@dataclass(frozen=True)
class Point:
    x: float
    y: float = 0.0
    n_jobs: int | None = None
    norm: float = field(init=False, default=0.0)


class Spoken:
    """Speaks for itself."""

    def __init__(self, words):
        self.words = words

    def state(self):
        return {"text": np.frombuffer(self.words.encode(), np.uint8)}

    @classmethod
    def from_state(cls, state):
        return cls(bytes(state["text"]).decode())


class Unlisted:
    pass


POINT = Codec(path_of(Point), {"y": "height"}, left_out=frozenset({"n_jobs"}))
CODECS = {"point": POINT, "spoken": Codec(path_of(Spoken))}


def there_and_back(value):
    arrays = {}
    tree = json.loads(json.dumps(CodecTable(CODECS).encode(value, "here", arrays)))
    return CodecTable(CODECS).decode(tree, arrays)


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, -0.25, "text", [], [1, [2, "x"]], (1, (2,)), {1, 2}, frozenset({"a"}),
        {"a": 1, "b": {"c": (None,)}}, {1: "a", (2, 3): "b"}, {},
    ],
    ids=repr,
)  # fmt: skip
def test_plain_values(value):
    found = there_and_back(value)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.array([True, False]),
        np.array(3, np.uint8),
        np.array(["a", "longer"]),
        np.array(["a", 1, None, (2, 3)], object),
    ],
    ids=lambda array: array.dtype.name,
)
def test_arrays(array):
    found = there_and_back({"nested": [array]})["nested"][0]
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_scalars_of_numpy_become_plain():
    assert type(there_and_back(np.float64(0.5))) is float
    assert type(there_and_back(np.int64(3))) is int
    assert type(there_and_back(np.str_("a"))) is str


def test_arrays_are_named_by_their_place():
    arrays = {}
    CodecTable({}).encode({"a": [np.ones(1), {"b": np.zeros(2)}]}, "root", arrays)
    assert sorted(arrays) == ["root.a.0", "root.a.1.b"]


def test_equal_sets_make_equal_trees():
    one, two = ({"c", "a", "b"}, {"b", "c", "a"})
    assert CodecTable({}).encode(one, "", {}) == CodecTable({}).encode(two, "", {})


# ---- records -----------------------------------------------------------------------------


def test_fields_have_their_names_in_files():
    tree = CodecTable(CODECS).encode(Point(1.0, 2.0, n_jobs=3), "here", {})
    assert tree == {"kind": "point", "parts": {"x": 1.0, "height": 2.0}}
    assert there_and_back(Point(1.0, 2.0, n_jobs=3)) == Point(1.0, 2.0)


def test_classes_that_speak_for_themselves():
    assert there_and_back([Spoken("grüß")])[0].words == "grüß"


def test_parts_and_build_stand_in():
    codec = Codec(
        path_of(Point),
        parts=lambda point: {"sum": point.x + point.y},
        build=lambda of, parts: of(parts["sum"]),
    )
    table = CodecTable({"sum": codec})
    assert table.decode(table.encode(Point(1.0, 2.0), "", {}), {}) == Point(3.0)


def test_further_codecs_are_asked_for_when_needed():
    asked = []

    def more():
        asked.append(True)
        return CODECS

    table = CodecTable({}, more)
    tree = table.encode([1.0, "a"], "", {})
    assert table.decode(tree, {}) == [1.0, "a"]
    assert not asked
    tree = table.encode(Point(1.0), "", {})
    assert CodecTable({}, more).decode(tree, {}) == Point(1.0)
    assert len(asked) == 2


# ---- what is refused ---------------------------------------------------------------------


def test_what_no_codec_knows_is_named_by_its_place():
    with pytest.raises(ArgumentError, match=r"here\.a\.1 is .*Unlisted"):
        CodecTable(CODECS).encode({"a": [1, Unlisted()]}, "here", {})


def test_subclasses_are_other_classes():
    class Sub(Point):
        pass

    for value in (Sub(1.0), type("Other", (dict,), {})(a=1)):
        with pytest.raises(ArgumentError, match="cannot be saved"):
            CodecTable(CODECS).encode(value, "here", {})


@pytest.mark.parametrize("kind", ["os:system", path_of(Point), "builtins:eval", ""])
def test_a_path_is_no_kind(kind):
    with pytest.raises(FormatError, match="kind"):
        CodecTable(CODECS).decode({"kind": kind, "parts": {"x": 1.0}}, {})


@pytest.mark.parametrize("name", ["n_jobs", "norm", "y", "__class__", "other"])
def test_fields_that_a_file_may_not_set(name):
    tree = {"kind": "point", "parts": {"x": 1.0, name: 1.0}}
    with pytest.raises(FormatError, match=repr(name)):
        CodecTable(CODECS).decode(tree, {})


@pytest.mark.parametrize(
    "tree",
    [[1], {"parts": {}}, {"kind": "point"}, {"kind": "array", "at": "x"}, {"kind": ["point"]}],
    ids=repr,
)
def test_trees_that_are_none(tree):
    with pytest.raises((FormatError, KeyError, TypeError)):
        CodecTable(CODECS).decode(tree, {})
