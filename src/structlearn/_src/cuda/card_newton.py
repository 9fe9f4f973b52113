"""Newton steps on a device: those of `field.newton`, in double precision on tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from structlearn._src.common.arrays import Floats
from structlearn._src.cuda.card_consensus import CardConsensus, slopes
from structlearn._src.cuda.forms import upload
from structlearn._src.cuda.slices import SLICE, Slices, multiply
from structlearn._src.field import newton
from structlearn._src.kernels.field.forms import EQUAL, LINEAR, SQUARED


class CardPolish(newton.Polish):
    """Newton steps from where a state on a device stands."""

    consensus: CardConsensus

    def _allocate(self) -> None:
        t = self.consensus.tensors
        self._sorts = self.consensus._sorts
        self._each = upload(self.weights, t.device)[self.consensus._groups]
        self._open = self.consensus._shares > 0  # others are fixed, or in no form
        self._spare: Any = None
        self._system: Any = CardSystem(self.consensus, self._each)

    def _evaluate(self, point: Any) -> float:
        """Return the augmented energy without its last term, and keep its slopes."""
        softness = self._softness
        value = self._system.values(point)
        above = value.clamp(min=0.0)
        kinked = slopes(self._sorts, self._each, value + self._bases * softness, softness)
        squared = self._sorts == SQUARED
        new = torch.where(squared, 2.0 * self._each * above, kinked)
        change = new - self._bases
        soft = new * value - 0.5 * softness * (change * change)
        self._slopes: Any = new
        return float(torch.where(squared, 0.5 * new * above, soft).sum())

    def _descend(self) -> float:
        """Keep the gradient, and which variables no bound holds back."""
        point: Any = self._point
        gradient = self._system.pulls(self._slopes) + self._prox * (point - self._anchor)
        moved = (point - gradient / self.scale).clamp(0.0, 1.0)
        held = ((point <= 0.0) & (gradient >= 0)) | ((point >= 1.0) & (gradient <= 0))
        self._gradient: Any = gradient
        self._free: Any = self._open & ~held
        return float(torch.where(self._open, (moved - point).abs(), 0.0).max())

    def _search(self, value: float) -> tuple[Any, float]:
        """Go along the direction, bent at the bounds, as far as it brings enough."""
        point: Any = self._point
        direction = self._system.solution
        length = 1.0 / max(float(direction.abs().max()), 1.0)  # across the box at most
        for _ in range(newton.HALVINGS):
            there = (point + length * direction).clamp(0.0, 1.0)
            away = there - self._anchor
            promised = float((self._gradient * (there - point)).sum())
            new = self._evaluate(there) + 0.5 * self._prox * float((away * away).sum())
            if new <= value + newton.SUFFICIENT * promised + newton.ROUNDING * abs(value):
                return there, new
            length /= 2
        return point, self._evaluate(point)


class CardSystem:
    """Linear systems with the Hessian of the augmented energy, by conjugate gradients.

    As `NewtonSystem`: stiff rows precondition the variables that they own.
    """

    def __init__(self, consensus: CardConsensus, each: Tensor) -> None:
        self.consensus = consensus
        self.tensors = consensus.tensors
        self._each = each
        rows = self.tensors.by_form.rows
        slices = torch.arange(len(rows.starts) - 1, device=each.device)
        #: Slice of every block of entries of the forms.
        self._slices = torch.repeat_interleave(slices, rows.starts.diff().long())
        # Only what follows the vector is ever written beside it, and anew in every product.
        self._by_variable = self.tensors.by_form.vector(torch.double)
        self._by_form = self.tensors.by_variable.vector(torch.double)

    def values(self, point: Tensor) -> Tensor:
        """Return the values of all forms."""
        return self.tensors.constants + self._times(point)

    def _times(self, point: Tensor) -> Tensor:
        self._by_variable[: len(point)] = point
        return multiply(self.tensors.by_form, self._by_variable)

    def pulls(self, slopes: Tensor, *, squares: bool = False) -> Tensor:
        """Return the product by the transpose of the forms."""
        self._by_form[: len(slopes)] = slopes
        return multiply(self.tensors.by_variable, self._by_form, squares=squares)

    def gather(
        self, weights: Floats, softness: tuple[float, float], slopes: Tensor, free: Tensor,
        prox: float,
    ) -> None:  # fmt: skip
        """Take the Hessian where forms have these slopes; softness is that of kinks, and hard."""
        sorts = self.consensus._sorts
        squared = sorts == SQUARED
        soft = torch.where(sorts == LINEAR, softness[0], softness[1]).double()
        # A slope between its limits moves with the value.
        inside = (sorts == EQUAL) | (slopes > 0.0) & ((sorts != LINEAR) | (slopes < self._each))
        kinked = torch.where(inside, 1.0 / soft, 0.0)
        bent = torch.where(slopes > 0.0, 2.0 * self._each, 0.0)
        self._curved = torch.where(squared, bent, kinked)
        self._free = free
        self._prox = prox
        self._own((self._curved > 0.0) & ~squared)
        self._diagonal = prox + self.pulls(self._curved, squares=True)
        self._diagonal -= self._owned * self._owned
        self._diagonal.clamp_(min=prox)  # what rounding left of rows that were taken out
        self._size = 1.0 + self._by_owner(self._owned * self._owned / self._diagonal)

    def _own(self, stiff: Tensor) -> None:
        """Find the first stiff row of every free variable, and its entry there."""
        rows = self.tensors.by_form.rows
        n = self.tensors.n_variables
        nobody = self.tensors.n_forms
        # Few rows are stiff, and all that is done for every entry is to look for them.
        places = stiff.view(-1, SLICE)[self._slices].view(-1).nonzero()[:, 0]
        column = rows.columns.view(-1)[places].long()
        column = torch.where(column < 0, -1 - column, column)
        used = column < n
        used &= self._free[torch.where(used, column, 0)]
        places = places[used]
        column = column[used]
        number = self._slices[places // SLICE] * SLICE + places % SLICE
        owner = torch.full((n,), nobody, device=number.device)
        owner.scatter_reduce_(0, column, number, "amin")
        mine = owner[column] == number
        self._owned = torch.zeros(n, dtype=torch.double, device=number.device)
        entries = _coefficients(rows, places[mine])
        self._owned[column[mine]] = entries * self._curved[number[mine]].sqrt()
        ordered, self._order = torch.sort(owner, stable=True)
        self._order = self._order[ordered < nobody]
        counts = torch.unique_consecutive(ordered[ordered < nobody], return_counts=True)[1]
        self._counts = counts
        self._places = torch.zeros(n, dtype=torch.int64, device=number.device)
        numbers = torch.arange(len(counts), device=number.device)
        self._places[self._order] = torch.repeat_interleave(numbers, counts)

    def _by_owner(self, given: Tensor) -> Tensor:
        """Sum of a number per variable over those of every owner."""
        if len(self._counts) == 0:
            return given.new_zeros(1)
        return torch.segment_reduce(given[self._order], "sum", lengths=self._counts, unsafe=True)

    def _precondition(self, given: Tensor) -> Tensor:
        """Divide by the diagonal plus the own part of every stiff row (Sherman and Morrison)."""
        out = given / self._diagonal
        product = self._by_owner(self._owned * out) / self._size
        return out - self._owned / self._diagonal * product[self._places]

    def solve(self, gradient: Tensor, tol: float, max_iter: int) -> int:
        """Write the solution; return the number of steps."""
        left = torch.where(self._free, -gradient, 0.0)
        self.solution = torch.zeros_like(left)
        along = torch.zeros_like(left)
        old = torch.inf
        enough = 0.0
        for n in range(max_iter):
            scaled = self._precondition(left)
            size = float((left * scaled).sum())
            if n == 0:
                enough = size * tol * tol
            if size <= enough and (n > 0 or size == 0.0):
                return n
            along = scaled + size / old * along
            old = size
            image = self.pulls(self._curved * self._times(along)) + self._prox * along
            image = torch.where(self._free, image, 0.0)
            curved = float((along * image).sum())
            if not 0.0 < curved < torch.inf:
                return n  # rounding or overflow: the direction so far has to do
            length = size / curved
            self.solution += length * along
            left -= length * image
        return max_iter


def _coefficients(rows: Slices, places: Tensor) -> Tensor:
    """Return some of the entries."""
    entries = rows.entries(torch.double)
    if entries is None:
        return torch.where(rows.columns.view(-1)[places] < 0, -1.0, 1.0).double()
    return entries.view(-1)[places].double()
