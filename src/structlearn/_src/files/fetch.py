"""Find data sets on this machine, and fetch public ones.

A data set is looked for in the folder named by the environment variable ``STRUCTLEARN_DATA``
and then in the cache, ``~/.cache/structlearn`` or what ``STRUCTLEARN_CACHE`` names. What is
fetched goes to the cache and is checked against a known checksum.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import IO

from structlearn._src.common.errors import ArgumentError, DataNotFoundError
from structlearn._src.common.paths import PathLike, replacing, write_bytes

_CHUNK = 2**20
_UAI = (
    "https://raw.githubusercontent.com/mroavi/uai/22005844423f5bca62798548df808cc418fc0d7d/uai2014"
)


def cache_folder() -> Path:
    """Return the folder for fetched data; it need not exist yet."""
    return Path(os.environ.get("STRUCTLEARN_CACHE") or "~/.cache/structlearn").expanduser()


def data_path(*parts: str) -> Path:
    """Return the path of a file or folder of a data set, in the data folder or in the cache."""
    tried = [Path(folder, *parts) for folder in _folders()]
    for path in tried:
        if path.exists():
            return path
    raise DataNotFoundError(
        f"{'/'.join(parts)} is not on this machine (looked for {' and '.join(map(str, tried))}); "
        f"set STRUCTLEARN_DATA to the folder that holds it"
    )


def download(
    url: str,
    target: PathLike,
    *,
    sha256: str | None = None,
    md5: str | None = None,
    timeout: float = 60.0,
) -> Path:
    """Fetch a file whose checksum is known; returns its path.

    A `target` that is there and has the checksum is left alone. Otherwise the file comes to a
    temporary place and takes the place of `target` only once it is complete and right.
    Missing folders are made.

    Parameters
    ----------
    url
        An address that starts with http, https or file.
    sha256, md5
        Checksum in hexadecimal; one is needed.
    timeout
        Seconds to wait for the other side to say something.
    """
    kind, wanted = _checksum(sha256, md5)
    if urllib.parse.urlsplit(url).scheme not in ("http", "https", "file"):
        raise ArgumentError(f"url={url!r} must start with http, https or file")
    path = Path(target)
    if path.is_file() and _digest_of(path, kind) == wanted:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        found = _fetch(url, file, kind, timeout)
        if found != wanted:
            raise DataNotFoundError(
                f"{url} has the {kind} {found}, but {wanted} was expected: the file has changed "
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
        Task and model, as in ``"mar/Grids_11"``; `UAI_MODELS` has them all.
    """
    if name not in UAI_MODELS:
        raise ArgumentError(
            f"name={name!r} is not known; choose one of {', '.join(sorted(UAI_MODELS))}"
        )
    try:
        return data_path("uai", f"{name}.uai")
    except DataNotFoundError:
        pass
    task, model = name.split("/")
    path = cache_folder() / "uai" / task / f"{model}.uai"
    path.parent.mkdir(parents=True, exist_ok=True)
    # The evidence first: once the model is there, nothing is fetched or written any more.
    write_bytes(f"{path}.evid", f"{UAI_EVIDENCE.get(name, '0')}\n".encode())
    return download(f"{_UAI}/{task.upper()}/{model}.uai", path, md5=UAI_MODELS[name])


def _folders() -> list[str | Path]:
    data = os.environ.get("STRUCTLEARN_DATA")
    return [*([data] if data else []), cache_folder()]


def _checksum(sha256: str | None, md5: str | None) -> tuple[str, str]:
    if sha256 is not None:
        return "sha256", sha256.lower()
    if md5 is not None:
        return "md5", md5.lower()
    raise ArgumentError("neither sha256 nor md5 was given; one is needed to check what arrives")


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


