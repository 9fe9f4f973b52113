"""``structlearn inspect``: the weights it shows are those of the model."""

from __future__ import annotations

import re

import numpy as np
import pytest
from corpus import LABELS, TEMPLATE, Naive, sentences, write

from papers.comparators import SwitchingSVM
from structlearn import load, save
from structlearn._src.cli import model_report
from structlearn._src.cli.main import main
from structlearn._src.estimators.bayesian.infinite_hmm import InfiniteHMM
from structlearn._src.estimators.bayesian.infinite_svm import InfiniteSVM
from structlearn._src.estimators.bayesian.max_margin_hmm import MaxMarginHMM
from structlearn._src.estimators.structured.sequence import SequenceLabeler


@pytest.fixture
def show(tmp_path, capsys):
    """Return a function that trains with options, inspects, and returns the parts it prints."""

    def run(*options, train=(), template=TEMPLATE):
        if not (tmp_path / "model").exists():
            write(tmp_path / "train", sentences(0))
            (tmp_path / "template").write_text(template)
            argv = ["train", tmp_path / "train", "--model", tmp_path / "model", "--template"]
            argv = [*argv, tmp_path / "template", "--quiet", *train]
            assert main([*map(str, argv)]) == 0
        code = main(["inspect", "--model", str(tmp_path / "model"), *map(str, options)])
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        first, *parts = out.rstrip("\n").split("\n\n")
        return first, {part.split(":\n")[0]: part.split("\n")[1:] for part in parts}

    run.model = lambda: load(tmp_path / "model")
    return run


def test_summary(show):
    first, parts = show("--all")
    labeler = show.model()
    lines = dict(line.split(": ", 1) for line in first.splitlines())
    assert lines["model"].startswith("SequenceLabeler(C=1.0, alpha=0.5, ")
    assert lines["labels"] == "3: B I O"
    assert lines["features"] == str(len(labeler.plan_.reader.names()))
    assert lines["weights"].startswith(f"{len(labeler.weights_)}, of which ")
    naive = Naive.of(labeler)
    value = float(re.search(r"objective (\S+);", lines["training"])[1])
    assert value == pytest.approx(naive.objective(sentences(0)), rel=1e-5)
    assert list(parts) == ["features", "transitions"]


def test_parameters_that_differ_from_their_defaults(show):
    first, _ = show(train=["--C", "2", "--loss", "hinge", "--features", "dense"])
    told = first.splitlines()[0]
    assert "C=2.0" in told
    assert "loss='hinge'" in told
    assert "alpha" not in told
    assert "alpha=0.5" in show("--all")[0].splitlines()[0]


@pytest.mark.parametrize("label", [None, "I"])
def test_strongest_features(label, show):
    _, parts = show("--top", 4, *(["--label", label] if label else []))
    naive = Naive.of(show.model())
    kept = {k: w for k, w in naive.features.items() if label is None or k[1] == label}
    ranked = sorted(kept.items(), key=lambda item: -item[1])
    rows = [line.split() for line in parts["features"]]
    for row in rows:
        assert float(row[0]) == pytest.approx(kept[row[2], row[1]], abs=6e-5)
    found = [float(row[0]) for row in rows]
    most = [w for _, w in ranked[:4]] + [w for _, w in ranked[:-5:-1] if w < 0]
    np.testing.assert_allclose(found, most, atol=6e-5)


@pytest.mark.parametrize("features", ["sparse", "dense"])
def test_table_of_transitions(features, show):
    _, parts = show(train=["--features", features])
    head, *rows = parts["transitions"]
    assert head.split() == LABELS
    labeler = show.model()
    term, block = labeler.plan_.model.groups[1][0], labeler.plan_.model.blocks[1][0]
    matrix = term.push(labeler.weights_[block], None).reshape(3, 3)
    for row, name, expected in zip(rows, LABELS, matrix, strict=True):
        cells = row.split()
        assert cells[0] == name
        np.testing.assert_allclose([float(x) for x in cells[1:]], expected, atol=6e-5)


