"""Learning in hinge-loss fields: values and gradients against an exact solver."""

from __future__ import annotations

import numpy as np
import pytest

from hinge_fields import dense, least_energy, random_field
from structlearn._src.common.errors import ArgumentError
from structlearn._src.field.examples import SURROGATES, make_field_examples
from structlearn._src.field.hinges import HINGE
from structlearn._src.learn.field_objective import FieldObjective
from structlearn._src.learn.loss import NonNegative
from structlearn._src.learn.world import Budget, InferenceSettings, count_steps

EXACT = InferenceSettings(tol=1e-10, sweeps=200_000)
C, RIDGE, STRENGTH = 1.7, 0.3, 0.4


def make(seed, surrogate, hidden, hard=False, binary=True, **choices):
    rng = np.random.default_rng(seed)
    hinges = random_field(rng, m=10, hard=hard)
    labels = rng.random(hinges.n_variables)
    if binary:
        labels = np.round(labels)
    if hard:
        labels[:5] = 0.0, 1.0, 0.0, 0.0, 1.0
    if hidden:
        labels[[0, 3]] = np.nan
    examples = make_field_examples(
        hinges, labels, surrogate=surrogate, strength=STRENGTH, **choices
    )
    return hinges, FieldObjective(examples, C, NonNegative(strength=RIDGE), EXACT), rng


def surrogate_term(kind, labels):
    """Return -h as the paper has it, and its gradient."""
    known = ~np.isnan(labels)

    def entropy(y):
        return STRENGTH * (y @ y + (1 - y) @ (1 - y)), STRENGTH * (4 * y - 2)

    def loss(y):
        away = np.where(known, np.where(labels > 0.5, 1.0, -1.0), 0.0)
        return -STRENGTH * np.abs(y - labels)[known].sum(), STRENGTH * away

    return {"entropy": entropy, "loss": loss, "none": None}[kind]


def exact_value(hinges, labels, kind, weights):
    """Equation 4 by a general solver: the loss only in the free world, the entropy in both."""
    whole = np.append(weights, np.zeros(hinges.n_groups - len(weights)))
    term = surrogate_term(kind, labels)
    free, _ = least_energy(hinges, whole, np.full(len(labels), np.nan), term)
    clamped, _ = least_energy(hinges, whole, labels, None if kind == "loss" else term)
    return C * (clamped - free) + 0.5 * RIDGE * weights @ weights


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_value_and_gradient(surrogate, hidden, hard):
    for seed in range(2):
        hinges, objective, rng = make(seed, surrogate, hidden, hard)
        weights = rng.uniform(0.3, 2.0, objective.n_weights)
        labels = objective.examples.labels
        value, gradient, _ = objective.value_gradient(weights)
        assert value == pytest.approx(exact_value(hinges, labels, surrogate, weights), abs=1e-6)
        assert objective.value(weights) == pytest.approx(value)
        for i in range(len(weights)):
            step = np.zeros(len(weights))
            step[i] = 1e-4
            ends = [exact_value(hinges, labels, surrogate, weights + s * step) for s in (1, -1)]
            assert gradient[i] == pytest.approx((ends[0] - ends[1]) / 2e-4, abs=2e-3)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_never_below_the_penalty(surrogate, binary):
    for seed in range(5):
        _, objective, rng = make(seed, surrogate, True, binary=binary)
        for weights in rng.uniform(0, 3, (5, objective.n_weights)):
            loss, _, _ = objective.loss_gradient(weights)
            assert loss >= -1e-7
            assert objective.value(weights) >= objective.penalty.value(weights) - 1e-7


def test_without_surrogate_zero_is_optimal_and_with_one_it_is_not():
    zero = {kind: make(1, kind, True)[1].value(np.zeros(4)) for kind in SURROGATES}
    assert zero["none"] == pytest.approx(0.0, abs=1e-9)
    labels = make(1, "none", True)[1].examples.labels
    known = int((~np.isnan(labels)).sum())
    assert zero["loss"] == pytest.approx(C * STRENGTH * known)  # all labels wrong
    assert zero["entropy"] == pytest.approx(C * STRENGTH * known * 0.5)  # 1 against 2 * 0.25


