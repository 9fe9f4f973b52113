"""A page of a report: one HTML file that needs no network, no server and no other file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.paths import as_path, write_bytes
from structlearn._src.display.svg import number
from structlearn._version import __version__


@dataclass
class Page:
    """Sections below a title, each a piece of HTML; `save` writes the file, notebooks show it."""

    title: str
    sections: list[tuple[str, str]] = field(default_factory=list)  #: heading and HTML

    def add(self, heading: str, *blocks: str, note: str = "") -> None:
        """Add a section; blocks that are empty are left out, and a section of none of them."""
        kept = [block for block in blocks if block]
        if kept:
            words = [f'<p class="note">{escape(note)}</p>'] if note else []
            self.sections.append((heading, "\n".join([*words, *kept])))

    def html(self) -> str:
        """Return the whole page."""
        links = "".join(
            f'<a href="#s{i}">{escape(heading)}</a>' for i, (heading, _) in enumerate(self.sections)
        )
        body = "\n".join(
            f'<section id="s{i}"><h2>{escape(heading)}</h2>\n{html}\n</section>'
            for i, (heading, html) in enumerate(self.sections)
        )
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            # A page asks for this by itself, and there is none to be had.
            '<link rel="icon" href="data:,">\n'
            f"<title>{escape(self.title)}</title>\n<style>\n{_asset('page.css')}</style>\n</head>\n"
            f"<body>\n<h1>{escape(self.title)}</h1>\n"
            f'<p class="note">structlearn {__version__}</p>\n<nav>{links}</nav>\n{body}\n'
            f"<script>\n{_asset('page.js')}</script>\n</body>\n</html>\n"
        )

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, which is there as a whole or not at all."""
        target = as_path(path)
        if not target.parent.is_dir():
            raise ArgumentError(
                f"path={str(path)!r} is in a folder that does not exist; make {target.parent} first"
            )
        write_bytes(target, self.html().encode())
        return target

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame, so that its style stays its own."""
        frame = 'style="width:100%;height:40rem;border:1px solid #ccc"'
        return f'<iframe {frame} srcdoc="{escape(self.html())}"></iframe>'


def _asset(name: str) -> str:
    return resources.files("structlearn._src.display").joinpath(name).read_text(encoding="utf-8")


# ---- blocks ------------------------------------------------------------------------------


def text(words: str) -> str:
    """Return a paragraph."""
    return f"<p>{escape(words)}</p>"


def figure(svg: str) -> str:
    """Return a chart that scrolls where the page is narrow; nothing for an empty one."""
    return f"<figure>{svg}</figure>" if svg else ""


def facts(known: Mapping[str, Any]) -> str:
    """Return a list of names and values."""
    rows = (f"<dt>{escape(name)}</dt><dd>{cell(value)}</dd>" for name, value in known.items())
    return f"<dl>{''.join(rows)}</dl>"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, search: bool = False) -> str:
    """Return a table that can be sorted, with a field to search it if that is wanted."""
    if not len(rows):
        return ""
    head = "".join(
        f'<th scope="col"><button type="button">{escape(name)}</button></th>' for name in columns
    )
    body = "\n".join(f"<tr>{''.join(map(_table_cell, row))}</tr>" for row in rows)
    block = (
        f'<div class="scroll"><table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
    if not search:
        return block
    field = '<label>Search <input class="filter" type="search"></label>'
    controls = f'<div class="controls">{field}<span class="status" role="status"></span></div>'
    return f'<div class="block">{controls}{block}</div>'


def stepper(steps: Mapping[str, str], what: str) -> str:
    """Return pieces of HTML of which one is shown at a time, chosen by name, buttons or keys."""
    if not steps:
        return ""
    options = "".join(
        f'<option value="{i}">{escape(name)}</option>' for i, name in enumerate(steps)
    )
    parts = "".join(f'<div class="step">{html}</div>' for html in steps.values())
    chooser = f"<label>{escape(what)} <select>{options}</select></label>"
    back = '<button type="button" class="back">\u2190 back</button>'
    onward = '<button type="button" class="next">next \u2192</button>'
    return f'<div class="stepper"><div class="controls">{back}{onward}{chooser}</div>{parts}</div>'


class Html(str):
    """Text that is HTML already."""


class Percent(float):
    """A share, which is shown as a percentage and sorted as a number."""


def cell(value: Any) -> str:
    """Write a value: numbers short, text as it is."""
    if isinstance(value, Html):
        return str(value)
    if isinstance(value, Percent):
        return f"{float(value):.1%}"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, int | float):
        return "" if isinstance(value, float) and math.isnan(value) else number(value)
    return escape(str(value))


def _table_cell(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td class="number" data-value="{value + 0!r}">{cell(value)}</td>'
    return f"<td>{cell(value)}</td>"
