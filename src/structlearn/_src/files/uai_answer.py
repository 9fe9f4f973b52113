"""Answers in the text form of the UAI competitions: PR, MAR, MAP and MMAP.

The first line names the task, the second holds the answer [1]_:

==== =========================================================
PR   log10 of the partition function
MAR  number of variables, then for each its states and marginal
MAP  number of variables, then the state of each
MMAP number of query variables, then variable and state of each
==== =========================================================

References
----------
.. [1] V. Gogate, UAI 2016 inference evaluation, "Result file format".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import ArgumentError, FormatError
from structlearn._src.common.paths import PathLike, read_bytes
from structlearn._src.files.uai import pairs

TASKS = ("PR", "MAR", "MAP", "MMAP")


class UaiAnswer(NamedTuple):
    """What an answer file says; the fields that its task does not have are None."""

    task: str
    log_z: float | None = None  #: natural logarithm
    marginals: list[Floats] | None = None
    assignment: dict[int, int] | None = None


def format_partition(log_z: float) -> str:
    r"""Text of a PR answer from `log_z`, the natural logarithm of the partition function.

    Examples
    --------
    >>> format_partition(0.0)
    'PR\n0.0\n'
    """
    if not isinstance(log_z, (float, int, np.floating)) or math.isnan(log_z):
        raise ArgumentError(f"log_z={log_z!r} is not a number")
    return _answer("PR", [float(log_z) / math.log(10)])


def format_marginals(marginals: Mapping[Any, Any] | Sequence[Any]) -> str:
    r"""Text of a MAR answer from `marginals`, one distribution per variable.

    Examples
    --------
    >>> format_marginals([[0.25, 0.75], [1.0]])
    'MAR\n2 2 0.25 0.75 1 1.0\n'
    """
    rows = [np.asarray(row, float).tolist() for row in _in_order(marginals)]
    return _answer("MAR", [len(rows), *(x for row in rows for x in (len(row), *row))])


def format_map(labels: Mapping[Any, int] | Sequence[int]) -> str:
    r"""Text of a MAP answer from `labels`, the state of every variable.

    Examples
    --------
    >>> format_map([1, 0, 2])
    'MAP\n3 1 0 2\n'
    """
    states = [checks.integer("state", state) for state in _in_order(labels)]
    return _answer("MAP", [len(states), *states])


def format_marginal_map(assignment: Mapping[Any, int]) -> str:
    r"""Text of an MMAP answer from the `assignment` of the query variables, which are numbers.

    Examples
    --------
    >>> format_marginal_map({4: 1, 2: 0})
    'MMAP\n2 4 1 2 0\n'
    """
    numbers = [len(assignment)]
    for variable, state in assignment.items():
        numbers += [checks.integer("variable", variable), checks.integer("state", state)]
    return _answer("MMAP", numbers)


def read_answer(path: PathLike) -> UaiAnswer:
    """Read the answer in the file `path`, of several (after ``-BEGIN-``) the last; MPE is MAP."""
    task, *words = read_bytes(path).decode("ascii", "backslashreplace").split() or [""]
    task = "MAP" if task == "MPE" else task
    if task not in TASKS:
        raise FormatError(f"{path}: an answer starts with one of {TASKS}, not {task[:20]!r}")
    if "-BEGIN-" in words:
        words = words[len(words) - words[::-1].index("-BEGIN-") :]
    if task == "PR":
        return UaiAnswer(task, log_z=_log_z(words, path))
    if task == "MAR":
        return UaiAnswer(task, marginals=_marginals(words, path))
    numbers = [_whole(word, path) for word in words]
    each = 1 if task == "MAP" else 2
    if not numbers or len(numbers) != 1 + each * numbers[0]:
        raise _miscounted(path, task, len(numbers))
    states = dict(enumerate(numbers[1:])) if task == "MAP" else pairs(numbers[1:], path)
    return UaiAnswer(task, assignment=states)


def _log_z(words: list[str], path: PathLike) -> float:
    if len(words) != 1:
        raise _miscounted(path, "PR", len(words))
    return _number(words[0], path) * math.log(10)


def _marginals(words: list[str], path: PathLike) -> list[Floats]:
    rows = []
    at = 1
    n_rows = _whole(words[0], path) if words else -1
    while at < len(words):
        end = at + 1 + _whole(words[at], path)
        rows.append(np.array([_number(word, path) for word in words[at + 1 : end]]))
        at = end
    if len(rows) != n_rows or at > max(len(words), 1):
        raise _miscounted(path, "MAR", len(words))
    return rows


def _whole(word: str, path: PathLike) -> int:
    if not word.isdecimal() or len(word) > 18:
        raise FormatError(f"{path}: {word[:20]!r} must be a whole number of at least 0")
    return int(word)


def _number(word: str, path: PathLike) -> float:
    try:
        return float(word)
    except ValueError:
        raise FormatError(f"{path}: {word[:20]!r} is not a number") from None


def _miscounted(path: PathLike, task: str, count: int) -> FormatError:
    return FormatError(f"{path}: {count} numbers do not make an answer to {task}")


def _in_order(values: Mapping[Any, Any] | Sequence[Any]) -> Sequence[Any]:
    """Return the values of a mapping by variable, if those are numbers, else as they come."""
    if not isinstance(values, Mapping):
        return values
    if all(isinstance(name, (int, np.integer)) for name in values):
        return [values[name] for name in sorted(values)]
    return list(values.values())


def _answer(task: str, numbers: Sequence[float]) -> str:
    return f"{task}\n{' '.join(map(repr, numbers))}\n"
