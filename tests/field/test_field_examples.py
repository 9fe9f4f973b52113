"""What is learnt from: labels, surrogates, and fields cut into parts."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from structlearn._src.common.errors import ArgumentError
from structlearn._src.field.examples import make_field_examples
from structlearn._src.field.hinges import Hinges


def islands(seed, n=4, shared=True):
    """A field of small fields side by side; they may all speak about the last variable too."""
    rng = np.random.default_rng(seed)
    offsets, variables, coefficients, constants, powers, groups = [0], [], [], [], [], []
    for island in range(n):
        for _ in range(3):
            scope = 2 * island + rng.permutation(2)[: rng.integers(1, 3)]
            scope = [*scope, 2 * n] if shared and rng.random() < 0.5 else scope
            variables.extend(scope)
            coefficients.extend(rng.normal(size=len(scope)))
            offsets.append(len(variables))
            constants.append(rng.normal())
            powers.append(int(rng.integers(1, 3)))
            groups.append(int(rng.integers(3)))
    kinds = np.zeros(len(constants))
    given = offsets, variables, coefficients, constants, kinds, powers, groups
    return Hinges(*given, 2 * n + 1, 3)


def examples_of(seed, n=4, **options):
    rng = np.random.default_rng(seed)
    labels = rng.random(2 * n + 1)
    labels[::3] = np.where(np.arange(0, 2 * n + 1, 3) < 2 * n, np.nan, labels[::3])
    given = np.arange(2 * n + 1) == 2 * n
    return make_field_examples(islands(seed, n), labels, given=given, **options)


@pytest.mark.parametrize("n", [1, 2, 3, 10])
@pytest.mark.parametrize("surrogate", ["entropy", "loss", "none"])
def test_parts_of_a_field_add_up_to_it(n, surrogate):
    whole = examples_of(0, surrogate=surrogate, strength=0.7)
    parts = whole.cut(n)
    assert 1 <= len(parts) <= n
    assert sum(part.hinges.n_forms for part in parts) == whole.hinges.n_forms
    # Labels are all different, so that they tell which variable is which.
    rng = np.random.default_rng(1)
    point = rng.random(whole.hinges.n_variables)
    names = np.where(whole.hidden, point, whole.labels)
    whole_sum = whole.hinges.hinges(names)
    total = np.zeros(len(whole_sum))
    for part in parts:
        y = np.where(part.hidden, 0.0, part.labels)
        if part.hidden.any():
            y = names[variables_of(whole, part)]
        total += part.hinges.hinges(y)
    np.testing.assert_allclose(total, whole_sum)


def variables_of(whole, part):
    """Variables of a part in the numbering of the whole, by its labels and their order."""
    known = [int(np.flatnonzero(whole.labels == y)[0]) for y in part.labels[~part.hidden]]
    hidden = [j for j in np.flatnonzero(whole.hidden) if nearest_known(j, known)]
    out = np.empty(len(part.labels), int)
    out[~part.hidden] = known
    out[part.hidden] = hidden
    return out


def nearest_known(j, known):
    """Whether the other variable of an island is in the part."""
    return (j ^ 1) in known


def test_parts_share_no_variable_but_given_ones():
    whole = examples_of(0)
    parts = whole.cut(10)
    assert len(parts) == 4
    free = [set(part.labels[~part.given & ~part.hidden]) for part in parts]
    assert sum(map(len, free)) == len(set().union(*free))
    assert [len(part.labels) - part.given.sum() for part in parts] == [2] * 4
    assert any(part.given.any() for part in parts)
    for part in parts:
        np.testing.assert_array_equal(part.weights, whole.weights)
        np.testing.assert_array_equal(part.learnt, whole.learnt)


def components(hinges, given):
    """Sets of free variables that forms join, and forms of their own without any."""
    joined = []
    for i in range(hinges.n_forms):
        scope = hinges.variables[hinges.offsets[i] : hinges.offsets[i + 1]]
        new = {int(j) for j in scope if not given[j]}
        apart = [old for old in joined if not old & new]
        joined = [*apart, new.union(*(old for old in joined if old & new))]
    return joined


@pytest.mark.parametrize("seed", range(4))
def test_what_hangs_together_stays_together(seed):
    labels = np.random.default_rng(2).random(9)
    for given in (np.arange(9) == 8, np.arange(9) == 0):
        whole = make_field_examples(islands(seed), labels, given=given, surrogate="none")
        parts = whole.cut(1000)
        found = {frozenset(part.labels[~part.given]) for part in parts}
        joined = components(whole.hinges, given)
        assert found == {frozenset(labels[list(free)]) for free in joined}
        assert len(parts) == len(joined)


def test_weights_that_are_not_learnt_keep_theirs():
    learnt = np.array([True, False, True])
    examples = examples_of(3, weights=[1.0, 2.0, 3.0], learnt=learnt, strength=0.5)
    assert examples.learnt.tolist() == [0, 2]
    assert examples.fill_in(np.array([7.0, 8.0])).tolist() == [7.0, 2.0, 8.0, 0.5]
    assert examples.weights.tolist() == [1.0, 2.0, 3.0, 0.5]


def surrogate_value(kind, y, labels, given):
    """What a surrogate says in words: entropy of open variables, or distance from labels."""
    total = 0.0
    for value, label, fixed in zip(y, labels, given, strict=True):
        if kind == "entropy" and not fixed:
            total += value**2 + (1.0 - value) ** 2
        elif kind == "loss" and not fixed and not np.isnan(label):
            slope = 2.0 * label - 1.0  # towards the far end, at most by the distance of the ends
            total += slope * value if slope > 0 else -slope * (1.0 - value)
    return total


@pytest.mark.parametrize("kind", ["entropy", "loss", "none"])
def test_surrogates_are_hinges_of_their_own_group(kind):
    examples = examples_of(4, surrogate=kind)
    rng = np.random.default_rng(5)
    for _ in range(5):
        y = rng.random(9)
        expected = surrogate_value(kind, y, examples.labels, examples.given)
        found = examples.hinges.hinges(y)
        assert found[-1] == pytest.approx(expected)
        np.testing.assert_allclose(found[:-1], islands(4).hinges(y))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"labels": np.full(9, np.nan)}, "label"),
        ({"labels": np.full(8, 0.5)}, "truth"),
        ({"labels": np.full(9, 1.5)}, "truth"),
        ({"given": np.ones(8, bool)}, "given"),
        ({"given": np.ones(9)}, "given"),
        ({"given": np.ones(9, bool)}, "given"),
        ({"learnt": [0, 1, 2]}, "learnt"),
        ({"surrogate": "hinge"}, "surrogate="),
        ({"strength": -1.0}, "strength="),
        ({"weights": [1.0, 2.0]}, "weights"),
        ({"weights": [1.0, -2.0, 0.0]}, "weight"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(options, word):
    labels = options.pop("labels", np.full(9, 0.25))
    with pytest.raises(ArgumentError, match=word):
        make_field_examples(islands(0), labels, **options)


def test_hidden_variables_cannot_be_given():
    labels = np.full(9, 0.25)
    labels[4] = np.nan
    with pytest.raises(ArgumentError, match="variable 4 is given"):
        make_field_examples(islands(0), labels, given=np.arange(9) == 4)


@pytest.mark.parametrize("seed", range(5))
def test_taking_forms_and_variables_leaves_their_values(seed):
    rng = np.random.default_rng(seed)
    field, _ = naive.hinge_field(rng)
    hinges = Hinges(**field)
    forms = np.flatnonzero(rng.random(hinges.n_forms) < 0.5)
    used = [hinges.variables[hinges.offsets[i] : hinges.offsets[i + 1]] for i in forms]
    variables = np.unique(np.concatenate([np.zeros(0, int), *used]))
    part = hinges.take(forms, variables)
    y = rng.random(hinges.n_variables)
    np.testing.assert_allclose(part.values(y[variables]), naive.hinge_values(field, y)[forms])
    assert part.n_groups == hinges.n_groups
    assert part.kinds.tolist() == hinges.kinds[forms].tolist()
