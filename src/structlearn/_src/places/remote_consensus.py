"""Consensus ADMM whose forms are kept by the workers of a cluster."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats
from structlearn._src.field.blocks import borders
from structlearn._src.field.consensus import Consensus
from structlearn._src.field.hinges import Hinges
from structlearn._src.kernels.field import admm
from structlearn._src.kernels.field.admm import AdmmState, BlockSums
from structlearn._src.kernels.field.forms import Forms
from structlearn._src.places.kept import KeepingPlace, Kept

_NONE = np.empty(0)


# ---- on a worker -------------------------------------------------------------------------


class Steps(NamedTuple):
    """What all steps of a run have in common, and the multipliers of the forms of one worker."""

    weights: Floats
    relaxation: float
    step: float
    multipliers: Floats


class LostStepsError(Exception):
    """A worker is new, and does not know the multipliers of the steps so far."""


class FormShard:
    """Some of the forms of a field, and the run of steps that they take part in."""

    def __init__(self, forms: Forms, n_groups: int) -> None:
        self.forms = forms
        n = len(forms.constants)
        self.ranges = borders(n, max(n, 1))  # one block: its sums are added up elsewhere
        self.hinges = np.zeros((1, n_groups))
        self.steps: Steps | None = None
        self.writeable = [array.flags.writeable for array in forms]

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Kernels are compiled for arrays that may be written to or not, which travel otherwise.
        vars(self).update(state)
        arrays = [np.array(array) for array in self.forms]
        for array, writeable in zip(arrays, self.writeable, strict=True):
            array.flags.writeable = writeable
        self.forms = Forms(*arrays)

    @property
    def under_way(self) -> Steps:
        """The run of steps under way."""
        if self.steps is None:
            raise LostStepsError
        return self.steps


def _set_out(shard: FormShard, shared: Steps) -> tuple[Any, ...]:
    # Copies, which may be written to.
    weights = np.array(shared.weights)
    shard.steps = shared._replace(weights=weights, multipliers=np.array(shared.multipliers))
    return ()


def _local_step(shard: FormShard, shared: tuple[Floats, bool]) -> tuple[Any, ...]:
    r"""Move the copies of the forms here; return their :math:`A^\top \mu` among other sums."""
    ahead, tell = shared
    steps = shard.under_way
    # The kernel reads and writes no more of a state than these.
    state = AdmmState(
        steps.multipliers, _NONE, _NONE, np.array(ahead), _NONE, _NONE, _NONE, np.array(steps.step),
        np.array(0),
    )  # fmt: skip
    sums = BlockSums(shard.hinges, np.zeros(1), np.zeros((0, 3)), np.zeros(len(ahead)))
    admm.local_step(
        shard.forms, steps.weights, steps.relaxation, state, sums, tell, True, shard.ranges, 0, 1
    )
    return sums.pull, sums.moves, shard.hinges.copy()


def _arrive(shard: FormShard, shared: None) -> tuple[Any, ...]:
    return ([shard.under_way.multipliers],)


# ---- here --------------------------------------------------------------------------------


class RemoteConsensus(Consensus):
    r"""The same steps, with the local ones taken by workers, each for its share of the forms.

    A step sends :math:`y - c` to all workers and adds up their :math:`A^\top \mu`: one number per
    variable either way. The consensus is made here. Multipliers go out with the first step of a
    run and come back with the last, so that a run in which a worker dies can be taken again.
    """

    def __init__(self, place: KeepingPlace, hinges: Hinges, **options: Any) -> None:
        super().__init__(hinges, **options)
        self._cuts = threads.split(hinges.offsets, len(place.workers()))
        self._kept = Kept(place, self._shard, len(self._cuts))

    def _shard(self, i: int) -> FormShard:
        first, last = self._cuts[i]
        offsets = self.hinges.offsets[first : last + 1]
        entries = slice(int(offsets[0]), int(offsets[-1]))
        forms = self.forms
        begins = (offsets - offsets[0]).view(np.uint64)
        begins.flags.writeable = forms.offsets.flags.writeable
        part = Forms(
            begins,
            forms.variables[entries],
            forms.coefficients[entries],
            forms.constants[first:last],
            forms.sorts[first:last],
            forms.groups[first:last],
            forms.lengths[first:last],
        )
        return FormShard(part, self.hinges.n_groups)

    def _take(self, weights: Floats, state: AdmmState, steps: int, tol: float) -> int:
        """Take up to so many steps; from the first again where a worker has died."""
        while True:
            trial = AdmmState(*(array.copy() for array in state))
            try:
                multipliers, hinges = self._run(weights, trial, steps, tol)
            except LostStepsError:
                continue
            trial.multipliers[:] = multipliers
            taken = int(trial.iterations - state.iterations)
            for array, found in zip(state, trial, strict=True):
                array[...] = found
            self._sums.hinges[:] = 0.0
            self._sums.hinges[:1, : self.hinges.n_groups] = hinges
            return taken

    def _run(
        self, weights: Floats, state: AdmmState, steps: int, tol: float
    ) -> tuple[Floats, Floats]:
        """Change all of the state but the multipliers; return these, and sums of hinges."""
        common = weights, self.relaxation, float(state.step)
        each = [Steps(*common, state.multipliers[first:last]) for first, last in self._cuts]
        self._kept.ask_each(_set_out, each)
        for n in range(steps):
            tell = tol > 0 or n == steps - 1
            pull, moves, hinges = self._kept.ask(_local_step, (state.ahead, tell))
            sums = BlockSums(
                self._sums.hinges, moves, np.zeros((self.blocks.n_variable_blocks, 3)), pull
            )
            self.blocks.over_variables(
                admm.consensus_step, self.bounds, self.relaxation, state, sums, self.blocks.columns,
                True,
            )  # fmt: skip
            admm.end_step(state, sums)
            if admm.at_rest(state, tol):
                break
        return np.concatenate(self._kept.ask(_arrive, None)[0]), hinges
