"""``structlearn train``: the model against enumeration, interrupts, restarts, bad input."""

from __future__ import annotations

import gzip
import importlib
import itertools
import json
import re
import subprocess
import sys
import types
from functools import partialmethod

import numpy as np
import pytest
from corpus import LABELS, TEMPLATE, Naive, sentences, text_of, write

from structlearn import load
from structlearn._src.cli import train
from structlearn._src.cli.main import main
from structlearn._src.common.history import History


@pytest.fixture
def place(tmp_path):
    write(tmp_path / "train", sentences(0))
    (tmp_path / "template").write_text(TEMPLATE)
    return tmp_path


@pytest.fixture
def learn(place, capsys):
    """Return a function that trains on the file of a folder: exit code, output, errors."""

    def run(*options, file="train", template="template"):
        argv = ["train", place / file, "--model", place / "model", "--template", place / template]
        code = main([*map(str, argv), *map(str, options)])
        return code, *capsys.readouterr()

    return run


# ---- models ------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1.0, 0.3])
def test_the_objective_is_that_of_enumeration_and_least(C, learn, place):
    code, out, err = learn("--C", C, "--tol", 1e-9)
    assert (code, out) == (0, "")
    naive = Naive.of(load(place / "model"))
    corpus = sentences(0)
    value = naive.objective(corpus, C)
    assert float(re.search(r"objective (\S+), \d+ weights", err)[1]) == pytest.approx(
        value, rel=1e-5
    )
    for key in list(naive.features)[::7]:
        kept = naive.features[key]
        for step in (-0.01, 0.01):
            naive.features[key] = kept + step
            assert naive.objective(corpus, C) > value
        naive.features[key] = kept


def test_progress_and_verdict(learn, place, monkeypatch):
    begun = train.ProgressLine.__init__
    monkeypatch.setattr(train.ProgressLine, "__init__", partialmethod(begun, every=0.0))
    _, _, err = learn("--max-iter", 3, "--progress")
    assert "reading" in err
    told = re.findall(r"^\d\d:\d\d:\d\d .*iteration (\d), objective \d+\.\d+", err, re.M)
    assert told == ["1", "2", "3"]
    lines = [line for line in err.splitlines() if not line[0].isdigit()]
    patterns = [
        r"read      \d+ sentences, \d+ tokens, 3 labels, \d+\.\d s",
        r"train     log loss, C = 1, solver auto",
        r"done      stopped at max_iter=3 .*, \d+\.\d s",
        r"result    3 iterations, objective \d+\.\d+, \d+ weights",
        rf"wrote     {place}/model \(0\.\d\d MB\)",
    ]
    assert all(map(re.fullmatch, patterns, lines))
    assert len(lines) == len(patterns)


def test_quiet_says_nothing(learn):
    assert learn("--quiet", "--max-iter", 2) == (0, "", "")
    assert learn("--quiet", "--progress", "--max-iter", 2) == (0, "", "")


def test_without_a_terminal_there_is_the_verdict_alone(learn):
    _, _, err = learn("--max-iter", 2)
    words = [line.split()[0] for line in err.splitlines()]
    assert words == ["read", "train", "done", "result", "wrote"]
    assert "\x1b" not in err


def test_the_verdict_for_programs_and_the_log(learn, place):
    write(place / "test", sentences(1))
    files = ["--json", place / "verdict", "--log", place / "log"]
    code, out, err = learn("--max-iter", 2, "--test", place / "test", *files, "--quiet")
    assert (code, err) == (0, "")
    found = json.loads((place / "verdict").read_text())
    assert (found["ended"], found["converged"], found["n_iter"]) == ("limit", False, 2)
    assert found["value"] == load(place / "model").value_
    assert f"accuracy: {100 * found['test']['accuracy']:6.2f}%" in out
    words = [line.split()[2] for line in (place / "log").read_text().splitlines()]
    assert words == ["read", "train", "done", "result", "wrote", "test"]
    code, _, err = learn("--log", place / "train")
    assert (code, "--log" in err) == (2, True)


def test_the_report_on_test_data_is_that_of_evaluate(learn, place, capsys):
    write(place / "test", sentences(1))
    _, out, err = learn("--test", place / "test")
    assert re.search(r"^test +accuracy \d+\.\d\d %, F1 \d+\.\d\d$", err, re.M)
    main(["evaluate", "--model", str(place / "model"), str(place / "test")])
    assert out == capsys.readouterr().out
    assert out.startswith("processed ")


