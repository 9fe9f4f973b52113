"""A program over atoms: what was given, how large it gets, and what cannot hold."""

import math

import numpy as np
import pytest

from structlearn._src.common.errors import (
    ArgumentError,
    BrokenRuleWarning,
    InfeasibleError,
    RepeatedRuleWarning,
    RuleError,
    SilentRuleWarning,
    UnreachedAtomWarning,
)
from structlearn._src.field.admm import solve_map
from structlearn._src.rules.ground_program import (
    GroundProgram,
    find_rules,
    read_weighted_rules,
    rule_name,
    weights_of,
    with_weights,
)
from structlearn._src.rules.parse import parse, parse_rule, predicates_of
from structlearn._src.rules.program import Declaration, ProgramFile
from structlearn._src.rules.syntax import Predicate

# ---- rules with weights

TEXTS = ["2: P(A) -> Q(A) ^2", "Q(A) <= 0.5 .", "0.5: !Q(A)"]


def texts(program):
    return list(map(str, program))


def test_weights_are_those_of_the_text_until_they_are_set():
    rules = read_weighted_rules(TEXTS)
    assert texts(rules) == TEXTS
    assert weights_of(rules).tolist() == [2.0, math.inf, 0.5]
    changed = with_weights(rules, {2: 4.0})
    assert [rule.weight for rule in changed] == [2.0, None, 4.0]
    assert changed[2].text == str(changed[2]) == "4: !Q(A)"
    assert changed[:2] == rules[:2]
    assert changed[0].text == TEXTS[0]  # as it was written


def test_one_text_and_a_list_are_the_same_program():
    assert read_weighted_rules("\n".join(TEXTS)) == read_weighted_rules(TEXTS)
    read = [parse_rule(TEXTS[0]), *TEXTS[1:]]
    assert read_weighted_rules(read) == read_weighted_rules(TEXTS)


def test_predicates_are_spelled_as_first_written():
    rules = read_weighted_rules("1: Knows(A, B) -> likes(A)\n1: KNOWS(A, B) -> Likes(B)")
    assert predicates_of(rules) == [Predicate("Knows", 2), Predicate("likes", 1)]
    assert str(rules[1]) == "1: Knows(A, B) -> likes(B)"


def test_rules_are_found_by_number_and_by_text_with_any_weight():
    with pytest.warns(RepeatedRuleWarning, match="4 as 1"):
        rules = read_weighted_rules([*TEXTS, TEXTS[0]])
    assert find_rules(rules, 1) == [1]
    assert find_rules(rules, np.int64(2)) == [2]
    assert find_rules(rules, "7: P(A) -> Q(A) ^2") == [0, 3]
    with pytest.raises(ArgumentError, match="there is no rule"):
        find_rules(rules, "P(A) -> Q(A) .")  # hard, which is another rule
    with pytest.raises(ArgumentError, match="there is no rule 4"):
        find_rules(rules, 4)


@pytest.mark.parametrize(
    "other",
    ["3: P(A) -> q(A) ^2", "1: !Q(A) -> !P(A) ^2", "1: Q(A) | !P(A) ^2", "1: !!P(A) -> Q(A) ^2"],
)
def test_repeated_rules_are_told_and_count(other):
    with pytest.warns(RepeatedRuleWarning, match=r"of 3 rules .* \(3 as 1\)"):
        rules = read_weighted_rules(["1: P(A) -> Q(A) ^2", "1: P(A) -> !Q(A) ^2", other])
    assert len(rules) == 3
    with pytest.warns(RepeatedRuleWarning, match="2 as 1"):
        read_weighted_rules("2: Q(A) + P(A) <= 1\n3: Q(A) + 1.0 * P(A) - 1 <= 0")


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
    assert len(read_weighted_rules([first, second])) == 2
    assert not recwarn.list


@pytest.mark.parametrize("weights", [[1.0, 2.0], [1.0, 1.0, 1.0], {0: -1.0}, {0: "x"}, {5: 1.0}])
def test_weights_that_rules_cannot_have_are_refused(weights):
    with pytest.raises(ArgumentError):
        with_weights(read_weighted_rules(TEXTS), weights)


