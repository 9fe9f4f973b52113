"""``structlearn report`` and ``--report``: a page from files, and errors before any work."""

from __future__ import annotations

import json

import pytest
from corpus import TEMPLATE, sentences, write

from structlearn._src.cli.main import main


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    write(folder / "train", sentences(0))
    (folder / "template").write_text(TEMPLATE)
    files = ["train", folder / "train", "--model", folder / "model", "--test", folder / "train"]
    more = ["--template", folder / "template", "--quiet", "--json", folder / "facts.json"]
    argv = [*files, *more, "--report", folder / "train.html"]
    assert main([*map(str, argv)]) == 0
    return folder


def run(*argv):
    return main(["report", *map(str, argv)])


def test_training_writes_a_page(trained):
    text = (trained / "train.html").read_text()
    for heading in ("Learning curve", "Scores", "Confusion", "Errors", "Transitions", "Features"):
        assert f"<h2>{heading}</h2>" in text


def test_a_model_file_has_the_same_page(trained):
    page = trained / "page.html"
    assert run(trained / "model", "--test", trained / "train", "--output", page) == 0
    before = (trained / "train.html").read_text().split("</h1>")[1]
    assert page.read_text().split("</h1>")[1] == before


def test_facts_and_several_files_share_a_page(trained):
    page = trained / "both.html"
    assert run(trained / "model", trained / "facts.json", "--output", page) == 0
    text = page.read_text()
    facts = json.loads((trained / "facts.json").read_text())
    assert facts["status"].split(";")[0] in text
    assert f"{trained / 'facts.json'}: Result" in text


def test_answers_and_rules_write_pages(tmp_path, capsys):
    model = tmp_path / "one.uai"
    model.write_text("MARKOV 1 2 1 1 0 2 0.25 0.75")
    page = tmp_path / "answer.html"
    assert main(["infer", str(model), "--query", "MAR", "--report", str(page)]) == 0
    assert "Marginals" in page.read_text()
    (tmp_path / "p.psl").write_text("1: P(A) -> Q(A) ^2\n0.5: !Q(A) ^2\n")
    (tmp_path / "p.txt").write_text("a\t0.8\n")
    (tmp_path / "q.txt").write_text("a\n")
    data = (
        "predicates:\n  P/1: closed\n  Q/1: open\nobservations:\n  P: p.txt\ntargets:\n  Q: q.txt\n"
    )
    (tmp_path / "p.data").write_text(data)
    page = tmp_path / "rules.html"
    argv = ["psl", str(tmp_path / "p.psl"), "--report", str(page), "--quiet"]
    assert main([*argv, "--output", str(tmp_path)]) == 0
    assert "P(&#x27;a&#x27;) -&gt; Q(&#x27;a&#x27;)" in page.read_text()


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["missing.model", "--output", "x.html"], "missing.model"),
        (["{facts}", "--output", "{facts}"], "overwrite"),
        (["{model}", "--output", "no/such/folder.html"], "--output"),
        (["{bad}", "--output", "{folder}/x.html"], "neither a model file"),
    ],
)
def test_bad_input_is_named(trained, capsys, argv, words):
    (trained / "bad.json").write_text('{"rules": []}')
    known = {"facts": trained / "facts.json", "model": trained / "model"}
    known |= {"bad": trained / "bad.json", "folder": trained}
    assert run(*(each.format(**known) for each in argv)) == 2
    assert words in capsys.readouterr().err


def test_the_file_is_named_unless_quiet(trained, tmp_path, capsys):
    page = tmp_path / "p.html"
    assert run(trained / "model", "--output", page) == 0
    assert capsys.readouterr().err == f"wrote     {page}\n"
    (tmp_path / "one.uai").write_text("MARKOV 1 2 1 1 0 2 0.25 0.75")
    assert main(["infer", str(tmp_path / "one.uai"), "--query", "MAR", "--report", str(page)]) == 0
    assert f"wrote     {page}\n" in capsys.readouterr().err
