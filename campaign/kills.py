"""Training that is killed at any moment: it goes on from its checkpoint to the same model."""

from __future__ import annotations

import functools
import pathlib
import time
import warnings
from typing import Any

import numpy as np

from campaign.base import expect
from campaign.children import Child
from campaign.parsers import folder
from structlearn import Checkpoint, HingeField, SequenceLabeler, save

KILLS = 5
VARIANTS: tuple[dict[str, Any], ...] = (
    {"solver": "lbfgs"},
    {"solver": "owlqn", "l1_ratio": 0.5},
    {"solver": "sdca"},
    {"solver": "frank-wolfe", "loss": "hinge"},
    {"solver": "adagrad", "loss": "hinge"},
    {"solver": "sgd"},
    {"hidden": "layer", "loss": "marginal", "driver": "cccp"},
    {"hidden": "node"},
)


@functools.cache
def data() -> tuple[list[Any], list[Any]]:
    """Sequences that take a while to learn."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(int(n), 4)) for n in rng.integers(2, 10, 30)]
    return X, [x[:, :3].argmax(axis=1) for x in X]


def train(variant: int, place: pathlib.Path, name: str) -> None:
    """Fit with a checkpoint at every iteration, and save the model or the weights."""
    warnings.simplefilter("ignore")
    checkpoint = Checkpoint(place / f"{name}.run", iterations=1)
    if variant == len(VARIANTS):
        field = _field()
        truth = np.linspace(0.0, 1.0, 12)
        field.fit(truth, max_iter=15, tol=None, checkpoint=checkpoint)
        (place / f"{name}.model").write_bytes(field.weights_.tobytes())
        return
    options = {"max_iter": 15, "tol": None, "n_jobs": 1, "random_state": 0, **VARIANTS[variant]}
    labeler = SequenceLabeler(checkpoint=checkpoint, **options)
    save(labeler.fit(*data()), place / f"{name}.model")


def _field() -> HingeField:
    rng = np.random.default_rng(1)
    A = np.where(rng.random((40, 12)) < 0.3, rng.normal(size=(40, 12)), 0.0)
    return HingeField(
        A, rng.normal(size=40), powers=2, groups=np.arange(40) % 4, weights=np.ones(4), n_jobs=1
    )


def check(rng: np.random.Generator) -> None:
    """Kill runs of one kind, and compare those that end with one that nobody disturbed."""
    variant = int(rng.integers(len(VARIANTS) + 1))
    with folder() as place:
        train(variant, place, "warm")  # compiles
        began = time.perf_counter()
        _whole(Child(lambda: train(variant, place, "calm")))
        taken = time.perf_counter() - began
        right = (place / "calm.model").read_bytes()
        kills = 0
        while True:
            child = Child(lambda: train(variant, place, "killed"))
            if kills < KILLS and child.wait(float(rng.uniform(0.0, taken))) is None:
                child.kill()
                child.ended()
                kills += 1
                continue
            if kills == KILLS:
                _whole(child)
            found = (place / "killed.model").read_bytes()
            expect(found == right, f"variant {variant} after {kills} kills: another model")
            if kills == KILLS:
                return
            for name in ("killed.run", "killed.model"):
                (place / name).unlink()


def _whole(child: Child) -> None:
    ended = child.ended()
    expect(ended.code == 0, f"training ended badly: {ended}")
