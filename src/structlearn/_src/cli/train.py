"""``structlearn train``: learn a tagger from a column file."""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structlearn._src.cli import taggers
from structlearn._src.cli.arguments import (
    add_choice,
    add_command,
    add_file,
    add_number,
    add_shared,
    check_effects,
    check_outputs,
    facts_of,
    natural,
    positive,
    real,
    whole,
    write_facts,
    write_report,
)
from structlearn._src.cli.progress import ProgressLine
from structlearn._src.common import names
from structlearn._src.common.watch import Ending

if TYPE_CHECKING:
    from structlearn._src.estimators.structured.sequence import SequenceLabeler
    from structlearn._src.solve.checkpoint import Checkpoint
    from structlearn._src.solve.loop import Event
    from structlearn._src.text.template import Template

_PAUSE = 2.0  # seconds between two scores on --valid at least, so that they can be read
_SHARE = 0.1  # of the time that scores on --valid may take
_DESCRIPTION = """\
Learn to label tokens from a column file: one token per line, columns separated by spaces or tabs, a
blank line after every sentence, and the label in the last column.
"""
_EPILOG = """\
examples:
  structlearn train train.txt --model tagger.model --test test.txt
  structlearn train train.txt --model tagger.model --template my.template --loss hinge --C 0.1

The objective is 1/2 |w|^2 + C * (sum of the losses of the sentences); with --l1-ratio R the
penalty is (1 - R)/2 |w|^2 + R |w|_1. So C is CRF++'s -c, and 1 / (2 C) is CRFsuite's c2.

Progress and a summary go to standard error, the report on --test to standard output. The model
file is written atomically when training ends. Ctrl-C ends training early and keeps
the best model so far. With --checkpoint a run that was killed resumes when the same command is
given again.

exit codes: 0 a model was written, 2 bad usage or input, 130 interrupted (the best model so far is
still written if there is one).
"""


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    told = "learn a tagger from a column file"
    parser = add_command(
        subparsers, "train", run, told, _DESCRIPTION, _EPILOG, "TRAIN --model FILE"
    )
    parser.add_argument("file", metavar="TRAIN", type=Path, help="a column file; may be gzipped")
    add_file(parser, "--model", "where to write the model", required=True)
    add_file(parser, "--test", "a column file to evaluate the model on")
    add_file(parser, "--valid", "a column file whose score is told now and then while training")
    add_shared(parser, "--report", "--quiet", "--progress", "--log", "--json")
    _add_features(parser.add_argument_group("features"))
    _add_objective(parser.add_argument_group("objective"))
    _add_solver(parser.add_argument_group("solver"))


def _add_features(group: Any) -> None:
    template = (
        "a template in the language of CRF++ (lines such as U05:%%x[-1,0]/%%x[0,0], and B); by "
        "default the one that CRF++ uses for chunking, which needs columns of words and of tags"
    )
    add_file(group, "--template", template)
    told = "weights for the pairs of attribute and label seen in training, or for all"
    add_choice(group, "--features", names.SPACES[::-1], told)
    add_number(group, "--min-count", whole, 1, "leave out attributes that occur less often")
    told = "rule out transitions that break this scheme (default: none)"
    add_choice(group, "--forbid", names.SCHEMES, told, default=None, help=told)
    told = "put a hidden variable of N states beside every token (default: none)"
    group.add_argument("--hidden-states", "--hidden", metavar="N", type=natural, help=told)
    told = "whether labels are linked, each with its hidden state, or the hidden states"
    add_choice(group, "--hidden-kind", names.HIDDEN, told, default=None)


def _add_objective(group: Any) -> None:
    add_choice(group, "--loss", names.LOSSES, "which loss")
    told = "share of the log loss in the loss hybrid (default 0.5)"
    add_number(group, "--alpha", real, None, told)
    add_number(group, "--C", positive, 1.0, "weight of the losses relative to the penalty")
    add_number(group, "--eps-y", real, None, "temperature of labels, instead of the loss's own")
    add_number(group, "--eps-h", real, None, "that of hidden states, instead of the loss's own")
    told = "what errors cost in losses with a margin, their number or their share"
    add_choice(group, "--cost", names.COSTS, told, default=None)
    add_number(group, "--l1-ratio", real, 0.0, "share of the absolute values in the penalty")


