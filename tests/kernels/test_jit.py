"""Kernels come when they are called: as plain Python for small jobs, else compiled."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from side_by_side import together
from structlearn._src.kernels import jit

HELP = """
import sys
import numpy as np
from structlearn._src.kernels import jit
from structlearn._src.kernels.chain import viterbi
from structlearn._src.kernels.text import strings
def best(n, K=3):
    nodes, edges = np.arange(float(n * K)).reshape(n, K) % 7, np.eye(K)[None]
    values, labels = np.empty(1), np.empty(n, np.int64)
    viterbi.max_product(nodes, edges, np.array([0, n]), values, labels)
    return values, labels
"""

#: Everything that small calls may do in plain Python, told in bits.
WORK = """
import hashlib
from structlearn import RuleModel
from structlearn._src.estimators.structured.sequence import SequenceLabeler
from structlearn._src.text.columns import add_column, parse_columns
def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()
rng = np.random.default_rng(0)
words = rng.integers(4, size=(12, 2))
text = b"".join(b"w%d t%d\\n%s" % (a, b, b"\\n" * (i % 3 == 0)) for i, (a, b) in enumerate(words))
columns = parse_columns(text)
print(digest(columns.ids, columns.offsets, columns.ends))
print(add_column(text, columns, columns.ids[:, 1], columns.vocabularies[1].list()))
for n in (1, 5, 40):
    nodes, edges = rng.normal(size=(n, 4)), rng.normal(size=(1, 4, 4))
    values, labels = np.empty(1), np.empty(n, np.int64)
    viterbi.max_product(nodes, edges, np.array([0, n]), values, labels)
    print(digest(values, labels))
model = RuleModel("3: P(A) & Q(B) -> Q(A) ^2\\n1: !Q(A)\\n2: P(A) -> Q(A)\\nQ(+A) >= 1 .", tol=1e-9)
model.observe(P=[(name, value) for name, value in zip("abcd", rng.random(4).tolist())])
model.target(Q=[(name,) for name in "abcd"])
result = model.result_
print(digest(result.y), result.energy.hex(), result.lower.hex(), result.status)
"""


def run(code):
    """What a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-c", HELP + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_small_calls_do_without_numba_and_large_ones_bring_it():
    code = """
print(best(5)[1].tolist(), "numba" in sys.modules)
best(5000)
print("numba" in sys.modules, type(viterbi.max_product).__name__, type(viterbi.best_path).__name__)
print(best(5)[1].tolist(), viterbi.k_best.__name__)
"""
    first, second, third = run(code)
    assert first == "[2, 2, 2, 2, 2] False" or first.endswith("False")
    assert second == "True CPUDispatcher CPUDispatcher"
    assert third == f"{first.removesuffix(' False')} k_best"


def test_small_calls_that_add_up_bring_numba():
    code = """
jit._spent = jit._PATIENCE
best(5)
print("numba" in sys.modules)
"""
    assert run(code) == ["True"]


def test_the_same_bits_with_and_without_numba():
    plain = run(WORK + "print('numba' in sys.modules)")
    compiled = run("import numba\n" + WORK + "print('numba' in sys.modules)")
    assert (plain.pop(), compiled.pop()) == ("False", "True")
    assert plain == compiled


def test_a_kernel_has_the_attributes_of_what_it_stands_for():
    @jit.kernel
    def double(x):
        """Twice as much."""
        return 2 * x

    assert (double.__name__, double.__doc__) == ("double", "Twice as much.")
    assert double(3) == 6
    assert double.signatures
    assert double.py_func(4) == 8
    with pytest.raises(AttributeError):
        _ = double.__array__


@jit.inner
def _next(x):
    return x + 1


@jit.lean
def _count(values):
    for i in range(values.size):
        values[i] = _next(values[i])


def test_threads_may_come_first_together():
    arrays = [np.zeros(50, np.int64) for _ in range(8)]
    together(lambda me: _count(arrays[me]), len(arrays))
    assert all((array == 1).all() for array in arrays)
