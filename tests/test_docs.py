"""What the documentation shows is so: code blocks, docstring examples and gallery scripts run."""

from __future__ import annotations

import doctest
import importlib
import pathlib
import pkgutil
import re
import tomllib

import pytest

import structlearn
from optional import import_or_skip
from structlearn._src.common.names import PAPERS_LOSSES
from structlearn._src.common.watch import Ending
from structlearn._src.files.datasets import ORIGINS
from structlearn._src.inference.names import Query
from structlearn._src.learn.loss import NAMED
from structlearn._src.solve.pick import DRIVERS, SOLVERS
from structlearn._src.solve.stochastic import RULES
from structlearn.extend import METHODS

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("*/*.md")),
]
MODULES = [
    m.name
    for m in pkgutil.walk_packages(structlearn.__path__, "structlearn.")
    if not m.name.endswith("__main__")
]
ESTIMATORS = [name for name in structlearn.__all__ if name.endswith(("Labeler", "Classifier"))]
SCRIPTS = sorted((ROOT / "examples").glob("*/plot_*.py"))

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMISE = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)


def code_of(page):
    """All Python blocks of a page as one script, on the lines that they have there."""
    text = page.read_text(encoding="utf-8")
    lines = [""] * text.count("\n")
    for block in _BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        code = block[1].splitlines()
        lines[first : first + len(code)] = code
    return "\n".join(lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_on_a_page_runs_and_prints_what_its_comments_say(
    page, tmp_path, monkeypatch, capsys, request
):
    code = code_of(page)
    if page.parent.name == "tutorials":  # on real data
        request.getfixturevalue("data_folder")
    monkeypatch.chdir(tmp_path)
    methods = dict(METHODS)
    try:
        exec(compile(code, str(page), "exec"), {"__name__": "__main__"})
    finally:  # a page adds one of its own
        METHODS.clear()
        METHODS.update(methods)
    assert capsys.readouterr().out.splitlines() == _PROMISE.findall(code)


def test_the_readme_has_examples():
    assert len(_PROMISE.findall(code_of(ROOT / "README.md"))) >= 5


@pytest.mark.parametrize("name", ["docs/guide/methods.md"])
def test_every_method_and_query_is_described(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    words = set(re.findall(r"`\"?(\w+)\"?`", text))
    assert words >= {*METHODS, *Query}


def quoted(name):
    """What a page sets in code, without quotes."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return set(re.findall(r"`\"?([\w-]+)\"?`", text))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("README.md", {*NAMED, *ESTIMATORS}),
        ("docs/guide/learning.md", set(NAMED)),
        ("docs/guide/solvers.md", {*SOLVERS, *DRIVERS, *RULES}),
    ],
)
def test_every_choice_is_described(name, words):
    assert quoted(name) >= words


def test_every_word_of_the_papers_has_its_place():
    text = (ROOT / "docs/guide/words.md").read_text(encoding="utf-8")
    for word in (
        "MSSVM", "LSSVM", "HCRF", "CRF", "SSVM", "M3E", "ModLat", "loss-augmented likelihood",
        "Fisher consistency", "GiSVM", "M2iHMM-1", "M2iHMM-2", "iSVM", "iM2EDM", "DPMNL", "MNL",
        "HL-MRF", "paired-dual", "min-sum", "factor marginal", "Volkovs", "Schwing", "Andres",
    ):  # fmt: skip
        assert word in text, word
    assert all(recipe in text for recipe in PAPERS_LOSSES.values())


def test_every_ending_error_and_warning_is_explained():
    text = (ROOT / "docs/faq.md").read_text(encoding="utf-8")
    names = {*Ending, *structlearn.errors.__all__}
    assert {name for name in names if not re.search(rf"\b{name}\b", text)} == set()


def test_messages_on_the_page_of_questions_are_those_of_the_library():
    """Readers look for the words of a message; what stands for dots is filled in by the code."""
    text = (ROOT / "docs/faq.md").read_text(encoding="utf-8").partition("## Frequent")[0]
    plain = re.sub(r"^```.*?^```$|`[^`]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    tables = re.findall(r"^\| status \|.*\n\|[-|]+\n((?:\|.*\n)+)", plain, re.MULTILINE)
    quoted = [" ".join(words.split()) for words in re.findall(r'"([^"]+)"', plain)]
    quoted += [row.split("|")[1].strip() for table in tables for row in table.splitlines()]
    source = "".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
    joined = re.sub(r'"\s*\n\s*f?"', "", source)
    assert len(quoted) > 20
    parts = [
        part
        for words in quoted
        for part in re.split(r"\.\.\.|; (?=inter)|: (?=after)|tol=|1\.2", words)
    ]
    assert [part for part in parts if part.strip(" ,:;.") not in joined] == []


def test_every_data_set_is_described_with_its_checksum():
    text = (ROOT / "docs/datasets.md").read_text(encoding="utf-8")
    assert {name for name in structlearn.datasets.__all__ if f"`{name}(" not in text} == set()
    found = dict(re.findall(r"^\| `([\w./]+)` \| `([0-9a-f]{64})` \|$", text, re.MULTILINE))
    kept = {path: file.checksum for path, file in ORIGINS.items() if not path.startswith("uai/")}
    assert found == kept


def test_every_experiment_is_described():
    catalogue = importlib.import_module("papers.catalogue")
    assert quoted("docs/guide/papers.md") >= set(catalogue.EXPERIMENTS)


def test_every_public_name_is_in_the_reference():
    index = (ROOT / "docs/api/index.rst").read_text(encoding="utf-8")
    listed = [line.strip() for line in index.splitlines() if line.startswith("   ")]
    names = {part for line in listed for part in line.split(".")}  # doors come before the dot
    assert names >= set(structlearn.__all__) - {"__version__"}


_FIGURE = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MODULE = re.compile(r"\b(?:[a-z]+/)+[a-z_*]+")


def figure_lines():
    """Lines of the figures of the architecture that name modules: these, and what follows."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    lines = [line for figure in _FIGURE.findall(text) for line in figure.splitlines()]
    found = [(_MODULE.findall(line), _MODULE.split(line)[-1]) for line in lines]
    return [(modules, rest) for modules, rest in found if modules]


def source_of(module):
    """Code of a module, of a folder of modules, or of all modules that a star stands for."""
    room = ROOT / "src/structlearn/_src"
    paths = [*room.glob(f"{module}.py"), *room.glob(f"{module.strip('*')}/**/*.py")]
    return "".join(path.read_text(encoding="utf-8") for path in paths)


def test_figures_of_the_architecture_name_what_is_there():
    assert len(figure_lines()) > 60
    for modules, rest in figure_lines():
        assert all(map(source_of, modules)), modules
        source = "".join(map(source_of, modules))
        for method, function in re.findall(r"\b[A-Z]\w+\.(\w+)|\b([a-z]*_\w+)\b", rest):
            assert re.search(rf"(def |\.){method or function}\b", source), (modules, rest)


def test_badges_say_what_the_project_file_says():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    said = {
        "python": project["project"]["requires-python"].replace(">=", "") + " or later",
        "licence": project["project"]["license"],
        "types": "mypy strict" if project["tool"]["mypy"]["strict"] else "mypy",
    }
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"_static/badge-(\w+)\.svg", readme)) == set(said)
    for name, words in said.items():
        picture = (ROOT / f"docs/_static/badge-{name}.svg").read_text(encoding="utf-8")
        assert f">{words}</text>" in picture


