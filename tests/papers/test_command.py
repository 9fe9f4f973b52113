"""``structlearn reproduce``: the list, one small run, bad usage."""

from __future__ import annotations

import json
import runpy
import sys

import pytest

from papers.base import Record
from papers.catalogue import EXPERIMENTS
from structlearn._src.cli import tag
from structlearn._src.cli.main import main


def test_without_a_name_it_lists_the_experiments(capsys):
    assert main(["reproduce"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(EXPERIMENTS)
    assert {"chain", "convergence"} <= set(EXPERIMENTS)
    assert all(len(line.split()) > 3 for line in lines)


def test_an_unknown_experiment_is_one_line(capsys):
    assert main(["reproduce", "fly"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("structlearn: error: experiment='fly' is not known; choose one of ")
    assert err.count("\n") == 1
    assert all(repr(name) in err for name in EXPERIMENTS)


def test_a_list_is_asked_for_in_two_ways(capsys):
    assert main(["reproduce"]) == 0
    listed = capsys.readouterr().out
    assert main(["reproduce", "chain", "--list"]) == 0
    assert capsys.readouterr().out == listed


def test_several_run_one_after_the_other(monkeypatch, capsys):
    seen = []

    def experiment(settings):
        seen.append(settings.seed)
        return Record("one", f"Seed {settings.seed}", ())

    monkeypatch.setitem(EXPERIMENTS, "chain", experiment)
    assert main(["reproduce", "chain", "chain", "--seed", "5", "--quiet"]) == 0
    assert seen == [5, 5]
    assert capsys.readouterr().out == "Seed 5\n\n\nSeed 5\n\n"


def test_all_names_are_checked_before_the_first_run(monkeypatch, capsys):
    monkeypatch.setitem(EXPERIMENTS, "chain", lambda settings: pytest.fail("it ran"))
    assert main(["reproduce", "chain", "fly"]) == 2
    assert "experiment='fly'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "argv", "first"),
    [("papers", ["--list"], "chain "), ("papers.tour", ["--help"], "usage: structlearn demo ")],
)
def test_packages_run_as_modules(module, argv, first, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [module, *argv])
    with pytest.raises(SystemExit) as end:
        runpy.run_module(module, run_name="__main__")
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith(first)


@pytest.mark.parametrize(
    ("argv", "how"),
    [
        (["demo", "--output", "pictures", "--seed", "3"], "make demo"),
        (["reproduce"], "python -m papers"),
        (["reproduce", "chain", "--quick"], "python -m papers"),
    ],
)
def test_without_the_package_one_line_says_where_it_is(argv, how, capsys):
    assert main(argv, commands=(tag,)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "repository" in err
    assert f"'{how}'" in err
    assert main(["--help"], commands=(tag,)) == 0
    told = capsys.readouterr().out
    assert argv[0] in told  # that it exists, and that it is not here
    assert "(in the repository)" in told


def test_a_small_run_prints_a_table_and_writes_its_numbers(tmp_path, capsys):
    argv = ["reproduce", "chain", "--quick", "--trials", "1", "--quiet"]
    assert main([*argv, "--output", str(tmp_path / "new" / "out")]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("Hidden chain: accuracy of the outputs (%)\n\n1 trials\n")
    (table,) = json.loads((tmp_path / "new" / "out" / "chain.json").read_text())["tables"]
    printed = [line.split()[-4:] for line in out.splitlines()[4 : 4 + len(table["rows"])]]
    for cells, row in zip(printed, table["rows"], strict=True):
        means = [row[name]["mean"] for name in list(row)[1:]]
        assert [float(cell) for cell in cells] == pytest.approx(means, abs=0.006)
        assert all(0.0 <= mean <= 100.0 for mean in means[:-1])


def test_an_output_that_is_a_file_is_found_out_before_the_run(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("old")
    monkeypatch.setitem(EXPERIMENTS, "chain", lambda settings: pytest.fail("it ran"))
    assert main(["reproduce", "chain", "--output", str(tmp_path / "file")]) == 2
    assert "is a file; need a folder" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "old"


def test_folders_that_take_no_files_are_found_out_before_the_run(tmp_path, monkeypatch, capsys):
    """So it is for models: nobody wants to train for an hour and lose what came out."""

    def refused(**options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refused)
    assert main(["reproduce", "chain", "--output", str(tmp_path)]) == 2
    assert f"--output: {tmp_path} cannot be written to: Permission" in capsys.readouterr().err
    assert main(["train", "none", "--model", str(tmp_path / "model")]) == 2
    assert f"--model: {tmp_path} cannot be written to: Permission" in capsys.readouterr().err


def test_missing_matplotlib_is_found_out_before_the_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["reproduce", "chain", "--output", str(tmp_path)]) == 2
    assert "--output: pictures need matplotlib, which is not installed" in capsys.readouterr().err
