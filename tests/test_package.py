"""The package itself: every public name loads, and what parameters need is among them."""

from __future__ import annotations

import importlib

import pytest

import structlearn


@pytest.mark.parametrize("name", sorted(set(structlearn.__all__) - {"__version__"}))
def test_every_public_name_loads_from_its_home(name):
    home = importlib.import_module(structlearn._HOME[name])
    assert getattr(structlearn, name) is getattr(home, name)


def test_names_agree():
    assert {*structlearn._HOME, "__version__"} == set(structlearn.__all__) == set(dir(structlearn))
    assert {"Checkpoint", "parse_template", "read_columns"} <= set(structlearn.__all__)


def test_other_names_are_unknown():
    with pytest.raises(AttributeError, match="no attribute 'fly'"):
        _ = structlearn.fly