def test_default_template(tmp_path, capsys):
    path = write(tmp_path / "train", sentences(0))
    assert main(["train", str(path), "--model", str(tmp_path / "model"), "--quiet"]) == 0
    names = load(tmp_path / "model").plan_.reader.names()
    assert {"U02:d0", "U11:_B-1"} <= set(names)


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (["--features", "dense"], {"features": "dense"}),
        (["--loss", "hybrid", "--alpha", "0.9"], {"loss": "hybrid", "alpha": 0.9}),
        (["--loss", "eps", "--eps-y", "0.3"], {"eps_y": 0.3, "eps_h": None}),
        (["--loss", "eps", "--eps-h", "0.4", "--hidden", "2"], {"eps_y": None, "eps_h": 0.4}),
        (["--loss", "hinge", "--cost", "hamming-mean"], {"cost": "hamming-mean"}),
        (["--l1-ratio", "0.5", "--solver", "owlqn"], {"l1_ratio": 0.5, "solver": "owlqn"}),
        (["--hidden-states", "3"], {"hidden": "node", "hidden_states": 3}),
        (["--hidden", "2", "--hidden-kind", "layer"], {"hidden": "layer", "hidden_states": 2}),
        (["--min-count", "3", "--forbid", "BIO"], {"min_count": 3, "forbidden": "BIO"}),
        (["--driver", "cccp", "--hidden", "2", "--seed", "5"], {"driver": "cccp"}),
    ],
)
def test_options_reach_the_model(options, parameters, learn, place):
    corpus = [[("n0", "N", "B"), ("n1", "N", "I")], [("v0", "V", "O"), ("d2", "D", "B")]] * 4
    write(place / "train", corpus)
    code, _, err = learn("--max-iter", 3, *options)
    assert code == 0, err
    found = load(place / "model").get_params()
    assert {name: found[name] for name in parameters} == parameters


def test_min_count_leaves_out_rare_attributes(learn, place):
    learn("--quiet")
    every = load(place / "model").plan_.reader.names()
    learn("--quiet", "--min-count", 3)
    some = load(place / "model").plan_.reader.names()
    assert set(some) < set(every)


def test_forbidden_transitions_are_never_predicted(learn, place, capsys):
    good = [[("n", "N", "B"), ("n", "N", "I")], [("v", "V", "O")] * 3]
    write(place / "train", good * 3)
    learn("--forbid", "BIO", "--quiet")
    write(place / "odd", [[("v", "V", "O"), ("n", "N", "I"), ("n", "N", "I")]])
    main(["tag", "--model", str(place / "model"), str(place / "odd")])
    labels = [line.split()[-1] for line in capsys.readouterr().out.splitlines() if line]
    assert labels[0] != "I"
    assert ("O", "I") not in {*itertools.pairwise(labels)}


def test_gzipped_input(learn, place):
    learn("--quiet")
    plain = (place / "model").read_bytes()
    (place / "train.gz").write_bytes(gzip.compress((place / "train").read_bytes()))
    learn("--quiet", file="train.gz")
    assert (place / "model").read_bytes() == plain


def test_threads_do_not_change_the_model(learn, place):
    learn("--quiet", "--threads", 1)
    one = (place / "model").read_bytes()
    learn("--quiet", "--threads", 3)
    assert (place / "model").read_bytes() == one


# ---- ends that come early ----------------------------------------------------------------


def _interrupt_at(monkeypatch, iteration):
    def call(self, share, words):
        if words.startswith(f"iteration {iteration}"):
            raise KeyboardInterrupt

    monkeypatch.setattr(train.ProgressLine, "__call__", call)


def test_an_interrupt_keeps_the_best_model(learn, place, monkeypatch):
    learn("--max-iter", 4, "--quiet")
    four = load(place / "model")
    _interrupt_at(monkeypatch, 4)
    code, _, err = learn("--progress")
    assert code == 130
    assert re.search(r"done +interrupted after 4 iterations.*\nresult +4 iterations, obj", err)
    np.testing.assert_array_equal(load(place / "model").weights_, four.weights_)


