"""The package itself: every public name loads, is documented, and is all that pages use."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from enum import Enum
from pathlib import Path

import pytest

import structlearn

ROOT = Path(__file__).parents[1]
DOORS = {
    path.stem: importlib.import_module(f"structlearn.{path.stem}")
    for path in (ROOT / "src/structlearn").glob("[a-z]*.py")
}
OWN = sorted({*structlearn.__all__} - {"__version__", *DOORS})
PUBLIC = [*OWN, *(f"{door}.{name}" for door, module in DOORS.items() for name in module.__all__)]
LISTED = re.findall(r"^   ([\w.]+)$", (ROOT / "docs/api/index.rst").read_text(), re.MULTILINE)


def value_of(public):
    """The object behind a public name, as users reach it."""
    value = structlearn
    for part in public.split("."):
        value = getattr(value, part)
    return value


def parameters_of(value):
    """Names of what a function or a class takes."""
    if inspect.isclass(value) and issubclass(value, Exception | Enum):
        return []
    found = inspect.signature(value).parameters.values()
    return [p.name for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def said_of(value):
    """The docstring; of a class also what stands beside its fields, and what its bases say."""
    if not inspect.isclass(value):
        return inspect.getdoc(value)
    own = [each for each in value.__mro__ if each.__module__.startswith("structlearn")]
    beside = [line for each in own for line in inspect.getsource(each).splitlines() if "#:" in line]
    return "\n".join([*(inspect.getdoc(each) or "" for each in own), *beside])


# ---- names -------------------------------------------------------------------------------


def stub():
    """What type checkers are told: the module of every name."""
    tree = ast.parse((ROOT / "src/structlearn/__init__.pyi").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert imports == tree.body
    assert all(name.asname == name.name for node in imports for name in node.names)
    return {name.name: node.module for node in imports for name in node.names}


@pytest.mark.parametrize("name", OWN)
def test_every_public_name_loads_from_its_home(name):
    home = importlib.import_module(stub()[name])
    assert getattr(structlearn, name) is getattr(home, name)


def test_names_agree():
    assert set(dir(structlearn)) == set(stub()) == {*structlearn.__all__, *DOORS}
    assert set(structlearn.__all__) == {*OWN, "__version__"}
    assert {"Checkpoint", "SequenceLabeler", "read_columns"} <= set(structlearn.__all__)
    assert DOORS["errors"] is structlearn.errors


def test_a_star_brings_no_doors():
    """One of them has the name of a package that users import too."""
    names = {}
    exec("import math as torch\nfrom structlearn import *", names)
    assert names["torch"].__name__ == "math"
    assert names["SequenceLabeler"] is structlearn.SequenceLabeler


def test_public_names_are_few():
    """A name is a promise; what a user's program does not need stays private."""
    assert len({name.rpartition(".")[2] for name in PUBLIC} - {*DOORS["errors"].__all__}) <= 95


def test_other_names_are_unknown():
    with pytest.raises(AttributeError, match="no attribute 'fly'"):
        _ = structlearn.fly


@pytest.mark.parametrize("door", DOORS)
def test_doors_list_all_that_they_import(door):
    module = DOORS[door]
    assert {name for name in vars(module) if not name.startswith("_")} == set(module.__all__)
    assert module.__doc__


def test_a_name_means_one_thing():
    """Where two doors have the same name, it is the same thing."""
    meant = {}
    for public in PUBLIC:
        assert meant.setdefault(public.rpartition(".")[2], value_of(public)) is value_of(public)


def test_nothing_is_loaded_before_it_is_used():
    code = (
        "import sys, structlearn; structlearn.errors; "
        "print([name for name in sys.modules if name.startswith('structlearn')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(re.findall(r"'([\w.]+)'", done.stdout))
    assert loaded == {
        "structlearn", "structlearn.errors", "structlearn._src",
        "structlearn._src.common", "structlearn._src.common.errors",
    }  # fmt: skip


# ---- documentation -----------------------------------------------------------------------


def test_the_reference_lists_public_names_once():
    plain = {"extend.METHODS"}  # a dictionary
    doubled = {"errors.StructlearnError"}  # under its shorter name
    assert len(LISTED) == len(set(LISTED))
    assert set(LISTED) == set(PUBLIC) - plain - doubled


@pytest.mark.parametrize("public", LISTED)
def test_every_public_name_says_what_it_takes(public):
    value = value_of(public)
    text = said_of(value)
    assert text.splitlines()[0].endswith((".", ":"))
    if hasattr(value, "_fields") or public.startswith("extend."):  # records are read, not called
        return
    untold = [name for name in parameters_of(value) if not re.search(rf"\b{name}\b", text)]
    assert not untold, f"{public} does not say what {', '.join(untold)} is"


@pytest.mark.parametrize("public", LISTED)
def test_every_public_function_is_typed(public):
    value = value_of(public)
    if inspect.isfunction(value):
        given = inspect.signature(value)
        assert given.return_annotation is not given.empty
        assert all(p.annotation is not p.empty for p in given.parameters.values())


@pytest.mark.parametrize(
    "page",
    [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "docs/api").glob("*.rst")),
        *sorted((ROOT / "examples").glob("*.py")),
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_pages_and_examples_use_public_names_alone(page):
    text = page.read_text(encoding="utf-8")
    if page.name != "architecture.md":  # which shows where things lie
        assert "_src" not in text
    for name in re.findall(r"\{(?:class|func|meth)\}`~?structlearn\.([\w.]+)`", text):
        assert value_of(name)