@pytest.mark.parametrize("text", ["-1: P(A) -> Q(A)", "1e200: P(A) -> Q(A)"])
def test_weights_in_the_text_are_checked_too(text):
    with pytest.raises(ArgumentError, match="weight"):
        read_weighted_rules(text)


def test_names_tell_number_line_and_text():
    name = rule_name(read_weighted_rules("1: P(A) -> Q(A)\n\n1: Q(A) -> P(A)"), 1)
    assert all(part in name for part in ("rule 2", "line 3", "1: Q(A) -> P(A)"))


@pytest.mark.parametrize(
    ("rules", "error"), [("", RuleError), ([], RuleError), (3, ArgumentError), ([3], ArgumentError)]
)
def test_what_is_no_program_is_refused(rules, error):
    with pytest.raises(error):
        read_weighted_rules(rules)


# ---- over atoms


def program(rules="20: Knows(A, B) & Likes(A) -> Likes(B) ^2\n5: !Likes(A) ^2"):
    return GroundProgram(read_weighted_rules(rules))


def chain():
    made = program()
    made.add("observe", {"Knows": [("ann", "bob"), ("bob", "cyd")]})
    made.add("observe", None, {"Likes": [("ann", 0.9)]})
    made.add("target", {"Likes": {"who": ["bob", "cyd"]}})
    return made


def test_the_grounding_is_made_once_for_the_same_atoms():
    made = chain()
    first = made.grounding
    assert made.grounding is first
    made.add("truth", {"Likes": [("bob", 1.0)]})
    assert made.grounding is first  # truth is in no form
    made.add("target", {"Likes": [("dan",)]})
    assert made.grounding is not first
    assert made.grounding.hinges.n_variables == 3


def test_sizes_are_those_of_the_grounding():
    made = chain()
    assert [size.groundings for size in made.sizes()] == made.grounding.counts.tolist() == [2, 2]
    assert [size.rule for size in made.sizes()] == list(map(str, made.rules))


def test_broken_groundings_are_counted_where_asked():
    made = program("P(A) -> Q(A) .\n1: !Q(A)")
    made.add("observe", {"P": [("a",), ("b",)], "Q": [("a", 0.0)]})
    made.add("target", {"Q": [("b",)]})
    assert [size.broken for size in made.sizes(count_broken=True)] == [1, 0]
    assert [size.broken for size in made.sizes()] == [0, 0]
    told = r"break rule 1 \(line 1\), 'P\(A\) -> Q\(A\) \.', 1 times"
    with pytest.warns(BrokenRuleWarning, match=told):
        assert made.grounding.counts.tolist() == [1, 1]


def test_rules_of_a_split_that_the_model_lacks_are_told():
    base, own = parse("1: !Q(A)"), parse("2: Q(A) >= 0.5")
    declared = Declaration(Predicate("Q", 1, True), data={("targets", "all"): ((("a",),),)})
    files = ProgramFile(base, (declared,), more={"infer": own})
    with pytest.warns(SilentRuleWarning, match="rules for infer alone"):
        program("1: !Q(A)").read(files, "infer")
    program("1: !Q(A)").read(files, "learn")
    whole = GroundProgram(files.rules_for("infer"))
    whole.read(files, "infer")
    assert whole.grounding.counts.tolist() == [1, 1]


def test_new_weights_reach_the_grounding():
    made = chain()
    hinges = made.grounding.hinges
    assert made.grounding.weights.tolist() == [20.0, 5.0]
    made.reweigh(with_weights(made.rules, [1.0, 2.0]))
    assert made.grounding.weights.tolist() == [1.0, 2.0]
    assert made.grounding.rules[1].text == "2: !Likes(A) ^2"
    assert made.grounding.hinges is hinges


def test_targets_have_the_columns_of_their_frame():
    made = chain()
    atoms, columns = made.targets("Likes")
    assert atoms.tolist() == [0, 1]
    assert {name: column.tolist() for name, column in columns.items()} == {"who": ["bob", "cyd"]}
    rows = program()
    rows.add("target", {"Knows": [("x", "y")]})
    assert list(rows.targets("Knows")[1]) == ["argument1", "argument2"]


