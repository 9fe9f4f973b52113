"""Data sets for sequence labelling, from the data folder or their public origin.

See `files.fetch` for where they are looked for. What is fetched is checked against a known
checksum.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import checks
from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import FormatError
from structlearn._src.common.paths import PathLike, read_bytes
from structlearn._src.files.fetch import ORIGINS, data_path, located
from structlearn._src.text.columns import Columns, read_columns

_PIXELS = 128
_LETTER = re.compile(rb"\d+\t([a-z])\t-?\d+\t(\d+)\t\d+\t(\d+)\t([01\t]+)")


class Letters(NamedTuple):
    """Words of handwritten letters.

    Attributes
    ----------
    images
        One (letters, 128) array of zeros and ones per word: 16 rows of 8 pixels each.
    labels
        One array per word; 0 stands for a and 25 for z.
    folds
        (words,) Fold of every word, 0 to 9.
    """

    images: list[NDArray[np.uint8]]
    labels: list[Ints]
    folds: Ints


def load_conll2000(part: str = "train") -> Columns:
    """Return the CoNLL-2000 chunking data: word, part of speech, chunk label.

    8936 sentences for training and 2012 for testing, of the Wall Street Journal [1]_.

    References
    ----------
    .. [1] E. Tjong Kim Sang and S. Buchholz, "Introduction to the CoNLL-2000 shared task:
       chunking", CoNLL-2000.
    """
    return _columns("conll2000/{}.txt", part)


def load_basenp(part: str = "train") -> Columns:
    """Return the base noun phrases that CRF++ has as an example: word, part of speech, B, I or O.

    77 sentences for training and 823 for testing. They are also in CoNLL-2000, so do not train
    on one and test on the other.
    """
    return _columns("basenp/{}.data", part)


def load_ocr(path: PathLike | None = None) -> Letters:
    """Return 6877 words of handwritten letters, each without its first letter [1]_.

    Parameters
    ----------
    path
        A file in the layout of ``letter.data``; if not given, ``ocr/letter.data.gz`` in the
        data folder. It is not fetched, since no origin with a known checksum is public.

    References
    ----------
    .. [1] B. Taskar, C. Guestrin and D. Koller, "Max-margin Markov networks", NIPS 2003. Data
       by R. Kassel.
    """
    source = Path(path) if path is not None else data_path("ocr", "letter.data.gz")
    cells = [_letter(line, i, source) for i, line in enumerate(read_bytes(source).splitlines())]
    if not cells:
        raise FormatError(f"{source}: the file is empty; it should have one letter a line")
    letters, words, folds, pixels = zip(*cells, strict=True)
    images = np.frombuffer(b"".join(pixels), np.uint8).reshape(-1, _PIXELS) - ord("0")
    labels = np.frombuffer(b"".join(letters), np.uint8).astype(np.int64) - ord("a")
    borders = [i for i in range(1, len(words)) if words[i] != words[i - 1]]
    return Letters(
        np.split(images, borders),
        np.split(labels, borders),
        np.array(folds, np.int64)[[0, *borders]],
    )


def _columns(path: str, part: str) -> Columns:
    checks.one_of("part", part, ("train", "test"))
    return read_columns(located(ORIGINS[path.format(part)]))


def _letter(line: bytes, i: int, source: Path) -> tuple[bytes, bytes, bytes, bytes]:
    """Return character, word, fold and pixels of a line."""
    found = _LETTER.fullmatch(line)
    pixels = found[4].replace(b"\t", b"") if found else b""
    if not found or len(pixels) != _PIXELS:
        raise FormatError(
            f"{source}, line {i + 1}: a letter needs its number, character, next letter, word, "
            f"place and fold, then {_PIXELS} pixels that are 0 or 1, apart by tabs"
        )
    return found[1], found[2], found[3], pixels
