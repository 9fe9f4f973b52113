"""Facts from files are checked before compiled code trusts them."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.common.errors import FormatError
from structlearn._src.files import file_checks


def test_floats_are_returned_as_they_are():
    given = np.array([[0.0, 1.5]])
    assert file_checks.floats("numbers", given, (1, 2), least=0.0) is given
    assert file_checks.floats("numbers", given + 1.0, (1, 2), above=0.0).sum() == 3.5
    file_checks.floats("numbers", np.empty((0, 2)), (0, 2), above=0.0)


@pytest.mark.parametrize(
    ("given", "bounds"),
    [
        ([1.0, 2.0], {}),
        (np.ones(2, np.float32), {}),
        (np.ones(2, np.int64), {}),
        (np.ones((2, 1)), {}),
        (np.ones(3), {}),
        (np.array([1.0, np.nan]), {}),
        (np.array([1.0, -np.inf]), {}),
        (np.array([1.0, 0.0]), {"above": 0.0}),
        (np.array([1.0, -1e-300]), {"least": 0.0}),
        (None, {}),
    ],
    ids=repr,
)
def test_floats_that_do_not_fit(given, bounds):
    with pytest.raises(FormatError, match="numbers"):
        file_checks.floats("numbers", given, (2,), **bounds)


def test_offsets_that_fit():
    file_checks.offsets("blocks", np.array([0, 2, 2, 5]), 5)
    file_checks.offsets("blocks", np.array([0]), 0)


@pytest.mark.parametrize(
    "given",
    [[1, 5], [0, 4], [0, 6, 5], [0, -1, 5], [[0, 5]], []],
    ids=repr,
)
def test_offsets_that_do_not_fit(given):
    with pytest.raises(FormatError, match="blocks"):
        file_checks.offsets("blocks", np.array(given, np.int64), 5)


def test_offsets_of_another_type():
    with pytest.raises(FormatError, match="blocks"):
        file_checks.offsets("blocks", np.array([0, 5], np.int32), 5)


def test_ranges():
    file_checks.within("a label", np.array([0, 2, -1]), -1, 3)
    file_checks.within("a label", np.empty(0, np.int64), 0, 0)
    for given in ([3], [-2], [0, 3]):
        with pytest.raises(FormatError, match="a label"):
            file_checks.within("a label", np.array(given), -1, 3)
