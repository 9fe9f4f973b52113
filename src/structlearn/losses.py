"""Losses, costs and penalties: the parts of an objective, and what they are made of."""

from structlearn._src.learn.base import Objective, ValueGradient
from structlearn._src.learn.cost import Cost, make_cost
from structlearn._src.learn.dominance import Dominance, alpha_threshold, dominance
from structlearn._src.learn.loss import Loss, LossPart, make_loss
from structlearn._src.learn.penalty import ElasticNet, NonNegative

__all__ = [
    "Cost", "Dominance", "ElasticNet", "Loss", "LossPart", "NonNegative", "Objective",
    "ValueGradient", "alpha_threshold", "dominance", "make_cost", "make_loss",
]  # fmt: skip