def test_loss_of_labels_between_is_the_envelope():
    """Linear, and equal to the true one at both ends up to a constant."""
    rng = np.random.default_rng(0)
    hinges, labels = random_field(rng), rng.random(6)
    added = make_field_examples(hinges, labels, surrogate="loss").hinges
    assert (np.diff(added.values(np.zeros(6))[hinges.n_forms :]) != 0).any()
    for j in range(6):
        ends = [added.hinges(np.where(np.arange(6) == j, end, labels))[-1] for end in (0.0, 1.0)]
        assert ends[1] - ends[0] == pytest.approx(-abs(1 - labels[j]) + abs(labels[j]))


def test_convex_where_nothing_is_hidden():
    for kind in SURROGATES:
        _, objective, rng = make(3, kind, False)
        assert objective.convex
        assert not make(3, kind, True)[1].convex
        for _ in range(5):
            a, b = rng.uniform(0, 2, (2, objective.n_weights))
            middle = objective.value((a + b) / 2)
            assert middle <= (objective.value(a) + objective.value(b)) / 2 + 1e-7


def test_bound_bounds_and_touches():
    for seed in range(4):
        _, objective, rng = make(seed, "entropy", True)
        touch = rng.uniform(0, 2, objective.n_weights)
        bound = objective.linearise(touch)
        assert bound.value(touch) == pytest.approx(objective.value(touch), abs=1e-7)
        np.testing.assert_allclose(
            bound.value_gradient(touch)[1], objective.value_gradient(touch)[1], atol=1e-5
        )
        np.testing.assert_array_equal(bound.scales, objective.scales)
        for weights in rng.uniform(0, 3, (5, objective.n_weights)):
            assert bound.value(weights) >= objective.value(weights) - 1e-7


def test_paired_with_many_steps_is_exact():
    for kind in SURROGATES:
        _, objective, rng = make(2, kind, True)
        paired = objective.with_budget(Budget(20_000))
        for weights in rng.uniform(0.2, 2, (3, objective.n_weights)):
            value, gradient, _ = objective.value_gradient(weights)
            near, rough, _ = paired.value_gradient(weights)
            assert near == pytest.approx(value, abs=1e-5)
            np.testing.assert_allclose(rough, gradient, atol=1e-3)


def test_few_steps_go_on_where_they_stood():
    _, objective, rng = make(2, "entropy", True)
    weights = rng.uniform(0.2, 2, objective.n_weights)
    ones, ten = (objective.with_budget(Budget(n)) for n in (1, 10))
    memory = ones.begin()
    for _ in range(10):
        once = ones.value_gradient(weights, memory)
    many = ten.value_gradient(weights)
    np.testing.assert_array_equal(once.gradient, many.gradient)
    assert count_steps(memory) == count_steps(many.memory) == 20
    assert count_steps(objective.begin()) == 0


def test_warm_start():
    _, objective, rng = make(4, "entropy", True)
    weights = rng.uniform(0.2, 2, objective.n_weights)
    memory = objective.begin()
    objective.value(weights, memory)
    cold = count_steps(memory)
    objective.value(weights, memory)
    assert count_steps(memory) - cold == 2  # one step in each world shows that it is at rest


def test_no_inference_where_all_is_labelled():
    _, objective, rng = make(4, "entropy", False)
    memory = objective.begin()
    objective.value(rng.uniform(0.2, 2, objective.n_weights), memory)
    ((free, clamped),) = memory
    assert free.iterations > 0
    assert clamped.iterations == 0
    paired = objective.with_budget(Budget(1))
    assert count_steps(paired.value_gradient(paired.start).memory) == 1


# ---- what is learnt ----------------------------------------------------------------------


