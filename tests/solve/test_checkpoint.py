"""Runs that end and go on as if they had not."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError, FormatError
from structlearn._src.files import store
from structlearn._src.graph.batch import Sequences
from structlearn._src.learn.world import Budget
from structlearn._src.model.model import Examples
from structlearn._src.model.term import Sparse
from structlearn._src.solve import checkpoint as module
from structlearn._src.solve.checkpoint import Checkpoint, fingerprint
from structlearn._src.solve.descent import Descent
from structlearn._src.solve.drivers import Cccp, Paired
from structlearn._src.solve.lbfgs import Lbfgs, Owlqn
from structlearn._src.solve.loop import run
from structlearn._src.solve.stochastic import Stochastic
from structlearn._src.text.labels import Forbidden
from structlearn._src.text.rows import Rows
from toys import Hidden, Kinks, Logistic, Slow

CASES = {
    "lbfgs": (Lbfgs(memory=4), Logistic(0, spread=30.0)),
    "owlqn": (Owlqn(), Logistic(0, l1_ratio=0.5, spread=30.0)),
    "descent": (Descent(), Logistic(0, spread=30.0)),
    "batches": (Stochastic("decaying", batch_size=7, average=0.5), Kinks(0)),
    "adagrad": (Stochastic("adagrad"), Kinks(0)),
    "pegasos": (Stochastic("pegasos", batch_size=1, evaluate=True), Kinks(0)),
    "cccp": (Cccp(Lbfgs(), inner_iter=3, inner_tol=1e-12), Hidden(0)),
    "cccp over batches": (Cccp(Stochastic("root", batch_size=6), 3, inner_tol=1e-12), Hidden(0)),
    "paired": (Paired(Stochastic("adagrad", 0.1, average=0.5)), Slow(0)),
}


def solve(case, max_iter=14, seed=3, **options):
    solver, toy = CASES[case]
    rng = np.random.default_rng(seed)
    weights = np.linspace(-0.1, 0.1, toy.n_weights)
    return run(solver, toy, weights, max_iter=max_iter, tol=None, rng=rng, **options)


def assert_same(a, b):
    np.testing.assert_array_equal(a.weights, b.weights)
    assert a.value == b.value
    assert (a.status, a.n_iter, a.converged) == (b.status, b.n_iter, b.converged)
    keep = [0, 2, 3, 4]  # all but seconds
    np.testing.assert_array_equal(a.history.table[:, keep], b.history.table[:, keep])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("after", [1, 6])
def test_a_restart_changes_nothing(tmp_path, case, after):
    place = Checkpoint(tmp_path / "run", iterations=1)
    whole = solve(case)
    assert solve(case, after, checkpoint=place).n_iter == after
    rest = solve(case, seed=99, checkpoint=place)  # the seed comes from the file
    assert_same(rest, whole)
    assert (np.diff(rest.history.seconds) >= 0.0).all()
    assert_same(solve(case, checkpoint=place), whole)  # once more, with nothing left to do


@pytest.mark.parametrize("case", ["lbfgs", "cccp over batches", "paired"])
def test_a_killed_run_goes_on(tmp_path, case):
    """A process that kills itself with -9 in the middle of a step."""
    script = (
        "import os, signal, sys\n"
        "from test_checkpoint import Checkpoint, solve\n"
        "def kill(event):\n"
        "    if event.iteration == 8: os.kill(os.getpid(), signal.SIGKILL)\n"
        "place = Checkpoint(sys.argv[2], iterations=3)\n"
        "solve(sys.argv[1], checkpoint=place, callbacks=[kill])\n"
    )
    path = tmp_path / "run"
    here = str(pathlib.Path(__file__).parent)
    paths = os.pathsep.join([here, *filter(None, sys.path)])  # of this library, not of another
    done = subprocess.run(
        [sys.executable, "-c", script, case, str(path)],
        env={**os.environ, "PYTHONPATH": paths}, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL
    assert store.read(path, module.SCHEMA)[1]["iteration"] == 6
    assert_same(solve(case, checkpoint=Checkpoint(path, iterations=3)), solve(case))


def test_the_generator_goes_on_too(tmp_path):
    """Whoever draws after a restarted run draws what it would have drawn."""
    drawn = []
    for max_iter in (3, 6):
        rng = np.random.default_rng(1 if max_iter == 3 else 77)
        run(
            Stochastic(batch_size=4), Kinks(0), np.zeros(3), max_iter=max_iter, rng=rng,
            tol=None, checkpoint=tmp_path / "run",
        )  # fmt: skip
        drawn.append(rng.random())
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("kind", ["MT19937", "Philox", "SFC64"])
def test_any_generator_can_be_saved(tmp_path, kind):
    draws = []
    for _ in range(2):
        rng = np.random.Generator(getattr(np.random, kind)(5))
        solver, toy = CASES["batches"]
        run(solver, toy, np.zeros(3), max_iter=2, rng=rng, checkpoint=tmp_path / "run")
        draws.append(rng.random())
    assert draws[0] == draws[1]


def test_worlds_go_on_from_their_messages(tmp_path):
    """An objective that remembers, under a solver that knows nothing of it."""

    def go(max_iter, place=None):
        toy = Slow(0).with_budget(Budget(2))
        solver = Stochastic("fixed", 0.01)
        return run(solver, toy, np.zeros(6), max_iter=max_iter, tol=None, checkpoint=place)

    go(4, tmp_path / "run")
    np.testing.assert_array_equal(go(9, tmp_path / "run").weights, go(9).weights)


def test_an_interrupt_leaves_the_last_whole_step(tmp_path):
    place = Checkpoint(tmp_path / "run", iterations=4)

    def interrupt(event):
        if event.iteration == 6:
            raise KeyboardInterrupt

    assert solve("lbfgs", checkpoint=place, callbacks=[interrupt]).ended == "interrupted"
    assert store.read(place.path, module.SCHEMA)[1]["iteration"] == 4
    assert_same(solve("lbfgs", checkpoint=place), solve("lbfgs"))


def test_a_converged_run_stays_as_it_is(tmp_path):
    toy = Logistic(0)
    fits = [run(Lbfgs(), toy, np.zeros(6), tol=1e-8, checkpoint=tmp_path / "run") for _ in range(2)]
    assert fits[0].converged
    assert_same(*fits)


def test_when_to_save(tmp_path):
    by_count, by_time = Checkpoint(tmp_path / "a", iterations=3), Checkpoint(tmp_path / "a")
    assert [by_count.due(i, 1e9) for i in (1, 2, 3)] == [False, False, True]
    assert [by_time.due(3, seconds) for seconds in (0.0, 59.0, 60.0)] == [False, False, True]


# ---- what is refused ---------------------------------------------------------------------


def test_another_problem_is_refused(tmp_path):
    path = tmp_path / "run"
    toy, rest = Logistic(0), {"max_iter": 3, "tol": None}

    def go(solver=None, toy=toy, **problem):
        run(
            solver or Lbfgs(), toy, np.zeros(toy.n_weights),
            checkpoint=Checkpoint(path, problem=problem), **rest,
        )  # fmt: skip

    go(C=1.0)
    before = path.read_bytes()
    for words, solver, other, problem in [
        ("n_weights=6, but this run has n_weights=5", None, Logistic(0, d=5), {"C": 1.0}),
        ("n_examples=60, but this run has n_examples=70", None, Logistic(0, n=70), {"C": 1.0}),
        ("'memory': 10.* but .*'memory': 5", Lbfgs(memory=5), toy, {"C": 1.0}),
        ("'name': 'lbfgs'.* but .*'name': 'descent'", Descent(), toy, {"C": 1.0}),
        ("C=1.0, but this run has C=2.0", None, toy, {"C": 2.0}),
        ("C=1.0, but this run has C=None", None, toy, {}),
        ("loss=None, but this run has loss='log'", None, toy, {"C": 1.0, "loss": "log"}),
    ]:
        calls = other.calls
        with pytest.raises(ArgumentError, match=f"{words}.*give another file"):
            go(solver, other, **problem)
        assert other.calls == calls
        assert path.read_bytes() == before


def test_facts_are_told_by_what_they_hold(tmp_path):
    """Equal sets, arrays and generators are equal facts, whatever their order or their address."""
    path, toy = tmp_path / "run", Logistic(0)

    def go(names, seed, **more):
        facts = {
            "pairs": set(names),
            "frozen": frozenset(names),
            "array": np.arange(3000.0),
            "weights": {np.int64(1): np.float32(0.5), ("a", 1): None},
            "random_state": np.random.default_rng(seed),
        }
        place = Checkpoint(path, problem=facts | more)
        return run(Lbfgs(), toy, np.zeros(6), max_iter=2, tol=None, checkpoint=place)

    names = [f"name {i}" for i in range(50)]
    assert_same(go(names, 0), go(names[::-1], 1))
    changed = np.arange(3000.0)
    changed[1500] = 0.0
    for more in (
        {"pairs": set(names[1:])},
        {"array": changed},
        {"weights": {1: 0.5, ("a", 2): None}},
        {"random_state": 0},
    ):
        with pytest.raises(ArgumentError, match=f"saved with {next(iter(more))}="):
            go(names, 0, **more)


def digest(examples):
    """What a checkpoint knows examples by."""
    toy = SimpleNamespace(n_weights=3, n_examples=2, data=examples)
    return fingerprint(Checkpoint("run"), Lbfgs(), toy)["data"]


@pytest.mark.parametrize("bars", [False, True])
def test_every_part_of_the_examples_counts(bars):
    states = np.zeros(2, np.bool_), np.ones(2, np.bool_), np.zeros((2, 2), np.bool_)
    sequences = Sequences(np.array([0, 2, 3]), 2, Forbidden(*states) if bars else None)
    rows = Rows(np.array([0, 1, 1, 2]), np.array([0, 2], np.int32), np.empty(0), 3)
    whole = Examples(sequences, ((Sparse(rows),), (None,)), np.array([0, 1, -1]), np.ones(2))
    other = Sparse(rows._replace(columns=np.array([1, 2], np.int32)))
    changed = [
        replace(whole, structure=replace(sequences, offsets=np.array([0, 1, 3]))),
        replace(whole, structure=replace(sequences, forbidden=Forbidden(*states[::-1]))),
        replace(whole, structure=sequences.graphs()),
        replace(whole, inputs=((other,), (None,))),
        replace(whole, inputs=((None,), (Sparse(rows),))),
        replace(whole, labels=np.array([0, -1, 1])),
        replace(whole, weights=np.array([1.0, 2.0])),
        replace(whole, weights=np.array([[1.0, 1.0]])),
    ]
    digests = [digest(examples) for examples in (whole, *changed)]
    assert len(set(digests)) == len(digests)
    _ = whole.inputs[0][0].columns  # worked out on first use: no part of what is given
    assert digest(replace(whole, labels=whole.labels.copy())) == digests[0]


def test_settings_of_inner_solvers_count(tmp_path):
    path, toy = tmp_path / "run", Hidden(0)
    run(Cccp(Lbfgs()), toy, np.zeros(4), max_iter=1, checkpoint=path)
    with pytest.raises(ArgumentError, match="'memory': 7"):
        run(Cccp(Lbfgs(memory=7)), toy, np.zeros(4), max_iter=1, checkpoint=path)


def test_foreign_and_cut_files_are_refused(tmp_path):
    path = tmp_path / "run"
    path.write_bytes(b"something else")
    with pytest.raises(FormatError, match="run"):
        solve("lbfgs", checkpoint=path)
    assert path.read_bytes() == b"something else"
    store.write(path, {}, {}, "structlearn.model/1")
    with pytest.raises(FormatError, match=r"structlearn\.model/1"):
        solve("lbfgs", checkpoint=path)
    path.unlink()
    solve("lbfgs", checkpoint=path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(FormatError, match="cut short"):
        solve("lbfgs", checkpoint=path)


@pytest.mark.parametrize("lost", ["fingerprint", "rng", "report", "state", "value", "iteration"])
def test_facts_that_are_missing_are_a_damaged_checkpoint(tmp_path, lost):
    path = tmp_path / "run"
    solve("lbfgs", 4, checkpoint=path)
    arrays, meta = store.read(path, module.SCHEMA)
    schema = meta.pop("schema")
    for other in ({}, {lost: 7.5}):
        facts = {name: fact for name, fact in meta.items() if name != lost} | other
        store.write(path, arrays, facts, schema)
        if lost in ("value", "iteration") and other:
            continue  # numbers in their place
        with pytest.raises(FormatError, match="damaged"):
            solve("lbfgs", 4, checkpoint=path)
    for lost_array in ("best", "history"):
        kept = {name: array for name, array in arrays.items() if name != lost_array}
        store.write(path, kept, meta, schema)
        with pytest.raises(FormatError, match=lost_array):
            solve("lbfgs", 4, checkpoint=path)


def test_bad_places(tmp_path):
    with pytest.raises(ArgumentError, match="there is no folder"):
        solve("lbfgs", checkpoint=tmp_path / "none" / "run")
    for bad in ({"seconds": -1.0}, {"iterations": 0}):
        with pytest.raises(ArgumentError, match=next(iter(bad))):
            Checkpoint(tmp_path / "run", **bad)
