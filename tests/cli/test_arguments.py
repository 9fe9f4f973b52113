"""One set of options for all commands; names of before still work."""

from __future__ import annotations

import argparse

import pytest

from structlearn._src.cli.main import make_parser

SHARED = {
    "train": {"--seed", "--threads", "--max-iter", "--quiet", "--progress"},
    "tag": {"--threads", "--quiet"},
    "evaluate": {"--threads"},
    "infer": {"--seed", "--threads", "--max-iter", "--quiet", "--progress"},
    "psl": {"--threads", "--max-iter", "--quiet", "--progress"},
    "reproduce": {"--seed", "--quiet"},
    "demo": {"--seed"},
}
OLD = [
    ("infer m --query PR", "--random-state 7", "seed", 7),
    ("infer m --query PR", "--jobs 2", "threads", 2),
    ("psl m", "--learner em", "driver", "em"),
    ("psl m", "--iterations 4", "learn_max_iter", 4),
    ("psl m", "--steps 3", "sweeps", 3),
    ("train f --model m", "--hidden 2", "hidden_states", 2),
    ("demo", "--random-state 5", "seed", 5),
]


def options(command):
    """The options of a command that its help shows, and those that it does not."""
    actions = make_parser()._actions
    (commands,) = (a for a in actions if isinstance(a, argparse._SubParsersAction))
    found = commands.choices[command]._actions
    hidden = {o for a in found if a.help is argparse.SUPPRESS for o in a.option_strings}
    return {o for a in found for o in a.option_strings} - hidden, hidden


@pytest.mark.parametrize("command", list(SHARED))
def test_shared_options(command):
    shown, _ = options(command)
    assert SHARED[command] <= shown
    other = {"--jobs", "--random-state", "--iterations", "--learner", "--verbose"}
    assert not shown & (other - ({"--jobs"} if command == "reproduce" else set()))  # processes


@pytest.mark.parametrize(("command", "old", "name", "value"), OLD)
def test_names_of_before(command, old, name, value):
    args = make_parser().parse_args([*command.split(), *old.split()])
    assert getattr(args, name) == value
    assert "SUPPRESS" not in str(vars(args))


@pytest.mark.parametrize(
    ("command", "name", "value"),
    [("infer m --query PR", "seed", 0), ("psl m", "driver", "auto"), ("psl m", "sweeps", None)],
)
def test_names_of_before_leave_the_defaults(command, name, value):
    assert getattr(make_parser().parse_args(command.split()), name) == value
