"""Data sets of measurements: voices, proteins, bees and people in motion.

Those with a public origin are fetched from it and checked against a known
checksum; sets without a public origin that has one are only looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from papers import checks
from papers.arrays import Floats, Ints
from structlearn._src.files.datasets import File, located
from structlearn.datasets import data_path
from structlearn.errors import FormatError

_RAW = "https://raw.githubusercontent.com"
PARKINSONS = File(
    "parkinsons/parkinsons.data",
    f"{_RAW}/peratonlabs/LUPI/5daecc198000d7d6345bd5f9839575cbd7f3f132/parkinsons.data",
    "742c51c827d62e5d6b2dc8c092ce48fe275d932d8c651752436b681ab903341d",
)
_FOLDS = f"{_RAW}/MsAlEhR/bio-protein-fold-recognition/f15cf6f4a5093ca0d7547445eaed81860841f2e9"
PROTEINS = {
    "train": File(
        "protein_fold_dd/DD-train.dataset.txt",
        f"{_FOLDS}/data/DD-train.dataset.txt",
        "b2b6218c13dd06e30e77e78c867895c295d97c439a18f66d7bbaf515c4078913",
    ),
    "test": File(
        "protein_fold_dd/DD-test.sequences.txt",
        f"{_FOLDS}/data/f86/test-sequences.txt",
        "2c5677ead0986621a1fb019a6ba11e8fe8dbef110245fd518283e2d67b6c5c18",
    ),
}
_ACIDS = b"ACDEFGHIKLMNPQRSTVWY"
_FOLD = re.compile(rb"(?:TYPE|FOLD)\s*\((\d+)\)")


class Voices(NamedTuple):
    """Recordings of voices, several of every speaker.

    Attributes
    ----------
    features
        (recordings, 22)
    labels
        (recordings,) 1 with Parkinson's disease, 0 without.
    speakers
        (recordings,) Number of the speaker. Recordings of one speaker are alike: a fair test has
        all of them on one side.
    """

    features: Floats
    labels: Ints
    speakers: Ints


class Proteins(NamedTuple):
    """Proteins by the shares of their 20 amino acids, in per cent, and their length.

    Attributes
    ----------
    features
        (proteins, 21)
    labels
        (proteins,) Fold, 1 to 27.
    """

    features: Floats
    labels: Ints


class Motions(NamedTuple):
    """Sequences of measurements.

    Attributes
    ----------
    features
        One (steps, features) array per sequence.
    labels
        One array (steps,) per sequence.
    subjects
        (sequences,) Who moved, from 1.
    """

    features: list[Floats]
    labels: list[Ints]
    subjects: Ints


def load_parkinsons() -> Voices:
    """Return 195 recordings of 32 speakers, 147 of them with Parkinson's disease [1]_.

    References
    ----------
    .. [1] M. Little et al., "Exploiting nonlinear recurrence and fractal scaling properties for
       voice disorder detection", BioMedical Engineering OnLine 2007.
    """
    path = located(PARKINSONS)
    head, *lines = path.read_text().split()
    cells = np.array([line.split(",") for line in lines])
    label = head.split(",").index("status") if "status" in head else 0
    if not label or cells.ndim != 2:
        raise FormatError(f"{path}: the first line needs the column 'status', and all as many")
    _, speakers = np.unique([name.rsplit("_", 1)[0] for name in cells[:, 0]], return_inverse=True)
    numbers = np.delete(cells, [0, label], axis=1).astype(np.float64)
    return Voices(numbers, cells[:, label].astype(np.int64), speakers.astype(np.int64))


def load_protein_folds(part: str = "train") -> Proteins:
    """Return 311 proteins for training and 383 for testing, of 27 folds [1]_.

    The original has two more of each, whose sequences are lost.

    References
    ----------
    .. [1] C. Ding and I. Dubchak, "Multi-class protein fold recognition using support vector
       machines and neural networks", Bioinformatics 2001.
    """
    path = located(PROTEINS[checks.one_of("part", part, ("train", "test"))])
    found = [(fold, letters) for fold, letters in _sequences(path.read_bytes()) if letters]
    if not found:
        raise FormatError(f"{path}: there is no sequence; each needs a fold and a line with '>'")
    shares = [[100.0 * s.count(a) / len(s) for a in _ACIDS] + [len(s)] for _, s in found]
    return Proteins(np.array(shares), np.array([fold for fold, _ in found], np.int64))


def load_bee_dance() -> Motions:
    """Return three tracks of dancing bees, 2180 steps: place and heading, and three moves [1]_.

    The four features are x, y and two components of the angle of the head, all scaled. Label 2 is
    the waggle. ``bee_dance/bee_dance.npz`` is looked for in the data folder.

    References
    ----------
    .. [1] S. M. Oh, J. Rehg, T. Balch and F. Dellaert, "Learning and inferring motion patterns
       using parametric segmental switching linear dynamic systems", IJCV 2008.
    """
    with np.load(data_path("bee_dance", "bee_dance.npz")) as file:
        features = np.ascontiguousarray(file["X"], np.float64)
        labels = file["y"].astype(np.int64)
        borders = np.cumsum(file["lengths"])[:-1]
    tracks = np.split(features, borders)
    return Motions(tracks, np.split(labels, borders), np.arange(1, len(tracks) + 1))


def load_msr_action3d() -> Motions:
    """Return 567 sequences of skeletons, 20 joints with x, y and depth: 20 actions [1]_.

    Every step has the action of its sequence for a label. The usual test is on the subjects with
    even numbers. ``msr_action3d/msr_action3d_skeletons.npz`` is looked for in the data folder.

    References
    ----------
    .. [1] W. Li, Z. Zhang and Z. Liu, "Action recognition based on a bag of 3D points", CVPR
       Workshops 2010.
    """
    with np.load(data_path("msr_action3d", "msr_action3d_skeletons.npz")) as file:
        frames = file["frames"]
        actions, subjects, _, lengths = file["meta"].T.astype(np.int64)
    flat = frames[:, :, :3].reshape(len(frames), -1).astype(np.float64)
    labels = [np.full(n, action) for action, n in zip(actions, lengths, strict=True)]
    return Motions(np.split(flat, np.cumsum(lengths)[:-1]), labels, subjects)


def _sequences(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Fold and amino acids of every sequence: headings, names after ``>``, lines of letters."""
    fold, letters = 0, None
    for line in [*body.split(b"\n"), b">"]:
        heading = _FOLD.match(line.strip())
        if heading or line.startswith(b">"):
            if letters is not None:
                yield fold, letters
            letters = None if heading else b""
            fold = int(heading[1]) if heading else fold
        elif letters is not None and re.fullmatch(rb"[A-Za-z ]+", line.strip()):
            letters += line.strip().replace(b" ", b"").upper()