@pytest.mark.parametrize(
    ("value", "told"),
    [(4.0, "objective 4.00000, 2"), (np.nan, "objective 5.00000 at iteration 2, ")],
)
def test_the_verdict_tells_the_value_of_the_weights_or_the_last_known(value, told):
    """A value in the history may be lower and that of other weights."""
    rows = enumerate((9.0, 3.0, 5.0, np.nan))
    history = History(np.array([[i, 0.0, x, np.nan, np.nan] for i, x in rows]))
    labeler = types.SimpleNamespace(
        history_=history, value_=value, n_iter_=3, weights_=np.zeros(2), status_="stopped"
    )
    assert history.best() == 3.0
    assert told in train.verdict(labeler)


def test_an_interrupt_before_there_is_a_model(learn, place, monkeypatch):
    (place / "model").write_bytes(b"old")
    loop = importlib.import_module("structlearn._src.solve.loop")

    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(loop._Loop, "begin", interrupt)
    code, _, err = learn("--quiet")
    assert (code, err) == (130, "structlearn: interrupted before there was an answer\n")
    assert (place / "model").read_bytes() == b"old"


_KILLED = """
import os, signal, sys
from structlearn._src.solve import loop
save, saves = loop.save, []
def counted(*given):
    save(*given)
    saves.append(1)
    if len(saves) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
loop.save = counted
from structlearn._src.cli.main import main
raise SystemExit(main(sys.argv[1:]))
"""


def test_a_killed_run_goes_on_to_the_same_model(learn, place, monkeypatch):
    options = "--checkpoint", place / "run", "--checkpoint-seconds", 0, "--max-iter", 40
    assert learn("--max-iter", 40, "--quiet")[0] == 0
    whole = (place / "model").read_bytes()
    (place / "model").unlink()
    argv = ["train", place / "train", "--model", place / "model", "--template"]
    argv = [*argv, place / "template", *options]
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, *map(str, argv)], capture_output=True, check=False
    )
    assert done.returncode == -9
    assert not (place / "model").exists()
    begun = train.ProgressLine.__init__
    monkeypatch.setattr(train.ProgressLine, "__init__", partialmethod(begun, every=0.0))
    code, _, err = learn(*options, "--progress")
    assert code == 0
    assert "iteration 3," not in err
    assert "iteration 4," in err
    assert (place / "model").read_bytes() == whole


def test_a_checkpoint_of_another_run_is_refused(learn, place):
    options = "--checkpoint", place / "run", "--max-iter", 2, "--quiet"
    assert learn(*options)[0] == 0
    (place / "model").write_bytes(b"old")
    for more in (["--C", "2"], ["--loss", "hinge"], ["--min-count", "2"], ["--seed", "3"]):
        code, _, err = learn(*options, *more)
        assert (code, err.count("\n")) == (2, 1)
        assert "the checkpoint was saved with" in err
    write(place / "train", sentences(0)[::-1])
    code, _, err = learn(*options)
    assert code == 2
    assert "data=" in err
    assert (place / "model").read_bytes() == b"old"


def test_a_checkpoint_of_another_template_is_refused(learn, place):
    options = "--checkpoint", place / "run", "--max-iter", 2, "--quiet"
    assert learn(*options)[0] == 0
    (place / "odd").write_text(TEMPLATE.replace("U02", "U03"))
    code, _, err = learn(*options, template="odd")
    assert code == 2
    assert "the checkpoint was saved with template=" in err


# ---- bad input ---------------------------------------------------------------------------

GOOD = text_of(sentences(0))

