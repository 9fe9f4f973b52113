"""``structlearn reproduce``, or ``python -m papers``: the experiments of the papers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from structlearn._src.cli.arguments import add_shared, check_folder, whole
from structlearn._src.cli.progress import ProgressLine
from structlearn._src.common.errors import ArgumentError, choose_one_of

_DESCRIPTION = """\
Run experiments of the papers that the library is built on and print their tables, with what differs
from the paper. Without a name, list the experiments. Those on real data look for it in the folder
that STRUCTLEARN_DATA names.
"""


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "reproduce",
        help="run experiments of the papers",
        description=_DESCRIPTION,
        allow_abbrev=False,
    )
    option = parser.add_argument
    option("names", metavar="NAME", nargs="*", help="which experiments; without any, list them")
    option("--list", action="store_true", help="list the experiments and end")
    option("--trials", metavar="N", type=whole, help="repetitions with other data")
    option("--quick", action="store_true", help="a small version that takes seconds; no result")
    option("--output", metavar="DIR", type=Path, help="folder for numbers (JSON) and pictures")
    add_shared(parser, "--seed", "--quiet")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List experiments, or run some and print what they found."""
    from papers.base import Settings
    from papers.catalogue import EXPERIMENTS

    for name in args.names:  # all of them, before the first one runs for hours
        if name not in EXPERIMENTS:
            raise ArgumentError(choose_one_of("experiment", name, tuple(EXPERIMENTS)))
    if args.list or not args.names:
        print("\n".join(_listed(EXPERIMENTS)))
        return 0
    if args.output is not None:
        _make(args.output)
    progress = ProgressLine(not args.quiet)
    settings = Settings(args.trials, args.quick, args.seed, progress)
    for i, name in enumerate(args.names):
        record = EXPERIMENTS[name](settings)
        progress.clear()
        print("\n" * (i > 0) + "\n".join(record.lines()), flush=True)
        if args.output is not None:
            _write(record, args.output)
    return 0


def _listed(experiments: Mapping[str, Any]) -> list[str]:
    """One line for each experiment: its name, and the first line of its docstring."""
    width = max(map(len, experiments)) + 2
    return [f"{name:{width}}{(e.__doc__ or '').splitlines()[0]}" for name, e in experiments.items()]


def _make(folder: Path) -> None:
    """Make a folder, and see whether pictures can be made, before any work is done."""
    from structlearn._src.display.pictures import new_figure

    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"--output {folder} is a file; need a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"--output {folder} cannot be made: {error.strerror}") from None
    check_folder("--output", folder)
    try:
        new_figure()
    except ImportError as error:
        raise ArgumentError(f"--output: {error}") from None


def _write(record: Any, folder: Path) -> None:
    """Write numbers and pictures into a folder."""
    from structlearn._src.common.paths import replacing, write_bytes

    text = json.dumps(record.plain(), indent=1)
    write_bytes(folder / f"{record.name}.json", text.encode() + b"\n")
    for name, draw in record.pictures.items():
        path = folder / f"{record.name}-{name}.png"
        with replacing(path) as file:
            draw().savefig(file, format="png", dpi=120)
        print(f"picture: {path}")
