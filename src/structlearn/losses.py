"""Losses, penalties and objectives, and conditions for consistency of the hybrid loss."""

from structlearn._src.learn.dominance import alpha_bound, alpha_threshold
from structlearn._src.learn.loss import ElasticNet, Loss, LossPart
from structlearn._src.learn.objective import Objective, ValueGradient

__all__ = [
    "ElasticNet", "Loss", "LossPart", "Objective", "ValueGradient", "alpha_bound",
    "alpha_threshold",
]  # fmt: skip
