"""Images segmented after most of their labels were hidden."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from papers.arrays import Floats, Ints
from papers.pictures import PALETTE, new_figure
from papers.tour.base import Stop, prose, table
from structlearn import GridDisplay, GridLabeler

_SHAPE, _CROPS = (16, 24), 3
_SMALLEST, _LARGEST = 4, 9  # sides of fields, in pixels
_NAMES = ("wheat", "maize", "beet")
_IMAGES = 3
_HIDDEN = 0.9  # share of the labels that are hidden


HEADING = "Learning from images with one label in ten"


class _Fields(NamedTuple):
    images: list[Floats]
    truth: list[Ints]


def run(rng: np.random.Generator) -> Stop:
    """Draw fields, hide most labels, learn from the rest."""
    train, test = _sow(rng), _sow(rng)
    labels = [np.where(rng.random(_SHAPE) < _HIDDEN, -1, y) for y in train.truth]
    common: dict[str, Any] = {"fit_intercept": False, "random_state": 0}
    ways = {
        "each pixel alone": GridLabeler(edges="none", **common),
        "hidden CRF": GridLabeler(edges="potts", inference="trw", **common),
        "marginal structured SVM": GridLabeler(
            edges="potts", loss="marginal", inference="bp", max_iter=10, **common
        ),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few steps of the SVM do here, and it says so
        fitted = {name: way.fit(train.images, labels) for name, way in ways.items()}
    known = sum(int((y >= 0).sum()) for y in labels)
    lines = [
        *prose(
            f"Fields of {_CROPS} crops, seen through noise as strong as the signal. Out of "
            f"{labels[0].size * _IMAGES} pixels {known} are labelled; the others are hidden "
            f"variables, and learning sums over what they may be."
        ),
        "",
        *table(
            ["pixels right"],
            {name: [way.score(test.images, test.truth)] for name, way in fitted.items()},
        ),
    ]
    return Stop(HEADING, lines, {"fields": lambda: _draw(labels[0], train.images[0], test, fitted)})


def _sow(rng: np.random.Generator) -> _Fields:
    """Cut the land into fields with a crop each, and look at them badly."""
    truth = [_divide(rng) for _ in range(_IMAGES)]
    return _Fields(
        [np.eye(_CROPS)[crops] + rng.normal(size=(*_SHAPE, _CROPS)) for crops in truth], truth
    )


def _divide(rng: np.random.Generator) -> Ints:
    """Cut the longer side of a piece of land at random, until fields are small enough."""
    crops = np.zeros(_SHAPE, np.int64)
    pieces = [(0, _SHAPE[0], 0, _SHAPE[1])]
    while pieces:
        top, bottom, left, right = pieces.pop()
        tall, wide = bottom - top, right - left
        if max(tall, wide) < _LARGEST:
            crops[top:bottom, left:right] = rng.integers(_CROPS)
            continue
        cut = int(rng.integers(_SMALLEST, max(tall, wide) - _SMALLEST + 1))
        if tall > wide:
            pieces += [(top, top + cut, left, right), (top + cut, bottom, left, right)]
        else:
            pieces += [(top, bottom, left, left + cut), (top, bottom, left + cut, right)]
    return crops


def _draw(labels: Ints, image: Floats, test: _Fields, fitted: dict[str, GridLabeler]) -> Any:
    figure = new_figure(12.5, 5.0)
    axes = figure.subplots(2, 4)
    rich = max(range(_IMAGES), key=lambda i: len(np.unique(test.truth[i])))  # with all crops
    seen, truth = test.images[rich], test.truth[rich]
    _show(axes[0, 0], image, "training: what is seen")
    known = f"training: {(labels >= 0).mean():.0%} of the labels"
    GridDisplay(labels, n_states=_CROPS).plot(axes[1, 0], title=known, legend=False)
    _show(axes[0, 1], seen, "a new image")
    GridDisplay(truth, state_names=_NAMES).plot(axes[1, 1], title="its truth")
    places = axes[0, 2], axes[0, 3], axes[1, 2]
    for ax, (name, labeler) in zip(places, fitted.items(), strict=True):
        title = f"{name}: {labeler.score([seen], [truth]):.0%} right"
        GridDisplay.from_estimator(labeler, seen).plot(ax, title=title, legend=False)
        ax.title.set_fontsize("medium")
    sure = GridDisplay.from_estimator(fitted["hidden CRF"], seen, show="certainty")
    sure.plot(axes[1, 3], title="how sure the CRF is")
    return figure


def _show(ax: Any, image: Floats, title: str) -> None:
    """Mix the colours of the crops by how much of each is seen."""
    from matplotlib.colors import to_rgb

    share = np.exp(image) / np.exp(image).sum(axis=-1, keepdims=True)
    ax.imshow(share @ np.array([to_rgb(c) for c in PALETTE[:_CROPS]]), interpolation="nearest")
    ax.set(xticks=[], yticks=[], title=title)
