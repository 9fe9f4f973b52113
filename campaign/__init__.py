"""Checks that run for hours: random problems against oracles, fuzzed files, killed processes.

``python -m campaign`` runs them in rounds until the time is over or something fails, and then says
how to see the failure again. Oracles are those of the tests.
"""

from __future__ import annotations

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[1]
for folder in ("tests/estimators/structured", "tests/rules", "tests", "src"):
    if str(ROOT / folder) not in sys.path:
        sys.path.insert(0, str(ROOT / folder))

from kernel_cache import kernel_hash  # noqa: E402

# As in the tests: Numba's cache does not see edits in a called file, so the folder's name must.
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".numba_cache" / kernel_hash()))
