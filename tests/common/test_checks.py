"""Argument checks: what passes, what is refused, and that the argument is named."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.common import checks
from structlearn._src.common.checks import generator
from structlearn._src.common.errors import ArgumentError, GraphError, PotentialError


def test_one_of():
    assert checks.one_of("loss", "log", ("log", "hinge")) == "log"
    for given in ("hing", 3, None, ["log"]):
        with pytest.raises(ArgumentError, match="loss="):
            checks.one_of("loss", given, ("log", "hinge"))


@pytest.mark.parametrize("given", [0, 1, 0.5, np.float32(0.25), np.int8(1)])
def test_numbers_in_a_range(given):
    found = checks.number("alpha", given, low=0.0, high=1.0)
    assert type(found) is float
    assert found == given


@pytest.mark.parametrize(
    "given", [-0.1, 1.1, float("nan"), float("inf"), True, "1", None, 10**20, 10**400]
)
def test_numbers_outside_of_it(given):
    with pytest.raises(ArgumentError, match="alpha"):
        checks.number("alpha", given, low=0.0, high=1.0)


def test_arrays_of_numbers_are_copies():
    given = np.arange(3.0)
    found = checks.numbers("y", given)
    assert found is not given
    np.testing.assert_array_equal(found, given)
    for odd in ("x", ["a"], [[1.0], []], slice(1), 1j, 10**400, object()):
        with pytest.raises(ArgumentError, match="y="):
            checks.numbers("y", odd)


def test_open_ends_are_left_out():
    assert checks.number("C", 1e-300, low=0.0, open_low=True) > 0
    with pytest.raises(ArgumentError, match=r"C=0.*\(0, inf\)"):
        checks.number("C", 0, low=0.0, open_low=True, open_high=True)
    with pytest.raises(ArgumentError, match=r"C=inf"):
        checks.number("C", np.inf, low=0.0, open_high=True)
    assert checks.number("C", np.inf) == np.inf


@pytest.mark.parametrize("given", [np.float16(1), np.float32(0.3), np.float16(6e4)])
def test_short_floats_are_compared_as_plain_ones(given):
    assert checks.number("C", given, low=0.0, high=1e100) == given
    with pytest.raises(ArgumentError, match="C="):
        checks.number("C", given, low=0.0, high=1e-100)


def test_integers():
    assert checks.integer("k", np.int64(3)) == 3
    assert type(checks.integer("k", np.uint8(3), low=3)) is int
    for given in (2, 3.0, True, "3", None):
        with pytest.raises(ArgumentError, match=r"k=.*at least 3"):
            checks.integer("k", given, low=3)


def test_booleans():
    assert checks.boolean("tied", np.True_) is True
    assert checks.boolean("tied", False) is False
    for given in (0, 1, None, "yes"):
        with pytest.raises(ArgumentError, match="tied="):
            checks.boolean("tied", given)


def test_potentials_are_floats_and_minus_infinity_is_one():
    found = checks.potentials([[0, 1], [2, -np.inf]], "a table")
    assert found.dtype == np.float64
    assert found.flags.c_contiguous
    assert found[1, 1] == -np.inf


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[0.0, np.nan]], r"NaN at \(0, 1\)"),
        ([0.0, np.inf], r"\+inf at \(1,\)"),
        ([np.inf, np.nan], "NaN"),
        (["a"], "not an array of numbers"),
        ([[1.0], [1.0, 2.0]], "not an array of numbers"),
        ([1j], "not an array of numbers"),
    ],
)
def test_potentials_that_are_none(values, words):
    with pytest.raises(PotentialError, match=f"a table.*{words}"):
        checks.potentials(values, "a table")


def test_indices():
    assert checks.indices("edges", [[0, 1]], 2).shape == (1, 2)
    assert checks.indices("edges", [], 2).shape == (0, 2)
    assert checks.indices("scopes", np.zeros((2, 5), np.uint8), 0).dtype == np.int64
    assert checks.indices("order", (3, 1)).tolist() == [3, 1]
    for given, width in [
        ([0.5], None),
        ([[0, 1, 2]], 2),
        ([0, 1], 2),
        ([[0]], None),
        (["a"], None),
    ]:
        with pytest.raises(GraphError, match="edges"):
            checks.indices("edges", given, width)


# ---- seeds -------------------------------------------------------------------------------


def test_an_integer_repeats_and_a_generator_is_used():
    assert generator(3).random() == generator(np.int64(3)).random()
    assert generator(3).random() != generator(4).random()
    rng = np.random.default_rng(0)
    assert generator(rng) is rng


def test_none_is_fresh():
    assert generator(None).random() != generator(None).random()


def test_an_older_generator_gives_the_seed():
    old = np.random.RandomState(5)
    again = np.random.RandomState(5)
    assert generator(old).random() == generator(again).random()
    assert generator(old).random() != generator(again.__class__(5)).random()


@pytest.mark.parametrize("given", [-1, 0.5, "seed", True, [1]])
def test_others_are_refused(given):
    with pytest.raises(ArgumentError, match="random_state="):
        generator(given)
