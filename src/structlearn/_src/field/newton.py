"""Newton steps that take what ADMM found to the optimum, in the proximal method of multipliers."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from copy import deepcopy

import numpy as np

from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.common.watch import Pace, Watch
from structlearn._src.field.blocks import borders
from structlearn._src.field.consensus import AdmmState, Consensus
from structlearn._src.kernels.field import conjugate, newton
from structlearn._src.kernels.field.forms import add_up

_SOFT = 1e-2  # softness of kinks in the first round, over the mean weight
_HARDER = 5.0  # by how much softness shrinks from round to round
_SOFTER = 10.0  # by how much it grows after a round that failed
_PROX = 1e-2  # weight of the distance to the last round's point, times the mean weight
_ROUNDS = 16  # softness of the last is 1e-2 / 5 ** 16: nothing is left to harden
_STEPS = 25  # Newton steps of a round; one that needs more is too hard yet
_CONJUGATE = 500  # steps of conjugate gradients for one direction, which need not be exact
_COARSEST = 1e-4  # tolerance of the gradient in the first round, over the mean weight
_FINEST = 1e-9  # the same in the last: below, rounding decides
SUFFICIENT = 1e-4  # share of the promised decrease that a step must bring (Armijo)
ROUNDING = 1e-13  # relative error of an energy, which may hide a decrease
_AT_BOUND = 1e-6  # distance from a bound within which inference leaves what is held there
_BENT = 1.0  # softness of kinks where gradients by the weights are taken, over the mean weight
_HELD = 1e-5  # the same of hard constraints, which must not give way
_STEADY = 1e-3  # curvature, over the mean weight, where values are not determined at all
_EXACT = 1e-6  # relative error of the linear system behind such a gradient
_SATURATED = 1e-6  # relative distance of a linear hinge's multiplier from its weight
HALVINGS = 20  # a step of 1e-6 that brings nothing: no decrease is to be found


class NewtonSystem:
    r"""Linear systems :math:`(H + \delta I) x = -g` over free variables, by conjugate gradients.

    :math:`H` is the Hessian of the augmented energy, see `kernels.field.newton`.
    """

    def __init__(self, consensus: Consensus) -> None:
        hinges = consensus.hinges
        blocks = consensus.blocks
        n = hinges.n_variables
        entries = len(hinges.variables)
        of_columns = 0 if blocks.alone else 1
        self.consensus = consensus
        self._rows = newton.ActiveRows(
            blocks.empty(hinges.n_forms + 1, np.uint64),
            blocks.empty(entries, np.uint32),
            blocks.empty(entries),
            np.empty(of_columns * hinges.n_forms, np.int32),
            blocks.empty(hinges.n_forms),
        )
        self._rows.offsets[0] = 0
        self._active = newton.ActiveColumns(
            np.empty(of_columns * n, np.uint64),
            np.empty(of_columns * entries, np.uint32),
            np.empty(of_columns * entries),
        )
        self._diagonal = newton.Diagonal(np.empty(n), np.empty(n, np.int32))
        self._vectors = conjugate.Directions(*(np.empty(n) for _ in range(5)))
        self.solution = self._vectors.out

    def gather(
        self, weights: Floats, softness: tuple[float, float], slopes: Floats, free: Bools,
        prox: float,
    ) -> None:  # fmt: skip
        """Take :math:`H` where forms have these slopes.

        Softness is that of kinks, and that of hard constraints.
        """
        blocks = self.consensus.blocks
        forms = self.consensus.forms
        self._free = free
        self._prox = prox
        counts = np.empty((blocks.n_form_blocks, 4), np.int64)
        blocks.over_forms(newton.count_active, forms, weights, slopes, free, counts)
        starts = np.zeros_like(counts)
        starts[1:] = counts[:-1].cumsum(axis=0)
        stiff, entries, others = counts.sum(axis=0).tolist()[:3]
        starts[:, 2:] += stiff, entries  # stiff rows first: they precondition
        blocks.over_forms(
            newton.fill_rows, forms, weights, softness, slopes, free, starts, self._rows
        )
        self._share_out(stiff, stiff + others)
        if blocks.alone:
            self._diagonal.values[:] = prox
            self._diagonal.owners[:] = -1
            given = self._rows, stiff, self._diagonal
            blocks.over(newton.divide, given, self._by_row, self._row_tasks)
        else:
            blocks.over_variables(
                newton.divide_by_column, blocks.columns, free, self._rows, stiff, prox,
                self._active, self._diagonal,
            )  # fmt: skip

    def owned(self) -> tuple[Floats, Ints, Floats, int]:
        """Return the diagonal, the stiff row that owns each variable, its entry there, and rows.

        See `Diagonal`; -1 and 0 stand for no owner.
        """
        stiff = int(self._by_stiff[-1])
        entries = int(self._rows.offsets[stiff])
        variables = self._rows.variables[:entries]
        ends = self._rows.offsets[: stiff + 1].astype(np.int64)
        sizes = ends[1:] - ends[:-1]
        mine = self._diagonal.owners[variables] == np.repeat(np.arange(stiff), sizes)
        entry = np.zeros(len(self._diagonal.values))
        entry[variables[mine]] = self._rows.coefficients[:entries][mine]
        owners = self._diagonal.owners.astype(np.int64)
        return self._diagonal.values.copy(), owners, entry, stiff

    def apply(self, along: Floats) -> Floats:
        """Multiply a direction by the active rows and back."""
        blocks = self.consensus.blocks
        vectors = self._vectors
        vectors.along[:] = along
        vectors.image[:] = 0.0
        given = self._rows, vectors, blocks.alone
        blocks.over(conjugate.multiply, given, self._by_row, self._row_tasks)
        blocks.over_variables(
            conjugate.gather_image, blocks.columns.offsets, self._active, self._rows, vectors,
            self._sums, blocks.alone,
        )  # fmt: skip
        return vectors.image.copy()

    def _share_out(self, stiff: int, count: int) -> None:
        """Cut the rows into blocks, and the blocks into tasks."""
        blocks = self.consensus.blocks
        offsets = self._rows.offsets.view(np.int64)
        self._by_stiff = borders(stiff, blocks.grain)
        self._by_row = borders(count, blocks.grain)
        self._stiff_tasks = blocks.tasks(offsets[self._by_stiff], self._by_stiff)
        self._row_tasks = blocks.tasks(offsets[self._by_row], self._by_row)
        self._sums = conjugate.DirectionSums(
            np.zeros(blocks.n_variable_blocks), np.zeros(len(self._by_stiff) - 1)
        )

    def solve(self, gradient: Floats, tol: float, max_iter: int) -> int:
        """Write the solution; return the number of steps."""
        blocks = self.consensus.blocks
        blocks.over_variables(conjugate.begin, gradient, self._free, self._vectors)
        if not blocks.alone or blocks.store is not None:
            return self._solve_phases(tol, max_iter)
        both = blocks.by_variable, self._by_stiff, self._by_row
        steps: int = conjugate.solve(
            self._rows, self._diagonal, self._prox, self._vectors, blocks.columns.offsets,
            self._active, self._sums, both, tol, max_iter,
        )  # fmt: skip
        return steps

    def _solve_phases(self, tol: float, max_iter: int) -> int:
        """Do what `conjugate.solve` does, phase by phase."""
        blocks = self.consensus.blocks
        vectors, sums, rows = self._vectors, self._sums, self._rows
        old, enough, length = np.inf, 0.0, 0.0
        for n in range(max_iter):
            blocks.over_variables(conjugate.go, length, self._diagonal, vectors, sums)
            given = rows, self._diagonal, vectors, sums
            blocks.over(conjugate.scale_owned, given, self._by_stiff, self._stiff_tasks)
            size = add_up(sums.variables) + add_up(sums.rows)
            enough = enough if n else size * tol * tol
            if size <= enough and (n > 0 or size == 0.0):
                return n
            blocks.over_variables(conjugate.turn, size / old, self._prox, vectors)
            old = size
            product = rows, vectors, blocks.alone
            blocks.over(conjugate.multiply, product, self._by_row, self._row_tasks)
            starts = blocks.columns.offsets
            blocks.over_variables(
                conjugate.gather_image, starts, self._active, rows, vectors, sums, blocks.alone
            )
            curved = add_up(sums.variables)
            if not 0.0 < curved < np.inf:
                return n  # rounding or overflow: the direction so far has to do
            length = size / curved
        blocks.over_variables(conjugate.go, length, self._diagonal, vectors, sums)
        return max_iter


def weight_gradient(
    system: NewtonSystem, weights: Floats, y: Floats, multipliers: Floats, slope: Floats
) -> Floats:
    r"""Gradient by the weights of a function of the best values, which has this slope at them.

    What the best values do when weights change follows from their optimality, whatever it is they
    are wanted for; the adjoint needs one linear system for all weights:

    .. math:: \frac{d f(y^*(w))}{d w_g} = \sum_{i \in g} \frac{\partial \lambda_i}{\partial w_g} \,
              a_i^\top x, \qquad H x = -\nabla f(y^*) .

    A linear hinge at its kink holds the values as a constraint does, but gives way a little: best
    values of linear hinges change in jumps, and would have no slope.

    References
    ----------
    B. Amos and J. Kolter, "OptNet: differentiable optimization as a layer in neural networks",
    2017.
    """
    consensus = system.consensus
    scale = consensus.scale(weights)
    pull = consensus.pull(multipliers)
    low = y <= consensus.bounds.lower + _AT_BOUND
    high = y >= consensus.bounds.upper - _AT_BOUND
    free = ~((low & (pull >= 0)) | (high & (pull <= 0)))
    softness = (_BENT / scale, _HELD / scale)
    values = np.empty(consensus.blocks.n_form_blocks)
    given = weights, softness, multipliers, y, consensus.slopes, values
    consensus.blocks.over_forms(newton.evaluate, consensus.forms, *given)
    system.gather(weights, softness, consensus.slopes, free, _STEADY * scale)
    system.solve(slope, _EXACT, _CONJUGATE)
    moved = np.where(free, system.solution, 0.0)
    return consensus.sum_hinges(newton.by_weight, weights, y, moved, multipliers, 1.0 - _SATURATED)


class Polish:
    r"""Semismooth Newton steps on the augmented energy of a field, round by round.

    A round minimises the energy over the box, where hard constraints and kinks are replaced by
    quadratics around the multipliers (see `kernels.field.newton`), then takes its slopes as
    new multipliers. Steps solve for the free variables over active forms only, by conjugate
    gradients; hard constraints that share no variable are eliminated by the preconditioner.

    References
    ----------
    R. Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in
    convex programming", 1976.
    D. Bertsekas, "Projected Newton methods for optimization problems with simple constraints",
    1982.
    """

    #: In one call of `rounds`.
    most_steps = _ROUNDS * (_STEPS + 1)

    def __init__(
        self,
        consensus: Consensus,
        weights: Floats,
        state: AdmmState,
        watch: Watch | None = None,
    ) -> None:
        self.consensus = consensus
        self.weights = weights
        self.state = state
        self.scale = consensus.scale(weights)
        self.steps = 0
        self._pace = Pace(watch or Watch())
        self._allocate()

    def _allocate(self) -> None:
        n = self.consensus.hinges.n_variables
        blocks = self.consensus.blocks
        self._system = NewtonSystem(self.consensus)
        self._slopes = self.consensus.slopes
        self._gradient = np.empty(n)
        self._free = np.empty(n, np.bool_)
        self._values = np.empty(blocks.n_form_blocks)
        self._found = np.empty((blocks.n_variable_blocks, 2))
        self._most = np.empty(blocks.n_variable_blocks)
        self._spare = np.empty(n)

    def rounds(self, patience: int) -> Iterator[bool]:
        """Yield after every step; True at the end of a round, when the consensus is placed.

        `patience` is how many rounds may fail.
        """
        self._softness = _SOFT / self.scale
        self._prox = _PROX * self.scale
        self._point, self._bases = self.consensus.snapshot(self.state)
        tol = _COARSEST
        for _ in range(_ROUNDS):
            done = yield from self._round(tol)
            patience -= not done
            if patience == 0:
                return
            if done:
                self.consensus.copy_forms(self._slopes, self._bases)
                self.consensus.place(self.weights, self.state, self._point, self._bases)
                tol = max(tol / 100, _FINEST)
                yield True
            self._softness *= _SOFTER if not done else 1 / _HARDER
            self._prox *= _SOFTER if not done else 1 / _HARDER

    def _round(self, tol: float) -> Generator[bool, None, bool]:
        """Minimise the augmented energy; return whether that came to an end."""
        self._anchor = deepcopy(self._point)
        value = self._evaluate(self._point)
        for _ in range(_STEPS):
            wrong = self._descend()
            if wrong <= tol:
                return True
            self._aim(wrong)
            there, value = self._search(value)
            if there is self._point:
                return False
            self._point, self._spare = there, self._point
            self.steps += 1
            yield False
        return False

    def _evaluate(self, point: Floats) -> float:
        """Return the augmented energy without its last term, and keep its slopes."""
        soft = self._softness, self._softness
        given = self.weights, soft, self._bases, point, self._slopes, self._values
        self.consensus.blocks.over_forms(newton.evaluate, self.consensus.forms, *given)
        return add_up(self._values)

    def _descend(self) -> float:
        """Keep the gradient, and which variables no bound holds back.

        Return how far the point is from stationary.
        """
        blocks = self.consensus.blocks
        self._gradient[:] = 0.0
        self.consensus.add_pull(self._slopes, self._gradient)
        blocks.over_variables(
            newton.descend, blocks.columns, self.consensus.bounds, self._slopes, self._point,
            self._anchor, self._prox, self.scale, self._gradient, self._free, self._most,
            blocks.alone,
        )  # fmt: skip
        return float(self._most.max())

    def _aim(self, wrong: float) -> None:
        soft = self._softness
        self._system.gather(self.weights, (soft, soft), self._slopes, self._free, self._prox)
        tol = min(0.1, max(wrong**0.5, 1e-4))
        self._pace.some(lambda most: self._system.solve(self._gradient, tol, most), _CONJUGATE)

    def _search(self, value: float) -> tuple[Floats, float]:
        """Go along the direction, bent at the bounds, as far as it brings enough."""
        blocks = self.consensus.blocks
        direction = self._system.solution
        blocks.over_variables(conjugate.largest, direction, self._most)
        length = 1.0 / max(float(self._most.max()), 1.0)  # across the box at most
        for _ in range(HALVINGS):
            blocks.over_variables(
                newton.bend, self.consensus.bounds, self._point, direction, length, self._anchor,
                self._gradient, self._spare, self._found,
            )  # fmt: skip
            away, promised = map(add_up, self._found.T.copy())
            new = self._evaluate(self._spare) + 0.5 * self._prox * away
            if new <= value + SUFFICIENT * promised + ROUNDING * abs(value):
                return self._spare, new
            length /= 2
        return self._point, self._evaluate(self._point)
