"""What facts from a file must be like, for compiled code that trusts them."""

from __future__ import annotations

from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import FormatError
from structlearn._src.sample.normal_wishart import NormalWishart
from structlearn._src.text.labels import LabelCoder


def floats(what: str, given: Any, shape: tuple[int, ...], *, above: float = -np.inf) -> Floats:
    """Return finite numbers of one shape, all of them above a bound."""
    if not isinstance(given, np.ndarray) or given.dtype != np.float64 or given.shape != shape:
        raise FormatError(f"{what} must be an array {shape} of numbers")
    if not np.isfinite(given).all():
        raise FormatError(f"some of {what} are not finite")
    if not (given > above).all():
        raise FormatError(f"some of {what} are not above {above:g}")
    return given


def offsets(what: str, given: Any, end: int) -> None:
    """Refuse borders that do not go from 0 to `end`, or go back."""
    whole = given.ndim == 1 and given.dtype == np.int64 and len(given) > 0
    if not whole or given[0] != 0 or given[-1] != end or (np.diff(given) < 0).any():
        raise FormatError(f"the borders between {what} do not fit")


def within(what: str, given: Any, low: int, high: int) -> None:
    """Refuse whole numbers that are not from `low` to ``high - 1``."""
    if len(given) and not (given.min() >= low and given.max() < high):
        raise FormatError(f"{what} lies outside of {low} to {high - 1}")


def text(what: str, given: Any) -> None:
    """Refuse what is not a text."""
    if not isinstance(given, str):
        raise FormatError(f"{what} must be a text")


def settings(model: Any) -> Any:
    """Return an estimator as it was fitted; its parameters, now and then, must be in order."""
    if not isinstance(model.settings_, dict) or model.settings_.keys() != model._settings().keys():
        raise FormatError("the parameters of the fit do not fit")
    model._check()
    fitted = model._with_fitted_params()
    fitted._check()
    return fitted


def given(model: Any, form: dict[str, Any]) -> None:
    """Refuse chains that claim to belong to data of another form than they have themselves."""
    if model.data_signature_ | form != model.data_signature_:
        raise FormatError("the chains belong to other data")


def scale(model: Any) -> int:
    """Return the number of features of a model, whose means and deviations must fit to it."""
    D = len(model.centre_)
    floats("the means of features", model.centre_, (D,))
    floats("the deviations of features", model.scale_, (D,), above=0.0)
    if checks.integer("n_features_in_", getattr(model, "n_features_in_", D), low=1) != D:
        raise FormatError("there are not as many features as their means")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and (names.shape != (D,) or not all(isinstance(n, str) for n in names)):
        raise FormatError("the names of features do not fit")
    return D


def classes(model: Any) -> int:
    """Return the number of classes of a model: two at least."""
    names = model.coder_.names if isinstance(model.coder_, LabelCoder) else None
    return _several(names)


def class_array(given: Any) -> int:
    """Return the number of classes in an array: two at least."""
    return _several(given if isinstance(given, np.ndarray) and given.ndim == 1 else None)


def wishart(what: str, given: Any, stack: tuple[int, ...], width: int) -> NormalWishart:
    """Return distributions of Gaussians, with scale matrices that are positive definite."""
    if not isinstance(given, NormalWishart):
        raise FormatError(f"{what} must be distributions of Gaussians")
    floats(f"the means of {what}", given.mean, (*stack, width))
    floats(f"the scales of {what}", given.scale, (*stack, width, width))
    for name, low in (("strength", 0.0), ("degrees", width - 1.0)):
        values = np.asarray(getattr(given, name))
        floats(f"the {name} of {what}", values, stack, above=low)
    np.linalg.cholesky(given.scale)
    return given


def _several(names: Any) -> int:
    if names is None or len(names) < 2:
        raise FormatError("there must be two classes or more")
    return len(names)
