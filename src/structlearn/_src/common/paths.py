"""Whole files in, whole files out."""

from __future__ import annotations

import gzip
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from structlearn._src.common.errors import FormatError

PathLike = str | os.PathLike[str]


def read_bytes(path: PathLike) -> bytes:
    """Return the bytes of a file, unpacked if it is gzipped, whatever its name."""
    data = Path(path).read_bytes()
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as reason:
        raise FormatError(f"{path}: the gzip file is damaged ({reason}); fetch it again") from None


def write_bytes(path: PathLike, data: bytes) -> None:
    """Write a whole file at once, gzipped if its name ends in ``.gz``."""
    with replacing(path) as file:
        file.write(gzip.compress(data, mtime=0) if os.fspath(path).endswith(".gz") else data)


@contextmanager
def replacing(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file so that others see the old one or the whole new one, never a part.

    The bytes go to a temporary file in the same folder, which takes the place of `path` at the
    end. After an error it is removed and `path` is as before. A device or a pipe, which nothing
    may take the place of, is written to as it is.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        with open(target, "wb") as file:
            yield file
        return
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            yield file
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
