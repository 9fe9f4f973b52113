"""Learning of fields in the words of all families: drivers, solvers, endings, checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from structlearn import Checkpoint, HingeField, RuleModel
from structlearn._src.common.errors import ArgumentError, VanishedWeightsWarning
from structlearn._src.common.watch import Ending
from structlearn._src.estimators.fields.learning import OLD_NAMES, FieldLearning
from structlearn._src.solve.stochastic import Stochastic

N = 12
TRUTH = np.ones(N)
TRUTH[::3] = np.nan  # latent


def field():
    """Every variable is drawn up, down and to its neighbour."""
    A = np.vstack([-np.eye(N), np.eye(N), (np.eye(N) - np.eye(N, k=1))[:-1]])
    b = np.concatenate([np.ones(N), np.zeros(N), np.zeros(N - 1)])
    return HingeField(A, b, powers=2, groups=np.repeat([0, 1, 2], [N, N, N - 1]), n_jobs=1)


def rules():
    model = RuleModel("1: Near(A, B) & Warm(A) -> Warm(B) ^2\n1: !Warm(A) ^2", n_jobs=1)
    model.observe(Near=[(i, i + 1) for i in range(5)], Warm=[(0, 1.0)])
    return model.target(Warm=[(i,) for i in range(1, 6)]).truth(Warm=[(2, 1.0), (4, 0.5)])


vanishing = pytest.mark.filterwarnings("ignore::structlearn.errors.VanishedWeightsWarning")

FAMILIES = {"field": lambda **options: field().fit(TRUTH, **options),
            "rules": lambda **options: rules().fit(**options)}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"learner": "em"}, {"driver": "cccp"}),
        ({"driver": "em"}, {"driver": "cccp"}),
        ({"learner": "paired", "steps": 3}, {"driver": "paired", "sweeps": 3}),
        ({}, {"driver": "bilevel", "rule": "adagrad", "step_size": 0.3, "average": 0.0}),
        ({"sweeps": 1}, {"driver": "paired", "warm_up": 10, "rule": "adagrad", "average": 0.5}),
        ({"surrogate": "loss"}, {"driver": "paired", "strength": 1.0, "step_size": 0.3}),
        ({"driver": "cccp"}, {"driver": "cccp", "inner_iter": 50, "l1_ratio": 0.0, "eta": None}),
    ],
)
@vanishing
def test_old_words_mean_the_new_ones(name, old, new):
    one, other = (FAMILIES[name](max_iter=4, tol=None, **each) for each in (old, new))
    np.testing.assert_array_equal(one.weights_, other.weights_)
    assert one.value_ == other.value_


@pytest.mark.parametrize("driver", ["bilevel", "paired", "cccp", "subgradient"])
def test_a_solver_of_ones_own_takes_the_steps_of_the_rule(driver):
    options = {"driver": driver, "max_iter": 3, "tol": None}
    worded = field().fit(TRUTH, rule="root", step_size=1.0, average=0.5, **options)
    solver = Stochastic(rule="root", step_size=1.0, average=0.5)  # the mean weight and C are 1
    given = field().fit(TRUTH, solver=solver, **options)
    np.testing.assert_array_equal(worded.weights_, given.weights_)
    named = field().fit(TRUTH, solver="adagrad", **options)
    assert (named.weights_ != given.weights_).any()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_fit_that_runs_out_of_steps_warns_at_the_users_line(name):
    with pytest.warns(ConvergenceWarning, match="max_iter") as told:
        fitted = FAMILIES[name](max_iter=2, tol=1e-12)
    assert told[0].filename == __file__
    assert (fitted.ended_, fitted.converged_, fitted.n_iter_) == (Ending.LIMIT, False, 2)


@pytest.mark.parametrize("name", FAMILIES)
def test_without_a_tolerance_the_limit_is_what_was_asked_for(name):
    fitted = FAMILIES[name](max_iter=2, tol=None)  # warnings are errors here
    assert (fitted.ended_, fitted.n_iter_) == (Ending.LIMIT, 2)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_fit_that_converges_says_so(name):
    fitted = FAMILIES[name](max_iter=3000, tol=0.1)
    assert fitted.ended_ == Ending.DONE
    assert fitted.converged_
    assert fitted.n_iter_ < 3000


@pytest.mark.parametrize("name", FAMILIES)
def test_callbacks_see_every_iteration_and_may_end_the_fit(name):
    seen = []

    def note(event):
        seen.append(event.iteration)
        return event.iteration == 3

    fitted = FAMILIES[name](callbacks=[note], tol=None)
    assert seen == [1, 2, 3]
    assert fitted.ended_ == Ending.STOPPED


@pytest.mark.parametrize("name", FAMILIES)
def test_time_limits_and_progress_may_be_given_to_one_fit(name):
    told = []
    with pytest.warns(ConvergenceWarning, match="time limit"):
        fitted = FAMILIES[name](
            time_limit=1e-9, progress=lambda fraction, words: told.append(words), tol=None
        )
    assert fitted.ended_ == Ending.TIME
    assert "iteration 1" in told[0]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("driver", ["bilevel", "paired", "cccp", "subgradient"])
@vanishing
def test_a_checkpoint_goes_on_bit_for_bit(name, driver, tmp_path):
    options = {"driver": driver, "tol": None} | ({} if driver == "bilevel" else {"sweeps": 2})
    whole = FAMILIES[name](max_iter=5, **options)
    place = Checkpoint(tmp_path / "run", iterations=1)
    FAMILIES[name](max_iter=2, checkpoint=place, **options)
    resumed = FAMILIES[name](max_iter=5, checkpoint=place, **options)
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)
    assert resumed.value_ == whole.value_
    np.testing.assert_array_equal(resumed.history_.value, whole.history_.value)
    assert resumed.n_iter_ == whole.n_iter_


@pytest.mark.parametrize("change", [{"C": 2.0}, {"surrogate": "loss"}, {"driver": "subgradient"}])
def test_a_checkpoint_of_another_problem_is_refused(change, tmp_path):
    field().fit(TRUTH, max_iter=1, tol=None, checkpoint=tmp_path / "run")
    with pytest.raises(ArgumentError, match="run"):
        field().fit(TRUTH, max_iter=2, tol=None, checkpoint=tmp_path / "run", **change)


def test_every_old_name_is_one_of_an_option():
    options = FieldLearning.of(dict.fromkeys(OLD_NAMES, None) | {"learner": "paired", "steps": 2})
    assert (options.driver, options.sweeps) == ("paired", 2)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"driver": "gradient"}, "driver"),
        ({"solver": Stochastic}, "solver"),
        ({"sweeps": 0}, "sweeps"),
        ({"warm_up": -1}, "warm_up"),
        ({"rule": "none"}, "rule"),
        ({"step_size": 0.0}, "step_size"),
        ({"average": 2.0}, "average"),
        ({"C": -1.0}, "C"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1.0}, "tol"),
        ({"callbacks": print}, "callbacks"),
        ({"strength": -1.0}, "strength"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"progress": 3}, "progress"),
        ({"checkpoint": 3}, "checkpoint"),
        ({"learner": "em", "driver": "em"}, "learner is the old name of driver"),
        ({"sweeps": 2, "steps": 3}, "steps is the old name of sweeps"),
        ({"inner_iter": 0}, "inner_iter"),
        ({"l1_ratio": 2.0}, "l1_ratio"),
        ({"eta": 0.0}, "eta"),
        ({"driver": "bilevel", "surrogate": "loss"}, "surrogate has no effect"),
        ({"driver": "bilevel", "sweeps": 3}, "sweeps has no effect"),
    ],
)
def test_what_cannot_be_is_refused_by_name(options, name):
    with pytest.raises(ArgumentError, match=name):
        field().fit(TRUTH, **options)


# ---- what is learnt --------------------------------------------------------------------------


def coins(rate, n=40, scale=1.0):
    """Variables that are drawn up and down, and labels of which a share is 1."""
    A = np.vstack([-np.eye(n), np.eye(n)])
    b = np.concatenate([np.ones(n), np.zeros(n)])
    weights = scale * np.array([1.0, 1.0])
    field = HingeField(A, b, powers=2, groups=np.repeat([0, 1], n), weights=weights, n_jobs=1)
    return field, (np.arange(n) < rate * n).astype(float)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.4, 0.6, 0.9])
def test_defaults_predict_the_share_of_labels_that_hold(rate):
    """The best constant: the entropy's optimum has no weights at all where a rate is near 1/2."""
    field, truth = coins(rate)
    field.fit(truth, C=100.0, tol=None)
    np.testing.assert_allclose(field.predict(), rate, atol=0.01)


