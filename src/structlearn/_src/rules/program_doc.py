"""Sections of the docstring of `read_program`, which `completed` adds."""

from __future__ import annotations

READ_PROGRAM = {
    "": """\
Parameters
----------
model
    A JSON or YAML file of PSL 2.4, or a file of rules that ends in ``.psl``.
data
    The ``.data`` files of a ``.psl`` file: one path, or a mapping from split to path. Without,
    ``NAME.data``, ``NAME-learn.data`` and ``NAME-infer.data`` or ``NAME-eval.data`` beside it
    are used if they are there.
greedy
    See `parse`.

Returns
-------
ProgramFile
    Rules that are checked against the predicates. Paths are relative to the folder of their
    file. PSL's options have no effect here and cause an `IgnoredOptionWarning`.

Raises
------
RuleError
    If a rule is wrong, with the file and the place.
FormatError
    If a file does not follow its format.

Examples
--------
>>> import pathlib, tempfile
>>> from structlearn.rules import read_program
>>> path = pathlib.Path(tempfile.mkdtemp()) / "habits.psl"
>>> _ = path.write_text("1: Smokes(A) & Friends(A, B) -> Smokes(B) ^2")
>>> [str(rule) for rule in read_program(path).rules]
['1: Smokes(A) & Friends(A, B) -> Smokes(B) ^2']""",
}
