"""Draw the picture of the landing page: ``python docs/hero.py``.

One image, seen through noise, one pixel in ten labelled. Two models learn from it: one looks at
each pixel alone, the other one at its neighbours too.
"""

import pathlib

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

from papers.tour.image import scene
from structlearn import GridLabeler
from structlearn._src.display.pictures import PALETTE

NOISE = 0.8  # standard deviation, in levels of grey
LABELLED = 0.1
INK = "#333333"


def main() -> None:
    rng = np.random.default_rng(0)
    truth = scene()
    seen = truth + rng.normal(0.0, NOISE, truth.shape)
    labels = np.where(rng.random(truth.shape) < LABELLED, truth, -1)
    features = np.stack([seen, seen**2], axis=-1)
    alone = GridLabeler(edges="none", random_state=0).fit([features], [labels])
    joint = GridLabeler(edges="potts", inference="trw", random_state=0).fit([features], [labels])
    flat = alone.predict([features])[0]
    best = joint.predict([features])[0]
    sure = joint.predict_marginals([features])[0].max(axis=-1)
    wrong = [100 * (found != truth).mean() for found in (flat, best)]
    print(f"wrong: {wrong[0]:.1f} %, {wrong[1]:.1f} %")

    figure, axes = plt.subplots(1, 4, figsize=(12.0, 2.7), layout="constrained")
    axes[0].imshow(seen, cmap="gray", vmin=0, vmax=truth.max())
    rows, columns = np.nonzero(labels >= 0)
    colours = np.array(PALETTE)[labels[rows, columns]]
    axes[0].scatter(columns, rows, s=5, c=colours, linewidths=0)
    for ax, found in zip(axes[1:3], (flat, best), strict=True):
        ax.imshow(np.array([mpl.colors.to_rgb(c) for c in PALETTE])[found])
    axes[3].imshow(1.0 - sure, cmap="magma", vmin=0.0, vmax=0.6)
    titles = (
        "given: one pixel in ten has a label",
        f"each pixel alone: {wrong[0]:.0f} % wrong",
        f"structlearn: {wrong[1]:.1f} % wrong",
        "and where it is unsure",
    )
    for ax, title in zip(axes, titles, strict=True):
        ax.set(xticks=[], yticks=[])
        ax.set_title(title, fontsize=12, color=INK)
        ax.spines[:].set_visible(False)
    here = pathlib.Path(__file__).parent
    figure.savefig(here / "_static" / "hero.png", dpi=120)


if __name__ == "__main__":
    main()