def test_weights_that_vanish_are_told():
    field, truth = coins(0.4)
    with pytest.warns(VanishedWeightsWarning, match="bilevel") as told:
        field.fit(truth, surrogate="entropy", tol=None, rule="adagrad")
    assert told[0].filename == __file__
    assert field.weights_.max() < 0.01
    kept, truth = coins(0.0)  # a rule that keeps its weight is left
    kept.fit(truth, surrogate="none", learnt=np.array([True, False]), tol=None)
    assert kept.weights_[0] < 0.01 < kept.weights_[1]


def test_rules_without_a_slope_to_follow_are_told():
    """Linear rules: the stronger wins, by how much does not matter, and labels say otherwise."""

    def learnt(power, truth):
        model = RuleModel(f"1: P(A) -> Q(A) {power}\n5: !Q(A) {power}").observe(P=[("a",)])
        return model.target(Q=[("a",)]).truth(Q=[("a", truth)])

    model = learnt("", 1.0)
    with pytest.warns(ConvergenceWarning, match=r"nothing was learnt.*square the rules") as told:
        model.fit()
    assert told[0].filename == __file__
    np.testing.assert_array_equal(model.weights_, [1.0, 5.0])
    assert learnt("", 0.0).fit().weights_.tolist() == [1.0, 5.0]  # there is nothing to learn
    squared = learnt("^2", 1.0).fit(max_iter=1, tol=None).weights_
    assert squared[0] > 1.0
    assert squared[1] < 5.0


