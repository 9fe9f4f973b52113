"""Which inferer answers: by name, or the first of a list that does not refuse."""

from __future__ import annotations

from structlearn._src.common import checks
from structlearn._src.common.errors import QueryError, TooWideError
from structlearn._src.inference.base import Inferer, Options, Problem, TooWide
from structlearn._src.inference.chain import ChainInference
from structlearn._src.inference.enumeration import Enumeration
from structlearn._src.inference.gibbs import Gibbs
from structlearn._src.inference.icm import ICM
from structlearn._src.inference.junction import ASKED, JunctionTree, affordable
from structlearn._src.inference.loopy import BeliefPropagation, TreeInference
from structlearn._src.inference.names import Query
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
#: The same for prediction, many times over. Training passes messages where it cannot be exact, and
#: ascents to better labels pay only where these are cheap to value.
_PREDICTING = AUTO | {Query.MARGINAL_MAP: (*_EXACT, "bp")}
_TOO_MANY_TO_ORDER = 50_000  # variables; looking for an elimination order would take seconds


def pick(
    problem: Problem, query: Query, method: str, options: Options, times: float = ASKED
) -> Inferer:
    """Return the inferer by name, or for "auto" the first that does not refuse.

    "auto" may spend `times` the cost of message passing on being exact.
    """
    if isinstance(method, str) and method == "auto":
        return _first(problem, query, options, times)
    checks.one_of("method", method, ("auto", *METHODS))
    chosen = METHODS[method]
    reason = chosen.refuses(problem, query, options)
    if reason:
        error = TooWideError if isinstance(reason, TooWide) else QueryError
        raise error(f"method={method!r} cannot be used here: {reason}")
    return chosen


def _first(problem: Problem, query: Query, options: Options, times: float) -> Inferer:
    reasons = []
    for name in (AUTO if times == ASKED else _PREDICTING)[query]:
        reason = _too_dear(problem, options, times) if name == "junction_tree" else ""
        reason = reason or METHODS[name].refuses(problem, query, options)
        if not reason:
            return METHODS[name]
        reasons.append(f"{name}: {reason}")
    raise QueryError("no method can answer this. " + "; ".join(reasons))


def _too_dear(problem: Problem, options: Options, times: float) -> str:
    if problem.wiring.n_variables > _TOO_MANY_TO_ORDER:
        return "too many variables to look for an elimination order"
    if times < ASKED and not affordable(problem, options, times):
        return "message passing is far quicker"
    return ""
