"""The error of best values, its gradient through inference, and its penalty."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hinge_fields import random_field
from structlearn._src.common.errors import ArgumentError, InfeasibleError
from structlearn._src.common.watch import Watch
from structlearn._src.field.admm import solve_map
from structlearn._src.field.consensus import Consensus
from structlearn._src.field.examples import make_field_examples
from structlearn._src.field.hinges import AT_MOST, Hinges
from structlearn._src.learn.field_objective import Anchored, FieldError
from structlearn._src.learn.world import InferenceSettings

FINE = InferenceSettings(tol=1e-11, sweeps=50_000, n_jobs=1)


def objective(seed, n=9, m=40, given=(), hard=False, **options):
    """Squared hinges, some hard forms, a third of the variables hidden."""
    rng = np.random.default_rng(seed)
    drawn = random_field(rng, n=n, m=m, hard=hard)
    hinges = Hinges(**{**vars_of(drawn), "powers": np.full(drawn.n_forms, 2)})
    labels = np.round(rng.random(n), 1)
    labels[::3] = np.nan
    if drawn.hard.any():  # labels of what a hard form speaks about must keep it
        labels[drawn.variables[np.repeat(drawn.hard, np.diff(drawn.offsets))]] = np.nan
    which = np.zeros(n, np.bool_)
    which[list(given)] = True
    which &= ~np.isnan(labels)
    weights = rng.uniform(0.5, 2.0, hinges.n_groups)
    examples = make_field_examples(
        hinges, labels, weights=weights, surrogate="none", given=which
    )  # fmt: skip
    return FieldError(examples, settings=FINE, **options)


def vars_of(hinges):
    names = ("offsets", "variables", "coefficients", "constants", "kinds", "powers", "groups")
    return {name: getattr(hinges, name) for name in (*names, "n_variables", "n_groups")}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("given", "hard"), [((), False), ((1, 4), False), ((), True)])
def test_the_gradient_is_that_of_finite_differences(seed, given, hard):
    error = objective(seed, given=given, hard=hard)
    start = error.start
    found = error.loss_gradient(start)
    h = 1e-5
    for i in range(len(start)):
        shift = h * (np.arange(len(start)) == i)
        above, below = (error.loss_gradient(start + sign * shift).value for sign in (1, -1))
        slope = (above - below) / (2 * h)
        assert found.gradient[i] == pytest.approx(slope, rel=0.01, abs=0.01 * abs(found.value))


def test_the_value_is_the_error_of_the_best_values():
    error = objective(3, C=2.0)
    examples = error.examples
    best = solve_map(examples.hinges, examples.weights, tol=1e-11, n_jobs=1).y
    known = ~examples.hidden
    missed = ((best - examples.labels)[known] ** 2).sum()
    factor = 2.0 * error.start.mean() / (4.0 * examples.labels[known].var())
    assert error.loss_gradient(error.start).value == pytest.approx(factor * missed, rel=1e-4)


def test_an_evaluation_goes_on_from_the_one_before():
    error = objective(2)
    fresh = error.loss_gradient(1.1 * error.start)
    _, _, memory = error.loss_gradient(error.start)
    steps = int(memory.iterations)
    again = error.loss_gradient(1.1 * error.start, memory)
    assert again.value == pytest.approx(fresh.value, rel=1e-5)
    assert int(again.memory.iterations) > steps > 0


def test_a_memory_of_another_field_is_refused():
    with pytest.raises(ArgumentError, match="memory"):
        objective(0).loss_gradient(objective(0).start, objective(1, n=8).begin())
    with pytest.raises(ArgumentError, match="memory"):
        objective(0).loss_gradient(objective(0).start, (1, 2))


def test_what_time_cuts_short_is_worth_nothing():
    error = objective(0, watch=Watch(1e-9))
    assert error.loss_gradient(error.start).value == math.inf


def test_an_interrupt_is_raised_to_end_the_work_around(monkeypatch):
    error = objective(3)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    error.begin()
    monkeypatch.setattr(Consensus, "run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        error.value_gradient(error.start)


def test_the_penalty_pulls_to_the_start():
    penalty = Anchored(anchor=np.array([1.0, 2.0]), strength=3.0)
    weights = np.array([1.5, 0.0])
    assert penalty.value(weights) == pytest.approx(0.5 * 3.0 * (0.25 + 4.0))
    np.testing.assert_allclose(penalty.gradient(weights), [1.5, -6.0])
    np.testing.assert_allclose(penalty.prox(np.array([-1.0, 1.0]), 0.1), [0.0, 1.0])
    assert not penalty.smooth


def test_labels_that_break_a_hard_form_are_refused():
    hinges = Hinges([0, 1, 2], [0, 0], [1.0, -1.0], [-0.5, 1.0], [AT_MOST, 0], [1, 2], [0, 0], 1, 1)
    examples = make_field_examples(hinges, [1.0], surrogate="none")
    with pytest.raises(InfeasibleError):
        FieldError(examples)
