"""Chains for other packages."""

from __future__ import annotations

import inspect
from typing import Any

from numpy.typing import NDArray

_DENSITY = "log_density"  # which ArviZ keeps apart, under the name "lp"


def to_arviz(traces: dict[str, NDArray[Any]]) -> Any:
    """Return what every sweep told, arrays (chains, sweeps), in the form that ArviZ reads."""
    try:
        import arviz
    except ImportError:
        raise ImportError("this needs ArviZ, which is not installed: pip install arviz") from None
    groups: dict[str, Any] = {
        "posterior": {name: values for name, values in traces.items() if name != _DENSITY}
    }
    if _DENSITY in traces:
        groups["sample_stats"] = {"lp": traces[_DENSITY]}
    by_name = "posterior" in inspect.signature(arviz.from_dict).parameters  # before ArviZ 1.0
    return arviz.from_dict(**groups) if by_name else arviz.from_dict(groups)
