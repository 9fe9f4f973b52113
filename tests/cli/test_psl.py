"""``structlearn psl``: files in, files out, scores, explanations, and bad input."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import partialmethod

import pytest

from structlearn._src.cli import psl
from structlearn._src.cli.main import main
from structlearn._src.field import admm
from structlearn._src.rules.program import read_program

RULES = ["20: Knows(A, B) & Likes(A, X) -> Likes(B, X) ^2", "5: !Likes(A, X) ^2"]
BOB, CYD = 18 / 29, 0.8 * 18 / 29  # where the slopes of both add up to 0
FILES = {
    "knows.txt": "ann\tbob\nbob\tcyd\n",
    "likes.txt": "ann\ttea\t0.9\n",
    "targets.txt": "bob\ttea\ncyd\ttea\n",
    "truth.txt": "bob\ttea\t1\ncyd\ttea\t0\n",
}
DATA = """\
predicates:
  Knows/2: closed
  Likes/2: open
observations:
  Knows: knows.txt
  Likes: likes.txt
targets:
  Likes: targets.txt
truth:
  Likes: truth.txt
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with one program in both layouts."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    likes = {"observations": "likes.txt", "targets": "targets.txt", "truth": "truth.txt"}
    predicates = {"Knows/2": {"observations": ["knows.txt"]}, "Likes/2": likes}
    model = {"rules": RULES, "predicates": predicates}
    (tmp_path / "model.json").write_text(json.dumps(model))
    (tmp_path / "model.psl").write_text("\n".join(RULES))
    (tmp_path / "model.data").write_text(DATA)
    return tmp_path


@pytest.fixture
def run(folder, capsys):
    """Return a function that runs the command on a file of the folder: code, output, errors."""

    def call(name, *options):
        code = main(["psl", str(folder / name), *map(str, options)])
        return code, *capsys.readouterr()

    return call


def values(text):
    """The last column of a table."""
    return [float(line.split("\t")[-1]) for line in text.splitlines()]


def test_a_model_is_needed(capsys):
    assert main(["psl", "--infer"]) == 2
    assert "MODEL is missing" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["model.json"], ["model.psl"], ["model.psl", "--infer"]])
def test_values_go_to_standard_output(run, options):
    code, out, err = run(*options)
    assert code == 0
    assert [line.split("\t")[:3] for line in out.splitlines()] == [
        ["Likes", "bob", "tea"],
        ["Likes", "cyd", "tea"],
    ]
    assert values(out) == pytest.approx([BOB, CYD], abs=1e-4)
    words = [line.split()[0] for line in err.splitlines()]
    assert words == ["read", "ground", "done", "result"]
    assert "4 groundings over 2 targets" in err
    assert "energy 5.02759 (0.251379 in PSL's scale), gap" in err


def test_values_go_to_files(run, folder):
    code, out, err = run("model.json", "--output", folder / "new" / "out", "--quiet")
    assert (code, out, err) == (0, "", "")
    assert [path.name for path in (folder / "new" / "out").iterdir()] == ["LIKES.txt"]
    text = (folder / "new" / "out" / "LIKES.txt").read_text()
    assert text.startswith("bob\ttea\t0.62")
    assert values(text) == pytest.approx([BOB, CYD], abs=1e-4)


def test_data_can_be_named(run, folder):
    (folder / "model.data").rename(folder / "other.data")
    code, _, err = run("model.psl")
    assert (code, "has no data: name its .data file, or make model.data" in err) == (2, True)
    assert values(run("model.psl", folder / "other.data")[1])[0] == pytest.approx(BOB, abs=1e-4)


def test_scores(run):
    code, out, _ = run(
        "model.json", "--evaluate", "auroc", "Likes", "--evaluate", "mse", "likes", "--tol", "1e-9"
    )
    assert code == 0
    error = ((1 - BOB) ** 2 + CYD**2) / 2
    assert out == f"auroc\tLikes\t1.000000\nmse\tlikes\t{error:.6f}\n"


def test_scores_of_blocks_with_options(run):
    blocks = ["--evaluate", "categorical", "Likes", "--category", 0]
    code, out, _ = run("model.json", *blocks)
    assert (code, out) == (0, "categorical\tLikes\t1.000000\n")
    code, out, _ = run("model.json", "--evaluate", "precision", "Likes", "--threshold", 0.55)
    assert (code, out) == (0, "precision\tLikes\t1.000000\n")
    code, out, _ = run("model.json", "--evaluate", "precision", "Likes", "--threshold", 0.1)
    assert (code, out) == (0, "precision\tLikes\t0.500000\n")


