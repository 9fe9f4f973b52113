"""``structlearn inspect``: what a model has learnt."""

from __future__ import annotations

import argparse
from typing import Any

from structlearn._src.cli.arguments import add_command, add_file, add_number, whole
from structlearn._src.common.errors import ArgumentError

_DESCRIPTION = """\
Print what a model has learnt: how it was trained, the features with the largest positive and
negative weights, and the weights of transitions. Of models with any number of states or components,
how many there are.
"""


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    told = "top features, transitions and parameters of a model"
    parser = add_command(subparsers, "inspect", run, told, _DESCRIPTION)
    add_file(parser, "--model", "what 'structlearn train' wrote", required=True)
    add_number(parser, "--top", whole, 20, "how many weights to show of each sign")
    told = "show all parameters, not only those that differ from their defaults"
    parser.add_argument("--all", action="store_true", help=told)
    parser.add_argument("--label", metavar="L", help="show only weights that concern this label")


def run(args: argparse.Namespace) -> int:
    """Load the model and print what is in it."""
    from structlearn._src.cli import model_report as report
    from structlearn._src.estimators.storage import load
    from structlearn._src.model.design import PairwiseDesign

    estimator = load(args.model)
    plan = getattr(estimator, "plan_", None)
    if plan is None:
        print("\n".join(report.of_hidden(estimator, args.label, args.all)))
        return 0
    names = [str(name) for name in plan.classes.tolist()]
    if args.label is not None and args.label not in names:
        raise ArgumentError(f"--label {args.label} is not a label; they are {', '.join(names)}")
    print("\n".join(report.summary(estimator, names, args.all)))
    if isinstance(plan.design, PairwiseDesign):  # a hidden chain has no weights by label alone
        for lines in report.parts(plan, estimator.weights_, names, args.top, args.label):
            print("\n" + "\n".join(lines))
    return 0
