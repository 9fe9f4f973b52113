"""What the pictures of experiments share: figures and colours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

#: Okabe and Ito's colours, which people who see few colours can tell apart.
PALETTE = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000",
)  # fmt: skip
_DASHES = ("-", "--", "-.", ":")


def new_figure(width: float = 6.4, height: float = 4.0) -> Any:
    """Return an empty figure, made without pyplot: nothing opens a window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=120, layout="constrained")


def styled(lines: Mapping[str, T]) -> Iterator[tuple[str, T, dict[str, Any]]]:
    """Names, lines and how to draw each; they can be told apart without colours too."""
    for i, (name, line) in enumerate(lines.items()):
        style = {"color": PALETTE[i % len(PALETTE)], "linestyle": _DASHES[i % len(_DASHES)]}
        yield name, line, style | {"linewidth": 1.8}
