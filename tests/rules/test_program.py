"""Programs in files, in both layouts."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from structlearn._src.common.errors import (
    DataNotFoundError,
    FormatError,
    IgnoredOptionWarning,
    RuleError,
)
from structlearn._src.rules.parse import parse
from structlearn._src.rules.program import Evaluation, read_program
from structlearn._src.rules.syntax import Predicate

RULES = ["1: Knows(A, B) & likes(A, X) -> Likes(B, X) ^2", "Likes(A, +X) <= 1 ."]
MODEL = """{
    # PSL allows comments
    "options": {"runtime.db.intids": true, "runtime.log.level": "INFO"},
    "rules": [
        "1: Knows(A, B) & likes(A, X) -> Likes(B, X) ^2", // and "quotes" in them
        "Likes(A, +X) <= 1 .", /* and
        a comma */
    ],
    "predicates": {
        "Knows/2": {"observations": "knows#1.txt"},
        "Likes/2": {
            "types": ["UniqueStringID", "UniqueIntID"],
            "observations": {"learn": ["a.txt", "b.txt"], "all": [["ann", 7], ["bob", 8, 0.5]]},
            "targets": {"infer": [["cyd", 7]], "learn": ["c.txt", ["dan", 7]]},
            "truth": {"learn": "/abs/t.txt"},
            "evaluations": [
                "AUCEvaluator",
                {"evaluator": "org.x.DiscreteEvaluator", "primary": true,
                 "options": {"discreteevaluator.threshold": 0.3}}
            ]
        }
    }
}"""
DATA = """
predicates:
  Knows/2: closed   # a comment
  Likes/2: open
  No/1:
    - closed
    - types:
        - UniqueStringID
observations:
  Knows: SPLIT/knows.txt
  No: no.txt
targets:
  Likes: SPLIT/likes.txt
truth:
  likes:
    - SPLIT/one.txt
    - SPLIT/two.txt
