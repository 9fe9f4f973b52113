"""Attributes of tokens by a template: learn their dictionary, turn columns into sparse rows.

The cells that a template row names are digits of one whole number, its key, so that equal keys
are equal attributes and no string is made. Keys that would need more than 62 bits are built in
stages: the first digits are numbered, and that number is the first digit of the next stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import checks, threads
from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import FormatError
from structlearn._src.kernels.text import expand as kernels
from structlearn._src.text.columns import Columns
from structlearn._src.text.rows import Rows
from structlearn._src.text.strings import Index, Strings
from structlearn._src.text.template import Template, TemplateRow, check_width, parse_template

_KEY_BITS = 62  # keys are int64, of which negative ones stand for none
_NUMBER_BITS = 31  # numbers of strings are int32
_FIRST_ROOM = 2**10  # keys before a table grows


class Expanded(NamedTuple):
    """What a template makes of columns: one row per token, for one label and for two.

    The bigram rows of first tokens, which have no label before them, are empty. An entry that
    occurs twice in a row counts twice.
    """

    unigram: Rows
    bigram: Rows


class Attributes:
    """The attributes that a template makes of data whose columns have these strings.

    `unigram` are those that go with one label, and `bigram` those with two; both are empty until
    `fit_transform` learns them.
    """

    def __init__(self, template: Template, vocabularies: Sequence[Strings]) -> None:
        self.template = template
        self.vocabularies = tuple(vocabularies)  # none of columns that the template does not name
        digits = Digits(template.reach, [len(strings) for strings in vocabularies])
        self.unigram = Namespace(template.unigram, digits, vocabularies)
        self.bigram = Namespace(template.bigram, digits, vocabularies)

    @classmethod
    def over(cls, template: Template, vocabularies: Sequence[Strings]) -> Attributes:
        """Return what has no attributes yet, for columns with these strings."""
        named = {column for row in template.rows for _, column in row.macros}
        none = Strings.of([])
        kept = [vocabularies[c] if c in named else none for c in range(template.width)]
        return cls(template, kept)

    def learn(self, columns: Columns, n_jobs: int | None = None, min_count: int = 1) -> Expanded:
        """Learn the attributes of more columns, beside those so far, and return their rows.

        Attributes that occur less often than `min_count` here are left out.
        """
        sheet = _sheet(columns, self.template, self.vocabularies)
        return self.expand(sheet, n_jobs, min_count)

    @property
    def _tables(self) -> list[KeyTable]:
        return self.unigram.tables + self.bigram.tables

    def transform(self, columns: Columns, n_jobs: int | None = None) -> Expanded:
        """Return the rows of every token; attributes that were not learned are left out."""
        return self.expand(_sheet(columns, self.template, self.vocabularies), n_jobs)

    def expand(self, sheet: Sheet, n_jobs: int | None, min_count: int = 0) -> Expanded:
        """Return the rows of every token of a sheet, learning attributes first if `min_count`."""
        return Expanded(
            self.unigram.rows(sheet, sheet.every, n_jobs, min_count),
            self.bigram.rows(sheet, sheet.not_first, n_jobs, min_count),
        )

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Return everything as arrays, for `from_state`."""
        keys = [table.keys for table in self._tables]
        return {
            "template": np.frombuffer(self.template.text.encode(), np.uint8),
            "strings": np.concatenate(
                [np.empty(0, np.uint8), *(v.text for v in self.vocabularies)]
            ),
            "string_counts": np.array([len(v) for v in self.vocabularies], np.int64),
            "keys": np.concatenate([np.empty(0, np.int64), *keys]),
            "key_counts": np.array([len(own) for own in keys], np.int64),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[np.generic]]) -> Attributes:
        """Build attributes again from the arrays of `state`."""
        template = parse_template(bytes(state["template"]).decode())
        strings = _cut_strings(state["strings"], state["string_counts"])
        keys = np.split(state["keys"], np.cumsum(state["key_counts"]))[:-1]
        if len(strings) != template.width:
            raise FormatError(
                f"there are strings of {len(strings)} columns, but the template names "
                f"{template.width}"
            )
        new = cls(template, strings)
        if len(keys) != len(new._tables) or np.sum(state["key_counts"]) != len(state["keys"]):
            raise FormatError("the keys of the attributes are not as many as their counts say")
        for table, learned in zip(new._tables, keys, strict=True):
            table.learn(learned)
        return new


