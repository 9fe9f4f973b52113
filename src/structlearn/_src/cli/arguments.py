"""Arguments that several commands read alike."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from structlearn._src.cli.progress import tell as told
from structlearn._src.common.errors import ArgumentError

Run = Callable[[argparse.Namespace], int]


def positive(text: str) -> float:
    """Read a number above 0."""
    number = real(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def real(text: str) -> float:
    """Read any number; the library says which of them will do."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def whole(text: str, low: int = 1) -> int:
    """Read a whole number of at least `low`."""
    if not text.isascii() or not text.isdecimal() or int(text) < low:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {low}")
    return int(text)


def natural(text: str) -> int:
    """Read a whole number of at least 0."""
    return whole(text, low=0)


#: Short forms, the same in every command.
_SHORT = {"--quiet": "-q", "--output": "-o", "--model": "-m"}

#: Options that mean the same in every command that has them.
_SHARED: dict[str, dict[str, Any]] = {
    "--seed": {
        "metavar": "N",
        "type": natural,
        "default": 0,
        "help": "random seed (default %(default)s)",
    },
    "--threads": {"metavar": "N", "type": whole, "help": "number of threads (default: all cores)"},
    "--memory-limit": {
        "metavar": "M",
        "help": "limit on resident memory, such as 2GB; what is beyond it lies on disk",
    },
    "--place": {
        "metavar": "PLACE",
        "help": "where to compute: threads (the default), cuda, or the address of a Dask scheduler",
    },
    "--max-iter": {
        "metavar": "N",
        "type": whole,
        "help": "maximum number of iterations (default %(default)s)",
    },
    "--quiet": {"action": "store_true", "help": "say nothing but errors and what was asked for"},
    "--log": {
        "metavar": "FILE",
        "type": Path,
        "help": "write progress and verdict to this file too, each line with its time",
    },
    "--json": {
        "metavar": "FILE",
        "type": Path,
        "help": "write the verdict to this file, as one JSON object",
    },
    "--report": {
        "metavar": "FILE",
        "type": Path,
        "help": "write a page about the result to this HTML file, with pictures and tables",
    },
    "--progress": {
        "action": "store_true",
        "help": "report progress even if standard error is not a terminal",
    },
}


def add_command(
    subparsers: Any,
    name: str,
    run: Run,
    help: str,
    description: str,
    epilog: str = "",
    usage: str = "",
) -> argparse.ArgumentParser:
    """Add a command to the parser of the program, and return its own.

    `usage` is what a line that calls it must have; by default all options are listed there.
    """
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=help,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=f"structlearn {name} {usage} [options]" if usage else None,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    return parser


def add_shared(group: Any, *names: str, **changes: Any) -> None:
    """Add options that several commands have; `changes` are what this command has otherwise."""
    for name in names:
        group.add_argument(*flags(name), **(_SHARED[name] | changes))


def flags(name: str) -> list[str]:
    """Return an option with its short form, if it has one."""
    return [_SHORT[name], name] if name in _SHORT else [name]


def add_choice(group: Any, name: str, words: tuple[str, ...], text: str, **more: Any) -> None:
    """Add an option that takes one of a few words, by default the first."""
    more = {"default": words[0], "help": f"{text} (default {words[0]})"} | more
    group.add_argument(name, choices=words, **more)


def add_number(group: Any, name: str, kind: Any, default: Any, text: str) -> None:
    """Add an option that takes a number."""
    letter = "N" if kind in (whole, natural) else name.strip("-")[0].upper()
    told = text if default is None else f"{text} (default %(default)s)"
    group.add_argument(name, metavar=letter, type=kind, default=default, help=told)


def add_file(group: Any, name: str, text: str, **more: Any) -> None:
    """Add an option that takes the name of a file."""
    group.add_argument(*flags(name), **({"metavar": "FILE", "type": Path, "help": text} | more))


def add_old(group: Any, old: str, new: str, **kind: Any) -> None:
    """Add the former name of an option, which the help does not show."""
    place = new.strip("-").replace("-", "_")
    kind = {"default": argparse.SUPPRESS, "help": argparse.SUPPRESS} | kind
    group.add_argument(old, dest=place, **({"metavar": "N"} | kind))


def check_effects(args: argparse.Namespace, needs: Mapping[str, tuple[bool, str]]) -> None:
    """Refuse options without effect: `needs` says if there is what they need, and what that is."""
    for option, (met, need) in needs.items():
        if not met and getattr(args, option.strip("-").replace("-", "_")) is not None:
            raise ArgumentError(f"{option} has no effect without {need}; leave it out")


def check_output(option: str, path: Path | None, others: Mapping[str, Path | None]) -> None:
    """Refuse a file that cannot be written, or that the command reads, before any work is done."""
    from structlearn._src.common.paths import is_stream

    if path is None:
        return
    for name, other in others.items():
        if other is not None and _same(path, other):
            raise ArgumentError(
                f"{option} {path} is also {name}, which it would overwrite; give another file"
            )
    if path.is_dir():
        raise ArgumentError(f"{option} {path} is a folder; need a file")
    if not path.parent.is_dir():
        raise ArgumentError(f"{option} {path}: there is no folder {path.parent}")
    if not is_stream(path):  # which needs no temporary file beside it
        check_folder(option, Path(os.path.realpath(path)).parent)


def check_folder(option: str, folder: Path) -> None:
    """Refuse a folder in which no file can be made, before any work is done."""
    from tempfile import TemporaryFile

    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ArgumentError(f"{option}: {folder} cannot be written to: {error.strerror}") from None


def _same(one: Path, other: Path) -> bool:
    """Tell whether two paths lead to one file, be it there or not."""
    try:
        return one.samefile(other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


def write_facts(path: Path | None, facts: Mapping[str, Any]) -> None:
    """Write what is known as one JSON object; nothing if there is no file."""
    import json

    if path is not None:
        write_output(path, (json.dumps(facts, default=float) + "\n").encode())


def write_report(path: Path | None, thing: Any, title: str, *examples: Any) -> None:
    """Write the page about a model or an answer; nothing if there is no file."""
    if path is not None:
        from structlearn._src.display.report import report

        told("wrote", str(report(thing, *examples, title=title).save(path)))


def facts_of(found: Any, names: str, **more: Any) -> dict[str, Any]:
    """Return some attributes by name, without what marks them as fitted; None for NaN."""
    facts = {name.strip("_"): getattr(found, name) for name in names.split()} | more
    odd = {k for k, x in facts.items() if isinstance(x, float) and not math.isfinite(x)}
    return {name: None if name in odd else value for name, value in facts.items()}


def check_outputs(
    args: argparse.Namespace, inputs: Mapping[str, Path | None], *options: str
) -> None:
    """Refuse files that cannot be written, or that the command reads or writes otherwise."""
    known = dict(inputs)
    for option in options:
        path = getattr(args, option.strip("-"))
        check_output(option, path, known)
        known[option] = path


def write_output(path: Path | None, data: bytes) -> None:
    """Write a whole file; None stands for standard output."""
    from structlearn._src.common.paths import write_bytes

    if path is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        write_bytes(path, data)
