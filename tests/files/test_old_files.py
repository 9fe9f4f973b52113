"""Files that earlier versions wrote: they load, answer as they did, and are written the same.

The folder `old` holds one small file of every kind, and `expected.json` the inputs and the answers
of the version that wrote them. Never write them anew: when a file no longer loads, it is the reader
that must change.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from structlearn import Checkpoint, RuleModel, SequenceLabeler, load, save
from structlearn._src.solve.stochastic import Stochastic
from structlearn._src.text.columns import parse_columns

OLD = Path(__file__).parent / "old"
KNOWN = json.loads((OLD / "expected.json").read_text(encoding="utf-8"))
MODELS = [name for name, known in KNOWN["files"].items() if "estimator" in known]
HIDDEN = {"hidden": "layer", "hidden_states": 2, "loss": "marginal"}
RUNS = {
    "lbfgs": {},
    "adagrad": {"solver": "adagrad"},
    "forbidden": {"forbidden": [("y", "y")]},
    "frank_wolfe": {"solver": "frank-wolfe", "loss": "hinge"},
    "cccp": {"driver": "cccp", **HIDDEN},
    "paired": {
        "driver": "paired",
        "sweeps": 2,
        "solver": Stochastic(rule="decaying", step_size=0.1),
        **HIDDEN,
    },
}


def given(name):
    """The input of that name, in the form in which users give it."""
    form, data = KNOWN["inputs"][name].values()
    make = {
        "plain": lambda: data,
        "columns": lambda: parse_columns(data.encode()),
        "array": lambda: np.array(data),
        "sparse_array": lambda: csr_array(np.array(data)),
        "arrays": lambda: [np.array(each) for each in data],
        "sparse": lambda: [csr_array(np.array(each)) for each in data],
        "graphs": lambda: [tuple(map(np.array, each)) for each in data],
    }
    return make[form]()


def plain(value):
    """What JSON would make of a value."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return [*map(plain, value)] if isinstance(value, list | tuple) else value


def assert_agrees(found, known):
    """Names, counts and labels are equal; numbers as near as another machine computes them."""
    if isinstance(known, list):
        assert len(found) == len(known)
        for one, two in zip(found, known, strict=True):
            assert_agrees(one, two)
    elif isinstance(known, float):
        assert found == pytest.approx(known, rel=1e-9, abs=1e-12)
    else:
        assert found == known


def test_there_is_a_file_of_every_kind():
    assert {path.stem for path in OLD.glob("*.model")} == set(MODELS)
    assert {path.stem for path in OLD.glob("*.checkpoint")} == {f"run_{name}" for name in RUNS}


@pytest.mark.parametrize("name", MODELS)
def test_models_load_and_answer_as_they_did(name):
    known = KNOWN["files"][name]
    model = load(OLD / f"{name}.model")
    assert type(model).__name__ == known["estimator"]
    for fact, value in known["facts"].items():
        assert_agrees(plain(getattr(model, fact)), value)
    for query, answer in known["answers"].items():
        assert_agrees(plain(getattr(model, query)(given(known["input"]))), answer)


def contents(path):
    """The facts, and the bytes of the arrays; without the checksum, which old files do not have.

    Old files also have the number of features beside the reader, which knows it.
    """
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    facts = header.pop("__metadata__")
    meta = json.loads(facts["meta"])
    meta["model"]["parts"]["learnt"]["parts"].pop("n_features_in_", None)
    return facts["schema"], json.dumps(meta), list(header.items()), data[end:]


@pytest.mark.parametrize("name", MODELS)
def test_models_are_written_as_they_were(name, tmp_path):
    save(load(OLD / f"{name}.model"), tmp_path / "model")
    assert contents(tmp_path / "model") == contents(OLD / f"{name}.model")


@pytest.mark.filterwarnings("ignore:stopped at max_iter")
@pytest.mark.parametrize("name", RUNS)
def test_runs_go_on_as_if_never_stopped(name, tmp_path):
    known = KNOWN["files"][f"run_{name}"]
    shutil.copy(OLD / f"run_{name}.checkpoint", tmp_path / "run")
    labeler = SequenceLabeler(
        max_iter=6, tol=0.0, random_state=0, checkpoint=Checkpoint(tmp_path / "run"), **RUNS[name]
    )
    labeler.fit(given("arrays"), KNOWN["labels"])
    assert labeler.n_iter_ == known["n_iter"]
    assert_agrees(plain(labeler.weights_), known["weights"])


def test_rules_load_and_answer_as_they_did(tmp_path):
    known = KNOWN["files"]["rules"]
    model = RuleModel.load(OLD / "rules.json")
    assert model.rules_ == known["rules"]
    for fact, value in known["facts"].items():
        assert_agrees(getattr(model, fact), value)
    for how, atoms in known["atoms"].items():
        getattr(model, how)(atoms)
    values = model.predict(frame="dict")["value"]
    np.testing.assert_allclose(values, known["values"], atol=1e-4)
    model.save(tmp_path / "rules.json")
    written = json.loads((tmp_path / "rules.json").read_text())
    del written["sha256"]
    assert written == json.loads((OLD / "rules.json").read_text())
