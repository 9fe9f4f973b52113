"""Hinge-loss fields: linear forms over variables in [0, 1], without their weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import (
    Bools,
    Floats,
    Ints,
    block_indices,
    count_numbers,
    offsets_of,
)
from structlearn._src.common.document import completed
from structlearn._src.common.errors import ArgumentError, GraphError
from structlearn._src.common.memory import Store
from structlearn._src.field.hinges_doc import HINGES
from structlearn._src.kernels.field.forms import SHORT, find_twice

_PIECE = 2**18  # forms that are checked together: some megabytes
_BY_FORM = ("constants", "kinds", "powers", "groups")
#: What a linear form :math:`l` stands for: a hinge :math:`\max(l, 0)^p`, or a hard constraint.
HINGE = 0
AT_MOST = 1  # :math:`l \le 0`
EQUAL = 2  # :math:`l = 0`


@completed(HINGES)
@dataclass(frozen=True)
class Hinges:
    r"""Linear forms :math:`l_i(y) = \sum_j a_{ij} y_j + b_i` over :math:`y \in [0, 1]^n`.

    With weights :math:`w \ge 0`, one per group, they define the energy

    .. math:: E(y) = \sum_{i \text{ hinge}} w_{g_i} \max(l_i(y), 0)^{p_i}
              \quad \text{subject to } l_i(y) \le 0 \text{ or } l_i(y) = 0
              \text{ for the hard forms.}

    Parameters
    ----------
    offsets
        (forms + 1) Form ``i`` has the entries ``offsets[i]:offsets[i + 1]``.
    variables, coefficients
        (entries) A variable occurs at most once in a form.
    constants
        (forms) :math:`b`.
    kinds
        (forms) 0 for a hinge, 1 for :math:`l_i(y) \le 0`, 2 for :math:`l_i(y) = 0`.
    powers
        (forms) 1 or 2; ignored for hard forms.
    groups
        (forms) Index of the weight of each form: its rule.
    n_variables, n_groups
        Number of variables and of weights.

    References
    ----------
    S. Bach, M. Broecheler, B. Huang and L. Getoor, "Hinge-loss Markov random fields and
    probabilistic soft logic", JMLR 2017.

    Examples
    --------
    One variable that is pulled to 0 and to 1 by squared hinges:

    >>> import numpy as np
    >>> from structlearn.fields import Hinges
    >>> forms = Hinges(
    ...     offsets=[0, 1, 2], variables=[0, 0], coefficients=[1.0, -1.0], constants=[0.0, 1.0],
    ...     kinds=[0, 0], powers=[2, 2], groups=[0, 1], n_variables=1, n_groups=2,
    ... )
    >>> forms.energy(np.array([0.5]), np.array([1.0, 3.0]))
    1.0
    """

    offsets: Ints
    variables: Ints
    coefficients: Floats
    constants: Floats
    kinds: Ints
    powers: Ints
    groups: Ints
    n_variables: int
    n_groups: int

    #: Where arrays of forms lie that memory has no room for.
    store: ClassVar[Store | None] = None

    def __post_init__(self) -> None:
        for name, dtype in DTYPES.items():
            object.__setattr__(self, name, _frozen(getattr(self, name), dtype))
        self._check_lengths()
        self._check_values()

    @classmethod
    def stored(
        cls, store: Store, arrays: Mapping[str, Any], n_variables: int, n_groups: int
    ) -> Hinges:
        """Return forms whose arrays are in a store on disk, and are checked piece by piece."""
        made = object.__new__(cls)
        given = {name: _frozen(arrays[name], dtype) for name, dtype in DTYPES.items()}
        given |= {"n_variables": n_variables, "n_groups": n_groups, "store": store}
        for name, value in given.items():
            object.__setattr__(made, name, value)
        made._check_lengths()
        for first in range(0, made.n_forms, _PIECE):
            made.piece(first, min(first + _PIECE, made.n_forms))._check_values()
            store.release()
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "store"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kept = {name: _frozen(state[name], dtype) for name, dtype in DTYPES.items()}
        vars(self).update(state | kept)

    def piece(self, first: int, last: int) -> Hinges:
        """Return the forms of a range, without checks."""
        start, stop = self.offsets[[first, last]]
        piece = object.__new__(Hinges)
        parts = {
            "offsets": _frozen(self.offsets[first : last + 1] - start, np.int64),
            "variables": self.variables[start:stop],
            "coefficients": self.coefficients[start:stop],
            **{name: getattr(self, name)[first:last] for name in _BY_FORM},
            "n_variables": self.n_variables,
            "n_groups": self.n_groups,
        }
        for name, value in parts.items():
            object.__setattr__(piece, name, value)
        return piece

    @property
    def n_forms(self) -> int:
        """Number of hinges and hard constraints."""
        return len(self.constants)

    @cached_property
    def hard(self) -> Bools:
        """Which forms are hard constraints."""
        return np.asarray(self.kinds != HINGE)

    @cached_property
    def sizes(self) -> Ints:
        """Number of hinges of every group."""
        return count_numbers(self.groups, self.n_groups, where=~self.hard)

    @cached_property
    def counts(self) -> Ints:
        """Number of forms of every group."""
        return count_numbers(self.groups, self.n_groups)

    @cached_property
    def absent(self) -> Ints:
        """Variables that are in no form."""
        return np.flatnonzero(count_numbers(self.variables, self.n_variables) == 0)

    def take(self, forms: Ints, variables: Ints) -> Hinges:
        """Return some of the forms, over some of the variables."""
        entries = block_indices(self.offsets, forms)
        numbers = np.full(self.n_variables, -1)
        numbers[variables] = np.arange(len(variables))
        return Hinges(
            offsets_of(np.diff(self.offsets)[forms]),
            numbers[self.variables[entries]],
            self.coefficients[entries],
            self.constants[forms],
            self.kinds[forms],
            self.powers[forms],
            self.groups[forms],
            len(variables),
            self.n_groups,
        )

    # ---- values at a point ----------------------------------------------------------------

    def values(self, y: Floats) -> Floats:
        """Return the value of every form."""
        return self.add_up(self.coefficients * y[self.variables]) + self.constants

    def add_up(self, entries: Floats) -> Floats:
        """Sum a number per entry over the entries of every form."""
        if self.n_forms == 0:
            return np.zeros(0)
        padded = np.append(entries, 0.0)  # where empty forms at the end begin
        sums = np.add.reduceat(padded, self.offsets[:-1])
        return np.where(np.diff(self.offsets) > 0, sums, 0.0)

    def hinges(self, y: Floats) -> Floats:
        r"""Return the sum of the hinges :math:`\max(l_i(y), 0)^{p_i}` of every group."""
        return self.sum_hinges(self.values(y))

    def sum_hinges(self, values: Floats) -> Floats:
        """Return the sum of the hinges of every group, given the value of every form."""
        values = np.maximum(values, 0.0)
        each = np.where(self.powers == 2, values**2, values)
        soft: Floats = np.where(self.hard, 0.0, each)
        return np.bincount(self.groups, soft, self.n_groups).astype(np.float64)

    def energy(self, y: Floats, weights: Floats) -> float:
        """Return the energy, whether or not the hard constraints are satisfied."""
        return float(self.check_weights(weights) @ self.hinges(y))

    def violations(self, y: Floats) -> Floats:
        """Return the violation of every form."""
        values = self.values(y)
        at_most = np.where(self.kinds == AT_MOST, np.maximum(values, 0.0), 0.0)
        return np.where(self.kinds == EQUAL, np.abs(values), at_most)

    # ---- checks -----------------------------------------------------------------------------

    def check_values(self, name: str, given: Any, absent: str = "") -> Floats:
        """Check values of the variables, and return them as an array."""
        array = checks.numbers(name, given)
        need = "one value in [0, 1] per variable"
        if absent:
            need += f", NaN where it is {absent}"
        if array.shape != (self.n_variables,):
            raise ArgumentError(
                f"{name} has shape {array.shape}, but there are {self.n_variables} variables: "
                f"give {need}"
            )
        good = ((array >= 0.0) & (array <= 1.0)) | (np.isnan(array) & bool(absent))
        if not good.all():
            where = int(np.argmin(good))
            raise ArgumentError(f"{name}[{where}] is {array[where]}: give {need}")
        return array

    def check_fixed(self, fixed: Any) -> tuple[Ints, Floats]:
        """Return the variables that are given, by a mapping, an array or a pair, and their values.

        The array has NaN for the others; a pair is one of arrays.
        """
        given = {} if fixed is None else fixed
        if isinstance(given, dict):
            given = list(given), list(given.values())
        elif not isinstance(given, tuple):
            array = self.check_values("fixed", given, absent="free")
            given = np.flatnonzero(~np.isnan(array)), array[~np.isnan(array)]
        which = checks.indices("fixed", given[0])
        values = checks.numbers("fixed", given[1])
        n = self.n_variables
        if values.shape != which.shape or ((which < 0) | (which >= n)).any():
            raise ArgumentError(f"fixed needs variables below {n}, and one value for each")
        if not ((values >= 0) & (values <= 1)).all():
            raise ArgumentError("values of fixed variables must lie in [0, 1]")
        return which, values

    def given_values(self, fixed: Any) -> Floats:
        """Return the values of variables that are given, NaN for the others."""
        variables, values = self.check_fixed(fixed)
        out = np.full(self.n_variables, np.nan)
        out[variables] = values
        return out

    def check_weights(self, weights: Any) -> Floats:
        """Check weights of the groups, and return them as an array."""
        array = checks.numbers("weights", weights)
        if array.shape != (self.n_groups,):
            raise ArgumentError(
                f"weights of shape {array.shape} were given, but there are {self.n_groups} groups: "
                f"give one weight per group"
            )
        bad = np.flatnonzero(~((array >= 0) & (array <= checks.MOST)))
        if len(bad):
            raise ArgumentError(
                f"the weight of group {bad[0]} is {array[bad[0]]}: weights must be at least 0, or "
                f"the energy is not convex, and at most {checks.MOST:g}"
            )
        return array

    def _check_lengths(self) -> None:
        m = self.n_forms
        entries = len(self.variables)
        wanted = {"kinds": m, "powers": m, "groups": m, "offsets": m + 1, "coefficients": entries}
        for name, size in wanted.items():
            given = getattr(self, name).shape
            if given != (size,):
                raise GraphError(
                    f"{name} has shape {given}, but {m} constants and {entries} variables ask for "
                    f"({size},)"
                )
        ends = self.offsets[0], self.offsets[-1]
        if ends != (0, entries) or (self.offsets[1:] < self.offsets[:-1]).any():
            raise GraphError(f"offsets must rise from 0 to the number of entries, {entries}")

    def _check_values(self) -> None:
        _within("variables", self.variables, 0, self.n_variables)
        _within("groups", self.groups, 0, self.n_groups)
        _within("kinds", self.kinds, 0, 3)
        _within("powers", self.powers[~self.hard], 1, 3)
        for name in ("coefficients", "constants"):
            numbers = getattr(self, name)
            low, high = numbers.min(initial=0.0), numbers.max(initial=0.0)
            if not (low >= -checks.MOST and high <= checks.MOST):  # not so NaN
                raise GraphError(f"{name} must be finite numbers of at most {checks.MOST:g}")
        # Marks are needed for long forms alone, which `find_twice` does not compare pair by pair.
        longest = int((self.offsets[1:] - self.offsets[:-1]).max(initial=0))
        seen = np.full(self.n_variables if longest > SHORT else 0, -1)
        entry = find_twice(self.offsets, self.variables, seen, 0, self.n_forms)
        if entry >= 0:
            form = int(np.searchsorted(self.offsets, entry, side="right")) - 1
            raise GraphError(
                f"variable {self.variables[entry]} occurs twice in form {form}: add up its "
                f"coefficients"
            )


DTYPES: dict[str, Any] = {
    "offsets": np.int64,
    "variables": np.int32,
    "coefficients": np.float64,
    "constants": np.float64,
    "kinds": np.int8,
    "powers": np.int8,
    "groups": np.int32,
}


def _frozen(values: Any, dtype: Any) -> Any:
    """Return a read-only view, so that kernels meet one type only."""
    array = np.require(values, dtype, ["C", "A"]).view()  # arrays of messages may lie anywhere
    array.flags.writeable = False
    return array


def _within(name: str, values: Ints, low: int, high: int) -> None:
    if values.min(initial=low) < low or values.max(initial=low) >= high:
        bad = np.flatnonzero((values < low) | (values >= high))
        raise GraphError(
            f"{name}[{bad[0]}] is {values[bad[0]]}: it must be at least {low} and below {high}"
        )
