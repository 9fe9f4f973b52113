"""The ``structlearn`` command: reads the arguments, runs one command, words its errors.

Everything heavy is imported by the command that needs it, so that help comes at once.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NoReturn

from structlearn._src.cli.progress import say
from structlearn._src.common.errors import RuleError, StructlearnError
from structlearn._version import __version__

#: Commands in the order of the help, each a module here with ``add(subparsers)`` and
#: ``run(args) -> int``. Only the one that is run is imported.
COMMANDS = ("train", "tag", "evaluate", "inspect", "infer", "psl", "warm-up")
#: Where installed packages, such as the papers' experiments, list commands of the same form.
GROUP = "structlearn.commands"

#: Commands of the package `papers`: how they are run where the repository is, and their help.
_ELSEWHERE = {
    "demo": ("make demo", "a first tour, with pictures (in the repository)"),
    "reproduce": ("python -m papers", "run experiments of the papers (in the repository)"),
}

#: What helps a command that has run out of memory.
_SAVING = {
    "infer": "; a smaller --max-table helps",
    "psl": "; --estimate says which rules are large",
    "tag": "; a smaller --k helps",
    "train": "; --features sparse and a larger --min-count help",
}
BAD_INPUT, INTERRUPTED, CLOSED = 2, 130, 141  # the last two as a shell counts SIGINT and SIGPIPE


def main(argv: Sequence[str] | None = None, commands: Sequence[Any] = ()) -> int:
    """Run the command that `argv` asks for and return its exit code.

    `commands` are the modules to choose from, by default all of this package and of others.
    """
    args = argparse.Namespace(command="")
    given = sys.argv[1:] if argv is None else list(argv)
    try:
        return _run(given, commands, args)
    except SystemExit as stop:  # argparse has printed its help or its error
        return int(stop.code or 0)
    except KeyboardInterrupt:
        return _fail("interrupted before there was an answer", INTERRUPTED)
    except BrokenPipeError:
        return _closed()
    except RuleError as error:  # its lines and the caret belong below each other
        say(f"structlearn: error: {error}\n")
        return BAD_INPUT
    except StructlearnError as error:
        return _fail(f"error: {error}")
    except OSError as error:
        return _fail(f"error: {_about_file(error)}")
    except MemoryError:
        return _fail(f"error: there is not enough memory for this{_SAVING.get(args.command, '')}")
    except RecursionError:
        return _fail("error: the input nests too deeply")


def _run(given: Sequence[str], commands: Sequence[Any], args: argparse.Namespace) -> int:
    if not commands and given[:1] and given[0] in COMMANDS:
        commands = (_module(given[0]),)
    elif not commands and (not given or given[0].startswith("-")):  # help, which must come at once
        commands = tuple(map(_module, COMMANDS))
    _, more = make_parser(commands).parse_known_args(given, args)
    # Left to itself argparse would blame the whole program, not the command.
    if more and args.run is not _elsewhere:
        help_ = f"(see 'structlearn {args.command} --help')"
        return _fail(f"error: unrecognized arguments: {' '.join(more)} {help_}")
    if sys.stderr.isatty() and not getattr(args, "quiet", False):
        _show_log()
    with _short_warnings():
        code = int(args.run(args))
    sys.stdout.flush()
    return code


def _show_log() -> None:
    """Show on a terminal what the library tells, over the line of progress."""
    import logging

    log = logging.getLogger("structlearn")
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("\rstructlearn: %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)


def make_parser(commands: Sequence[Any] = ()) -> argparse.ArgumentParser:
    """Return the parser with these commands, or with all."""
    parser = _Parser(
        prog="structlearn",
        description="Structured prediction when part of the answer is hidden.",
        epilog="'structlearn COMMAND --help' describes each command.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"structlearn {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", dest="command", required=True)
    for command in commands or (*map(_module, COMMANDS), *_others()):
        command.add(subparsers)
    for name, (_, words) in _ELSEWHERE.items():
        if name not in subparsers.choices:
            missing = subparsers.add_parser(name, help=words, add_help=False)
            missing.set_defaults(run=_elsewhere)
    return parser


def _module(command: str) -> Any:
    return import_module(f"structlearn._src.cli.{command.replace('-', '_')}")


def _others() -> Iterator[Any]:
    """Commands of other packages, which are slow to find."""
    from importlib import metadata

    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name):
        yield entry.load()


def _elsewhere(args: argparse.Namespace) -> int:
    """Say where a command is that was not installed with the library."""
    return _fail(
        f"error: {args.command!r} comes with the repository, not with the installed library: "
        f"clone it and run '{_ELSEWHERE[args.command][0]}'"
    )


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line like all others of this program."""

    def error(self, message: str) -> NoReturn:
        """Print one line and end."""
        self.exit(_fail(f"error: {message} (see '{self.prog} --help')"))


def _fail(message: str, code: int = BAD_INPUT) -> int:
    say(f"structlearn: {' '.join(message.split())}\n")
    return code


def _about_file(error: OSError) -> str:
    if not error.strerror:
        return str(error)
    name = "standard output" if error.filename is None else os.fsdecode(error.filename)
    return f"{name}: {error.strerror.lower()}"


def _closed() -> int:
    """Whoever read our output has gone: end without a word, also when Python flushes at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return CLOSED


@contextlib.contextmanager
def _short_warnings() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        _fail(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
