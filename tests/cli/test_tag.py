"""``structlearn tag``: labels, probabilities and k best against enumeration; bad input."""

from __future__ import annotations

import gzip
import io
import re
import types

import numpy as np
import pytest
from corpus import TEMPLATE, Naive, sentences, text_of, write

from structlearn import load, save
from structlearn._src.cli import taggers
from structlearn._src.cli.main import main
from structlearn._src.estimators.structured.sequence import SequenceLabeler
from structlearn._src.text.columns import parse_columns

NEW = sentences(7, n=9)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    write(folder / "train", sentences(0))
    (folder / "template").write_text(TEMPLATE)
    argv = [folder / "train", "--model", folder / "model", "--template", folder / "template"]
    assert main(["train", *map(str, argv), "--quiet"]) == 0
    return folder / "model"


@pytest.fixture(scope="module")
def naive(model):
    return Naive.of(load(model))


@pytest.fixture
def tag(model, tmp_path, capsys):
    """Return a function that tags a text: exit code, output, errors."""

    def run(text, *options, model=model):
        path = tmp_path / "input"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        code = main(["tag", "--model", str(model), str(path), *map(str, options)])
        return code, *capsys.readouterr()

    return run


def blocks(out):
    """Sentences of a column file, each a list of lines."""
    return [block.split("\n") for block in out.strip("\n").split("\n\n")]


# ---- labels ------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [2, 3])
@pytest.mark.parametrize("separator", [" ", "\t"])
def test_best_labels_are_one_more_column(width, separator, tag, naive):
    text = text_of(NEW, width=width, separator=separator)
    code, out, err = tag(text)
    assert code == 0
    expected = [
        (*token[:width], label)
        for sentence in NEW
        for token, label in zip(sentence, naive.ranked(sentence)[0][1], strict=True)
    ]
    lines = [tuple(line.split(separator)) for line in out.splitlines() if line]
    assert lines == expected
    assert [i for i, line in enumerate(out.splitlines()) if not line] == [
        i for i, line in enumerate(text.splitlines()) if not line
    ]
    assert re.match(
        rf"done +{len(NEW)} sentences, {len(expected)} tokens, "
        r"\d+\.\d{3} s, [\d,]+ tokens per second\n$",
        err,
    )


def test_marginals(tag, naive):
    _, out, _ = tag(text_of(NEW), "--marginals")
    for sentence, lines in zip(NEW, blocks(out), strict=True):
        for t, line in enumerate(lines):
            *_, label, probability = line.split(" ")
            assert float(probability) == pytest.approx(naive.marginal(sentence, t, label), abs=1e-6)


@pytest.mark.parametrize("k", [1, 4])
def test_k_best(k, tag, naive):
    code, out, _ = tag(text_of(NEW), "--k", k)
    assert code == 0
    found = iter(blocks(out))
    for sentence in NEW:
        ranked = naive.ranked(sentence)
        for rank in range(min(k, len(ranked))):
            head, *lines = next(found)
            mark, number, score = head.split(" ")
            assert (mark, int(number)) == ("#", rank)
            assert float(score) == pytest.approx(ranked[rank][0], abs=1e-5)
            labels = [line.split(" ")[-1] for line in lines]
            assert naive.score(sentence, labels) == pytest.approx(ranked[rank][0], abs=1e-8)
            assert [line.split(" ")[:3] for line in lines] == [list(token) for token in sentence]
    assert next(found, None) is None


def test_k_best_with_marginals(tag):
    _, one, _ = tag(text_of(NEW), "--marginals")
    _, out, _ = tag(text_of(NEW), "--marginals", "--k", 3)
    best = [lines[1:] for lines in blocks(out) if lines[0].startswith("# 0 ")]
    assert best == blocks(one)


def test_standard_input_and_output_file(model, tag, tmp_path, monkeypatch, capsys):
    text = text_of(NEW)
    _, expected, _ = tag(text)
    for extra in ([], ["-"]):
        stdin = types.SimpleNamespace(buffer=io.BytesIO(text.encode()))
        monkeypatch.setattr("sys.stdin", stdin)
        argv = ["tag", "--model", str(model), *extra, "--output", str(tmp_path / "out")]
        assert main(argv) == 0
        assert capsys.readouterr().out == ""
        assert (tmp_path / "out").read_text() == expected


def test_gzipped_input_and_output(tag, tmp_path):
    _, expected, _ = tag(text_of(NEW))
    _, out, _ = tag(gzip.compress(text_of(NEW).encode()), "--output", tmp_path / "out.gz")
    assert out == ""
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()).decode() == expected


