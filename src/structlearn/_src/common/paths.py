"""Whole files in, whole files out."""

from __future__ import annotations

import errno
import glob
import gzip
import os
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from structlearn._src.common.errors import ArgumentError, FormatError

PathLike = str | os.PathLike[str]

_END = ".part"  # of the names of temporary files
_SHOWN = 40  # letters of a file's name in that of its temporary file, which may have 255 bytes
_FORGOTTEN = 60.0  # seconds without a write after which nobody is just about to lock a file


def as_path(path: PathLike) -> Path:
    """Return what a user gave as a path, if it can be one."""
    given = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(given, str) or "\0" in given:
        raise ArgumentError(f"{path!r} is no path; give a string without a null, or a Path")
    return Path(given)


def read_bytes(path: PathLike) -> bytes:
    """Return the bytes of a file, unpacked if it is gzipped, whatever its name."""
    data = as_path(path).read_bytes()
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


def is_stream(path: PathLike) -> bool:
    """Tell whether a path is no plain file: a device, a pipe, or a stream such as /dev/stdout."""
    given = as_path(path)
    top, name = given.parts[:2], given.parts[2:3]
    named = top == ("/", "proc") or (top == ("/", "dev") and name != ("shm",))
    return named or (given.exists() and not given.is_file())


@contextmanager
def replacing(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file so that others see the old one or the whole new one, never a part.

    The bytes go to a temporary file in the same folder, which takes the place of `path` once they
    are on the disk. After an error it is removed and `path` is as before; after a kill it is
    removed by a later write. A link stays a link, and a file keeps its permissions. A device or a
    pipe, which nothing may take the place of, is written to as it is.
    """
    if is_stream(path):
        with open(path, "wb") as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    start = f".{target.name[:_SHOWN]}."
    part = target.with_name(f"{start}{os.urandom(4).hex()}{_END}")
    try:
        with open(part, "xb") as file:
            _lock(file)
            with suppress(OSError):  # a new file, or a file system without permissions
                shutil.copymode(target, part)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
        _sweep(target.parent, start)
    except OSError as error:
        if error.errno is None or error.filename not in (None, os.fspath(part)):
            raise  # about something else than this file
        lost = not target.parent.is_dir()
        raise OSError(error.errno, error.strerror, str(target.parent if lost else path)) from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _lock(file: BinaryIO) -> bool:
    """Take a lock that ends with the process; tell whether nobody else had it."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):  # another system, a file system without locks, or taken
        return False
    return True


def _sweep(folder: Path, start: str) -> None:
    """Put the new name on the disk, and remove what killed processes have left of the file."""
    with suppress(OSError):  # the file is written; neither is worth an error
        for part in folder.glob(f"{glob.escape(start)}*{_END}"):
            with open(part, "rb") as file:
                if time.time() - part.stat().st_mtime > _FORGOTTEN and _lock(file):
                    part.unlink()
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
