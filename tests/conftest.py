"""Shared fixtures; compiled code is cached in a folder named by the kernels' own text.

Property tests draw the same examples in every run, so that a change is what a failure speaks of:
``--hypothesis-profile default`` draws others, and `make campaign` looks for failures all the time.
``--order-seed 7`` runs the test files, and the tests in each, in another order: none may need
what another has left behind.
"""

from __future__ import annotations

import os
import pathlib
import random
import signal

import pytest
from hypothesis import HealthCheck, settings

from kernel_cache import kernel_hash

_ROOT = pathlib.Path(__file__).parents[1]

# Numba's cache does not see edits in a called file, so the folder's name must.
os.environ.setdefault("NUMBA_CACHE_DIR", str(_ROOT / ".numba_cache" / kernel_hash()))

# A busy machine is no failure, however slow it is.
slow = [HealthCheck.too_slow]
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=slow)
settings.load_profile("steady")

# Jobs in the background ignore interrupts, and so would the processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--order-seed", type=int, help="shuffle files, and the tests in each")


def pytest_collection_modifyitems(config, items):
    seed = config.getoption("--order-seed")
    if seed is None:
        return
    rng = random.Random(seed)
    files = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    shuffled = rng.sample(list(files.values()), len(files))
    items[:] = [item for tests in shuffled for item in rng.sample(tests, len(tests))]


@pytest.fixture
def data_folder():
    """The folder of real data sets, or a skip with the reason."""
    folder = os.environ.get("STRUCTLEARN_DATA")
    if not folder or not pathlib.Path(folder).is_dir():
        pytest.skip("real data: set STRUCTLEARN_DATA to the folder that holds it")
    return pathlib.Path(folder)
