"""`structlearn.on`: names of places, the environment variable, the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from structlearn import on
from structlearn._src.cli.main import main
from structlearn.errors import ArgumentError, PlaceError

CHAIN = "MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 4\n"


@pytest.mark.parametrize("given", ["gpu", "", 3, None, "localhost:8786"])
def test_unknown_places_are_refused_with_the_list(given):
    with pytest.raises(ArgumentError, match="'threads', 'cuda', a Dask client"), on(given):
        pytest.fail("the block was entered")


def test_threads_are_named():
    with on("threads") as place:
        assert place.name == "threads"
        with on(place) as same:
            assert same is place


def child(code, **environment):
    import os

    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_environment_variable_counts_when_work_begins():
    code = (
        "import structlearn, numpy as np\n"
        "graph = structlearn.chain(np.zeros((2, 2)), np.eye(2))\n"
        "from structlearn._src.common.place import current\n"
        "current()"
    )
    done = child(code, STRUCTLEARN_PLACE="nowhere")
    assert "place='nowhere' is not known" in done.stderr
    done = child(code + "\nimport sys\nassert 'structlearn._src.places' not in sys.modules")
    assert done.returncode == 0, done.stderr


def test_the_command_line_names_a_place(tmp_path, capsys):
    path = tmp_path / "chain.uai"
    path.write_text(CHAIN)
    arguments = ["infer", str(path), "--query", "MAR", "--place"]
    assert main([*arguments, "threads"]) == 0
    assert capsys.readouterr().out.startswith("MAR")
    assert main([*arguments, "nowhere"]) == 2
    assert "place='nowhere' is not known" in capsys.readouterr().err


def test_a_place_error_is_an_error_of_the_library():
    assert issubclass(PlaceError, RuntimeError)
