"""``structlearn reproduce``: the list, one small run, bad usage."""

from __future__ import annotations

import json
import runpy
import sys

import pytest
from papers_toys import make

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


@pytest.fixture
def toy(monkeypatch):
    """A small experiment among the others."""
    monkeypatch.setitem(EXPERIMENTS, "toy", make("toy"))
    return EXPERIMENTS["toy"]


@pytest.fixture
def alone(toy, monkeypatch):
    """The small experiment, and no other."""
    for name in [name for name in EXPERIMENTS if name != "toy"]:
        monkeypatch.delitem(EXPERIMENTS, name)


def reproduce(*argv, output):
    return main(["reproduce", *argv, "--quiet", "--output", str(output)])


def test_a_report_has_tables_verdicts_and_readings(toy, tmp_path, capsys):
    assert reproduce("toy", "--quick", "--seed", "5", output=tmp_path / "new" / "out") == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0] == "toy: lecture, table 0: one"
    assert lines[2].startswith("Quick version")
    assert "5.17 ±0.17" in out
    assert "holds: values are above 0" in out
    assert "It is small." in lines
    saved = json.loads((tmp_path / "new" / "out" / "toy.json").read_text())
    assert [unit["given"]["seed"] for unit in saved["units"]] == [[5, 0], [5, 1]]


def test_full_is_the_default_and_not_both(toy, tmp_path, capsys):
    assert reproduce("toy", output=tmp_path) == 0
    first = capsys.readouterr().out
    assert "Quick" not in first
    assert reproduce("toy", "--full", output=tmp_path) == 0
    assert capsys.readouterr().out == first
    assert reproduce("toy", "--full", "--quick", output=tmp_path) == 2


@pytest.mark.usefixtures("alone")
def test_without_names_all_are_run_if_a_size_is_given(tmp_path, capsys):
    assert reproduce("--quick", output=tmp_path) == 0
    assert capsys.readouterr().out.startswith("toy: ")


def test_what_has_no_data_is_left_out_unless_it_is_named(alone, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(EXPERIMENTS, "lost", make("lost", data=("nowhere",)))
    assert reproduce("--quick", output=tmp_path) == 0
    out, err = capsys.readouterr()
    assert "lost: " not in out
    assert "lost is left out" in err
    assert "nowhere" in err
    assert reproduce("lost", "--quick", output=tmp_path) == 0


def test_what_was_done_is_not_done_again(toy, monkeypatch, tmp_path, capsys):
    assert reproduce("toy", "--trials", "2", output=tmp_path) == 0
    calls = []
    work = make("toy", lambda **given: calls.append(given) or toy.work(**given))
    monkeypatch.setitem(EXPERIMENTS, "toy", work)
    assert reproduce("toy", "--trials", "3", output=tmp_path) == 0
    assert [given["seed"] for given in calls] == [[0, 2]]


def test_failures_are_told_and_the_rest_is_kept(toy, monkeypatch, tmp_path, capsys):
    def work(seed, pause):
        if seed[1] == 1:
            raise ValueError("a bad day")
        return toy.work(seed, pause)

    monkeypatch.setitem(EXPERIMENTS, "toy", make("toy", work))
    assert reproduce("toy", "--trials", "3", output=tmp_path) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "toy failed" in err
    assert "a bad day" in err
    assert "toy: 1 units are left" in err
    monkeypatch.setitem(EXPERIMENTS, "toy", toy)
    assert reproduce("toy", "--trials", "3", output=tmp_path) == 0


def test_failures_for_one_reason_are_told_once(monkeypatch, tmp_path, capsys):
    def work(seed, pause):
        raise ValueError("no data" if seed[1] else "no time")

    monkeypatch.setitem(EXPERIMENTS, "toy", make("toy", work))
    assert reproduce("toy", "--trials", "3", output=tmp_path) == 1
    err = capsys.readouterr().err
    assert err.count("no data") == 1
    assert "(so did 1 more): ValueError: no data" in err
    assert err.count("no time") == 1


def test_pictures_are_made_where_matplotlib_is(monkeypatch, tmp_path, capsys):
    from papers.pictures import new_figure

    toy = make("toy", pictures={"line": lambda units: new_figure()})
    monkeypatch.setitem(EXPERIMENTS, "toy", toy)
    assert reproduce("toy", output=tmp_path) == 0
    assert (tmp_path / "toy-line.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "toy-line.png").unlink()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert reproduce("toy", output=tmp_path) == 0
    assert "no pictures: " in capsys.readouterr().out
    assert not (tmp_path / "toy-line.png").exists()


def test_all_names_are_checked_before_the_first_run(monkeypatch, capsys):
    monkeypatch.setitem(EXPERIMENTS, "chain", make("chain", lambda **given: pytest.fail("it ran")))
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


def test_an_output_that_is_a_file_is_found_out_before_the_run(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("old")
    monkeypatch.setitem(EXPERIMENTS, "chain", make("chain", lambda **given: pytest.fail("it ran")))
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
