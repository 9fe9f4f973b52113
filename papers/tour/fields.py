"""Images segmented after most of their labels were hidden."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from papers.arrays import Floats, Ints
from papers.pictures import PALETTE, new_figure
from papers.tour.base import Stop, prose, table
from structlearn import GridDisplay, GridLabeler, grid, infer

_SHAPE, _CROPS = (16, 24), 3
_BOND = 1.0  # log potential of two neighbours with the same crop
_IMAGES = 3
_HIDDEN = 0.9  # share of the labels that are hidden


class _Fields(NamedTuple):
    images: list[Floats]
    truth: list[Ints]


def run(rng: np.random.Generator) -> Stop:
    """Draw fields, hide most labels, learn from the rest."""
    train, test = _sow(rng), _sow(rng)
    labels = [np.where(rng.random(_SHAPE) < _HIDDEN, -1, y) for y in train.truth]
    common: dict[str, Any] = {"fit_intercept": False, "inference": "bp", "random_state": 0}
    ways = {
        "each pixel alone": GridLabeler(edges="none", **common),
        "hidden CRF": GridLabeler(edges="potts", **common),
        "marginal structured SVM": GridLabeler(
            edges="potts", loss="marginal", max_iter=10, **common
        ),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few steps of the SVM do here, and it says so
        fitted = {name: way.fit(train.images, labels) for name, way in ways.items()}
    crf, svm = (fitted[name] for name in list(ways)[1:])
    known = sum(int((y >= 0).sum()) for y in labels)
    lines = [
        *prose(
            f"Fields of {_CROPS} crops, seen through noise as strong as the signal. Equal "
            f"neighbours have a bonus of {_BOND} in truth. Out of {labels[0].size * _IMAGES} "
            f"pixels {known} are labelled; the others are hidden variables, and learning sums over "
            f"what they may be."
        ),
        "",
        *table(
            ["pixels right"],
            {name: [way.score(test.images, test.truth)] for name, way in fitted.items()},
        ),
        "",
        f"The bonus is learnt as {crf.transitions_[0, 0]:.2f} by the hidden CRF. The SVM, which is "
        f"no estimate\nof probabilities, settles for {svm.transitions_[0, 0]:.2f}.",
    ]
    return Stop(
        "Learning from images with one label in ten",
        lines,
        {"fields": lambda: _draw(labels[0], train.images[0], test, crf)},
    )


def _sow(rng: np.random.Generator) -> _Fields:
    """Draw labels from a field with a bonus for equal neighbours, and look at them badly."""
    graph = grid(np.zeros((*_SHAPE, _CROPS)), _BOND * np.eye(_CROPS))
    answer = infer(
        graph, "samples", n_samples=_IMAGES, method="gibbs", burn_in=300, random_state=rng
    )
    assert answer.samples is not None
    truth = answer.samples.reshape(_IMAGES, *_SHAPE)
    noise = rng.normal(size=(*truth.shape, _CROPS))
    return _Fields(list(np.eye(_CROPS)[truth] + noise), list(truth))


def _draw(labels: Ints, image: Floats, test: _Fields, crf: GridLabeler) -> Any:
    figure = new_figure(10.5, 5.0)
    axes = figure.subplots(2, 3).ravel()
    style: dict[str, Any] = {"title": "labels in training", "legend": False}
    _show(axes[0], image, "an image in training")
    GridDisplay(labels, n_states=_CROPS).plot(axes[3], **style)
    seen, truth = test.images[0], test.truth[0]
    _show(axes[1], seen, "a new image")
    GridDisplay(truth).plot(axes[4], title="its truth", legend=False)
    GridDisplay.from_estimator(crf, seen).plot(axes[2], title="hidden CRF", legend=False)
    GridDisplay.from_estimator(crf, seen, show="certainty").plot(axes[5], title="how sure")
    return figure


def _show(ax: Any, image: Floats, title: str) -> None:
    """Mix the colours of the crops by how much of each is seen."""
    from matplotlib.colors import to_rgb

    share = np.exp(image) / np.exp(image).sum(axis=-1, keepdims=True)
    ax.imshow(share @ np.array([to_rgb(c) for c in PALETTE[:_CROPS]]), interpolation="nearest")
    ax.set(xticks=[], yticks=[], title=title)
