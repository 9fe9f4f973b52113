"""``structlearn infer``: answer a UAI model in the format of the UAI competitions."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structlearn._src.cli.arguments import (
    add_choice,
    add_command,
    add_file,
    add_number,
    add_old,
    add_shared,
    check_outputs,
    facts_of,
    natural,
    positive,
    whole,
    write_facts,
    write_output,
    write_report,
)
from structlearn._src.cli.progress import ProgressLine
from structlearn._src.common.errors import ArgumentError, FormatError, StructlearnError
from structlearn._src.common.watch import Ending
from structlearn._src.inference.names import ASSIGNMENTS, EXACT, METHODS, Query

if TYPE_CHECKING:
    from structlearn._src.graph.build import FactorGraph
    from structlearn._src.inference.base import Answer

#: Queries by the names of the UAI competitions.
QUERIES = {
    "PR": Query.PARTITION,
    "MAR": Query.MARGINALS,
    "MAP": Query.MAP,
    "MMAP": Query.MARGINAL_MAP,
}
_EPILOG = """\
examples:
  structlearn infer network.uai --query MAR --evidence network.uai.evid
  structlearn infer network.uai --query MAP --time-limit 60 --output network.MAP

queries:
  PR    log10 of the partition function
  MAR   the marginal of every variable
  MAP   the most probable joint assignment of all variables
  MMAP  the most probable assignment of --map-variables, with all others summed out

The answer goes to standard output; how it was found, whether it is exact, and what bounds are
known go to standard error. All files may be gzipped.