def test_scores_that_the_model_asks_for(run, folder):
    model = json.loads((folder / "model.json").read_text())
    names = ["AUCEvaluator", "ContinuousEvaluator"]
    cat = {"categoricalevaluator.categoryindexes": 0}
    asked = [*names, {"evaluator": "CategoricalEvaluator", "options": cat}]
    model["predicates"]["Likes/2"]["evaluations"] = asked
    (folder / "model.json").write_text(json.dumps(model))
    code, out, err = run("model.json")
    assert (code, len(out.splitlines())) == (0, 2)
    told = err.splitlines()[4:]
    assert told[0].startswith("score     AUCEvaluator of Likes: auroc 1.000000, aupr_trapezoid")
    mae = (1 - BOB + CYD) / 2
    assert told[1].startswith(f"score     ContinuousEvaluator of Likes: mae {mae:.4f}"[:-1])
    assert told[2] == "score     CategoricalEvaluator of Likes: categorical 1.000000"
    assert run("model.json", "--quiet")[2] == ""
    del model["predicates"]["Likes/2"]["truth"]
    (folder / "model.json").write_text(json.dumps(model))
    assert "AUCEvaluator of Likes: no target has a truth" in run("model.json")[2]


def test_rules_of_splits(run, folder):
    """Rules for learning alone are learnt and do not infer; those for inference alone do."""
    model = json.loads((folder / "model.json").read_text())
    model |= {
        "infer": {"rules": ["7: Likes(A, X) <= 0.1"]},
        "learn": {"rules": ["3: Likes(A, X) = 0.5 ^2"]},
    }
    (folder / "model.json").write_text(json.dumps(model))
    code, _, err = run("model.json", "-l", "-i", "-o", folder / "out")
    assert code == 0
    assert re.search(r"^learnt +3 weights", err, re.M)
    assert "6 groundings over 2 targets" in err
    learned = read_program(folder / "out" / "model-learned.json")
    assert [len(learned.rules_for(split)) for split in ("learn", "infer", "all")] == [3, 3, 2]
    assert learned.rules_for("infer")[2].weight == 7.0
    assert learned.rules_for("learn")[2].weight != 3.0
    text = read_program(folder / "out" / "model-learned.psl").rules
    assert [rule.weight for rule in text] == [rule.weight for rule in learned.rules_for("infer")]
    values_before = (folder / "out" / "LIKES.txt").read_text()
    again = run("out/model-learned.json", "--output", folder / "again")
    assert again[0] == 0
    assert values((folder / "again" / "LIKES.txt").read_text()) == pytest.approx(
        values(values_before), abs=1e-3
    )


@pytest.mark.parametrize("name", ["-c", "--config", "-m", "--model"])
def test_options_of_psl_that_mean_something(folder, capsys, name):
    assert main(["psl", name, str(folder / "model.json"), "-i", "--quiet"]) == 0
    assert values(capsys.readouterr().out) == pytest.approx([BOB, CYD], abs=1e-4)
    (folder / "model.data").rename(folder / "other.data")
    assert main(["psl", "--infer", str(folder / "model.json"), "--quiet"]) == 0
    data = ["-d", str(folder / "other.data"), "-o", str(folder / "out"), "--quiet"]
    assert main(["psl", "-m", str(folder / "model.psl"), *data]) == 0
    assert values((folder / "out" / "LIKES.txt").read_text()) == pytest.approx([BOB, CYD], abs=1e-4)


@pytest.mark.filterwarnings("default::structlearn.errors.IgnoredOptionWarning")
def test_settings_of_psl_bring_a_warning(run):
    code, _, err = run("model.json", "-D", "admmreasoner.maxiterations=3", "-D", "x=1")
    assert code == 0
    assert "warning: -D admmreasoner.maxiterations, x: PSL's options have no effect" in err


def test_explanations(run):
    code, out, _ = run("model.json", "--explain", "Likes('bob', tea)")
    lines = out.splitlines()
    assert (code, len(lines)) == (0, 4)
    assert lines[0].startswith("Likes('bob', 'tea') = 0.62")
    assert lines[1].startswith("  up 11.17")
    assert "Knows('ann', 'bob') & Likes('ann', 'tea') -> Likes('bob', 'tea')" in lines[1]


