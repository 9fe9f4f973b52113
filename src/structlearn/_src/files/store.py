"""Arrays and plain facts in one file: safetensors with JSON, so that loading runs no code.

A safetensors file is the length of a header in eight bytes, the header in JSON, and the arrays.
It is written here rather than by its library, which puts facts in random order, so that equal
contents make equal files.
"""

from __future__ import annotations

import hashlib
import json
import re
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common.errors import ArgumentError, FormatError
from structlearn._src.common.paths import PathLike, as_path, replacing

Arrays = dict[str, NDArray[Any]]

_UNKNOWN = b"0" * 64  # stands for the checksum while it is computed; the first of a file's facts


def write(
    path: PathLike, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any], schema: str
) -> None:
    """Write arrays and facts; others see the old file or the whole new one.

    Arrays hold numbers or truth values. Facts are what JSON can say, and numpy's scalars and
    arrays. `schema` is the kind of the file and its version, as in ``"structlearn.model/1"``.
    """
    _split(schema)
    pairs = [(name, _plain(name, array)) for name, array in arrays.items()]
    plain = dict(sorted(pairs, key=lambda pair: (-pair[1].itemsize, pair[0])))
    text = json.dumps(dict(meta), default=_listed)
    facts = {"sha256": _UNKNOWN.decode(), "schema": schema, "meta": text}
    header = json.dumps({"__metadata__": facts, **_places(plain)}).encode()
    header += b" " * (-len(header) % 8)
    head = len(header).to_bytes(8, "little") + header
    blocks = [array.reshape(-1).view(np.uint8).data for array in plain.values()]
    checksum = _checksum([head, *blocks])
    with replacing(path) as file:
        file.write(head.replace(_UNKNOWN, checksum, 1))
        file.writelines(blocks)


def _checksum(parts: Iterable[Any]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest().encode()


def _places(arrays: Arrays) -> dict[str, Any]:
    """Return type, shape and place of every array among the bytes after the header."""
    out = {}
    start = 0
    for name, array in arrays.items():
        kind = "BOOL" if array.dtype == np.bool_ else f"{array.dtype.kind}{8 * array.itemsize}"
        stop = start + array.nbytes
        out[name] = {"dtype": kind.upper(), "shape": array.shape, "data_offsets": [start, stop]}
        start = stop
    return out


def read(path: PathLike, schema: str) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and facts that `write` has put into a file.

    A file of an older version is returned as it is; the entry ``"schema"`` of the facts tells
    what it was written as. Any other byte than those written is a `FormatError`, but for files
    from before there were checksums.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    data = as_path(path).read_bytes()
    facts = _header(data).get("__metadata__", {})
    foreign = f"{path}: the file is cut short or was not written by structlearn"
    if not isinstance(facts, dict) or not facts.keys() <= {"schema", "meta", "sha256"}:
        raise FormatError(f"{foreign}; give a file of kind {schema}")
    if facts:
        check_schema(path, facts.get("schema"), schema)
        _check_sum(path, data, facts.get("sha256"))
    try:
        arrays = {name: np.require(array, requirements="W") for name, array in load(data).items()}
    except (SafetensorError, KeyError, TypeError, ValueError) as reason:  # or of an unknown type
        raise FormatError(f"{foreign} ({reason}); give a file of kind {schema}") from None
    check_schema(path, facts.get("schema"), schema)
    return arrays, _meta(path, facts)


def _header(data: bytes) -> dict[str, Any]:
    """Return what the first part of a file says; nothing if it is none of this format."""
    try:
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except (ValueError, RecursionError, OverflowError):
        return {}
    return header if isinstance(header, dict) else {}


def _check_sum(path: PathLike, data: bytes, found: Any) -> None:
    """Refuse a file with other bytes than those written; old files have no checksum."""
    if found is None:
        return
    start, _, rest = data.partition(str(found).encode())
    if _checksum((start, _UNKNOWN, rest)).decode() != found:
        raise FormatError(
            f"{path}: the file was cut short or altered after it was written: its checksum does "
            f"not match; write it again"
        )


def _meta(path: PathLike, facts: Mapping[str, str]) -> dict[str, Any]:
    try:
        meta = json.loads(facts["meta"])
    except (KeyError, TypeError, ValueError, RecursionError):  # also too long numbers, deep lists
        meta = None
    if not isinstance(meta, dict):
        raise FormatError(f"{path}: the file's facts are damaged; write it again")
    return meta | {"schema": facts["schema"]}


def check_schema(path: PathLike, found: object, wanted: str, hint: str = "") -> None:
    """See that a file of schema `found` can be read as `wanted`; `hint` says what else may be."""
    kind, version = _split(wanted)
    given, _, number = str(found).rpartition("/")
    if given != kind or not re.fullmatch("[0-9]{1,9}", number):
        what = f"is of kind {reprlib.repr(found)}" if found else "was not written by structlearn"
        raise FormatError(f"{path}: the file {what}, but one of kind {wanted!r} is needed{hint}")
    if int(number) > version:
        raise FormatError(
            f"{path}: the file was written as {found!r} by a newer structlearn, and this one "
            f"reads up to {wanted!r}; upgrade structlearn"
        )


def _split(schema: str) -> tuple[str, int]:
    kind, _, version = schema.rpartition("/")
    if not kind or not version.isdecimal():
        raise ArgumentError(f"schema={schema!r} must be a name and a version, as in 'model/1'")
    return kind, int(version)


def _plain(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in "fiub" or array.itemsize > 8:
        raise ArgumentError(
            f"the array {name!r} has the type {array.dtype}; only numbers and truth values can "
            f"be stored"
        )
    return np.asarray(array, array.dtype.newbyteorder("<"), order="C")


def _listed(value: Any) -> Any:
    """Turn what numpy made into what JSON knows."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
