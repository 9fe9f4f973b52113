"""A world of a hinge-loss field: least energy by ADMM that goes on from where it stood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Bools, Floats
from structlearn._src.field.admm import Consensus
from structlearn._src.field.examples import HingeExamples


@dataclass(frozen=True)
class HingeEffort:
    """How worlds of hinge-loss fields infer.

    Parameters
    ----------
    tol, max_iter
        When ADMM stops: when its residuals per local copy are below, or after so many steps.
    steps
        Take at most so many steps, and read potentials off the local copies: paired-dual
        learning.
    step, relaxation, n_jobs
        See `structlearn._src.field.admm.Consensus`.
    """

    tol: float = 1e-3
    max_iter: int = 10_000
    steps: int | None = None
    step: float | None = None
    relaxation: float = 1.0
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        checks.number("tol", self.tol, low=0.0)
        checks.integer("max_iter", self.max_iter, low=1)
        if self.steps is not None:
            checks.integer("steps", self.steps, low=1)


class HingeWorld:
    r"""The value of a field with some variables fixed, and its gradient by the weights.

    .. math:: \Phi(w) = -\min_y \, [w^\top \phi(y) - h(y)], \qquad
              \nabla \Phi = -\phi(y^*)

    Every evaluation begins where the last one ended: local copies, multipliers and consensus
    stay, and nothing is built anew.

    Parameters
    ----------
    examples
        The field.
    fixed
        (variables) Which variables have their labels here.
    effort
        How far ADMM goes.
    """

    def __init__(self, examples: HingeExamples, fixed: Bools, effort: HingeEffort) -> None:
        self.examples, self.effort = examples, effort
        which = np.flatnonzero(fixed)
        self.consensus = Consensus(
            examples.hinges,
            step=effort.step,
            relaxation=effort.relaxation,
            fixed=(which, examples.labels[which]),
            n_jobs=effort.n_jobs,
        )
        self.state = self.consensus.begin(examples.weights)
        self._scale = np.sqrt(max(len(examples.hinges.variables), 1))
        self._still = bool(fixed.all())  # nothing to infer

    @property
    def iterations(self) -> int:
        """Steps of ADMM so far."""
        return int(self.state.iterations)

    def solve(self, weights: Floats) -> tuple[float, Floats]:
        """Value at the weights of all groups, and its gradient.

        They are those of the consensus, or with `HingeEffort.steps` those of the local copies.
        """
        world, effort = self.consensus, self.effort
        if not self._still:
            limit = effort.steps or effort.max_iter
            world.run(weights, self.state, limit, effort.tol * self._scale)
        exact = self._still or effort.steps is None
        hinges = (
            world.consensus_hinges(weights, self.state) if exact else world.local_hinges(self.state)
        )
        return -float(weights @ hinges), -hinges

    # ---- for checkpoints -----------------------------------------------------------------

    @property
    def n_messages(self) -> int:
        """Number of messages."""
        return sum(part.size for part in self.state)

    def messages(self) -> Floats:
        """All that the next evaluation depends on, flat."""
        return np.concatenate([np.ravel(part) for part in self.state])

    def recall(self, messages: Floats) -> None:
        """Go back to where these messages were read."""
        ends = np.cumsum([part.size for part in self.state])
        for part, piece in zip(self.state, np.split(messages, ends[:-1]), strict=True):
            part[...] = piece.reshape(part.shape)
