"""``structlearn psl``: infer, learn and explain programs of PSL's rule language."""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structlearn._src.cli.arguments import (
    add_choice,
    add_command,
    add_number,
    add_old,
    add_shared,
    natural,
    positive,
    real,
    whole,
    write_output,
)
from structlearn._src.cli.progress import IterationLine, ProgressLine
from structlearn._src.common.errors import ArgumentError, UncertifiedWarning
from structlearn._src.common.names import (
    FIELD_DRIVERS,
    METRICS,
    OLD_DRIVERS,
    SPLITS,
    STEP_RULES,
    SURROGATES,
)
from structlearn._src.common.watch import Ending

if TYPE_CHECKING:
    from structlearn._src.estimators.fields.rule_model import RuleModel
    from structlearn._src.rules.program import ProgramFile

_DESCRIPTION = """\
Run a program of weighted rules, in the files of PSL: a JSON model of PSL 2.4, or rules in a .psl
file with their data in .data files. Without a choice of what to do, infer.
"""
_EPILOG = """\
With --infer the best values go to --output, one file NAME.txt for each predicate with targets:
the arguments and the value, apart by tabs. Without --output they go to standard output, the
predicate first, unless --learn, --evaluate or --explain write there. The verdict on standard error
has the energy, with weights as written and, for comparison, divided by the largest as PSL does.

With --learn the weights come from the data of the split learn, and the program with the new
weights goes to --output as NAME-learned.psl and NAME-learned.json; without, to standard output.
Targets without a truth are latent. With --learn and --infer, inference follows with the new
weights. Ctrl-C ends either early and keeps the best so far.

examples:
  structlearn psl model.json --output inferred --evaluate auroc Trusts
  structlearn psl model.psl --learn --driver paired --infer --output out
  structlearn psl model.json --explain "Trusts('ann', 'bob')"

exit codes: 0 all is well, 2 bad usage or input, 130 interrupted (the best so far is still given
if there is one).
"""


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    told = "infer, learn and explain weighted rules (PSL)"
    parser = add_command(subparsers, "psl", run, told, _DESCRIPTION, _EPILOG)
    option = parser.add_argument
    option("model", metavar="MODEL", type=Path, help="a .json model, or rules in a .psl file")
    option(
        "data",
        metavar="DATA",
        nargs="?",
        type=Path,
        help="the .data file of a .psl file, for all splits; by default those beside it: "
        "NAME.data, NAME-learn.data, NAME-infer.data or NAME-eval.data",
    )
    _add_tasks(parser.add_argument_group("what to do"))
    _add_learning(parser.add_argument_group("learning"))
    _add_running(parser.add_argument_group("running"))


def _add_tasks(group: Any) -> None:
    option = group.add_argument
    option("--infer", action="store_true", help="find the best values of the targets")
    option("--learn", action="store_true", help="learn the weights")
    option("--estimate", action="store_true", help="only count the groundings of every rule")
    again = {"action": "append", "default": []}
    pulls = "infer, and list what pulls a target up and down; may be given again"
    option("--explain", metavar="ATOM", help=pulls, **again)
    scores = f"infer, and compare with the truth by one of {', '.join(METRICS)}; may be given again"
    option("--evaluate", metavar=("METRIC", "PREDICATE"), nargs=2, help=scores, **again)
    option("--output", metavar="DIR", type=Path, help="folder for what is found; made if needed")
    split = f"which data: {', '.join(SPLITS)} (default infer; for --learn it is learn)"
    option("--split", metavar="S", choices=SPLITS, help=split)
    option("--greedy", action="store_true", help="let coefficients bind as in PSL's own parser")