def test_estimates(run):
    code, out, err = run("model.json", "--estimate")
    assert (code, err.count("\n")) == (0, 1)
    assert out.split("\n") == [
        f"{2:>12}  {RULES[0]}",
        f"{2:>12}  {RULES[1]}",
        f"{4:>12}  in all",
        "",
    ]


@pytest.mark.parametrize("learner", ["paired", "cccp", "em", "subgradient"])
def test_learning_writes_the_program_with_its_weights(run, folder, learner):
    out_folder = folder / "out"
    code, out, err = run(
        "model.psl", "--learn", "--learner", learner, "--iterations", "3", "--output", out_folder
    )
    assert (code, out) == (0, "")
    assert re.search(r"learnt +2 weights, 3 iterations, objective", err)
    names = sorted(path.name for path in out_folder.iterdir())
    assert names == ["model-learned.json", "model-learned.psl"]
    learned = read_program(out_folder / "model-learned.json")
    assert [rule.weight for rule in learned.rules] != [20.0, 5.0]
    text = read_program(out_folder / "model-learned.psl", folder / "model.data")
    assert [rule.weight for rule in text.rules] == [rule.weight for rule in learned.rules]
    code, out, _ = run("out/model-learned.json")  # its data are found from there
    assert (code, len(values(out))) == (0, 2)


def test_learning_then_inference(run):
    code, out, err = run("model.json", "--learn", "--infer", "--evaluate", "auroc", "Likes")
    assert code == 0
    *rules, score = out.splitlines()
    assert len(rules) == 2
    assert score.startswith("auroc\tLikes\t")
    assert err.count("\ndone ") == 2


def test_every_atom_has_one_line(run, folder):
    """Whatever its constants are."""
    (folder / "odd.csv").write_text('"a\tb",x\n"c\nd",y\n')
    model = {"rules": ["1: Q(A, B) >= 1"], "predicates": {"Q/2": {"targets": ["odd.csv"]}}}
    (folder / "odd.json").write_text(json.dumps(model))
    lines = run("odd.json")[1].splitlines()
    assert [line.split("\t") for line in lines] == [
        ["Q", r"a\tb", "x", "1"],
        ["Q", r"c\nd", "y", "1"],
    ]


def test_learning_without_a_slope_is_told(run, folder):
    (folder / "model.psl").write_text("\n".join(rule.removesuffix(" ^2") for rule in RULES))
    code, _, err = run("model.psl", "--learn")
    assert code == 0
    assert "warning: nothing was learnt" in err


