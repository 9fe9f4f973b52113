"""What all pictures share: figures, colours and the names of states.

Displays follow scikit-learn's: a class method takes what there is to show, `plot` draws it into
given axes or into a new figure, and `ax_` and `figure_` hold what was drawn. Figures are made
without pyplot, so nothing opens a window and nothing must be closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from typing import Any, TypeVar

import numpy as np

from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.text.labels import number_labels

T = TypeVar("T")

#: Okabe and Ito's colours, which people who see few colours can tell apart.
PALETTE = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000",
)  # fmt: skip


def new_figure(width: float = 6.4, height: float = 4.0) -> Any:
    """Return an empty figure that makes room for everything in it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "pictures need matplotlib, which is not installed: pip install structlearn[plot]"
        ) from None
    figure: Any = Figure(figsize=(width, height), dpi=120, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
    return figure


def state_colours(n_states: int, colours: str | Sequence[Any] | None = None) -> list[Any]:
    """One colour per state: by default `PALETTE`, or a colour map by name, or a list."""
    import matplotlib

    if colours is None:
        colours = PALETTE if n_states <= len(PALETTE) else "viridis"
    if isinstance(colours, str):
        chosen = matplotlib.colormaps[colours](np.linspace(0.0, 1.0, max(n_states, 2)))
        return [tuple(c) for c in chosen[:n_states]]
    if len(colours) < n_states:
        raise ArgumentError(f"{len(colours)} colours were given for {n_states} states")
    return list(colours[:n_states])


def styled(lines: Mapping[str, T], ax: Any) -> Iterator[tuple[str, T, dict[str, Any]]]:
    """Names, lines and how to draw each, other than those that are in the axes already.

    They can be told apart without colours too.
    """
    looks = cycle(zip(PALETTE, ("-", "--", "-.", ":") * 2, strict=True))
    new = islice(looks, len(ax.get_lines()), None)
    for (name, line), (colour, dashes) in zip(lines.items(), new, strict=False):
        yield name, line, {"color": colour, "linestyle": dashes, "linewidth": 1.8}


def draw_lines(ax: Any, lines: Mapping[str, Any], level: float, word: str, **settings: Any) -> Any:
    """Draw named lines (x, y), and one at a level, into given axes or a new figure."""
    ax = new_figure().subplots() if ax is None else ax
    for name, line, style in styled(lines, ax):
        ax.plot(*line, label=name, **style)
    if level:
        ax.axhline(level, color="0.5", linewidth=1, label=word)
    ax.set(**settings)
    ax.grid(color="0.9")
    ax.legend(frameon=False)
    return ax


def state_titles(names: Sequence[Any] | None, n_states: int) -> list[str]:
    """Return what to call every state: its name, or else its number."""
    if names is None:
        return [str(k) for k in range(n_states)]
    if len(names) < n_states:
        raise ArgumentError(f"{len(names)} state names were given for {n_states} states")
    return [str(name) for name in names[:n_states]]


def numbers_of(labels: Any, classes: Any) -> Ints:
    """Return the number of every label among the classes, -1 for what is none of them."""
    shape = labels.shape if isinstance(labels, np.ndarray) else len(labels)  # labels may be tuples
    return number_labels([labels], np.asarray(classes)).clip(min=-1).reshape(shape)
