"""Hinge-loss fields whose hard constraints are inequalities or hinges, each side by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.field.hinges import AT_MOST, EQUAL, HINGE, Hinges


class Split(NamedTuple):
    """A field with the two sides of every equation apart."""

    hinges: Hinges
    owners: Ints  #: (forms of `hinges`) the form that each of them came from
    signs: Floats  #: (forms of `hinges`) -1 for the second side of an equation

    def gather(self, multipliers: Floats) -> Floats:
        """Return the multipliers of the forms they came from."""
        return np.bincount(self.owners, self.signs * multipliers).astype(np.float64)


def violations(hinges: Hinges) -> Split:
    """Hinges of weight 1 in place of hard forms, and nothing else."""
    owners = np.flatnonzero(hinges.hard)
    ones = np.ones(len(owners) + int((hinges.kinds[owners] == EQUAL).sum()), np.int64)
    return _split(hinges, owners, 0.0, kinds=HINGE * ones, powers=ones, groups=0 * ones, n_groups=1)


def widened(hinges: Hinges, slack: float) -> Split:
    """The same field where every hard form may be missed by so much."""
    return _split(hinges, np.arange(hinges.n_forms), slack)


def _split(hinges: Hinges, forms: Ints, slack: float, **others: Any) -> Split:
    """Take some of the forms; `others` are fields of the new one."""
    owners = np.concatenate([forms, forms[hinges.kinds[forms] == EQUAL]])
    signs = np.where(np.arange(len(owners)) < len(forms), 1.0, -1.0)
    taken = hinges.take(owners, np.arange(hinges.n_variables))
    given = {
        "coefficients": np.repeat(signs, np.diff(taken.offsets)) * taken.coefficients,
        "constants": signs * taken.constants - np.where(taken.hard, slack, 0.0),
        "kinds": np.where(taken.hard, AT_MOST, HINGE),
    }
    return Split(replace(taken, **{**given, **others}), owners, signs)
