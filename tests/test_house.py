"""House rules that a tool can check: sizes of functions and files, names of classes, proportions.

Lengths are those of the code: without the docstring, with comments and blank lines inside.
"""

from __future__ import annotations

import ast
import collections
import pathlib
import statistics

import pytest

ROOT = pathlib.Path(__file__).parents[1]
SOURCE = sorted((ROOT / "src").rglob("*.py"))
PAPERS = sorted((ROOT / "papers").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
LONGEST_FUNCTION, LONGEST_FILE = 60, 400

_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def text_of(path):
    return path.read_text(encoding="utf-8")


def name_of(path):
    return str(path.relative_to(ROOT))


def length(function):
    """Lines from the ``def`` to the end, without the docstring."""
    documented = ast.get_docstring(function, clean=False) is not None
    words = function.body[0]
    lines = function.end_lineno - function.lineno + 1
    return lines - (words.end_lineno - words.lineno + 1 if documented else 0)


def functions(paths):
    """Length of every function by file and name."""
    return {
        f"{name_of(path)}:{node.lineno} {node.name}": length(node)
        for path in paths
        for node in ast.walk(ast.parse(text_of(path)))
        if isinstance(node, _FUNCTIONS)
    }


def lines(paths, blank=False):
    """Number of lines, with blank ones or without."""
    return sum(1 for path in paths for line in text_of(path).splitlines() if blank or line.strip())


def repeated_classes(paths):
    """Classes at the top of a module whose name another module has too."""
    homes = collections.defaultdict(list)
    for path in paths:
        for node in ast.parse(text_of(path)).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name_of(path))
    return {name: found for name, found in homes.items() if len(found) > 1}


@pytest.fixture(scope="module")
def lengths():
    return functions([*SOURCE, *PAPERS])


def test_functions_are_short(lengths):
    ordered = sorted(lengths.values())
    assert len(ordered) > 2000  # all of them were found
    assert statistics.median(ordered) <= 6
    assert ordered[int(0.9 * len(ordered))] <= 20
    assert {name: n for name, n in lengths.items() if n > LONGEST_FUNCTION} == {}


def test_files_are_short():
    sizes = {name_of(path): lines([path], blank=True) for path in [*SOURCE, *PAPERS]}
    assert {name: n for name, n in sizes.items() if n > LONGEST_FILE} == {}


def test_test_files_have_names_of_their_own():
    """Modules of tests are imported by their name alone."""
    counted = collections.Counter(path.name for path in TESTS if path.name != "conftest.py")
    assert [name for name, n in counted.items() if n > 1] == []


def test_what_is_measured_is_what_is_meant():
    code = 'def f(a):\n    """Say.\n\n    More.\n    """\n    # why\n    return a\n'
    assert length(ast.parse(code).body[0]) == 3
    assert length(ast.parse("def f(a):\n    return a").body[0]) == 2


def test_there_are_enough_tests():
    assert lines(TESTS) >= 0.7 * lines([*SOURCE, *PAPERS])


def test_class_names_occur_once():
    assert repeated_classes(SOURCE) == {}


def test_the_installed_source_does_not_grow():
    """Lower the number with every simplification; raise it only for a new capability.

    Layers of PyTorch and what runs on cards came later, and are counted by themselves.
    """
    layers = [path for path in SOURCE if path.parent.name in ("torch", "cuda")]
    rest = [path for path in SOURCE if path not in layers]
    assert lines(rest, blank=True) <= 46_000
    assert lines(layers, blank=True) <= 5_300
