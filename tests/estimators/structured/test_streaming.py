"""Learning from column files that need not fit into memory: the optimum, in bounded memory."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

from structlearn import ColumnFiles, GraphLabeler, SequenceLabeler, load, read_columns, save
from structlearn._src.common.errors import ArgumentError

TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,0]\nU2:%x[0,1]/%x[0,0]\nB"


def write(path, n=400, seed=0):
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n):
        label = 0
        for _ in range(rng.integers(2, 18)):
            label = (label + int(rng.integers(2))) % 3
            word = 3 * int(rng.zipf(1.5) % 40) + (label if rng.random() < 0.7 else 0)
            lines.append(f"w{word} t{(label + (rng.random() < 0.2)) % 3} L{label}")
        lines.append("")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(tmp_path_factory.mktemp("columns") / "train.txt")


def files_of(path, limit=1_500_000):
    files = ColumnFiles(path, memory_limit="1GB")
    files.store.limit = limit  # several shards, whose memories lie in files
    return files


def whole(path):
    columns = read_columns(path)
    words = columns._replace(ids=columns.ids[:, :-1], vocabularies=columns.vocabularies[:-1])
    return words, columns.labels()


@pytest.mark.parametrize(
    "options",
    [
        {"features": "sparse"},
        {"features": "dense", "forbidden": [("L0", "L2")]},
        {"features": "sparse", "min_count": 3, "transitions": "none"},
    ],
)
def test_the_optimum_is_that_of_all_data_in_memory(path, options):
    X, Y = whole(path)
    expected = SequenceLabeler(template=TEMPLATE, tol=1e-7, **options).fit(X, Y)
    found = SequenceLabeler(template=TEMPLATE, tol=1e-4, random_state=0, **options)
    found.fit(files_of(path), None)
    assert found.converged_
    assert len(found.weights_) == len(expected.weights_)
    assert sorted(found.plan_.reader.names()) == sorted(expected.plan_.reader.names())
    assert expected.value_ * (1 - 1e-6) <= found.value_ <= expected.value_ * (1 + 1e-4)
    pairs = zip(found.predict(X), expected.predict(X), strict=True)
    assert np.mean([np.mean(a == b) for a, b in pairs]) > 0.99


def test_the_same_seed_gives_the_same_bits_and_files_keep_it(path, tmp_path):
    fits = []
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SequenceLabeler(template=TEMPLATE, features="sparse", max_iter=2, tol=None)
            fits.append(model.set_params(random_state=3).fit(files_of(path), None))
    np.testing.assert_array_equal(fits[0].weights_, fits[1].weights_)
    save(fits[0], tmp_path / "model")
    X, _ = whole(path)
    for a, b in zip(load(tmp_path / "model").predict(X), fits[0].predict(X), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"hidden": "node"}, "hidden"),
        ({"solver": "lbfgs"}, "solver"),
        ({"loss": "hinge"}, "smooth"),
        ({"class_weight": "balanced"}, "class_weight"),
        ({"l1_ratio": 0.5}, "l1_ratio"),
        ({"template": "U0:%x[0,0]\nB1:%x[0,0]"}, "begin with B"),
        ({"template": "U0:%x[0,2]"}, "column"),
    ],
)
def test_what_streams_cannot_learn_is_refused(path, options, word):
    with pytest.raises(ValueError, match=word):
        SequenceLabeler(**{"template": TEMPLATE, **options}).fit(files_of(path), None)


def test_labels_and_other_estimators_are_refused(path):
    with pytest.raises(ArgumentError, match="give None as Y"):
        SequenceLabeler().fit(files_of(path), [["a"]])
    with pytest.raises(ArgumentError, match="GraphLabeler cannot read ColumnFiles"):
        GraphLabeler().fit(files_of(path), None)
    with pytest.raises(ArgumentError, match="too low for the weights"):
        SequenceLabeler(template=TEMPLATE).fit(files_of(path, 30_000), None)


CODE = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
import memory
warnings.simplefilter("ignore")
found = memory.chains(int(sys.argv[2]), "512MB", 1)
print(found["tokens"], found["fit GB"])
"""


def test_resident_memory_does_not_grow_with_the_tokens():
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0" or not os.path.exists("/proc/self/status"):
        pytest.skip("needs compiled kernels and /proc")
    here = os.path.join(os.path.dirname(__file__), "..", "..", "..", "benchmarks")
    found = []
    for size in (400_000, 1_200_000):
        done = subprocess.run(
            [sys.executable, "-c", CODE, here, str(size)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found.append([float(word) for word in done.stdout.split()])
    (few, first), (many, second) = found
    assert many > 1.9 * few
    assert second < 0.512
    assert second - first < 0.06  # gigabytes; the features and memories alone are more
