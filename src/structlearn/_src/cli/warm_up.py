"""``structlearn warm-up``: compile everything once, for containers and first users."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import time
from typing import Any

from structlearn._src.cli.arguments import add_command

_DESCRIPTION = """\
Compile all kernels by solving a tiny problem of every kind. The machine code is kept on disk (in
the folder that NUMBA_CACHE_DIR names, else beside the library), so that later processes start at
once: run this when a container image is built.
"""


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    told = "compile everything now, for containers"
    add_command(subparsers, "warm-up", run, told, _DESCRIPTION)


def run(args: argparse.Namespace) -> int:
    """Solve a tiny problem of every kind and say how long each took."""
    import numba  # noqa: F401 -- with it loaded, no kernel is too small to be compiled

    from structlearn._src.cli.tiny_problems import KINDS

    started = time.perf_counter()
    for name, solve in KINDS.items():
        begun = time.perf_counter()
        solve()
        print(f"{name:<16} {time.perf_counter() - begun:6.2f} s", flush=True)
    print(f"{'all':<16} {time.perf_counter() - started:6.2f} s")
    print(_where_kept())
    return 0


def _where_kept() -> str:
    ready = [kernel for kernel in kernels().values() if kernel.nopython_signatures]
    folders = {kernel.stats.cache_path for kernel in ready} - {None}
    if folders:
        return f"{len(ready)} kernels are kept in {min(folders)}"
    return (
        f"{len(ready)} kernels were compiled, but no folder can be written to keep them; "
        f"set NUMBA_CACHE_DIR to one that can"
    )


def kernels() -> dict[str, Any]:
    """All compiled functions that Python calls, by name."""
    import structlearn._src.kernels as package

    found = {}
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for name, value in vars(importlib.import_module(module.name)).items():
            options = getattr(value, "targetoptions", {"no_cpython_wrapper": True})
            inner = name.startswith("_") or options.get("no_cpython_wrapper")
            if not inner and value.__module__ == module.name:
                found[f"{module.name}.{name}"] = value
    return found
