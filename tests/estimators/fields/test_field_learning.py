"""Learning of fields in the words of all families: drivers, solvers, endings, checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from structlearn import Checkpoint, HingeField, RuleModel
from structlearn._src.common.errors import ArgumentError
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


FAMILIES = {"field": lambda **options: field().fit(TRUTH, **options),
            "rules": lambda **options: rules().fit(**options)}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"learner": "em"}, {"driver": "cccp"}),
        ({"driver": "em"}, {"driver": "cccp"}),
        ({"learner": "paired", "steps": 3}, {"driver": "paired", "sweeps": 3}),
        ({}, {"driver": "paired", "sweeps": 1, "warm_up": 10, "rule": "root"}),
    ],
)
def test_old_words_mean_the_new_ones(name, old, new):
    one, other = (FAMILIES[name](max_iter=4, tol=None, **each) for each in (old, new))
    np.testing.assert_array_equal(one.weights_, other.weights_)
    assert one.value_ == other.value_


@pytest.mark.parametrize("driver", ["paired", "cccp", "subgradient"])
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
    fitted = FAMILIES[name](
        time_limit=1e-9, progress=lambda fraction, words: told.append(words), tol=None
    )
    assert fitted.ended_ == Ending.TIME
    assert "iteration 1" in told[0]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("driver", ["paired", "cccp", "subgradient"])
def test_a_checkpoint_goes_on_bit_for_bit(name, driver, tmp_path):
    options = {"driver": driver, "sweeps": 2, "tol": None}
    whole = FAMILIES[name](max_iter=5, **options)
    place = Checkpoint(tmp_path / "run", iterations=1)
    FAMILIES[name](max_iter=2, checkpoint=place, **options)
    resumed = FAMILIES[name](max_iter=5, checkpoint=place, **options)
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)
    assert resumed.value_ == whole.value_
    np.testing.assert_array_equal(resumed.history_.value, whole.history_.value)
    assert resumed.n_iter_ == 5


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
    ],
)
def test_what_cannot_be_is_refused_by_name(options, name):
    with pytest.raises(ArgumentError, match=name):
        field().fit(TRUTH, **options)
