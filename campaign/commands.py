"""The command line: any options over any files end in an answer, or in one line that says why not."""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import os
import pathlib
import random
import sys
from importlib import import_module

import numpy as np

from campaign import parsers
from campaign.base import WrongError, at_most, expect
from campaign.mutate import Mutator
from structlearn._src.cli.main import main, make_parser

COMMANDS = 20
NAMES = ("train", "tag", "evaluate", "inspect", "infer", "psl")
SECONDS = 60.0  # of computing for one command
#: What keeps work small, unless the option was drawn.
SMALL = {
    "--max-iter": "3",
    "--learn-max-iter": "3",
    "--time-limit": "2",
    "--threads": "1",
    "--max-table": "1000",
}
ODD = (
    "0", "1", "-1", "2", "0.5", "nan", "inf", "1e309", "1e-9", "", " ", "x", "None", "true", "99999999999999999999",
    "'", "../x", "/", "/dev/null", "-", "--", "P('a')", "Likes('bob', 'tea')", "auroc", "Likes", "a=b", "é", "\udcff",
)  # fmt: skip
NUMBERS = ("0", "1", "2", "3", "7", "0.5", "1.0", "0.001", "1e-6", "10", "100")
BEGINNINGS = {
    "train": ["--model", "out.model", "--template", "t.template", "a.txt"],
    "tag": ["--model", "good.model", "a.txt"],
    "evaluate": ["a.txt"],
    "inspect": ["--model", "good.model"],
    "infer": ["--query", "MAR", "a.uai"],
    "psl": ["a.psl"],
}


@functools.cache
def options(command: str) -> tuple[argparse.Action, ...]:
    """All options of a command, as its parser has them."""
    module = import_module(f"structlearn._src.cli.{command}")
    whole = make_parser([module])
    (choices,) = [a.choices for a in whole._actions if isinstance(a, argparse._SubParsersAction)]
    return tuple(a for a in choices[command]._actions if a.option_strings and a.dest != "help")


def files(place: pathlib.Path, draw: random.Random) -> None:
    """Files of every kind, good ones and mutated ones."""
    kinds = {
        "a.txt": (parsers.COLUMNS[:2], parsers.COLUMN_WORDS),
        "t.template": ([b"U0:%x[0,0]\nB\n", b"U0:%x[0,0]/%x[-1,0]\n"], (b"%x[0,0]", b"U", b"B")),
        "a.uai": (parsers.MODELS, parsers.MODEL_WORDS),
        "a.evid": (parsers.EVIDENCE, parsers.MODEL_WORDS),
        "a.psl": ([b"20: Knows(A, B) & Likes(A, X) -> Likes(B, X) ^2\n5: !Likes(A, X) ^2\n"], parsers.RULE_WORDS),
        "a.data": (parsers.YAML[:1], parsers.YAML_WORDS),
        "a.json": (parsers.JSON, parsers.JSON_WORDS),
        "knows.txt": (parsers.TABLES, parsers.TABLE_WORDS),
    }  # fmt: skip
    for name, (samples, words) in kinds.items():
        fine = draw.random() < 0.6
        data = samples[0] if fine else Mutator(draw.getrandbits(60), samples, words)()
        (place / name).write_bytes(data)
    rows = {
        "a.txt": b"ann\tbob\nbob\tcyd\n",
        "b.txt": b"ann\ttea\t0.9\n",
        "c.txt": b"",
        "d.txt": b"bob\ttea\ncyd\ttea\n",
        "e.txt": b"bob\ttea\t1\n",
    }
    folder = place / "data"
    folder.mkdir()
    for name, data in rows.items():
        (folder / name).write_bytes(data)
    data = (place / "a.data").read_bytes()
    for name in (b"a.txt", b"b.txt", b"c.txt", b"d.txt", b"e.txt"):
        data = data.replace(name, b"data/" + name)
    (place / "a.data").write_bytes(data)
    (place / "good.model").write_bytes(_model())


@functools.cache
def _model() -> bytes:
    with parsers.folder() as place:
        (place / "a.txt").write_bytes(parsers.COLUMNS[0])
        (place / "t").write_bytes(b"U0:%x[0,0]\nB\n")
        made = [
            "train",
            "--quiet",
            "--max-iter",
            "5",
            "--model",
            str(place / "m"),
            "--template",
            str(place / "t"),
        ]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            expect(main([*made, str(place / "a.txt")]) == 0, "the model for commands was not made")
        return (place / "m").read_bytes()


def arguments(draw: random.Random, command: str, names: list[str]) -> list[str]:
    """A command line: some options, with values that fit, other values, or names of files."""
    out: list[str] = []
    for action in draw.choices(options(command), k=draw.choice((0, 1, 2, 3, 5))):
        out.append(draw.choice(action.option_strings))
        if action.nargs == 0:
            continue
        values = [*ODD, *names]
        if action.type is not None and draw.random() < 0.6:
            values = [*NUMBERS, *names]
        if action.choices and draw.random() < 0.8:
            values = [str(choice) for choice in action.choices]
        out += draw.choices(values, k=action.nargs if isinstance(action.nargs, int) else 1)
    for name, value in SMALL.items():
        known = [action for action in options(command) if name in action.option_strings]
        if known and name not in out and command != "evaluate":
            out += [name, value]
    start = BEGINNINGS[command]
    if draw.random() < 0.15:
        start = [draw.choice(names) if "." in word else word for word in start]
    return [command, *(out + start if draw.random() < 0.5 else start + out)]


def check(rng: np.random.Generator) -> None:
    """Run some commands, in a folder of their own."""
    draw = random.Random(int(rng.integers(2**62)))
    home = pathlib.Path.cwd()
    for _ in range(COMMANDS):
        with parsers.folder() as place:
            files(place, draw)
            names = [path.name for path in place.iterdir()]
            given = arguments(draw, draw.choice(NAMES), names)
            os.chdir(place)
            try:
                run(given)
            finally:
                os.chdir(home)


def run(given: list[str]) -> None:
    """Run one command; it returns a code, and words an error in one line of its own."""
    out = io.TextIOWrapper(io.BytesIO(), write_through=True)
    errors = io.StringIO()
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(b"He PRP B-NP\n"))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), at_most(SECONDS):
            code = main(given)
    except BaseException as error:
        raise WrongError(f"{type(error).__name__}: {error} from {given}") from error
    finally:
        sys.stdin = before
    told = errors.getvalue()
    expect(isinstance(code, int), f"{given} returned {code!r}")
    expect("Traceback" not in told, f"{given}: {told}")
    expect(code == 0 or "structlearn" in told, f"{given} ended with {code} and said {told!r}")
