"""Frames of the user's liking."""

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.frames import column_names, make_frame

COLUMNS = {"who": np.array(["ann", "bob"], object), "value": np.array([0.25, 1.0])}


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_columns_come_back_as_they_were(kind):
    library = pytest.importorskip(kind)
    frame = make_frame(COLUMNS, kind)
    assert isinstance(frame, library.DataFrame)
    assert list(frame.columns) == ["who", "value"]
    assert frame["who"].to_list() == ["ann", "bob"]
    assert frame["value"].to_list() == [0.25, 1.0]
    assert column_names(frame, 1) == ["who"]


def test_a_dict_is_the_columns_themselves():
    assert make_frame(COLUMNS, "dict") is COLUMNS
    with pytest.raises(ArgumentError, match="frame"):
        make_frame(COLUMNS, "excel")


@pytest.mark.parametrize(
    ("data", "n", "names"),
    [
        ({"a": [1], "b": [2]}, 2, ["a", "b"]),
        ({"a": [1], "b": [2]}, 1, ["a"]),
        ({"a": [1]}, 2, None),  # too few
        ({"value": [1], "b": [2]}, 2, None),  # would clash with the column of values
        ([("x", "y")], 2, None),
        ("some_table", 1, None),
    ],
)
def test_names_of_columns(data, n, names):
    assert column_names(data, n) == names
