"""The ``structlearn`` command: reads the arguments, runs one command, words its errors.

Everything heavy is imported by the command that needs it, so that help comes at once.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

from structlearn._src.cli.progress import BAD_INPUT, fail, finish, paint, say
from structlearn._src.common.bar import shown_log
from structlearn._src.common.errors import RuleError, StructlearnError, did_you_mean
from structlearn._version import __version__

#: Commands in the order of the help, each a module here with ``add(subparsers)`` and
#: ``run(args) -> int``. Only the one that is run is imported.
COMMANDS = (
    "train", "tag", "evaluate", "inspect", "report", "infer", "psl", "warm-up", "completion",
)  # fmt: skip
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
_EPILOG = """\
examples:
  structlearn train train.txt --model tagger.model --test test.txt
  structlearn tag new.txt --model tagger.model
  structlearn infer network.uai --query MAR
  structlearn psl model.json --output inferred

'structlearn COMMAND --help' says more about each command.
"""
INTERRUPTED, CLOSED = 130, 141  # as a shell counts SIGINT and SIGPIPE


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
        return fail("interrupted before there was an answer", INTERRUPTED)
    except BrokenPipeError:
        return _closed()
    except RuleError as error:  # its lines and the caret belong below each other
        say(f"structlearn: {paint('error:', 'red')} {error}\n")
        return BAD_INPUT
    except StructlearnError as error:
        return fail(f"error: {error}")
    except OSError as error:
        return fail(f"error: {_about_file(error)}")
    except MemoryError:
        return fail(f"error: there is not enough memory for this{_SAVING.get(args.command, '')}")
    except RecursionError:
        return fail("error: the input nests too deeply")
    finally:
        finish()


def _run(given: Sequence[str], commands: Sequence[Any], args: argparse.Namespace) -> int:
    if not given:  # there is no answer, so that standard output stays empty
        make_parser(commands or tuple(map(_module, COMMANDS))).print_help(sys.stderr)
        return BAD_INPUT
    if not commands and given[0] in COMMANDS:
        commands = (_module(given[0]),)
    elif not commands and given[0].startswith("-"):  # help, which must come at once
        commands = tuple(map(_module, COMMANDS))
    parser = make_parser(commands)
    _, more = parser.parse_known_args(given, args)
    # Left to itself argparse would blame the whole program, not the command.
    if more and args.run is not _elsewhere:
        known = [] if parser.commands is None else options_of(parser.commands[args.command])
        hint = _hint(more, known)
        help_ = f"(see 'structlearn {args.command} --help')"
        return fail(f"error: unrecognized arguments: {' '.join(more)}{hint} {help_}")
    wanted = sys.stderr.isatty() or any(getattr(args, name, None) for name in ("progress", "log"))
    with _short_warnings(), contextlib.ExitStack() as stack:
        quiet = getattr(args, "quiet", False)
        if wanted or quiet:  # somebody listens, so that nothing else is told
            show = (lambda _: None) if quiet else (lambda text: say(f"{text}\n"))
            stack.enter_context(shown_log(show))
        if getattr(args, "place", None):
            from structlearn._src.places.on import on

            stack.enter_context(on(args.place))
        code = int(args.run(args))
    sys.stdout.flush()
    return code


def make_parser(commands: Sequence[Any] = ()) -> _Parser:
    """Return the parser with these commands, or with all."""
    parser = _Parser(
        prog="structlearn",
        description="Structured prediction when part of the answer is hidden.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
    parser.commands = subparsers.choices
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
    return fail(
        f"error: {args.command!r} comes with the repository, not with the installed library: "
        f"clone it and run '{_ELSEWHERE[args.command][0]}'"
    )


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line like all others of this program, with a hint."""

    commands: Mapping[str, argparse.ArgumentParser] | None = None  #: of the program
    given: Sequence[str] = ()  #: what it reads

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read arguments, and keep them for hints."""
        self.given = args or ()
        return super().parse_known_args(args, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a word that is not among those to choose from."""
        if action.choices is not None and value not in action.choices:
            hint = did_you_mean(str(value), map(str, action.choices))
            told = ", ".join(map(repr, action.choices))
            raise argparse.ArgumentError(
                action, f"invalid choice: {value!r}{hint} (choose from {told})"
            )

    def error(self, message: str) -> NoReturn:
        """Print one line and end."""
        if "required" in message:  # what is missing may be there, misspelt
            message += _hint(self.given, options_of(self))
        self.exit(fail(f"error: {message} (see '{self.prog} --help')"))


def options_of(parser: argparse.ArgumentParser) -> list[str]:
    """Return the options of a parser that its help shows."""
    shown = (each for each in parser._actions if each.help is not argparse.SUPPRESS)
    return [option for action in shown for option in action.option_strings]


def _hint(given: Sequence[str], known: Sequence[str]) -> str:
    """Suggest an option for the first that is not known."""
    names = (each.partition("=")[0] for each in given if each.startswith("--"))
    odd = [name for name in names if name not in known]
    if not odd:
        return ""
    long = [name.strip("-") for name in known if name.startswith("--")]
    close = did_you_mean(odd[0].strip("-"), long)  # dashes would make all of them alike
    return close.replace("; did", f"; {odd[0]} is not known, did").replace("mean '", "mean '--")


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
        fail(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