def _add_learning(group: Any) -> None:
    told = "how inference and weight steps take turns"
    add_choice(group, "--driver", "D", FIELD_DRIVERS, told)
    add_old(group, "--learner", "--driver", choices=(*FIELD_DRIVERS, *OLD_DRIVERS))
    most = "most weight steps (default: the library's)"
    add_number(group, "--learn-max-iter", whole, None, most)
    add_old(group, "--iterations", "--learn-max-iter", type=whole)
    add_number(group, "--sweeps", whole, 1, "steps of ADMM for each weight step of paired")
    add_old(group, "--steps", "--sweeps", type=whole)
    add_number(group, "--warm-up", natural, 10, "evaluations before its first weight step")
    add_choice(group, "--rule", "R", STEP_RULES, "how weight steps get shorter")
    add_number(group, "--step-size", positive, 1.0, "length of the first weight step")
    add_choice(group, "--surrogate", "H", SURROGATES, "what stands for the entropy")
    add_number(group, "--C", positive, 1.0, "weight of the losses against the penalty")


def _add_running(group: Any) -> None:
    option = group.add_argument
    add_number(group, "--tol", real, 1e-6, "relative gap at which inference stops")
    add_shared(group, "--max-iter", default=5000, help="most steps of ADMM (default %(default)s)")
    add_number(group, "--time-limit", positive, None, "seconds until the best so far is given")
    memory = "limit for the tables of atoms, such as 2GB; they spill to disk above"
    option("--memory", metavar="M", help=memory)
    add_shared(group, "--threads", "--progress", "--quiet")


def run(args: argparse.Namespace) -> int:
    """Read, do what was asked, write."""
    _check(args)
    task = _Task(args)
    try:
        if args.estimate:
            return task.estimate()
        if args.learn:
            task.learn()
        if args.infer or args.explain or args.evaluate or not args.learn:
            task.infer()
    finally:
        task.progress.clear()
    return 130 if task.interrupted else 0


def _check(args: argparse.Namespace) -> None:
    """Refuse what cannot end well before any work is done."""
    for metric, _ in args.evaluate:
        if metric not in METRICS:
            raise ArgumentError(
                f"--evaluate {metric} is not known; choose one of {', '.join(METRICS)}"
            )
    if args.output is not None and args.output.exists() and not args.output.is_dir():
        raise ArgumentError(f"--output {args.output} is a file; need a folder")
    others = [args.infer, args.learn, args.explain, args.evaluate]
    if args.estimate and any(others):
        raise ArgumentError("--estimate stands alone: leave out the other things to do")


