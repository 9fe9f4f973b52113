"""Arguments that several commands read alike."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from structlearn._src.common.errors import ArgumentError


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


#: Options that mean the same in every command that has them.
_SHARED: dict[str, dict[str, Any]] = {
    "--seed": {"metavar": "N", "type": natural, "default": 0},
    "--threads": {"metavar": "N", "type": whole},
    "--max-iter": {"metavar": "N", "type": whole},
    "--quiet": {"action": "store_true"},
    "--progress": {"action": "store_true"},
}
_HELP = {
    "--seed": "seed of everything random (default %(default)s)",
    "--threads": "threads (default: all cores)",
    "--max-iter": "most iterations (default %(default)s)",
    "--quiet": "say nothing but errors and what was asked for",
    "--progress": "report progress even if standard error is not a terminal",
}


def add_shared(group: Any, *names: str, **changes: Any) -> None:
    """Add options that several commands have.

    Parameters
    ----------
    names
        Which, as users write them.
    changes
        What this command has otherwise, as arguments of ``add_argument``; for one option only.
    """
    for name in names:
        group.add_argument(name, **({"help": _HELP[name]} | _SHARED[name] | changes))


def add_old(group: Any, old: str, new: str, **kind: Any) -> None:
    """Let an option be given by its name of before, which the help does not tell."""
    place = new.strip("-").replace("-", "_")
    kind = {"default": argparse.SUPPRESS, "help": argparse.SUPPRESS} | kind
    group.add_argument(old, dest=place, **({"metavar": "N"} | kind))


def check_output(option: str, path: Path | None, others: Mapping[str, Path | None]) -> None:
    """Refuse a file that cannot be written or that has another use, before any work is done.

    Parameters
    ----------
    others
        All other files of the command, by the names of their arguments.
    """
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
    if path.is_file() or not path.exists():  # devices and pipes need no temporary file beside them
        check_folder(option, path.parent)


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


def write_output(option: str, path: Path, data: bytes) -> None:
    """Write a whole file, and name the option and the file if that cannot be done."""
    from structlearn._src.common.paths import write_bytes

    try:
        write_bytes(path, data)
    except OSError as error:  # its own words would name a temporary file
        raise ArgumentError(f"{option} {path} cannot be written: {error.strerror}") from None
