"""Shared fixtures; compiled code is cached in a folder named by the kernels' own text."""

from __future__ import annotations

import os
import pathlib

import pytest

from kernel_cache import kernel_hash

_ROOT = pathlib.Path(__file__).parents[1]

# Numba's cache does not see edits in a called file, so the folder's name must.
os.environ.setdefault("NUMBA_CACHE_DIR", str(_ROOT / ".numba_cache" / kernel_hash()))


@pytest.fixture
def data_folder():
    """The folder of real data sets, or a skip with the reason."""
    folder = os.environ.get("STRUCTLEARN_DATA")
    if not folder or not pathlib.Path(folder).is_dir():
        pytest.skip("real data: set STRUCTLEARN_DATA to the folder that holds it")
    return pathlib.Path(folder)
