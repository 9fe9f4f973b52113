"""Mixtures of multinomial logit models in files: as those of support vector machines."""

from __future__ import annotations

from papers.comparators.infinite_logit import InfiniteLogit
from structlearn._src.estimators.bayesian.mixture_storage import mixture_kinds

KINDS = mixture_kinds({"infinite-logit": InfiniteLogit})
