"""How pictures of the gallery look: as those of the library's own displays."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from cycler import cycler

from structlearn._src.display.pictures import PALETTE


def style(*_: Any) -> None:
    """Set colours, sizes and axes for the next script; sphinx-gallery calls this before each."""
    mpl.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=PALETTE),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": "large",
            "figure.constrained_layout.use": True,
            "figure.dpi": 120,
            "figure.figsize": (6.4, 4.0),
            "font.size": 11.0,
            "image.cmap": "viridis",
            "legend.frameon": False,
            "lines.linewidth": 1.8,
        }
    )
