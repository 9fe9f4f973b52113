"""``structlearn psl``: infer, learn and explain programs of PSL's rule language."""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

from structlearn._src.cli.arguments import add_command, facts_of, write_facts, write_output
from structlearn._src.cli.progress import ProgressLine
from structlearn._src.cli.psl_options import add_options, check
from structlearn._src.common.errors import (
    ArgumentError,
    UncertifiedWarning,
    VanishedWeightsWarning,
)
from structlearn._src.common.watch import Ending

if TYPE_CHECKING:
    from structlearn._src.estimators.fields.rule_model import RuleModel
    from structlearn._src.rules.program import ProgramFile
    from structlearn._src.rules.syntax import Program

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

Scores that the model asks for (evaluations) are told on standard error.

exit codes: 0 all is well, 2 bad usage or input, 130 interrupted (the best so far is still given
if there is one).
"""


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    told = "infer, learn and explain weighted rules (PSL)"
    parser = add_command(subparsers, "psl", run, told, _DESCRIPTION, _EPILOG, "MODEL [DATA]")
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Read, do what was asked, write."""
    check(args)
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
    return 130 if task.interrupted else 0


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
        relations = self.model.tables.relations.values()
        targets = f"{sum(each.n_free for each in relations):,} targets"
        counts = f"{len(rules)} rules, {len(relations)} predicates, {targets}"
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

        shared = ("tol", "max_iter", "memory", "time_limit")
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
            warnings.simplefilter("always", VanishedWeightsWarning)
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
        learnt = facts_of(model, told, weights=model.weights_.tolist(), seconds=seconds)
        self.facts["learn"] = learnt
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
    *arguments, values = (column.tolist() for column in columns.values())
    return [
        "\t".join([*map(str, row), f"{value:.9g}"]) + "\n"
        for *row, value in zip(*arguments, values, strict=True)
    ]


def _verdict(model: RuleModel) -> str:
    result = model.result_
    largest = max((w for w in model.weights_.tolist() if w < float("inf")), default=0.0) or 1.0
    scaled = result.energy / largest
    missed = f", violation {result.violation:.1e}" if result.violation else ""
    energy = f"energy {result.energy:#.6g} ({scaled:#.6g} in PSL's scale)"
    return f"{energy}, gap {result.gap:.1e}{missed}"


def _print_pulls(model: RuleModel, atom: str, number: int) -> None:
    print(f"{model.tables.names([number])[0]} = {model.result_.y[number]:.6g}")
    for pull in model.explain(atom):
        print(f"  {pull}")
