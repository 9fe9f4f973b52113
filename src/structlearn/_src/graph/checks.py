"""Checks of what a graph is built from: cards, roles, offsets and scopes."""

from __future__ import annotations

from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Ints, offsets_of
from structlearn._src.common.errors import GraphError
from structlearn._src.graph.wiring import ROLES
from structlearn._src.kernels.graph import wiring as wire

_MOST_STATES = 2**31  # far beyond memory, and products of two still fit 64 bits
_LARGEST_ARITY = 60  # kernels keep the digits of an entry in 64 places


def check_cards(cards: Any, what: str) -> None:
    """Every variable needs a whole number of states, at least one."""
    whole = cards.dtype.kind in "iu"
    if not whole or (cards.size and not 1 <= cards.min() <= cards.max() <= _MOST_STATES):
        raise GraphError(
            f"{what}: every variable needs a whole number >= 1 of states, at most {_MOST_STATES}"
        )


def check_roles(roles: Any, n_variables: int) -> Ints:
    """One role per variable; by default all are outputs."""
    if roles is None:
        return np.zeros(n_variables, np.int64)
    array = checks.indices("roles", roles)
    if len(array) != n_variables or (n_variables and not 0 <= array.min() <= array.max() < 3):
        raise GraphError(f"roles must hold {n_variables} indices into {ROLES}")
    return array


def check_layout(scope_offsets: Any, scopes: Any) -> tuple[Ints, Ints]:
    """Offsets must begin at 0, never fall, and end at the number of slots."""
    borders = checks.indices("scope_offsets", scope_offsets)
    slots = checks.indices("scopes", scopes)
    if not len(borders) or borders[0] != 0 or borders[-1] != len(slots):
        raise GraphError(
            f"scope_offsets must begin with 0 and end with the {len(slots)} entries of scopes"
        )
    if (np.diff(borders) < 0).any():
        raise GraphError("scope_offsets must not fall")
    return borders, slots


def check_scopes(arities: Ints, scopes: Ints, n_variables: int) -> None:
    """Scopes name variables that exist, each once."""
    if len(arities) and arities.min() < 1:
        raise GraphError(f"factor {int(arities.argmin())} has an empty scope; need >= 1 variable")
    if len(arities) and arities.max() > _LARGEST_ARITY:
        raise GraphError(
            f"factor {int(arities.argmax())} has {arities.max()} variables; "
            f"at most {_LARGEST_ARITY}"
        )
    report = np.zeros(2, np.int64)
    if wire.bad_scope(offsets_of(arities), scopes, n_variables, report):
        factor, variable = report.tolist()
        if 0 <= variable < n_variables:
            raise GraphError(f"variable {variable} stands twice in the scope of factor {factor}")
        raise GraphError(
            f"the scope of factor {factor} names variable {variable}, but there are "
            f"{n_variables} variables"
        )