def test_every_equation_of_the_theory_is_referred_to():
    text = (ROOT / "docs/theory.md").read_text(encoding="utf-8")
    formulas = text.count("\n$$\n")
    labels = re.findall(r"^\$\$ \((eq-[\w-]+)\)$", text, re.MULTILINE)
    assert len(labels) == len(set(labels)) == formulas > 50
    assert set(re.findall(r"\{eq\}`([\w-]+)`", text)) == set(labels)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_relative_links_lead_somewhere(name):
    links = re.findall(r"\]\(([\w./-]+)(?:#[^)]*)?\)", (ROOT / name).read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    assert doctest.testmod(import_or_skip(name)).failed == 0


def test_the_front_door_has_a_docstring_example():
    assert "structlearn._src.inference.front" in MODULES
    tests = doctest.DocTestFinder().find(structlearn.infer)
    assert any(test.examples for test in tests)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_example_scripts_run(script, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    shown = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(len(pyplot.get_fignums())))
    code = compile(script.read_text(encoding="utf-8"), str(script), "exec")
    try:
        exec(code, {"__name__": "__main__"})
        assert shown, f"{script.name} shows no picture"
        assert min(shown) >= 1
    finally:
        pyplot.close("all")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "argv"),
    [
        ("tagger", ["--sentences", "20", "--epochs", "1"]),
        ("segmentation", ["--steps", "2"]),
        ("citations", ["--papers", "30", "--steps", "2"]),
    ],
)
def test_examples_of_layers_run(name, argv, data_folder, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT / "examples/layers"))
    script = importlib.import_module(name)
    script.main(["--seeds", "1", *argv])
    assert capsys.readouterr().out.startswith("accuracy")
