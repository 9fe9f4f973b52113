"""Column files that two workers read: the model of one process."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from clusters import revive, two_workers
from structlearn import ColumnFiles, SequenceLabeler, on, read_columns
from structlearn.errors import ArgumentError, PlaceError

TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]\nU2:%x[0,1]\nB"


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture
def folder(tmp_path):
    """Three files of sentences whose labels follow from words."""
    rng = np.random.default_rng(0)
    for name in "abc":
        lines = []
        for _ in range(60):
            words = rng.integers(0, 9, rng.integers(2, 7))
            lines += [f"w{word} t{word % 4} L{(word + word // 5) % 3}" for word in words]
            lines.append("")
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "all.txt").write_text("".join((tmp_path / f"{n}.txt").read_text() for n in "abc"))
    return tmp_path


def labeler(**given):
    return SequenceLabeler(features="sparse", template=TEMPLATE, random_state=0, **given)


@pytest.mark.parametrize("min_count", [1, 3])
def test_files_by_pattern_give_the_model_of_one_process(client, folder, min_count):
    columns = read_columns(folder / "all.txt")
    words = columns._replace(ids=columns.ids[:, :-1], vocabularies=columns.vocabularies[:-1])
    here = labeler(min_count=min_count, solver="lbfgs").fit(words, columns.labels())
    with on(client):
        files = ColumnFiles(folder / "[abc].txt", memory_limit="1GB")
        there = labeler(min_count=min_count).fit(files, None)
    assert len(files.paths) == 3
    assert there.n_seen_ == 180
    assert there.value_ == pytest.approx(here.value_, rel=1e-4)
    assert sorted(there.plan_.reader.names()) == sorted(here.plan_.reader.names())
    agree = map(np.array_equal, here.predict(words), there.predict(words))
    assert np.mean(list(agree)) > 0.98
    batch = labeler(min_count=min_count, solver="adagrad", max_iter=3, tol=None)
    with on(client):
        assert np.isfinite(batch.fit(files, None).weights_).all()


@pytest.mark.parametrize(("loss", "solver"), [("log", "sdca"), ("hinge", "frank-wolfe")])
def test_dual_variables_stay_with_what_workers_read(client, folder, loss, solver):
    columns = read_columns(folder / "all.txt")
    words = columns._replace(ids=columns.ids[:, :-1], vocabularies=columns.vocabularies[:-1])
    settings = {"loss": loss, "solver": solver, "max_iter": 5000, "tol": 1e-4}
    here = labeler(**settings).fit(words, columns.labels())
    with on(client):
        files = ColumnFiles(folder / "[abc].txt", memory_limit="1GB")
        there = labeler(**settings).fit(files, None)
    assert there.value_ == pytest.approx(here.value_, rel=1e-3)


def test_a_worker_that_is_killed_reads_again(client, folder):
    files = ColumnFiles([folder / "a.txt", folder / "b.txt"], memory_limit="1GB")
    with on(client) as place:
        whole = labeler().fit(files, None)
        pids = client.run(os.getpid)
        ask = place.ask
        asked = []

        def ask_and_kill(work, shared, tree):
            asked.append(work)
            if len(asked) == 15:
                os.kill(pids[tree[-1][0]], signal.SIGKILL)
            return ask(work, shared, tree)

        place.ask = ask_and_kill
        again = labeler().fit(files, None)
        place.ask = ask
    assert len(asked) > 15
    assert again.value_ == pytest.approx(whole.value_, rel=1e-6)
    revive(client)


def test_files_of_few_sentences(client, tmp_path):
    path = tmp_path / "few.txt"
    path.write_text("the D\ncat N\n")
    with on(client):
        few = SequenceLabeler(template="U0:%x[0,0]", C=10.0).fit(
            ColumnFiles(path, memory_limit="1GB"), None
        )
    assert few.n_seen_ == 1
    assert few.classes_.tolist() == ["D", "N"]


def test_files_that_workers_cannot_read(client, folder):
    class Moved(ColumnFiles):
        """Files that go away once this process has seen them."""

        def part(self, number, parts):
            found = super().part(number, parts)
            (folder / "gone.txt").unlink(missing_ok=True)
            return found

    (folder / "gone.txt").write_text("the D\ncat N\n\na D\n")
    with on(client), pytest.raises(PlaceError, match=r"worker tcp://.*gone\.txt"):
        labeler().fit(Moved(folder / "gone.txt", memory_limit="1GB"), None)


def test_what_a_cluster_cannot_learn(client, folder):
    files = ColumnFiles(folder / "a.txt", memory_limit="1GB")
    with on(client):
        with pytest.raises(ArgumentError, match=r"solver='frank-wolfe'.* use loss='hinge'"):
            labeler(solver="frank-wolfe").fit(files, None)
        with pytest.raises(ArgumentError, match="min_count"):
            labeler(min_count=10**6).fit(files, None)
