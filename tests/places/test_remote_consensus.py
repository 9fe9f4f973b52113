"""ADMM with forms on two workers: the steps of one process, and its certified optimum."""

from __future__ import annotations

import os
import signal
from copy import deepcopy

import numpy as np
import pytest

from structlearn import RuleModel, on
from structlearn._src.field.consensus import Consensus
from structlearn._src.field.hinges import EQUAL, HINGE, Hinges
from structlearn._src.learn.world import fill, leaves
from structlearn._src.places.remote_consensus import RemoteConsensus, SpreadForms
from structlearn.errors import InfeasibleError
from structlearn.fields import solve_map


def field(n_forms=300, n_variables=40, seed=0):
    """Random forms of three variables, every tenth of them hard and easy to keep."""
    rng = np.random.default_rng(seed)
    hard = np.arange(n_forms) % 10 == 0
    coefficients = rng.normal(size=(n_forms, 3))
    coefficients[hard] = [1.0, -1.0, 0.0]
    variables = np.array([rng.choice(n_variables, 3, replace=False) for _ in range(n_forms)])
    return Hinges(
        3 * np.arange(n_forms + 1), variables.ravel(), coefficients.ravel(),
        np.where(hard, 0.0, rng.normal(size=n_forms)), np.where(hard, EQUAL, HINGE),
        rng.integers(1, 3, n_forms), np.arange(n_forms) % 4, n_variables, 4,
    )  # fmt: skip


WEIGHTS = np.array([1.0, 0.3, 2.0, 0.7])


@pytest.fixture
def place(client):
    with on(client) as place:
        place.least_forms = 0
        yield place


def count_vectors(shard, shared):
    return (len(shard.vectors),)


def spread(place, hinges, **options):
    return RemoteConsensus(SpreadForms.of(place, hinges), hinges, **options)


def local(state):
    """Return the arrays of a state, with the multipliers of all workers."""
    return state._replace(multipliers=state.multipliers.read())


def test_steps_are_those_of_one_process(place):
    options = {"relaxation": 1.6, "stiffness": 5.0, "fixed": {3: 0.25}}
    here = Consensus(field(), **options)
    there = spread(place, field(), **options)
    states = here.begin(WEIGHTS), there.begin(WEIGHTS)
    for steps in (1, 7):
        here.run(WEIGHTS, states[0], steps)
        there.run(WEIGHTS, states[1], steps)
        for name, expected, found in zip(
            states[0]._fields, states[0], local(states[1]), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=name)
    here.run(WEIGHTS, states[0], 10_000, tol=1e-3)
    there.run(WEIGHTS, states[1], 10_000, tol=1e-3)
    assert abs(int(states[0].iterations) - int(states[1].iterations)) <= 1
    np.testing.assert_allclose(states[1].consensus, states[0].consensus, atol=1e-6)


def test_the_optimum_is_certified(place):
    with on("threads"):
        here = solve_map(field(), WEIGHTS)
    there = solve_map(field(), WEIGHTS)
    assert there.converged
    assert there.energy == pytest.approx(here.energy, rel=1e-6)
    assert there.gap <= 1e-5 * abs(there.energy)
    again = solve_map(field(), 2 * WEIGHTS, start=there)
    assert again.energy == pytest.approx(2 * here.energy, rel=1e-6)


def test_contradictions_are_named(place):
    hinges = Hinges([0, 1, 2], [0, 0], [1.0, 1.0], [0.0, -1.0], [EQUAL] * 2, [1, 1], [0, 0], 1, 1)
    with pytest.raises(InfeasibleError, match="contradict"):
        solve_map(hinges, [1.0])


def test_memories_can_be_copied_and_kept(place):
    consensus = spread(place, field())
    state = consensus.begin(WEIGHTS)
    consensus.run(WEIGHTS, state, 5)
    copied = deepcopy(state)
    kept = {path: np.array(array) for path, array in leaves(state)}
    consensus.run(WEIGHTS, state, 5)
    assert not np.allclose(local(copied).multipliers, local(state).multipliers)
    consensus.run(WEIGHTS, copied, 5)
    np.testing.assert_array_equal(local(copied).multipliers, local(state).multipliers)
    fill(state, kept)
    consensus.run(WEIGHTS, state, 5)
    np.testing.assert_array_equal(local(copied).multipliers, local(state).multipliers)


def test_what_nobody_holds_is_forgotten(place):
    hinges = field()
    consensus = spread(place, hinges)
    for _ in range(5):
        state = consensus.begin(WEIGHTS)
    consensus.run(WEIGHTS, state, 1)
    assert consensus.spread.kept.ask(count_vectors, None) == (2,)  # one on each worker


def test_broken_forms_are_named(place):
    hinges = Hinges(
        [0, 1, 2, 3], [0, 1, 2], [1.0] * 3, [0.0, 0.0, -1.0], [EQUAL] * 3, [1] * 3, [0] * 3, 3, 1
    )
    for fixed, form in (({0: 0.5}, 0), ({2: 0.5}, 2)):
        with pytest.raises(InfeasibleError, match=rf"\[{form}\]") as raised:
            spread(place, hinges, fixed=fixed)
        assert raised.value.forms == [form]


@pytest.mark.parametrize("moment", [8, 70, 110])
def test_the_optimum_survives_a_worker_that_is_killed(mortal, moment):
    here = solve_map(field(), WEIGHTS)
    pids = mortal.run(os.getpid)
    asked = []
    with on(mortal) as place:
        place.least_forms = 0
        ask = place.ask

        def ask_and_kill(work, shared, tree):
            asked.append(work)
            if len(asked) == moment:
                os.kill(pids[tree[-1][0]], signal.SIGKILL)
            return ask(work, shared, tree)

        place.ask = ask_and_kill
        there = solve_map(field(), WEIGHTS)
    assert len(asked) > moment
    assert there.converged
    assert there.energy == pytest.approx(here.energy, rel=1e-5)
    consensus = Consensus(field())
    proof = consensus.appraise(
        WEIGHTS, consensus.begin(WEIGHTS, there.y, multipliers=there.multipliers)
    )
    assert proof.lower == pytest.approx(there.lower, rel=1e-6)


def test_rules_are_inferred_on_workers(place):
    model = RuleModel("1: Near(A, B) & Good(A) -> Good(B) ^2\n0.5: !Good(A) ^2")
    rng = np.random.default_rng(0)
    pairs = [(f"a{i}", f"a{j}") for i, j in rng.integers(30, size=(90, 2)) if i != j]
    model.observe(Near=sorted(set(pairs)), Good=[("a0", 1.0), ("a1", 0.8)])
    model.target(Good=[(f"a{i}",) for i in range(2, 30)])
    there = model.predict(frame="dict")["value"]
    with on("threads"):
        here = (
            model.clear()
            .observe(Near=sorted(set(pairs)), Good=[("a0", 1.0), ("a1", 0.8)])
            .target(Good=[(f"a{i}",) for i in range(2, 30)])
            .predict(frame="dict")["value"]
        )
    np.testing.assert_allclose(there, here, atol=1e-4)
    assert there.max() > 0.1