"""


def put(folder, **files):
    for name, text in files.items():
        folder.joinpath(name.replace("__", "-").replace("_", ".")).write_text(text)


def test_json_layout(tmp_path):
    put(tmp_path, model_json=MODEL)
    program = read_program(tmp_path / "model.json")
    assert program.predicates == (Predicate("Knows", 2), Predicate("Likes", 2, open=True))
    assert program.options == {"runtime.db.intids": True, "runtime.log.level": "INFO"}
    assert "\n".join(map(str, program.rules)) == (
        "1: Knows(A, B) & Likes(A, X) -> Likes(B, X) ^2\nLikes(A, +X) <= 1 ."
    )
    knows, likes = program.declarations
    assert knows.sources("observations", "learn") == (tmp_path / "knows#1.txt",)
    assert knows.sources("targets") == ()
    rows = (("ann", "7", 1.0), ("bob", "8", 0.5))
    assert likes.sources("observations", "all") == (rows,)
    assert likes.sources("observations", "infer") == (rows,)
    assert likes.sources("observations", "learn") == (rows, tmp_path / "a.txt", tmp_path / "b.txt")
    assert likes.sources("targets", "infer") == ((("cyd", "7"),),)
    assert likes.sources("targets", "learn") == (tmp_path / "c.txt", (("dan", "7"),))
    assert likes.sources("truth", "learn") == (Path("/abs/t.txt"),)
    assert likes.types == ("UniqueStringID", "UniqueIntID")
    assert likes.evaluations == (
        Evaluation("AUCEvaluator"),
        Evaluation("DiscreteEvaluator", {"discreteevaluator.threshold": 0.3}, primary=True),
    )
    assert likes.evaluations[1].scores()[2] == ("recall", {"threshold": 0.3})
    cat = Evaluation("CategoricalEvaluator", {"categoricalevaluator.categoryindexes": "0:1"})
    assert cat.scores() == [("categorical", {"category": [0, 1], "threshold": 1.0})]
    with pytest.raises(FormatError, match="split='test' is not known"):
        likes.sources("truth", "test")


def check_older(program, folder, splits):
    assert program.predicates == (
        Predicate("Knows", 2),
        Predicate("Likes", 2, open=True),
        Predicate("No", 1),
    )
    assert program.rules[0].body.literals[1].atom.predicate == "Likes"
    knows, likes, no = program.declarations
    for split in splits:
        assert knows.sources("observations", split) == (folder / split / "knows.txt",)
        assert likes.sources("targets", split) == (folder / split / "likes.txt",)
        both = (folder / split / "one.txt", folder / split / "two.txt")
        assert likes.sources("truth", split) == both
        assert no.sources("observations", split) == (folder / "no.txt",)
    assert no.types == ("UniqueStringID",)


def test_older_layout(tmp_path):
    (tmp_path / "data").mkdir()
    put(tmp_path, model_psl="\n".join(RULES))
    put(tmp_path / "data", x_data=DATA.replace("SPLIT", "learn"))
    put(tmp_path / "data", y_data=DATA.replace("SPLIT", "infer"))
    files = {"learn": tmp_path / "data/x.data", "infer": str(tmp_path / "data/y.data")}
    check_older(read_program(tmp_path / "model.psl", files), tmp_path / "data", files)
    one = read_program(str(tmp_path / "model.psl"), files["infer"])
    assert one.declarations[0].sources("observations", "learn") == (
        tmp_path / "data/infer/knows.txt",
    )


@pytest.mark.parametrize("ending", ["eval", "infer"])
def test_older_layout_finds_its_data(tmp_path, ending):
    put(tmp_path, model_psl="\n".join(RULES), model__learn_data=DATA.replace("SPLIT", "learn"))
    text = DATA.replace("SPLIT", "infer")
    (tmp_path / f"model-{ending}.data").write_text(text)
    check_older(read_program(tmp_path / "model.psl"), tmp_path, ("learn", "infer"))


def test_rules_alone(tmp_path):
    put(tmp_path, model_psl="\n".join(RULES))
    program = read_program(tmp_path / "model.psl")
    assert program.rules == parse("\n".join(RULES))
    assert program.declarations == ()


def test_rules_of_splits_and_rules_in_files(tmp_path):
    put(tmp_path, rules_psl="\n".join(RULES))
    more = '"rules": "rules.psl", "infer": {"rules": ["2: Likes(A, X) -> Knows(X, A)"]}, '
    more += '"learn": {"rules": "rules.psl", "options": {"runtime.learn.x": 1}},'
    put(tmp_path, model_json=MODEL.replace('"rules": [', more + '"validation": {"rules": ['))
    text = (
        (tmp_path / "model.json")
        .read_text()
        .replace('],\n    "predicates"', ']},\n    "predicates"')
    )
    put(tmp_path, model_json=text)
    with pytest.warns(
        IgnoredOptionWarning, match=r"model\.json: .* runtime\.learn\.x have no effect"
    ):
        program = read_program(tmp_path / "model.json")
    assert [len(program.rules_for(split)) for split in ("infer", "learn", "validation", "all")] == [
        3,
        4,
        4,
        2,
    ]
    assert program.rules_for("infer")[2].weight == 2.0
    assert program.rules_for("learn")[:2] == program.rules_for("learn")[2:] == program.rules
    put(tmp_path, model_json=text.replace("Knows(X, A)", "Knws(X, A)"))
    with pytest.raises(RuleError, match=r"model\.json, infer rule 1: 'Knws' is not a known"):
        read_program(tmp_path / "model.json")
    only = text.replace('"rules": "rules.psl", "infer"', '"infer"')
    put(tmp_path, model_json=only)
    with pytest.warns(IgnoredOptionWarning):
        assert len(read_program(tmp_path / "model.json").rules_for("infer")) == 1


LOOSE = r"""{
	'rules': ['1: P(\'a\') & Q(A) -> P(A)'], // tabs and single quotes
	"predicates": {
		'P/1': {'targets': [['b', 01], ['c']]}, /* numbers */
		'Q/1': {'observations': [['a', +1.0]], 'force-open': true,},
	},
}"""
YAML = """
rules:
  - "1: P('a') & Q(A) -> P(A)"
predicates:
  P/1: {targets: [[b, 1], [c]]}
  Q/1:
    observations:
      - [a, "1.0"]
    force-open: true
