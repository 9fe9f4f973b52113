"""Dual solvers over shards: rounds that lead to the optimum of one process, whatever dies."""

from __future__ import annotations

import os
import signal
import warnings

import numpy as np
import pytest

from structlearn import Checkpoint, SequenceLabeler, on
from structlearn._src.places.remote_dual import RemoteFrankWolfe, RemoteSdca
from structlearn._src.places.remote_objective import Remote, RemoteObjective, Shard
from structlearn._src.solve.dual_shard import ErrorShard, FlowShard, Visit
from structlearn.errors import ArgumentError
from structlearn.solvers import FrankWolfe, Lbfgs, Sdca, run

TOL = 1e-4  # relative gap


def sequences(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(1, 7), 3)) for _ in range(n)]
    true = rng.normal(size=(3, 3))
    return X, [(x @ true + rng.normal(size=(len(x), 3))).argmax(1) for x in X]


def words(n=40, seed=0):
    """Sequences of words, so that weights belong to pairs of attribute and label."""
    rng = np.random.default_rng(seed)
    X = [[[f"w{rng.integers(30)}", f"s{rng.integers(5)}"] for _ in range(5)] for _ in range(n)]
    Y = [["AB"[int(token[0][1:]) % 2] for token in x] for x in X]
    return X, Y


OBJECTIVES = {
    "hinge": (SequenceLabeler(loss="hinge"), sequences()),
    "hinge on words": (SequenceLabeler(loss="hinge", features="sparse"), words()),
    "log": (SequenceLabeler(), sequences()),
    "log on words": (SequenceLabeler(features="sparse"), words()),
}
SOLVERS = {"hinge": (FrankWolfe(), RemoteFrankWolfe), "log": (Sdca(), RemoteSdca)}


@pytest.fixture(params=OBJECTIVES)
def case(request):
    estimator, (X, Y) = OBJECTIVES[request.param]
    here, there = SOLVERS[request.param.split()[0]]
    return estimator.objective(X, Y), here, there


class Shards:
    """Shards in this process that lose one of them before the answers with some numbers."""

    def __init__(self, objective, n, deaths=()):
        self.parts = objective.shards(n)
        self.ends = np.cumsum([0, *(part.n_examples for part in self.parts)]).tolist()
        self.shards = [Shard(*both) for both in zip(self.parts, self.ends, strict=False)]
        self.deaths = deaths
        self.asked = 0

    def ask(self, work, shared):
        self.asked += 1
        if self.asked in self.deaths:  # after the others have answered, in vain
            lost = self.asked % len(self.shards)
            for i, shard in enumerate(self.shards):
                if i != lost:
                    work(shard, shared)
            self.shards[lost] = Shard(self.parts[lost], self.ends[lost])
            return self.ask(work, shared)
        answers = [work(shard, shared) for shard in self.shards]
        return tuple(sum(each[1:], each[0]) for each in zip(*answers, strict=True))


def remote(objective, n, deaths=()):
    shards = Shards(objective, n, deaths)
    return RemoteObjective(objective, Remote(shards, shards.ends[:-1]))


def start_of(solver, objective, seed=0):
    return solver.start(objective, np.zeros(objective.n_weights), np.random.default_rng(seed))