def test_many_labels_are_listed(show, monkeypatch):
    monkeypatch.setattr(model_report, "WIDEST", 2)
    _, parts = show("--top", 2)
    naive = Naive.of(show.model())
    ranked = sorted(naive.transitions.values())
    expected = [*ranked[:-3:-1], *(w for w in ranked[:2] if w < 0)]
    found = {tuple(line.split()[1::2]): float(line.split()[0]) for line in parts["transitions"]}
    np.testing.assert_allclose(list(found.values()), expected, atol=6e-5)
    assert all(naive.transitions[pair] == pytest.approx(w, abs=6e-5) for pair, w in found.items())


def test_features_of_transitions(show):
    template = "U1:%x[0,0]\nB1:%x[0,1]\nB\n"
    _, parts = show("--top", 3, template=template)
    assert list(parts) == ["features", "transitions", "features of transitions"]
    row = parts["features of transitions"][0].split()
    assert (row[2], row[4][:3]) == ("->", "B1:")


@pytest.mark.parametrize("kind", ["node", "layer"])
def test_hidden_states(kind, show):
    train = ["--hidden", 2, "--hidden-kind", kind, "--max-iter", 2]
    _, parts = show("--top", 2, train=train)
    assert list(parts) == [
        "features", "transitions", "features of hidden states", "labels and hidden states",
    ]  # fmt: skip
    linked = LABELS if kind == "node" else ["hidden", "0", "hidden", "1"]
    assert parts["transitions"][0].split() == linked
    assert [row.split()[0] for row in parts["labels and hidden states"][1:]] == LABELS


def test_models_made_in_python(tmp_path, capsys):
    X, Y = [np.eye(3), np.eye(3)[::-1]], [[0, 1, 2], [2, 1, 0]]
    for tied in (True, False):
        labeler = SequenceLabeler(C=10.0, tied=tied, fit_intercept=True, random_state=0).fit(X, Y)
        save(labeler, tmp_path / "model")
        # All of them: by symmetry many weights are equal, and rounding decides which come first.
        assert main(["inspect", "--model", str(tmp_path / "model"), "--top", "100"]) == 0
        out = capsys.readouterr().out
        assert "features: " in out
        assert ("  x0 at 0" in out) == (not tied)


def test_unknown_label(show, tmp_path, capsys):
    show()
    assert main(["inspect", "--model", str(tmp_path / "model"), "--label", "X"]) == 2
    assert capsys.readouterr().err == (
        "structlearn: error: --label X is not a label; they are B, I, O\n"
    )


INFINITE = {
    "InfiniteHMM": ["features: 1", "states: ", "sampling: 2 draws of 1 chains; done"],
    "symbols": ["symbols: 2: a b", "states: ", "sampling: 2 draws of 1 chains; done"],
    "MaxMarginHMM": ["labels: 2: n y", "features: 1", "states: ", "sampling: 2 draws"],
    "InfiniteSVM": ["labels: 2: n y", "features: 1", "components: ", "sampling: 2 draws"],
    "SwitchingSVM": ["labels: 2: n y", "features: 1", "components: ", "iterations: 2"],
}


@pytest.mark.parametrize("name", INFINITE)
def test_models_with_any_number_of_states(name, tmp_path, capsys):
    X, y = np.arange(12.0)[:, None], np.repeat(["n", "y"], 6)
    few = {"n_chains": 1, "burn_in": 1, "n_draws": 2, "n_start": 2, "random_state": 0}
    model = {
        "InfiniteHMM": InfiniteHMM(**few),
        "symbols": InfiniteHMM(emission="categorical", **few),
        "MaxMarginHMM": MaxMarginHMM(**few),
        "InfiniteSVM": InfiniteSVM(**few),
        "SwitchingSVM": SwitchingSVM(n_components=2, max_iter=2, tol=0.0, random_state=0),
    }[name]
    save(model.fit([list("abab")] if name == "symbols" else X, y), tmp_path / "model")
    assert main(["inspect", "--model", str(tmp_path / "model")]) == 0
    first, *rows = capsys.readouterr().out.splitlines()
    assert first.startswith(f"model: {type(model).__name__}(")
    for row, start in zip(rows, INFINITE[name], strict=True):
        assert row.startswith(start)
    assert main(["inspect", "--model", str(tmp_path / "model"), "--label", "y"]) == 2
    assert "--label y chooses among the weights" in capsys.readouterr().err
