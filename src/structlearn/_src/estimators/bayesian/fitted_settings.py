"""Fits that succeed as a whole or change nothing, and predictions by what a fit was asked."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import wraps
from hashlib import blake2b
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common.names import RUN_ONLY
from structlearn._src.estimators.base import Estimator, check_is_fitted

Fit = TypeVar("Fit", bound=Callable[..., Any])


class FittedSettings(Estimator):
    """Base class: a fit leaves the parameters that define its model in `settings_`.

    Parameters that are set later wait for the next fit.
    """

    #: Parameters that say nothing of what is learnt.
    _FREE: ClassVar[frozenset[str]] = RUN_ONLY | {"random_state"}
    settings_: dict[str, Any]

    def _settings(self) -> dict[str, Any]:
        """Return the parameters that define the model."""
        given = self.get_params(deep=False).items()
        return {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given
            if name not in self._FREE
        }

    def _with_fitted_params(self) -> Self:
        """Return a copy with the parameters of the fit: what predictions read."""
        check_is_fitted(self, "settings_")
        return copy(self).set_params(**self.settings_)


def all_or_nothing(fit: Fit) -> Fit:
    """Let `fit` work on a copy, whose attributes the estimator takes over if all goes well.

    The copy knows nothing of an earlier fit, unless it is to go on from there.
    """

    @wraps(fit)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        trial = copy(self)
        if not getattr(self, "warm_start", False):
            for name in [name for name in vars(trial) if name.endswith("_")]:
                delattr(trial, name)
        fitted = fit(trial, *args, **kwargs)
        fitted.settings_ = fitted._settings()
        self.__dict__ = fitted.__dict__
        return self

    return cast(Fit, whole)


def digest(*arrays: NDArray[Any]) -> str:
    """Return a text that differs for arrays that differ.

    Examples
    --------
    >>> digest(np.arange(3)) == digest(np.arange(3)), digest(np.arange(3)) == digest(np.arange(4))
    (True, False)
    """
    total = blake2b(digest_size=16)
    for array in arrays:
        plain = array.dtype.kind in "fiub"
        total.update(repr((array.dtype.str, array.shape)).encode())
        total.update(np.ascontiguousarray(array).data if plain else repr(array.tolist()).encode())
    return total.hexdigest()
