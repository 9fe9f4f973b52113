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
from structlearn._src.common.paths import PathLike, read_bytes, write_bytes
from structlearn._src.files.uai_evidence import counted_pairs, pairs, shown, whole_number

TASKS = ("PR", "MAR", "MAP", "MMAP")


class UaiAnswer(NamedTuple):
    r"""The content of an answer file; fields that its task does not have are None.

    Attributes
    ----------
    task
        ``"PR"``, ``"MAR"``, ``"MAP"`` or ``"MMAP"``.
    log_z
        For PR, the natural logarithm of the partition function.
    marginals
        For MAR, one distribution per variable.
    assignment
        For MAP the state of every variable, for MMAP the state of each query variable by number.
        If `marginals` or this are given by name, they are written in the given order.

    Examples
    --------
    >>> UaiAnswer("MAP", assignment={0: 1, 1: 0, 2: 2}).text()
    'MAP\n3 1 0 2\n'
    """

    task: str
    log_z: float | None = None
    marginals: Mapping[Any, Any] | Sequence[Any] | None = None
    assignment: Mapping[Any, int] | Sequence[int] | None = None

    def text(self) -> str:
        r"""Return the text of an answer file.

        Returns
        -------
        str
            Two lines: the task, and the answer.

        Examples
        --------
        >>> from structlearn.uai import UaiAnswer
        >>> UaiAnswer("MAR", marginals=[[0.25, 0.75]]).text()
        'MAR\n1 2 0.25 0.75\n'
        """
        return f"{self.task}\n{' '.join(map(repr, self._numbers()))}\n"

    def _numbers(self) -> list[float]:
        checks.one_of("task", self.task, TASKS)
        if self.task == "PR":
            return [checks.number("log_z", self.log_z) / math.log(10)]
        if self.task == "MAR":
            rows = [np.asarray(row, float).tolist() for row in _in_order(self, "marginals")]
            return [len(rows), *(x for row in rows for x in (len(row), *row))]
        if self.task == "MAP":
            states = [checks.integer("state", state) for state in _in_order(self, "assignment")]
            return [len(states), *states]
        return [*counted_pairs(_given(self, "assignment"))]


def write_answer(answer: UaiAnswer, path: PathLike) -> None:
    r"""Write an answer, in the format of the competitions.

    Parameters
    ----------
    answer
        The answer.
    path
        The file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from structlearn.uai import UaiAnswer, write_answer
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.MAP"
    >>> write_answer(UaiAnswer("MAP", assignment=[1, 0]), path)
    >>> path.read_text()
    'MAP\n2 1 0\n'
    """
    write_bytes(path, answer.text().encode())


def read_answer(path: PathLike) -> UaiAnswer:
    """Read an answer, the last of several (after ``-BEGIN-``); MPE is MAP.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    UaiAnswer
        The answer.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from structlearn.uai import read_answer
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.MAP"
    >>> _ = path.write_text("MAP 2 1 0")
    >>> read_answer(path).assignment
    {0: 1, 1: 0}
    """
    first, *words = read_bytes(path).split() or [b""]
    task = "MAP" if first == b"MPE" else first.decode("ascii", "backslashreplace")
    if task not in TASKS:
        raise FormatError(f"{path}: an answer starts with one of {TASKS}, not {shown(first)}")
    if b"-BEGIN-" in words:
        words = words[len(words) - words[::-1].index(b"-BEGIN-") :]
    if task == "PR":
        if len(words) != 1:
            raise _miscounted(path, task, len(words))
        return UaiAnswer(task, log_z=_number(words[0], path) * math.log(10))
    if task == "MAR":
        return UaiAnswer(task, marginals=_marginals(words, path))
    numbers = [whole_number(word, str(path)) for word in words]
    each = 1 if task == "MAP" else 2
    if not numbers or len(numbers) != 1 + each * numbers[0]:
        raise _miscounted(path, task, len(numbers))
    states = dict(enumerate(numbers[1:])) if task == "MAP" else pairs(numbers[1:], path)
    return UaiAnswer(task, assignment=states)


def _marginals(words: list[bytes], path: PathLike) -> list[Floats]:
    rows = []
    at = 1
    n_rows = whole_number(words[0], str(path)) if words else -1
    while at < len(words):
        end = at + 1 + whole_number(words[at], str(path))
        rows.append(np.array([_number(word, path) for word in words[at + 1 : end]]))
        at = end
    if len(rows) != n_rows or at > max(len(words), 1):
        raise _miscounted(path, "MAR", len(words))
    return rows


def _number(word: bytes, path: PathLike) -> float:
    try:
        return float(word)
    except ValueError:
        raise FormatError(f"{path}: {shown(word)} is not a number") from None


def _miscounted(path: PathLike, task: str, count: int) -> FormatError:
    return FormatError(f"{path}: {count} numbers do not make an answer to {task}")


def _given(answer: UaiAnswer, field: str) -> Any:
    value = getattr(answer, field)
    if value is None:
        raise ArgumentError(f"an answer to {answer.task} needs {field}; None was given")
    return value


def _in_order(answer: UaiAnswer, field: str) -> Sequence[Any]:
    """Return the values of a mapping by variable, if those are numbers, else as they come."""
    values = _given(answer, field)
    if not isinstance(values, Mapping):
        return values
    if all(isinstance(name, (int, np.integer)) for name in values):
        return [values[name] for name in sorted(values)]
    return list(values.values())
