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
    check_outputs,
    facts_of,
    natural,
    positive,
    real,
    whole,
    write_facts,
    write_output,
    write_report,
)
from structlearn._src.cli.progress import ProgressLine
from structlearn._src.common import names
from structlearn._src.common.errors import (
    ArgumentError,
    IgnoredOptionWarning,
    UncertifiedWarning,
    warn,
)
from structlearn._src.common.watch import Ending

if TYPE_CHECKING:
    from structlearn._src.estimators.fields.rule_model import RuleModel
    from structlearn._src.rules.program import ProgramFile
    from structlearn._src.rules.syntax import Program

_DESCRIPTION = """\
Run a program of weighted rules in PSL's file formats: a JSON model of PSL 2.4, or rules in a .psl
file with their data in .data files. The default is to infer.
"""
_EPILOG = """\
With --infer the inferred values go to --output, one file NAME.txt for each predicate with targets:
the arguments and the value, separated by tabs. Without --output they go to standard output, the
predicate first, unless --learn, --evaluate or --explain write there. The summary on standard error
gives the energy, with weights as written and, for comparison, divided by the largest as PSL does.

With --learn the weights come from the data of the split learn, and the program with the new
weights goes to --output as NAME-learned.psl and NAME-learned.json; without, to standard output.
Targets without a truth are latent. With --learn and --infer, inference follows with the new
weights. Ctrl-C ends either early and keeps the best so far.

examples:
  structlearn psl model.json --output inferred --evaluate auroc Trusts
  structlearn psl model.psl --learn --driver paired --infer --output out
  structlearn psl model.json --explain "Trusts('ann', 'bob')"

Scores requested by the model (evaluations) are printed on standard error.

exit codes: 0 success, 2 bad usage or input, 130 interrupted (the best so far is still given
if there is one).
"""

#: What a line of a table cannot hold, as rules write it.
_ESCAPED = str.maketrans({"\t": r"\t", "\n": r"\n", "\r": r"\r"})
#: Options of PSL's command that have no counterpart of the same form, and what to do instead.
_HINTS = {
    "-e --eval": "write --evaluate METRIC PREDICATE, or name evaluators in the model",
    "--groundrules --satisfaction": "--explain ATOM lists the groundings of a target with their "
    "distances, --estimate counts them, and RuleModel.grounding_ has all of them",
    "--postgres --h2path": "tables are kept in memory and spill to disk, see --memory-limit; in "
    "Python a file of DuckDB can be given as source=",
    "--int-ids": "whole numbers need no option",
    "--skipAtomCommit": "nothing is written but to --output",
}


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    told = "infer, learn and explain weighted rules (PSL)"
    parser = add_command(subparsers, "psl", run, told, _DESCRIPTION, _EPILOG, "MODEL [DATA]")
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
    option("-i", "--infer", **word, help="infer the values of the targets")
    option("-l", "--learn", **word, help="learn the weights")
    option("--estimate", action="store_true", help="only count the groundings of every rule")
    again = {"action": "append", "default": []}
    pulls = "infer, and list what pulls a target up and down; may be repeated"
    option("--explain", metavar="ATOM", help=pulls, **again)
    scores = f"infer, and compare with the truth by one of {', '.join(names.METRICS)}; "
    scores += "may be repeated"
    option("--evaluate", metavar=("METRIC", "PREDICATE"), nargs=2, help=scores, **again)
    least = "smallest truth and value that --evaluate counts as positive (default 0.5)"
    option("--threshold", metavar="T", type=real, help=least)
    which = "argument in which the atoms of a block differ, from 0, for categorical and mrr"
    option("--category", metavar="I", type=int, action="append", help=f"{which} (default: last)")
    folder = "folder for the results; created if needed"
    option("-o", "--output", metavar="DIR", type=Path, help=folder)
    split = "which data (default infer; for --learn it is learn)"
    option("--split", choices=names.SPLITS, help=split)
    option("--greedy", action="store_true", help="let coefficients bind as in PSL's own parser")


