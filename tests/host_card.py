"""A card for tests: the same code on the host, by PyTorch or by Triton's interpreter."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

from structlearn._src.common.place import at
from structlearn._src.field.consensus import Consensus
from structlearn._src.field.hinges import Hinges
from structlearn._src.places.cuda import Cuda

WEIGHTS = np.array([1.0, 0.3, 2.0])
OPTIONS = {"relaxation": 1.6, "stiffness": 5.0}
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed"
)


@contextmanager
def on_card():
    """Run a block as on a card."""
    place = Cuda("cpu")
    with place.entered(), at(place):
        yield place


def interpreted(code):
    """Run code in a process where kernels of Triton run in its interpreter, on the host.

    Triton decides for all functions of its own when it is imported.
    """
    beginning = "import numpy as np, torch\ntorch.set_num_threads(1)\n"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", beginning + code],
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def hub_field(rng, forms=400, variables=320, signs=True, hub=False, hard=False):
    """Forms of up to three variables; a hub is in all of them, and one form holds nearly all."""
    scopes = [rng.permutation(variables)[: rng.integers(0, 4)] for _ in range(forms)]
    if hub:
        scopes = [np.unique(np.append(scope, 0)) for scope in scopes]
        scopes[-1] = np.arange(300)
    entries = np.concatenate(scopes)
    lengths = [len(scope) for scope in scopes]
    sign = rng.choice([-1.0, 1.0], len(entries))
    coefficients = sign if signs else rng.normal(size=len(entries))
    kinds = rng.integers(0, 3, forms) if hard else np.zeros(forms, np.int64)
    kinds[np.array(lengths) == 0] = 0
    return Hinges(
        np.append(0, np.cumsum(lengths)), entries, coefficients, 0.4 * rng.normal(size=forms),
        kinds, rng.integers(1, 3, forms), rng.integers(0, 3, forms), variables, 3,
    )  # fmt: skip


def compare_steps(field, fixed, steps=(1, 6), dtype=None, close=1e-10):
    """Take the same steps of ADMM on the host and on a card."""
    import torch

    from structlearn._src.cuda.card_consensus import CardConsensus

    host = Consensus(field, fixed=fixed, **OPTIONS)
    dtype = dtype or torch.double
    card = CardConsensus(field, fixed=fixed, device="cpu", dtype=dtype, **OPTIONS)
    theirs, ours = host.begin(WEIGHTS), card.begin(WEIGHTS)
    assert ours.hinges == pytest.approx(theirs.hinges)
    for n in steps:
        host.run(WEIGHTS, theirs, n)
        card.run(WEIGHTS, ours, n)
        y, multipliers = card.arrays(card.snapshot(ours))
        assert y == pytest.approx(theirs.consensus, abs=close)
        assert multipliers == pytest.approx(theirs.multipliers, abs=close, rel=close)
        assert ours.hinges == pytest.approx(theirs.hinges, rel=close)
        assert ours.residuals == pytest.approx(theirs.residuals, rel=close)
        assert ours.iterations == theirs.iterations
        wanted, found = host.appraise(WEIGHTS, theirs), card.appraise(WEIGHTS, ours)
        assert found[1:4] == pytest.approx(wanted[1:4], rel=close)
        host.balance(theirs)
        card.balance(ours)
        assert ours.step == pytest.approx(float(theirs.step))
