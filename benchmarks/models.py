"""The models that benchmarks run on, from seeds or from the folder in STRUCTLEARN_DATA."""

from __future__ import annotations

import os
import pathlib

import numpy as np

import structlearn as sl
from structlearn import grid_edges

SPREADS = {"s05": (0.5, 11), "s10": (1.0, 12), "s20": (2.0, 13)}


def data(*parts: str) -> pathlib.Path | None:
    """A file of the data folder, or None if it is not there."""
    folder = os.environ.get("STRUCTLEARN_DATA")
    path = pathlib.Path(folder, *parts) if folder else None
    return path if path is not None and path.exists() else None


def random_grid(tag: str = "s10") -> dict[str, np.ndarray]:
    """100x100 grid of five states, normal log potentials; pairs of spread 0.5, 1 or 2."""
    path = data("bench_gm", f"grid100_k5_{tag}.npz")
    if path is not None:
        return {k: v.astype(v.dtype if k == "edges" else float) for k, v in np.load(path).items()}
    spread, seed = SPREADS[tag]
    rng = np.random.default_rng(seed)
    edges = grid_edges(100, 100)
    unary = rng.normal(0, 1, (10_000, 5))
    pair = rng.normal(0, spread, (len(edges), 5, 5))
    # The stored models are rounded to single precision.
    single = [a.astype(np.float32).astype(float) for a in (unary, pair)]
    return {"unary": single[0], "pair": single[1], "edges": edges}


def as_graph(model: dict[str, np.ndarray]) -> sl.FactorGraph:
    return sl.pairwise(model["unary"], model["edges"], model["pair"])


def small_chain(rng: np.random.Generator) -> sl.FactorGraph:
    """A sentence to be tagged: 25 words, 9 tags."""
    return sl.chain(rng.normal(size=(25, 9)), rng.normal(size=(24, 9, 9)))


def small_hidden_chain(rng: np.random.Generator) -> sl.FactorGraph:
    """20 outputs and 20 hidden variables of four states."""
    outputs, hidden = rng.normal(size=(2, 20, 4))
    transitions, emissions = rng.normal(size=(19, 4, 4)), rng.normal(size=(20, 4, 4))
    return sl.hidden_chain(outputs, hidden, transitions, emissions)


def small_grid(rng: np.random.Generator) -> sl.FactorGraph:
    """A 4x4 patch, three states."""
    return sl.grid(rng.normal(size=(4, 4, 3)), rng.normal(size=(24, 3, 3)))