class _Task:
    """One run of the command: the model, and what is told about it."""

    def __init__(self, args: argparse.Namespace) -> None:
        from structlearn._src.estimators.fields.rule_model import RuleModel
        from structlearn._src.rules.program import read_program

        self.args = args
        self.interrupted = False
        self.progress = ProgressLine(args.progress, args.quiet)
        self.program: ProgramFile = read_program(args.model, args.data, greedy=args.greedy)
        self.model: RuleModel = RuleModel(
            self.program.rules,
            tol=args.tol,
            max_iter=args.max_iter,
            n_jobs=args.threads,
            memory=args.memory,
            time_limit=args.time_limit,
            progress=self.progress if self.progress.shown else None,
        )
        if args.output is not None:
            args.output.mkdir(parents=True, exist_ok=True)

    def _read(self, split: str) -> None:
        self.progress(None, "reading atoms")
        self.model.read(self.program, split)
        self.progress(None, "grounding")

    def _say(self, started: float, *parts: str) -> None:
        self.progress.clear()
        if not self.args.quiet:
            seconds = f"{time.perf_counter() - started:.2f} s"
            print("structlearn:", "; ".join([*parts, seconds]), file=sys.stderr)

    # ---- what to do ------------------------------------------------------------------------

    def estimate(self) -> int:
        """Print how many groundings every rule has."""
        self._read(self.args.split or "infer")
        sizes = self.model.estimate()
        self.progress.clear()
        for size in sizes:
            print(f"{size.groundings:>12}  {size.rule}")
        print(f"{sum(size.groundings for size in sizes):>12}  in all")
        return 0

    def learn(self) -> None:
        """Learn weights, and write the program with them."""
        started = time.perf_counter()
        args = self.args
        self._read(args.split or "learn")
        options = {} if args.learn_max_iter is None else {"max_iter": args.learn_max_iter}
        self.model.grounding_  # noqa: B018  its warnings are shown, that of the fit is not
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the verdict says how the fit ended
            self.model.fit(
                driver=args.driver,
                surrogate=args.surrogate,
                C=args.C,
                sweeps=args.sweeps,
                warm_up=args.warm_up,
                rule=args.rule,
                step_size=args.step_size,
                callbacks=(IterationLine(self.progress),),
                **options,
            )
        self.interrupted |= self.model.ended_ == Ending.INTERRUPTED
        value = "" if math.isnan(self.model.value_) else f"objective {self.model.value_:.6g} after "
        value += f"{self.model.n_iter_} iterations"
        weights = sum(rule.weight is not None for rule in self.program.rules)
        self._say(started, f"learnt {weights} weights", value, self.model.status_)
        self._write_program()

    def infer(self) -> None:
        """Find the best values; write, compare or explain them."""
        from structlearn._src.rules.explain import read_atom

        started = time.perf_counter()
        args = self.args
        self._read(args.split or "infer")
        for _, predicate in args.evaluate:
            self.model.tables.relation(predicate)
        atoms = {atom: self.model.tables.find(*read_atom(atom)) for atom in args.explain}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UncertifiedWarning)  # the verdict says it
            result = self.model.result_
        self.interrupted |= result.ended == Ending.INTERRUPTED
        self._say(started, *_verdict(self.model))
        self._write_atoms()
        for metric, predicate in args.evaluate:
            score = self.model.score(metric=metric, predicate=predicate)
            print(f"{metric}\t{predicate}\t{score:.6f}")
        for atom, number in atoms.items():
            _print_pulls(self.model, atom, number)

    # ---- out -------------------------------------------------------------------------------

    def _write_program(self) -> None:
        from structlearn._src.rules.rule_file import learned_json

        text = "".join(f"{rule}\n" for rule in self.model.rules_)
        folder = self.args.output
        stem = self.args.model.stem
        if folder is None:
            sys.stdout.write(text)
            return
        config = learned_json(self.program, self.model.rules_, folder)
        write_output(folder / f"{stem}-learned.psl", text.encode())
        write_output(folder / f"{stem}-learned.json", config.encode())

    def _write_atoms(self) -> None:
        args = self.args
        if args.output is None and (args.evaluate or args.explain or args.learn):
            return
        relations = [each.name for each in self.model.tables.relations.values() if each.n_free]
        texts = {name: _lines(self.model.predict(name, frame="dict")) for name in relations}
        for name, lines in texts.items():
            if args.output is None:
                sys.stdout.writelines(f"{name}\t{line}" for line in lines)
            else:
                path = args.output / f"{name.upper()}.txt"
                write_output(path, "".join(lines).encode())


def _lines(columns: Any) -> list[str]:
    *arguments, values = (column.tolist() for column in columns.values())
    return [
        "\t".join([*map(str, row), f"{value:.9g}"]) + "\n"
        for *row, value in zip(*arguments, values, strict=True)
    ]


def _verdict(model: RuleModel) -> list[str]:
    result = model.result_
    hinges = model.grounding_.hinges
    largest = max((w for w in model.weights_.tolist() if w < float("inf")), default=0.0) or 1.0
    return [
        f"{hinges.n_forms} groundings over {hinges.n_variables} targets",
        f"energy {result.energy:.9g} ({result.energy / largest:.9g} in PSL's scale)",
        f"gap {result.gap:.2g}",
        f"violation {result.violation:.2g}",
        result.status,
    ]


def _print_pulls(model: RuleModel, atom: str, number: int) -> None:
    print(f"{model.tables.names([number])[0]} = {model.result_.y[number]:.6g}")
    for pull in model.explain(atom):
        print(f"  {pull}")
