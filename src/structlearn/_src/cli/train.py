"""``structlearn train``: learn a tagger from a column file."""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structlearn._src.cli.arguments import (
    add_shared,
    check_output,
    natural,
    positive,
    real,
    whole,
)
from structlearn._src.cli.progress import IterationLine, ProgressLine
from structlearn._src.cli.taggers import (
    Tagger,
    Text,
    check_columns,
    gold_labels,
    judge,
    read_text,
    without_last,
)
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.names import (
    COSTS,
    DRIVERS,
    HIDDEN,
    LOSSES,
    SCHEMES,
    SOLVERS,
    SPACES,
)
from structlearn._src.common.watch import Ending

if TYPE_CHECKING:
    from structlearn._src.estimators.structured.sequence import SequenceLabeler
    from structlearn._src.solve.checkpoint import Checkpoint
    from structlearn._src.text.template import Template

_DESCRIPTION = """\
Learn to label tokens from a column file: one token a line, its columns apart by blanks or tabs, a
blank line after every sentence, and the label in the last column.
"""
_EPILOG = """\
The objective is 1/2 |w|^2 + C * (sum of the losses of the sentences); with --l1-ratio R the
penalty is (1 - R)/2 |w|^2 + R |w|_1. So C is CRF++'s -c, and 1 / (2 C) is CRFsuite's c2.

Progress and a verdict go to standard error, the report on --test to standard output. The model
file is written when training is over, whole or not at all. Ctrl-C ends training early and keeps
the best model so far. With --checkpoint a run that was killed goes on where it was when the same
command is given again.

exit codes: 0 a model was written, 2 bad usage or input, 130 interrupted (the best model so far is
still written if there is one).
"""


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "train",
        help="learn a tagger from a column file",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    option = parser.add_argument
    option("file", metavar="TRAIN", type=Path, help="a column file; may be gzipped")
    option("--model", metavar="M", type=Path, required=True, help="where to write the model")
    option("--test", metavar="F", type=Path,
           help="a column file to evaluate the model on")  # fmt: skip
    add_shared(parser, "--quiet")
    _add_features(parser.add_argument_group("features"))
    _add_objective(parser.add_argument_group("objective"))
    _add_solver(parser.add_argument_group("solver"))
    parser.set_defaults(run=run)


def _add_features(group: Any) -> None:
    option = group.add_argument
    option("--template", metavar="F", type=Path,
           help="a template in the language of CRF++ (lines such as U05:%%x[-1,0]/%%x[0,0], and "
           "B); by default the one that CRF++ has for chunking, which needs a column of words and "
           "one of tags")  # fmt: skip
    option("--features", metavar="S", choices=SPACES, default="sparse",
           help="sparse (the default): weights for the pairs of attribute and label seen in "
           "training; dense: for all pairs")  # fmt: skip
    option("--min-count", metavar="N", type=whole, default=1,
           help="leave out attributes that occur less often (default %(default)s)")  # fmt: skip
    option("--forbid", metavar="S", choices=SCHEMES,
           help="rule out transitions that break the scheme BIO, BIOES or IOB1")  # fmt: skip
    option("--hidden-states", "--hidden", metavar="N", type=natural, default=0,
           help="put a hidden variable of N states beside every token (default: none)")  # fmt: skip
    option("--hidden-kind", metavar="K", choices=HIDDEN, default="node",
           help="node (the default): labels are linked, each with its hidden state; layer: the "
           "hidden states are linked instead")  # fmt: skip


def _add_objective(group: Any) -> None:
    option = group.add_argument
    option("--loss", metavar="L", choices=LOSSES, default="log",
           help=f"one of {', '.join(LOSSES)} (default %(default)s)")  # fmt: skip
    option("--alpha", metavar="A", type=real, default=0.5,
           help="share of the log loss in the loss hybrid (default %(default)s)")  # fmt: skip
    option("--C", metavar="C", type=positive, default=1.0,
           help="weight of the losses against the penalty (default %(default)s)")  # fmt: skip
    option("--eps-y", metavar="E", type=real,
           help="temperature of the labels, instead of the loss's own")  # fmt: skip
    option("--eps-h", metavar="E", type=real,
           help="temperature of the hidden states, instead of the loss's own")  # fmt: skip
    option("--cost", metavar="K", choices=COSTS, default="hamming",
           help="what errors cost in losses with a margin: hamming (the default), their number, "
           "or hamming-mean, their share")  # fmt: skip
    option("--l1-ratio", metavar="R", type=real, default=0.0,
           help="share of the absolute values in the penalty (default %(default)s)")  # fmt: skip


