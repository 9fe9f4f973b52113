"""Features that users write per token, as dictionaries or lists of strings, to sparse rows.

A token is a dictionary, where ``{"word": "york"}`` is the attribute ``word=york``, and a number
or bool is the value of the attribute with that name; or it is a list (or set, or tuple) of
attributes, each of value 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from types import NoneType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import checks, threads
from structlearn._src.common.arrays import Floats, Ints, offsets_of
from structlearn._src.common.checks import MOST
from structlearn._src.common.errors import ArgumentError
from structlearn._src.kernels.text import rows as kernels
from structlearn._src.text.rows import Rows, binary_if_ones, stack
from structlearn._src.text.strings import Index, Strings

_LISTS = {list, tuple, set, frozenset}

Sentences = Iterable[Iterable[Any]]


class Vocabulary:
    """Attributes of tokens, numbered in order of appearance.

    Examples
    --------
    >>> sentences = [[{"word": "new", "length": 3}, {"word": "york", "capital": True}]]
    >>> vocabulary = Vocabulary()
    >>> vocabulary.fit_transform(sentences).values
    array([1., 3., 1., 1.])
    >>> vocabulary.names
    ['word=new', 'length', 'word=york', 'capital']
    >>> vocabulary.transform([[["word=york", "word=old"]]]).columns
    array([2], dtype=int32)
    """

    def __init__(self) -> None:
        self._strings = Strings.of([])

    def __len__(self) -> int:
        return len(self._strings)

    @property
    def names(self) -> list[str]:
        """Every attribute, by number."""
        return self._strings.list()

    def fit_transform(self, sentences: Sentences, min_count: int = 1) -> Rows:
        """Learn attributes that occur `min_count` times, and return the rows of the same tokens."""
        checks.integer("min_count", min_count, low=1)
        with _blaming(sentences):
            tokens, read = _tokens(sentences)
            entries = read(tokens)
            strings, numbers = entries.strings().distinct()
        keep = np.bincount(numbers, minlength=len(strings)) >= min_count
        self._strings = strings.take(keep)
        renumbered = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
        return _rows(entries, renumbered[numbers], len(self))

    def transform(self, sentences: Sentences, n_jobs: int | None = None) -> Rows:
        """Return one row per token; attributes that were not learned are left out."""
        strings = self._strings.prepared()
        parts = dict[int, Rows]()
        with _blaming(sentences):
            tokens, read = _tokens(sentences)

            def work(first: int, last: int) -> None:
                entries = read(tokens[first:last])
                parts[first] = _rows(entries, entries.found_in(strings), len(strings))

            threads.over_items(work, np.arange(len(tokens) + 1), "tokens", n_jobs)
        return stack([parts[first] for first in sorted(parts)], len(self))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything as arrays, for `from_state`."""
        return {"text": self._strings.text, "offsets": self._strings.offsets}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> Vocabulary:
        """Build a vocabulary again from the arrays of `state`."""
        new = cls()
        new._strings = Strings(state["text"], state["offsets"])
        return new


class _Entries(NamedTuple):
    """Attributes of tokens: their borders, names, and values (empty if all are 1)."""

    offsets: Ints
    tokens: Iterable[Iterable[str]]  #: names of every token
    values: Floats

    def strings(self) -> Strings:
        """Return the names of all."""
        found = Strings.lines(*self._lines())
        return Strings.of([*chain.from_iterable(self.tokens)]) if found is None else found

    def found_in(self, strings: Strings) -> Index:
        """Return the numbers of all, or -1 where they are not among these strings."""
        found = strings.find_lines(*self._lines())
        return strings.find(self.strings(), n_jobs=1) if found is None else found

    def _lines(self) -> tuple[str, int]:
        """Return a line for every name, unless some have newlines inside; and their number."""
        return "\n".join(map("\n".join, filter(None, self.tokens))), int(self.offsets[-1])


@contextmanager
def _blaming(sentences: Sentences) -> Iterator[None]:
    """Look for trouble token by token, but only once there is some."""
    try:
        yield
    except (TypeError, ValueError, OverflowError):
        _blame(sentences)
        raise


def _tokens(sentences: Sentences) -> tuple[Sequence[Any], Callable[[Sequence[Any]], _Entries]]:
    """Return all tokens, and what collects the attributes of tokens like these."""
    tokens = list(chain.from_iterable(sentences))
    types = set(map(type, tokens))
    if any(issubclass(kind, str | bytes | NoneType) for kind in types):
        raise TypeError
    if types <= _LISTS:
        return tokens, _list_entries
    if types != {dict}:
        tokens = [t if isinstance(t, Mapping) else Counter(t) for t in tokens]
    return tokens, _dict_entries


def _list_entries(tokens: Sequence[Collection[str]]) -> _Entries:
    return _Entries(offsets_of(map(len, tokens)), tokens, np.empty(0))


def _dict_entries(tokens: Sequence[Mapping[str, Any]]) -> _Entries:
    names = [
        [name + "=" + v if isinstance(v, str) else name for name, v in token.items()]
        for token in tokens
    ]
    values = [1.0 if isinstance(v, str) else v for token in tokens for v in token.values()]
    numbers = np.array(values, np.float64)
    if numbers.ndim != 1 or not (np.abs(numbers) < MOST).all():
        raise ValueError
    return _Entries(offsets_of(map(len, tokens)), names, numbers)


def _rows(entries: _Entries, columns: Index, n_columns: int) -> Rows:
    """Return the rows of all entries that are known and not zero."""
    offsets, _, values = entries
    if len(values):
        columns = np.where(values != 0, columns, -1)
        values = values[columns >= 0]
    known = np.zeros_like(offsets), np.empty(len(columns) + 1, np.int32)
    n = kernels.compact(offsets, columns, *known)
    return binary_if_ones(Rows(known[0], known[1][:n], values, n_columns))


def _blame(sentences: Sentences) -> None:
    """Raise the error that names the first bad sentence or token."""
    for s, sentence in enumerate(sentences):
        if not _is_list(sentence):
            raise ArgumentError(f"sentence {s} is {sentence!r}, but must be a list of tokens")
        for t, token in enumerate(sentence):
            trouble = _trouble(token)
            if trouble:
                raise ArgumentError(f"token {t} of sentence {s}: {trouble}")


def _is_list(given: Any) -> bool:
    """Tell whether something can be gone through and is no text; arrays of no axes cannot."""
    plain = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    return plain and getattr(given, "ndim", 1) > 0


def _trouble(token: Any) -> str:
    if not _is_list(token):
        return f"{token!r} must be a dictionary or a list of attributes"
    names = list(token)
    bad = [name for name in names if not isinstance(name, str)]
    if bad:
        return f"the attribute {bad[0]!r} must be a string"
    values = token if isinstance(token, Mapping) else {}
    for name, value in values.items():
        if not (isinstance(value, str) or _finite(value)):
            return f"{name} is {value!r}, but must be a string, a number below {MOST:g}, or a bool"
    for text in (*names, *values.values()):
        if isinstance(text, str) and any("\ud800" <= letter <= "\udfff" for letter in text):
            return f"{text!r} has half a character (a lone surrogate), which cannot be stored"
    return ""


def _finite(value: Any) -> bool:
    try:
        return math.isfinite(value) and abs(value) < MOST
    except (TypeError, OverflowError):
        return False
