"""Answers as frames of other packages, and as tables in notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common.errors import QueryError
from structlearn._src.common.frames import make_frame
from structlearn._src.common.html import facts_table, rows_table

_SHOWN = 12  # variables in a notebook


class Shown:
    """What an `Answer` can be turned into, made of its attributes."""

    query: Any
    marginals: Mapping[Any, Any] | None
    assignment: Mapping[Any, Any] | None
    samples: Any

    def to_pandas(self) -> Any:
        """Return the answer as a data frame of pandas, in long form.

        Returns
        -------
        pandas.DataFrame
            Marginals have the columns "variable", "state" and "probability"; assignments
            "variable" and "state"; samples "sample", "variable" (its index) and "state".

        Raises
        ------
        QueryError
            If the query has a number for an answer, and nothing else.

        Examples
        --------
        >>> from structlearn import chain, infer
        >>> graph = chain([[0.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
        >>> infer(graph, "map").to_pandas()["state"].tolist()
        [1, 1]
        """
        return make_frame(self._columns(), "pandas")

    def to_polars(self) -> Any:
        """Return the answer as a data frame of polars, in long form.

        Returns
        -------
        polars.DataFrame
            With the columns that `to_pandas` has.

        Raises
        ------
        QueryError
            If the query has a number for an answer, and nothing else.

        Examples
        --------
        >>> from structlearn import chain, infer
        >>> graph = chain([[0.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
        >>> infer(graph, "marginals").to_polars().shape
        (4, 3)
        """
        return make_frame(self._columns(), "polars")

    def _columns(self) -> dict[str, NDArray[Any]]:
        if self.marginals is not None:
            sizes = [len(p) for p in self.marginals.values()]
            return {
                "variable": np.repeat(_names(self.marginals), sizes),
                "state": np.concatenate([np.arange(n) for n in sizes]),
                "probability": np.concatenate(list(self.marginals.values())),
            }
        if self.assignment is not None:
            states = np.fromiter(self.assignment.values(), np.int64, len(self.assignment))
            return {"variable": _names(self.assignment), "state": states}
        if self.samples is not None:
            sample, variable = np.indices(self.samples.shape)
            return {
                "sample": sample.ravel(),
                "variable": variable.ravel(),
                "state": self.samples.ravel(),
            }
        raise QueryError(
            f"the answer to {str(self.query)!r} is a number, which needs no frame; read `value`, "
            f"or ask for 'marginals', 'map', 'marginal_map' or 'samples'"
        )

    def _repr_html_(self) -> str:
        told = ("query", "method", "value", "lower", "upper", "exact", "status")
        parts = [facts_table("Answer", {name: getattr(self, name) for name in told})]
        if self.marginals is not None:
            rows = [
                (name, int(np.argmax(p)), float(np.max(p)))
                for name, p in islice(self.marginals.items(), _SHOWN)
            ]
            title = _title("Marginals", len(self.marginals))
            parts.append(rows_table(title, ("variable", "best state", "probability"), rows))
        if self.assignment is not None:
            title = _title("Assignment", len(self.assignment))
            shown = list(islice(self.assignment.items(), _SHOWN))
            parts.append(rows_table(title, ("variable", "state"), shown))
        return "".join(parts)


def _names(by_name: Mapping[Any, Any]) -> NDArray[Any]:
    """Names as an array: integers where all of them are, else objects."""
    names = list(by_name)
    if all(isinstance(name, int | np.integer) for name in names):
        return np.array(names, np.int64)
    out = np.empty(len(names), object)
    out[:] = names
    return out


def _title(words: str, n: int) -> str:
    return words if n <= _SHOWN else f"{words}: the first {_SHOWN} of {n:,} variables"
