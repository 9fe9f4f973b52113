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


def undocumented(paths, blank=False):
    """Number of lines without docstrings, and without modules that hold parts of docstrings."""
    return sum(_undocumented(path, blank) for path in paths if not path.stem.endswith("doc"))


def _undocumented(path, blank):
    text = text_of(path)
    said = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, _FUNCTIONS | ast.ClassDef | ast.Module)
        and ast.get_docstring(node, clean=False) is not None
        for line in range(node.body[0].lineno, node.body[0].end_lineno + 1)
    }
    rest = [line for i, line in enumerate(text.splitlines(), 1) if i not in said]
    return sum(1 for line in rest if blank or line.strip())


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


def test_docstrings_are_not_counted(tmp_path):
    path = tmp_path / "module.py"
    path.write_text('"""Say."""\n\n\ndef f(a):\n    """Say.\n\n    More.\n    """\n    return a\n')
    assert undocumented([path], blank=True) == 4
    assert undocumented([path]) == 2


def test_there_are_enough_tests():
    """Blank lines count on neither side; docstrings do not count, whose examples are tests too."""
    assert lines(TESTS) >= 0.7 * undocumented([*SOURCE, *PAPERS])


def test_class_names_occur_once():
    assert repeated_classes(SOURCE) == {}


#: Methods with one underscore that are public by convention: those of named tuples and displays.
BY_CONVENTION = {"_asdict", "_replace", "_exit", "_repr_html_", "_repr_mimebundle_"}


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def private_calls(path):
    """Calls of private functions and methods of others, and imports of private names."""
    for node in ast.walk(ast.parse(text_of(path))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            own = isinstance(node.func.value, ast.Name) and node.func.value.id in ("self", "cls")
            if is_private(name) and not own and name not in BY_CONVENTION:
                yield f"{name_of(path)}:{node.lineno} {name}"
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("structlearn"):
            private = {each.name for each in node.names if is_private(each.name)} - {"_src"}
            yield from (f"{name_of(path)}:{node.lineno} {name}" for name in private)


def test_tests_call_no_private_functions():
    assert [call for path in TESTS for call in private_calls(path)] == []


def is_number(value):
    """Whether an expression is a number, or made of numbers alone."""
    if isinstance(value, ast.Constant):
        return type(value.value) in (int, float)
    if isinstance(value, ast.BinOp):
        return is_number(value.left) and is_number(value.right)
    return isinstance(value, ast.UnaryOp) and is_number(value.operand)


def silent_constants(path):
    """Numbers at the top of a module without a word beside or above them."""
    text = text_of(path).splitlines()
    for node in ast.parse("\n".join(text)).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and is_number(node.value):
            told = "#" in text[node.lineno - 1] or text[node.lineno - 2].startswith("#")
            if not told:
                yield f"{name_of(path)}:{node.lineno} {text[node.lineno - 1]}"


def test_numbers_have_reasons():
    assert [constant for path in SOURCE for constant in silent_constants(path)] == []


def test_the_installed_source_does_not_grow():
    """Lower the number with every simplification; raise it only for a new capability.

    Layers of PyTorch and what runs on cards came later, and are counted by themselves. What is said
    in docstrings is not counted.
    """
    layers = [path for path in SOURCE if path.parent.name in ("torch", "cuda")]
    rest = [path for path in SOURCE if path not in layers]
    assert undocumented(rest, blank=True) <= 46_560
    assert undocumented(layers, blank=True) <= 5_150
