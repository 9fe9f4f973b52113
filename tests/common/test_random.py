"""Seeds."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.random import generator


def test_an_integer_repeats_and_a_generator_is_used():
    assert generator(3).random() == generator(np.int64(3)).random()
    assert generator(3).random() != generator(4).random()
    rng = np.random.default_rng(0)
    assert generator(rng) is rng


def test_none_is_fresh():
    assert generator(None).random() != generator(None).random()


def test_an_older_generator_gives_the_seed():
    old = np.random.RandomState(5)
    again = np.random.RandomState(5)
    assert generator(old).random() == generator(again).random()
    assert generator(old).random() != generator(again.__class__(5)).random()


@pytest.mark.parametrize("given", [-1, 0.5, "seed", True, [1]])
def test_others_are_refused(given):
    with pytest.raises(ArgumentError, match="random_state="):
        generator(given)
