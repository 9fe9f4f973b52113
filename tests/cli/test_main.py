"""The command itself: help, exit codes, errors in one line."""

from __future__ import annotations

import argparse
import importlib
import os
import pty
import re
import shlex
import signal
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
        "train", "tag", "evaluate", "inspect", "report", "infer", "psl", "demo", "reproduce",
        "warm-up", "completion",
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
        given = {
            "train": "a --model m",
            "tag": "--model m",
            "inspect": "--model m",
            "report": "m --output p",
            "infer": "a --query PR",
            "psl": "m",
            "completion": "bash",
        }.get(name, "")
        monkeypatch.setattr(module, "run", raising(MemoryError()))
        assert main([name, *given.split()]) == 2
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
        "structlearn",
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


def test_without_a_command_there_is_help(capsys):
    """On standard error and with the code of bad usage, as no answer was asked for."""
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: structlearn")
    assert all(name in err for name in parsers())


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["trian", "x"], "did you mean 'train'?"),
        (["train", "x", "--modle", "m"], "--modle is not known, did you mean '--model'?"),
        (["train", "x", "--model", "m", "--los=log"], "--los is not known, did you mean '--loss'?"),
        (["train", "x", "--model", "m", "--loss", "hing"], "did you mean 'hinge'?"),
        (["infer", "x", "--query", "PR", "--method", "bpp"], "did you mean 'bp'?"),
    ],
)
def test_typos_get_a_hint(argv, hint, capsys):
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert hint in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["train", "tag", "infer", "psl"])
def test_help_has_examples_that_can_be_read(name, capsys):
    main([name, "--help"])
    examples = re.findall(rf"structlearn ({name} [^|>\n]+)", capsys.readouterr().out)
    read = [shlex.split(each) for each in examples if "[options]" not in each]
    assert len(read) >= 2
    for argv in read:
        assert main_module.make_parser().parse_args(argv).command == name


def test_unknown_options_point_to_the_help_of_their_command(capsys):
    assert main(["train", "file", "--model", "m", "--bogus"]) == 2
    assert capsys.readouterr().err == (
        "structlearn: error: unrecognized arguments: --bogus (see 'structlearn train --help')\n"
    )


#: Runs a command that is interrupted when it begins to import a module.
INTERRUPTED = """
import os, signal, sys
class Finder:
    def find_spec(self, name, *_):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
module = sys.argv.pop(1)
from structlearn.__main__ import main
raise SystemExit(main())
"""


@pytest.mark.parametrize(
    "module",
    [
        "structlearn._src.cli.main",
        "argparse",
        "structlearn._src.cli.infer",
        "structlearn._src.inference.names",
        "numpy",
        "numpy.linalg._umath_linalg",
        "structlearn._src.graph.build",
    ],
)
def test_an_interrupt_while_importing_ends_in_one_line(module, tmp_path):
    (tmp_path / "m.uai").write_text("MARKOV 1 2 1 1 0 2 1 3")
    command = [sys.executable, "-c", INTERRUPTED, module, "infer", tmp_path / "m.uai"]
    done = subprocess.run([*command, "--query", "PR"], capture_output=True, text=True, check=False)
    # By the signal where an exec inside the standard library was interrupted; a shell says 130.
    assert done.returncode in (130, -signal.SIGINT)
    assert done.stdout == ""
    assert done.stderr == "structlearn: interrupted before there was an answer\n"


def test_packages_that_turn_interrupts_into_other_errors(tmp_path):
    """NumPy's own import does, depending on the moment."""
    code = INTERRUPTED.replace("os.kill(os.getpid(), signal.SIGINT)", HIDING)
    (tmp_path / "m.uai").write_text("MARKOV 1 2 1 1 0 2 1 3")
    command = [sys.executable, "-c", code, "numpy", "infer", tmp_path / "m.uai"]
    done = subprocess.run([*command, "--query", "PR"], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == "structlearn: interrupted before there was an answer\n"


HIDING = """
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(9): pass
            except KeyboardInterrupt:
                raise ImportError("could not import datetime") from None
"""


def test_input_that_nests_too_deeply_is_one_line(capsys):
    assert attempt(raising(RecursionError())) == 2
    assert capsys.readouterr().err == "structlearn: error: the input nests too deeply\n"


def test_the_first_compilation_is_told_on_a_terminal(tmp_path):
    """Whoever waits in front of it should know why."""
    (tmp_path / "m.uai").write_text("MARKOV 1 2 1 1 0 2 1 3")
    master, terminal = pty.openpty()
    command = [sys.executable, "-m", "structlearn", "infer", tmp_path / "m.uai", "--query", "PR"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run(command, stderr=terminal, stdout=subprocess.PIPE, check=True, env=environment)
    os.close(terminal)
    text = os.read(master, 10_000).decode()
    os.close(master)
    assert text.count("structlearn: compiling (first run only") == 1


@pytest.mark.parametrize(
    ("streams", "code", "told"),
    [
        (">/dev/full", 2, "structlearn: error: standard output: no space left on device\n"),
        ("2>/dev/full", 0, ""),
        (">&-", 0, None),
        ("2>&-", 0, ""),
        ("<&- >&- 2>&-", 0, ""),
    ],
)
def test_streams_that_are_full_or_closed(streams, code, told, tmp_path):
    (tmp_path / "m.uai").write_text("MARKOV 1 2 1 1 0 2 1 3")
    command = f"{sys.executable} -m structlearn infer {tmp_path}/m.uai --query PR {streams}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode == code
    if told is not None:
        assert done.stderr == told
    assert done.stdout[:6] == ("PR\n0.6" if streams.startswith("2") else "")


def test_a_file_that_is_labelled_from_a_closed_input(tmp_path):
    """No input is an empty file, which is refused by name."""
    command = f"{sys.executable} -m structlearn evaluate <&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("structlearn: error: standard input: ")
