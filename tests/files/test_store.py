"""Files of arrays and facts."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from structlearn._src.common.errors import ArgumentError, FormatError
from structlearn._src.files import store

SCHEMA = "structlearn.test/2"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


def arrays():
    rng = np.random.default_rng(0)
    return {
        "weights": rng.normal(size=7),
        "strided": np.arange(24.0).reshape(4, 6)[::2, ::-3],
        "column_major": np.asfortranarray(rng.normal(size=(3, 4))),
        "scalar": np.float64(3.5) * np.ones(()),
        "none": np.zeros((0, 3), np.int64),
        "whole": np.array([-1, 2**62]),
        "truth": np.array([True, False]),
        "small": np.arange(3, dtype=np.int32),
    }


def test_what_goes_in_comes_out(path):
    meta = {"a": [1, None, "x"], "big": 2**100, "tiny": 5e-324, "nan": float("nan")}
    store.write(path, arrays(), meta, SCHEMA)
    found, facts = store.read(path, SCHEMA)
    assert found.keys() == arrays().keys()
    for name, array in arrays().items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array, strict=True)
        assert found[name].flags.writeable
        assert found[name].flags.c_contiguous
    assert np.isnan(facts.pop("nan"))
    del meta["nan"]
    assert facts == meta | {"schema": SCHEMA}


def test_safetensors_itself_reads_every_type(path):
    types = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", ">f8", ">i4"]
    given = {name: np.array([[1, 0, 1]]).astype(name) for name in types}
    store.write(path, given, {}, SCHEMA)
    found = load_file(path)
    for name, array in given.items():
        assert found[name].dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found[name], array)
    with pytest.raises(ArgumentError, match="only numbers"):
        store.write(path, {"x": np.ones(2, np.longdouble)}, {}, SCHEMA)


def test_equal_contents_make_equal_files_that_others_may_read(path, tmp_path):
    other = tmp_path / "b.model"
    store.write(path, arrays(), {"a": 1}, SCHEMA)
    store.write(other, dict(reversed(arrays().items())), {"a": 1}, SCHEMA)
    assert path.read_bytes() == other.read_bytes()
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode


def test_facts_may_come_from_numpy(path):
    store.write(path, {}, {"n": np.int64(3), "x": np.array([0.5, 1])}, SCHEMA)
    assert store.read(path, SCHEMA) == ({}, {"n": 3, "x": [0.5, 1.0], "schema": SCHEMA})


def test_any_cut_is_found(path):
    store.write(path, arrays(), {"a": 1}, SCHEMA)
    whole = path.read_bytes()
    for length in [0, 4, 8, 20, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError, match=r"a\.model: .*cut short"):
            store.read(path, SCHEMA)


@pytest.mark.parametrize(
    "content", [pickle.dumps({"a": 1}), b"{}" * 100, b"\x00" * 64, b"PK\x03\x04" + b"x" * 99]
)
def test_foreign_files_are_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(FormatError, match="not written by structlearn"):
        store.read(path, SCHEMA)


def test_safetensors_of_others_are_refused(path):
    save_file({"w": np.ones(3)}, path)
    with pytest.raises(FormatError, match="not written by structlearn"):
        store.read(path, SCHEMA)
    save_file({"w": np.ones(3)}, path, metadata={"schema": "structlearn.test/x", "meta": "{}"})
    with pytest.raises(FormatError, match=r"is of kind 'structlearn.test/x'"):
        store.read(path, SCHEMA)


@pytest.mark.parametrize(
    "meta", [None, "{", "[]", "3", '{"n": ' + "9" * 5000 + "}", '{"n": ' + "[" * 200_000]
)
def test_damaged_facts_are_refused(path, meta):
    facts = {"schema": SCHEMA} | ({} if meta is None else {"meta": meta})
    save_file({"w": np.ones(3)}, path, metadata=facts)
    with pytest.raises(FormatError, match="facts are damaged"):
        store.read(path, SCHEMA)


def test_kind_and_version(path):
    store.write(path, {}, {}, "structlearn.test/3")
    with pytest.raises(FormatError, match=r"newer structlearn.*upgrade"):
        store.read(path, SCHEMA)
    store.write(path, {}, {}, "structlearn.test/1")
    assert store.read(path, SCHEMA)[1] == {"schema": "structlearn.test/1"}
    with pytest.raises(FormatError, match=r"is of kind 'structlearn.test/1', but one of kind"):
        store.read(path, "structlearn.other/1")
    with pytest.raises(ArgumentError, match="a name and a version"):
        store.write(path, {}, {}, "test")


def test_a_failed_write_leaves_the_old_file(path):
    store.write(path, {"a": np.ones(2)}, {"n": 1}, SCHEMA)
    with pytest.raises(ArgumentError, match="'b' has the type object"):
        store.write(path, {"b": np.array([{}])}, {}, SCHEMA)
    with pytest.raises(TypeError, match="set cannot be written as JSON"):
        store.write(path, {}, {"n": {1}}, SCHEMA)
    assert store.read(path, SCHEMA)[1]["n"] == 1
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_missing_file_is_a_missing_file(path):
    with pytest.raises(FileNotFoundError):
        store.read(path, SCHEMA)


def test_the_header_is_plain_json(path):
    """Anybody can look inside without our code."""
    store.write(path, {"w": np.ones(3)}, {"n": 1}, SCHEMA)
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert json.loads(header["__metadata__"]["meta"]) == {"n": 1}
    assert header["w"]["shape"] == [3]


@pytest.mark.parametrize("zeros", [1, 64])
def test_any_other_byte_is_found(path, zeros):
    """Also in the padding, in the checksum itself, and in the names of facts."""
    store.write(path, {"w": np.arange(5.0), "b": np.array([True])}, {"n": "0" * zeros}, SCHEMA)
    whole = path.read_bytes()
    assert store.read(path, SCHEMA)[1]["n"] == "0" * zeros
    rng = np.random.default_rng(0)
    for place in range(len(whole)):
        altered = bytearray(whole)
        altered[place] ^= int(rng.integers(1, 256))
        path.write_bytes(altered)
        with pytest.raises(FormatError, match=r"a\.model"):
            store.read(path, SCHEMA)
    path.write_bytes(whole + b" ")
    with pytest.raises(FormatError, match=r"a\.model"):
        store.read(path, SCHEMA)


def test_files_from_before_there_were_checksums_are_read(path):
    save_file({"w": np.ones(3)}, path, metadata={"schema": SCHEMA, "meta": "{}"})
    assert store.read(path, SCHEMA)[0]["w"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("number", ["9" * 5000, "1" * 10, "\N{SUPERSCRIPT TWO}", "-1", "", "1.5"])
def test_versions_that_are_none_are_refused(path, number):
    save_file({"w": np.ones(3)}, path, metadata={"schema": f"structlearn.test/{number}"})
    with pytest.raises(FormatError, match="is of kind"):
        store.read(path, SCHEMA)


def test_types_that_nobody_here_writes_are_refused(path):
    """A complex array, and a header that nests too deeply."""
    save_file({"w": np.ones(3)}, path, metadata={"schema": SCHEMA, "meta": "{}"})
    path.write_bytes(path.read_bytes().replace(b"F64", b"F8 "))
    with pytest.raises(FormatError, match="not written by structlearn"):
        store.read(path, SCHEMA)
    deep = b"[" * 100_000
    path.write_bytes(len(deep).to_bytes(8, "little") + deep)
    with pytest.raises(FormatError, match="not written by structlearn"):
        store.read(path, SCHEMA)
