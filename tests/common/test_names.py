"""Every list of words has those of the table that says what they mean."""

from __future__ import annotations

import subprocess
import sys

import pytest

from structlearn._src.common import names
from structlearn._src.inference import names as inference_names
from structlearn._src.inference.pick import METHODS
from structlearn._src.learn.loss import NAMED
from structlearn._src.metrics.ranking import METRICS
from structlearn._src.solve.pick import ONLINE, SOLVERS
from structlearn._src.solve.stochastic import RULES

TABLES = {
    "LOSSES": NAMED,
    "METRICS": METRICS,
    "STEP_RULES": RULES,
    "SOLVERS": ("auto", *SOLVERS),
    "FIELD_DRIVERS": ("auto", "bilevel", *names.DRIVERS),
}


@pytest.mark.parametrize("name", list(TABLES))
def test_words_are_those_of_the_library(name):
    assert sorted(getattr(names, name)) == sorted(TABLES[name])


def test_words_of_inference_are_those_of_its_methods():
    assert sorted(inference_names.METHODS) == sorted(METHODS)


def test_online_solvers_are_solvers_too():
    assert set(ONLINE) < set(names.SOLVERS)
    assert set(names.OLD_DRIVERS.values()) <= set(names.DRIVERS)


def test_no_word_occurs_twice():
    lists = [value for value in vars(names).values() if isinstance(value, tuple)]
    assert len(lists) > 10
    assert all(len(set(words)) == len(words) for words in lists)


def test_names_import_nothing():
    code = (
        "import sys; before = set(sys.modules)\n"
        "import structlearn._src.common.names\n"
        "print([n for n in set(sys.modules) - before if not n.startswith('structlearn')])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = told.stdout
    assert not any(heavy in loaded for heavy in ("numpy", "numba", "scipy", "sklearn", "argparse"))
