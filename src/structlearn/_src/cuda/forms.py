"""A hinge-loss field on a device: its forms and their transpose, sorted for neighbours to meet."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structlearn._src.common.arrays import Floats
from structlearn._src.cuda import slices
from structlearn._src.cuda.slices import Matrix, make_matrix, whole_slices
from structlearn._src.field.hinges import AT_MOST, EQUAL, Hinges
from structlearn._src.kernels.field import forms as sorts

_RUNS = 4096  # different widths and groups, at most, that have slices of their own
_CONSTANT = 1e-30  # length of a hinge without free variables, which no step can move


def upload(array: NDArray[Any], device: torch.device) -> Tensor:
    """Return an array as a tensor on a device; it may be read-only, as nobody writes to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)


class FieldTensors:
    """The forms of a field without its fixed variables, whose part is in the constants.

    Forms are sorted by width, group and first variable, variables by the number of forms that they
    are in; `form_places` and `variable_places` tell where they are. Rows that fill up slices are
    about nothing. `fixed` (variables) has NaN for free ones.
    """

    def __init__(self, hinges: Hinges, fixed: Floats, stiffness: float, device: Any) -> None:
        device = torch.device(device)
        self.hinges = hinges
        self.device = device
        self.n_groups = hinges.n_groups
        values = upload(fixed, device)
        self.free = torch.isnan(values)
        self._values = values
        forms, variables, coefficients = self._entries()
        self._sort_variables(variables)
        order = self._sort_forms(forms, variables)
        self._make_matrices(order, forms, variables, coefficients)
        self._measure(forms, variables, coefficients, stiffness)

    def _entries(self) -> tuple[Tensor, Tensor, Tensor]:
        """Entries of free variables; the others go into the constants."""
        h = self.hinges
        offsets = upload(h.offsets, self.device)
        self.form_constants = upload(h.constants, self.device)
        numbers = torch.arange(h.n_forms, device=self.device)
        forms = torch.repeat_interleave(numbers, offsets.diff(), output_size=len(h.variables))
        variables = upload(h.variables, self.device)
        coefficients = upload(h.coefficients, self.device)
        if not bool(self.free.all()):
            kept = self.free[variables]
            known = coefficients[~kept] * self._values[variables[~kept]]
            self.form_constants = self.form_constants.index_add(0, forms[~kept], known)
            forms = forms[kept]
            variables = variables[kept]
            coefficients = coefficients[kept]
        return forms, variables, coefficients

    def _sort_variables(self, variables: Tensor) -> None:
        n = self.hinges.n_variables
        degrees = torch.bincount(variables, minlength=n)
        order = torch.argsort(degrees, descending=True, stable=True)
        self.variable_places = torch.empty_like(order)
        self.variable_places[order] = torch.arange(n, device=self.device)
        self.n_variables = whole_slices(n)

    def _sort_forms(self, forms: Tensor, variables: Tensor) -> Tensor:
        """Sort by width and tag, then by first variable; tags are groups and sorts in one."""
        h = self.hinges
        groups = upload(h.groups, self.device)
        kinds = upload(h.kinds, self.device)
        soft = torch.where(upload(h.powers, self.device) == 2, sorts.SQUARED, sorts.LINEAR)
        soft_or_less = torch.where(kinds == AT_MOST, sorts.AT_MOST, soft)
        self.form_sorts = torch.where(kinds == EQUAL, sorts.EQUAL, soft_or_less)
        tags = groups.long() * 4 + self.form_sorts
        self.widths = torch.bincount(forms, minlength=h.n_forms)
        first = torch.full((h.n_forms,), self.n_variables, device=self.device)
        first.scatter_reduce_(0, forms, self.variable_places[variables], "amin")
        order = torch.argsort(first, stable=True)
        del first
        kind = (self.widths * (4 * max(self.n_groups, 1)) + tags)[order]
        kind, again = torch.sort(kind, stable=True)
        order = order[again]
        del again
        self._place_forms(order, kind, tags)
        return order

    def _place_forms(self, order: Tensor, kind: Tensor, tags: Tensor) -> None:
        """Give every run of forms of one kind slices of its own, unless there are too many."""
        n = len(order)
        counts = torch.unique_consecutive(kind, return_counts=True)[1]
        self.aligned = len(counts) <= _RUNS
        places = torch.arange(n, device=self.device)
        self.n_forms = whole_slices(n)
        if self.aligned:
            room = -(-counts // slices.SLICE) * slices.SLICE
            shift = (room.cumsum(0) - room) - (counts.cumsum(0) - counts)
            places += torch.repeat_interleave(shift, counts, output_size=n)
            self.n_forms = int(room.sum())
        self.form_places = torch.empty_like(order)
        self.form_places[order] = places
        each = torch.zeros(self.n_forms, dtype=torch.int64, device=self.device)
        each[places] = tags[order]
        self.each_tag = each
        self.tags = (each.view(-1, slices.SLICE)[:, 0] if self.aligned else each).to(torch.int32)
        self.tags = self.tags.contiguous()

    def _make_matrices(
        self, order: Tensor, forms: Tensor, variables: Tensor, coefficients: Tensor
    ) -> None:
        sorted_widths = self.widths[order]
        starts = (self.widths.cumsum(0) - self.widths)[order]
        shift = starts - (sorted_widths.cumsum(0) - sorted_widths)
        entries = torch.repeat_interleave(shift, sorted_widths, output_size=len(forms))
        entries += torch.arange(len(forms), device=self.device)
        rows = self.form_places[forms[entries]]
        columns = self.variable_places[variables[entries]]
        values = coefficients[entries]
        del entries, shift, starts, sorted_widths
        self.by_form: Matrix = make_matrix(rows, columns, values, self.n_forms, self.n_variables)
        columns, again = torch.sort(columns.int(), stable=True)
        self.by_variable: Matrix = make_matrix(
            columns.long(), rows[again], values[again], self.n_variables, self.n_forms
        )

    def _measure(
        self, forms: Tensor, variables: Tensor, coefficients: Tensor, stiffness: float
    ) -> None:
        """Count the copies of free variables, and measure the forms over them."""
        hard = self.form_sorts > sorts.SQUARED
        factors = torch.where(hard, stiffness, 1.0).double()
        copies = torch.zeros(self.hinges.n_variables, dtype=torch.double, device=self.device)
        copies.index_add_(0, variables, factors[forms])
        lengths = torch.zeros(self.hinges.n_forms, dtype=torch.double, device=self.device)
        lengths.index_add_(0, forms, coefficients * coefficients)
        lengths /= factors
        self.constant_forms = lengths == 0
        lengths = torch.where(self.constant_forms, torch.where(hard, 1.0, _CONSTANT), lengths)
        shares = torch.where(copies > 0, 1.0 / copies.clamp(min=1.0), 0.0)
        shares = torch.where((copies > 0) & (copies < 1.0), 1.0 / copies, shares)
        self.shares = self.spread_variables(shares)
        self.lengths = self.spread_forms(lengths, 1.0)
        self.constants = self.spread_forms(self.form_constants)
        tops = self.form_constants.index_add(0, forms, coefficients.clamp(min=0.0))
        self.tops = self.spread_forms(tops)  # the largest values of forms

    # ---- orders ---------------------------------------------------------------------------------

    def spread_forms(self, given: Tensor, fill: float = 0.0) -> Tensor:
        """Put a number per form where the form is."""
        out = torch.full((self.n_forms,), fill, dtype=given.dtype, device=self.device)
        out[self.form_places] = given
        return out

    def spread_variables(self, given: Tensor) -> Tensor:
        """Put a number per variable where the variable is."""
        out = torch.zeros(self.n_variables, dtype=given.dtype, device=self.device)
        out[self.variable_places] = given
        return out