@pytest.mark.parametrize("scale", [0.1, 10.0])
@pytest.mark.parametrize("driver", ["bilevel", "paired", "cccp", "subgradient"])
@pytest.mark.parametrize("rule", ["adagrad", "root"])
def test_the_scale_of_the_start_only_scales_the_weights(driver, rule, scale):
    options = {"driver": driver, "rule": rule, "max_iter": 6, "tol": None}
    one, other = field(), field()
    other.weights_ = scale * other.weights_
    one.fit(TRUTH, **options)
    other.fit(TRUTH, **options)
    np.testing.assert_allclose(other.weights_ / scale, one.weights_, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(other.predict(), one.predict(), atol=1e-3)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    power=st.integers(-20, 20),
    driver=st.sampled_from(["bilevel", "paired", "cccp", "subgradient"]),
)
@example(seed=999998, power=7, driver="cccp")  # whose slope is 0 in the end
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@vanishing
def test_the_scale_of_the_start_changes_no_bit_of_what_is_learnt(seed, power, driver):
    """Powers of two scale without rounding, so that fits take the same steps and end alike."""
    rng = np.random.default_rng(seed)
    n = 5
    A = np.vstack([np.eye(n), -np.eye(n), rng.choice([-1.0, 0.0, 1.0], (6, n))])
    b = np.concatenate([-rng.random(n), rng.random(n), rng.random(6) - 0.3])
    groups = np.concatenate([np.repeat([0, 1], n), rng.permutation(6) % 2 + 2])
    weights = rng.uniform(0.5, 2.0, 4)
    truth = np.append(rng.random(n - 1).round(), np.nan)
    powers = rng.integers(1, 3, len(b))
    found = []
    for scale in (1.0, 2.0**power):
        made = HingeField(A, b, powers=powers, groups=groups, weights=scale * weights, n_jobs=1)
        fitted = made.fit(truth, driver=driver, max_iter=20)
        found.append((fitted.weights_ / scale, fitted.n_iter_, fitted.ended_))
    np.testing.assert_array_equal(found[1][0], found[0][0])
    assert found[1][1:] == found[0][1:]


@pytest.mark.parametrize("driver", ["bilevel", "paired", "cccp", "subgradient"])
def test_histories_count_steps_of_admm(driver):
    counts = field().fit(TRUTH, driver=driver, max_iter=4, tol=None).history_.inference_steps
    assert counts[0] > 0
    assert (np.diff(counts) >= (2 if driver == "paired" else 1)).all()


@vanishing
def test_inner_steps_eta_and_the_lasso_reach_learning():
    def learn(**options):
        return field().fit(TRUTH, max_iter=3, tol=None, **options).weights_

    few, many = (learn(driver="cccp", inner_iter=n) for n in (1, 30))
    assert np.abs(few - many).max() > 1e-3
    slow, quick = (learn(driver="paired", eta=eta) for eta in (0.1, 10.0))
    assert np.abs(slow - quick).max() > 1e-3
    plain, sparse = (learn(driver="paired", l1_ratio=ratio, C=1e-3) for ratio in (0.0, 1.0))
    assert sparse.sum() < plain.sum()


@pytest.mark.parametrize("driver", ["bilevel", "cccp"])
def test_a_time_limit_ends_learning_inside_inference(driver):
    """What was cut short does not count: the weights are those that were known before."""
    model = field()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model.fit(TRUTH, driver=driver, time_limit=1e-6, tol=None)
    assert model.ended_ == Ending.TIME
    assert np.isnan(model.value_)
    np.testing.assert_array_equal(model.weights_, field().weights_)
