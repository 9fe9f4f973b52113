"""Find data sets on this machine, and fetch public ones.

A data set is looked for in the folder named by the environment variable ``STRUCTLEARN_DATA``
and then in the cache, ``~/.cache/structlearn`` or what ``STRUCTLEARN_CACHE`` names. What is
fetched goes to the cache and is checked against a known checksum.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import IO, NamedTuple

from structlearn._src.common.errors import ArgumentError, DataNotFoundError
from structlearn._src.common.paths import PathLike, replacing, write_bytes

_CHUNK = 2**20  # bytes read at a time: memory does not grow with the file
_DIGITS = {32: "md5", 64: "sha256"}  # kinds of checksums by their lengths


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
    """Return the path of a file or folder of a data set, in the data folder or in the cache."""
    data = os.environ.get("STRUCTLEARN_DATA")
    tried = [Path(folder, *parts) for folder in (data, cache_folder()) if folder]
    for path in tried:
        if path.exists():
            return path
    raise DataNotFoundError(
        f"{'/'.join(parts)} is not on this machine (looked for {' and '.join(map(str, tried))}); "
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
    """Return the path of a model of the UAI 2014 competition, fetching it if need be.

    Its evidence is beside it, in a file with ``.evid`` after the name. Models that are already
    under ``uai/`` in the data folder are not fetched. The origin is the public repository
    mroavi/uai at a fixed commit; the models are those of the competition.

    Parameters
    ----------
    name
        Task and model, as in ``"mar/Grids_11"``; the error for a name that is not known lists all.
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
