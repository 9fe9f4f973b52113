"""Whole files, and folders of data."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import Any


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that others see all of it or nothing, even if this process is killed."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(data)
    os.replace(part, path)


def save_picture(figure: Any, path: Path, **settings: Any) -> None:
    """Write a figure of matplotlib as PNG."""
    data = BytesIO()
    figure.savefig(data, format="png", **settings)
    write_bytes(path, data.getvalue())


def is_here(folder: str) -> bool:
    """Tell whether a data set is on this machine."""
    from structlearn.datasets import data_path  # slow to import, and help must come at once
    from structlearn.errors import DataNotFoundError

    try:
        return data_path(folder).exists()
    except DataNotFoundError:
        return False