exit codes: 0 an answer was given, 2 bad usage or input, 130 interrupted (the best answer so far
is still given if there is one).
"""


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        subparsers,
        "infer",
        run,
        "run inference on a UAI model: PR, MAR, MAP or MMAP",
        "Run inference on a model in the format of the UAI competitions.",
        _EPILOG,
        "MODEL.uai --query QUERY",
    )
    option = parser.add_argument
    option("model", metavar="MODEL.uai", type=Path, help="a MARKOV or BAYES file")
    add_file(parser, "--evidence", "observed variables; by default none")
    told = "what is asked; see below"
    option("--query", required=True, choices=tuple(QUERIES), type=str.upper, help=told)
    told = "for MMAP: how many variables to maximise over, and which"
    add_file(parser, "--map-variables", told)
    told = "who answers; auto is exact where that is possible"
    add_choice(parser, "--method", ("auto", *METHODS), told)
    told = "seconds after which approximate methods give the best they have"
    add_number(parser, "--time-limit", positive, None, told)
    add_number(parser, "--max-table", whole, 2**25, "largest table in exact inference, in entries")
    add_shared(parser, "--max-iter", default=500)
    add_shared(parser, "--seed", "--threads", "--place", "--report")
    add_shared(parser, "--quiet", "--progress", "--log", "--json")
    add_old(parser, "--random-state", "--seed", type=natural)
    add_old(parser, "--jobs", "--threads", type=whole)
    add_file(parser, "--output", "write the answer to this file instead of standard output")


def run(args: argparse.Namespace) -> int:
    """Read, infer, write the answer and the verdict."""
    started = time.perf_counter()
    _check(args)
    progress = ProgressLine(args.progress, args.quiet, log=args.log)
    try:
        progress(None, "reading")
        graph, evidence, chosen = _read(args)
        progress(None, "choosing a method")
        progress.begin()
        answer = _ask(args, graph, evidence, progress)
    finally:
        progress.clear()
    write_output(args.output, _text(args.query, answer, chosen).encode())
    seconds = time.perf_counter() - started
    counts = f"{graph.n_variables:,} variables, {graph.n_factors:,} factors"
    progress.tell("read", f"{counts}, {len(evidence):,} observed")
    progress.tell("done", f"{args.query} {_verdict(answer)}", seconds)
    progress.tell("result", _value(answer))
    for note in _unused_evidence(args):
        progress.tell("note", note)
    told = "method ended exact converged status value lower upper"
    write_facts(args.json, facts_of(answer, told, query=args.query, seconds=seconds))
    write_report(args.report, answer, f"{args.query} of {args.model}")
    return 130 if answer.ended is Ending.INTERRUPTED else 0


# ---- in ----------------------------------------------------------------------------------


def _check(args: argparse.Namespace) -> None:
    """Refuse what cannot end well before any work is done."""
    if (args.query == "MMAP") != (args.map_variables is not None):
        raise ArgumentError(
            "--query MMAP needs --map-variables FILE: how many variables, then their numbers"
            if args.query == "MMAP"
            else f"--map-variables is for --query MMAP, not for {args.query}"
        )
    inputs = {"MODEL.uai": args.model, "--evidence": args.evidence}
    inputs["--map-variables"] = args.map_variables
    check_outputs(args, inputs, "--output", "--report", "--log", "--json")


def _read(args: argparse.Namespace) -> tuple[FactorGraph, dict[Hashable, int], list[int]]:
    from structlearn._src.files.uai import read_uai
    from structlearn._src.files.uai_evidence import read_evidence, read_variables

    graph = read_uai(args.model)
    observed = read_evidence(args.evidence) if args.evidence else {}
    evidence = dict[Hashable, int](observed.items())
    try:
        graph.labels(evidence)
    except StructlearnError as error:
        raise FormatError(f"{args.evidence}: {error}") from None
    chosen = read_variables(args.map_variables) if args.map_variables else []
    if args.query == "MMAP":
        _hide_others(graph, chosen, args.map_variables)
    return graph, evidence, chosen


def _hide_others(graph: FactorGraph, chosen: list[int], path: Path) -> None:
    beyond = [v for v in chosen if v >= graph.n_variables]
    if beyond:
        raise FormatError(
            f"{path}: there is no variable {beyond[0]}; the model has {graph.n_variables} "
            f"variables, counted from 0"
        )
    hidden = set(range(graph.n_variables)).difference(chosen)
    graph.set_roles(dict.fromkeys(hidden, "hidden"))


def _ask(
    args: argparse.Namespace,
    graph: FactorGraph,
    evidence: dict[Hashable, int],
    progress: ProgressLine,
) -> Answer:
    from structlearn._src.inference.front import infer

    return infer(
        graph,
        QUERIES[args.query],
        evidence=evidence,
        method=args.method,
        time_limit=args.time_limit,
        max_table=args.max_table,
        max_iter=args.max_iter,
        random_state=args.seed,
        n_jobs=args.threads,
        progress=progress if progress.shown else None,
    )


# ---- out ---------------------------------------------------------------------------------


def _text(task: str, answer: Answer, chosen: list[int]) -> str:
    from structlearn._src.files.uai_answer import UaiAnswer

    assignment = answer.assignment
    if task == "MMAP" and assignment is not None:
        assignment = {v: assignment[v] for v in chosen}
    return UaiAnswer(task, answer.value, answer.marginals, assignment).text()


def _verdict(answer: Answer) -> str:
    """Say who answered, and whether the answer is exact."""
    kind = "exact" if answer.exact else "approximate"
    status = "" if answer.method in EXACT else f"; {answer.status}"
    return f"{kind}: {answer.method}{status}"


def _value(answer: Answer) -> str:
    def ten(value: float) -> str:
        return f"{value / math.log(10):.9g}"

    assigned = answer.query in ASSIGNMENTS
    name = "log10 value" if assigned else "log10 Z"
    if answer.exact:
        return f"{name} {ten(answer.value)}"
    if assigned and answer.value == -math.inf:
        return "no assignment without a zero potential was found"
    known = answer.lower == answer.value  # an assignment's own value, or a bound
    word = "about " if not known else "" if assigned else "at least "
    parts = [f"{name} {word}{ten(answer.value)}"]
    if not known and answer.lower > -math.inf:
        parts.append(f"at least {ten(answer.lower)}")
    if answer.upper < math.inf:
        parts.append(f"{'the best ' if assigned else ''}at most {ten(answer.upper)}")
    return ", ".join(parts)


def _unused_evidence(args: argparse.Namespace) -> list[str]:
    """Say so if there is evidence where the competitions put it and nobody asked for it."""
    from structlearn._src.files.uai_evidence import read_evidence

    beside = Path(f"{args.model}.evid")
    try:
        if args.evidence is None and read_evidence(beside):
            return [f"{beside.name} beside the model was not used (--evidence)"]
    except (OSError, StructlearnError):
        pass
    return []
