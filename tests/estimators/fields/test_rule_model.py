"""RuleModel: from rules and tables to values, weights, explanations and files."""

from __future__ import annotations

import copy
import json
import math
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    mean_squared_error,
    roc_auc_score,
)

from structlearn import RuleModel
from structlearn._src.common.errors import (
    ArgumentError,
    AtomError,
    DataNotFoundError,
    FormatError,
    InfeasibleError,
    RuleError,
    SilentRuleWarning,
    UncertifiedWarning,
    UnreachedAtomWarning,
)
from structlearn._src.rules import ground_program
from structlearn._src.rules.program import read_program

CHAIN = """
    20: Knows(A, B) & Likes(A, X) -> Likes(B, X) ^2
    5: !Likes(A, X) ^2
"""
KNOWS = [("ann", "bob"), ("bob", "cyd")]
TARGETS = [("bob", "tea"), ("cyd", "tea")]


def chain(**parameters):
    """A model whose best values are 18/29 and 4/5 of that: the slopes add up to 0 there."""
    model = RuleModel(CHAIN, **parameters)
    return model.observe(Knows=KNOWS, Likes=[("ann", "tea", 0.9)]).target(Likes=TARGETS)


BOB, CYD = 18 / 29, 0.8 * 18 / 29

FRIENDS = """
    1: Friend(A, B) & Votes(A) -> Votes(B) ^2
    1: Signal(A) = Votes(A) ^2
    1: Noise(A) = Votes(A) ^2
    1: Group(A) -> Votes(A) ^2
    1: Votes(A) -> Group(A) ^2
    0.1: Group(A) = 0.5 ^2
"""


