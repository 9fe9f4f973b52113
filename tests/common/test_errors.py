"""Messages: one test for the wording of each builder."""

from __future__ import annotations

import warnings

import pytest

from structlearn._src.common import errors


def test_errors_about_arguments_are_value_errors():
    every = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    ours = [kind for kind in every if issubclass(kind, errors.StructlearnError)]
    others = {errors.TooWideError, errors.DataNotFoundError, errors.PlaceError}
    others.add(errors.StructlearnError)
    assert all(issubclass(kind, ValueError) for kind in set(ours) - others)
    assert issubclass(errors.TooWideError, MemoryError)
    assert issubclass(errors.DataNotFoundError, FileNotFoundError)
    assert issubclass(errors.PlaceError, RuntimeError)


def test_choose_one_of():
    told = errors.choose_one_of("loss", "lof", ("log", "hinge"))
    assert told == "loss='lof' is not known; choose one of 'log', 'hinge'"


@pytest.mark.parametrize(
    ("given", "told"),
    [("TOL", "; did you mean 'tol'?"), ("tool", "; did you mean 'tol'?"), ("xyz", "")],
)
def test_did_you_mean(given, told):
    assert errors.did_you_mean(given, ["tol", "max_iter"]) == told


def test_too_wide_names_width_and_bytes():
    told = errors.too_wide(3, 1e9, 8e9, 2**25)
    assert "a table over 4 variables (induced width 3)" in told
    assert "1e+09 entries in the largest, 7.45 GiB in all" in told
    assert "max_table allows 3.36e+07 entries" in told
    assert "4 variables or more (induced width 3 or more)" in errors.too_wide(3, 1, 8, 1, True)


@pytest.mark.parametrize(
    ("size", "told"), [(8.0, "8 B"), (2048.0, "2 KiB"), (2.0**60, "1.02e+03 PiB")]
)
def test_bytes_have_units(size, told):
    assert f"{told} in all" in errors.too_wide(1, 1, size, 1)


def test_rule_errors_point_at_their_place():
    error = errors.RuleError("what is this", "a -> b\n\tc ?", line=2, column=4)
    assert str(error) == "what is this (line 2, column 4)\n  \tc ?\n  \t  ^"
    assert (error.reason, error.line, error.column) == ("what is this", 2, 4)
    assert str(errors.RuleError("alone")) == "alone"


@pytest.mark.parametrize("column", [1, 50, 150, 5000, 9996])
def test_of_a_long_line_the_part_around_the_place_is_shown(column):
    text = "".join(chr(ord("a") + i % 26) for i in range(9996))
    shown, caret = str(errors.RuleError("no", text, 1, column)).split("\n")[1:]
    assert len(shown) <= 202
    assert shown[caret.index("^")] == text[column - 1]


def test_infeasible_forms_are_kept():
    assert errors.InfeasibleError("they clash", [1, 4]).forms == [1, 4]


def test_warnings_point_at_the_caller():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        errors.warn("look", errors.SilentRuleWarning)
    assert told[0].filename == __file__
    assert told[0].category is errors.SilentRuleWarning