def fit_transform(
    columns: Columns, template: Template, min_count: int = 1, n_jobs: int | None = None
) -> tuple[Attributes, Expanded]:
    r"""Learn which attributes a template makes of columns, and return the rows of these.

    Attributes that occur less often than `min_count` are left out.

    Examples
    --------
    >>> from structlearn._src.text.columns import parse_columns
    >>> columns = parse_columns(b"new NN\nyork NN\n\nnew JJ\n")
    >>> template = parse_template("U1:%x[0,0]\nU2:%x[-1,1]/%x[0,1]")
    >>> attributes, expanded = fit_transform(columns, template)
    >>> attributes.unigram.names()
    ['U1:new', 'U1:york', 'U2:_B-1/NN', 'U2:NN/NN', 'U2:_B-1/JJ']
    >>> expanded.unigram.columns
    array([0, 2, 1, 3, 0, 4], dtype=int32)
    """
    checks.integer("min_count", min_count, low=1)
    check_width(template, columns.width)  # before its columns are looked for
    new = Attributes.over(template, columns.vocabularies)
    return new, new.learn(columns, n_jobs, min_count)


class Namespace:
    """Attributes numbered from 0, those of one template row after those of another.

    Rows that differ only in which tokens they look at share their attributes, as in CRF++: the
    same text at the front says that it does not matter where the cell stands.
    """

    def __init__(
        self, rows: Sequence[TemplateRow], digits: Digits, vocabularies: Sequence[Strings]
    ) -> None:
        self.n_rows = len(rows)
        self._vocabularies = vocabularies
        self._dictionaries = [Dictionary(same, digits) for same in _alike(rows)]

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def tables(self) -> list[KeyTable]:
        """Every table of keys, in a fixed order."""
        return [table for dictionary in self._dictionaries for table in dictionary.tables]

    @property
    def staged(self) -> bool:
        """Whether keys of some rows are built in stages."""
        return any(len(each.tables) > 1 for each in self._dictionaries)

    def keys(self) -> list[Ints]:
        """Return the keys of every dictionary, by number."""
        return [dictionary.tables[-1].keys for dictionary in self._dictionaries]

    def cut(self, each: Ints) -> list[Ints]:
        """Cut something of every attribute into parts for every dictionary."""
        return np.split(each, self._starts[1:-1])

    def names(self, which: Iterable[int] | None = None) -> list[str]:
        """Return the attributes of these numbers as CRF++ writes them; of all, if not given."""
        numbers = np.arange(len(self)) if which is None else np.array(list(which), np.int64)
        homes = np.searchsorted(self._starts, numbers, side="right") - 1
        out = np.empty(len(numbers), object)
        for home in np.unique(homes):
            here = homes == home
            local = numbers[here] - self._starts[home]
            out[here] = self._dictionaries[home].names(local, self._vocabularies)
        return out.tolist()

    def rows(self, sheet: Sheet, starts: Index, n_jobs: int | None, min_count: int = 0) -> Rows:
        """Return the sparse rows of all tokens, learning attributes first if `min_count`."""
        codes = np.empty((self.n_rows, len(starts)), np.int32)

        def work(first: int, last: int) -> None:
            for dictionary in self._dictionaries[first:last]:
                dictionary.fill(sheet, starts, codes, min_count)

        threads.run(work, [(d, d + 1) for d in range(len(self._dictionaries))], n_jobs)
        return self._collected(codes)

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Forget all other attributes, and number those that stay anew."""
        borders = self._starts.tolist()
        for dictionary, (first, last) in zip(self._dictionaries, pairwise(borders), strict=True):
            dictionary.keep(mask[first:last])

    @property
    def _starts(self) -> Ints:
        return np.cumsum([0] + [len(dictionary) for dictionary in self._dictionaries])

    def _collected(self, codes: NDArray[np.int32]) -> Rows:
        starts = np.empty(self.n_rows, np.int64)
        for begin, dictionary in zip(self._starts, self._dictionaries, strict=False):
            starts[[place for place, _ in dictionary.rows]] = begin
        offsets = np.zeros(codes.shape[1] + 1, np.int64)
        columns = np.empty(codes.size, np.int32)
        n_entries = kernels.collect(codes, starts, offsets, columns)
        if n_entries < len(columns):
            columns = columns[:n_entries].copy()
        return Rows(offsets, columns, np.empty(0), len(self))


def _sheet(columns: Columns, template: Template, vocabularies: Sequence[Strings]) -> Sheet:
    check_width(template, columns.width)
    ids = columns.known_by(vocabularies).ids
    return Sheet(
        [np.ascontiguousarray(ids[:, c]) for c in range(len(vocabularies))], columns.offsets
    )


def _alike(rows: Sequence[TemplateRow]) -> list[list[tuple[int, TemplateRow]]]:
    """Group template rows that share their attributes, each with its place."""
    groups: dict[tuple[object, ...], list[tuple[int, TemplateRow]]] = {}
    for place, row in enumerate(rows):
        kind = (row.literals, *(column for _, column in row.macros))
        groups.setdefault(kind, []).append((place, row))
    return list(groups.values())


def _cut_strings(text: NDArray[np.generic], counts: NDArray[np.generic]) -> list[Strings]:
    """Cut strings, one after another, into vocabularies of so many each."""
    ends = np.append(0, np.flatnonzero(text == ord("\n")) + 1)
    borders = np.append(0, np.cumsum(counts))
    if borders[-1] != len(ends) - 1:
        raise FormatError("the strings of the attributes are not as many as their counts say")
    return [
        Strings(np.ascontiguousarray(text[ends[a] : ends[b]]), ends[a : b + 1] - ends[a])
        for a, b in pairwise(borders.tolist())
    ]


# ---- one dictionary of attributes: keys of template rows, and their numbers --------------


class Dictionary:
    """Attributes of template rows that share them; `rows` are (place in template, row)."""

    def __init__(self, rows: Sequence[tuple[int, TemplateRow]], digits: Digits) -> None:
        self.rows = rows
        self.digits = digits
        self.tables = [KeyTable() for _ in digits.stages(rows[0][1])]

    def __len__(self) -> int:
        return len(self.tables[-1].keys)

    def fill(self, sheet: Sheet, starts: Index, codes: NDArray[np.int32], min_count: int) -> None:
        """Number the attributes of all tokens, in its rows of `codes`; learn if `min_count`."""
        for place, row in self.rows:
            before = starts
            for macros, table in zip(self.digits.stages(row), self.tables, strict=True):
                keys = before.astype(np.int64)
                for shift, column in macros:
                    size = self.digits.sizes[column]
                    radix = self.digits.radix(column)
                    kernels.push(sheet.cells[column], sheet.offsets, shift, size, radix, keys)
                table.number(keys, codes[place], learn=min_count > 0)
                before = codes[place]
        if min_count > 1:
            places = [place for place, _ in self.rows]
            codes[places] = self._pruned(codes[places], min_count)

    def _pruned(self, codes: NDArray[np.int32], min_count: int) -> NDArray[np.int32]:
        """Forget attributes that occur less often than `min_count`; returns the new numbers."""
        counts = np.bincount(codes[codes >= 0], minlength=len(self))
        keep = counts >= min_count
        renumbered = np.full(len(self) + 1, -1, np.int32)  # the last one is for -1
        renumbered[:-1][keep] = np.arange(keep.sum())
        self.keep(keep)
        return renumbered[codes]

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Forget all other attributes."""
        kept = self.tables[-1].keys[mask]
        self.tables[-1] = KeyTable()
        self.tables[-1].learn(kept)

    def names(self, which: Ints, vocabularies: Sequence[Strings]) -> list[str]:
        """Return the attributes of these numbers as text."""
        row = self.rows[0][1]
        cells: list[list[str]] = []
        codes = which
        stages = list(zip(self.digits.stages(row), self.tables, strict=True))
        for macros, table in reversed(stages):
            codes = table.keys[codes]
            for _, column in reversed(macros):
                codes, digit = np.divmod(codes, self.digits.radix(column))
                cells.append(self.digits.text(column, digit, vocabularies[column]))
        if not cells:
            return [row.fill(())] * len(which)
        return [row.fill(filled) for filled in zip(*reversed(cells), strict=True)]


