"""Patches of photographs with labels of objects."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from papers.arrays import Ints, offsets_of
from structlearn.datasets import data_path

_WORDS, _PIXELS = 500, 400.0  # words of texture; pixels of a patch, which a histogram counts


class Patches(NamedTuple):
    """Images cut into overlapping patches, each with a word of texture, colours and an object.

    Attributes
    ----------
    shapes
        (images, 2) Rows and columns of patches.
    words, colours
        (patches,) and (patches, 48), image by image and row by row.
    labels
        (patches,) Number of the object in `names`; 0 where most pixels have none.
    names
        Of the objects.
    """

    shapes: Ints
    words: Ints
    colours: Ints
    labels: Ints
    names: tuple[str, ...]

    @property
    def borders(self) -> Ints:
        """(images + 1,) Where the patches of every image begin."""
        return offsets_of(self.shapes.prod(axis=1))

    def features(self) -> sparse.csr_array:
        """(patches, 549) The word as an indicator, shares of colours, and a constant."""
        n = len(self.words)
        words = sparse.csr_array((np.ones(n), self.words, np.arange(n + 1)), shape=(n, _WORDS))
        colours = sparse.csr_array(self.colours / _PIXELS)
        return sparse.csr_array(sparse.hstack([words, colours, np.ones((n, 1))]))


def load_patches() -> Patches:
    """Read 240 photographs of the MSRC object categories, as patches.

    References
    ----------
    J. Winn, A. Criminisi and T. Minka, "Object categorization by learned universal visual
    dictionary", 2005.
    """
    names = tuple(data_path("msrc240", "classes.txt").read_text().split())
    with np.load(data_path("msrc240", "patches.npz")) as file:
        return Patches(
            file["grid"].astype(np.int64),
            file["word"].astype(np.int64),
            file["rgb_hist"].astype(np.int64),
            file["label_majority"].astype(np.int64),
            names,
        )