# ---- a shard -----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind"), [("hinge", FlowShard), ("log", ErrorShard)])
@pytest.mark.parametrize("data", ["", " on words"])
def test_the_weights_of_a_shard_are_those_of_its_variables(name, kind, data):
    estimator, (X, Y) = OBJECTIVES[name + data]
    shard = kind(estimator.objective(X, Y), 0)
    weights = shard.weights()
    assert not weights.any()
    for part in range(8):
        moved = shard.advance(weights, Visit(0, part // 4, part % 4, 1.0, part > 4))
        assert moved.squares == pytest.approx(moved.change @ moved.change)
        weights = weights + moved.change
    np.testing.assert_allclose(shard.weights(), weights, atol=1e-12)
    assert np.abs(weights).max() > 0.01


@pytest.mark.parametrize(("name", "kind"), [("hinge", FlowShard), ("log", ErrorShard)])
def test_a_round_can_be_taken_back(name, kind):
    estimator, (X, Y) = OBJECTIVES[name]
    shard = kind(estimator.objective(X, Y), 0)
    weights = shard.weights()
    for part in range(4):
        weights = weights + shard.advance(weights, Visit(0, 0, part, 1.0)).change
    before = shard.weights()
    bound = shard.bound()
    visit = Visit(0, 1, 0, 1.5)
    moved = shard.advance(weights, visit)
    assert np.abs(moved.change).max() > 0
    shard.return_to(4)
    np.testing.assert_array_equal(shard.weights(), before)
    assert shard.bound() == bound
    np.testing.assert_array_equal(shard.advance(weights, visit).change, moved.change)


# ---- rounds ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("deaths", [(), (9, 30, 31, 50)])
def test_rounds_lead_to_the_optimum(case, n, deaths):
    objective, solver, kind = case
    start = np.zeros(objective.n_weights)
    here = run(solver, objective, start, tol=TOL / 10, max_iter=10_000)
    there = remote(objective, n, deaths)
    found = run(kind.of(solver, there), there, start, tol=TOL, max_iter=10_000)
    assert found.converged
    assert "gap" in found.status
    assert there.remote.keepers.asked > max(deaths, default=0)
    assert found.value == pytest.approx(here.value, rel=2 * TOL)
    assert found.value == pytest.approx(objective.value(found.weights), rel=1e-9)


def test_the_dual_never_falls_and_stays_below(case):
    objective, solver, kind = case
    there = remote(objective, 4)
    solver = kind.of(solver, there)
    state = start_of(solver, there)
    duals = [0.0]
    for _ in range(15):
        solver.step(there, state)
        weights = state["weights"]
        duals.append(state["bound"] - 0.5 * weights @ weights)
    assert np.diff(duals).min() >= -1e-7 * duals[-1]
    best = run(Lbfgs() if objective.smooth else FrankWolfe(), objective, np.zeros(len(weights)))
    assert 0.5 * best.value < duals[-1] <= best.value


@pytest.mark.parametrize("dead", [6, 7])
def test_weights_are_those_of_the_variables_after_a_death(case, dead):
    objective, solver, kind = case
    there = remote(objective, 3, (dead,))
    solver = kind.of(solver, there)
    state = start_of(solver, there)
    for _ in range(3):
        solver.step(there, state)
    shards = there.remote.keepers.shards
    own = [duals for shard in shards for duals in shard.memories.values()]
    assert len(own) == 3
    np.testing.assert_allclose(sum(x.weights() for x in own), state["weights"], atol=1e-10)
    assert sum(x.bound() for x in own) == pytest.approx(state["bound"])


@pytest.mark.parametrize(
    ("name", "solver", "kind"),
    [("log", FrankWolfe(), RemoteFrankWolfe), ("hinge", Sdca(), RemoteSdca)],
)
def test_what_one_process_refuses_is_refused(name, solver, kind):
    estimator, (X, Y) = OBJECTIVES[name]
    there = remote(estimator.objective(X, Y), 2)
    with pytest.raises(ArgumentError, match=f"solver='{solver.name}'.* use loss="):
        run(kind.of(solver, there), there, np.zeros(there.n_weights))


def test_bounds_of_cccp_are_refused():
    estimator, (X, Y) = OBJECTIVES["log"]
    there = remote(estimator.objective(X, Y), 2)
    bound = there.linearise(np.zeros(there.n_weights))
    with pytest.raises(ArgumentError, match="bound of CCCP"):
        run(RemoteSdca.of(Sdca(), bound), bound, np.zeros(there.n_weights))


# ---- on workers --------------------------------------------------------------------------

FITS = [("hinge", "frank-wolfe"), ("log", "sdca")]


@pytest.mark.parametrize(("loss", "solver"), FITS)
def test_fits_end_where_those_of_one_process_do(loss, solver, client):
    X, Y = sequences()
    settings = {"loss": loss, "max_iter": 10_000, "random_state": 0}
    here = SequenceLabeler(solver=solver, tol=TOL / 10, **settings).fit(X, Y)
    with on(client):
        found = [SequenceLabeler(solver=solver, tol=TOL, **settings).fit(X, Y) for _ in range(2)]
    assert found[0].converged_
    assert found[0].value_ == pytest.approx(here.value_, rel=2 * TOL)
    np.testing.assert_array_equal(found[0].weights_, found[1].weights_)


@pytest.mark.parametrize(("loss", "solver"), FITS)
def test_checkpoints_gather_variables(loss, solver, client, tmp_path):
    X, Y = sequences()

    def fit(max_iter, path):
        place = Checkpoint(tmp_path / path, iterations=1)
        settings = {"loss": loss, "tol": None, "random_state": 0, "max_iter": max_iter}
        return SequenceLabeler(solver=solver, checkpoint=place, **settings).fit(X, Y)

    with on(client), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of too few iterations
        whole = fit(8, "whole")
        fit(4, "half")
        resumed = fit(8, "half")
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)
    with pytest.raises(ArgumentError, match="workers"):
        fit(9, "half")  # one process has no such variables


@pytest.mark.parametrize(("loss", "solver"), FITS)
def test_the_optimum_survives_workers_that_are_killed(loss, solver, mortal):
    X, Y = sequences()
    settings = {"loss": loss, "solver": solver, "max_iter": 10_000, "random_state": 0}
    here = SequenceLabeler(**settings, tol=TOL / 10).fit(X, Y)
    killed = []

    def kill(event):
        if event.iteration in (3, 7, 12):
            pids = mortal.run(os.getpid, on_error="ignore")
            killed.append(sorted(pids)[len(killed) % len(pids)])
            os.kill(pids[killed[-1]], signal.SIGKILL)

    with on(mortal):
        there = SequenceLabeler(**settings, tol=TOL, callbacks=[kill]).fit(X, Y)
    assert len(killed) == 3
    assert there.converged_
    assert there.value_ == pytest.approx(here.value_, rel=2 * TOL)
