"""Models that the papers compare with."""

from papers.comparators.infinite_logit import InfiniteLogit
from papers.comparators.mean_field import SwitchingSVM, TruncatedSVM

__all__ = ["InfiniteLogit", "SwitchingSVM", "TruncatedSVM"]
