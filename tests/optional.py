"""What is not installed everywhere."""

from __future__ import annotations

import importlib

import pytest


def import_or_skip(name):
    """Import a module, or skip where it needs Triton and that is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != "triton":
            raise
        pytest.skip("kernels of cards need Triton")
