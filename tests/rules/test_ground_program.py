"""A program over atoms: what was given, how large it gets, and what cannot hold."""

import numpy as np
import pytest

from structlearn._src.common.errors import (
    ArgumentError,
    BrokenRuleWarning,
    InfeasibleError,
    SilentRuleWarning,
    UnreachedAtomWarning,
)
from structlearn._src.field.admm import solve_map
from structlearn._src.rules.ground_program import GroundProgram
from structlearn._src.rules.program import Declaration, ProgramFile
from structlearn._src.rules.syntax import Predicate
from structlearn._src.rules.weighted import WeightedRules


def program(rules="20: Knows(A, B) & Likes(A) -> Likes(B) ^2\n5: !Likes(A) ^2"):
    return GroundProgram(WeightedRules(rules))


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
    assert [size.rule for size in made.sizes()] == made.rules.texts


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
    base, own = WeightedRules("1: !Q(A)").program, WeightedRules("2: Q(A) >= 0.5").program
    declared = Declaration(Predicate("Q", 1, True), data={("targets", "all"): ((("a",),),)})
    files = ProgramFile(base, (declared,), more={"infer": own})
    with pytest.warns(SilentRuleWarning, match="rules for infer alone"):
        program("1: !Q(A)").read(files, "infer")
    program("1: !Q(A)").read(files, "learn")
    whole = GroundProgram(WeightedRules(files.rules_for("infer")))
    whole.read(files, "infer")
    assert whole.grounding.counts.tolist() == [1, 1]


def test_new_weights_reach_the_grounding():
    made = chain()
    hinges = made.grounding.hinges
    made.rules.weights = [1.0, 2.0]
    assert made.grounding.weights.tolist() == [20.0, 5.0]
    made.reweigh()
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
        "rule 1 (line 1), '1: P(A) -> Q(A)'; rule 2 (line 2), '1: R(A) -> Q(A)', ground to nothing "
        "and have no effect; no atoms were given for P, R"
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
        solve_map(made.grounding.hinges, made.rules.soft_weights)
    assert len(caught.value.forms) == 2


def test_what_was_not_given_is_asked_for():
    made = program()
    with pytest.raises(ArgumentError, match="target"):
        made.need_targets()
    with pytest.raises(ArgumentError, match="observe"):
        made.add("observe", [("ann", "bob")])
    with pytest.raises(ArgumentError, match="memory"):
        GroundProgram(WeightedRules("1: P(A) -> Q(A)"), memory="much")