def _add_solver(group: Any) -> None:
    add_choice(group, "--solver", names.SOLVERS, "which solver")
    drivers = (*names.DRIVERS, *names.OLD_DRIVERS)
    add_choice(group, "--driver", drivers, "when inference is done anew")
    add_shared(group, "--max-iter", default=1000)
    add_number(group, "--tol", real, 1e-4, "relative tolerance at which to stop")
    add_shared(group, "--threads", "--memory-limit", "--place", "--seed")
    told = "save the run to this file at intervals; if the file exists, resume from it"
    add_file(group, "--checkpoint", told)
    told = "seconds between two saves (default 60)"
    add_number(group, "--checkpoint-seconds", real, None, told)


def run(args: argparse.Namespace) -> int:
    """Read, train, write the model, say how it went."""
    from structlearn._src.estimators.storage import save

    started = time.perf_counter()
    _check_effects(args)
    files = {
        "TRAIN": args.file,
        "--test": args.test,
        "--valid": args.valid,
        "--template": args.template,
    }
    check_outputs(args, files, "--model", "--checkpoint", "--report", "--log", "--json")
    template = _template(args.template)
    test = None if args.test is None else _labelled(args.test, template)
    progress = ProgressLine(args.progress, args.quiet, log=args.log)
    labeler = _labeler(args, template)
    if args.valid is not None:
        labeler.callbacks = (_HeldOut(_labelled(args.valid, template), progress),)
    _fit(args, labeler, template, progress)
    if labeler.n_iter_ == 0:
        raise KeyboardInterrupt
    seconds = time.perf_counter() - started
    progress.tell("done", labeler.status_, seconds)
    progress.tell("result", verdict(labeler))
    save(labeler, args.model)
    progress.tell("wrote", f"{args.model} ({args.model.stat().st_size / 1e6:.2f} MB)")
    told = "ended_ converged_ status_ n_iter_ value_"
    weights = len(labeler.weights_)
    facts = facts_of(labeler, told, weights=weights, seconds=seconds, model=str(args.model))
    if test is not None:
        tagger = taggers.ColumnTagger(labeler, str(args.model))
        scores = taggers.compare(test.columns, tagger.predict(test.columns), tagger.names)
        progress.tell("test", taggers.in_short(scores))
        sys.stdout.write(taggers.in_full(scores))
        told = "accuracy precision recall f1" if scores.chunked else "accuracy"
        facts["test"] = facts_of(scores.chunks, told)
    write_facts(args.json, facts)
    _report(args, labeler, test, progress)
    return 130 if labeler.ended_ is Ending.INTERRUPTED else 0


def _report(
    args: argparse.Namespace,
    labeler: SequenceLabeler,
    test: taggers.Text | None,
    progress: ProgressLine,
) -> None:
    """Write the page, with what the test says if there is one."""
    if args.report is None:
        return
    examples = () if test is None else taggers.as_examples(test.columns)
    write_report(args.report, labeler, f"Tagger {args.model}", *examples)


def _check_effects(args: argparse.Namespace) -> None:
    hidden = bool(args.hidden_states), "--hidden-states"
    needs = {
        "--alpha": (args.loss == "hybrid", "--loss hybrid"),
        "--cost": (args.loss not in ("log", "perceptron"), "a --loss with a margin"),
        "--eps-h": hidden,
        "--hidden-kind": hidden,
        "--checkpoint-seconds": (args.checkpoint is not None, "--checkpoint"),
    }
    check_effects(args, needs)


# ---- in ----------------------------------------------------------------------------------


def _template(path: Path | None) -> Template:
    from structlearn._src.text.template import parse_template, read_template

    return parse_template() if path is None else read_template(path)


def _labelled(path: Path, template: Template) -> taggers.Text:
    text = taggers.read_text(path)
    taggers.check_columns(text, template, labelled=True)
    return text


# ---- training ----------------------------------------------------------------------------