def test_fixed_weights_stay():
    hinges, objective, rng = make(
        0, "entropy", True, hard=True, weights=[1, 2, 3, 4, 5.0],
        learnt=[True, False, True, True, True],
    )  # fmt: skip
    assert objective.examples.learnt.tolist() == [0, 2, 3]  # the last group is hard
    np.testing.assert_array_equal(objective.start, [1, 3, 4])
    np.testing.assert_array_equal(
        objective.examples.fill_in(np.array([7.0, 8, 9])), [7, 2, 8, 9, 5, STRENGTH]
    )
    soft = [int(((hinges.groups == g) & (hinges.kinds == HINGE)).sum()) for g in (0, 2, 3)]
    np.testing.assert_allclose(objective.scales, 1.0 / np.array(soft))
    weights = rng.uniform(0.3, 2, 3)
    whole = make(0, "entropy", True, hard=True)[1]
    inserted = np.insert(weights, 1, 2.0)
    np.testing.assert_allclose(
        objective.loss_gradient(weights)[1], whole.loss_gradient(inserted)[1][[0, 2, 3]], atol=1e-6
    )


def test_given_variables_are_fixed_in_both_worlds():
    """The same as a field in which they are constants."""
    rng = np.random.default_rng(7)
    hinges = random_field(rng)
    labels = np.round(rng.random(6))
    labels[0] = np.nan
    given = np.arange(6) >= 4
    objective = FieldObjective(make_field_examples(hinges, labels, given=given), settings=EXACT)
    ((free, clamped),) = objective.value_gradient(objective.start).memory
    free, clamped = free.consensus, clamped.consensus
    np.testing.assert_array_equal(free[4:], labels[4:])
    np.testing.assert_array_equal(clamped[1:], labels[1:])
    fixed = np.where(given, labels, np.nan)

    def entropy(y):
        mine = y[~given]
        gradient = np.where(given, 0.0, 4 * y - 2)
        return mine @ mine + (1 - mine) @ (1 - mine), gradient

    value, where = least_energy(hinges, np.ones(4), fixed, entropy)
    np.testing.assert_allclose(free, where, atol=1e-4)
    world = objective.pairs[0].free
    values, _, _ = world.solve(objective.push(objective.start), np.ones(1), world.begin())
    assert -values[0] == pytest.approx(value, abs=1e-6)


def test_surrogate_forms():
    rng = np.random.default_rng(0)
    hinges = random_field(rng)
    labels = np.array([0, 1, np.nan, 0.5, 1, 0])
    before = hinges.n_forms
    for kind, count in (("entropy", 12), ("loss", 4), ("none", 0)):
        added = make_field_examples(hinges, labels, surrogate=kind, strength=3.0)
        assert added.hinges.n_forms == before + count
        assert added.weights[-1] == 3.0
        assert (added.hinges.groups[before:] == 4).all()
        np.testing.assert_array_equal(dense(added.hinges)[:before], dense(hinges))


@pytest.mark.parametrize(
    ("labels", "choices", "words"),
    [
        ([0.0, 1.0], {}, r"truth.*6 variables"),
        ([2.0] * 6, {}, r"truth\[0\]"),
        ([np.nan] * 6, {}, "no variable has a label"),
        ([1.0] * 6, {"given": np.ones(6, bool)}, "no variable has a label"),
        ([np.nan] + [1.0] * 5, {"given": np.arange(6) < 1}, "variable 0 is given"),
        ([1.0] * 6, {"surrogate": "bethe"}, "surrogate"),
        ([1.0] * 6, {"strength": -1.0}, "strength"),
        ([1.0] * 6, {"weights": [1.0, -1, 1, 1]}, "at least 0"),
        ([1.0] * 6, {"learnt": [1, 0, 1, 1]}, "boolean array"),
    ],
)
def test_refused(labels, choices, words):
    with pytest.raises(ArgumentError, match=words):
        make_field_examples(random_field(np.random.default_rng(0)), labels, **choices)


def test_prox_projects():
    penalty = NonNegative(l1_ratio=0.5, strength=2.0)
    np.testing.assert_allclose(penalty.prox(np.array([-1.0, 0.4, 3.0]), 0.5), [0.0, 0.0, 2.5])
    assert not NonNegative().smooth
    np.testing.assert_array_equal(NonNegative().prox(np.array([-2.0, 2.0]), 9.0), [0.0, 2.0])
