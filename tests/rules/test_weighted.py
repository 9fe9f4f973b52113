"""Rules with weights: set and read by number, by text, or all at once."""

import math

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError, RepeatedRuleWarning, RuleError
from structlearn._src.rules.parse import parse_rule
from structlearn._src.rules.syntax import Predicate
from structlearn._src.rules.weighted import WeightedRules, reweighted, rule_name

TEXTS = ["2: P(A) -> Q(A) ^2", "Q(A) <= 0.5 .", "0.5: !Q(A)"]


def test_weights_are_those_of_the_text_until_they_are_set():
    rules = WeightedRules(TEXTS)
    assert len(rules) == 3
    assert rules.texts == TEXTS
    assert rules.weights.tolist() == [2.0, math.inf, 0.5]
    assert rules.soft_weights.tolist() == [2.0, 0.0, 0.5]
    rules.weights = {2: 4.0}
    assert [rule.weight for rule in rules.program] == [2.0, None, 4.0]
    assert rules.texts[2] == "4: !Q(A)"
    assert rules.program[0].text == TEXTS[0]  # as it was written


def test_one_text_and_a_list_are_the_same_program():
    assert WeightedRules("\n".join(TEXTS)).program == WeightedRules(TEXTS).program
    read = [parse_rule(TEXTS[0]), *TEXTS[1:]]
    assert WeightedRules(read).program == WeightedRules(TEXTS).program


def test_predicates_are_spelled_as_first_written():
    rules = WeightedRules("1: Knows(A, B) -> likes(A)\n1: KNOWS(A, B) -> Likes(B)")
    assert rules.predicates == [Predicate("Knows", 2), Predicate("likes", 1)]
    assert rules.texts[1] == "1: Knows(A, B) -> likes(B)"


def test_rules_are_found_by_number_and_by_text_with_any_weight():
    with pytest.warns(RepeatedRuleWarning, match="4 as 1"):
        rules = WeightedRules([*TEXTS, TEXTS[0]])
    assert rules.find(1) == [1]
    assert rules.find(np.int64(2)) == [2]
    assert rules.find("7: P(A) -> Q(A) ^2") == [0, 3]
    with pytest.raises(ArgumentError, match="there is no rule"):
        rules.find("P(A) -> Q(A) .")  # hard, which is another rule
    with pytest.raises(ArgumentError, match="there is no rule 4"):
        rules.find(4)


@pytest.mark.parametrize(
    "other",
    ["3: P(A) -> q(A) ^2", "1: !Q(A) -> !P(A) ^2", "1: Q(A) | !P(A) ^2", "1: !!P(A) -> Q(A) ^2"],
)
def test_repeated_rules_are_told_and_count(other):
    with pytest.warns(RepeatedRuleWarning, match=r"of 3 rules .* \(3 as 1\)"):
        rules = WeightedRules(["1: P(A) -> Q(A) ^2", "1: P(A) -> !Q(A) ^2", other])
    assert len(rules) == 3
    with pytest.warns(RepeatedRuleWarning, match="2 as 1"):
        WeightedRules("2: Q(A) + P(A) <= 1\n3: Q(A) + 1.0 * P(A) - 1 <= 0")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1: P(A) -> Q(A) ^2", "3: P(A) -> Q(A)"),
        ("1: P(A) -> Q(A) ^2", "P(A) -> Q(A) ."),
        ("P(A) -> Q(A) .", "1: P(A) -> Q(A)"),
        ("1: P(A) -> Q(A) ^2", "1: P(B) -> Q(B) ^2"),
        ("1: P(A) + Q(A) <= 1 ^2", "1: P(A) + Q(A) <= 1"),
        ("1: P(A) + Q(A) <= 1 ^2", "1: Q(A) + P(A) <= 1 ^2"),
    ],
)
def test_rules_that_count_in_psl_too_are_not_called_repeated(first, second, recwarn):
    """PSL 2.4.1 keeps both rules of these pairs."""
    assert len(WeightedRules([first, second])) == 2
    assert not recwarn.list


@pytest.mark.parametrize("weights", [[1.0, 2.0], [1.0, 1.0, 1.0], {0: -1.0}, {0: "x"}, {5: 1.0}])
def test_what_is_refused_changes_nothing(weights):
    rules = WeightedRules(TEXTS)
    with pytest.raises(ArgumentError):
        rules.weights = weights
    assert rules.texts == TEXTS


def test_a_hard_rule_has_no_other_weight():
    soft, hard = parse_rule(TEXTS[0]), parse_rule(TEXTS[1])
    assert reweighted(hard, 3.0) is hard
    assert reweighted(soft, 2.0) is soft
    assert reweighted(soft, 3.0).text == "3: P(A) -> Q(A) ^2"


def test_names_tell_number_line_and_text():
    program = WeightedRules("1: P(A) -> Q(A)\n\n1: Q(A) -> P(A)").program
    name = rule_name(program, 1)
    assert all(part in name for part in ("rule 2", "line 3", "1: Q(A) -> P(A)"))


@pytest.mark.parametrize(
    ("rules", "error"), [("", RuleError), ([], RuleError), (3, ArgumentError), ([3], ArgumentError)]
)
def test_what_is_no_program_is_refused(rules, error):
    with pytest.raises(error):
        WeightedRules(rules)