def _labeler(args: argparse.Namespace, template: Template) -> SequenceLabeler:
    from structlearn._src.estimators.structured.sequence import SequenceLabeler

    direct = (
        "features", "min_count", "loss", "alpha", "C", "eps_y", "eps_h", "cost", "l1_ratio",
        "solver", "driver", "max_iter", "tol",
    )  # fmt: skip
    hidden = {}
    if args.hidden_states:
        hidden = {
            "hidden": args.hidden_kind or names.HIDDEN[0],
            "hidden_states": args.hidden_states,
        }
    return SequenceLabeler(
        template=template,
        forbidden=args.forbid,
        checkpoint=_checkpoint(args),
        n_jobs=args.threads,
        random_state=args.seed,
        **{name: getattr(args, name) for name in direct if getattr(args, name) is not None},
        **hidden,
    )


def _fit(
    args: argparse.Namespace, labeler: SequenceLabeler, template: Template, progress: ProgressLine
) -> None:
    """Train on the file, which is not kept longer than needed."""
    from sklearn.exceptions import ConvergenceWarning

    if args.memory_limit is not None:
        _fit_files(args, labeler, progress)
        return
    begun = time.perf_counter()
    progress(None, "reading")
    text = _labelled(args.file, template)
    counts = taggers.counts(text.columns)
    n_labels = len(text.columns.vocabularies[-1])
    progress.tell("read", f"{counts}, {n_labels} labels", time.perf_counter() - begun)
    progress.tell("train", f"{args.loss} loss, C = {args.C:g}, solver {args.solver}")
    labeler.progress = progress if progress.shown else None
    columns = taggers.without_last(text.columns)
    labels = taggers.gold_labels(text.columns)
    del text
    progress.begin()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the verdict says it
            labeler.fit(columns, labels)
    finally:
        progress.clear()


def _fit_files(args: argparse.Namespace, labeler: SequenceLabeler, progress: ProgressLine) -> None:
    """Train on a file that need not fit into memory."""
    from structlearn._src.text.partitions import ColumnFiles

    files = ColumnFiles(args.file, memory_limit=args.memory_limit)
    progress.tell("train", f"{args.loss} loss, C = {args.C:g}, memory limit {args.memory_limit}")
    labeler.progress = progress if progress.shown else None
    progress.begin()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the verdict says how it ended
            labeler.fit(files, None)
    finally:
        progress.clear()


class _HeldOut:
    """Tells the score on other sentences while training, in a small part of its time."""

    def __init__(self, text: taggers.Text, progress: ProgressLine) -> None:
        self._columns = text.columns
        self._progress = progress
        self._next = 0.0

    def __call__(self, event: Event) -> None:
        began = time.perf_counter()
        if began < self._next or event.current is None:
            return
        tagger = taggers.ColumnTagger(event.current(), "the model in training")
        predicted = tagger.predict(self._columns)
        scores = taggers.compare(self._columns, predicted, tagger.names)
        told = f"iteration {event.iteration}: {taggers.in_short(scores)}"
        self._progress.tell("valid", told)
        took = time.perf_counter() - began
        self._next = began + took + max(_PAUSE, took / _SHARE)


def _checkpoint(args: argparse.Namespace) -> Checkpoint | None:
    from structlearn._src.solve.checkpoint import Checkpoint

    if args.checkpoint is None:
        return None
    seconds = {} if args.checkpoint_seconds is None else {"seconds": args.checkpoint_seconds}
    return Checkpoint(args.checkpoint, **seconds)


# ---- out ---------------------------------------------------------------------------------


def verdict(labeler: SequenceLabeler) -> str:
    """Say what training found; of a value that is not known, the last that was."""
    history = labeler.history_
    known = [(labeler.value_, "")] if math.isfinite(labeler.value_) else []
    before = zip(history.value, history.iteration, strict=True)
    known += [(x, f" at iteration {i}") for x, i in before if math.isfinite(x)][-1:]
    objective = "".join(f"objective {x:#.6g}{where}, " for x, where in known[:1])
    return f"{labeler.n_iter_} iterations, {objective}{len(labeler.weights_):,} weights"
