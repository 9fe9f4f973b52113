"""Sections of the docstrings of `RuleModel`, which `completed` adds to its methods."""

from __future__ import annotations

RULE_MODEL = {
    "from_file": """\
Parameters
----------
model
    A JSON file of PSL 2.4, or a file of rules that ends in ``.psl``.
data
    The ``.data`` files of a file of rules: one for all splits, or a mapping from split to
    path; by default those in the same folder.
split
    Which data to read, besides those for all splits: "infer", "learn", "validation" or
    "all".
greedy
    Parse coefficients as PSL does, as in the class.
**parameters
    Further parameters of the class.

Returns
-------
Self
    The model with its atoms.

Examples
--------
>>> import pathlib, tempfile
>>> from structlearn import RuleModel
>>> path = pathlib.Path(tempfile.mkdtemp()) / "habits.psl"
>>> _ = path.write_text("1: Friends(A, B) & Smokes(A) -> Smokes(B) ^2")
>>> RuleModel.from_file(path)
RuleModel(1 rules, 0 targets)""",
    "set_params": """\
Parameters
----------
**parameters
    New values by the names of parameters.

Returns
-------
Self
    The model.

Examples
--------
>>> from structlearn import RuleModel
>>> RuleModel("1: !Smokes(A)").set_params(tol=1e-4).tol
0.0001""",
    "observe": """\
Parameters
----------
data
    Data by predicate: a pandas, polars or Arrow frame; a list of rows; one or more paths of
    files with commas (``.csv``), tabs (any other) or Parquet; the name of a table in
    `source`.
header
    Whether to skip the first line of text files.
**atoms
    The same as `data`, as keywords.

Returns
-------
Self
    The model.

Examples
--------
>>> from structlearn import RuleModel
>>> model = RuleModel("2: Friends(A, B) & Smokes(A) -> Smokes(B) ^2")
>>> model.observe(Friends=[("ann", "bob")], Smokes=[("ann", 0.9)])
RuleModel(1 rules, 0 targets)""",
    "target": """\
Parameters
----------
data
    Data by predicate: a pandas, polars or Arrow frame; a list of rows; one or more paths of
    files with commas (``.csv``), tabs (any other) or Parquet; the name of a table in
    `source`.
header
    Whether to skip the first line of text files.
**atoms
    The same as `data`, as keywords.

Returns
-------
Self
    The model.

Examples
--------
>>> from structlearn import RuleModel
>>> RuleModel("1: !Smokes(A) ^2").target(Smokes=[("ann",), ("bob",)])
RuleModel(1 rules, 2 targets)""",
    "truth": """\
Parameters
----------
data
    Data by predicate: a pandas, polars or Arrow frame; a list of rows; one or more paths of
    files with commas (``.csv``), tabs (any other) or Parquet; the name of a table in
    `source`.
header
    Whether to skip the first line of text files.
**atoms
    The same as `data`, as keywords.

Returns
-------
Self
    The model.

Examples
--------
>>> from structlearn import RuleModel
>>> model = RuleModel(["2: Friends(A, B) & Smokes(A) -> Smokes(B) ^2", "1: !Smokes(A) ^2"])
>>> model = model.observe(Friends=[("ann", "bob")], Smokes=[("ann", 1.0)])
>>> model = model.target(Smokes=[("bob",)])
>>> model.truth(Smokes=[("bob", 1.0)]).score(metric="mae") < 0.5
True""",
    "read": """\
Parameters
----------
program
    The program, from `structlearn.rules.read_program`.
split
    Which data to read: "infer", "learn", "validation" or "all".

Returns
-------
Self
    The model.

Examples
--------
>>> import pathlib, tempfile
>>> from structlearn import RuleModel
>>> from structlearn.rules import read_program
>>> path = pathlib.Path(tempfile.mkdtemp()) / "habits.psl"
>>> _ = path.write_text("1: Friends(A, B) & Smokes(A) -> Smokes(B) ^2")
>>> program = read_program(path)
>>> RuleModel(program.rules_for("infer")).read(program)
RuleModel(1 rules, 0 targets)""",
    "clear": """\
Returns
-------
Self
    The model.

Examples
--------
>>> from structlearn import RuleModel
>>> model = RuleModel(["2: Friends(A, B) & Smokes(A) -> Smokes(B) ^2", "1: !Smokes(A) ^2"])
>>> model = model.observe(Friends=[("ann", "bob")], Smokes=[("ann", 1.0)])
>>> model = model.target(Smokes=[("bob",)])
>>> model.clear()
RuleModel(2 rules, 0 targets)""",
    "estimate": """\
Parameters
----------
broken
    Also count the groundings of hard rules that observed atoms alone violate. No values of
    the targets can repair them, and inference omits them, as PSL does. This takes longer,
    because all observed atoms are joined.

Returns
-------
list of RuleSize
    Records with the text of the rule and the number of its groundings.

Examples
--------
>>> from structlearn import RuleModel
>>> model = RuleModel(["2: Friends(A, B) & Smokes(A) -> Smokes(B) ^2", "1: !Smokes(A) ^2"])
>>> model = model.observe(Friends=[("ann", "bob")], Smokes=[("ann", 1.0)])
>>> model = model.target(Smokes=[("bob",)])
>>> [size.groundings for size in model.estimate()]
[1, 1]""",
    "split": """\
Parameters
----------
rule
    Number or text of the rule.
by
    Name of the variable.

Returns
-------
Self
    The model.

Examples
--------
>>> from structlearn import RuleModel
>>> model = RuleModel("1: !Likes(P, T)").target(Likes=[("ann", "tea"), ("ann", "rum")])
>>> model.split("1: !Likes(P, T)", "T").rules_
["1: !Likes(P, 'rum')", "1: !Likes(P, 'tea')"]""",
    "predict": """\
Parameters
----------
predicate
    Predicate whose targets are returned; by default all.
frame
    Kind of the frames: "pandas", "polars" or "dict" of arrays; by default the first that is
    installed.

Returns
-------
frame, or dict of frames
    A frame with one row per target: a column for each argument, named as in the frame of
    targets or else ``argument1`` and so on, and the column ``value``. If several predicates
    have targets and `predicate` names none, a dict of frames by predicate.

Examples
--------
>>> from structlearn import RuleModel
>>> model = RuleModel(["2: Friends(A, B) & Smokes(A) -> Smokes(B) ^2", "1: !Smokes(A) ^2"])
>>> model = model.observe(Friends=[("ann", "bob")], Smokes=[("ann", 1.0)])
>>> model = model.target(Smokes=[("bob",)])
>>> model.predict(frame="dict")
{'argument1': array(['bob'], dtype=object), 'value': array([0.66666667])}""",
    "explain": """\
Parameters
----------
atom
    The target, as ``"Likes('bob', 'tea')"``, where quotes may be omitted, or as ``("Likes",
    "bob", "tea")``.

Returns
-------
list of Pull
    Records with the rule, its `grounding`, the `distance` to satisfaction, and the `slope`:
    the derivative of the energy with respect to the target, negative if it pulls up.

Examples
--------
>>> from structlearn import RuleModel
>>> model = RuleModel(["2: Friends(A, B) & Smokes(A) -> Smokes(B) ^2", "1: !Smokes(A) ^2"])
>>> model = model.observe(Friends=[("ann", "bob")], Smokes=[("ann", 1.0)])
>>> model = model.target(Smokes=[("bob",)])
>>> sorted(round(pull.slope, 2) for pull in model.explain("Smokes(bob)"))
[-1.33, 1.33]""",
    "score": """\
Parameters
----------
truth
    Further true values, as for `truth`.
metric
    "auroc", "aupr", "aupr_negative" or "aupr_trapezoid", "mse", "rmse" or "mae",
    "accuracy", "precision", "recall" or "f1", "precision_negative" or "recall_negative",
    "categorical" or "mrr". The last two compare the targets of a block, which differ only
    in the arguments `category`: the fraction of positives that have the largest value of
    their block, and the mean reciprocal rank of the first positive.
predicate
    Predicate whose atoms are scored; by default all.
threshold
    A truth of at least this is positive, and for the metrics from "accuracy" to
    "recall_negative" so is a value; 0.5 by default.
category
    Numbers of the arguments in which the targets of a block differ; by default the last.

Returns
-------
float
    The score; lower is better for "mse", "rmse" and "mae".

Examples
--------
>>> from structlearn import RuleModel
>>> model = RuleModel(["2: Friends(A, B) & Smokes(A) -> Smokes(B) ^2", "1: !Smokes(A) ^2"])
>>> model = model.observe(Friends=[("ann", "bob")], Smokes=[("ann", 1.0)])
>>> model = model.target(Smokes=[("bob",)])
>>> round(model.score({"Smokes": [("bob", 1.0)]}, metric="mae"), 3)
0.333""",
    "save": """\
Parameters
----------
path
    The file.

Examples
--------
>>> import pathlib, tempfile
>>> from structlearn import RuleModel
>>> path = pathlib.Path(tempfile.mkdtemp()) / "model.json"
>>> RuleModel("1: !Smokes(A) ^2").save(path)
>>> RuleModel.load(path).rules_
['1: !Smokes(A) ^2']""",
    "load": """\
Parameters
----------
path
    The file.
**parameters
    Parameters that override those in the file.

Returns
-------
Self
    The model, without atoms.

Examples
--------
>>> import pathlib, tempfile
>>> from structlearn import RuleModel
>>> path = pathlib.Path(tempfile.mkdtemp()) / "model.json"
>>> RuleModel("1: !Smokes(A) ^2").save(path)
>>> RuleModel.load(path, tol=1e-4).tol
0.0001""",
}
