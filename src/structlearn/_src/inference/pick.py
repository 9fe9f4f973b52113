"""Which inferer answers: by name, or the first of a list that does not refuse."""

from __future__ import annotations

from structlearn._src.common.errors import QueryError, TooWideError
from structlearn._src.inference.base import Inferer, Options, Problem, TooWide
from structlearn._src.inference.chain import ChainInference
from structlearn._src.inference.enumeration import Enumeration
from structlearn._src.inference.gibbs import Gibbs
from structlearn._src.inference.icm import ICM
from structlearn._src.inference.junction import JunctionTree
from structlearn._src.inference.loopy import BeliefPropagation, TreeInference
from structlearn._src.inference.names import Query
from structlearn._src.inference.order import SECONDS_PER_VARIABLE, TOO_MANY_TO_ORDER
from structlearn._src.inference.portfolio import Portfolio
from structlearn._src.inference.trw import TreeReweighted

METHODS: dict[str, Inferer] = {
    m.name: m
    for m in (
        ChainInference(),
        TreeInference(),
        JunctionTree(),
        Enumeration(),
        BeliefPropagation(),
        TreeReweighted(),
        ICM(),
        Gibbs(),
        Portfolio(),
    )
}

_EXACT = ("chain", "tree", "junction_tree")
#: What `method="auto"` tries, in order; the last accepts every graph.
AUTO: dict[Query, tuple[str, ...]] = {
    Query.PARTITION: (*_EXACT, "bp"),
    Query.MARGINALS: (*_EXACT, "bp"),
    Query.MAP: (*_EXACT, "portfolio"),
    Query.MARGINAL_MAP: (*_EXACT, "portfolio"),
    Query.SAMPLES: (*_EXACT, "gibbs"),
}
#: What predicts labels or marginals where exact inference does not: ascents to better labels pay
#: only where these are cheap to value, and tree-reweighted messages need one temperature.
_MESSAGES = {Query.MARGINALS: "bp", Query.MAP: "bp", Query.MARGINAL_MAP: "bp"}
PREDICTING: dict[str, dict[Query, str]] = {
    "auto": _MESSAGES | {Query.MAP: "portfolio"},
    "bp": _MESSAGES,
    "trw": _MESSAGES | {Query.MARGINALS: "trw", Query.MAP: "portfolio"},
}


def pick(problem: Problem, query: Query, method: str, options: Options) -> Inferer:
    """Return the inferer by name, or for "auto" the first that does not refuse."""
    if method == "auto":
        return _first(problem, query, options)
    chosen = METHODS[method]
    reason = chosen.refuses(problem, query, options)
    if reason:
        error = TooWideError if isinstance(reason, TooWide) else QueryError
        raise error(f"method={method!r} cannot be used here: {reason}")
    return chosen


def _first(problem: Problem, query: Query, options: Options) -> Inferer:
    reasons = []
    most = min(TOO_MANY_TO_ORDER, options.watch.left / SECONDS_PER_VARIABLE)
    for name in AUTO[query]:
        reason = "too many variables to look for an elimination order"
        if name != "junction_tree" or problem.wiring.n_variables <= most:
            reason = METHODS[name].refuses(problem, query, options)
        if not reason:
            return METHODS[name]
        reasons.append(f"{name}: {reason}")
    raise QueryError("no method can answer this. " + "; ".join(reasons))
