"""UAI files of whole numbers: evidence and query variables.

Lines that start with ``c`` or ``#`` are comments [1]_.

References
----------
.. [1] V. Gogate, UAI 2016 inference evaluation, "UAI evidence format".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from structlearn._src.common import checks
from structlearn._src.common.errors import FormatError
from structlearn._src.common.paths import PathLike, read_bytes, write_bytes

_COMMENT = re.compile(rb"[ \t]*(?:c(?=\s|$)|#)")


def read_evidence(path: PathLike) -> dict[int, int]:
    """Read the observed variables and their states.

    Two layouts are in use. Since 2014 a file is ``count variable state variable state ...``;
    before, the number of samples came first, then one such line for each. With one sample, the old
    layout has an even number of entries and the new one an odd number, so they cannot be confused;
    several samples are rejected. An empty file means no evidence.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    dict
        State of each observed variable, by its number.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from structlearn.uai import read_evidence
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.evid"
    >>> _ = path.write_text("2  0 1  3 0")
    >>> read_evidence(path)
    {0: 1, 3: 0}
    """
    lines = _whole_lines(path)
    numbers = [number for line in lines for number in line]
    if not numbers:
        return {}
    if numbers[0] > 1 and _is_one_line_each(lines):
        raise FormatError(
            f"{path}: holds the evidence of {numbers[0]} samples; a graph takes one: split the file"
        )
    if len(numbers) == 1 + 2 * numbers[0]:
        return pairs(numbers[1:], path)
    if numbers[0] == 1 and len(numbers) > 1 and len(numbers) == 2 + 2 * numbers[1]:
        return pairs(numbers[2:], path)
    raise FormatError(
        f"{path}: {len(numbers)} numbers that begin with {numbers[0]} are neither 'count variable "
        f"state ...' nor that with the number of samples, 1, before it"
    )


def write_evidence(evidence: Mapping[int, int], path: PathLike) -> None:
    r"""Write evidence, in the layout in use since 2014.

    Parameters
    ----------
    evidence
        State of each observed variable, by its number.
    path
        The file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from structlearn.uai import write_evidence
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.evid"
    >>> write_evidence({0: 1, 3: 0}, path)
    >>> path.read_text()
    '2 0 1 3 0\n'
    """
    write_bytes(path, (" ".join(map(str, counted_pairs(evidence))) + "\n").encode())


def read_variables(path: PathLike) -> list[int]:
    """Read the query variables of a marginal-MAP task: their number, then each of them.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    list of int
        Numbers of the variables.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from structlearn.uai import read_variables
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.query"
    >>> _ = path.write_text("2  0 3")
    >>> read_variables(path)
    [0, 3]
    """
    numbers = [number for line in _whole_lines(path) for number in line]
    if not numbers or len(numbers) != 1 + numbers[0]:
        given = f"{len(numbers) - 1} follow a count of {numbers[0]}" if numbers else "it is empty"
        raise FormatError(f"{path}: need a count and that many variables; {given}")
    if len(set(numbers[1:])) < numbers[0]:
        raise FormatError(f"{path}: a query variable occurs twice")
    return numbers[1:]


# ---- small files of whole numbers --------------------------------------------------------


def _whole_lines(path: PathLike) -> list[list[int]]:
    """Return the whole numbers of every line that has any; comment lines are skipped."""
    lines = []
    for at, line in enumerate(read_bytes(path).splitlines(), 1):
        words = [] if _COMMENT.match(line) else line.split()
        if words:
            lines.append([whole_number(word, f"{path}, line {at}") for word in words])
    return lines


def whole_number(word: bytes, place: str) -> int:
    """Return a number that counts or names something, which must fit into 64 bits."""
    if not word.isdigit() or len(word) > 18:
        raise FormatError(f"{place}: {shown(word)} must be a whole number of at least 0")
    return int(word)


def pairs(numbers: Sequence[int], path: PathLike) -> dict[int, int]:
    """Turn ``variable state variable state ...`` into a mapping."""
    out: dict[int, int] = {}
    for variable, state in zip(numbers[::2], numbers[1::2], strict=True):
        if out.setdefault(variable, state) != state:
            raise FormatError(
                f"{path}: variable {variable} is in state {out[variable]} and in state {state}"
            )
    return out


def counted_pairs(states: Mapping[int, int]) -> list[int]:
    """Turn a mapping into ``count variable state variable state ...``."""
    numbers = [len(states)]
    for variable, state in states.items():
        numbers += [checks.integer("variable", variable), checks.integer("state", state)]
    return numbers


def _is_one_line_each(lines: list[list[int]]) -> bool:
    """Whether the lines are a number of samples and that many samples."""
    samples = [line for line in lines[1:] if len(line) == 1 + 2 * line[0]]
    return lines[0] == [len(lines) - 1] and len(samples) == len(lines) - 1


def shown(word: bytes) -> str:
    """Return a word of a file for a message, or its beginning."""
    begin = word[:20].decode("ascii", "backslashreplace")
    return repr(begin + "..." if len(word) > 20 else begin)
