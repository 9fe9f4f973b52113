"""How workers make objectives from their parts of the data, as an estimator wants them."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

from structlearn._src.estimators.structured.base import ModelPlan
from structlearn._src.learn.loss import Loss


@dataclass(frozen=True)
class Maker:
    """Makes plans and objectives; the functions are those that learn in one process."""

    estimator: Any
    loss: Loss
    learn: Callable[..., Any]
    objective: Callable[..., Any]

    def __call__(self, plan: ModelPlan, batch: Any) -> Any:
        """Return the objective of a batch."""
        return self.objective(self.estimator, plan, batch, self.loss, None)


def lean(estimator: Any) -> Any:
    """Return an estimator without what need not travel."""
    found = copy(estimator)
    vars(found).update(progress=None, n_jobs=None)
    return found


def has_lazy_parts(X: Any) -> bool:
    """Tell whether input is a Dask bag, or a list of delayed partitions."""
    if isinstance(X, list | tuple):
        return bool(X) and all(hasattr(each, "__dask_graph__") for each in X)
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")
