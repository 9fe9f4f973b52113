"""Mutations of files: bytes, words, lines and numbers, in the ways that break parsers."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

NUMBERS = (
    b"0", b"1", b"-1", b"2", b"7", b"255", b"256", b"65536", b"2147483647", b"2147483648",
    b"4294967296", b"9223372036854775807", b"9223372036854775808", b"18446744073709551616",
    b"99999999999999999999999", b"1e308", b"1e309", b"-1e308", b"1e-308", b"5e-324", b"1e-400",
    b"0.1", b"-0", b"-0.0", b"nan", b"NaN", b"inf", b"-inf", b"Infinity", b"1_000", b"0x10", b"1.", b".5",
    b"+3", b"1e", b"1e+", b"--1", "\u0663".encode(), "\u00b2".encode(), b"9" * 400, b"9" * 5000,
    b"0" * 300 + b"1", b"0." + b"0" * 400 + b"1",
)  # fmt: skip
BLANKS = (b" ", b"\t", b"\n", b"\r\n", b"\r", b"\n\n", b"\x0b", b"\x0c", b"\x00", b"\x85", b"\xc2\xa0",
          b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"")  # fmt: skip
LONGEST = 6000  # bytes; longer ones are cut, so that a parse stays quick

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORD = re.compile(rb"[^\s]+")


class Mutator:
    """Makes new files out of samples; `words` are what the format is made of."""

    def __init__(self, seed: int, samples: Sequence[bytes], words: Sequence[bytes]) -> None:
        self.random = random.Random(seed)
        self.samples = list(samples)
        self.words = [*words, *NUMBERS, *BLANKS]
        self.ways = [
            self._flip, self._put, self._drop, self._repeat, self._insert, self._insert, self._insert,
            self._number, self._number, self._swap_words, self._word, self._cut, self._splice, self._lines,
        ]  # fmt: skip

    def __call__(self) -> bytes:
        """Return a new file."""
        draw = self.random
        if draw.random() < 0.03:
            return b" ".join(draw.choices(self.words, k=draw.randrange(1, 30)))[:LONGEST]
        data = draw.choice(self.samples)
        for _ in range(draw.choice((1, 1, 1, 2, 3, 5, 10))):
            data = draw.choice(self.ways)(data)[:LONGEST]
        return data

    def _place(self, data: bytes) -> int:
        return self.random.randrange(len(data) + 1)

    def _range(self, data: bytes) -> tuple[int, int]:
        start = self._place(data)
        return start, min(len(data), start + self.random.choice((1, 1, 2, 4, 8, 20, 100)))

    def _flip(self, data: bytes) -> bytes:
        if not data:
            return data
        at = self.random.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1 << self.random.randrange(8)]) + data[at + 1 :]

    def _put(self, data: bytes) -> bytes:
        at = self._place(data)
        return data[:at] + bytes([self.random.randrange(256)]) + data[at + 1 :]

    def _drop(self, data: bytes) -> bytes:
        start, stop = self._range(data)
        return data[:start] + data[stop:]

    def _repeat(self, data: bytes) -> bytes:
        start, stop = self._range(data)
        times = self.random.choice((2, 2, 3, 10, 100, 1000))
        return data[:stop] + data[start:stop] * times + data[stop:]

    def _insert(self, data: bytes) -> bytes:
        at = self._place(data)
        return data[:at] + self.random.choice(self.words) + data[at:]

    def _number(self, data: bytes) -> bytes:
        found = list(_NUMBER.finditer(data))
        if not found:
            return data
        hit = self.random.choice(found)
        return data[: hit.start()] + self.random.choice(NUMBERS) + data[hit.end() :]

    def _word(self, data: bytes) -> bytes:
        found = list(_WORD.finditer(data))
        if not found:
            return data
        hit = self.random.choice(found)
        return data[: hit.start()] + self.random.choice(self.words) + data[hit.end() :]

    def _swap_words(self, data: bytes) -> bytes:
        found = list(_WORD.finditer(data))
        if len(found) < 2:
            return data
        a, b = sorted(self.random.sample(found, 2), key=lambda hit: hit.start())
        return data[: a.start()] + b[0] + data[a.end() : b.start()] + a[0] + data[b.end() :]

    def _cut(self, data: bytes) -> bytes:
        return data[: self._place(data)]

    def _splice(self, data: bytes) -> bytes:
        other = self.random.choice(self.samples)
        return data[: self._place(data)] + other[self._place(other) :]

    def _lines(self, data: bytes) -> bytes:
        lines = data.split(b"\n")
        self.random.shuffle(lines)
        return b"\n".join(lines)
