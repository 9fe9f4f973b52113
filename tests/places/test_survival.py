"""Workers that are killed: their work is done by others, to the same result."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from structlearn import RuleModel, SequenceLabeler, on
from structlearn.errors import PlaceError


@pytest.fixture
def client(mortal):
    return mortal


def sequences(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(2, 7), 3)) for _ in range(n)]
    return X, [(x[:, 0] > 0).astype(int) for x in X]


def kill_one(client, n=0):
    """Kill a worker as the system would that is out of memory; return its address."""
    pids = client.run(os.getpid, on_error="ignore")  # another may just have died
    worker = sorted(pids)[n % len(pids)]
    os.kill(pids[worker], signal.SIGKILL)
    return worker


class KillingCallback:
    """Kills a worker after some iterations."""

    def __init__(self, client, *iterations):
        self.client = client
        self.iterations = iterations
        self.killed = []

    def __call__(self, event):
        if event.iteration in self.iterations:
            self.killed.append(kill_one(self.client, len(self.killed) % 2))


def test_a_fit_survives_workers_that_are_killed(client):
    X, Y = sequences()
    settings = {"solver": "lbfgs", "tol": 1e-9}
    here = SequenceLabeler(**settings).fit(X, Y)
    killing = KillingCallback(client, 2, 4, 6)
    with on(client):
        there = SequenceLabeler(**settings, callbacks=[killing]).fit(X, Y)
    assert len(killing.killed) == 3
    assert there.converged_
    assert there.value_ == pytest.approx(here.value_, rel=1e-8)
    np.testing.assert_allclose(there.weights_, here.weights_, atol=1e-4)


def test_tasks_survive_workers_that_are_killed(client, tmp_path):
    def suicidal(item):
        marker = tmp_path / str(item)
        if item == 2 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item**2

    with on(client) as place:
        assert place.map(suicidal, range(6)) == [0, 1, 4, 9, 16, 25]


def test_work_that_kills_every_worker_is_named(client):
    def deadly(item):
        if item == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    with on(client) as place, pytest.raises(PlaceError, match="died over part 1"):
        place.map(deadly, range(3))
    with on(client) as place:  # and those that came after it work
        assert place.map(abs, [-1, 1]) == [1, 1]


# ---- rules -------------------------------------------------------------------------------

RULES = """
1: Knows(A, B) & Trusts(A, B) & Knows(B, C) & Trusts(B, C) & (A != C) -> Trusts(A, C) ^2
0.5: Knows(A, B) & Trusts(A, B) -> Trusts(B, A)
0.3: !Trusts(A, B) ^2
2: Knows(A, B) & Kind(B) -> Trusts(A, B) ^2
"""


def trust(n=14, seed=0):
    rng = np.random.default_rng(seed)
    names = [f"p{i}" for i in range(n)]
    pairs = [(a, b) for a in names for b in names if a != b]
    model = RuleModel(RULES)
    model.observe(
        Knows=[pair for pair in pairs if rng.random() < 0.5],
        Kind=[(name, round(float(rng.random()), 3)) for name in names],
    )
    truth = {"Trusts": [(*pair, float(rng.random() < 0.5)) for pair in pairs]}
    return model.target(Trusts=pairs), truth


def kill_at(place, moments):
    """Let a worker die before each of some questions is asked; return the questions so far."""
    ask = place.ask
    asked = []
    pids = {}

    def ask_and_kill(work, shared, tree):
        asked.append(work.__name__)
        if len(asked) in moments:
            home = tree[len(asked) % len(tree)][0]
            pids.update(place.client.run(os.getpid, on_error="ignore"))
            os.kill(pids[home], signal.SIGKILL)
        return ask(work, shared, tree)

    place.ask = ask_and_kill
    return asked


@pytest.mark.parametrize("moments", [(2, 8, 60), (30, 80, 110)])
def test_rules_survive_three_workers_that_are_killed(client, moments):
    here, _ = trust()
    values = here.predict(frame="dict")["value"]
    with on(client) as place:
        place.least_forms = 0
        asked = kill_at(place, moments)
        there, _ = trust()
        found = there.predict(frame="dict")["value"]
    assert len(asked) > max(moments)
    assert there.result_.converged
    assert there.result_.energy == pytest.approx(here.result_.energy, rel=1e-5)
    np.testing.assert_allclose(found, values, atol=1e-2)


def test_weights_of_rules_survive_three_workers_that_are_killed(client):
    settings = {"driver": "subgradient", "max_iter": 20, "tol": None}
    model, truth = trust()
    here = model.fit(truth, **settings)
    with on(client) as place:
        asked = kill_at(place, (5, 10, 15))
        model, truth = trust()
        there = model.fit(truth, **settings)
    assert len(asked) > 15
    # Inference that begins anew ends elsewhere within its tolerance, and weights go down to 0.002.
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=0.02, atol=0.002)