def test_an_interrupt_keeps_the_best(run, monkeypatch):
    def step(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(admm._MapSearch, "step", step)
    code, out, err = run("model.json")
    assert (code, len(values(out))) == (130, 2)
    assert "interrupted" in err


def test_an_interrupt_of_learning_keeps_the_weights(run, folder, monkeypatch):
    def stop(self, share, words):
        if words.startswith("iteration 2"):
            raise KeyboardInterrupt

    monkeypatch.setattr(psl.ProgressLine, "__call__", stop)
    code, out, err = run("model.json", "--learn", "--output", folder / "out", "--progress")
    assert (code, out) == (130, "")
    assert "interrupted after 2 iterations" in err
    weights = [rule.weight for rule in read_program(folder / "out" / "model-learned.psl").rules]
    assert weights != [20.0, 5.0]


def test_what_takes_long_to_load_is_not_loaded(folder):
    code = (
        "import sys; from structlearn._src.cli.main import main\n"
        f"main(['psl', {str(folder / 'model.json')!r}, '--quiet'])\n"
        "print({'sklearn', 'pandas', 'polars', 'matplotlib'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_progress_is_reported(run, monkeypatch):
    begun = psl.ProgressLine.__init__
    monkeypatch.setattr(psl.ProgressLine, "__init__", partialmethod(begun, every=0.0))
    _, _, err = run("model.json", "--progress")
    assert "reading atoms" in err
    assert re.search(r"\d\d:\d\d:\d\d .*step \d+, energy", err)


def test_the_verdict_for_programs(run, folder):
    files = ["--json", folder / "verdict", "--log", folder / "log"]
    code, _, _ = run("model.json", "--learn", "--infer", "--output", folder / "out", *files)
    assert code == 0
    found = json.loads((folder / "verdict").read_text())
    assert len(found["learn"]["weights"]) == 2
    assert found["infer"]["converged"] is True
    words = [line.split()[2] for line in (folder / "log").read_text().splitlines()]
    learnt = ["read", "ground", "done", "learnt", "wrote"]
    assert words == [*learnt, "read", "ground", "done", "result", "wrote"]
    code, _, err = run("model.json", "--json", folder / "model.json")
    assert (code, "--json" in err) == (2, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--evaluate", "auc", "Likes"], "--evaluate auc is not known; choose one of auroc"),
        (["--evaluate", "auroc", "Lykes"], "did you mean 'Likes'?"),
        (["--explain", "Likes('dan', 'tea')"], "Likes('dan', 'tea') is not listed"),
        (["--estimate", "--learn"], "--estimate stands alone"),
        (["--output", "knows.txt"], "is a file; need a folder"),
        (["--learner", "magic"], "--learner"),
        (["--split", "magic"], "--split"),
        (["--max-iter", "0"], "--max-iter"),
        (["--tol", "-1"], "tol=-1.0"),
        (["--eval", "AUCEvaluator"], "--evaluate METRIC PREDICATE"),
        (["--groundrules", "x.txt"], "--explain ATOM"),
        (["--satisfaction"], "--estimate"),
        (["--postgres"], "source="),
        (["--int-ids"], "need no option"),
        (["--infer", "ADMMInference"], "names a method of PSL"),
    ],
)
def test_bad_options(run, folder, monkeypatch, options, words):
    monkeypatch.chdir(folder)
    code, _, err = run("model.json", *options)
    assert code == 2
    assert words in err
    assert "energy" not in err  # nothing was inferred first


def test_a_bad_rule_is_shown_with_a_caret(run, folder):
    (folder / "model.psl").write_text("5: !Likes(A, X) ^2\n1: Knows(A -> Likes(A, B)\n")
    code, out, err = run("model.psl")
    assert (code, out) == (2, "")
    lines = err.splitlines()
    assert "model.psl: " in lines[0]
    assert "line 2" in lines[0]
    assert lines[1] == "  1: Knows(A -> Likes(A, B)"
    assert lines[2].strip() == "^"


@pytest.mark.filterwarnings("ignore::structlearn.errors.BrokenRuleWarning")
@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("knows.txt", "ann\tbob\tcyd\tdan\n", "Knows takes 2 arguments"),
        ("likes.txt", "ann\ttea\t1.5\n", "the value '1.5'"),
        ("likes.txt", "ann\ttea\t1\nann\ttea\t0\n", "twice"),
        ("likes.txt", "bob\ttea\t1\n", "as observed and as a target"),
        ("targets.txt", "bob\ttea\n", "Likes('cyd', 'tea'), which is neither observed nor"),
        ("model.data", DATA.replace("knows.txt", "nows.txt"), "nows.txt"),
        ("model.data", "predicates: [", "this is not YAML"),
        ("model.psl", "-1: !Likes(A, X)", "weight -1"),
        ("model.psl", "1: !Lykes(A, X)", "did you mean 'Likes'"),
        ("model.psl", "Likes(A, X) >= 1 .\nLikes(A, X) <= 0 .", "cannot all hold"),
    ],
)
def test_bad_input_leaves_what_was_there(run, folder, name, text, words):
    (folder / "out").mkdir()
    (folder / "out" / "LIKES.txt").write_text("as before")
    (folder / name).write_text(text)
    code, out, err = run("model.psl", "--output", folder / "out")
    assert (code, out) == (2, "")
    assert words in err
    assert (folder / "out" / "LIKES.txt").read_text() == "as before"


@pytest.mark.filterwarnings("always")
def test_warnings_are_one_line_each(run, folder):
    (folder / "targets.txt").write_text("bob\ttea\ncyd\ttea\nzoe\tgin\n")
    (folder / "model.psl").write_text(f"{RULES[0]}\n1: Knows(A, 'nobody') -> Likes(A, 'tea')")
    code, _, err = run("model.psl")
    assert code == 0
    assert "structlearn: warning: rule 2 (line 2), " in err
    assert "structlearn: warning: no rule reaches Likes('zoe', 'gin')" in err
