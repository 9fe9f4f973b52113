"""Attributes of parts add up to those of the whole."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from structlearn._src.text.attribute_counts import AttributeCounts
from structlearn._src.text.attributes import Attributes, fit_transform
from structlearn._src.text.columns import Columns, parse_columns
from structlearn._src.text.template import parse_template

TEMPLATE = parse_template("U1:%x[0,0]\nU2:%x[-1,0]/%x[0,1]\nU3:%x[1,1]")


@pytest.mark.parametrize("min_count", [1, 2, 4])
@pytest.mark.parametrize("n_parts", [1, 2, 3])
def test_parts_add_up(min_count, n_parts):
    rng = np.random.default_rng(n_parts)
    text = "\n\n".join("\n".join(f"w{i} t{i % 3}" for i in rng.integers(0, 8, 5)) for _ in range(6))
    whole = parse_columns(text.encode())
    borders = np.linspace(0, 6, n_parts + 1).astype(int)
    counts = []
    for first, last in pairwise(borders):
        start, stop = whole.offsets[[first, last]]
        part = Columns(
            whole.ids[start:stop], whole.offsets[first : last + 1] - start, whole.vocabularies,
            np.empty(0, np.int64),
        )  # fmt: skip
        made = Attributes.over(TEMPLATE, whole.vocabularies)
        counts.append(AttributeCounts.of(made, made.learn(part).unigram))
    total = counts[0]
    for other in counts[1:]:
        total = total + other
    found = total.attributes(TEMPLATE, whole.vocabularies, min_count)
    expected, _ = fit_transform(whole, TEMPLATE, min_count)
    assert sorted(found.unigram.names()) == sorted(expected.unigram.names())
