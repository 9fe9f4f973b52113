"""Rules with sums: forms against sums by hand, and coefficients with counts."""

import numpy as np
import pytest

from structlearn._src.rules.ground import broken, ground
from structlearn._src.rules.parse import parse
from structlearn._src.rules.sums import has_sums
from structlearn._src.rules.tables import Tables


def tables(n_groups=2, n_members=3):
    """Every group has its members as targets, the first one observed; odd members are blue."""
    made = Tables({"In": 2, "Blue": 1, "Size": 1})
    names = [(g, m) for g in range(n_groups) for m in range(n_members)]
    made.observe("In", [(g, 0, 0.25) for g in range(n_groups)])
    made.target("In", [(g, m) for g, m in names if m])
    made.observe("Blue", [(m,) for m in range(n_members) if m % 2])
    made.observe("Size", [(g, 0.5) for g in range(n_groups)])
    return made


def forms(text, made):
    """Dense coefficients, constants and kinds."""
    hinges = ground(parse(text), made).hinges
    matrix = np.zeros((hinges.n_forms, hinges.n_variables))
    owners = np.repeat(np.arange(hinges.n_forms), np.diff(hinges.offsets))
    matrix[owners, hinges.variables] = hinges.coefficients
    return matrix, hinges.constants


def test_a_sum_runs_over_all_that_is_listed():
    matrix, constants = forms("In(G, +M) <= 1 .", tables())
    np.testing.assert_array_equal(matrix, [[1, 1, 0, 0], [0, 0, 1, 1]])
    np.testing.assert_array_equal(constants, [-0.75, -0.75])  # the observed member counts


def test_a_filter_says_over_which():
    matrix, constants = forms("In(G, +M) <= 0.5 . {M: Blue(M)}", tables())
    np.testing.assert_array_equal(matrix, [[1, 0, 0, 0], [0, 0, 1, 0]])
    np.testing.assert_array_equal(constants, [-0.5, -0.5])
    matrix, _ = forms("In(G, +M) <= 0.5 . {M: !Blue(M)}", tables())
    np.testing.assert_array_equal(matrix, [[0, 1, 0, 0], [0, 0, 0, 1]])


@pytest.mark.parametrize(
    ("coefficient", "value"),
    [("1 / |M|", 1 / 3), ("|M|", 3.0), ("@Max[|M|, 5]", 5.0), ("@Min[|M|, 2]", 2.0),
     ("(|M| - 1) / 2", 1.0)],
)  # fmt: skip
def test_counts_are_numbers_of_members(coefficient, value):
    matrix, constants = forms(f"{coefficient} * In(G, +M) = Size(G) .", tables())
    np.testing.assert_allclose(matrix, value * np.array([[1, 1, 0, 0], [0, 0, 1, 1]]))
    np.testing.assert_allclose(constants, value * 0.25 - 0.5)


def test_a_weighted_equation_is_two_hinges():
    matrix, constants = forms("1: In(G, +M) = 1", tables(n_groups=1))
    np.testing.assert_array_equal(matrix, [[1, 1], [-1, -1]])
    np.testing.assert_array_equal(constants, [-0.75, 0.75])


def test_two_sums_in_one_rule():
    made = tables()
    matrix, constants = forms("1: In(+G, +M) <= 2", made)
    np.testing.assert_array_equal(matrix, [[1, 1, 1, 1]])
    np.testing.assert_array_equal(constants, [-1.5])


def test_sums_that_observed_values_alone_break_are_counted():
    made = Tables({"In": 2, "Other": 1})
    made.observe("In", [("g", "a", 0.9), ("g", "b", 0.9), ("h", "a", 0.5)])
    made.target("Other", [("x",)])
    rules = parse("In(G, +M) <= 1 .\nIn(G, +M) >= 1 .\nIn(G, +M) = 0.5 .\n1: In(G, +M) <= 0")
    assert broken(rules, made) == [1, 1, 1, 0]


def test_which_rules_have_sums():
    summed, plain = parse("1: In(G, +M) <= 1\n1: In(G, M) <= 1")
    assert has_sums(summed.body)
    assert not has_sums(plain.body)
