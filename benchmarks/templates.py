"""The CRF++ chunking template as Python users of CRFsuite write it: strings for every token."""

from __future__ import annotations

import pathlib

WORDS = [("U00", (-2,)), ("U01", (-1,)), ("U02", (0,)), ("U03", (1,)), ("U04", (2,))]
WORDS += [("U05", (-1, 0)), ("U06", (0, 1))]
TAGS = [("U10", (-2,)), ("U11", (-1,)), ("U12", (0,)), ("U13", (1,)), ("U14", (2,))]
TAGS += [("U15", (-2, -1)), ("U16", (-1, 0)), ("U17", (0, 1)), ("U18", (1, 2))]
TAGS += [("U20", (-2, -1, 0)), ("U21", (-1, 0, 1)), ("U22", (0, 1, 2))]


def read(path: str) -> list[tuple[list[list[str]], list[str]]]:
    """Sentences as rows of cells, and their labels."""
    out = []
    for block in pathlib.Path(path).read_text(encoding="utf-8").strip().split("\n\n"):
        rows = [line.split() for line in block.splitlines()]
        out.append(([row[:-1] for row in rows], [row[-1] for row in rows]))
    return out


def expand(rows: list[list[str]]) -> list[list[str]]:
    """Attributes of every token of a sentence."""
    columns = [_padded([row[c] for row in rows]) for c in (0, 1)]
    return [
        [
            f"{name}:{'/'.join(columns[c][t + 2 + o] for o in offsets)}"
            for c, part in enumerate((WORDS, TAGS))
            for name, offsets in part
        ]
        for t in range(len(rows))
    ]


def _padded(cells: list[str]) -> list[str]:
    return ["_B-2", "_B-1", *cells, "_B+1", "_B+2"]