def test_everything_else_in_the_file_stays(tag):
    text = "\ufeff-DOCSTART- X\r\n\r\nd0 D\r\n\r\n\r\nn1 \t N\r\nzebra V"
    _, out, _ = tag(text)
    lines = out.split("\r\n")
    assert [lines[i] for i in (0, 1, 3, 4)] == ["\ufeff-DOCSTART- X", "", "", ""]
    assert all(
        line.startswith(start) and line[len(start) :].strip() in {"B", "I", "O"}
        for line, start in zip(lines[2::3] + lines[6:], ["d0 D", "n1 \t N", "zebra V"], strict=True)
    )


def test_blocks_of_a_long_file(tag, monkeypatch):
    text = text_of(NEW)
    whole = tag(text, "--marginals")[1], tag(text, "--k", 2)[1]
    monkeypatch.setattr(taggers, "_BLOCK", 5)
    assert len(list(taggers.blocks(parse_columns(text.encode())))) > 3
    assert (tag(text, "--marginals")[1], tag(text, "--k", 2)[1]) == whole


# ---- bad input ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no token was found"),
        ("\n\n", "no token was found"),
        ("d0\nn0\n", "names column 1 in %x[0,1], but the data has 1 columns"),
        ("d0 D\nn0\n", "line 2: 1 columns were found, but the lines before have 2"),
        (b"d0 D\n\xff D\n", "line 2: byte 0xff is not UTF-8"),
    ],
)
def test_a_bad_file(text, words, tag, tmp_path):
    (tmp_path / "out").write_bytes(b"old")
    code, out, err = tag(text, "--output", tmp_path / "out")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"structlearn: error: {tmp_path}/input")
    assert words in err
    assert (tmp_path / "out").read_bytes() == b"old"


@pytest.mark.parametrize("command", ["tag", "evaluate", "inspect"])
@pytest.mark.parametrize("kind", ["cut", "foreign", "newer", "checkpoint", "empty", "missing"])
def test_a_bad_model(command, kind, model, tmp_path, capsys):
    bad, data = tmp_path / "bad", model.read_bytes()
    made = {
        "cut": data[: len(data) // 2],
        "foreign": b"this is no model at all, but some text of a user",
        "newer": data.replace(b"structlearn.model/1", b"structlearn.model/9"),
        "checkpoint": data.replace(b"structlearn.model/1", b"structlearn.modul/1"),
        "empty": b"",
    }
    if kind != "missing":
        bad.write_bytes(made[kind])
    write(tmp_path / "input", NEW)
    file = [] if command == "inspect" else [str(tmp_path / "input")]
    assert main([command, "--model", str(bad), *file]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"structlearn: error: {bad}: ")
    expected = {"newer": "upgrade structlearn", "missing": "no such file"}
    assert expected.get(kind, "structlearn") in err


def test_a_model_of_something_else(tag, tmp_path):
    labeler = SequenceLabeler(max_iter=2, tol=1.0).fit([np.eye(2)], [[0, 1]])
    save(labeler, tmp_path / "arrays")
    code, _, err = tag(text_of(NEW), model=tmp_path / "arrays")
    assert code == 2
    assert "was not trained on columns" in err


def test_hidden_states_have_no_k_best(tmp_path, capsys):
    path = write(tmp_path / "train", sentences(0))
    argv = [path, "--model", tmp_path / "model", "--hidden", 2, "--quiet", "--max-iter", 2]
    main(["train", *map(str, argv)])
    capsys.readouterr()
    assert main(["tag", "--model", str(tmp_path / "model"), str(path), "--marginals"]) == 0
    assert len(blocks(capsys.readouterr().out)) == len(sentences(0))
    assert main(["tag", "--model", str(tmp_path / "model"), str(path), "--k", "2"]) == 2
    assert "k best labellings" in capsys.readouterr().err


def test_output_that_cannot_be_written(tag, tmp_path):
    assert "is a folder" in tag(text_of(NEW), "--output", tmp_path)[2]
    assert "no folder" in tag(text_of(NEW), "--output", tmp_path / "none" / "out")[2]


# ---- files -------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["input", "model"])
def test_neither_input_nor_model_is_overwritten(target, tag, model, tmp_path):
    path = tmp_path / "input" if target == "input" else model
    kept, text = model.read_bytes(), text_of(NEW)
    code, out, err = tag(text, "--output", path)
    name = "FILE" if target == "input" else "--model"
    assert (code, out) == (2, "")
    assert err.startswith(f"structlearn: error: --output {path} is also {name}, ")
    assert (tmp_path / "input").read_text() == text
    assert model.read_bytes() == kept