class KeyTable:
    """Distinct keys, numbered in order of appearance."""

    def __init__(self) -> None:
        self._count = 0
        self._keys = np.empty(_FIRST_ROOM, np.int64)
        self._slots = np.zeros(2 * _FIRST_ROOM, np.int32)

    @property
    def keys(self) -> Ints:
        """Every key, by number."""
        return self._keys[: self._count]

    def number(self, new: Ints, out: Index, learn: bool) -> None:
        """Write the number of every key to `out`, -1 for one that is not there nor learned."""
        if not learn:
            kernels.find(new, self._slots, self._keys, out)
            return
        done = 0
        while done < len(new):
            done, self._count = kernels.number(new, done, self._slots, self._keys, self._count, out)
            if self._count == len(self._keys):
                self._grow()

    def learn(self, keys: NDArray[np.generic]) -> None:
        """Add keys that differ from each other."""
        new = np.require(keys, np.int64, ["C", "W"])
        self.number(new, np.empty(len(new), np.int32), learn=True)

    def _grow(self) -> None:
        kept = self.keys
        self._keys = np.empty(4 * len(kept), np.int64)
        self._slots = np.zeros(8 * len(kept), np.int32)
        kernels.number(kept, 0, self._slots, self._keys, 0, np.empty(len(kept), np.int32))