BAD_FILES = {
    "empty": ("", "no token was found"),
    "blank": ("\n\n \n", "no token was found"),
    "narrow": (text_of(sentences(0), width=1), "only one column"),
    "no labels": (
        text_of(sentences(0), width=2),
        "the template's row U01:%x[-1,0]/%x[0,1] names column 1",
    ),
    "width changes": ("a N B\nb N\n", "line 2: 2 columns were found"),
    "wider later": ("a N B\n\nb N B B\n", "line 3: 4 columns were found"),
    "not text": (b"a N B\n\xff N B\n", "line 2: byte 0xff is not UTF-8"),
    "gzip cut short": (gzip.compress(GOOD.encode())[:-9], "the gzip file is damaged"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
@pytest.mark.parametrize("which", ["train", "test"])
def test_a_bad_file_is_named_and_nothing_is_overwritten(kind, which, learn, place):
    text, words = BAD_FILES[kind]
    (place / "bad").write_bytes(text if isinstance(text, bytes) else text.encode())
    (place / "model").write_bytes(b"old")
    code, out, err = learn(file="bad") if which == "train" else learn("--test", place / "bad")
    error = err.splitlines()[-1]
    assert (code, out) == (2, "")
    assert error.startswith(f"structlearn: error: {place}/bad")
    assert words in error
    assert "iteration" not in err
    assert (place / "model").read_bytes() == b"old"
    assert {path.name for path in place.iterdir()} == {"train", "template", "bad", "model"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("U1:%x[0,2]\n", "names column 2 in %x[0,2], but the data has 2 columns"),
        ("U1:%x[0]\n", "line 1: '%x[0]' is not a macro"),
        ("# nothing\n", "there is no line that begins with U or B"),
        ("W1:%x[0,0]\n", "line 1: 'W1:%x[0,0]' must begin with U, B or #"),
    ],
)
def test_a_bad_template(text, words, learn, place):
    (place / "odd").write_text(text)
    (place / "model").write_bytes(b"old")
    code, _, err = learn(template="odd")
    assert code == 2
    assert words in err.splitlines()[-1]
    assert (place / "model").read_bytes() == b"old"


def test_forbidden_transitions_that_rule_out_a_sentence(learn, place):
    write(place / "train", [[("v", "V", "O"), ("n", "N", "I")], [("n", "N", "B")]])
    (place / "model").write_bytes(b"old")
    code, _, err = learn("--forbid", "BIO")
    assert code == 2
    assert "error: sequence 0 has 'I' after 'O' at position 1" in err
    assert (place / "model").read_bytes() == b"old"


def test_labels_that_do_not_fit_the_scheme(learn, place):
    write(place / "train", [[("v", "V", "X"), ("n", "N", "Y")]])
    code, _, err = learn("--forbid", "BIO")
    assert code == 2
    assert "label 'X' does not fit the scheme BIO" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--C", "0"], "'0' is not a number above 0"),
        (["--C", "x"], "'x' is not a number"),
        (["--alpha", "2", "--loss", "hybrid"], "alpha=2.0 must lie in [0, 1]"),
        (["--tol", "-1"], "tol=-1.0"),
        (["--l1-ratio", "1.5"], "l1_ratio=1.5"),
        (["--eps-y", "-1"], "eps_y=-1.0"),
        (["--loss", "cross"], "invalid choice: 'cross'"),
        (["--solver", "newton"], "invalid choice: 'newton'"),
        (["--max-iter", "0"], "'0' is not a whole number of at least 1"),
        (["--threads", "0"], "'0' is not a whole number of at least 1"),
        (["--checkpoint-seconds", "-1", "--checkpoint", "run"], "seconds=-1.0"),
    ],
)
def test_bad_options(options, words, learn, place, monkeypatch):
    monkeypatch.chdir(place)
    (place / "model").write_bytes(b"old")
    code, _, err = learn(*options)
    assert code == 2
    assert words in err.splitlines()[-1]
    assert (place / "model").read_bytes() == b"old"


def test_a_model_that_cannot_be_written_is_found_out_before_training(place, capsys):
    for option, target, words in (
        ("--model", place, "is a folder"),
        ("--model", place / "none" / "m", "there is no folder"),
        ("--checkpoint", place / "none" / "c", "there is no folder"),
    ):
        argv = ["train", place / "train", "--model", place / "model", option, target]
        assert main([*map(str, argv)]) == 2
        err = capsys.readouterr().err
        assert err.startswith(f"structlearn: error: {option} ")
        assert words in err
        assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("--model", "TRAIN"),
        ("--model", "--test"),
        ("--model", "--template"),
        ("--checkpoint", "TRAIN"),
        ("--checkpoint", "--test"),
        ("--checkpoint", "--template"),
        ("--checkpoint", "--model"),
    ],
)
@pytest.mark.parametrize("way", ["plain", "roundabout", "link"])
def test_no_file_is_both_written_and_put_to_another_use(written, read, way, place, capsys):
    write(place / "test", sentences(1))
    files = {"TRAIN": "train", "--model": "model", "--test": "test", "--template": "template"}
    target = place / files[read]
    if way == "link":
        target = place / "link"
        target.symlink_to(place / files[read])
    if way == "roundabout":
        target = place / ".." / place.name / files[read]
    chosen = {name: place / file for name, file in files.items()} | {written: target}
    before = {path.name: path.read_bytes() for path in place.iterdir() if path.exists()}
    argv = [chosen.pop("TRAIN"), *(word for pair in chosen.items() for word in pair)]
    assert main(["train", *map(str, argv)]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"structlearn: error: {written} {target} is also {read}, ")
    assert err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in place.iterdir() if path.exists()} == before


