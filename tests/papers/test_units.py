"""Units on disk: what is kept, what is found again, and what counts as another unit."""

from __future__ import annotations

import dataclasses
import json
import math
import warnings

import numpy as np
import pytest
from papers_toys import EXPERIMENTS

from papers.base import Unit
from papers.units import Store, plain
from structlearn.errors import ArgumentError

TOY = EXPERIMENTS["toy"]
GIVEN = {"seed": [3, 1], "pause": 0.0}


def test_numbers_become_plain_and_short():
    found = plain({"a": np.array([1 / 3, np.nan]), 2: (np.int64(4), True, None, "x", math.inf)})
    assert found == {"a": [0.333333, None], "2": [4, True, None, "x", None]}
    assert json.loads(json.dumps(found)) == found


def test_what_was_done_is_found_again_as_it_was(tmp_path):
    store = Store(tmp_path)
    assert store.find(TOY, GIVEN) is None
    done = store.do(TOY, GIVEN)
    assert done.found == {"value": 3.33333}
    assert store.find(TOY, GIVEN) == done
    assert isinstance(done, Unit)


def test_other_settings_and_other_versions_are_other_units(tmp_path):
    store = Store(tmp_path)
    store.do(TOY, GIVEN)
    assert store.find(TOY, GIVEN | {"seed": [3, 2]}) is None
    assert store.find(dataclasses.replace(TOY, version=2), GIVEN) is None
    assert store.find(dataclasses.replace(TOY, name="other"), GIVEN) is None
    assert store.find(TOY, dict(reversed(GIVEN.items()))) is not None


def test_nothing_is_left_of_a_unit_that_failed(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(ValueError, match="pause"):
        store.do(TOY, GIVEN | {"pause": -1.0})
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("damaged", [b"", b'{"given": {', b"[]", b'{"other": 1}'])
def test_a_damaged_file_is_named(tmp_path, damaged):
    store = Store(tmp_path)
    store.do(TOY, GIVEN)
    path = store.path(TOY, GIVEN)
    path.write_bytes(damaged)
    with pytest.raises(ArgumentError, match=f"{path.name} is damaged"):
        store.find(TOY, GIVEN)


def test_warnings_are_noted(tmp_path):
    def work(seed, pause):
        warnings.warn("careful", RuntimeWarning, stacklevel=1)
        warnings.warn("again", RuntimeWarning, stacklevel=1)
        return {}

    toy = dataclasses.replace(TOY, work=work)
    store = Store(tmp_path)
    assert store.do(toy, GIVEN).warned == ["RuntimeWarning"]
    assert store.find(toy, GIVEN).warned == ["RuntimeWarning"]
