"""Which inferer answers: by name, or the first of a list that does not refuse."""

from __future__ import annotations

from structlearn._src.common import checks
from structlearn._src.common.errors import QueryError, TooWideError
from structlearn._src.inference.base import Inferer, Options, Problem, TooWide
from structlearn._src.inference.chain import Chain
from structlearn._src.inference.enumeration import Enumeration
from structlearn._src.inference.gibbs import Gibbs
from structlearn._src.inference.icm import ICM
from structlearn._src.inference.junction import JunctionTree, affordable
from structlearn._src.inference.loopy import BeliefPropagation, Tree
from structlearn._src.inference.portfolio import Portfolio
from structlearn._src.inference.trw import TreeReweighted

METHODS: dict[str, Inferer] = {
    m.name: m
    for m in (
        Chain(),
        Tree(),
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
AUTO = {
    "partition": (*_EXACT, "bp"),
    "marginals": (*_EXACT, "bp"),
    "map": (*_EXACT, "portfolio"),
    "marginal_map": (*_EXACT, "portfolio"),
    "samples": (*_EXACT, "gibbs"),
}
_TOO_MANY_TO_ORDER = 50_000  # variables; looking for an elimination order would take seconds


def pick(problem: Problem, query: str, method: str, options: Options) -> Inferer:
    """Return the inferer to use, or say why there is none."""
    if isinstance(method, str) and method == "auto":
        return _first(problem, query, options)
    checks.one_of("method", method, ("auto", *METHODS))
    chosen = METHODS[method]
    reason = chosen.refuses(problem, query, options)
    if reason:
        error = TooWideError if isinstance(reason, TooWide) else QueryError
        raise error(f"method={method!r} cannot be used here: {reason}")
    return chosen


def _first(problem: Problem, query: str, options: Options) -> Inferer:
    reasons = []
    for name in AUTO[query]:
        if name == "junction_tree" and problem.wiring.n_variables > _TOO_MANY_TO_ORDER:
            reasons.append(f"{name}: too many variables to look for an elimination order")
            continue
        reason = METHODS[name].refuses(problem, query, options)
        if not reason:
            return METHODS[name]
        reasons.append(f"{name}: {reason}")
    raise QueryError("no method can answer this. " + "; ".join(reasons))


def worth_exact(problem: Problem, n_jobs: int | None, times: float = 1.0) -> bool:
    """Whether exact inference costs no more than `times` what message passing would."""
    return affordable(problem, Options(n_jobs=n_jobs), times)
