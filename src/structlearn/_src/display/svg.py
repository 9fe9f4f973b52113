"""Charts as SVG text, for pages that must show themselves without a network or matplotlib.

Text and axes take the colour of the page, so that a chart fits light and dark pages. Every mark has
a title, which browsers show when the mouse rests on it and screen readers read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Floats
from structlearn._src.display.pictures import PALETTE

_WIDTH = 640  # of a chart, in its own units: the page scales it
_HEIGHT = 260  # two fifths of that: two charts fit on a screen
_LEFT = 64  # room for the numbers of the upright axis
_BOTTOM = 40  # and below the other one
_TICKS = 5  # about so many numbers on an axis
_GOLDEN = 137.508  # degrees: neighbours in a long list of colours are far apart on the wheel


def colour(i: int, n: int) -> str:
    """Return the colour of item `i` of `n`."""
    if n <= len(PALETTE):
        return PALETTE[i]
    return f"hsl({i * _GOLDEN % 360:.0f} 55% {38 + 14 * (i % 3)}%)"


def number(x: float) -> str:
    """Write a number as short as it can be understood."""
    return f"{x:,}" if isinstance(x, int) else f"{x:.4g}"


# ---- curves ------------------------------------------------------------------------------


def curves(
    lines: Mapping[str, tuple[Any, Any]], xlabel: str, ylabel: str, *, log: bool = False
) -> str:
    """Draw named lines (x, y); what is not finite, or not above 0 on a log axis, is left out."""
    kept = {name: _known(*line, log) for name, line in lines.items()}
    kept = {name: line for name, line in kept.items() if len(line[0])}
    if not kept:
        return ""
    xs = np.concatenate([x for x, _ in kept.values()])
    ys = np.concatenate([y for _, y in kept.values()])
    across = _scale(xs, _LEFT, _WIDTH - 10)
    up = _scale(ys, _HEIGHT - _BOTTOM, 14)
    parts = [*_axes(xs, ys, across, up, log), _words(xlabel, ylabel)]
    for i, (name, (x, y)) in enumerate(kept.items()):
        points = " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in zip(x, y, strict=True))
        ink = colour(i, len(kept))
        last = 10.0 ** y[-1] if log else y[-1]
        told = f"<title>{escape(name)}: last {number(float(last))}</title>"
        parts.append(f'<polyline class="line" stroke="{ink}" points="{points}">{told}</polyline>')
        if len(x) == 1:
            parts.append(f'<circle r="3" fill="{ink}" cx="{across(x[0])}" cy="{up(y[0])}"/>')
    return _svg(_WIDTH, _HEIGHT, parts, f"{ylabel} against {xlabel}") + legend(list(kept))


def _known(x: Any, y: Any, log: bool) -> tuple[Floats, Floats]:
    x = np.asarray(x, np.float64)
    y = np.asarray(y, np.float64)
    known = np.isfinite(y) & ((y > 0) | (not log))
    shown = y[known]
    return x[known], np.log10(shown) if log else shown


def _scale(values: Floats, low: float, high: float) -> Callable[[float], float]:
    """Return the map from the range of the values to that of the page."""
    first = float(values.min())
    length = float(values.max()) - first or 1.0
    return lambda value: low + (high - low) * (value - first) / length


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers from `low` to `high`, about `_TICKS` of them.

    Examples
    --------
    >>> ticks(0.0, 10.0)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    length = high - low
    if not length > 0:
        return [low]
    unit = 10.0 ** math.floor(math.log10(length / _TICKS))
    step = next(unit * m for m in (1, 2, 5, 10) if length / (unit * m) <= _TICKS)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _axes(
    xs: Floats,
    ys: Floats,
    across: Callable[[float], float],
    up: Callable[[float], float],
    log: bool,
) -> Iterator[str]:
    for x in ticks(float(xs.min()), float(xs.max())):
        place = f'x="{across(x):.1f}" y="{_HEIGHT - _BOTTOM + 16}"'
        yield f'<text {place} text-anchor="middle">{number(x)}</text>'
    for y in ticks(float(ys.min()), float(ys.max())):
        height = f"{up(y):.1f}"
        shown = number(10.0**y if log else y)
        yield f'<line class="rule" x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{height}" y2="{height}"/>'
        yield f'<text x="{_LEFT - 6}" y="{height}" dy="4" text-anchor="end">{shown}</text>'


def _words(xlabel: str, ylabel: str) -> str:
    middle = (_HEIGHT - _BOTTOM) / 2
    across = (
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(xlabel)}</text>'
    )
    turned = f'transform="translate(12 {middle}) rotate(-90)" text-anchor="middle"'
    return f"{across}<text {turned}>{escape(ylabel)}</text>"


# ---- bars and tables ---------------------------------------------------------------------


def bars(names: Sequence[str], values: Sequence[float], form: Callable[[float], str]) -> str:
    """Draw one bar for each value, which may be negative, with its number behind it."""
    if not len(names):
        return ""
    left = min(300, 16 + 7 * max(map(len, names)))
    row = 22
    low = min(0.0, *map(float, values))
    high = max(0.0, *map(float, values))
    room = _WIDTH - left - 76  # behind the longest bar stands its number
    unit = room / ((high - low) or 1.0)
    zero = left - low * unit
    parts = []
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        y = i * row
        size = abs(value) * unit
        start = zero if value >= 0 else zero - size
        short = name if len(name) <= 40 else f"{name[:39]}\u2026"
        told = f"<title>{escape(name)}: {form(value)}</title>"
        box = f'x="{start:.1f}" y="{y + 4}" width="{max(size, 0.5):.1f}" height="14"'
        ink = PALETTE[0] if value >= 0 else PALETTE[5]
        parts.append(f'<text x="{left - 6}" y="{y + 15}" text-anchor="end">{escape(short)}</text>')
        parts.append(f'<rect {box} fill="{ink}">{told}</rect>')
        parts.append(
            f'<text x="{max(start + size, zero) + 5:.1f}" y="{y + 15}">{form(value)}</text>'
        )
    return _svg(_WIDTH, row * len(names) + 4, parts, "bars")


def heat(
    table: Any,
    rows: Sequence[str],
    columns: Sequence[str],
    form: Callable[[float], str],
    *,
    signed: bool = False,
    across: str = "",
    down: str = "",
) -> str:
    """Draw a table as coloured cells; `signed` gives numbers below 0 a colour of their own."""
    values = np.asarray(table, np.float64)
    most = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    size = max(9, min(34, 560 // max(len(columns), 1)))  # cells that can be hit by a mouse
    left = 34 + 7 * max((len(name) for name in rows), default=0)  # beside the word on the left
    top = 34 + 6 * max((len(name) for name in columns), default=0)  # below the word above
    parts = [f'<text x="{left}" y="12">{escape(across)}</text>']
    parts.append(f'<text transform="translate(10 {top + 20}) rotate(90)">{escape(down)}</text>')
    for j, name in enumerate(columns):
        place = f"translate({left + j * size + size / 2 + 4} {top - 4}) rotate(-60)"
        parts.append(f'<text transform="{place}">{escape(name)}</text>')
    for i, name in enumerate(rows):
        y = top + i * size
        parts.append(
            f'<text x="{left - 5}" y="{y + size / 2 + 4}" text-anchor="end">{escape(name)}</text>'
        )
        for j, other in enumerate(columns):
            share = values[i, j] / most
            told = f"<title>{escape(name)}, {escape(other)}: {form(values[i, j])}</title>"
            box = f'x="{left + j * size}" y="{y}" width="{size - 1}" height="{size - 1}"'
            parts.append(f"<rect {box} {_shade(share, signed)}>{told}</rect>")
    return _svg(
        left + size * len(columns) + 30, top + size * len(rows) + 6, parts, "table of colours"
    )


def _shade(share: float, signed: bool) -> str:
    if not math.isfinite(share):
        return 'class="empty"'
    ink = PALETTE[5] if signed and share < 0 else PALETTE[0]
    return f'fill="{ink}" fill-opacity="{0.04 + 0.96 * min(abs(share), 1.0):.3f}"'


# ---- along a sequence --------------------------------------------------------------------


def timeline(states: Any, names: Sequence[str], title: str = "") -> str:
    """Draw the states along a sequence as a band of colours, one box for every run."""
    runs = [(state, len(list(group))) for state, group in groupby(np.asarray(states).tolist())]
    length = sum(n for _, n in runs) or 1
    unit = (_WIDTH - 20) / length
    parts = [f'<text x="10" y="12">{escape(title)}</text>'] if title else []
    place = 0
    for state, n in runs:
        told = f"<title>{escape(names[state])}: {place} to {place + n - 1}</title>"
        box = f'x="{10 + place * unit:.2f}" y="18" width="{n * unit:.2f}" height="22"'
        parts.append(f'<rect {box} fill="{colour(state, len(names))}">{told}</rect>')
        place += n
    return _svg(_WIDTH, 44, parts, "states along a sequence")


def stacked(shares: Any, names: Sequence[str], words: Sequence[str]) -> str:
    """Draw probabilities (positions, names) as stacked boxes, a word below each position."""
    values = np.asarray(shares, np.float64)
    size = max(26, 7 * max((len(word) for word in words), default=0) // 2 + 8)
    tall = 110
    parts = []
    for i, word in enumerate(words):
        base = float(tall)
        for k, share in enumerate(values[i]):
            height = tall * float(share)
            base -= height
            if height > 0.5:  # thinner boxes cannot be seen
                told = f"<title>{escape(word)}: {escape(names[k])} {share:.3f}</title>"
                box = f'x="{i * size + 4}" y="{base:.1f}" width="{size - 3}" height="{height:.1f}"'
                parts.append(f'<rect {box} fill="{colour(k, len(names))}">{told}</rect>')
        place = f"translate({i * size + size / 2} {tall + 14}) rotate(40)"
        parts.append(f'<text transform="{place}">{escape(word)}</text>')
    longest = max((len(word) for word in words), default=0)
    return _svg(size * len(words) + 7 * longest, tall + 26 + 5 * longest, parts, "probabilities")


def legend(names: Sequence[str]) -> str:
    """Name the colours; nothing for a single line."""
    if len(names) < 2:
        return ""
    keys = (
        f'<span class="key"><i style="background:{colour(i, len(names))}"></i>{escape(name)}</span>'
        for i, name in enumerate(names)
    )
    return f'<p class="legend">{"".join(keys)}</p>'


def _svg(width: float, height: float, parts: Iterable[str], title: str) -> str:
    box = f'viewBox="0 0 {width:.0f} {height:.0f}" style="width:{width:.0f}px"'
    return f'<svg {box} role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
