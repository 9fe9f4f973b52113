"""The words of inference; nothing heavy is imported, so that a command prints its help at once."""

from __future__ import annotations

import math
from enum import StrEnum


class Query(StrEnum):
    """What can be asked of a graph; a string as well, so that it compares with users' words."""

    PARTITION = "partition"
    MARGINALS = "marginals"
    MAP = "map"
    MARGINAL_MAP = "marginal_map"
    SAMPLES = "samples"

    def __repr__(self) -> str:
        return repr(str(self))

    @property
    def temperatures(self) -> tuple[float, float]:
        """Temperatures of outputs and hidden variables that the question implies."""
        eps_output = 0.0 if self in ASSIGNMENTS else 1.0
        eps_hidden = 0.0 if self is Query.MAP else 1.0
        return eps_output, eps_hidden


#: Queries about the best assignment.
ASSIGNMENTS = (Query.MAP, Query.MARGINAL_MAP)
#: Methods that are exact or refuse.
EXACT = ("chain", "tree", "junction_tree", "enumeration")
#: All methods of `infer`, beside "auto".
METHODS = (*EXACT, "bp", "trw", "icm", "gibbs", "portfolio")
#: What estimators call inference inside of learning and prediction; "exact" is "junction_tree".
OFFERED = ("auto", "exact", "bp", "trw")

#: How many times as much as message passing exact inference may cost.
ASKED = math.inf  # a question by hand: whatever memory allows
PREDICTED = 30.0  # a prediction is made once, and better labels are worth some seconds
TRAINED = 2.0  # training asks hundreds of times, yet messages may be wrong