def friends(seed=0, n=24, latent=True, **parameters):
    """Two groups whose members vote alike; who is in which is latent, and noise misleads."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    near = np.where(group[:, None] == group, 0.3, 0.05)
    pairs = np.argwhere((rng.random((n, n)) < near) & ~np.eye(n, dtype=bool))
    signal = np.clip(0.1 + 0.8 * group + rng.normal(0.0, 0.3, n), 0.0, 1.0)
    model = RuleModel(FRIENDS, **parameters).observe(Friend=pairs.tolist())
    model.observe(Signal=list(zip(range(n), signal.tolist(), strict=True)))
    model.observe(Noise=list(zip(range(n), rng.random(n).tolist(), strict=True)))
    model.target(Votes=[(i,) for i in range(n)], Group=[(i,) for i in range(n)])
    truth = [(i, float(group[i])) for i in range(n)]
    if not latent:
        model.truth(Group=truth)
    return model.truth(Votes=truth)


# ---- best values -------------------------------------------------------------------------


def test_a_chain_by_hand():
    model = chain()
    found = model.predict(frame="dict")
    assert list(found) == ["argument1", "argument2", "value"]
    assert found["argument1"].tolist() == ["bob", "cyd"]
    np.testing.assert_allclose(found["value"], [BOB, CYD], atol=1e-4)
    energy = 20 * ((0.9 - BOB) ** 2 + (BOB - CYD) ** 2) + 5 * (BOB**2 + CYD**2)
    assert model.energy_ == pytest.approx(energy, rel=1e-5)
    assert model.lower_bound_ <= energy * (1 + 1e-12)
    assert model.gap_ == pytest.approx(model.energy_ - model.lower_bound_, abs=1e-12)
    assert model.violation_ == 0.0


def test_a_hard_sum_projects_onto_the_simplex():
    model = RuleModel(["1: Score(A, C) = Cat(A, C) ^2", "Cat(A, +C) = 1 ."])
    score = {("a", "x"): 0.9, ("a", "y"): 0.7, ("a", "z"): 0.1}
    model.observe(Score=[(*key, value) for key, value in score.items()]).target(Cat=list(score))
    np.testing.assert_allclose(
        model.predict("cat", frame="dict")["value"], [0.6, 0.4, 0.0], atol=1e-5
    )
    assert model.violation_ <= 1e-6


def test_linear_hinges_take_the_weighted_median():
    model = RuleModel(["1: P(A) = 0.1", "2: P(A) = 0.4", "4: P(A) = 0.9"]).target(P=[("a",)])
    np.testing.assert_allclose(model.predict(frame="dict")["value"], [0.9], atol=1e-6)
    model.weights_ = {2: 2.5}
    np.testing.assert_allclose(model.predict(frame="dict")["value"], [0.4], atol=1e-6)


def test_inference_goes_on_from_where_it_ended():
    model = chain()
    first = model.result_
    assert model.result_ is first
    model.weights_ = [20.0, 5.001]
    assert model.result_.iterations < first.iterations
    model.observe(Knows=[("cyd", "dan")]).target(Likes=[("dan", "tea")])
    assert model.predict(frame="dict")["value"].shape == (3,)
    assert model.result_.converged


def test_several_predicates_give_several_frames():
    found = friends().predict(frame="dict")
    assert set(found) == {"Votes", "Group"}
    assert len(found["Group"]["value"]) == 24


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_in_and_out(kind):
    library = pytest.importorskip(kind)
    targets = library.DataFrame({"who": ["bob", "cyd"], "what": ["tea", "tea"]})
    model = RuleModel(CHAIN).observe(Knows=KNOWS, Likes=[("ann", "tea", 0.9)]).target(Likes=targets)
    found = model.predict(frame=kind)
    assert isinstance(found, library.DataFrame)
    assert list(found.columns) == ["who", "what", "value"]
    assert found["who"].to_list() == ["bob", "cyd"]
    np.testing.assert_allclose(found["value"].to_numpy(), [BOB, CYD], atol=1e-4)
    assert type(model.predict()).__module__.startswith(("pandas", "polars"))


def test_a_lazy_frame_and_columns_by_name():
    polars = pytest.importorskip("polars")
    lazy = polars.DataFrame({"who": ["bob", "cyd"], "what": ["tea", "tea"]}).lazy()
    model = RuleModel(CHAIN).observe(Knows=KNOWS, Likes=[("ann", "tea", 0.9)]).target(Likes=lazy)
    found = model.predict(frame="dict")
    assert list(found) == ["who", "what", "value"]
    again = RuleModel("1: !Knows(A, B)\n1: Likes(A, X) -> Knows(A, X)").observe(Likes=found)
    again.target(Knows={"a": ["bob", "cyd"], "b": ["tea", "tea"]})
    assert again.tables.relation("Likes").n_observed == 2
    assert list(again.predict("Knows", frame="dict")) == ["a", "b", "value"]


def test_tables_of_arrow():
    arrow = pytest.importorskip("pyarrow")
    model = RuleModel(CHAIN).observe(Likes=arrow.table({"a": ["ann"], "b": ["tea"], "c": [0.9]}))
    model.observe(Knows=KNOWS).target(Likes=arrow.table({"who": ["bob", "cyd"], "x": ["tea"] * 2}))
    found = model.predict(frame="dict")
    assert list(found) == ["who", "x", "value"]
    np.testing.assert_allclose(found["value"], [BOB, CYD], atol=1e-4)


def test_names_do_not_depend_on_case():
    model = RuleModel(CHAIN).observe(knows=KNOWS, LIKES=[("ann", "tea", 0.9)])
    found = model.target({"likes": TARGETS}).predict("LiKes", frame="dict")
    np.testing.assert_allclose(found["value"], [BOB, CYD], atol=1e-4)


def test_pulls_on_an_inner_atom_add_up_to_nothing():
    model = chain()
    pulls = model.explain("Likes('bob', 'tea')")
    assert [pull.text[:2] for pull in pulls] == ["20", "5:", "20"]
    assert sum(pull.slope for pull in pulls) == pytest.approx(0.0, abs=1e-2)
    assert pulls[0].slope == pytest.approx(-40 * (0.9 - BOB), rel=1e-3)
    assert [str(p) for p in model.explain(("likes", "bob", "tea"))] == [str(p) for p in pulls]
    model.weights_ = {1: 6.0}
    assert model.explain("Likes(bob, tea)")[1].text.startswith("6: ")


def test_estimates_are_what_grounding_makes():
    model = friends()
    sizes = model.estimate()
    assert [size.groundings for size in sizes] == model.grounding_.counts.tolist()
    assert [size.rule for size in sizes] == model.rules_
    broken = RuleModel("P(A) -> Q(A) .").observe(P=[("a",), ("b",)])
    broken.observe(Q=[("a", 1.0), ("b", 0.0)]).target(Q=[("c",)])
    assert broken.estimate(broken=True)[0].broken == 1
    assert broken.estimate()[0].broken == 0


# ---- scores ------------------------------------------------------------------------------


def test_scores_are_those_of_scikit_learn():
    model = friends()
    values = model.predict("Votes", frame="dict")["value"]
    truth = np.arange(24) % 2
    wanted = {
        "auroc": roc_auc_score(truth, values),
        "aupr": average_precision_score(truth, values),
        "aupr_negative": average_precision_score(1 - truth, -values),
        "mse": mean_squared_error(truth, values),
        "accuracy": accuracy_score(truth, values >= 0.5),
        "f1": f1_score(truth, values >= 0.5),
    }
    found = {metric: model.score(metric=metric, predicate="votes") for metric in wanted}
    assert found == pytest.approx(wanted)
    assert model.score() == pytest.approx(wanted["auroc"])  # groups have no truth


# ---- learning ----------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["paired", "em", "subgradient"])
@pytest.mark.parametrize("latent", [True, False])
def test_learning_finds_the_rule_that_misleads(learner, latent):
    model = friends(latent=latent)
    before = model.score(predicate="Votes")
    model.fit(learner=learner, max_iter=5 if learner == "em" else 60, tol=None)
    assert model.value_ < 0.8 * model.history_.value[0]
    assert model.weights_[2] < 0.5 * model.weights_[1]
    assert model.score(predicate="Votes") > before
    assert (model.weights_ >= 0).all()


def test_learners_agree():
    values = {
        learner: friends().fit(learner=learner, max_iter=n, tol=None, average=0.2).value_
        for learner, n in (("paired", 400), ("em", 12), ("subgradient", 400))
    }
    assert max(values.values()) <= 1.05 * min(values.values())


def test_rules_may_keep_their_weights():
    texts = friends().rules_
    before = friends().weights_
    model = friends().fit(fixed=[1, texts[2]], max_iter=5, tol=None)
    assert (model.weights_ == before)[1:3].all()
    assert model.weights_[0] != before[0]
    one = friends().fit(fixed=texts[0], max_iter=5, tol=None)
    assert ((one.weights_ == before) == (np.arange(len(before)) == 0)).all()
    with pytest.raises(ArgumentError, match="no rule 17"):
        friends().fit(fixed=17)
    with pytest.raises(ArgumentError, match="no weight to learn"):
        friends().fit(fixed=range(len(before)))


def taste():
    """Who likes what, by how popular it is: milk is, tea is not."""
    model = RuleModel("1: Offered(P, X) -> Likes(P, X) ^2\n1: !Likes(P, X) ^2", n_jobs=1)
    pairs = [(i, x) for i in range(10) for x in ("milk", "tea")]
    truth = [(i, x, float((x == "milk") == (i < 8))) for i, x in pairs]
    return model.observe(Offered=pairs).target(Likes=pairs).truth(Likes=truth)


def test_one_rule_many_weights():
    model = taste().split("1: !Likes(P, X) ^2", "X")
    assert model.rules_[1:] == ["1: !Likes(P, 'milk') ^2", "1: !Likes(P, 'tea') ^2"]
    together = taste()
    np.testing.assert_allclose(model.predict(frame="dict")["value"], together.result_.y, atol=1e-5)
    model.fit(C=100.0, tol=None)
    together.fit(C=100.0, tol=None)
    assert model.weights_[1] < 0.5 * model.weights_[2]
    assert model.score(metric="mse") < 0.8 * together.score(metric="mse")
    np.testing.assert_allclose(
        model.predict(frame="dict")["value"], np.tile([0.8, 0.2], 10), atol=0.02
    )


def test_a_split_model_goes_on_with_more_atoms(tmp_path):
    model = taste().split(1, "X")
    more = [(10, "milk"), (10, "tea")]
    model.observe(Offered=more).target(Likes=more)
    assert len(model.predict(frame="dict")["value"]) == 22
    model.save(tmp_path / "rules")
    assert RuleModel.load(tmp_path / "rules").rules_ == model.rules_
    assert model.get_params()["rules"] == model.rules_


@pytest.mark.parametrize(
    ("rules", "rule", "by", "words"),
    [
        ("1: P(A) -> R(A)", 0, "B", "no variable 'B'"),
        ("1: P(A) -> R(A)", 3, "A", "no rule 3"),
        ("P(A) -> R(A) .", 0, "A", "is hard"),
        ("1: P(A) & Q(A) -> R(A)", 0, "A", "no constant"),  # Q has no atoms
        ("1: R(+A) <= 1", 0, "A", "no variable 'A'"),
    ],
)
def test_what_cannot_be_split(rules, rule, by, words):
    model = RuleModel([rules, "1: R(A) & P(A) -> Q(A)"]).observe(P=[(1,)]).target(R=[(1,)])
    with pytest.raises(ArgumentError, match=words):
        model.split(rule, by)


def test_latent_predicates_must_have_no_truth():
    assert friends().fit(latent=["group"], max_iter=2, tol=None).n_iter_ == 2
    with pytest.raises(ArgumentError, match=r"Group is latent, but Group\('0'\) has a truth"):
        friends(latent=False).fit(latent=["Group"])
    with pytest.raises(ArgumentError, match="Friend has no targets"):
        friends().fit(latent=["Friend"])


def test_truth_can_be_given_to_fit_and_score():
    model = chain()
    with pytest.raises(ArgumentError, match="no target has a truth to learn from"):
        model.fit()
    with pytest.raises(ArgumentError, match="no target has a truth to compare with"):
        model.score()
    model.fit({"Likes": [("bob", "tea", 1.0), ("cyd", "tea", 1.0)]}, max_iter=50, tol=None)
    assert model.weights_[1] < 5.0
    assert model.score({"Likes": [("bob", "tea", 1.0)]}, metric="mse") < 0.1


def test_callbacks_end_a_fit():
    seen = []
    model = friends().fit(callbacks=[lambda event: seen.append(event.value) or len(seen) == 3])
    assert (model.n_iter_, len(seen)) == (3, 3)
    assert "callback" in model.status_


# ---- weights -----------------------------------------------------------------------------


def test_weights_are_read_and_written_as_rules():
    model = RuleModel(["2: P(A) -> Q(A) ^2", "Q(A) <= 0.5 .", "0.5: !Q(A)"])
    assert model.weights_.tolist() == [2.0, math.inf, 0.5]
    model.weights_ = {"9: P(A) -> Q(A) ^2": 3, 2: 0.25}
    assert model.rules_ == ["3: P(A) -> Q(A) ^2", "Q(A) <= 0.5 .", "0.25: !Q(A)"]
    model.weights_ = [1, math.inf, 0]
    assert model.weights_.tolist() == [1.0, math.inf, 0.0]


def test_a_filter_with_a_disjunction_is_two_rules():
    text = "1: S(A, +B) <= 1 {B: P(B) | Q(B)}"
    model = RuleModel(text)
    model.weights_ = {text: 3.0}
    assert model.weights_.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0], "for 3 rules: give one for each"),
        ({7: 1.0}, "there is no rule 7"),
        ({"1: P(A) -> R(A)": 1.0}, "there is no rule '1: P"),
        ({0: -1.0}, r"rule 1 \(line 1\).* has the weight -1: .* at least 0"),
        ({1: 1.0}, r"rule 2 .* is hard"),
        ({0: math.inf}, "at least 0"),
        ({0: math.nan}, "at least 0"),
        ({0: "much"}, "weights='much' is not an array of numbers"),
        (["much", 1.0, 1.0], "weights=.* is not an array of numbers"),
    ],
)
def test_weights_that_cannot_be(weights, words):
    model = RuleModel(["2: P(A) -> Q(A) ^2", "Q(A) <= 0.5 .", "0.5: !Q(A)"])
    with pytest.raises(ArgumentError, match=words):
        model.weights_ = weights
    assert model.weights_.tolist() == [2.0, math.inf, 0.5]


# ---- what goes wrong ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "error", "words"),
    [
        ("1: P(A -> Q(A)", RuleError, r"line 1, column"),
        ("1: P(A) -> Q(A)\n1: P(A, B) -> Q(A)", RuleError, r"P\(A, B\) has 2 arguments, but P"),
        ("1: P(A) -> Q(B)", RuleError, "'B'"),
        ("", RuleError, "at least one is needed"),
        ([], RuleError, "at least one is needed"),
        ([7], ArgumentError, "7 is no rule"),
        (Path("model.psl"), ArgumentError, r"files are read by RuleModel\.from_file"),
        ("1: P(A) -> Q(A)\n-2: P(A) -> !Q(A)", ArgumentError, r"rule 2 \(line 2\).*weight -2"),
    ],
)
def test_bad_programs(rules, error, words):
    with pytest.raises(error, match=words):
        RuleModel(rules)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"Nows": KNOWS}, "there is no predicate 'Nows'.*did you mean 'Knows'"),
        ({"Knows": [("a",)]}, "Knows takes 2 arguments"),
        ({"Knows": [("a", "b", 1.5)]}, r"Knows\('a', 'b'\) the value 1.5: .* \[0, 1\]"),
        ({"Knows": [("a", "b", 0.1), ("a", "b", 0.2)]}, r"Knows\('a', 'b'\) is given twice"),
        ({"Knows": None}, "None was given as the atoms of Knows"),
        (KNOWS, r"observe was given a list: name the predicate, as in observe\(Knows=\.\.\.\)"),
    ],
)
def test_bad_atoms(data, words):
    with pytest.raises((AtomError, ArgumentError), match=words):
        RuleModel(CHAIN).observe(data)


def test_an_atom_both_observed_and_target():
    with pytest.raises(AtomError, match="as observed and as a target"):
        chain().observe(Likes=[("bob", "tea")])


def test_missing_files_and_targets(tmp_path):
    with pytest.raises(DataNotFoundError, match=r"knows\.txt"):
        RuleModel(CHAIN).observe(Knows=tmp_path / "knows.txt")
    with pytest.raises(ArgumentError, match="there are no targets"):
        RuleModel(CHAIN).observe(Knows=KNOWS).predict()
    with pytest.raises(ArgumentError, match="there are no targets"):
        RuleModel(CHAIN).observe(Knows=KNOWS).fit()
    with pytest.raises(ArgumentError, match="Knows has no targets"):
        chain().predict("Knows")


def test_a_target_that_no_rule_reaches():
    model = RuleModel("1: P(A) -> Q(A)").observe(P=[("a",)]).target(Q=[("a",), ("z",)])
    with pytest.warns(UnreachedAtomWarning, match=r"no rule reaches Q\('z'\)") as told:
        values = model.predict(frame="dict")["value"]
    assert told[0].filename == __file__
    assert values[1] == 0.5


def test_a_rule_that_grounds_to_nothing():
    model = RuleModel("1: P(A) -> Q(A)\n1: R(A) -> Q(A)").observe(P=[("a",)]).target(Q=[("a",)])
    with pytest.warns(SilentRuleWarning, match=r"rule 2 \(line 2\).*no atoms were given for R"):
        model.predict()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict()  # told once


def test_contradictions_are_named():
    model = RuleModel("P(A) -> Q(A) .\nP(A) -> R(A) .\nQ(A) + R(A) <= 1 .\n1: !Q(A)")
    model.observe(P=[("a",)]).target(Q=[("a",)], R=[("a",)])
    with pytest.raises(InfeasibleError, match=r"Q\('a'\).*R\('a'\).*of 'Q\(A\) \+ R\(A\) <= 1 .'"):
        model.predict()


def test_labels_that_break_hard_rules():
    model = RuleModel("Q(A) <= 0.5 .\n1: !Q(A)").target(Q=[("a",)])
    with pytest.raises(InfeasibleError, match=r"Q\('a'\) -0.5 <= 0 of 'Q\(A\) <= 0.5 .'"):
        model.fit({"Q": [("a", 0.75)]})


@pytest.mark.parametrize(
    ("raised", "wanted"),
    [
        (RuntimeError("Query interrupted"), KeyboardInterrupt),
        (duckdb.InterruptException("INTERRUPT Error: Interrupted!"), KeyboardInterrupt),
        (duckdb.OutOfMemoryException("no room"), MemoryError),
        (RuntimeError("else"), RuntimeError),
    ],
)
def test_what_stops_the_database(monkeypatch, raised, wanted):
    def stop(*_):
        raise raised

    model = chain()
    monkeypatch.setattr(ground_program, "ground", stop)
    with pytest.raises(wanted):
        model.predict()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"driver": "magic"}, "driver"),
        ({"learner": "magic"}, "driver"),
        ({"learner": "em", "driver": "cccp"}, "driver"),
        ({"solver": "magic"}, "solver"),
        ({"sweeps": 0}, "sweeps"),
        ({"surrogate": "magic"}, "surrogate='magic' is not known"),
        ({"step": 2}, "fit has no option 'step'; did you mean 'steps'"),
        ({"swep": 2}, "did you mean 'sweeps'"),
        ({"C": 0.0}, "C=0.0"),
    ],
)
def test_bad_options_of_fit(options, words):
    with pytest.raises(ArgumentError, match=words):
        friends().fit(**options)


def test_a_memory_limit_changes_no_value(monkeypatch):
    expected = friends()
    for share in (10**9, 8):  # forms in files, or in memory after all
        monkeypatch.setattr("structlearn._src.rules.ground._FITS", share)
        model = friends(memory_limit="1GB")
        assert (model.grounding_.hinges.store is None) == (share == 8)
        other = pickle.loads(pickle.dumps(model))
        assert other.grounding_.hinges.store is None
        np.testing.assert_array_equal(other.result_.y, expected.result_.y)
        np.testing.assert_array_equal(model.result_.y, expected.result_.y)
        assert model.estimate() == expected.estimate()
        model.fit(max_iter=3, tol=None)
        np.testing.assert_array_equal(model.weights_, friends().fit(max_iter=3, tol=None).weights_)


def test_memory_limits_that_cannot_be_kept(monkeypatch):
    with pytest.raises(ArgumentError, match="at least '512MB'"):
        RuleModel(CHAIN, memory_limit="200MB").observe(Knows=KNOWS)
    model = friends(memory_limit="512MB")
    monkeypatch.setattr("structlearn._src.rules.room._BYTES_PER_TARGET", 10**8)
    with pytest.raises(ArgumentError, match="is too low for 48 targets"):
        model.predict()


def test_other_bad_options():
    model = chain()
    with pytest.raises(ArgumentError, match="metric='auc' is not known"):
        model.score(metric="auc")
    with pytest.raises(ArgumentError, match="frame='excel' is not known"):
        model.predict(frame="excel")
    with pytest.raises(ArgumentError, match="memory_limit='lots' is no size"):
        RuleModel(CHAIN, memory_limit="lots").observe(Knows=KNOWS)
    with pytest.raises(ArgumentError, match=r"memory_limit='1\.\.2GB' is no size"):
        RuleModel(CHAIN, memory_limit="1..2GB").observe(Knows=KNOWS)
    for atom in (3.5, (), ("Likes",), [("Likes", "bob"), "tea"]):
        with pytest.raises(ArgumentError, match="is not an atom; write it as in"):
            model.explain(atom)
    with pytest.raises(ArgumentError, match="no parameter 'tool'; did you mean 'tol'"):
        model.set_params(tool=1.0)


# ---- parameters and files ----------------------------------------------------------------


def test_parameters_are_kept_as_given():
    model = chain(tol=1e-4, max_iter=77)
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert again.tables.n_free == 0
    model.set_params(tol=1e-2)
    assert len(model.predict(frame="dict")["value"]) == 2  # atoms stay
    model.set_params(rules="1: P(A) -> Q(A)")
    assert (model.tol, model.tables.n_free) == (1e-2, 0)


def test_clear_keeps_the_weights():
    model = chain()
    model.weights_ = {1: 4.0}
    model.clear().observe(Knows=KNOWS, Likes=[("ann", "tea", 0.9)]).target(Likes=TARGETS)
    assert model.weights_.tolist() == [20.0, 4.0]
    assert model.predict(frame="dict")["value"][0] > BOB


def test_save_and_load(tmp_path):
    path = tmp_path / "model.json"
    model = friends().fit(max_iter=3, tol=None)
    model.save(path)
    again = RuleModel.load(path)
    assert again.rules_ == model.rules_
    assert again.weights_.tolist() == model.weights_.tolist()
    assert (again.status_, again.n_iter_, again.value_) == (model.status_, 3, model.value_)
    assert again.ended_ is model.ended_
    assert RuleModel.load(path, tol=1e-3).tol == 1e-3
    saved = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == saved


def test_files_of_before_do_not_say_how_learning_ended(tmp_path):
    path = tmp_path / "model.json"
    model = friends().fit(max_iter=3, tol=None)
    model.save(path)
    record = json.loads(path.read_text())
    del record["fit"]["ended_"], record["sha256"]
    path.write_text(json.dumps(record))
    again = RuleModel.load(path)
    assert (again.status_, hasattr(again, "ended_")) == (model.status_, False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: r | {"schema": "structlearn.rules/9"}, "newer structlearn"),
        (lambda r: r | {"schema": "other/1"}, "is of kind 'other/1'"),
        (lambda r: [r], "not written by structlearn"),
        (lambda r: {**r, "rules": ["1: P("]}, "damaged"),
        (lambda r: {**r, "rules": [3]}, "3 is no rule"),
        (lambda r: {k: v for k, v in r.items() if k != "rules"}, "damaged"),
        (lambda r: {**r, "fit": {"ended_": "well"}}, "damaged"),
    ],
)
def test_bad_files(tmp_path, change, words):
    path = tmp_path / "model.json"
    RuleModel(CHAIN).save(path)
    record = json.loads(path.read_text())
    del record["sha256"]
    path.write_text(json.dumps(change(record)))
    with pytest.raises(FormatError, match=words):
        RuleModel.load(path)


def test_altered_files_are_refused(tmp_path):
    """Any byte, but for blanks and the last digits of numbers that mean the same."""

    def meant(data):
        try:
            return json.loads(data)
        except ValueError:
            return None

    path = tmp_path / "model.json"
    model = friends().fit(max_iter=3, tol=None)
    model.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.choice(len(whole), 300, replace=False):
        altered = bytearray(whole)
        altered[place] ^= int(rng.integers(1, 256))
        path.write_bytes(altered)
        if meant(bytes(altered)) != meant(whole):
            with pytest.raises(FormatError, match=r"model\.json"):
                RuleModel.load(path)
    path.write_bytes(whole.replace(b"\n", b" "))
    assert RuleModel.load(path).rules_ == model.rules_


def test_a_file_is_changed_on_purpose_without_its_checksum(tmp_path):
    path = tmp_path / "model.json"
    RuleModel("1: P(A) -> Q(A)").save(path)
    record = json.loads(path.read_text())
    record["rules"] = ["2: P(A) -> Q(A)"]
    path.write_text(json.dumps(record))
    with pytest.raises(FormatError, match="checksum"):
        RuleModel.load(path)
    del record["sha256"]
    path.write_text(json.dumps(record))
    assert RuleModel.load(path).weights_.tolist() == [2.0]


def test_files_that_are_not_json(tmp_path):
    (tmp_path / "model").write_text(CHAIN)
    with pytest.raises(FormatError, match="not a model of rules"):
        RuleModel.load(tmp_path / "model")


@pytest.mark.parametrize(
    "text",
    [
        5000 * "[" + 5000 * "]",
        '{"schema": ' + 5000 * "9" + "}",
        '{"schema": "structlearn.rules/' + 5000 * "9" + '"}',
        '{"schema": "structlearn.rules/\u0661"}',
    ],
    ids=["deep", "digits", "version", "arabic"],
)
def test_files_that_are_made_to_break_parsers(tmp_path, text):
    (tmp_path / "model").write_text(text)
    with pytest.raises(FormatError, match="model") as caught:
        RuleModel.load(tmp_path / "model")
    assert len(str(caught.value)) < 500


def write_program(folder):
    """The chain as files, its value of ann other in the split learn."""
    (folder / "knows.txt").write_text("ann\tbob\nbob\tcyd\n")
    model = {
        "rules": [line.strip() for line in CHAIN.strip().splitlines()],
        "predicates": {
            "Knows/2": {"observations": ["knows.txt"]},
            "Likes/2": {
                "observations": {"infer": [["ann", "tea", 0.9]], "learn": [["ann", "tea", 0.5]]},
                "targets": [["bob", "tea"], ["cyd", "tea"]],
                "truth": {"learn": [["bob", "tea", 1.0]]},
            },
        },
    }
    (folder / "model.json").write_text(json.dumps(model))
    return folder / "model.json"


def test_from_file(tmp_path):
    path = write_program(tmp_path)
    model = RuleModel.from_file(path, tol=1e-7)
    np.testing.assert_allclose(model.predict(frame="dict")["value"], [BOB, CYD], atol=1e-4)
    model.read(read_program(path), "learn")
    np.testing.assert_allclose(
        model.predict(frame="dict")["value"], np.array([BOB, CYD]) * 5 / 9, atol=1e-4
    )
    assert model.score(metric="mse") == pytest.approx((1 - BOB * 5 / 9) ** 2, abs=1e-3)


#: Objectives of PSL with weights divided by the largest, and exact ones where they are known.
OPTIMA = {
    "simple-acquaintances/model.json": 343.928,
    "citeseer/model.psl": 583.398185,
    "cora/model.json": 815.685,
    "bitcoin-otc-trust/model.json": 9715.803,
    "bitcoin-otc-trust/model-latent.psl": 14139.1,
    "er-citeseer/model.psl": 349.316,
}


@pytest.mark.data
@pytest.mark.parametrize("name", OPTIMA)
def test_programs_of_psl_reach_their_optima(name, data_folder):
    path = data_folder / "psl" / name
    if not path.exists():
        pytest.skip(f"real data: {name} is not there")
    model = RuleModel.from_file(path)
    largest = model.weights_[np.isfinite(model.weights_)].max()
    assert model.energy_ / largest <= OPTIMA[name] * (1 + 2e-6)
    assert model.violation_ <= 1e-6
    assert model.result_.converged


def test_an_unfinished_inference_warns_and_goes_on():
    model = chain(max_iter=1)
    with pytest.warns(UncertifiedWarning, match="larger max_iter"):
        rough = model.result_
    assert not rough.converged
    assert model.set_params(max_iter=5000).result_.converged


def test_loading_what_is_not_there(tmp_path):
    with pytest.raises(DataNotFoundError, match="no file"):
        RuleModel.load(tmp_path / "none.json")


@pytest.mark.parametrize("again", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_models_with_atoms_are_copied_whole(again):
    model = RuleModel("2: Knows(A, B) & Likes(A) -> Likes(B) ^2\n1: !Likes(A) ^2", n_jobs=1)
    model.observe(Knows=[(i, i + 1) for i in range(5)], Likes=[("0", 0.9)])
    model.target(Likes=[(i,) for i in range(1, 6)])
    values = model.predict(frame="dict")["value"]
    twin = again(model)
    np.testing.assert_array_equal(twin.predict(frame="dict")["value"], values)
    twin.weights_ = {1: 3.0}
    assert (twin.predict(frame="dict")["value"] < values).all()
    np.testing.assert_array_equal(model.predict(frame="dict")["value"], values)


def test_one_model_serves_two_threads():
    model = RuleModel("2: Knows(A, B) & Likes(A) -> Likes(B) ^2\n1: !Likes(A) ^2", n_jobs=1)
    model.observe(Knows=[(i, i + 1) for i in range(30)], Likes=[("0", 0.9)])
    model.target(Likes=[(i,) for i in range(1, 31)])
    expected = copy.deepcopy(model).predict(frame="dict")["value"]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: model.predict(frame="dict")["value"], range(8)))
    for values in found:
        np.testing.assert_allclose(values, expected, atol=1e-5)


def test_scores_of_blocks_and_thresholds():
    model = RuleModel("1: Score(A, C) = Is(A, C) ^2")
    values = {("a", "x"): 0.6, ("a", "y"): 0.4, ("b", "x"): 0.7, ("b", "y"): 0.2, ("b", "z"): 0.5}
    model.observe(Score=[(*key, value) for key, value in values.items()])
    model.target(Is=list(values))
    model.truth(Is=[("a", "x", 1.0), ("a", "y", 0.0), ("b", "z", 1.0)])
    assert model.score(metric="categorical") == 0.5
    assert model.score(metric="mrr", predicate="is") == pytest.approx(0.75)
    assert model.score(metric="categorical", category=0) == 0.5  # of x, b has more than a
    assert model.score(metric="categorical", category=(0, 1)) == 0.0  # (b, x) has the most
    assert model.score(metric="mae") == pytest.approx((0.4 + 0.4 + 0.5) / 3, abs=1e-4)
    assert model.score(metric="precision", threshold=0.3) == pytest.approx(2 / 3)
    for options in ({"threshold": 0.3, "metric": "mse"}, {"category": 1}):
        with pytest.raises(ArgumentError, match="no meaning"):
            model.score(**options)
    with pytest.raises(ArgumentError, match="category"):
        model.score(metric="mrr", category=2)


def test_files_say_which_rules_a_split_has(tmp_path):
    """Known values: 1 / 11 of the sum of both rules for inference."""
    text = """{"rules": ["1: Foo(A) -> Bar(A) ^2"], "infer": {"rules": ["10: !Bar(A) ^2"]},
        "predicates": {"Foo/1": {"observations": [["a", "1"]]}, "Bar/1": {"targets": [["a"]]}}}"""
    (tmp_path / "m.json").write_text(text)
    for split, value in (("infer", 1 / 11), ("learn", 1.0)):
        model = RuleModel.from_file(tmp_path / "m.json", split=split)
        np.testing.assert_allclose(model.predict(frame="dict")["value"], [value], atol=1e-4)


#: Scores that PSL 2.4.1 prints for the model below, by evaluator and its one option.
SCORES_OF_PSL = [
    ("AUCEvaluator", {}, {"auroc": 1.0, "aupr_trapezoid": 1.0}),
    ("AUCEvaluator", {"aucevaluator.threshold": 0.7}, {"auroc": 2 / 3, "aupr_trapezoid": 0.579167}),
    (
        "DiscreteEvaluator",
        {},
        {"accuracy": 4 / 7, "f1": 4 / 7, "precision": 1.0, "recall": 0.4}
        | {"precision_negative": 0.4, "recall_negative": 1.0},
    ),
    (
        "DiscreteEvaluator",
        {"discreteevaluator.threshold": 0.3},
        {"accuracy": 6 / 7, "f1": 8 / 9, "precision": 1.0, "recall": 0.8}
        | {"precision_negative": 2 / 3, "recall_negative": 1.0},
    ),
    ("ContinuousEvaluator", {}, {"mae": 0.332834, "mse": 0.186395, "rmse": 0.431734}),
    ("CategoricalEvaluator", {}, {"categorical": 2 / 3}),
    ("CategoricalEvaluator", {"categoricalevaluator.categoryindexes": "0"}, {"categorical": 1 / 3}),
    (
        "CategoricalEvaluator",
        {"categoricalevaluator.categoryindexes": "-1"},
        {"categorical": 2 / 3},
    ),
]


@pytest.mark.parametrize(("name", "options", "expected"), SCORES_OF_PSL)
def test_evaluators_of_psl_score_as_psl_does(tmp_path, name, options, expected):
    pairs = [f"{base}{category}" for base in "abc" for category in "xyz"][:-1]
    sure = dict(zip(pairs, [0.9, 0.35, 0.62, 0.11, 0.97, 0.44, 0.71, 0.28], strict=True))
    truth = dict(zip(pairs[:-1], [1, 0.2, 0.8, 0, 0.6, 1, 1], strict=True))
    likes = {
        "targets": [list(pair) for pair in sure],
        "truth": [[*pair, value] for pair, value in truth.items()],
        "evaluations": [{"evaluator": name, "options": options}],
    }
    seems = {"observations": [[*pair, value] for pair, value in sure.items()]}
    rules = ["1: Seems(A, B) -> Likes(A, B) ^2", "0.7: !Likes(A, B) ^2"]
    model = {"rules": rules, "predicates": {"Seems/2": seems, "Likes/2": likes}}
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    (evaluation,) = read_program(path).declarations[1].evaluations
    asked = RuleModel.from_file(path, n_jobs=1)
    found = {metric: asked.score(metric=metric, **more) for metric, more in evaluation.scores()}
    found.pop("aupr_negative", None)  # which ranks negatives the other way
    assert found == pytest.approx(expected, abs=1e-4)
