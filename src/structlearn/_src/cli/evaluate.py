"""``structlearn evaluate``: how good labels are."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from structlearn._src.cli import taggers
from structlearn._src.cli.arguments import add_command, add_file, add_shared, check_effects
from structlearn._src.common.errors import FormatError

_DESCRIPTION = """\
Print the accuracy of labels and, if the labels encode chunks (B-NP, I-NP, O), precision,
recall and F1 in the format of conlleval. With a model, the last column of the file holds the true
labels and the model predicts; without, the last column is the prediction and the one before holds
the true ones.
"""


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    told = "accuracy and chunk F1 of a model, or of a tagged file"
    parser = add_command(subparsers, "evaluate", run, told, _DESCRIPTION)
    taggers.add_text(parser)
    add_file(parser, "--model", "what 'structlearn train' wrote")
    add_shared(parser, "--threads", "--place")


def run(args: argparse.Namespace) -> int:
    """Read, predict if there is a model, and print the report."""
    check_effects(args, {"--threads": (args.model is not None, "--model")})
    tagger = taggers.ColumnTagger.load(args.model, args.threads) if args.model else None
    text = taggers.read_text(args.file)
    scores = _compare(text) if tagger is None else _predict(tagger, text)
    sys.stdout.write(taggers.in_full(scores))
    return 0


def _predict(tagger: taggers.ColumnTagger, text: taggers.Text) -> taggers.Scores:
    taggers.check_columns(text, tagger.template, labelled=True)
    return taggers.compare(text.columns, tagger.predict(text.columns), tagger.names)


def _compare(text: taggers.Text) -> taggers.Scores:
    columns = text.columns
    if columns.width < 2:
        raise FormatError(
            f"{text.name}: there is only one column, but the last two must hold true and predicted "
            f"labels; give a file that 'structlearn tag' wrote, or a --model"
        )
    predicted = columns.ids[:, -1].astype("int64")
    return taggers.compare(
        taggers.without_last(columns), predicted, columns.vocabularies[-1].list()
    )
