"""``structlearn demo``: a first tour, with pictures."""

from __future__ import annotations

import argparse
import base64
import importlib
import inspect
import time
from html import escape
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from papers.files import save_picture
from structlearn._src.cli.arguments import add_old, add_shared, check_output, natural
from structlearn._version import __version__

if TYPE_CHECKING:
    from papers.tour.base import Stop
    from structlearn._src.display.page import Page

#: Modules in `papers.tour` whose ``run(rng)`` makes a stop, in order of the tour.
STOPS = ("image", "room", "machine", "tagger", "fields", "trust")
_NEXT = """
What next?
  structlearn train TRAIN.txt -m MODEL --report page.html  a tagger from your own file
  structlearn psl MODEL.json --report page.html            rules of your own, or of PSL
  structlearn --help                                       all commands
"""


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
    told = "write text, pictures and code of the tour to this HTML file, which needs no other"
    add_shared(parser, "--report", help=told)
    add_shared(parser, "--seed")
    add_old(parser, "--random-state", "--seed", type=natural)
    parser.add_argument("--no-pictures", action="store_true", help="print the text only")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Make every stop in turn."""
    import numpy as np

    check_output("--report", args.report, {})
    draws = not args.no_pictures and _can_draw()
    if draws:
        args.output.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    print(f"structlearn {__version__}: a first tour (seed {args.seed})", flush=True)
    page = None if args.report is None else _new_page()
    for number, name in enumerate(STOPS, 1):
        module = importlib.import_module(f"papers.tour.{name}")
        title = f"{number}. {module.HEADING}"
        print(f"\n{title}\n{'-' * len(title)}", flush=True)  # what follows may take seconds
        # Each stop has a stream of its own, so that one more stop changes no other.
        stop = module.run(np.random.default_rng([args.seed, number]))
        figures = {each: draw() for each, draw in stop.pictures.items()} if draws else {}
        _tell(number, stop, figures, args.output)
        if page is not None:
            _write(page, title, stop, figures, module)
    print(f"\n{len(STOPS)} stops in {time.perf_counter() - started:.1f} s.")
    if draws:
        print(f"Pictures are in {args.output}.")
    if page is not None:
        print(f"The page is {page.save(args.report)}.")
    print(_NEXT, end="")
    if not draws and not args.no_pictures:
        print("There are no pictures because matplotlib is missing: pip install structlearn[plot]")
    return 0


def _tell(number: int, stop: Stop, figures: dict[str, Any], folder: Path) -> None:
    print("\n".join(stop.lines), flush=True)
    for name, figure in figures.items():
        path = folder / f"{number}-{name}.png"
        save_picture(figure, path)
        print(f"Picture: {path}", flush=True)


def _new_page() -> Page:
    from structlearn._src.display.page import Page

    return Page("structlearn: a first tour")


def _write(page: Page, title: str, stop: Stop, figures: dict[str, Any], module: ModuleType) -> None:
    """Add a stop to the page: what it found, its pictures and how it was made."""
    pictures = [_picture(name, figure) for name, figure in figures.items()]
    text = f"<pre>{escape(chr(10).join(stop.lines))}</pre>"
    code = escape(inspect.getsource(module))
    page.add(
        title, text, *pictures, f"<details><summary>The code</summary><pre>{code}</pre></details>"
    )


def _picture(name: str, figure: Any) -> str:
    data = BytesIO()
    figure.savefig(data, format="png")
    source = base64.b64encode(data.getvalue()).decode()
    return (
        f'<figure><img alt="{escape(name)}" style="max-width:100%" '
        f'src="data:image/png;base64,{source}"></figure>'
    )


def _can_draw() -> bool:
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        return False
    return True
