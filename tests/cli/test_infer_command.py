"""``structlearn infer`` against enumeration, and every way to misuse it."""

from __future__ import annotations

import gzip
import json
import math
import re
import resource
import subprocess
import sys
from functools import partialmethod
from pathlib import Path

import numpy as np
import pytest

import naive
from structlearn import FactorGraph, grid, infer, write_uai
from structlearn._src.cli.main import main
from structlearn._src.cli.progress import ProgressLine
from structlearn._src.files.uai import read_uai
from structlearn._src.files.uai_answer import read_answer
from structlearn._src.files.uai_evidence import write_evidence


@pytest.fixture
def ask(tmp_path, capsys):
    """Return a function that runs the command on a graph: exit code, answer, standard error."""

    def run(graph, query, *options, evidence=None, chosen=None):
        argv = [model(tmp_path, graph), "--query", query, *options]
        if evidence is not None:
            write_evidence(evidence, tmp_path / "observed")
            argv += ["--evidence", tmp_path / "observed"]
        if chosen is not None:
            (tmp_path / "chosen").write_text(f"{len(chosen)} {' '.join(map(str, chosen))}\n")
            argv += ["--map-variables", tmp_path / "chosen"]
        capsys.readouterr()
        code = main(["infer", *map(str, argv)])
        out, err = capsys.readouterr()
        (tmp_path / "answer").write_text(out)
        return code, read_answer(tmp_path / "answer") if out else None, err

    return run


def model(folder, graph):
    path = folder / "model.uai"
    write_uai(graph, path)
    return path


def random_case(seed):
    """A graph, evidence, and the joint table that agrees with it."""
    rng = np.random.default_rng(seed)
    graph = naive.tied_down(rng, naive.random_graph(rng, kind="loopy", zeros=0.1 * (seed % 2)))
    table = naive.joint(graph)
    best = np.unravel_index(table.argmax(), table.shape)
    evidence = {v: int(best[v]) for v in range(graph.n_variables) if rng.random() < 0.25}
    return rng, graph, evidence, naive.observed(table, evidence)


def wide_graph(seed=0, size=4):
    rng = np.random.default_rng(seed)
    return grid(rng.normal(0, 1, (size, size, 2)), rng.normal(0, 1, (2, 2)))


