"""Arrays and plain facts in one file: safetensors with JSON, so that loading runs no code.

A safetensors file is the length of a header in eight bytes, the header in JSON, and the arrays.
It is written here rather than by its library, which puts facts in random order, so that equal
contents make equal files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common.errors import ArgumentError, FormatError
from structlearn._src.common.paths import PathLike, replacing

Arrays = dict[str, NDArray[Any]]


def write(
    path: PathLike, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any], schema: str
) -> None:
    """Write arrays and facts; others see the old file or the whole new one.

    Parameters
    ----------
    arrays
        Numbers or truth values, of any shape.
    meta
        What JSON can say; numpy's scalars and arrays become numbers and lists.
    schema
        What kind of file this is and how it is laid out, as in ``"structlearn.model/1"``.
    """
    _split(schema)
    pairs = [(name, _plain(name, array)) for name, array in arrays.items()]
    plain = dict(sorted(pairs, key=lambda pair: (-pair[1].itemsize, pair[0])))
    facts = {"schema": schema, "meta": json.dumps(dict(meta), default=_listed)}
    header = json.dumps({"__metadata__": facts, **_places(plain)}).encode()
    header += b" " * (-len(header) % 8)
    with replacing(path) as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for array in plain.values():
            file.write(array.data)


def _places(arrays: Arrays) -> dict[str, Any]:
    """Return type, shape and place of every array among the bytes after the header."""
    out, start = {}, 0
    for name, array in arrays.items():
        kind = "BOOL" if array.dtype == np.bool_ else f"{array.dtype.kind}{8 * array.itemsize}"
        stop = start + array.nbytes
        out[name] = {"dtype": kind.upper(), "shape": array.shape, "data_offsets": [start, stop]}
        start = stop
    return out


def read(path: PathLike, schema: str) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and facts that `write` has put into a file.

    A file of an older version is returned as it is; the entry ``"schema"`` of the facts tells
    what it was written as.

    Raises
    ------
    FormatError
        The file is cut short, foreign, of another kind or from a newer version.
    """
    from safetensors import SafetensorError, safe_open

    with open(path, "rb"):  # a missing or closed file is reported under its own name
        pass
    try:
        with safe_open(path, framework="numpy") as file:
            facts = file.metadata() or {}
            _check(path, facts.get("schema", ""), schema)
            arrays = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as reason:
        raise FormatError(
            f"{path}: the file is cut short or was not written by structlearn ({reason}); "
            f"give a file of kind {schema}"
        ) from None
    return arrays, _facts(path, facts)


def _facts(path: PathLike, facts: Mapping[str, str]) -> dict[str, Any]:
    try:
        meta = json.loads(facts["meta"])
    except (KeyError, ValueError, RecursionError):  # also numbers too long, and lists too deep
        meta = None
    if not isinstance(meta, dict):
        raise FormatError(f"{path}: the file's facts are damaged; write it anew")
    return meta | {"schema": facts["schema"]}


def _check(path: PathLike, found: str, wanted: str) -> None:
    """See that a file of schema `found` can be read as `wanted`."""
    kind, version = _split(wanted)
    given, _, number = found.rpartition("/")
    if given != kind or not number.isdecimal():
        what = f"is of kind {found!r}" if found else "was not written by structlearn"
        raise FormatError(f"{path}: the file {what}, but one of kind {wanted!r} is needed")
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