def test_a_test_on_the_training_file_is_no_harm(learn, place):
    assert learn("--quiet", "--test", place / "train")[0] == 0


def test_a_missing_column_is_told_from_that_of_the_labels(learn, place):
    write(place / "narrow", sentences(0), width=2)
    _, _, err = learn(file="narrow")
    assert "counted from 0; give data with that column, or a template that does without it; " in err
    assert err.endswith("; the last column, which holds the labels, does not count\n")


def test_a_missing_file(place, capsys):
    assert main(["train", str(place / "none"), "--model", str(place / "model")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert not (place / "model").exists()


# ---- real data ---------------------------------------------------------------------------


@pytest.mark.data
def test_base_noun_phrases(data_folder, tmp_path, capsys):
    """The optimum that CRFsuite finds for the 77 sentences as shipped, and its F1."""
    folder = data_folder / "basenp"
    argv = [folder / "train.data", "--model", tmp_path / "model", "--features", "dense"]
    argv += ["--tol", "1e-6", "--test", folder / "test.data"]
    assert main(["train", *map(str, argv)]) == 0
    out, err = capsys.readouterr()
    value = float(re.search(r"objective (\S+), 32,856 weights", err)[1])
    assert value == pytest.approx(108.729, rel=1e-4)
    assert "accuracy:  93.65%" in out
    assert "FB1:  85.33" in out


def test_labels_of_the_corpus():
    assert {token[2] for s in sentences(0) for token in s} == set(LABELS)


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        (["--alpha", "0.3"], "--loss hybrid"),
        (["--hidden-kind", "layer"], "--hidden-states"),
        (["--hidden-kind", "layer", "--hidden-states", "0"], "--hidden-states"),
        (["--eps-h", "0.5"], "--hidden-states"),
        (["--cost", "hamming-mean"], "a --loss with a margin"),
        (["--cost", "hamming-mean", "--loss", "perceptron"], "a --loss with a margin"),
        (["--checkpoint-seconds", "3"], "--checkpoint"),
    ],
)
def test_options_without_effect_are_refused(learn, place, options, needed):
    code, out, err = learn(*options)
    assert (code, out) == (2, "")
    assert f"{options[0]} has no effect without {needed};" in err
    assert not (place / "model").exists()


def test_a_held_out_score_is_told_while_training(tmp_path, capsys):
    write(tmp_path / "train", sentences(0))
    write(tmp_path / "valid", sentences(1))
    (tmp_path / "template").write_text(TEMPLATE)
    argv = ["train", tmp_path / "train", "--model", tmp_path / "model"]
    argv += ["--template", tmp_path / "template", "--valid", tmp_path / "valid"]
    assert main([*map(str, argv)]) == 0
    (line, *_) = [each for each in capsys.readouterr().err.splitlines() if "valid" in each]
    assert re.match(r"valid +iteration 1: accuracy [0-9.]+ %", line)


def test_a_held_out_file_must_be_readable_before_training(tmp_path, capsys):
    write(tmp_path / "train", sentences(0))
    argv = ["train", tmp_path / "train", "--model", tmp_path / "model"]
    assert main([*map(str, argv), "--valid", str(tmp_path / "none")]) == 2
    assert "none" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_a_memory_limit_streams_the_file(tmp_path, capsys):
    path, model = tmp_path / "train.txt", tmp_path / "model"
    path.write_text("a x L1\nb y L2\n\nb y L2\na x L1\n\n" * 20)
    template = tmp_path / "template"
    template.write_text("U0:%x[0,0]\nB\n")
    given = ["train", str(path), "--model", str(model), "--template", str(template)]
    assert main([*given, "--memory-limit", "1GB", "--test", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "memory limit 1GB" in err
    assert "100.00" in out
    assert main([*given, "--memory-limit", "1MB"]) == 2
    assert "at least '512MB'" in capsys.readouterr().err