def _add_learning(group: Any) -> None:
    told = "how inference and weight steps take turns"
    add_choice(group, "--driver", names.FIELD_DRIVERS, told)
    add_old(group, "--learner", "--driver", choices=(*names.FIELD_DRIVERS, *names.OLD_DRIVERS))
    most = "maximum number of weight updates (default: the library's)"
    add_number(group, "--learn-max-iter", whole, None, most)
    add_old(group, "--iterations", "--learn-max-iter", type=whole)
    paired = "ADMM steps for each weight update of --driver paired (default 1)"
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
    add_number(group, "--tol", real, 1e-6, "relative gap at which inference stops")
    add_shared(group, "--max-iter", default=5000, help="limit on ADMM steps (default %(default)s)")
    add_number(group, "--time-limit", positive, None, "seconds until the best result is given")
    add_old(group, "--memory", "--memory-limit")
    add_shared(group, "--memory-limit", "--threads", "--place", "--report", "--progress", "--quiet")
    add_shared(group, "--log", "--json")


def _add_names_of_psl(group: Any) -> None:
    option = group.add_argument
    for place, flags in {"MODEL": "-c --config -m --model", "DATA": "-d --data"}.items():
        option(*flags.split(), dest=place, metavar=place, type=Path, help=f"the same as {place}")
    option("-D", metavar="KEY=VALUE", action="append", default=[], help="has no effect")
    for flags in _HINTS:
        option(*flags.split(), dest=flags, nargs="*", help=argparse.SUPPRESS)


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
    write_facts(args.json, task.facts)
    write_report(args.report, task.model, f"Rules {args.model}")
    return 130 if task.interrupted else 0


def _check(args: argparse.Namespace) -> None:
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
    inputs = {"MODEL": args.model, "DATA": args.data}
    check_outputs(args, inputs, "--report", "--log", "--json")
    others = [args.infer, args.learn, args.explain, args.evaluate]
    if args.estimate and any(others):
        raise ArgumentError("--estimate stands alone: leave out the other things to do")


