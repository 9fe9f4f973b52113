"""Small jobs start at once: loading and predicting import nothing of learning."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

OLD = pathlib.Path(__file__).parents[1] / "files" / "old"
LEARNING = ("structlearn._src.learn", "structlearn._src.solve", "structlearn._src.sample")
HEAVY = ("sklearn", "scipy", "numba", "matplotlib", "importlib.metadata", "pandas")
TRAIN = "the DT B\ncat NN I\n\na DT B\ndog NN I\n"


def loaded(code, *arguments):
    """Modules that a fresh process has when it is done."""
    code += "\nimport sys; print('modules', *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()[1:]


def check_light(modules, heavy=HEAVY):
    assert [name for name in modules if name.startswith(LEARNING)] == []
    assert [name for name in heavy if name in modules] == []


COMMAND = "import sys; from structlearn._src.cli.main import main; assert main(sys.argv[1:]) == 0"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    (folder / "train.txt").write_text(TRAIN)
    loaded(COMMAND, "train", folder / "train.txt", "--model", folder / "m", "--quiet")
    return folder


def test_tag(model):
    check_light(loaded(COMMAND, "tag", model / "train.txt", "--model", model / "m"))


def test_load_and_predict(model):
    code = """
import sys, structlearn
labeler = structlearn.load(sys.argv[1])
print(labeler.predict(structlearn.read_columns(sys.argv[2])), labeler)
"""
    check_light(loaded(code, model / "m", model / "train.txt"))


def test_predict_from_arrays():
    code = """
import sys, numpy as np, structlearn
labeler = structlearn.load(sys.argv[1])
print(labeler.predict([np.ones((2, labeler.n_features_in_))]))
"""
    check_light(loaded(code, OLD / "sequence_arrays.model"))


def test_psl(tmp_path):
    (tmp_path / "m.psl").write_text("2: P(A) -> Q(A) ^2\n1: !Q(A) ^2\n")
    (tmp_path / "p.txt").write_text("a\nb\n")
    parts = "predicates:\n  P/1: closed\n  Q/1: open\nobservations:\n  P: p.txt\n"
    (tmp_path / "m.data").write_text(f"{parts}targets:\n  Q: p.txt\n")
    modules = loaded(COMMAND, "psl", tmp_path / "m.psl")
    # DuckDB looks for pandas by itself, where it is installed.
    check_light(modules, set(HEAVY) - {"importlib.metadata", "pandas"})


def test_a_command_imports_no_other():
    code = "import sys; from structlearn._src.cli.main import main; main(['tag', '--help'])"
    modules = loaded(code)
    found = {name for name in modules if name.startswith("structlearn._src.cli.")}
    others = {"train", "infer", "psl", "inspect", "evaluate", "warm_up"}
    assert not found & {f"structlearn._src.cli.{name}" for name in others}
    assert "numpy" not in modules