def _add_solver(group: Any) -> None:
    option = group.add_argument
    option("--solver", metavar="S", choices=SOLVERS, default="auto",
           help=f"one of {', '.join(SOLVERS)} (default %(default)s)")  # fmt: skip
    option("--driver", metavar="D", choices=DRIVERS, default="subgradient",
           help=f"one of {', '.join(DRIVERS)} (default %(default)s)")  # fmt: skip
    add_shared(group, "--max-iter", default=1000)
    option("--tol", metavar="T", type=real, default=1e-4,
           help="relative tolerance at which to stop (default %(default)s)")  # fmt: skip
    add_shared(group, "--threads", "--seed")
    option("--checkpoint", metavar="F", type=Path,
           help="save the run there now and then; if the file exists, go on from it")  # fmt: skip
    option("--checkpoint-seconds", metavar="S", type=real, default=60.0,
           help="time between two such saves (default %(default)s)")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Read, train, write the model, say how it went."""
    started = time.perf_counter()
    inputs = {"TRAIN": args.file, "--test": args.test, "--template": args.template}
    check_output("--model", args.model, inputs)
    check_output("--checkpoint", args.checkpoint, inputs | {"--model": args.model})
    template = _template(args.template)
    test = None if args.test is None else _labelled(args.test, template)
    labeler = _labeler(args, template)
    _fit(args, labeler, template)
    if labeler.n_iter_ == 0:
        raise KeyboardInterrupt
    _save(labeler, args.model)
    if not args.quiet:
        words = _verdict(labeler, time.perf_counter() - started)
        print(f"structlearn: {words}; the model is in {args.model}", file=sys.stderr)
    if test is not None:
        tagger = Tagger(labeler, str(args.model))
        sys.stdout.write(judge(test.columns, tagger.predict(test.columns), tagger.names))
    return 130 if labeler.ended_ is Ending.INTERRUPTED else 0


# ---- in ----------------------------------------------------------------------------------


def _template(path: Path | None) -> Template:
    from structlearn._src.text.template import parse_template, read_template

    return parse_template() if path is None else read_template(path)


def _labelled(path: Path, template: Template) -> Text:
    text = read_text(path)
    check_columns(text, template, labelled=True)
    return text


# ---- training ----------------------------------------------------------------------------


def _labeler(args: argparse.Namespace, template: Template) -> SequenceLabeler:
    from structlearn._src.estimators.structured.sequence import SequenceLabeler

    hidden = {}
    if args.hidden_states:
        hidden = {"hidden": args.hidden_kind, "hidden_states": args.hidden_states}
    return SequenceLabeler(
        template=template,
        features=args.features,
        min_count=args.min_count,
        forbidden=args.forbid,
        loss=args.loss,
        alpha=args.alpha,
        C=args.C,
        eps_y=args.eps_y,
        eps_h=args.eps_h,
        cost=args.cost,
        l1_ratio=args.l1_ratio,
        solver=args.solver,
        driver=args.driver,
        max_iter=args.max_iter,
        tol=args.tol,
        n_jobs=args.threads,
        random_state=args.seed,
        **hidden,
    )


def _fit(args: argparse.Namespace, labeler: SequenceLabeler, template: Template) -> None:
    """Train on the file, which is not kept longer than needed."""
    from sklearn.exceptions import ConvergenceWarning

    progress = ProgressLine(wanted=not args.quiet, every=0.0)
    progress.shown = not args.quiet
    progress(None, "reading")
    text = _labelled(args.file, template)
    labeler.callbacks = (IterationLine(progress),)
    labeler.checkpoint = _checkpoint(args)
    columns = without_last(text.columns)
    labels = gold_labels(text.columns)
    del text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the verdict says it
            labeler.fit(columns, labels)
    finally:
        progress.clear()


def _checkpoint(args: argparse.Namespace) -> Checkpoint | None:
    from structlearn._src.solve.checkpoint import Checkpoint

    if args.checkpoint is None:
        return None
    return Checkpoint(args.checkpoint, seconds=args.checkpoint_seconds)


# ---- out ---------------------------------------------------------------------------------


def _save(labeler: SequenceLabeler, path: Path) -> None:
    from structlearn._src.estimators.storage import save

    try:
        save(labeler, path)
    except OSError as error:  # its own words would name a temporary file
        raise ArgumentError(f"--model {path} cannot be written: {error.strerror}") from None


def _verdict(labeler: SequenceLabeler, seconds: float) -> str:
    value = labeler.value_
    known = [] if math.isnan(value) else [f"objective {value:.6f}"]
    parts = [
        f"{labeler.n_iter_} iterations",
        *known,
        f"{len(labeler.weights_)} weights",
        f"{seconds:.1f} s",
        labeler.status_,
    ]
    return "; ".join(parts)