class _Task:
    """One run of the command: the model, and what is told about it."""

    def __init__(self, args: argparse.Namespace) -> None:
        from structlearn._src.rules.program import read_program

        self.args = args
        self.interrupted = False
        self.facts: dict[str, Any] = {}  # what the verdict says, for programs
        self.program: ProgramFile = read_program(args.model, args.data, greedy=args.greedy)
        if not self.program.declarations:
            name = args.model.with_suffix(".data").name
            raise ArgumentError(f"{args.model} has no data: name its .data file, or make {name}")
        self.progress = ProgressLine(args.progress, args.quiet, log=args.log)
        self.model: RuleModel  # of the rules that were read last
        self._rules: Program = ()
        if args.output is not None:
            args.output.mkdir(parents=True, exist_ok=True)

    def _read(self, split: str) -> None:
        """Have a model of the rules and the atoms of a split, with the weights so far."""
        begun = time.perf_counter()
        self.progress(None, "reading atoms")
        rules = self.program.rules_for(split)
        if rules != self._rules:
            self.model = self._made(rules, self.model if self._rules else None)
            self._rules = rules
        self.model.read(self.program, split)
        counts = f"{len(rules)} rules, {len(self.model.tables.relations)} predicates"
        self.progress.tell("read", counts, time.perf_counter() - begun)
        self.progress(None, "grounding")

    def _ground(self) -> None:
        begun = time.perf_counter()
        hinges = self.model.grounding_.hinges
        counts = f"{hinges.n_forms:,} groundings over {hinges.n_variables:,} targets"
        self.progress.tell("ground", counts, time.perf_counter() - begun)
        self.progress.begin()

    def _made(self, rules: Program, before: RuleModel | None) -> RuleModel:
        from structlearn._src.estimators.fields.rule_model import RuleModel

        shared = ("tol", "max_iter", "memory_limit", "time_limit")
        options = {name: getattr(self.args, name) for name in shared}
        progress = self.progress if self.progress.shown else None
        model = RuleModel(rules, n_jobs=self.args.threads, progress=progress, **options)
        if before is not None:
            n = len(self.program.rules)  # that all splits share
            model.weights_ = [*before.weights_[:n], *model.weights_[n:]]
        return model

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
        direct = ("driver", "surrogate", "C", "sweeps", "warm_up", "rule", "step_size")
        given = {name: getattr(args, name) for name in direct} | {"max_iter": args.learn_max_iter}
        options = {name: value for name, value in given.items() if value is not None}
        self._ground()  # its warnings are shown, that of the fit is not
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the verdict says how the fit ended
            warnings.filterwarnings("always", "nothing was learnt|after learning all weights are 0")
            self.model.fit(**options)
        self.progress.clear()
        self.interrupted |= self.model.ended_ == Ending.INTERRUPTED
        model = self.model
        weights = sum(rule.weight is not None for rule in self._rules)
        value = "" if math.isnan(model.value_) else f", objective {model.value_:#.6g}"
        seconds = time.perf_counter() - started
        self.progress.tell("done", model.status_, seconds)
        self.progress.tell("learnt", f"{weights} weights, {model.n_iter_} iterations{value}")
        told = "ended_ converged_ status_ n_iter_ value_"
        facts = {"weights": model.weights_.tolist(), "seconds": seconds}
        self.facts["learn"] = facts_of(model, told, **facts)
        self._write_program()

    def infer(self) -> None:
        """Find the best values; write, compare or explain them."""
        from structlearn._src.rules.explain import find_atom

        started = time.perf_counter()
        args = self.args
        self._read(args.split or "infer")
        for _, predicate in args.evaluate:
            self.model.tables.relation(predicate)
        atoms = {atom: find_atom(self.model.tables, atom) for atom in args.explain}
        self._ground()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UncertifiedWarning)  # the verdict says it
            result = self.model.result_
        self.interrupted |= result.ended == Ending.INTERRUPTED
        self.progress.clear()
        seconds = time.perf_counter() - started
        self.progress.tell("done", result.status, seconds)
        self.progress.tell("result", _verdict(self.model))
        told = "ended converged status energy gap violation"
        self.facts["infer"] = facts_of(result, told, seconds=seconds)
        self._write_atoms()
        for metric, predicate in args.evaluate:
            options = {"threshold": args.threshold, "category": args.category}
            score = self.model.score(metric=metric, predicate=predicate, **options)
            print(f"{metric}\t{predicate}\t{score:.6f}")
        self._tell_evaluations()
        for atom, number in atoms.items():
            _print_pulls(self.model, atom, number)

    def _tell_evaluations(self) -> None:
        """Say what the evaluations of the program find, where there is a truth."""
        for declared in self.program.declarations:
            name = declared.predicate.name
            for each in declared.evaluations if self.model.tables.relation(name).n_free else ():
                try:
                    scores = [
                        f"{metric} {self.model.score(metric=metric, predicate=name, **options):.6f}"
                        for metric, options in each.scores()
                    ]
                except ArgumentError as error:  # no truth, or all of one class
                    scores = [str(error)]
                self.progress.tell("score", f"{each.name} of {name}: {', '.join(scores)}")

    # ---- out -------------------------------------------------------------------------------

    def _write_program(self) -> None:
        from structlearn._src.rules.program import learned_json

        shared = self.model.rules_[: len(self.program.rules)]
        own = map(str, self.program.more.get("infer", ()))
        text = "".join(f"{rule}\n" for rule in (*shared, *own))
        folder = self.args.output
        if folder is None:
            sys.stdout.write(text)
            return
        path = folder / f"{self.args.model.stem}-learned.psl"
        config = learned_json(self.program, self.model.rules_, folder)
        write_output(path, text.encode())
        write_output(path.with_suffix(".json"), config.encode())
        self.progress.tell("wrote", f"{path} and {path.with_suffix('.json').name}")

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
                self.progress.tell("wrote", f"{path} ({len(lines):,} atoms)")


def _lines(columns: Any) -> list[str]:
    """One line for each atom; what a line cannot hold is written as in rules."""
    *arguments, values = (column.tolist() for column in columns.values())
    return [
        "\t".join([*(str(cell).translate(_ESCAPED) for cell in row), f"{value:.9g}"]) + "\n"
        for *row, value in zip(*arguments, values, strict=True)
    ]


def _verdict(model: RuleModel) -> str:
    result = model.result_
    largest = max((w for w in model.weights_.tolist() if w < float("inf")), default=0.0) or 1.0
    energy = f"energy {result.energy:#.6g} ({result.energy / largest:#.6g} in PSL's scale)"
    return f"{energy}, gap {result.gap:.1e}, violation {result.violation:.1e}"


def _print_pulls(model: RuleModel, atom: str, number: int) -> None:
    print(f"{model.tables.names([number])[0]} = {model.result_.y[number]:.6g}")
    for pull in model.explain(atom):
        print(f"  {pull}")
