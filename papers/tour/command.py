"""``structlearn demo``: a first tour, with pictures."""

from __future__ import annotations

import argparse
import importlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from papers.files import save_picture
from structlearn._src.cli.arguments import add_old, add_shared, natural
from structlearn._version import __version__

if TYPE_CHECKING:
    from papers.tour.base import Stop

#: Modules in `papers.tour` whose ``run(rng)`` makes a stop, in order of the tour.
STOPS = ("image", "room", "machine", "tagger", "fields", "trust")


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "demo",
        help="a first tour, with pictures",
        description="A first tour: prints what the library finds on small made-up problems and "
        "saves pictures of it.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--output",
        metavar="FOLDER",
        type=Path,
        default=Path("out/demo"),
        help="where pictures go; made if it is not there (default %(default)s)",
    )
    add_shared(parser, "--seed")
    add_old(parser, "--random-state", "--seed", type=natural)
    parser.add_argument("--no-pictures", action="store_true", help="print the text only")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Make every stop in turn."""
    import numpy as np

    draws = not args.no_pictures and _can_draw()
    if draws:
        args.output.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    print(f"structlearn {__version__}: a first tour (seed {args.seed})")
    for number, name in enumerate(STOPS, 1):
        # Each stop has a stream of its own, so that one more stop changes no other.
        rng = np.random.default_rng([args.seed, number])
        stop = importlib.import_module(f"papers.tour.{name}").run(rng)
        _tell(number, stop, args.output if draws else None)
    print(f"\n{len(STOPS)} stops in {time.perf_counter() - started:.1f} s.")
    if not draws and not args.no_pictures:
        print("There are no pictures because matplotlib is missing: pip install structlearn[plot]")
    return 0


def _tell(number: int, stop: Stop, folder: Path | None) -> None:
    title = f"{number}. {stop.heading}"
    print(f"\n{title}\n{'-' * len(title)}")
    print("\n".join(stop.lines), flush=True)
    if folder is None:
        return
    for name, draw in stop.pictures.items():
        path = folder / f"{number}-{name}.png"
        save_picture(draw(), path)
        print(f"Picture: {path}", flush=True)


def _can_draw() -> bool:
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        return False
    return True
