"""Data sets: where they are looked for, how public ones are fetched, and how they are read.

A data set is looked for in the folder named by the environment variable ``STRUCTLEARN_DATA``
and then in the cache, ``~/.cache/structlearn`` or what ``STRUCTLEARN_CACHE`` names. What is
fetched goes to the cache and is checked against a known checksum.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import checks
from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import ArgumentError, DataNotFoundError, FormatError
from structlearn._src.common.paths import PathLike, as_path, read_bytes, replacing, write_bytes
from structlearn._src.text.columns import Columns, read_columns

_CHUNK = 2**20  # bytes read at a time: memory does not grow with the file
_DIGITS = {32: "md5", 64: "sha256"}  # kinds of checksums by their lengths
_PIXELS = 128  # of a letter: 16 rows of 8
_LETTER = re.compile(rb"\d+\t([a-z])\t-?\d+\t(\d+)\t\d+\t(\d+)\t([01\t]+)")

# ---- finding and fetching ----------------------------------------------------------------


class File(NamedTuple):
    """A file of a data set: where it lies, where it comes from, and what it must be."""

    path: str  #: in a folder of data
    address: str  #: starts with http, https or file
    checksum: str  #: MD5 or SHA-256, in hexadecimal
    evidence: str = "0"  #: of a UAI model: count, then variable and state of each


#: Public files by their paths.
ORIGINS = {
    path: File(path, *entry)
    for path, entry in json.loads(Path(__file__).with_name("origins.json").read_text()).items()
}


def cache_folder() -> Path:
    """Return the folder for fetched data; it need not exist yet."""
    return Path(os.environ.get("STRUCTLEARN_CACHE") or "~/.cache/structlearn").expanduser()


def data_path(*parts: str) -> Path:
    """Return the path of a file or folder of a data set, in the data folder or in the cache.

    Nothing is fetched: what is in neither raises `structlearn.errors.DataNotFoundError`, which
    names both.

    Parameters
    ----------
    *parts
        Folder and file, as in ``data_path("ocr", "letter.data.gz")``.

    Returns
    -------
    pathlib.Path
        The path.

    Examples
    --------
    >>> from structlearn.datasets import data_path
    >>> data_path("ocr", "letter.data.gz").name  # doctest: +SKIP
    'letter.data.gz'
    """
    inside = Path(*map(as_path, parts))
    data = os.environ.get("STRUCTLEARN_DATA")
    tried = [Path(folder, inside) for folder in (data, cache_folder()) if folder]
    for path in tried:
        if path.exists():
            return path
    raise DataNotFoundError(
        f"{inside} is not on this machine (looked for {' and '.join(map(str, tried))}); "
        f"set STRUCTLEARN_DATA to the folder that holds it"
    )


def located(file: File) -> Path:
    """Return the path of a file of a data set, fetching it if need be."""
    try:
        return data_path(file.path)
    except DataNotFoundError:
        return download(file.address, cache_folder() / file.path, file.checksum)


def download(url: str, target: PathLike, checksum: str, timeout: float = 60.0) -> Path:
    """Fetch a file whose checksum is known; returns its path.

    A `target` that is there and has the checksum is left alone. Otherwise the file comes to a
    temporary place and takes the place of `target` only once it is complete and right. Missing
    folders are made. `timeout` is how many seconds the other side may say nothing.
    """
    kind = _DIGITS.get(len(checksum), "")
    if not kind:
        raise ArgumentError(f"checksum={checksum!r} must be an MD5 or a SHA-256 in hexadecimal")
    if urllib.parse.urlsplit(url).scheme not in ("http", "https", "file"):
        raise ArgumentError(f"url={url!r} must start with http, https or file")
    path = Path(target)
    if path.is_file() and _digest_of(path, kind) == checksum.lower():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        found = _fetch(url, file, kind, timeout)
        if found != checksum.lower():
            raise DataNotFoundError(
                f"{url} has the {kind} {found}, but {checksum} was expected: the file has changed "
                f"there or on its way; nothing was kept"
            )
    return path


def fetch_uai(name: str) -> Path:
    """Return the path of a model of the UAI 2014 competition, downloading it if necessary.

    Its evidence is in the same folder, in a file with ``.evid`` after the name. Models that are
    already under ``uai/`` in the data folder are not downloaded. The source is the public
    repository mroavi/uai at a fixed commit; the models are those of the competition.

    Parameters
    ----------
    name
        Task and model, as in ``"mar/Grids_11"``; the error for an unknown name lists all.

    Returns
    -------
    pathlib.Path
        The path of the model.

    Examples
    --------
    >>> from structlearn import read_uai
    >>> from structlearn.datasets import fetch_uai
    >>> read_uai(fetch_uai("mar/Grids_11"))  # doctest: +SKIP
    FactorGraph(100 variables (100 output), 300 factors, largest arity 2)
    """
    model = ORIGINS.get(f"uai/{name}.uai")
    if model is None:
        known = (path[4:-4] for path in ORIGINS if path.startswith("uai/"))
        raise ArgumentError(f"name={name!r} is not known; choose one of {', '.join(known)}")
    evidence = cache_folder() / f"{model.path}.evid"
    try:
        return data_path(model.path)
    except DataNotFoundError:  # the evidence first: once the model is there, nothing is fetched
        evidence.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(evidence, f"{model.evidence}\n".encode())
    return located(model)


def _fetch(url: str, file: IO[bytes], kind: str, timeout: float) -> str:
    """Copy what is at `url` into `file` and return its checksum."""
    digest = hashlib.new(kind, usedforsecurity=False)
    try:
        with urllib.request.urlopen(url, timeout=timeout) as source:
            while block := source.read(_CHUNK):
                digest.update(block)
                file.write(block)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as why:
        if isinstance(why, urllib.error.HTTPError):
            why.close()
        raise DataNotFoundError(
            f"{url} could not be fetched ({why}); try again, or get it by other means and "
            f"set STRUCTLEARN_DATA to the folder that holds it"
        ) from None
    return digest.hexdigest()


def _digest_of(path: Path, kind: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(
            file, lambda: hashlib.new(kind, usedforsecurity=False)
        ).hexdigest()


# ---- sequences to label ------------------------------------------------------------------


class Letters(NamedTuple):
    """Words of handwritten letters.

    Attributes
    ----------
    images
        One (letters, 128) array of zeros and ones per word: 16 rows of 8 pixels each.
    labels
        One array per word; 0 is a and 25 is z.
    folds
        (words,) Fold of every word, 0 to 9.
    """

    images: list[NDArray[np.uint8]]
    labels: list[Ints]
    folds: Ints


def load_conll2000(part: str = "train") -> Columns:
    """Return the CoNLL-2000 chunking data: word, part of speech, chunk label.

    8936 sentences for training and 2012 for testing, from the Wall Street Journal [1]_.

    Parameters
    ----------
    part
        "train" or "test".

    Returns
    -------
    Columns
        The sentences, with the columns word, part of speech and chunk label; downloaded once.

    References
    ----------
    .. [1] E. Tjong Kim Sang and S. Buchholz, "Introduction to the CoNLL-2000 shared task:
       chunking", CoNLL-2000.

    Examples
    --------
    >>> from structlearn.datasets import load_conll2000
    >>> len(load_conll2000("test").labels())  # doctest: +SKIP
    2012
    """
    return _columns("conll2000/{}.txt", part)


def load_basenp(part: str = "train") -> Columns:
    """Return the base noun phrases from the CRF++ examples: word, part of speech, B, I or O.

    77 sentences for training and 823 for testing. They are also part of CoNLL-2000, so do not train
    on one and test on the other.

    Parameters
    ----------
    part
        "train" or "test".

    Returns
    -------
    Columns
        The sentences, with the columns word, part of speech and label; downloaded once.

    Examples
    --------
    >>> from structlearn.datasets import load_basenp
    >>> len(load_basenp("train").labels())  # doctest: +SKIP
    77
    """
    return _columns("basenp/{}.data", part)


def load_ocr(path: PathLike | None = None) -> Letters:
    """Return 6877 words of handwritten letters, each without its first letter [1]_.

    Parameters
    ----------
    path
        A file in the layout of ``letter.data``; by default ``ocr/letter.data.gz`` in the
        data folder. It is not downloaded, because no public source has a known checksum.

    Returns
    -------
    Letters
        A record: `images`, one array of shape (letters, 128) per word; `labels`, one array of shape
        (letters,) per word, 0 for a and 25 for z; `folds` of shape (words,).

    References
    ----------
    .. [1] B. Taskar, C. Guestrin and D. Koller, "Max-margin Markov networks", NIPS 2003. Data
       by R. Kassel.

    Examples
    --------
    >>> from structlearn.datasets import load_ocr
    >>> letters = load_ocr()  # doctest: +SKIP
    >>> letters.images[0].shape, letters.labels[0].shape  # doctest: +SKIP
    ((9, 128), (9,))
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
