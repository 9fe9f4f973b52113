"""Every world keeps its promises: right against an oracle, pure, resumable, additive."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

import latent
import naive
from hinge_fields import least_energy, random_field
from structlearn._src.common.errors import ArgumentError
from structlearn._src.field.examples import make_field_examples
from structlearn._src.learn.field_objective import FieldObjective
from structlearn._src.learn.loss import make_cost, make_loss
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.learn.world import (
    CONVERGED,
    Budget,
    InferenceSettings,
    count_steps,
    fill,
    leaves,
)

EXACT = InferenceSettings("exact")
MESSAGES = InferenceSettings("bp", sweeps=500, tol=1e-12)
ADMM = InferenceSettings(tol=1e-10, sweeps=200_000)

#: Structures by name, with losses that their worlds can infer exactly, or by messages on trees.
DISCRETE = {
    "chain, log": (latent.sequence_case, {}, "log", EXACT),
    "chain, hinge": (latent.sequence_case, {"edges": "both"}, "hinge", EXACT),
    "chain, soft margin": (latent.sequence_case, {"edges": "features"}, "eps", EXACT),
    "chain, partly labelled": (latent.sequence_case, {"hidden": 0.4}, "log", EXACT),
    "chain, forbidden": (latent.sequence_case, {"bars": True}, "log", EXACT),
    "chain, tables": (latent.sequence_case, {"nodes": "table", "edges": "none"}, "log", EXACT),
    "chain, two temperatures": (latent.sequence_case, {"hidden": 0.4}, "marginal", EXACT),
    "graph, log": (latent.graph_case, {}, "log", EXACT),
    "graph, latent hinge": (latent.graph_case, {}, "latent-hinge", EXACT),
    "graph, marginal": (latent.graph_case, {}, "marginal", EXACT),
    "graph, hybrid": (latent.graph_case, {}, "hybrid", EXACT),
    "tree, log by messages": (latent.graph_case, {"kind": "tree"}, "log", MESSAGES),
    "tree, eps by messages": (latent.graph_case, {"kind": "tree"}, "eps", MESSAGES),
}
FIELDS = {
    "field, entropy": {"surrogate": "entropy"},
    "field, loss": {"surrogate": "loss"},
    "field, hard": {"surrogate": "entropy", "hard": True},
}
ALL = [*DISCRETE, *FIELDS]
#: Worlds that remember where inference stood.
REMEMBERING = [name for name in ALL if "messages" in name or "field" in name]


def discrete(name, seed=3):
    """The objective, some weights, and the case that knows all features."""
    make, options, loss, settings = DISCRETE[name]
    case = make(seed, **options)
    objective = StructuredObjective(
        case.model, case.examples, make_loss(loss), make_cost("hamming", latent.STATES),
        C=0.7, settings=settings,
    )  # fmt: skip
    return objective, np.random.default_rng(seed).normal(size=case.model.n_weights), case


def field(name, seed=3, settings=ADMM, copies=1):
    """The objective of a field, or of several that share no variable, and some weights."""
    options = dict(FIELDS[name])
    rng = np.random.default_rng(seed)
    hinges = random_field(rng, m=10, hard=options.pop("hard", False))
    labels = np.round(rng.random(hinges.n_variables))
    labels[:5] = 0.0, 1.0, 0.0, 0.0, 1.0
    labels[[0, 3]] = np.nan
    if copies > 1:
        hinges = beside(hinges, copies)
        labels = np.tile(labels, copies)
    examples = make_field_examples(hinges, labels, strength=0.4, **options)
    objective = FieldObjective(examples, 1.3, settings=settings)
    return objective, rng.uniform(0.3, 2.0, objective.n_weights)


def beside(hinges, copies):
    """Several copies of a field side by side."""
    shift = np.repeat(np.arange(copies) * hinges.n_variables, len(hinges.variables))
    ends = np.concatenate([hinges.offsets[1:] + i * len(hinges.variables) for i in range(copies)])
    tiled = {
        name: np.tile(getattr(hinges, name), copies)
        for name in ("coefficients", "constants", "kinds", "powers", "groups")
    }
    return type(hinges)(
        offsets=np.append(0, ends),
        variables=np.tile(hinges.variables, copies) + shift,
        n_variables=copies * hinges.n_variables,
        n_groups=hinges.n_groups,
        **tiled,
    )


def made(name, **options):
    return field(name, **options) if name in FIELDS else discrete(name)[:2]


def worlds_of(objective):
    return [world for pair in objective.pairs for world in (pair.free, pair.clamped)]


def solve(world, objective, weights, factors, memory=None, budget=CONVERGED, into=None):
    memory = world.begin() if memory is None else memory
    return world.solve(objective.push(weights), factors, memory, budget, into)


def enumerated(case, i, part, weights, clamped):
    """Value of one world of one example, by enumeration."""
    cards, labels = case.cards[i], case.labels(i)
    table = case.scores(i, weights)
    if part.with_cost and not clamped:
        rows = naive.cost_rows(labels, 1.0 - np.eye(latent.STATES))
        every = np.array(list(naive.assignments(cards)))
        table = table + sum(rows[v][every[:, v]] for v in np.flatnonzero(labels >= 0))
    table = table.reshape(cards)
    if clamped:
        at = tuple(slice(None) if y < 0 else int(y) for y in labels)
        return float(naive.soft_max(np.ravel(table[at]), part.eps_h))
    order = [*np.flatnonzero(labels >= 0), *np.flatnonzero(labels < 0)]
    outputs = int(np.prod([cards[v] for v in order if labels[v] >= 0], dtype=int))
    rows = table.transpose(order).reshape(outputs, -1)
    inner = np.array([float(naive.soft_max(row, part.eps_h)) for row in rows])
    return float(naive.soft_max(inner, part.eps_y))


# ---- against oracles -----------------------------------------------------------------------


@pytest.mark.parametrize("name", DISCRETE)
def test_values_of_discrete_worlds_against_enumeration(name):
    objective, weights, case = discrete(name)
    factors = np.ones(objective.n_examples)
    for part, pair in zip(objective.loss.parts, objective.pairs, strict=True):
        for world, clamped in ((pair.free, False), (pair.clamped, True)):
            values = solve(world, objective, weights, factors)[0]
            expected = [
                enumerated(case, i, part, weights, clamped) for i in range(objective.n_examples)
            ]
            np.testing.assert_allclose(values, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", FIELDS)
def test_values_of_field_worlds_against_an_exact_solver(name):
    objective, weights = field(name)
    examples = objective.examples
    for world, fixed in zip(worlds_of(objective), (examples.given, ~examples.hidden), strict=True):
        values = solve(world, objective, weights, np.ones(1))[0]
        known = np.where(fixed, examples.labels, np.nan)
        least, _ = least_energy(examples.hinges, objective.push(weights), known)
        assert values[0] == pytest.approx(-least, abs=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_gradients_against_differences(name):
    objective, weights = made(name)
    rng = np.random.default_rng(0)
    factors = rng.uniform(-1.0, 2.0, objective.n_examples)
    direction = rng.normal(size=len(weights))
    step = 1e-5 if name in DISCRETE else 1e-3
    for world in worlds_of(objective):

        def total(t, world=world):
            return factors @ solve(world, objective, weights + t * direction, factors)[0]

        gradient = objective.pull(solve(world, objective, weights, factors)[1])
        difference = (total(step) - total(-step)) / (2 * step)
        assert gradient @ direction == pytest.approx(difference, rel=2e-3, abs=2e-3)


# ---- purity and memory ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_a_world_depends_on_nothing_but_what_it_is_given(name):
    objective, weights = made(name)
    factors = np.ones(objective.n_examples)
    for world in worlds_of(objective):
        first = solve(world, objective, weights, factors)
        solve(world, objective, 2.0 * weights + 0.3, factors)  # would disturb hidden state
        again = solve(world, objective, weights, factors)
        np.testing.assert_array_equal(first[0], again[0])
        for one, other in zip(tables(first[1]), tables(again[1]), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ALL)
def test_gradients_are_added_where_asked(name):
    objective, weights = made(name)
    rng = np.random.default_rng(1)
    factors = rng.uniform(0.5, 2.0, objective.n_examples)
    for world in worlds_of(objective):
        alone = [table.copy() for table in tables(solve(world, objective, weights, factors)[1])]
        given = like(alone, rng)
        before = [table.copy() for table in tables(given)]
        total = solve(world, objective, weights, factors, into=given)[1]
        for sum_, mine, theirs in zip(tables(total), alone, before, strict=True):
            np.testing.assert_allclose(sum_, mine + theirs, rtol=1e-9, atol=1e-9)


def tables(gradient):
    return gradient if isinstance(gradient, tuple) else (gradient,)


def like(arrays, rng):
    drawn = tuple(rng.normal(size=array.shape) for array in arrays)
    return drawn if len(drawn) > 1 or drawn[0].ndim > 1 else drawn[0]


@pytest.mark.parametrize("name", ALL)
def test_the_memory_given_is_the_memory_returned(name):
    objective, weights = made(name)
    for world in worlds_of(objective):
        memory = world.begin()
        assert solve(world, objective, weights, np.ones(objective.n_examples), memory)[2] is memory
        if name not in REMEMBERING:
            assert not list(leaves(memory))


@pytest.mark.parametrize("name", REMEMBERING)
def test_a_few_steps_and_a_few_more_are_as_many_at_once(name):
    objective, weights = made(
        name, **({"settings": InferenceSettings(tol=0.0)} if name in FIELDS else {})
    )
    factors = np.ones(objective.n_examples)
    for world in worlds_of(objective):
        parts = world.begin()
        for budget in (Budget(2), Budget(3)):
            once = solve(world, objective, weights, factors, parts, budget)
        many = solve(world, objective, weights, factors, None, Budget(5))
        np.testing.assert_array_equal(once[0], many[0])
        if name in FIELDS and not world.still:
            assert count_steps(parts) == count_steps(many[2]) == 5


@pytest.mark.parametrize("name", REMEMBERING)
def test_memories_can_be_written_down_and_read_again(name):
    objective, weights = made(name)
    view = objective.with_budget(Budget(2))
    memory = view.begin()
    for k in range(3):
        view.value(weights * (1.0 + 0.1 * k), memory)
    kept = {path: np.array(array) for path, array in leaves(memory)}
    twin = deepcopy(memory)
    expected = view.value_gradient(weights, memory)
    other = view.begin()
    fill(other, kept)
    for again in (view.value_gradient(weights, other), view.value_gradient(weights, twin)):
        assert again.value == expected.value
        np.testing.assert_array_equal(again.gradient, expected.gradient)
    with pytest.raises(ValueError, match="memory"):
        fill(view.begin(), dict(list(kept.items())[:-1]))


@pytest.mark.parametrize("name", REMEMBERING)
def test_memories_of_other_worlds_are_refused(name):
    objective, weights = made(name)
    other = field("field, loss", copies=2)[0] if name in FIELDS else field("field, loss")[0]
    for foreign in (other.begin(), (), ((None, None),), 3):
        with pytest.raises(ValueError, match="memory"):
            objective.value(weights, foreign)


@pytest.mark.parametrize("name", REMEMBERING)
def test_warm_starts_save_work_and_begin_is_a_copy(name):
    objective, weights = made(name)
    memory = objective.begin()
    cold = objective.value(weights, memory)
    done = count_steps(memory)
    warm = objective.warmed(memory)
    assert warm.value(weights) == pytest.approx(cold, rel=1e-6, abs=1e-6)
    assert count_steps(memory) == done  # evaluations of the copy leave it alone
    again = warm.begin()
    warm.value(weights, again)
    assert count_steps(again) - done < done


# ---- objectives ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_no_loss_is_negative(name):
    objective, weights = made(name)
    for scale in (0.0, 0.5, 3.0):
        assert (objective.losses(scale * weights) >= -1e-6).all()


@pytest.mark.parametrize("name", ALL)
def test_tangents_bound_from_above_and_touch(name):
    objective, weights = made(name)
    bound = objective.linearise(weights)
    assert bound.convex
    assert bound.value(weights) == pytest.approx(objective.value(weights), rel=1e-6)
    rng = np.random.default_rng(2)
    for _ in range(4):
        other = np.abs(weights + rng.normal(size=len(weights)))
        assert bound.value(other) >= objective.value(other) - 1e-5


@pytest.mark.parametrize("n", [1, 2, 3, 50])
@pytest.mark.parametrize("name", ALL)
def test_shards_add_up(name, n):
    objective, weights = made(name, **({"copies": 3} if name in FIELDS else {}))
    whole = objective.loss_gradient(weights)
    shards = objective.shards(n)
    assert 1 <= len(shards) <= n
    if n == 2:
        assert len(shards) == 2
    parts = [shard.loss_gradient(weights) for shard in shards]  # each with a memory of its own
    assert sum(part.value for part in parts) == pytest.approx(whole.value, rel=1e-6, abs=1e-6)
    total = np.sum([part.gradient for part in parts], axis=0)
    np.testing.assert_allclose(total, whole.gradient, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [next(iter(DISCRETE)), next(iter(FIELDS))])
@pytest.mark.parametrize("n", [0, -1, 1.5])
def test_there_is_at_least_one_shard(name, n):
    with pytest.raises(ArgumentError, match="n="):
        made(name)[0].shards(n)


def test_shards_of_a_bound_add_up():
    objective, weights, _ = discrete("graph, marginal")
    bound = objective.linearise(0.5 * weights)
    parts = [shard.loss_gradient(weights) for shard in bound.shards(3)]
    whole = bound.loss_gradient(weights)
    assert sum(part.value for part in parts) == pytest.approx(whole.value)
    np.testing.assert_allclose(np.sum([p.gradient for p in parts], axis=0), whole.gradient)
