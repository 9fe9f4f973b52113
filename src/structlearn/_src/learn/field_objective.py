"""The objective of learning in hinge-loss fields: two worlds under ADMM."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.field.examples import HingeExamples
from structlearn._src.learn.base import Penalty
from structlearn._src.learn.bound import Bound
from structlearn._src.learn.field_world import HingeEffort, HingeWorld
from structlearn._src.learn.penalty import NonNegative


@dataclass(eq=False)
class HingeObjective:
    r"""Penalty plus C times how much more energy the labels need than the best of all values.

    .. math:: F(w) = \Omega(w) + C \Bigl(\min_z \, [w^\top \phi(\hat y, z) - h(\hat y, z)]
              - \min_{y, z} \, [w^\top \phi(y, z) - h(y, z)]\Bigr)

    with labels :math:`\hat y` and hidden variables :math:`z`. The second minimum is over more, so
    :math:`F \ge \Omega`; it is convex where nothing is hidden. One weight per group that is
    learnt; its gradient is C times the sum of the group's hinges in the clamped world less that
    in the free one.

    Both worlds keep the state of ADMM between evaluations. `paired` returns the objective for
    paired-dual learning, whose worlds take a few steps per evaluation; `linearise` the bound
    whose hidden variables stay, for expectation maximisation.

    Parameters
    ----------
    examples
        The field and what is known about it, see `make_field_examples`.
    C
        Weight of the losses against the penalty.
    penalty
        What large weights cost; it keeps them at or above 0.
    effort
        How worlds infer.

    References
    ----------
    S. Bach et al., "Paired-dual learning for fast training of latent variable hinge-loss MRFs",
    2015, equation 4, whose energies and entropies have the opposite sign in print.
    """

    examples: HingeExamples
    C: float = 1.0
    penalty: Penalty = field(default_factory=NonNegative)
    effort: HingeEffort = field(default_factory=HingeEffort)
    n_examples: int = field(default=1, init=False)

    @property
    def n_weights(self) -> int:
        """Number of weights that are learnt."""
        return len(self.examples.learnt)

    @property
    def convex(self) -> bool:
        """Whether the objective is convex: nothing is hidden."""
        return not self.examples.hidden.any()

    @property
    def scales(self) -> Floats:
        """What steps are to be multiplied by: one over the number of hinges with the weight."""
        return 1.0 / self.examples.hinges.sizes[self.examples.learnt]

    @property
    def start(self) -> Floats:
        """Weights to begin with."""
        return self.examples.weights[self.examples.learnt]

    @cached_property
    def worlds(self) -> tuple[HingeWorld, HingeWorld]:
        """The free and the clamped world."""
        known = self.examples
        fixed = known.given, ~known.hidden
        free, clamped = (HingeWorld(known, which, self.effort) for which in fixed)
        return free, clamped

    @property
    def iterations(self) -> int:
        """Steps of ADMM so far in both worlds."""
        return sum(world.iterations for world in self.worlds)

    # ---- values ----------------------------------------------------------------------------

    def half(self, weights: Floats, clamped: bool) -> tuple[float, Floats]:
        """C times the value of the free or of the clamped world, and the gradient."""
        value, slope = self.worlds[clamped].solve(self.examples.fill_in(weights))
        return self.C * value, self.C * slope[self.examples.learnt]

    def loss_slope(self, weights: Floats, which: Ints | None = None) -> tuple[float, Floats]:
        """C times the loss, and the gradient; there is one example, so `which` says nothing."""
        free, high = self.half(weights, clamped=False)
        clamped, low = self.half(weights, clamped=True)
        return free - clamped, high - low

    def value(self, weights: Floats) -> float:
        """Return the objective, penalty included."""
        return self.loss_slope(weights)[0] + self.penalty.value(weights)

    def value_slope(self, weights: Floats) -> tuple[float, Floats]:
        """Return the objective and the gradient of all but the non-smooth part of the penalty."""
        value, slope = self.loss_slope(weights)
        return value + self.penalty.value(weights), slope + self.penalty.slope(weights)

    # ---- what drivers ask for ----------------------------------------------------------------

    def take(self, which: Ints) -> HingeObjective:
        """Return the objective of the only example."""
        return self

    def paired(self, sweeps: int) -> HingeObjective:
        """Return the same objective with worlds that take only so many steps per evaluation."""
        return replace(self, effort=replace(self.effort, steps=sweeps))

    def linearise(self, weights: Floats) -> Bound:
        """Return the convex upper bound that touches the objective at `weights`."""
        value, slope = self.half(weights, clamped=True)
        return Bound(self, slope, value - float(slope @ weights))

    def messages(self) -> Floats:
        """Return the state of both worlds, flat."""
        return np.concatenate([world.messages() for world in self.worlds])

    def recall(self, messages: Floats) -> None:
        """Put the worlds back to where they stood when they had these messages."""
        free, clamped = self.worlds
        if len(messages) != free.n_messages + clamped.n_messages:
            raise ArgumentError(
                f"{len(messages)} messages were given, but these worlds have "
                f"{free.n_messages + clamped.n_messages}; use those of the same objective"
            )
        free.recall(messages[: free.n_messages])
        clamped.recall(messages[free.n_messages :])
