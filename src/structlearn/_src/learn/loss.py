"""Losses: each is a choice of temperatures, cost and mixture."""

from __future__ import annotations

from typing import NamedTuple

from structlearn._src.common import checks


class LossPart(NamedTuple):
    """One pair of worlds in a loss: its share, its temperatures, whether errors are pushed."""

    share: float
    eps_y: float
    eps_h: float
    with_cost: bool


#: Temperatures of outputs and hidden variables, and whether the task cost takes part.
NAMED = {
    "log": (1.0, 1.0, False),
    "hinge": (0.0, 0.0, True),
    "latent-hinge": (0.0, 0.0, True),
    "marginal": (0.0, 1.0, True),
    "eps": (0.5, 0.5, True),
    "hybrid": (0.0, 1.0, True),
    "perceptron": (0.0, 0.0, False),
}


class Loss(NamedTuple):
    r"""The loss of one example, the value of its free world less that of its clamped world.

    .. math::
        \ell(\epsilon_y, \epsilon_h, \Delta) &= \Phi(\theta + \Delta; \epsilon_y, \epsilon_h)
        - \Phi(\theta \text{ with } y \text{ clamped}; \epsilon_h) \\
        \text{hybrid}(\alpha) &= \alpha\, \ell(1, 1, 0)
        + (1 - \alpha)\, \ell(\epsilon_y, \epsilon_h, \Delta)

    References
    ----------
    W. Ping, Q. Liu and A. Ihler, "Marginal structured SVM with hidden variables", 2014, eq. 5.
    Q. Shi et al., "A hybrid loss for multiclass and structured prediction", 2014, eq. 4.
    """

    parts: tuple[LossPart, ...]
    eps_h: float  #: temperature of the hidden variables in prediction

    @property
    def smooth(self) -> bool:
        """Whether the loss has a gradient everywhere."""
        return all(part.eps_y > 0 and part.eps_h > 0 for part in self.parts)

    @property
    def zero_is_optimal(self) -> bool:
        """Whether weights of 0 have no loss: then minimising means nothing, and steps all."""
        return all(part.eps_y == 0 and not part.with_cost for part in self.parts)

    def softened(self, eps: float) -> Loss:
        """Return the loss with no temperature below `eps`."""
        parts = tuple(
            part._replace(eps_y=max(part.eps_y, eps), eps_h=max(part.eps_h, eps))
            for part in self.parts
        )
        return self._replace(parts=parts)


def make_loss(
    name: str, eps_y: float | None = None, eps_h: float | None = None, alpha: float = 0.5
) -> Loss:
    """Return the loss with this name.

    Parameters
    ----------
    name
        One of `NAMED`.
    eps_y, eps_h
        Temperatures to use instead of those that the name stands for. For "eps", `eps_h` follows
        `eps_y` unless it is given.
    alpha
        Share of the log loss in "hybrid"; other losses do not use it.
    """
    checks.one_of("loss", name, tuple(NAMED))
    y, h, with_cost = NAMED[name]
    if eps_y is not None:
        y = checks.number("eps_y", eps_y, low=0.0, open_high=True)
        h = y if name == "eps" else h
    if eps_h is not None:
        h = checks.number("eps_h", eps_h, low=0.0, open_high=True)
    if name != "hybrid":
        return Loss((LossPart(1.0, y, h, with_cost),), h)
    share = checks.number("alpha", alpha, low=0.0, high=1.0)
    parts = LossPart(share, 1.0, 1.0, False), LossPart(1.0 - share, y, h, with_cost)
    return Loss(tuple(part for part in parts if part.share > 0), h)
