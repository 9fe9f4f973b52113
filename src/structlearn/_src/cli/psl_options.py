"""Options of ``structlearn psl``, and what cannot be asked of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from structlearn._src.cli.arguments import (
    add_choice,
    add_number,
    add_old,
    add_shared,
    check_outputs,
    natural,
    positive,
    real,
    whole,
)
from structlearn._src.common import names
from structlearn._src.common.errors import ArgumentError, IgnoredOptionWarning, warn

#: Options of PSL's command that have no counterpart of the same form, and what to do instead.
_HINTS = {
    "-e --eval": "write --evaluate METRIC PREDICATE, or name evaluators in the model",
    "--groundrules --satisfaction": "--explain ATOM lists the groundings of a target with their "
    "distances, --estimate counts them, and RuleModel.grounding_ has all of them",
    "--postgres --h2path": "tables are kept in memory and spill to disk, see --memory; in Python a "
    "file of DuckDB can be given as source=",
    "--int-ids": "whole numbers need no option",
    "--skipAtomCommit": "nothing is written but to --output",
}


def add_options(parser: Any) -> None:
    """Add all options, and the files before them."""
    option = parser.add_argument
    place: Any = {"nargs": "?", "type": Path}
    told = "a model in .json or .yaml, or rules in a .psl file"
    option("model", metavar="MODEL", help=told, **place)
    told = "the .data file of a .psl file, for all splits; by default those beside it: "
    told += "NAME.data, NAME-learn.data, NAME-infer.data or NAME-eval.data"
    option("data", metavar="DATA", help=told, **place)
    _add_tasks(parser.add_argument_group("what to do"))
    _add_learning(parser.add_argument_group("learning"))
    _add_running(parser.add_argument_group("running"))
    _add_names_of_psl(parser.add_argument_group("as in PSL's own command"))


def _add_tasks(group: Any) -> None:
    option = group.add_argument
    # A method may follow in PSL, which is refused by name.
    word = {"nargs": "?", "const": True, "metavar": ""}
    option("-i", "--infer", **word, help="find the best values of the targets")
    option("-l", "--learn", **word, help="learn the weights")
    option("--estimate", action="store_true", help="only count the groundings of every rule")
    again = {"action": "append", "default": []}
    pulls = "infer, and list what pulls a target up and down; may be given again"
    option("--explain", metavar="ATOM", help=pulls, **again)
    scores = f"infer, and compare with the truth by one of {', '.join(names.METRICS)}; "
    scores += "may be given again"
    option("--evaluate", metavar=("METRIC", "PREDICATE"), nargs=2, help=scores, **again)
    least = "truth and values from which on --evaluate takes them as positive (default 0.5)"
    option("--threshold", metavar="T", type=real, help=least)
    which = "argument in which the atoms of a block differ, from 0, for categorical and mrr"
    option("--category", metavar="I", type=int, action="append", help=f"{which} (default: last)")
    folder = "folder for what is found; made if needed"
    option("-o", "--output", metavar="DIR", type=Path, help=folder)
    split = "which data (default infer; for --learn it is learn)"
    option("--split", choices=names.SPLITS, help=split)
    option("--greedy", action="store_true", help="let coefficients bind as in PSL's own parser")


def _add_learning(group: Any) -> None:
    told = "how inference and weight steps take turns"
    add_choice(group, "--driver", names.FIELD_DRIVERS, told)
    add_old(group, "--learner", "--driver", choices=(*names.FIELD_DRIVERS, *names.OLD_DRIVERS))
    most = "most weight steps (default: the library's)"
    add_number(group, "--learn-max-iter", whole, None, most)
    add_old(group, "--iterations", "--learn-max-iter", type=whole)
    paired = "steps of ADMM for each weight step of --driver paired (default 1)"
    add_number(group, "--sweeps", whole, None, paired)
    add_old(group, "--steps", "--sweeps", type=whole)
    add_number(group, "--warm-up", natural, None, "evaluations before its first step (default 10)")
    add_choice(group, "--rule", names.STEP_RULES, "how weight steps get shorter")
    first = "length of the first weight step, in units of the mean weight (default: the rule's)"
    add_number(group, "--step-size", positive, None, first)
    stands = "what stands for the entropy in --driver paired"
    group.add_argument("--surrogate", choices=names.SURROGATES, help=stands)
    add_number(group, "--C", positive, 1.0, "weight of the losses against the penalty")


def _add_running(group: Any) -> None:
    option = group.add_argument
    add_number(group, "--tol", real, 1e-6, "relative gap at which inference stops")
    add_shared(group, "--max-iter", default=5000, help="most steps of ADMM (default %(default)s)")
    add_number(group, "--time-limit", positive, None, "seconds until the best so far is given")
    memory = "limit for the tables of atoms, such as 2GB; they spill to disk above"
    option("--memory", metavar="M", help=memory)
    add_shared(group, "--threads", "--progress", "--quiet", "--log", "--json")


def _add_names_of_psl(group: Any) -> None:
    option = group.add_argument
    for place, flags in {"MODEL": "-c --config -m --model", "DATA": "-d --data"}.items():
        option(*flags.split(), dest=place, metavar=place, type=Path, help=f"the same as {place}")
    option("-D", metavar="KEY=VALUE", action="append", default=[], help="has no effect")
    for flags in _HINTS:
        option(*flags.split(), dest=flags, nargs="*", help=argparse.SUPPRESS)


def check(args: argparse.Namespace) -> None:
    """Refuse what cannot end well before any work is done."""
    for flags, hint in _HINTS.items():
        if getattr(args, flags) is not None:
            raise ArgumentError(f"{' and '.join(flags.split())} of PSL is not known here: {hint}")
    for task in ("infer", "learn"):
        word = getattr(args, task)
        if isinstance(word, str) and Path(word).suffix:  # the model, or its data, and no method
            args.model, args.data = Path(word), args.model
        elif isinstance(word, str):
            raise ArgumentError(
                f"--{task} {word} names a method of PSL: here inference has one, and learning "
                f"those of --driver"
            )
    args.model = args.MODEL or args.model
    args.data = args.DATA or args.data
    if args.model is None:
        raise ArgumentError("MODEL is missing: name a .json model, or a .psl file of rules")
    if args.D:
        keys = ", ".join(each.partition("=")[0] for each in args.D)
        warn(f"-D {keys}: PSL's options have no effect here", IgnoredOptionWarning)
    for metric, _ in args.evaluate:
        if metric not in names.METRICS:
            raise ArgumentError(
                f"--evaluate {metric} is not known; choose one of {', '.join(names.METRICS)}"
            )
    if args.output is not None and args.output.exists() and not args.output.is_dir():
        raise ArgumentError(f"--output {args.output} is a file; need a folder")
    check_outputs(args, {"MODEL": args.model, "DATA": args.data}, "--log", "--json")
    others = [args.infer, args.learn, args.explain, args.evaluate]
    if args.estimate and any(others):
        raise ArgumentError("--estimate stands alone: leave out the other things to do")
