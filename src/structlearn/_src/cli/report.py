"""``structlearn report``: a page about a model, or about the facts of a run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structlearn._src.cli import taggers
from structlearn._src.cli.arguments import add_command, add_file, add_shared, check_outputs
from structlearn._src.cli.progress import tell
from structlearn._src.common.errors import ArgumentError, FormatError

if TYPE_CHECKING:
    from structlearn._src.display.page import Page

_DESCRIPTION = """\
Write one HTML page about models, or about what commands wrote with --json. The page is a single
file that needs no network: learning curve, scores, confusion, errors in context, transitions and
features of taggers; states, traces and diagnostics of models with an unknown number of states.
"""
_EPILOG = """\
examples:
  structlearn report tagger.model --test test.txt --output tagger.html
  structlearn report states.model --output states.html
  structlearn psl model.json --output out --report rules.html

Rules and factor graphs need their data, so that 'structlearn psl' and 'structlearn infer' write
their pages themselves, with --report.

exit codes: 0 a page was written, 2 bad usage or input.
"""


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    told = "a page with pictures and tables about a model"
    usage = "MODEL... --output PAGE.html"
    parser = add_command(subparsers, "report", run, told, _DESCRIPTION, _EPILOG, usage)
    told = "a model file, or what a command wrote with --json"
    parser.add_argument("files", metavar="MODEL", nargs="+", type=Path, help=told)
    add_file(parser, "--output", "where to write the page", required=True)
    add_file(parser, "--test", "for taggers: a column file with labels to compare with")
    add_shared(parser, "--threads")


def run(args: argparse.Namespace) -> int:
    """Read, and write the page."""
    from structlearn._src.display.page import Page

    inputs: dict[str, Path | None] = {f"MODEL {path}": path for path in args.files}
    check_outputs(args, inputs | {"--test": args.test}, "--output")
    pages = [_page(args, path) for path in args.files]
    whole = pages[0]
    if len(pages) > 1:
        whole = Page(", ".join(map(str, args.files)))
        for path, page in zip(args.files, pages, strict=True):
            whole.sections += [(f"{path}: {heading}", html) for heading, html in page.sections]
    tell("wrote", str(whole.save(args.output)))
    return 0


def _page(args: argparse.Namespace, path: Path) -> Page:
    from structlearn._src.common.paths import read_bytes

    if read_bytes(path).lstrip()[:1] == b"{":
        return _of_facts(path)
    from structlearn._src.display.report import report
    from structlearn._src.estimators.storage import load
    from structlearn._src.estimators.structured.sequence import SequenceLabeler

    estimator = load(path)
    if args.test is None:
        return report(estimator, title=str(path))
    if not isinstance(estimator, SequenceLabeler):
        raise ArgumentError(
            f"--test {args.test} is a column file, which only taggers can label, but {path} is a "
            f"{type(estimator).__name__}; leave it out"
        )
    tagger = taggers.ColumnTagger(estimator, str(path))
    estimator.n_jobs = args.threads
    text = taggers.read_text(args.test)
    taggers.check_columns(text, tagger.template, labelled=True)
    return report(estimator, *taggers.as_examples(text.columns), title=str(path))


def _of_facts(path: Path) -> Page:
    """Read what a command wrote with --json."""
    import json

    from structlearn._src.common.paths import read_bytes
    from structlearn._src.display import page as blocks

    try:
        found = json.loads(read_bytes(path))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.keys() & {"rules", "predicates"}:
        raise FormatError(
            f"{path}: this is neither a model file nor what a command wrote with --json; for rules "
            f"use 'structlearn psl MODEL --report PAGE.html'"
        )
    page = blocks.Page(str(path))
    plain = {name: value for name, value in found.items() if not isinstance(value, dict)}
    page.add("Result", blocks.facts(plain))
    for name, value in found.items():
        if isinstance(value, dict):
            page.add(name.capitalize(), blocks.facts(value))
    return page