# ---- answers -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_partition_and_marginals(seed, ask):
    _, graph, evidence, table = random_case(seed)
    log_z = naive.soft_max(table, 1.0)
    code, answer, err = ask(graph, "PR", evidence=evidence)
    assert code == 0
    assert answer.log_z == pytest.approx(log_z, abs=1e-8)
    assert re.search(r"^done +PR exact: ", err, re.M)
    assert float(re.search(r"log10 Z (\S+)\n", err)[1]) == pytest.approx(
        log_z / math.log(10), rel=1e-6, abs=1e-6
    )
    code, answer, _ = ask(graph, "MAR", evidence=evidence)
    assert code == 0
    joint = np.exp(table - log_z)
    for v, found in enumerate(answer.marginals):
        np.testing.assert_allclose(found, naive.marginal(joint, [v]), atol=1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_map_and_marginal_map(seed, ask):
    rng, graph, evidence, table = random_case(seed)
    code, answer, _ = ask(graph, "MAP", evidence=evidence)
    assert code == 0
    assert table[tuple(answer.assignment[v] for v in range(graph.n_variables))] == pytest.approx(
        table.max()
    )
    chosen = rng.permutation(graph.n_variables)[:3].tolist()
    code, answer, err = ask(graph, "MMAP", evidence=evidence, chosen=chosen)
    assert code == 0
    assert list(answer.assignment) == chosen
    roles = {v: "output" if v in chosen else "hidden" for v in range(graph.n_variables)}
    values = naive.marginal_map_values(graph.set_roles(roles), table=table)
    found = values[tuple(answer.assignment[v] for v in sorted(chosen))]
    assert found == pytest.approx(values.max())
    assert float(re.search(r"log10 value (\S+)\n", err)[1]) == pytest.approx(
        values.max() / math.log(10), rel=1e-6, abs=1e-6
    )


def test_lower_case_query(ask):
    assert ask(wide_graph(), "pr")[1].task == "PR"


@pytest.mark.parametrize("query", ["PR", "MAR"])
def test_refused_exact_inference_is_told(query, ask):
    graph = wide_graph()
    code, answer, err = ask(graph, query, "--max-table", "2")
    assert code == 0
    assert re.fullmatch(
        r"read +16 variables, \d+ factors, 0 observed\n"
        rf"done +{query} approximate: bp; messages converged in \d+ sweeps, \d+\.\d s\n"
        r"result +log10 Z about \S+\n",
        err,
    )
    same = infer(graph, "marginals", method="bp", random_state=0)
    if query == "PR":
        assert answer.log_z == pytest.approx(same.value)
    else:
        np.testing.assert_allclose(np.concatenate(answer.marginals), same.marginals.flat)


def test_verdict_has_true_bounds(ask):
    graph = wide_graph(3)
    table = naive.joint(graph)
    _, _, err = ask(graph, "PR", "--method", "trw")
    assert float(re.search(r"log10 Z about \S+, at most (\S+)\n", err)[1]) >= (
        naive.soft_max(table, 1.0) / math.log(10) - 1e-6
    )
    _, _, err = ask(graph, "MAP", "--method", "portfolio")
    found = re.search(r"log10 value ([^,\s]+)(?:, the best at most (\S+))?\n", err)
    best = table.max() / math.log(10)
    assert float(found[1]) <= best + 1e-6
    assert float(found[2] or found[1]) >= best - 1e-6
    _, _, err = ask(graph, "MAR", "--method", "gibbs")
    assert float(re.search(r"log10 Z at least (\S+)\n", err)[1]) <= best + 1e-6


def test_random_state(ask):
    def draw(*options):
        return np.concatenate(ask(wide_graph(), "MAR", "--method", "gibbs", *options)[1].marginals)

    first = draw()
    np.testing.assert_array_equal(first, draw())
    np.testing.assert_array_equal(first, draw("--random-state", "0", "--jobs", "1"))
    assert (first != draw("--random-state", "1")).any()


def test_time_limit(ask):
    code, answer, err = ask(
        wide_graph(1, 12), "MAP", "--time-limit", "1e-9", "--method", "portfolio"
    )
    assert code == 0
    assert len(answer.assignment) == 144
    assert "time limit reached" in err


def test_nothing_possible_was_found(ask):
    trap, graph = naive.trap(), FactorGraph()
    graph.add_variables(40, 2)
    for first in range(0, 40, 2):  # some of so many traps shut, wherever a search begins
        for f in range(trap.n_factors):
            graph.add_factor([first + int(v) for v in trap.scope(f)], trap.table(f))
    code, answer, err = ask(graph, "MAP", "--method", "icm")
    assert (code, len(answer.assignment)) == (0, 40)
    assert set(answer.assignment.values()) == {0, 1}
    assert "result    no assignment without a zero potential was found\n" in err


# ---- files -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["answer.txt", "answer.txt.gz"])
def test_output_file(name, tmp_path, ask):
    graph = wide_graph()
    _, wanted, _ = ask(graph, "MAP")
    path = tmp_path / "made" / name
    path.parent.mkdir()
    path.write_text("old")
    code, answer, _ = ask(graph, "MAP", "--output", path)
    assert (code, answer) == (0, None)
    assert read_answer(path).assignment == wanted.assignment
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")
    assert [p.name for p in path.parent.iterdir()] == [name]


def test_output_to_a_device(ask):
    assert ask(wide_graph(), "PR", "--output", "/dev/null")[0] == 0
    assert Path("/dev/null").is_char_device()


def test_gzipped_input(tmp_path, capsys):
    path = model(tmp_path, wide_graph())
    assert main(["infer", str(path), "--query", "PR"]) == 0
    plain = capsys.readouterr().out
    packed = tmp_path / "model.uai.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert main(["infer", str(packed), "--query", "PR"]) == 0
    assert capsys.readouterr().out == plain


@pytest.mark.parametrize(("text", "told"), [("1 0 1", True), ("0", False), ("rubbish", False)])
def test_evidence_beside_the_model_is_mentioned_not_used(text, told, tmp_path, ask):
    graph = wide_graph()
    _, wanted, err = ask(graph, "PR")
    assert "evid" not in err
    (tmp_path / "model.uai.evid").write_text(text)
    code, answer, err = ask(graph, "PR")
    assert (code, answer.log_z) == (0, wanted.log_z)
    assert ("model.uai.evid beside the model was not used" in err) == told
    assert err.count("\n") == 3 + told
    assert "not used" not in ask(graph, "PR", evidence={0: 1})[2]


# ---- misuse ------------------------------------------------------------------------------


def impossible():
    graph = FactorGraph()
    graph.add_variables(2, 2)
    graph.add_factor([0, 1], np.where(np.eye(2), 0.0, -np.inf))
    return graph


MISUSE = {
    "missing model": (["nowhere.uai", "--query", "PR"], "nowhere.uai: no such file"),
    "folder as model": (["folder", "--query", "PR"], "folder: is a directory"),
    "empty model": (["empty", "--query", "PR"], "empty: the file is empty"),
    "malformed model": (["broken.uai", "--query", "PR"], "broken.uai"),
    "missing evidence": (["model.uai", "--query", "PR", "--evidence", "none"], "none: no such"),
    "malformed evidence": (["model.uai", "--query", "PR", "--evidence", "broken.uai"],
                           "broken.uai, line 1: 'MARKOV'"),
    "no such variable": (["model.uai", "--query", "PR", "--evidence", "beyond"],
                         "beyond: there is no variable named 9"),
    "no such state": (["model.uai", "--query", "PR", "--evidence", "state"],
                      "state: variable 0 cannot be in state 5"),
    "impossible evidence": (["model.uai", "--query", "PR", "--evidence", "against"],
                            "the evidence contradicts"),
    "no variables": (["model.uai", "--query", "MMAP"], "needs --map-variables"),
    "needless variables": (["model.uai", "--query", "MAP", "--map-variables", "state"],
                           "--map-variables is for --query MMAP"),
    "missing variables": (["model.uai", "--query", "MMAP", "--map-variables", "none"],
                          "none: no such file"),
    "malformed variables": (["model.uai", "--query", "MMAP", "--map-variables", "empty"],
                            "empty: need a count"),
    "variables beyond": (["model.uai", "--query", "MMAP", "--map-variables", "nine"],
                         "nine: there is no variable 9"),
    "wrong method": (["model.uai", "--query", "PR", "--method", "gibbs"],
                     "not 'partition'"),
    "too wide": (["wide.uai", "--query", "PR", "--method", "junction_tree", "--max-table", "4"],
                 "induced width"),
    "output is a folder": (["model.uai", "--query", "PR", "--output", "folder"],
                           "folder is a folder"),
    "no folder for output": (["model.uai", "--query", "PR", "--output", "no/where"],
                             "no/where: there is no folder no"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISUSE)
def test_misuse_is_one_line_and_exit_code_2(case, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model(tmp_path, impossible())
    write_uai(wide_graph(), tmp_path / "wide.uai")
    (tmp_path / "folder").mkdir()
    texts = {
        "empty": "",
        "broken.uai": "MARKOV 2 2 2 1 2 0 1 4 1 2 3",
        "beyond": "1 9 0",
        "state": "1 0 5",
        "against": "2 0 0 1 1",
        "nine": "1 9",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    argv, words = MISUSE[case]
    assert main(["infer", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("structlearn: error: ")
    assert err.count("\n") == 1
    assert words in err


def test_unwritable_output_is_named(tmp_path, capsys):
    path = tmp_path / "answer"
    argv = ["infer", str(model(tmp_path, wide_graph())), "--query", "MAR", "--output", str(path)]
    assert main(argv) == 0
    whole = path.read_bytes()
    capsys.readouterr()
    limit, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9, most))  # as good as a full disk
    try:
        assert main(argv) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    assert capsys.readouterr().err == f"structlearn: error: {path}: file too large\n"
    assert path.read_bytes() == whole


def test_an_old_output_survives_an_error(tmp_path, ask):
    path = tmp_path / "answer.txt"
    path.write_text("old")
    code, _, _ = ask(impossible(), "PR", "--output", path, evidence={0: 0, 1: 1})
    assert (code, path.read_text()) == (2, "old")


# ---- progress, interrupts, pipes ---------------------------------------------------------


def test_progress_only_if_wanted(ask, monkeypatch):
    monkeypatch.setattr(ProgressLine, "__init__", partialmethod(ProgressLine.__init__, every=0.0))
    _, _, err = ask(wide_graph(), "MAR", "--method", "gibbs")
    assert err.count("\n") == 3
    _, _, err = ask(wide_graph(), "MAR", "--method", "gibbs", "--progress")
    shares = re.findall(r"^\d\d:\d\d:\d\d +(\d+)% \d+ of \d+ sweeps", err, re.M)
    assert shares
    assert sorted(map(int, shares)) == [*map(int, shares)]
    assert err.splitlines()[-2].startswith("done      MAR approximate: gibbs")


def test_verdict_and_progress_for_programs(ask, tmp_path):
    files = ["--json", tmp_path / "verdict", "--log", tmp_path / "log", "--quiet"]
    code, answer, err = ask(wide_graph(), "PR", *files)
    assert (code, err) == (0, "")
    found = json.loads((tmp_path / "verdict").read_text())
    assert found["value"] == pytest.approx(answer.log_z)
    assert (found["query"], found["exact"], found["ended"]) == ("PR", True, "done")
    lines = (tmp_path / "log").read_text().splitlines()
    assert [line.split()[2] for line in lines] == ["read", "done", "result"]


@pytest.mark.parametrize("query", ["MAR", "MAP", "MMAP"])
def test_interrupted_work_gives_its_best_and_ends_at_once(query, ask, monkeypatch):
    heard = []

    def interrupt(self, fraction, words):
        if words not in ("reading", "choosing a method"):
            heard.append(words)
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressLine, "__call__", interrupt)
    method = "gibbs" if query == "MAR" else "portfolio"
    chosen = [0, 1, 2] if query == "MMAP" else None
    graph = wide_graph(2, 12)
    code, answer, err = ask(graph, query, "--method", method, "--progress", chosen=chosen)
    assert (code, len(heard)) == (130, 1)
    assert answer.task == query
    assert "interrupted" in err
    assert err.count("\n") == 3


def test_interrupted_before_there_is_anything(ask, monkeypatch):
    def interrupt(self, fraction, words):
        raise KeyboardInterrupt

    monkeypatch.setattr(ProgressLine, "__call__", interrupt)
    code, answer, err = ask(wide_graph(), "PR")
    assert (code, answer) == (130, None)
    assert err == "structlearn: interrupted before there was an answer\n"


def test_a_reader_who_leaves(tmp_path):
    argv = [sys.executable, "-m", "structlearn", "infer"]
    argv += [str(model(tmp_path, wide_graph())), "--query", "MAR"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


# ---- the competition ---------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize("name", ["Segmentation_11", "Promedus_31"])
def test_competition_marginals(name, data_folder, tmp_path, capsys):
    path = data_folder / "uai" / "mar" / f"{name}.uai"
    options = ["--evidence", f"{path}.evid", "--output", str(tmp_path / "answer")]
    for query in ("PR", "MAR"):
        assert main(["infer", str(path), "--query", query, *options]) == 0
        assert f"{query} exact: " in capsys.readouterr().err
        found, wanted = read_answer(tmp_path / "answer"), read_answer(f"{path}.{query}")
        if query == "PR":
            assert found.log_z == pytest.approx(wanted.log_z, abs=2e-4)
        else:
            for a, b in zip(found.marginals, wanted.marginals, strict=True):
                np.testing.assert_allclose(a, b, atol=2e-6)


@pytest.mark.data
def test_competition_marginal_map(data_folder, tmp_path, capsys):
    path = data_folder / "uai" / "mmap" / "Segmentation_12.uai"
    options = ["--map-variables", f"{path}.query", "--output", str(tmp_path / "answer")]
    assert main(["infer", str(path), "--query", "MMAP", *options]) == 0
    assert "MMAP exact: " in capsys.readouterr().err
    found, wanted = read_answer(tmp_path / "answer"), read_answer(f"{path}.MMAP")
    assert list(found.assignment) == list(wanted.assignment)

    def value(answer):
        return infer(read_uai(path), "partition", evidence=answer.assignment).value

    assert value(found) == pytest.approx(value(wanted), abs=1e-8)


@pytest.mark.parametrize("target", ["MODEL.uai", "--evidence", "--map-variables"])
def test_no_input_is_overwritten(target, tmp_path, capsys):
    graph = grid(np.zeros((2, 2, 2)), np.zeros((2, 2)))
    paths = {
        "MODEL.uai": tmp_path / "m",
        "--evidence": tmp_path / "e",
        "--map-variables": tmp_path / "v",
    }
    write_uai(graph, paths["MODEL.uai"])
    write_evidence({0: 1}, paths["--evidence"])
    paths["--map-variables"].write_text("1 2")
    kept = paths[target].read_bytes()
    argv = [paths["MODEL.uai"], "--query", "MMAP", "--output", paths[target]]
    argv += [word for name in ("--evidence", "--map-variables") for word in (name, paths[name])]
    assert main(["infer", *map(str, argv)]) == 2
    assert f"--output {paths[target]} is also {target}, " in capsys.readouterr().err
    assert paths[target].read_bytes() == kept


def test_the_output_may_be_a_stream_or_a_link(tmp_path):
    """Also where the folder of the stream takes no files, and that of the link does."""
    path = model(tmp_path, wide_graph())
    command = [sys.executable, "-m", "structlearn", "infer", path, "--query", "PR", "--output"]
    done = subprocess.run([*command, "/dev/stdout"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("PR\n")
    (tmp_path / "link").symlink_to(tmp_path / "answer")
    assert main([str(word) for word in command[3:]] + [str(tmp_path / "link")]) == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "answer").read_text() == done.stdout
    (tmp_path / "lost").symlink_to(tmp_path / "gone" / "answer")
    assert main([str(word) for word in command[3:]] + [str(tmp_path / "lost")]) == 2
