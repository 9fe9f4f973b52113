"""Faces, of which the upper half is given and the lower half asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from papers.arrays import Floats
from structlearn.datasets import data_path

HALF = 32  # rows of an image that are given
_TRAIN, _POOL, _TEST = 50, 350, 50  # images to learn from, of the first so many; the last to test
_STRETCH = 2.5  # of inputs around their median


def blocks(images: Floats, size: int) -> Floats:
    """Means over square blocks, one row for each image."""
    n, height, width = images.shape
    cut = images.reshape(n, height // size, size, width // size, size)
    return cut.mean(axis=(2, 4)).reshape(n, -1)


@dataclass(frozen=True, eq=False)
class Faces:
    """Faces to learn from and faces to complete, as blocks of pixels.

    Inputs are blocks of the upper half, stretched around their median, and the same rounded;
    outputs are blocks of the lower half. Details within output blocks are those of the mean face.
    """

    train: Floats  # (images, rows, columns) in [0, 1]
    test: Floats
    size_in: int = 4
    size_out: int = 4

    @classmethod
    def olivetti(cls, seed: Any, **sizes: int) -> Faces:
        """Return 50 random faces of the first 350, and the last 50."""
        with np.load(data_path("olivetti", "olivetti.npz")) as file:
            images = file["images"] / 255.0
        which = np.random.default_rng(seed).choice(_POOL, _TRAIN, replace=False)
        return cls(images[which], images[-_TEST:], **sizes)

    @cached_property
    def median(self) -> Floats:
        """Of every input block, over the faces to learn from."""
        return np.median(blocks(self.train[:, :HALF], self.size_in), axis=0)

    def inputs(self, images: Floats) -> Floats:
        """Stretched blocks of the upper half, then the same rounded."""
        off = blocks(images[:, :HALF], self.size_in) - self.median
        return np.hstack([np.clip(0.5 + _STRETCH * off, 0.0, 1.0), (off > 0).astype(float)])

    def outputs(self, images: Floats) -> Floats:
        """Blocks of the lower half."""
        return blocks(images[:, HALF:], self.size_out)

    def complete(self, outputs: Floats) -> Floats:
        """Lower halves: the mean face, moved by what its blocks are to be."""
        mean = self.train[:, HALF:].mean(axis=0)
        rows, columns = (side // self.size_out for side in mean.shape)
        moves = (outputs - self.outputs(self.train).mean(axis=0)).reshape(-1, rows, columns)
        return np.clip(mean + enlarged(moves, self.size_out), 0.0, 1.0)

    def error(self, halves: Floats) -> float:
        """Mean squared error of the lower halves to be completed, of 256 levels."""
        return float(np.mean((255.0 * (halves - self.test[:, HALF:])) ** 2))

    def baselines(self) -> dict[str, float]:
        """Errors of the mean face, and of ridge regression on all pixels."""
        given, asked = (
            half.reshape(len(half), -1) for half in (self.train[:, :HALF], self.train[:, HALF:])
        )
        mean = asked.mean(axis=0)
        centred = given - given.mean(axis=0)
        gram = centred @ centred.T + 10.0 * np.eye(len(given))
        test = self.test[:, :HALF].reshape(len(self.test), -1) - given.mean(axis=0)
        fitted = mean + test @ centred.T @ np.linalg.solve(gram, asked - mean)
        shape = self.test[:, HALF:].shape
        return {
            "mean face": self.error(np.broadcast_to(mean.reshape(shape[1:]), shape)),
            "ridge regression": self.error(fitted.reshape(shape)),
        }


def enlarged(images: Floats, factor: int) -> Floats:
    """Enlarge by linear interpolation between the middles of blocks."""
    for axis in (1, 2):
        n = images.shape[axis]
        places = np.clip((np.arange(n * factor) + 0.5) / factor - 0.5, 0, n - 1)
        low = np.minimum(places.astype(int), n - 2)
        part = (places - low).reshape([-1 if i == axis else 1 for i in range(3)])
        ends = (np.take(images, low + i, axis) for i in (0, 1))
        images = (1.0 - part) * next(ends) + part * next(ends)
    return images
