"""``structlearn evaluate``: what conlleval prints, and bad input."""

from __future__ import annotations

import io
import types

import pytest
from corpus import TEMPLATE, sentences, text_of, write

from structlearn._src.cli.main import main

#: Gold and predicted labels of three sentences, counted by hand: gold chunks NP 0-1, VP 2, NP 4
#: and NP 0, VP 1 and NP 0-1; predicted NP 0-1, VP 2, NP 3-4 and NP 0, NP 1 and NP 0, NP 1.
TAGGED = """\
a x B-NP B-NP
b x I-NP I-NP
c x B-VP B-VP
d x O B-NP
e x B-NP I-NP

f x B-NP B-NP
g x B-VP B-NP

h x I-NP I-NP
i x I-NP B-NP
"""
REPORT = """\
processed 9 tokens with 6 phrases; found: 7 phrases; correct: 3.
accuracy:  55.56%; precision:  42.86%; recall:  50.00%; FB1:  46.15
               NP: precision:  33.33%; recall:  50.00%; FB1:  40.00  6
               VP: precision: 100.00%; recall:  50.00%; FB1:  66.67  1
"""


@pytest.fixture
def evaluate(tmp_path, capsys):
    """Return a function that evaluates a text: exit code, output, errors."""

    def run(text, *options):
        (tmp_path / "input").write_text(text)
        code = main(["evaluate", str(tmp_path / "input"), *map(str, options)])
        return code, *capsys.readouterr()

    return run


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    write(folder / "train", sentences(0))
    (folder / "template").write_text(TEMPLATE)
    argv = [folder / "train", "--model", folder / "model", "--template", folder / "template"]
    assert main(["train", *map(str, argv), "--quiet"]) == 0
    return folder / "model"


def test_the_last_two_columns_are_compared(evaluate):
    assert evaluate(TAGGED) == (0, REPORT, "")


def test_only_two_columns(evaluate):
    text = "\n".join(" ".join(line.split()[2:]) for line in TAGGED.split("\n"))
    assert evaluate(text)[1] == REPORT


def test_labels_that_are_no_chunks(evaluate):
    out = evaluate("a NN NN\nb VB NN\n\nc O O\n")[1]
    assert out == "processed 3 tokens; correct: 2.\naccuracy:  66.67%\n"


def test_a_model_is_judged_as_what_it_writes(evaluate, model, tmp_path, capsys):
    text = text_of(sentences(3, n=30))
    (tmp_path / "gold").write_text(text)
    main(["tag", "--model", str(model), str(tmp_path / "gold"), "--output", str(tmp_path / "out")])
    capsys.readouterr()
    _, out, _ = evaluate(text, "--model", model)
    assert out.startswith("processed ")
    assert "FB1" in out
    assert evaluate((tmp_path / "out").read_text())[1] == out


def test_labels_that_the_model_does_not_know_are_errors_of_the_model(evaluate, model):
    out = evaluate("d0 D B-NEW\nv0 V O\n", "--model", model)[1]
    assert out.startswith("processed 2 tokens with 1 phrases; found: ")
    assert "recall:   0.00%" in out


def test_standard_input(monkeypatch, capsys):
    stdin = types.SimpleNamespace(buffer=io.BytesIO(TAGGED.encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert main(["evaluate"]) == 0
    assert capsys.readouterr().out == REPORT


@pytest.mark.parametrize(
    ("text", "with_model", "words"),
    [
        ("", False, "no token was found"),
        ("a\n", False, "only one column"),
        ("a\n", True, "only one column"),
        ("a N\n", True, "names column 1 in %x[0,1], but the data has 1 columns"),
        ("a N B\nb N\n", True, "line 2: 2 columns were found"),
    ],
)
def test_a_bad_file(text, with_model, words, evaluate, model, tmp_path):
    code, out, err = evaluate(text, *(["--model", model] if with_model else []))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"structlearn: error: {tmp_path}/input")
    assert words in err


def test_threads_without_a_model_are_refused(tmp_path, capsys):
    (tmp_path / "tagged").write_text("a B B\n")
    assert main(["evaluate", str(tmp_path / "tagged"), "--threads", "2"]) == 2
    assert "--threads has no effect without --model" in capsys.readouterr().err
