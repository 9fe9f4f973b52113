"""Flat hinges: values against loops, and what is refused."""

import numpy as np
import pytest

import naive
from structlearn._src.common.errors import GraphError
from structlearn._src.field.hinges import Hinges


@pytest.mark.parametrize("seed", range(30))
def test_values_energies_and_violations(seed):
    rng = np.random.default_rng(seed)
    field, weights = naive.hinge_field(rng)
    hinges, y = Hinges(**field), rng.random(field["n_variables"])
    values = naive.hinge_values(field, y)
    np.testing.assert_allclose(hinges.values(y), values, atol=1e-12)
    energy, sums, missed = 0.0, np.zeros(field["n_groups"]), []
    for value, kind, power, group in zip(
        values, field["kinds"], field["powers"], field["groups"], strict=True
    ):
        hinge = max(value, 0.0) ** power if kind == 0 else 0.0
        sums[group] += hinge
        energy += weights[group] * hinge
        missed.append({0: 0.0, 1: max(value, 0.0), 2: abs(value)}[kind])
    np.testing.assert_allclose(hinges.hinges(y), sums, atol=1e-12)
    np.testing.assert_allclose(hinges.violations(y), missed, atol=1e-12)
    assert hinges.energy(y, weights) == pytest.approx(energy)
    assert hinges.sizes.sum() == field["kinds"].count(0)


GOOD = {
    "offsets": [0, 2, 3], "variables": [0, 1, 1], "coefficients": [1.0, -1.0, 1.0],
    "constants": [0.0, 0.5], "kinds": [0, 1], "powers": [2, 1], "groups": [0, 1],
    "n_variables": 2, "n_groups": 2,
}  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"variables": [0, 2, 1]}, r"variables\[1\] is 2"),
        ({"variables": [1, 1, 1]}, "variable 1 occurs twice in form 0"),
        ({"groups": [0, 2]}, r"groups\[1\] is 2"),
        ({"kinds": [0, 3]}, r"kinds\[1\] is 3"),
        ({"powers": [3, 1]}, r"powers\[0\] is 3"),
        ({"offsets": [0, 2, 2]}, "offsets must rise"),
        ({"offsets": [0, 3]}, "offsets has shape"),
        ({"kinds": [0]}, "kinds has shape"),
        ({"constants": [0.0, np.inf]}, "constants must be finite"),
    ],
)
def test_what_does_not_fit_is_refused(wrong, words):
    Hinges(**GOOD)
    with pytest.raises(GraphError, match=words):
        Hinges(**{**GOOD, **wrong})


def test_arrays_cannot_be_written_to():
    hinges = Hinges(**GOOD)
    with pytest.raises(ValueError, match="read-only"):
        hinges.constants[0] = 1.0
