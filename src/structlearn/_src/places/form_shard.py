"""What a worker keeps of a hinge-loss field: some of its forms, and what inference knows of them.

Vectors with one number per form stay with the forms; only numbers per variable travel, and sums.
A worker that takes the place of another begins with vectors of 0, which is a valid start for every
method here, and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common.arrays import Floats, Ints, count_numbers
from structlearn._src.common.errors import InfeasibleError
from structlearn._src.field.consensus import Consensus
from structlearn._src.field.hinges import DTYPES, Hinges
from structlearn._src.field.newton import NewtonSystem
from structlearn._src.kernels.field import forms, newton
from structlearn._src.kernels.field.admm import AdmmState
from structlearn._src.kernels.field.forms import add_up

_NONE = np.empty(0)
#: The vector that `evaluate` writes: multipliers after a local step.
SLOPES = 0
_KERNELS = {"hinges_at": forms.hinges_at, "highest": forms.highest}


class UnknownSetupError(Exception):
    """A worker is new, and does not know which variables are fixed."""


class Asked(NamedTuple):
    """What every question about forms says."""

    setup: int  #: which consensus, see `set_up`
    gone: tuple[int, ...]  #: vectors that nobody holds any more
    given: tuple[Any, ...]


class Largest(NamedTuple):
    """A number of which sums over workers are the largest."""

    number: float

    def __add__(self, other: Any) -> Any:
        return Largest(max(self.number, other.number))


@dataclass
class Preconditioner:
    """Diagonals of active rows, and the stiff row that owns each variable; those of workers add up.

    Where two workers have an owner for a variable, the first keeps it.
    """

    diagonal: Floats  #: (variables) squares of all rows but the owner's
    owners: Ints  #: (variables) or -1
    owned: Floats  #: (variables) coefficient in the row of the owner, 0 where there is none
    n_rows: int

    def __add__(self, other: Preconditioner) -> Preconditioner:
        late = other.owners >= 0
        lost = late & (self.owners >= 0)
        late &= ~lost
        diagonal = self.diagonal + other.diagonal + np.where(lost, other.owned, 0.0) ** 2
        owners = np.where(late, other.owners + self.n_rows, self.owners)
        owned = np.where(late, other.owned, self.owned)
        return Preconditioner(diagonal, owners, owned, self.n_rows + other.n_rows)


@dataclass
class Setup:
    """A field with some variables fixed, and what inference needs of it."""

    consensus: Consensus
    gathered: bool = False  #: whether the Newton system is that of the last slopes

    def __post_init__(self) -> None:
        self.consensus.slopes[:] = 0.0
        self._system: NewtonSystem | None = None

    @property
    def system(self) -> NewtonSystem:
        """Linear systems of Newton steps; takes as much memory as the forms."""
        if self._system is None:
            self._system = NewtonSystem(self.consensus)
        return self._system


@dataclass
class FormShard:
    """Some of the forms of a field, over all of its variables; a worker may have to make them."""

    source: Hinges | Callable[[], Hinges]
    setups: dict[int, Setup] = field(default_factory=dict)
    vectors: dict[int, Floats] = field(default_factory=dict)

    @cached_property
    def hinges(self) -> Hinges:
        """The forms."""
        return self.source if isinstance(self.source, Hinges) else self.source()

    def setup(self, number: int) -> Setup:
        """Return a consensus that was set up here."""
        if number not in self.setups:
            raise UnknownSetupError
        return self.setups[number]

    def vector(self, number: int, setup: Setup | None = None) -> Floats:
        """Return a number per form, 0 where nothing is known."""
        if number == SLOPES and setup is not None:
            return setup.consensus.slopes
        if number not in self.vectors:
            self.vectors[number] = np.zeros(self.hinges.n_forms)
        return self.vectors[number]


def own(array: Any) -> Any:
    """Return an array as kernels are compiled for; those that come from elsewhere may differ."""
    return np.require(array, requirements=["C", "A", "W"])


def _forget(shard: FormShard, asked: Asked) -> None:
    for number in asked.gone:
        shard.vectors.pop(number, None)
        shard.setups.pop(number, None)


# ---- the field ---------------------------------------------------------------------------


def count(shard: FormShard, _: Any) -> tuple[Any, ...]:
    """Return the numbers of forms by shard, and by group: of all, and of hinges."""
    hinges = shard.hinges
    return [hinges.n_forms], hinges.counts, hinges.sizes


def occur(shard: FormShard, _: Any) -> tuple[Any, ...]:
    """Count the entries of every variable."""
    return (count_numbers(shard.hinges.variables, shard.hinges.n_variables),)


def hand_over(shard: FormShard, name: str) -> tuple[Any, ...]:
    """Return an array of the forms here, in a list."""
    assert name in DTYPES
    return ([getattr(shard.hinges, name)],)


def set_up(shard: FormShard, asked: Asked) -> tuple[Any, ...]:
    """Fix some variables; return how many copies the others have, and hard forms that are broken.

    The options are those of `Consensus`.
    """
    _forget(shard, asked)
    (options,) = asked.given
    try:
        consensus = Consensus(shard.hinges, **options)
    except InfeasibleError as error:
        return np.zeros(shard.hinges.n_variables), [error.forms]
    shard.setups[asked.setup] = Setup(consensus)
    shares = consensus.bounds.shares
    return np.divide(1.0, shares, out=np.zeros_like(shares), where=shares > 0), [[]]


# ---- numbers per form --------------------------------------------------------------------


def copy(shard: FormShard, asked: Asked) -> tuple[Any, ...]:
    """Copy a vector, times a factor, to another; make none of one that is not there."""
    _forget(shard, asked)
    source, target, factor = asked.given
    setup = shard.setup(asked.setup) if SLOPES in (source, target) else None
    np.multiply(shard.vector(source, setup), factor, out=shard.vector(target, setup))
    return ()


def clear(shard: FormShard, asked: Asked) -> tuple[Any, ...]:
    """Make a vector of 0."""
    _forget(shard, asked)
    shard.vector(*asked.given)[:] = 0.0
    return ()


def write(shard: FormShard, asked: Asked) -> tuple[Any, ...]:
    """Write a vector."""
    number, values = asked.given
    shard.vectors[number] = np.array(values, np.float64)
    return ()


def read(shard: FormShard, asked: Asked) -> tuple[Any, ...]:
    """Return a vector, in a list."""
    _forget(shard, asked)
    return ([shard.vector(*asked.given)],)


def has(shard: FormShard, asked: Asked) -> tuple[Any, ...]:
    """Tell whether a vector is here."""
    _forget(shard, asked)
    return (int(asked.given[0] in shard.vectors),)


# ---- steps of ADMM -----------------------------------------------------------------------


def local_step(shard: FormShard, asked: Asked) -> tuple[Any, ...]:
    r"""Move the copies of the forms here.

    Return :math:`A^\top \mu`, squared moves, sums of hinges, and 1 if the multipliers are new.
    """
    _forget(shard, asked)
    number, weights, ahead, step, tell = asked.given
    consensus = shard.setup(asked.setup).consensus
    new = number not in shard.vectors
    multipliers = shard.vector(number)
    # The kernel reads and writes no more of a state than these.
    state = AdmmState(
        multipliers, _NONE, _NONE, own(ahead), _NONE, _NONE, _NONE, np.array(step),
        np.array(0),
    )  # fmt: skip
    moves, hinges, pull = consensus.step_forms(own(weights), state, tell)
    return pull, moves, hinges, int(new)


def sum_hinges(shard: FormShard, asked: Asked) -> tuple[Any, ...]:
    """Add something up by group, by the name of a kernel."""
    _forget(shard, asked)
    name, given = asked.given
    consensus = shard.setup(asked.setup).consensus
    where = consensus.bounds if name == "highest" else own(given)
    return (consensus.sum_hinges(_KERNELS[name], where),)


def appraise(shard: FormShard, asked: Asked) -> tuple[Any, ...]:
    r"""Return hinges, the largest violation, part of a bound, and :math:`A^\top \lambda`."""
    _forget(shard, asked)
    number, weights, point = asked.given
    setup = shard.setup(asked.setup)
    setup.gathered = False  # clipped multipliers take the place of slopes
    consensus = setup.consensus
    given = own(weights), own(point), shard.vector(number)
    hinges, violation, bound = consensus.appraise_forms(*given)
    return hinges, Largest(violation), bound, consensus.pull(consensus.slopes)


# ---- Newton steps ------------------------------------------------------------------------


def evaluate(shard: FormShard, asked: Asked) -> tuple[Any, ...]:
    """Write slopes at a point; return the augmented energy, and its gradient."""
    _forget(shard, asked)
    number, weights, softness, point = asked.given
    setup = shard.setup(asked.setup)
    setup.gathered = False
    consensus = setup.consensus
    values = np.empty(consensus.blocks.n_form_blocks)
    given = own(weights), tuple(softness), shard.vector(number), own(point)
    consensus.blocks.over_forms(newton.evaluate, consensus.forms, *given, consensus.slopes, values)
    return add_up(values), consensus.pull(consensus.slopes)


def gather(shard: FormShard, asked: Asked) -> tuple[Any, ...]:
    """Take the active rows at the last slopes; return what preconditions them."""
    _forget(shard, asked)
    weights, softness, free = asked.given
    setup = shard.setup(asked.setup)
    slopes = setup.consensus.slopes
    setup.system.gather(own(weights), tuple(softness), slopes, own(free), 0.0)
    setup.gathered = True
    return (Preconditioner(*setup.system.owned()),)


def multiply(shard: FormShard, asked: Asked) -> tuple[Any, ...]:
    """Multiply a direction by the active rows and back; return 1 as well if there are none yet."""
    _forget(shard, asked)
    (along,) = asked.given
    setup = shard.setup(asked.setup)
    if not setup.gathered:
        return np.zeros(len(along)), 1
    return setup.system.apply(along), 0