class Digits(NamedTuple):
    """How cells become digits: their own number, or one of ``2 * reach`` outside the sentence."""

    reach: int
    sizes: list[int]

    def radix(self, column: int) -> int:
        """Return the number of digits that a cell of this column may become."""
        return self.sizes[column] + 2 * self.reach

    def stages(self, row: TemplateRow) -> list[list[tuple[int, int]]]:
        """Cut the macros of a row so that no key of a stage needs more than 62 bits."""
        stages: list[list[tuple[int, int]]] = [[]]
        most = 2**_KEY_BITS
        product = 1
        for macro in row.macros:
            product *= self.radix(macro[1])
            if product > most:
                stages.append([])
                most = 2 ** (_KEY_BITS - _NUMBER_BITS)
                product = self.radix(macro[1])
            stages[-1].append(macro)
        return stages

    def text(self, column: int, digits: Ints, strings: Strings) -> list[str]:
        """Return the cells that digits stand for, as CRF++ writes them."""
        steps = range(1, self.reach + 1)
        outside = [*(f"_B-{d}" for d in steps), *(f"_B+{d}" for d in reversed(steps))]
        return np.array(strings.list() + outside, object)[digits].tolist()


class Sheet(NamedTuple):
    """Columns made ready: one contiguous array each, numbered by the learned vocabularies."""

    cells: list[Index]
    offsets: Ints

    @property
    def every(self) -> Index:
        """Keys to start from: 0 for every token."""
        return np.zeros(self.offsets[-1], np.int32)

    @property
    def not_first(self) -> Index:
        """Keys to start from: 0, but none for the first token of a sentence."""
        starts = self.every
        starts[self.offsets[:-1]] = -1
        return starts
