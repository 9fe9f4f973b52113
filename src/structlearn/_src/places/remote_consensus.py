"""Consensus ADMM and Newton steps whose forms are kept by the workers of a cluster."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import InfeasibleError
from structlearn._src.common.watch import Watch
from structlearn._src.field.consensus import Appraisal, Consensus
from structlearn._src.field.hinges import DTYPES, Hinges
from structlearn._src.field.newton import Polish
from structlearn._src.kernels.field import admm
from structlearn._src.kernels.field.admm import AdmmState, BlockSums
from structlearn._src.learn.world import Elsewhere, Memory
from structlearn._src.places import form_shard
from structlearn._src.places.form_shard import SLOPES, Asked, FormShard, UnknownSetupError, own
from structlearn._src.places.kept import KeepingPlace, Kept

_NONE = np.empty(0)
_SHARED = ("relaxation", "stiffness")  # options of a consensus that forms depend on
_numbers = itertools.count(SLOPES + 1)


class SpreadForms:
    """The forms of one field on workers, one shard each.

    `make` returns a shard by its number, or what the worker makes one of.
    """

    def __init__(self, place: KeepingPlace, make: Callable[[int], Any], n: int) -> None:
        self.kept = Kept(place, make, n)
        self.gone: list[int] = []
        sizes, self.counts, self.sizes = self.kept.ask(form_shard.count, None)
        self.ends = np.cumsum([0, *sizes])

    @classmethod
    def of(cls, place: KeepingPlace, hinges: Hinges) -> SpreadForms:
        """Send the forms of a field to the workers, to each about as many entries."""
        cuts = threads.split(hinges.offsets, len(place.workers())) or [(0, 0)]
        return cls(place, lambda i: FormShard(hinges.piece(*cuts[i])), len(cuts))

    @property
    def n_forms(self) -> int:
        """Number of all forms."""
        return int(self.ends[-1])

    def ask(self, work: Any, setup: int, *given: Any) -> Any:
        """Ask all shards, and let them forget what nobody holds here."""
        gone = tuple(self.gone)
        found = self.kept.ask(work, Asked(setup, gone, given))
        del self.gone[: len(gone)]
        return found


class FormVector(Elsewhere):
    """A number per form, kept with the forms."""

    def __init__(self, forms: SpreadForms, number: int | None = None) -> None:
        self.forms = forms
        self.number = next(_numbers) if number is None else number
        if number is None:
            weakref.finalize(self, forms.gone.append, self.number).atexit = False

    def __len__(self) -> int:
        return self.forms.n_forms

    def __deepcopy__(self, memo: Any) -> FormVector:
        found = FormVector(self.forms)
        self.forms.ask(form_shard.copy, 0, self.number, found.number, 1.0)
        return found

    def write(self, values: Floats) -> None:
        """Send every worker its part."""
        ends = self.forms.ends
        parts = [values[a:b] for a, b in itertools.pairwise(ends)]
        each = [Asked(0, (), (self.number, part)) for part in parts]
        self.forms.kept.ask_each(form_shard.write, each)

    def read(self) -> Floats:
        """Return the parts of all workers, in the order of the forms."""
        return np.concatenate(self.forms.ask(form_shard.read, 0, self.number)[0])

    def gather(self) -> tuple[Memory, ...]:
        """Return all of it, for checkpoints."""
        return (self.read(),)

    def scatter(self, memories: tuple[Memory, ...]) -> None:
        """Go on from what `gather` has returned."""
        self.write(memories[0])


class RemoteConsensus(Consensus):
    r"""The same steps, with all that is done for forms done by workers, each for its own.

    A step sends :math:`y - c` to all workers and adds up their :math:`A^\top \mu`: one number per
    variable either way. Multipliers stay with the forms. What is done for variables is done here.

    Where a worker dies, another takes its shard, with multipliers of 0; steps then go on from the
    consensus, which is a start as good as any.
    """

    def __init__(self, forms: SpreadForms, hinges: Hinges, **options: Any) -> None:
        fixed = hinges.given_values(options.pop("fixed", None))
        super().__init__(_without_forms(hinges), fixed=fixed, **options)
        self.hinges = hinges
        self.spread = forms
        held = np.flatnonzero(~np.isnan(fixed))
        self._options: dict[str, Any] = {"fixed": (held, fixed[held])}
        self._options |= {key: options[key] for key in _SHARED if key in options}
        self.number = next(_numbers)
        weakref.finalize(self, forms.gone.append, self.number).atexit = False
        copies = self._set_up()
        np.divide(1.0, copies, out=self.bounds.shares, where=copies > 0)
        self.slopes = FormVector(forms, SLOPES)

    def _set_up(self) -> Floats:
        """Tell the workers what is fixed; return how many copies each variable has."""
        copies, broken = self.spread.ask(form_shard.set_up, self.number, self._options)
        found = [
            int(first + form)
            for first, forms in zip(self.spread.ends, broken, strict=False)
            for form in forms
        ]
        if found:
            raise InfeasibleError(
                f"the hard forms {found[:5]} have no free variable and do not hold: "
                f"change the values of their fixed variables",
                found,
            )
        return np.asarray(copies)

    def ask(self, work: Any, *given: Any) -> Any:
        """Ask all workers; new ones are told what is fixed first."""
        while True:
            try:
                return self.spread.ask(work, self.number, *given)
            except UnknownSetupError:
                self._set_up()

    # ---- states ------------------------------------------------------------------------------

    def zeros(self) -> Any:
        """Return a 0 for every form."""
        found = FormVector(self.spread)
        self.spread.ask(form_shard.clear, self.number, found.number)
        return found

    def copy_forms(self, source: Any, target: Any = None, factor: float = 1.0) -> Any:
        """Copy a number per form, times a factor, into `target` or something new."""
        if isinstance(source, FormVector):
            found = FormVector(self.spread) if target is None else target
            self.ask(form_shard.copy, source.number, found.number, factor)
            return found
        if target is None:
            return source * factor
        target.write(source * factor)
        return target

    def holds(self, snapshot: tuple[Any, Any]) -> bool:
        """Tell whether no worker with part of a snapshot has died."""
        (n,) = self.spread.ask(form_shard.has, self.number, snapshot[1].number)
        return bool(n == len(self.spread.ends) - 1)

    def arrays(self, snapshot: tuple[Any, Any]) -> tuple[Floats, Floats]:
        """Return a snapshot as arrays (variables,) and (forms,)."""
        return snapshot[0], snapshot[1].read()

    def fits(self, state: Any) -> bool:
        """Tell whether a state is one of this field."""
        if not isinstance(state, AdmmState) or not isinstance(state.multipliers, FormVector):
            return False
        return state.multipliers.forms is self.spread

    def sum_hinges(self, kernel: Any, *given: Any) -> Floats:
        """Sum of something of every group, by a kernel that adds it up for blocks of forms."""
        (found,) = self.ask(form_shard.sum_hinges, kernel.__name__, given[0])
        return np.asarray(found)

    # ---- steps -------------------------------------------------------------------------------

    def _take(self, weights: Floats, state: AdmmState, steps: int, tol: float) -> int:
        """Take up to so many steps; return how many there were."""
        before = int(state.iterations)
        here = state._replace(multipliers=_NONE)  # kernels for variables read none
        number = state.multipliers.number  # type: ignore[attr-defined]
        for n in range(steps):
            tell = tol > 0 or n == steps - 1
            given = number, weights, state.ahead, float(state.step), tell
            pull, moves, hinges, new = self.ask(form_shard.local_step, *given)
            sums = BlockSums(self._sums.hinges, own(moves), self._sums.changes, own(pull))
            self.blocks.over_variables(
                admm.consensus_step, self.bounds, self.relaxation, here, sums, self.blocks.columns,
                True,
            )  # fmt: skip
            admm.end_step(here, sums)
            if new:  # a worker has lost its multipliers
                state.lags[:] = 0.0
                state.ahead[:] = state.consensus
            elif admm.at_rest(here, tol):
                break
        self._sums.hinges[:] = 0.0
        self._sums.hinges[0, : self.hinges.n_groups] = hinges
        return int(state.iterations) - before

    def appraise(self, weights: Any, state: AdmmState) -> Appraisal:
        """Energy and violation at the consensus, and the bound that the multipliers prove."""
        weights = self.hinges.check_weights(weights)
        number = state.multipliers.number  # type: ignore[attr-defined]
        given = number, weights, state.consensus
        hinges, violation, lower, pull = self.ask(form_shard.appraise, *given)
        pull = own(pull)
        lower += self.bound_variables(_NONE, pull)
        return Appraisal(hinges, float(weights @ hinges), violation.number, lower, pull)

    def polish(self, weights: Floats, state: AdmmState, watch: Watch) -> Polish:
        """Return what takes Newton steps from where a state stands."""
        from structlearn._src.places.remote_newton import RemotePolish  # which needs this module

        return RemotePolish(self, weights, state, watch)


def _without_forms(hinges: Hinges) -> Hinges:
    """Return a field with the same variables and groups, and nothing else."""
    none = {name: np.zeros(int(name == "offsets"), dtype) for name, dtype in DTYPES.items()}
    return Hinges(**none, n_variables=hinges.n_variables, n_groups=hinges.n_groups)