#: MD5 of the models that `fetch_uai` knows.
UAI_MODELS = {
    "map/Grids_26": "f56cf07205d681c12f95ba6d8988d88b",
    "map/Promedas_60": "e6c92423f8b9ba05fff043832970aa88",
    "map/Promedas_62": "537687213580e64b8df522902406fbba",
    "map/Promedas_64": "def2ad2c8a264231476078c311bf1413",
    "map/Promedas_66": "c6913abd1c71b51ef8fb5e74798f4373",
    "map/Promedas_68": "09cb7378970d7df0259f08ddaaeb2bf9",
    "map/Promedas_71": "d9964f5cfc76da0836ad1c06ec4f59f0",
    "map/Segmentation_12": "da99e8cc96ae4573c50237f6bc19f61e",
    "map/Segmentation_14": "f35f3c11d5bc8426beb92edde4e70f85",
    "map/Segmentation_16": "f1219899f4c66a604a1dfa09861635be",
    "map/Segmentation_17": "6f85f77b3938fdf4c928863c40133e7d",
    "map/wcsp_15": "ceeeb1ed48afd0a36c465b8749beb8eb",
    "mar/Alchemy_11": "4f7806a7b3a1d45c59430d73c5bc7a38",
    "mar/CSP_11": "714494c44749bd02ffed1e3ad1d7e6e6",
    "mar/CSP_12": "b2bb573629ac248e0a9a3fe37f2d73f6",
    "mar/DBN_11": "118f2695a2e652212efc504910f803e5",
    "mar/DBN_14": "a1232419ec2128fa6306fc7b30ae2b1b",
    "mar/Grids_11": "b198a0f8b65df28a98632119f31356f5",
    "mar/Grids_12": "77bc7c1e742caecb2268c649aee0d48c",
    "mar/Grids_13": "ecec9632c3446e0c876634a97c0f95d4",
    "mar/Grids_16": "91b656e244c15b5c8416b6bd8a508926",
    "mar/ObjectDetection_11": "25017f89b223440f16c9837ff9859add",
    "mar/ObjectDetection_15": "0511f4d6cd6a247e4cc0cb4da5b8e5be",
    "mar/ObjectDetection_20": "4ce256316f97593f64ec647dad6e307d",
    "mar/Pedigree_12": "1a34eea7f9e25f59f39510de476289f1",
    "mar/Promedus_13": "c96098499ab0d2b1c825e47af163e947",
    "mar/Promedus_15": "3f92b662dd7d05dbce845e357f146faa",
    "mar/Promedus_16": "f77a05c6ffe06cb96d2b61091fe087be",
    "mar/Promedus_24": "c529d2ba46ec88f6ef6835dfb52d7218",
    "mar/Promedus_26": "3af381667e02d17e56a27c6c12d5a3ff",
    "mar/Promedus_27": "545eba4856a97eb10c52b4eef9a62622",
    "mar/Promedus_28": "236e0a74e240f65412c42a35e19dd093",
    "mar/Promedus_30": "bd06cb0c0586aba12528d9dcc089f5d4",
    "mar/Promedus_31": "2dc3f158d18c6e03ff76b21e6a73c3ab",
    "mar/Promedus_35": "8a2432067eb9ca20af0cc4504df1a2ad",
    "mar/Segmentation_11": "40a3fb2a3ab360c7a2d67740a95c6f2a",
    "mar/Segmentation_14": "d2fb383daca6c39b2c30edc998a4de1e",
    "mar/Segmentation_16": "4f89a2142d79882b030ab3635b93ac77",
    "mar/linkage_24": "d429b548bf58286488515edf97a55779",
}

#: Evidence of those models that have some: count, then variable and state of each.
UAI_EVIDENCE = {
    "map/Promedas_60": "7 94 1 102 1 115 1 136 1 156 1 414 1 477 1",
    "map/Promedas_62": "9 20 1 34 1 35 1 63 1 71 1 111 1 113 1 166 1 228 1",
    "map/Promedas_64": "9 19 1 21 1 33 1 34 1 60 1 63 1 192 1 224 1 226 1",
    "map/Promedas_66": "11 23 1 43 1 44 1 75 1 79 1 81 1 140 1 196 1 203 1 247 1 275 1",
    "map/Promedas_68": (
        "15 4 1 79 1 108 1 116 1 126 1 127 1 137 1 151 1 206 1 236 1 311 1 330 1 398 1 447 1 449 1"
    ),
    "map/Promedas_71": "10 4 1 18 1 30 1 31 1 56 1 59 1 66 1 101 1 144 1 205 1",
    "mar/Pedigree_12": (
        "37 10 0 13 0 16 0 21 0 26 0 31 0 36 0 41 0 46 1 51 0 56 0 61 1 66 1 71 0 102 1 "
        "111 2 116 2 129 2 164 1 173 2 178 2 187 1 192 2 227 0 236 0 241 0 250 0 255 0 "
        "290 2 299 2 304 2 313 1 318 2 353 0 362 0 367 0 380 0"
    ),
    "mar/Promedus_13": "4 110 1 124 1 366 1 399 1",
    "mar/Promedus_15": "4 1 1 28 1 45 1 162 1",
    "mar/Promedus_16": "5 76 1 110 1 111 1 127 1 182 1",
    "mar/Promedus_24": "4 25 1 44 1 63 1 66 1",
    "mar/Promedus_26": "6 19 1 40 1 75 1 77 1 113 1 269 1",
    "mar/Promedus_27": "5 14 1 26 1 95 1 148 1 174 1",
    "mar/Promedus_28": "7 30 1 45 1 50 1 58 1 101 1 149 1 201 1",
    "mar/Promedus_30": "13 4 1 30 1 31 1 34 1 38 1 62 1 63 1 69 1 73 1 93 1 103 1 125 1 131 1",
    "mar/Promedus_31": "2 29 1 195 1",
    "mar/Promedus_35": "2 30 1 195 1",
}
