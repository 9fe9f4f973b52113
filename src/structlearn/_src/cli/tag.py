"""``structlearn tag``: label the tokens of a column file."""

from __future__ import annotations

import argparse
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from structlearn._src.cli.arguments import (
    add_command,
    add_file,
    add_number,
    add_shared,
    check_output,
    whole,
    write_output,
)
from structlearn._src.cli.progress import say
from structlearn._src.cli.taggers import (
    ColumnTagger,
    Text,
    add_text,
    check_columns,
    counts,
    read_text,
)

if TYPE_CHECKING:
    from structlearn._src.common.arrays import Floats, Ints

_DESCRIPTION = """\
Label the tokens of a column file. Every line is copied, with the label in an additional
column. The file may or may not have a column of labels at the end: only the columns that
the model's template names are read.
"""
_EPILOG = """\
examples:
  structlearn tag new.txt --model tagger.model > tagged.txt
  cat new.txt | structlearn tag --model tagger.model --marginals

With --k the labellings of every sentence follow each other, best first, each under a line
'# rank score', as CRF++ writes them; the score is the sum of the weights that a labelling uses.
"""


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    told = "label the tokens of a column file"
    parser = add_command(subparsers, "tag", run, told, _DESCRIPTION, _EPILOG, "[FILE] --model FILE")
    add_text(parser)
    add_file(parser, "--model", "what 'structlearn train' wrote", required=True)
    told = "write to this file instead of standard output, gzipped if it ends in .gz"
    add_file(parser, "--output", told)
    told = "add a column with the probability of the label"
    parser.add_argument("--marginals", action="store_true", help=told)
    add_number(parser, "--k", whole, None, "write the N best labellings of every sentence")
    add_shared(parser, "--threads", "--place", "--quiet")


def run(args: argparse.Namespace) -> int:
    """Read, label, write, and say how fast it went."""
    check_output("--output", args.output, {"FILE": args.file, "--model": args.model})
    tagger = ColumnTagger.load(args.model, args.threads)
    started = time.perf_counter()
    text = read_text(args.file)
    check_columns(text, tagger.template, labelled=False)
    marginals = tagger.marginals(text.columns) if args.marginals else None
    if args.k is None:
        out = _tagged(tagger, text, tagger.predict(text.columns), marginals)
    else:
        out = _k_best(tagger, text, args.k, marginals)
    seconds = time.perf_counter() - started
    write_output(args.output, out)
    if not args.quiet:
        speed = f"{len(text.columns.ends) / seconds:,.0f} tokens per second"
        say(f"{'done':<10}{counts(text.columns)}, {seconds:.3f} s, {speed}\n")
    return 0


def _tagged(tagger: ColumnTagger, text: Text, labels: Ints, marginals: Floats | None) -> bytes:
    """Return the file with labels, and their probabilities if they are known."""
    import numpy as np

    from structlearn._src.text.columns import add_column, parse_columns

    out = add_column(text.data, text.columns, labels, tagger.names)
    if marginals is None:
        return out
    places = np.arange(len(labels))
    cells = [f"{p:.6f}" for p in marginals[places, labels].tolist()]
    return add_column(out, parse_columns(out), places, cells)


def _k_best(tagger: ColumnTagger, text: Text, k: int, marginals: Floats | None) -> bytes:
    """Return the sentences, each as often as it has labellings, up to `k`."""
    best = tagger.k_best(text.columns, k)
    spans = list(pairwise(text.columns.offsets.tolist()))
    ranks = []
    for rank in range(max(map(len, best))):
        chosen = [found[min(rank, len(found) - 1)][1] for found in best]
        ranks.append(_lines(_tagged(tagger, text, tagger.numbers(chosen), marginals)))
    blocks = [
        [b"# %d %.6f" % (rank, score), *ranks[rank][start:stop], b"\n"]
        for (start, stop), found in zip(spans, best, strict=True)
        for rank, (score, _) in enumerate(found)
    ]
    return b"".join(b"\n".join(block) for block in blocks)


def _lines(data: bytes) -> list[bytes]:
    """Return the lines of a column file that hold a token."""
    from structlearn._src.text.columns import parse_columns

    ends = parse_columns(data).ends.tolist()
    return [data[data.rfind(b"\n", 0, end) + 1 : end] for end in ends]
