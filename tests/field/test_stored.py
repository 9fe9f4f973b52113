"""Fields whose forms lie in files: the same bits, in bounded memory."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from hinge_fields import random_field
from structlearn._src.common.errors import GraphError
from structlearn._src.common.memory import Store
from structlearn._src.estimators.fields.hinge_field import HingeField
from structlearn._src.field.admm import solve_map
from structlearn._src.field.blocks import FieldBlocks
from structlearn._src.field.consensus import Consensus
from structlearn._src.field.hinges import DTYPES, Hinges

WEIGHTS = np.array([0.5, 1.0, 2.0, 0.1, 0.0])


def stored(hinges, limit=2**16):
    arrays = {name: getattr(hinges, name) for name in DTYPES}
    return Hinges.stored(Store(limit), arrays, hinges.n_variables, hinges.n_groups)


def many(seed):
    return random_field(np.random.default_rng(seed), n=40, m=300, hard=True)


@pytest.mark.parametrize("seed", range(6))
def test_the_best_values_are_the_same_bits(seed):
    hinges = many(seed)
    expected = solve_map(hinges, WEIGHTS, n_jobs=1)
    found = solve_map(stored(hinges), WEIGHTS, n_jobs=2)
    assert found.newton_steps == expected.newton_steps
    assert (found.energy, found.lower) == (expected.energy, expected.lower)
    np.testing.assert_array_equal(found.y, expected.y)
    np.testing.assert_array_equal(found.multipliers, expected.multipliers)
    again = solve_map(stored(hinges), WEIGHTS, start=found)
    assert again.iterations < max(found.iterations, 11)


def test_tasks_are_small():
    hinges = many(0)
    blocks = FieldBlocks(stored(hinges), n_jobs=2, grain=2)
    calls = []
    blocks.over_forms(lambda borders, first, last: calls.append((first, last)))
    assert blocks.alone
    assert len(calls) > 5
    assert [first for first, _ in calls[1:]] == [last for _, last in calls[:-1]]


@pytest.mark.parametrize("options", [{}, {"driver": "paired", "surrogate": "entropy"}])
def test_learning_gives_the_same_weights(options):
    hinges = many(3)
    truth = np.random.default_rng(0).random(hinges.n_variables).round()
    truth[:5] = np.nan  # those in hard forms
    weights = [
        HingeField(each, weights=WEIGHTS, n_jobs=1)
        .fit(truth, max_iter=5, tol=None, **options)
        .weights_
        for each in (hinges, stored(hinges))
    ]
    np.testing.assert_array_equal(*weights)
    assert (weights[0] != WEIGHTS).any()


def test_forms_in_files_are_checked():
    hinges = many(0)
    arrays = {name: getattr(hinges, name).copy() for name in DTYPES}
    arrays["variables"][hinges.offsets[7]] = 40
    with pytest.raises(GraphError, match="variables"):
        Hinges.stored(Store(2**16), arrays, 40, 5)


def test_steps_of_admm_are_the_same_bits():
    hinges = many(1)
    states = []
    for each in (hinges, stored(hinges)):
        consensus = Consensus(each, relaxation=1.6, n_jobs=1, grain=7)
        states.append(consensus.run(WEIGHTS, consensus.begin(WEIGHTS), 9))
    for first, second in zip(*states, strict=True):
        np.testing.assert_array_equal(first, second)


CODE = """
import pathlib, sys
import numpy as np
from structlearn._src.common.memory import ArrayWriter, Store
from structlearn._src.field.admm import solve_map
from structlearn._src.field.hinges import DTYPES, Hinges
def rss():
    status = pathlib.Path("/proc/self/status").read_text()  # getrusage counts the parent's too
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
store, n, pieces = Store(40 * 10**6), 20_000, int(sys.argv[1])
def some(rng, first):
    m = 50_000
    start = rng.integers(n, size=m)
    variables = np.column_stack([start, (start + rng.integers(1, n, size=m)) % n]).ravel()
    parts = [2 * (first + np.arange(1, m + 1)), variables, rng.normal(size=2 * m)]
    return [*parts, rng.normal(size=m), np.zeros(m), np.full(m, 2), np.zeros(m)]
writers = [ArrayWriter(store, dtype) for dtype in DTYPES.values()]
writers[0].append(np.zeros(1))
rng = np.random.default_rng(0)
for piece in range(pieces):
    for writer, part in zip(writers, some(rng, 50_000 * piece)):
        writer.append(part)
arrays = {name: writer.finish() for name, writer in zip(DTYPES, writers)}
small = Hinges(np.arange(3), [0, 1], [1.0, 1.0], [1.0, 2.0], [0, 0], [2, 2], [0, 0], n, 1)
solve_map(small, [1.0], n_jobs=1)  # what is compiled or loaded once
field = Hinges.stored(store, arrays, n, 1)
before = rss()
solve_map(field, [1.0], max_iter=60)
print(sum(array.nbytes for array in arrays.values()) / 2**20, rss() - before)
"""


def test_resident_memory_does_not_grow_with_the_forms():
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0" or not os.path.exists("/proc/self/status"):
        pytest.skip("needs compiled kernels and /proc")
    found = []
    for pieces in (10, 30):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(CODE), str(pieces)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found.append([float(word) for word in done.stdout.split()])
    (_, first), (forms, second) = found
    assert forms > 60  # megabytes of forms, and more of what ADMM and Newton steps hold
    assert second < first + 12
    assert second < 40