def test_labels_of_one_predicate_hide_those_of_others():
    made = program("1: P(A) -> Q(A)")
    made.add("target", {"P": [("a",), ("b",)], "Q": [("a",), ("b",)]})
    made.add("truth", {"P": [("a", 1.0)], "Q": [("b", 0.25)]})
    np.testing.assert_array_equal(made.labels(), [1.0, np.nan, np.nan, 0.25])
    np.testing.assert_array_equal(made.labels("q"), [np.nan, np.nan, np.nan, 0.25])
    assert made.predicates_with_targets() == ["P", "Q"]
    assert made.predicates_with_targets("q") == ["Q"]


def test_what_is_latent_must_have_no_truth():
    made = chain()
    made.refuse_truth("likes")
    made.add("truth", {"Likes": [("cyd", 1.0)]})
    with pytest.raises(ArgumentError, match=r"Likes\('cyd'\)"):
        made.refuse_truth("likes")
    with pytest.raises(ArgumentError, match="Knows"):
        made.refuse_truth("Knows")


def test_splits_of_files_are_read_beside_what_is_for_all():
    data = {
        ("observations", "all"): ((("ann", 0.9),),),
        ("targets", "infer"): ((("bob",),),),
        ("targets", "learn"): ((("bob",), ("cyd",)),),
    }
    likes = Declaration(Predicate("Likes", 1, open=True), data=data)
    for split, n_free in (("infer", 1), ("learn", 2), ("all", 0)):
        made = program()
        made.read(ProgramFile((), (likes,)), split)
        assert (made.tables.n_free, made.tables.relation("Likes").n_observed) == (n_free, 1)


def test_warnings_name_rules_and_atoms():
    made = program("1: P(A) -> Q(A)\n1: R(A) -> Q(A)")
    made.add("observe", {"P": [("a",)]})
    made.add("target", {"Q": [(name,) for name in "abcdefgh"]})
    with (
        pytest.warns(SilentRuleWarning, match="rule 2"),
        pytest.warns(UnreachedAtomWarning, match=r"Q\('b'\).* and 2 more") as told,
    ):
        assert made.grounding.counts.tolist() == [1, 0]
    assert "Q('a')" not in str(told[0].message)


def test_silent_rules_are_named_in_one_sentence():
    made = program("1: P(A) -> Q(A)\n1: R(A) -> Q(A)\n1: !Q(A)")
    made.add("target", {"Q": [("a",)]})
    words = (
        "rule 1 (line 1), '1: P(A) -> Q(A)'; rule 2 (line 2), '1: R(A) -> Q(A)', have no "
        "groundings and no effect; no atoms were given for P, R"
    )
    with pytest.warns(SilentRuleWarning) as told:
        assert made.grounding.counts.tolist() == [0, 0, 1]
    assert str(told[0].message) == words


def test_contradictions_speak_of_rules():
    made = program("P(A) -> Q(A) .\nQ(A) <= 0.5 .\n1: !Q(A)")
    made.add("observe", {"P": [("a",)]})
    made.add("target", {"Q": [("a",)]})
    with (
        pytest.raises(InfeasibleError, match=r"Q\('a'\) -0.5 <= 0") as caught,
        made.contradictions_named(),
    ):
        solve_map(made.grounding.hinges, made.grounding.weights)
    assert len(caught.value.forms) == 2


def test_what_was_not_given_is_asked_for():
    made = program()
    with pytest.raises(ArgumentError, match="target"):
        made.need_targets()
    with pytest.raises(ArgumentError, match="observe"):
        made.add("observe", [("ann", "bob")])
    with pytest.raises(ArgumentError, match="memory"):
        GroundProgram(parse("1: P(A) -> Q(A)"), memory_limit="much")


def test_a_predicate_may_be_called_header():
    made = program("1: Header(A) -> Q(A)")
    made.add("observe", None, {}, header=[("a",)])
    made.add("target", None, {"Q": [("a",)]})
    assert made.grounding.counts.tolist() == [1]


def test_a_filter_must_not_ask_for_targets():
    made = program("1: Q(A) >= 0.5\n1: S(A, +B) <= 1 {B: Q(B)}")
    made.add("target", {"S": [("a", "b")], "Q": [("b",)]})
    for ask in (lambda: made.grounding, made.sizes):
        with pytest.raises(RuleError, match="a filter needs closed predicates") as caught:
            ask()
        assert (caught.value.line, caught.value.column) == (2, 22)
