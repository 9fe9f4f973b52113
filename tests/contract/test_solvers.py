"""Solvers times objectives: each gets near the optimum, can be resumed and interrupted, and
gives the same with one thread and two."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chain_objectives import chains
from hinge_fields import random_field
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.watch import Ending, Watch
from structlearn._src.field.examples import make_field_examples
from structlearn._src.learn.field_objective import FieldObjective
from structlearn._src.learn.loss import NonNegative
from structlearn._src.learn.objective import Ability
from structlearn._src.learn.world import InferenceSettings
from structlearn._src.solve.base import Solver, refusal
from structlearn._src.solve.checkpoint import Checkpoint
from structlearn._src.solve.descent import Descent
from structlearn._src.solve.drivers import Annealed, Cccp, Paired
from structlearn._src.solve.frank_wolfe import FrankWolfe
from structlearn._src.solve.lbfgs import Lbfgs, Owlqn
from structlearn._src.solve.loop import run
from structlearn._src.solve.online import Online
from structlearn._src.solve.pick import SOLVERS, choose
from structlearn._src.solve.sdca import Sdca
from structlearn._src.solve.stochastic import Stochastic

STEPS = Stochastic("adagrad", 0.3, average=0.5)

#: Every solver, and how many iterations it gets.
ALL = {
    "lbfgs": (Lbfgs(), 100),
    "owlqn": (Owlqn(), 100),
    "descent": (Descent(), 300),
    "sdca": (Sdca(evaluate=1), 100),
    "sdca, in batches": (Sdca(batch_size=3), 100),
    "frank-wolfe": (FrankWolfe(evaluate=1), 200),
    "annealed": (Annealed(), 10),
    "adagrad": (STEPS, 400),
    "adagrad, batches": (replace(STEPS, batch_size=4), 60),
    "pegasos": (Stochastic("pegasos", average=0.5), 400),
    "online": (Online("adagrad", 0.3, average=0.5), 60),
    "cccp": (Cccp(Lbfgs()), 20),
    "cccp of steps": (Cccp(STEPS, inner_tol=0.0), 6),
    "paired": (Paired(STEPS, sweeps=2), 400),
}


def hidden_chains():
    whole = chains(loss="log")
    labels = whole.examples.labels.copy()
    labels[::3] = -1
    return replace(whole, examples=replace(whole.examples, labels=labels))


def field():
    rng = np.random.default_rng(0)
    hinges = random_field(rng, n=8, m=30)
    labels = np.round(rng.random(8))
    labels[:3] = np.nan
    examples = make_field_examples(hinges, labels, strength=0.3)
    settings = InferenceSettings(tol=1e-6)
    return FieldObjective(examples, 1.0, NonNegative(strength=0.1), settings)


OBJECTIVES = {
    "smooth chains": lambda: chains(loss="log"),
    "hinge on chains": lambda: chains(loss="hinge"),
    "lasso on chains": lambda: chains(loss="log", l1_ratio=0.5),
    "hidden labels": hidden_chains,
    "field": field,
}
CASES = [(solver, objective) for solver in ALL for objective in OBJECTIVES]


def start_of(objective):
    if isinstance(objective, FieldObjective):
        return objective.start
    return np.random.default_rng(1).normal(0.0, 0.1, objective.n_weights)


def go(solver, objective, max_iter, **options):
    rng = np.random.default_rng(0)
    return run(solver, objective, start_of(objective), max_iter=max_iter, rng=rng, **options)


def accepted(name, kind):
    solver, limit = ALL[name]
    objective = OBJECTIVES[kind]()
    if refusal(solver, objective):
        pytest.skip("refused: see test_what_is_refused_is_refused_before_any_work")
    return solver, objective, limit


_BEST: dict[str, float] = {}


def best_value(kind):
    """The lowest value that any of the solvers finds in many iterations."""
    if kind not in _BEST:
        objective = OBJECTIVES[kind]()
        reference = {
            "hinge on chains": (FrankWolfe(evaluate=5), 3000, 1e-7),
            "lasso on chains": (Owlqn(), 500, 1e-9),
            "field": (STEPS, 2000, None),
        }.get(kind, (Lbfgs(), 500, 1e-10))
        solver, limit, tol = reference
        _BEST[kind] = go(solver, objective, limit, tol=tol).value
    return _BEST[kind]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_it_gets_near_the_optimum(name, kind):
    solver, objective, limit = accepted(name, kind)
    fit = go(solver, objective, limit, tol=None)
    first = objective.value(start_of(objective))
    best = best_value(kind)
    # Descent has no way over kinks; all others gain nearly all that there is to gain.
    kinks = name == "descent" and kind in ("hinge on chains", "field")
    assert first - fit.value > (0.5 if kinks else 0.95) * (first - best)
    assert fit.value == pytest.approx(objective.value(fit.weights), rel=1e-5)
    assert (objective.penalty.prox(fit.weights, 0.0) == fit.weights).all()


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_it_can_be_resumed(name, kind, tmp_path):
    solver, objective, _ = accepted(name, kind)
    place = Checkpoint(tmp_path / "run", iterations=1)
    whole = go(solver, objective, 5, tol=None)
    for end in (2, 5):
        parts = go(solver, OBJECTIVES[kind](), end, tol=None, checkpoint=place)
    np.testing.assert_array_equal(parts.weights, whole.weights)
    np.testing.assert_array_equal(parts.history.value, whole.history.value)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_an_interrupt_keeps_the_best_weights(name, kind):
    solver, objective, _ = accepted(name, kind)

    def interrupt(event):
        if event.iteration == 2:
            raise KeyboardInterrupt

    watch = Watch()
    fit = go(solver, objective, 5, tol=None, callbacks=[interrupt], watch=watch)
    assert fit.ended is Ending.INTERRUPTED
    assert watch.expired
    assert fit.n_iter == 2
    assert np.isfinite(fit.weights).all()


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_threads_change_nothing(name, kind):
    solver, objective, _ = accepted(name, kind)
    one, two = (
        go(solver, replace(objective, settings=replace(objective.settings, n_jobs=n)), 3, tol=None)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.weights, two.weights)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_what_is_refused_is_refused_before_any_work(name, kind):
    solver, _ = ALL[name]
    objective = OBJECTIVES[kind]()
    reason = refusal(solver, objective)
    if not reason:
        assert solver.needs <= objective.abilities
        return
    with pytest.raises(ArgumentError, match=solver.name):
        go(solver, objective, 1)
    assert "pairs" not in vars(objective)  # no world was made to find out


def test_all_solvers_are_here():
    here = {type(solver) for solver, _ in ALL.values()}
    assert {type(make()) for make in SOLVERS.values()} <= here
    assert all(isinstance(solver, Solver) for solver, _ in ALL.values())


@pytest.mark.parametrize("kind", OBJECTIVES)
@pytest.mark.parametrize("driver", ["subgradient", "cccp", "paired"])
def test_a_suitable_solver_is_never_refused(driver, kind):
    objective = OBJECTIVES[kind]()
    assert refusal(choose("auto", driver, objective), objective) == ""


def test_em_is_another_name_for_cccp():
    for kind in ("hidden labels", "field"):
        objective = OBJECTIVES[kind]()
        assert choose("auto", "em", objective) == choose("auto", "cccp", objective)


@pytest.mark.parametrize("ability", list(Ability))
def test_a_missing_ability_is_named(ability):
    class Demanding(Lbfgs):
        needs = frozenset({ability})

    class Plain(type(chains())):
        abilities = frozenset()

    whole = chains()
    plain = Plain(whole.model, whole.examples, whole.loss, whole.cost)
    assert ability.value in refusal(Demanding(), plain)
    assert refusal(Demanding(), whole) == ""
