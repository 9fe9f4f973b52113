"""Benchmarks run rarely: what they import is there, and what they report is what was measured."""

from __future__ import annotations

import ast
import importlib
import json
import pathlib
import re
import sys
import time
import warnings

import numpy as np
import pytest

from optional import import_or_skip
from structlearn import RuleModel
from structlearn._src.common import threads
from structlearn.fields import solve_map

FOLDER = pathlib.Path(__file__).parents[1] / "benchmarks"
OURS = ("structlearn", "papers")


def imported(path):
    """Modules of ours that a file imports, wherever in it, with the names that it takes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            for alias in node.names:
                yield node.module, alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in OURS:
                    yield alias.name, None


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_what_is_imported_is_there(path):
    for module, name in imported(path):
        home = import_or_skip(module)
        if name is not None and not hasattr(home, name):
            import_or_skip(f"{module}.{name}")  # or it is a module itself


@pytest.fixture
def bench(monkeypatch):
    """Import modules of the folder as its scripts do."""
    monkeypatch.syspath_prepend(str(FOLDER))
    names = ("report", "timing", "templates", "run", "page")
    yield {name: importlib.import_module(name) for name in names}
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def serial(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("serial")
    sys.modules.pop("serial", None)


def test_threads_wait_for_the_serial_part_and_the_last_range(serial):
    found = serial.Observed(0.2, [[0.2] * 4], ["module.work"])
    assert found.total == pytest.approx(1.0)
    assert "0.200 s (20.0%) serial, 1 calls; 4 threads bring at most 2.5" in found.words(4)
    # One of three threads takes a second range while the others wait: 0.2 + 0.4 seconds.
    assert "3 threads bring at most 1.7" in found.words(3)
    assert "0.1333 s lost by uneven ranges of module.work" in found.words(3)


def test_ranges_are_observed_and_those_within_ranges_are_not(serial):
    plain = threads.run
    seen = []

    def inner(first, last):
        seen.append((first, last))

    def outer(first, last):
        end = time.thread_time() + 0.01
        while time.thread_time() < end:
            pass
        threads.run(inner, [(first, first), (last, last)], 2)

    def work():
        threads.run(outer, [(0, 1), (1, 2), (2, 3)], 2)
        threads.run(inner, [(7, 8)], 2)  # a single range is serial

    found = serial.observe(work)
    assert threads.run is plain
    assert sorted(seen) == [(0, 0), (1, 1), (1, 1), (2, 2), (2, 2), (3, 3), (7, 8)]
    assert [len(ranges) for ranges in found.calls] == [3]
    assert min(found.calls[0]) >= 0.01
    assert found.total >= 0.03
    assert [owner.endswith(".outer") for owner in found.owners] == [True]


def test_threads_would_share_what_one_does_in_a_kernel(serial):
    seen = []

    def kernel(box, helpers, seconds):
        seen.append(helpers)
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    found = serial.observe(lambda: threads.launch(kernel, 3, 0.01))
    assert seen == [0]
    (shares,) = found.calls
    assert len(set(shares)) == 1
    assert len(shares) == 4
    assert sum(shares) >= 0.01


def test_targets_are_ceilings_or_floors(bench):
    row = bench["report"].Row
    assert row("time", 1.0, "s", 2.0).met
    assert not row("time", 3.0, "s", 2.0).met
    assert row("speed", 3.0, "x", 2.0, at_least=True).met
    assert row("free", 3.0).met is None
    assert row("time", 3.0, "s", 2.0).ratio == 1.5
    assert "MISSED" in row("time", 3.0, "s", 2.0).cells()


def test_reports_are_tables_and_json(bench, tmp_path):
    report = bench["report"].Report("toy", "a title")
    report.add("one", 0.1234, "s", 1.0, note="why")
    report.add("another row", 2.5e7, "messages/s")
    report.remarks.append("quiet")
    lines = report.text().splitlines()
    assert lines[1] == "toy: a title"
    assert lines[-1].strip() == "quiet"
    assert "0.123 s" in lines[4]
    assert "25 M messages/s" in lines[5]
    report.save(tmp_path)
    kept = json.loads((tmp_path / "toy.json").read_text(encoding="utf-8"))
    assert [row["met"] for row in kept["rows"]] == [True, None]
    assert kept["machine"]["cores"] >= 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.0123456, "0.0123"), (12345.6, "12,346"), (1.5e6, "1.5 M"), (float("inf"), "inf")],
)
def test_numbers_have_three_digits(bench, value, text):
    assert bench["report"].number(value) == text


def test_times_are_the_least_of_several_runs(bench):
    timing = bench["timing"]
    given = []
    best = timing.best(lambda x: given.append(x) or len(given), repeats=3, prepare=lambda: "new")
    assert given == ["new"] * 3
    assert best.result == 3
    assert best.cpu >= 0.0
    rows = [timing.Timing(2.0, 5.0), timing.Timing(3.0, 4.0, result="last")]
    assert timing.least(rows) == timing.Timing(2.0, 4.0, result="last")
    assert timing.Timing(1.0, 1.0, others=0.05).quiet
    assert not timing.Timing(1.0, 1.0, others=0.5).quiet


def test_the_template_as_users_of_other_programs_write_it(bench, tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("the DT B\ncat NN I\n\nruns VB O\n", encoding="utf-8")
    sentences = bench["templates"].read(str(path))
    assert sentences == [([["the", "DT"], ["cat", "NN"]], ["B", "I"]), ([["runs", "VB"]], ["O"])]
    first, second = bench["templates"].expand(sentences[0][0])
    assert {"U02:the", "U05:_B-1/the", "U06:the/cat", "U12:DT", "U17:DT/NN"} <= set(first)
    assert "U01:the" in second
    assert len(first) == len(second) == 19


def test_unknown_benchmarks_are_named(bench, capsys):
    assert bench["run"].main(["bp", "fly"]) == 2
    assert "'fly'" in capsys.readouterr().out
    assert all((FOLDER / f"{name}.py").exists() for name in bench["run"].NAMES)


def test_forms_without_a_database_are_those_of_the_rules(bench, tmp_path):
    forms, models = (importlib.import_module(name) for name in ("forms", "psl_models"))
    model = RuleModel.from_file(models.trust(tmp_path, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of atoms that no rule reaches
        grounding = model.grounding_
    field, weights = forms.trust_forms(4)
    np.testing.assert_allclose(weights, grounding.weights)
    np.testing.assert_array_equal(np.bincount(field.groups), grounding.counts)
    expected, found = solve_map(grounding.hinges, weights), solve_map(field, weights)
    assert found.energy == pytest.approx(expected.energy, rel=1e-5)
    for name in ("constants", "coefficients"):
        np.testing.assert_allclose(
            np.sort(getattr(field, name)), np.sort(getattr(grounding.hinges, name)), atol=1e-9
        )


def test_the_page_has_the_figures_on_file(bench):
    page = bench["page"]
    found = {path.stem: json.loads(path.read_text()) for path in page.RESULTS.glob("*.json")}
    text = page.page(found)
    assert text == page.PAGE.read_text(encoding="utf-8")
    assert not re.search(r"^@", text, re.MULTILINE)
    del found["threads"]  # its picture is in the guide
    for report in found.values():
        assert report["machine"]["date"] in text
        assert all(f"| {row['what']} |" in text for row in report["rows"])