"""


TEXTS = LOOSE.replace("01]", "'1']").replace("+1.0", '"1"')  # as in PSL's own tests


@pytest.mark.parametrize(
    ("name", "text"), [("m.json", LOOSE), ("m.json", TEXTS), ("m.yaml", YAML), ("m.yml", YAML)]
)
def test_loose_json_and_yaml(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    program = read_program(tmp_path / name)
    assert program.rules == parse("1: P('a') & Q(A) -> P(A)")
    p, q = program.declarations
    assert p.sources("targets") == ((("b", 1.0), ("c", 1.0)),)
    assert q.sources("observations") == ((("a", 1.0),),)
    assert q.predicate.open


def test_blocks_of_data_files_have_no_meaning(tmp_path):
    data = changed("Knows/2: closed", "Knows/2: [closed, block]", DATA)
    put(tmp_path, model_psl="\n".join(RULES), model_data=data)
    assert read_program(tmp_path / "model.psl").predicates[0] == Predicate("Knows", 2)


def changed(old, new, text=MODEL):
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (changed('"options":', '"optins":'), "unknown key 'optins'; did you mean 'options'?"),
        (changed('"targets":', '"target":'), "Likes/2 has the unknown key 'target'; did you mean"),
        (changed('"infer": [[', '"test": [['), "unknown key 'test'; known are"),
        (changed('"Knows/2"', '"Knows"'), "Knows has no arity"),
        (changed('"Knows/2"', '"Knows/x"'), "Knows/x has the arities"),
        (changed('"Likes/2"', '"Likes/3"'), "Likes/3 has the arities"),
        (changed('"Knows/2"', '"9/2"'), "'9/2' is no predicate"),
        (changed('["ann", 7]', '["ann", 7, 1, 1]'), "should have 2 arguments and perhaps a value"),
        (changed('["ann", 7]', '["ann", 7, "x"]'), "should have 2 arguments and perhaps a value"),
        (changed('"knows#1.txt"', "3"), "'observations' of Knows/2 is 3: it must be a list"),
        (changed('"a.txt"', "3"), "'learn' of 'observations' of Likes/2 is 3: it must be a text"),
        (changed('"types"', '"function": "org.X", "types"'), "give them as observations"),
        (changed('"evaluator"', '"evaluatr"'), "unknown key 'evaluatr'; did you mean 'evaluator'"),
        (changed('"Knows/2":', '"Knows/2"'), r"not JSON: Expecting ':' delimiter \(line 10, col"),
        (changed('"UniqueIntID"', '"Int"'), "a type of Likes/2='Int' is not known"),
        (changed('"AUCEvaluator"', '"AUC"'), "evaluator='AUC' is not known"),
        (
            changed('"AUCEvaluator"', '{"evaluator": "AUCEvaluator", "primary": true}'),
            "several evaluations are primary",
        ),
        (changed('"types"', '"type": "DeepPredicate", "types"'), "deep predicate"),
        (changed('"rules":', '"infer": {"rle": 1}, "rules":'), "unknown key 'rle'"),
        (changed('"infer": [[', "infer: [["), r"not JSON: Expecting property .*\(line 14,"),
        (changed("0.3", '"x"'), "'evaluations' of Likes/2 has options that are no numbers"),
        (changed('"options":', '"rules": [], "options":'), "the key 'rules' comes twice"),
        (changed('"Knows/2": {', '"LIKES/2": {'), "declared twice"),
        ("[1]", r"the model is \[1\]: it must be a mapping"),
        ('{"rules": [], "predicates": {}}', "there are no rules"),
        ('{"rules": [3], "predicates": {}}', "rule 1 is 3: it must be a text"),
    ],
)
def test_malformed_json(tmp_path, text, words):
    put(tmp_path, model_json=text)
    with pytest.raises(FormatError, match=words) as caught:
        read_program(tmp_path / "model.json")
    assert str(caught.value).startswith("model.json: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (changed("Knows/2: closed", "Knows/2: shut", DATA), "a predicate is 'open' or 'closed'"),
        (changed("Likes/2: open", "Likes/2: closed", DATA), "Likes/2 is closed, but has targets"),
        (
            changed("  Knows: SP", "  Knws: SP", DATA),
            "'Knws', which is not in 'predicates'; did you",
        ),
        (changed("targets:", "target:", DATA), "unknown key 'target'; did you mean 'targets'?"),
        (changed("targets:", "targets: [", DATA), r"not YAML: .* \(line 1[0-9], column [0-9]+\)"),
        (
            changed("Knows/2: closed", "Knows/2: [closed, {function: a.B}]", DATA),
            "deep predicate or a function",
        ),
        (changed("Knows/2: closed", "Knows: closed", DATA), "Knows has no arity"),
        (
            changed("truth:", "targets:", DATA),
            r"the key 'targets' comes twice \(line 2, column 1\)",
        ),
        ("- a", "the file is .* it must be a mapping"),
    ],
)
def test_malformed_data_file(tmp_path, text, words):
    put(tmp_path, model_psl="\n".join(RULES), model_data=text)
    with pytest.raises(FormatError, match=words) as caught:
        read_program(tmp_path / "model.psl")
    assert str(caught.value).startswith("model.data: ")


def test_arities_must_agree_between_splits(tmp_path):
    put(tmp_path, model_psl="\n".join(RULES), model__learn_data=DATA)
    put(tmp_path, model__eval_data=DATA.replace("Knows/2", "knows/3"))
    with pytest.raises(FormatError, match="Knows/2 is declared again as knows/3"):
        read_program(tmp_path / "model.psl")


def test_wrong_rules_are_found_in_their_file(tmp_path):
    put(tmp_path, model_json=changed("likes(A, X)", "liked(A, X)"))
    with pytest.raises(RuleError) as caught:
        read_program(tmp_path / "model.json")
    assert str(caught.value) == (
        "model.json, rule 1: 'liked' is not a known predicate; did you mean 'Likes'? "
        "(line 1, column 18)\n"
        "  1: Knows(A, B) & liked(A, X) -> Likes(B, X) ^2\n"
        "                   ^"
    )
    put(tmp_path, model_psl="\n".join([*RULES, "1: Knows(A) -> Likes(A, A)"]), model_data=DATA)
    with pytest.raises(RuleError, match=r"model.psl: Knows\(A\) has 1 .*\(line 3, column 4\)"):
        read_program(tmp_path / "model.psl")
    put(tmp_path, model_psl="1: Knows(A, B) -> Likes(A, B) ^3")
    with pytest.raises(RuleError, match=r"model.psl: .*\(line 1, column 31\)"):
        read_program(tmp_path / "model.psl")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(DataNotFoundError, match=r"there is no file .*none\.json"):
        read_program(tmp_path / "none.json")
    put(tmp_path, model_psl="\n".join(RULES), model_json=MODEL)
    with pytest.raises(DataNotFoundError, match=r"there is no file .*none\.data"):
        read_program(tmp_path / "model.psl", tmp_path / "none.data")
    with pytest.raises(FormatError, match="contains its own data"):
        read_program(tmp_path / "model.json", tmp_path / "none.data")
    with pytest.raises(FormatError, match="data has the unknown key 'lern'; did you mean 'learn'"):
        read_program(tmp_path / "model.psl", {"lern": tmp_path / "model.data"})


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n"
    for before, name in itertools.pairwise("abcdefghi")
)


@pytest.mark.parametrize(
    "text",
    [
        BOMB + "predicates: *i",
        "predicates:\n  P/1: open\nobservations:\n  P: &a [*a]\n",
        "predicates: " + 3000 * "[" + 3000 * "]",
        "predicates:\n  P/1: " + 50 * "[" + 50 * "]",
        "%YAML " + 5000 * "9" + ".1\n---\na: b\n",
        'a: "\\U99999999"\n',
        "predicates:\n  P/1: [open, {observations: x}]\nobservations:\n  P: y\n",
    ],
    ids=["aliases", "itself", "deep", "nested", "version", "letter", "twice"],
)
def test_data_files_that_are_small_but_mean_much(tmp_path, text):
    """Messages show a part, and nothing is written out that aliases stand for."""
    (tmp_path / "a.psl").write_text("1: P(A)\n")
    (tmp_path / "a.data").write_text(text)
    with pytest.raises(FormatError, match=r"a\.data") as caught:
        read_program(tmp_path / "a.psl")
    assert len(str(caught.value)) < 500


def test_aliases_may_be_used(tmp_path):
    (tmp_path / "a.psl").write_text("1: P(A) -> Q(A)\n")
    (tmp_path / "a.data").write_text(
        "predicates:\n  P/1: closed\n  Q/1: open\n"
        "observations:\n  P: &both [a.txt, b.txt]\ntargets:\n  Q: *both\n"
    )
    program = read_program(tmp_path / "a.psl")
    files = (tmp_path / "a.txt", tmp_path / "b.txt")
    assert [each.data for each in program.declarations] == [
        {("observations", "all"): files},
        {("targets", "all"): files},
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"rules": ' + 5000 * "[" + 5000 * "]" + "}", "not JSON"),
        ('{"rules": [' + 5000 * "9" + "]}", "not JSON"),
        ('{"rules": ["1: P(A)"], "predicates": {"P/' + 5000 * "9" + '": {}}}', "arities"),
        (200_000 * "/*", "not JSON"),
        ('"' + 200_000 * '\\"', "not JSON"),
    ],
    ids=["deep", "digits", "arity", "comments", "quotes"],
)
def test_json_that_is_made_to_break_parsers(tmp_path, text, words):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(FormatError, match=words):
        read_program(tmp_path / "a.json")


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::structlearn.errors.IgnoredOptionWarning")
def test_published_programs(data_folder):
    folder = data_folder / "psl"
    paths = sorted(
        [*folder.glob("*/*.json"), *folder.glob("*/*.psl"), *folder.glob("published/*/*/*.psl")]
    )
    assert len(paths) >= 75
    for path in paths:
        program = read_program(path)
        assert program.rules
        assert any(predicate.open for predicate in program.predicates)
        assert parse("\n".join(map(str, program.rules))) == program.rules


@pytest.mark.data
def test_both_layouts_say_the_same(data_folder):
    for path in data_folder.glob("psl/*/*.psl"):
        old, new = read_program(path), read_program(path.with_suffix(".json"))
        assert old.rules == new.rules
        assert set(old.predicates) == set(new.predicates)
        for declaration in new.declarations:
            (twin,) = [d for d in old.declarations if d.predicate == declaration.predicate]
            assert twin.data == declaration.data
