"""The command itself: help, exit codes, errors in one line."""

from __future__ import annotations

import argparse
import importlib
import re
import subprocess
import sys
import types
import warnings

import pytest

from structlearn import __version__
from structlearn._src.common.errors import QueryError
from structlearn._src.inference.names import Query
from structlearn._src.inference.pick import METHODS

main_module = importlib.import_module("structlearn._src.cli.main")
main = main_module.main
infer_command = importlib.import_module("structlearn._src.cli.infer")


def attempt(run):
    """The exit code of a program whose only command, called "try", is `run`."""

    def add(subparsers):
        subparsers.add_parser("try").set_defaults(run=run)

    return main(["try"], [types.SimpleNamespace(add=add)])


def raising(error):
    def run(args):
        raise error

    return run


def parsers():
    """All commands with their parsers."""
    actions = main_module.make_parser()._actions
    (commands,) = (a for a in actions if isinstance(a, argparse._SubParsersAction))
    return commands.choices


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"structlearn {__version__}\n"


def test_help_names_every_command(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert set(parsers()) == {
        "train", "tag", "evaluate", "inspect", "infer", "psl", "demo", "reproduce", "warm-up",
    }  # fmt: skip
    assert all(name in out for name in parsers())


@pytest.mark.parametrize("name", parsers())
def test_help_of_a_command_names_and_explains_every_option(name, capsys):
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    for action in parsers()[name]._actions:
        assert action.help
        hidden = action.help is argparse.SUPPRESS  # a name of before
        words = set(re.findall(r"[\w-]+", out))
        assert all((option in words) != hidden for option in action.option_strings)


def test_help_of_infer_knows_all_methods():
    assert tuple(METHODS) == infer_command.METHODS
    assert set(infer_command.QUERIES.values()) == set(Query) - {"samples"}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "COMMAND"),
        (["fly"], "'fly'"),
        (["infer"], "MODEL.uai"),
        (["infer", "m.uai"], "--query"),
        (["infer", "m.uai", "--query", "MPE"], "'MPE'"),
        (["infer", "m.uai", "--query", "PR", "--method", "magic"], "'magic'"),
        (["infer", "m.uai", "--query", "PR", "--time-limit", "0"], "above 0"),
        (["infer", "m.uai", "--query", "PR", "--time-limit", "nan"], "above 0"),
        (["infer", "m.uai", "--query", "PR", "--time-limit", "soon"], "'soon'"),
        (["infer", "m.uai", "--query", "PR", "--max-table", "0"], "at least 1"),
        (["infer", "m.uai", "--query", "PR", "--threads", "1.5"], "'1.5'"),
        (["infer", "m.uai", "--query", "PR", "--seed", "-1"], "--seed"),
        (["infer", "m.uai", "--query", "PR", "--evid", "e"], "--evid"),
        (["demo", "--seed", "x"], "'x'"),
        (["demo", "--seed", "-3"], "-3"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(argv, words, capsys):
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("structlearn: error: ")
    assert err.count("\n") == 1
    assert words in err


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (QueryError("two\n  lines"), 2, "structlearn: error: two lines"),
        (FileNotFoundError(2, "No such file or directory", "a.b"), 2,
         "structlearn: error: a.b: no such file or directory"),
        (OSError("the disk is odd"), 2, "structlearn: error: the disk is odd"),
        (MemoryError(), 2, "structlearn: error: there is not enough memory"),
        (KeyboardInterrupt(), 130, "structlearn: interrupted before there was an answer"),
    ],
)  # fmt: skip
def test_errors_of_a_command_become_one_line(error, code, line, capsys):
    assert attempt(raising(error)) == code
    err = capsys.readouterr().err
    assert err.startswith(line)
    assert err.count("\n") == 1


def test_what_saves_memory_is_an_option_of_the_command(monkeypatch, capsys):
    for name in set(parsers()) - {"demo", "reproduce"}:  # of another package
        module = importlib.import_module(f"structlearn._src.cli.{name.replace('-', '_')}")
        given = {"train": ["a", "--model", "m"], "infer": ["a", "--query", "PR"]}.get(name, [])
        given = (
            ["--model", "m"] if name in ("tag", "inspect") else ["m"] if name == "psl" else given
        )
        monkeypatch.setattr(module, "run", raising(MemoryError()))
        assert main([name, *given]) == 2
        err = capsys.readouterr().err
        known = {option for a in parsers()[name]._actions for option in a.option_strings}
        assert err.startswith("structlearn: error: there is not enough memory")
        assert set(re.findall(r"--[a-z-]+", err)) <= known
        assert ("--max-table" in err) == (name == "infer")


def test_a_bug_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        attempt(raising(ZeroDivisionError("a bug")))


def test_exit_code_of_a_command_is_passed_on():
    assert attempt(lambda args: 7) == 7


def test_warnings_are_one_line(capsys):
    def run(args):
        warnings.warn("mind\nthe gap", UserWarning, stacklevel=1)
        return 0

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        before = warnings.showwarning
        assert attempt(run) == 0
        assert warnings.showwarning is before
    assert capsys.readouterr().err == "structlearn: warning: mind the gap\n"


def test_a_closed_pipe_is_silent(capsys):
    assert attempt(raising(BrokenPipeError(32, "Broken pipe"))) == 141
    assert capsys.readouterr() == ("", "")


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from structlearn._src.cli.main import main;"
        f"codes = [main([*a, '--help']) for a in {[[], *([name] for name in parsers())]}];"
        "heavy = {'numpy', 'numba', 'matplotlib'} & set(sys.modules);"
        "sys.exit(f'{codes} {heavy}' if any(codes) or heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_looks_for_no_commands_of_other_packages():
    code = (
        "import sys; from structlearn._src.cli.main import main;"
        "sys.exit(main(['--help']) or 'importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(name in done.stdout for name in parsers())


def test_as_a_program():
    argv = [
        sys.executable,
        "-m",
        "structlearn._src.cli.main",
        "infer",
        "nowhere.uai",
        "--query",
        "PR",
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "structlearn: error: nowhere.uai: no such file or directory\n"


def test_the_package_is_the_command():
    command = [sys.executable, "-m", "structlearn", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("structlearn ")


def test_unknown_options_point_to_the_help_of_their_command(capsys):
    assert main(["train", "file", "--model", "m", "--bogus"]) == 2
    assert capsys.readouterr().err == (
        "structlearn: error: unrecognized arguments: --bogus (see 'structlearn train --help')\n"
    )
