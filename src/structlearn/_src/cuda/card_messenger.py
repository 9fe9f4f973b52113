"""Message passing on a device: sweeps over all variables of a colour at once.

Messages rest where those of the host do. Values and beliefs are read off on the host.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch

from structlearn._src.common.arrays import Floats
from structlearn._src.common.watch import Ending, Watch
from structlearn._src.cuda import pairwise
from structlearn._src.cuda.forms import upload
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference.base import Problem
from structlearn._src.inference.message_plan import MessagePlan
from structlearn._src.inference.messenger import Messenger
from structlearn._src.inference.schedule import colour

_PLANS: WeakKeyDictionary[MessagePlan, pairwise.PairPlan] = WeakKeyDictionary()


def suits(problem: Problem, schedule: str = "sequential") -> bool:
    """Tell whether a device takes the sweeps: pairs with cycles, in the usual order of visits.

    One sweep from leaves to roots and back is exact on forests, but one by one; tables over three
    and more variables, and other schedules, are left to the host.
    """
    wiring = problem.wiring
    pairs = wiring.arities.max(initial=0) == 2
    return bool(pairs and schedule == "sequential" and not wiring.forests().any())


class CardMessenger(Messenger):
    """Runs message passing on a problem whose factors hold at most two variables each."""

    def __init__(self, problem: Problem, *, device: Any, **options: Any) -> None:
        super().__init__(problem, **options)
        self._device = torch.device(device)

    def run(self, sweeps: int, tol: float, watch: Watch | None = None) -> Ending:
        """Sweep until every graph's messages move by at most `tol`; says why it ended."""
        plan = _pair_plan(self.plan, self.problem.wiring, self._device)
        self._pairs = plan
        self._pair_tables = plan.prepare(self.potentials)
        self._on_card = upload(self.messages, self._device).clone()
        self._single, self._sums = pairwise.combine(plan, self._on_card)
        ended = super().run(sweeps, tol, watch)
        self.messages = self._on_card.cpu().numpy()
        return ended

    def _goes_graph_by_graph(self, clock: Watch) -> bool:
        """Say no: the card takes all graphs at once."""
        return False

    def _prepared(self) -> Floats:
        """Return log potentials: messages are kept as logarithms between sweeps."""
        return self.potentials

    def _propagate(self, state: Any, sweeps: int, tol: float) -> None:
        for _ in range(sweeps):
            moving = ~self.done
            if not moving.any():
                return
            change = pairwise.sweep(
                self._pairs, self._pair_tables, self._on_card, self._single, self._sums,
                upload(moving, self._device), float(self.damping),
            )  # fmt: skip
            worst = torch.zeros(len(moving), dtype=change.dtype, device=self._device)
            worst.scatter_reduce_(0, self._pairs.graphs.long(), change, "amax")
            self.residual[moving] = worst.cpu().numpy()[moving]
            self.iterations[moving] += 1
            self.done |= self.residual <= tol


def _pair_plan(plan: MessagePlan, wiring: Wiring, device: torch.device) -> pairwise.PairPlan:
    """Return where messages go, found once for a plan."""
    found = _PLANS.get(plan)
    if found is None or found.device != device:
        found = pairwise.PairPlan(wiring, plan.weights, plan.ratios, colour(wiring), device)
        _PLANS[plan] = found
    return found
