"""Run benchmarks and print one table for each.

Usage: python benchmarks/run.py [bp] [batch] [linear] [junction] [startup] [map] [tagging] [ocr]
       [psl] [infinite] [layers]

Without names all run. Figures go to benchmarks/out as JSON, plots as PNG. Models that are not
made from seeds are looked for in the folder that STRUCTLEARN_DATA names.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import sys

NAMES = (
    "bp", "batch", "linear", "junction", "startup", "map", "tagging", "ocr", "psl", "infinite",
    "layers",
)  # fmt: skip
HERE = pathlib.Path(__file__).parent


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        print(f"no benchmark is called {unknown[0]!r}; choose from {', '.join(NAMES)}")
        return 2
    out = HERE / "out"
    out.mkdir(exist_ok=True)
    _prepare()
    from report import machine

    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    missed = []
    for name in names or NAMES:
        report = importlib.import_module(name).run(out)
        print(report.text(), flush=True)
        report.save(out)
        missed += [f"{name}: {row.what}" for row in report.rows if row.met is False]
    print(f"\nload average at the end {os.getloadavg()[0]:.2f}; figures and plots in {out}")
    print("missed: " + "; ".join(missed) if missed else "all targets met")
    return 0


def _prepare() -> None:
    """Keep compiled code apart for every state of the kernels; draw without a screen."""
    sys.path.append(str(HERE.parent / "tests"))
    from kernel_cache import kernel_hash

    folder = HERE.parent / ".numba_cache" / kernel_hash()
    os.environ.setdefault("NUMBA_CACHE_DIR", str(folder))
    os.environ.setdefault("MPLBACKEND", "Agg")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
