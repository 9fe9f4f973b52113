"""Recordings: small files in the layout of the real ones, and the real ones where they are."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from papers.data import recordings
from papers.data.recordings import (
    load_bee_dance,
    load_msr_action3d,
    load_parkinsons,
    load_protein_folds,
)
from structlearn.errors import ArgumentError, DataNotFoundError, FormatError

PROTEINS = b"""-----
** TYPE(1),..., TYPE(27) denotes the fold types

TYPE (1)
>1ABC
AAC D
ac
>2LOST

TYPE(27)
>3XYZ
WYWY
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("STRUCTLEARN_DATA", str(tmp_path))
    monkeypatch.setenv("STRUCTLEARN_CACHE", str(tmp_path / "cache"))

    def write(place, name, body):
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / name).write_bytes(body)

    return write


def test_voices(folder):
    body = b"name,a,status,b\nr_S01_1,1.5,1,2\nr_S01_2,2.5,1,3\nr_S07_1,3.5,0,4\n"
    folder("parkinsons", "parkinsons.data", body)
    voices = load_parkinsons()
    assert voices.features.tolist() == [[1.5, 2.0], [2.5, 3.0], [3.5, 4.0]]
    assert voices.labels.tolist() == [1, 1, 0]
    assert voices.speakers.tolist() == [0, 0, 1]
    folder("parkinsons", "parkinsons.data", b"name,a\nx,1\n")
    with pytest.raises(FormatError, match="status"):
        load_parkinsons()


def test_proteins(folder):
    folder("protein_fold_dd", "DD-train.dataset.txt", PROTEINS)
    proteins = load_protein_folds()
    assert proteins.labels.tolist() == [1, 27]
    assert proteins.features[:, -1].tolist() == [6, 4]
    np.testing.assert_allclose(proteins.features[0, :3], [50.0, 100 / 3, 100 / 6])
    np.testing.assert_allclose(proteins.features[:, :-1].sum(axis=1), 100.0)
    folder("protein_fold_dd", "DD-train.dataset.txt", b"nothing\n")
    with pytest.raises(FormatError, match="no sequence"):
        load_protein_folds()
    with pytest.raises(ArgumentError, match="choose one of 'train', 'test'"):
        load_protein_folds("dev")


def test_motions(folder, tmp_path):
    for load in (load_bee_dance, load_msr_action3d):
        with pytest.raises(DataNotFoundError, match="STRUCTLEARN_DATA"):
            load()
    (tmp_path / "bee_dance").mkdir()
    X = np.arange(20.0).reshape(5, 4)
    y = np.array([0, 1, 2, 0, 1], np.int8)
    np.savez(tmp_path / "bee_dance" / "bee_dance.npz", X=X, y=y, lengths=np.array([2, 3]))
    bees = load_bee_dance()
    assert [x.shape for x in bees.features] == [(2, 4), (3, 4)]
    assert [labels.tolist() for labels in bees.labels] == [[0, 1], [2, 0, 1]]
    (tmp_path / "msr_action3d").mkdir()
    frames = np.arange(4 * 2 * 4, dtype=np.float32).reshape(4, 2, 4)
    meta = np.array([[7, 1, 1, 1], [9, 2, 1, 3]], np.int16)
    path = tmp_path / "msr_action3d" / "msr_action3d_skeletons.npz"
    np.savez(path, frames=frames, meta=meta)
    people = load_msr_action3d()
    assert [labels.tolist() for labels in people.labels] == [[7], [9, 9, 9]]
    assert people.subjects.tolist() == [1, 2]
    assert people.features[0].tolist() == [[0, 1, 2, 4, 5, 6]]


@pytest.mark.data
def test_stored_sets_are_the_known_ones(data_folder):
    for file in (recordings.PARKINSONS, *recordings.PROTEINS.values()):
        body = (data_folder / file.path).read_bytes()
        assert hashlib.sha256(body).hexdigest() == file.checksum
    voices = load_parkinsons()
    assert voices.features.shape == (195, 22)
    assert np.bincount(voices.labels).tolist() == [48, 147]
    assert len(np.unique(voices.speakers)) == 32
    shapes = [load_protein_folds(part).features.shape for part in ("train", "test")]
    assert shapes == [(311, 21), (383, 21)]
    assert set(load_protein_folds().labels) == set(range(1, 28))
    assert [len(x) for x in load_bee_dance().features] == [757, 814, 609]
    people = load_msr_action3d()
    assert (len(people.features), sum(map(len, people.labels))) == (567, 22797)
