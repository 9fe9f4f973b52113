"""What an inferer takes (Problem, Options) and gives (Result), and what users get (Answer)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.common.checks import Seed, generator
from structlearn._src.common.document import completed
from structlearn._src.common.watch import Ending, Progress, Watch
from structlearn._src.graph.joined import graph_range
from structlearn._src.graph.wiring import HIDDEN, Wiring
from structlearn._src.inference.base_doc import ANSWER, INFERER, RESULT
from structlearn._src.inference.names import ASSIGNMENTS, Query
from structlearn._src.inference.shown import Shown

#: In which order messages are updated; `STEEPEST` is for single flips.
SCHEDULES = ("sequential", "flooding", "residual")
STEEPEST = "steepest"


@dataclass(frozen=True, eq=False)
class Problem:
    r"""One or many graphs with potentials and two temperatures.

    The value of a graph is a soft maximum, hidden variables innermost:

    .. math:: \Phi = \epsilon_y \log \sum_y \exp \frac{1}{\epsilon_y}
              \Bigl(\epsilon_h \log \sum_h \exp \frac{\theta(y, h)}{\epsilon_h}\Bigr)

    A temperature of 0 is a maximum; (1, 1) gives log Z, (0, 0) the MAP score and (0, 1) the
    marginal-MAP score.
    """

    wiring: Wiring
    potentials: Floats
    eps_output: float = 1.0
    eps_hidden: float = 1.0
    #: Tables of the nodes of a chain and the one of all its steps; then `potentials` are empty.
    shared: tuple[Floats, Floats] | None = None

    def __post_init__(self) -> None:
        if not self.potentials.flags.writeable:  # for kernels that would be another type
            object.__setattr__(self, "potentials", self.potentials.copy())

    @property
    def hidden(self) -> Bools:
        """Which variables are hidden."""
        return self.wiring.roles == HIDDEN

    @cached_property
    def eps(self) -> Floats:
        """Temperature of every variable."""
        if self.eps_hidden == self.eps_output:
            return np.full(self.wiring.n_variables, self.eps_output)
        return np.where(self.hidden, self.eps_hidden, self.eps_output)

    def at(self, potentials: Floats) -> Problem:
        """Return the same problem with other potentials; temperatures are not found anew."""
        other = replace(self, potentials=potentials)
        other.__dict__["eps"] = self.eps
        return other

    def part(self, first: int, last: int) -> Problem:
        """Return the problem of the graphs first..last-1."""
        wiring = self.wiring
        tables = slice(*wiring.graph_tables[[first, last]])
        part = graph_range(wiring, first, last)
        return Problem(part, self.potentials[tables], self.eps_output, self.eps_hidden)

    @property
    def uniform(self) -> bool:
        """Whether all variables share one temperature, so that their order does not matter."""
        if self.eps_output == self.eps_hidden or not len(self.eps):
            return True
        return bool((self.eps == self.eps[0]).all())

    @property
    def temperature(self) -> float:
        """The temperature of a uniform problem."""
        return float(self.eps[0]) if len(self.eps) else self.eps_output


def _option(default: Any, check: Callable[..., Any], **limits: Any) -> Any:
    """Return a field with the check of what a user gives; None passes where it is the default."""
    return field(default=default, metadata={"check": partial(check, **limits)})


def _messages(name: str, given: Any) -> Floats:
    return checks.potentials(given, name)


@dataclass(frozen=True, eq=False)
class Options:
    """All options with their checks; each inferer reads those that concern it.

    An option is a field here and an argument of `infer`.
    """

    max_iter: int = _option(500, checks.integer, low=1)
    tol: float = _option(1e-6, checks.number, low=0.0)
    damping: float | None = _option(None, checks.number, low=0.0, high=1.0, open_high=True)
    schedule: str = _option("sequential", checks.one_of, allowed=(*SCHEDULES, STEEPEST))
    restarts: int = _option(1, checks.integer)
    start: Floats | None = field(default=None, metadata={"check": _messages})
    max_table: int = _option(2**25, checks.integer, low=1)  # 256 MB
    n_samples: int = _option(1000, checks.integer, low=1)
    burn_in: int = _option(100, checks.integer)
    k: int = _option(1, checks.integer, low=1)
    n_jobs: int | None = _option(None, checks.integer, low=1)
    factor_marginals: bool = _option(False, checks.boolean)
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    watch: Watch = field(default_factory=Watch)

    @classmethod
    def checked(
        cls,
        time_limit: float | None = None,
        progress: Progress | bool | None = None,
        random_state: Seed = None,
        **given: Any,
    ) -> Options:
        """Check what a user gave; what is not given keeps its default."""
        known = {each.name: each for each in fields(cls) if each.metadata}
        values: dict[str, Any] = {}
        for name, value in given.items():
            option = known[checks.one_of("option", name, tuple(known))]
            absent = value is None and option.default is None
            values[name] = None if absent else option.metadata["check"](name, value)
        if time_limit is not None:
            checks.number("time_limit", time_limit, low=0.0, open_low=True)
        return cls(**values, rng=generator(random_state), watch=Watch(time_limit, progress))


@completed(RESULT)
@dataclass(eq=False)
class Result:
    """Result of an inferer; `value`, bounds and the like have one entry per graph.

    Beliefs, labels and draws are present for the queries that ask for them, and otherwise empty.
    """

    value: Floats
    exact: bool
    lower: Floats | None = None
    upper: Floats | None = None
    beliefs: Floats = field(default_factory=lambda: np.empty(0))  #: as in `belief_offsets`
    factor_beliefs: Floats = field(default_factory=lambda: np.empty(0))  #: as in `table_offsets`
    #: state of every variable, -1 where the query leaves it open
    labels: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    draws: Ints = field(default_factory=lambda: np.empty((0, 0), np.int64))  #: (samples, variables)
    best: list[tuple[Floats, Ints]] | None = None  #: k best (value, labels), best first
    converged: Bools | None = None
    apart: Floats | None = None  #: how far runs from other starts ended from the beliefs
    iterations: Ints | None = None
    residual: Floats | None = None
    messages: Floats | None = None
    bounds: list[tuple[float, Floats, Floats]] = field(default_factory=list)  #: times, limits
    ended: Ending = Ending.DONE
    status: str = ""

    @classmethod
    def exactly(cls, value: Floats, status: str, **found: Any) -> Result:
        """Return the result of an exact method, whose bounds equal its value."""
        met = np.ones(len(value), np.bool_)
        return cls(value, True, value, value, converged=met, status=status, **found)


def read_exactly(
    problem: Problem,
    query: Query,
    options: Options,
    marginals: Callable[[], tuple[Floats, Floats]],
    decode: Callable[[Floats | None], Ints],
) -> dict[str, Any]:
    """Return what an exact method must find for a query, as arguments of a `Result`.

    `marginals` returns the beliefs of variables and of factors, `decode` the best labels or, given
    a uniform number per variable, a draw.
    """
    if query == Query.MARGINALS:
        beliefs, factors = marginals()
        return {"beliefs": beliefs, "factor_beliefs": factors}
    if query in ASSIGNMENTS:
        left_open = problem.hidden & (query == Query.MARGINAL_MAP)
        return {"labels": np.where(left_open, -1, decode(None))}
    if query == Query.SAMPLES:
        n = problem.wiring.n_variables
        draws = np.empty((options.n_samples, n), np.int64)
        for row in draws:
            row[:] = decode(options.rng.random(n))
        return {"draws": draws}
    return {}


def exceeds(new: Floats, old: Floats, tol: float) -> Bools:
    """Tell which values are above the old ones by more than rounding; any is above -inf."""
    size: Floats = np.abs(np.where(np.isfinite(old), old, 0.0))
    return np.asarray(new > old + tol * (1.0 + size))


def in_graphs(which: Bools) -> str:
    """Say how many of several graphs are meant; nothing if there is only one."""
    return f" in {which.sum()} of {len(which)} graphs" if len(which) > 1 else ""


def level(wiring: Wiring, tables: Floats) -> tuple[Floats, Floats]:
    """Return tables whose largest finite entries are 0, and what was taken from each of them.

    Differences between entries are all that counts for beliefs, and rounding spares them then.
    """
    tops = np.maximum.reduceat(tables, wiring.table_offsets[:-1])
    tops = np.where(np.isfinite(tops), tops, 0.0)
    return tables - np.repeat(tops, np.diff(wiring.table_offsets)), tops


class TooWide(str):
    """A refusal for want of memory or time, so that it is raised as `TooWideError`."""


@completed(INFERER)
class Inferer(Protocol):
    """An inference method. `refuses` says why it cannot answer, or returns an empty string.

    A method becomes available to `infer` when an instance is added to `structlearn.extend.METHODS`.
    """

    name: str

    def refuses(self, problem: Problem, query: Query, options: Options) -> str:
        """Say why this problem cannot be answered; empty if it can. Must be cheap."""
        ...

    def run(self, problem: Problem, query: Query, options: Options) -> Result:
        """Answer the query for all graphs of the problem."""
        ...


class BuiltInInferer:
    """An inferer that declares what it can answer; refusals follow from that."""

    name: str
    queries: tuple[Query, ...] = tuple(Query)  #: those it can answer
    k_best = False  #: whether it finds more than one assignment
    one_temperature = False  #: whether all variables must share their temperature

    def refuses(self, problem: Problem, query: Query, options: Options) -> str:
        """Say why this problem cannot be answered; empty if it can."""
        if query not in self.queries:
            known = ", ".join(map(repr, self.queries))
            return f"it can only answer {known}, not {query!r}; method='auto' picks one that can"
        if options.k > 1 and not self.k_best:
            return (
                "it finds one assignment: for the k best use method='auto' or 'junction_tree', "
                "where elimination fits into memory"
            )
        if self.one_temperature and not problem.uniform:
            return "it needs one temperature for all variables"
        return self.objection(problem, query, options)

    def objection(self, problem: Problem, query: Query, options: Options) -> str:
        """Say what else speaks against it; empty if nothing does."""
        return ""


#: What a later call goes on from: log messages, one array per run of messages; empty if exact.
Memory = tuple[Floats, ...]


class Solution(NamedTuple):
    """What an engine found for one set of potentials."""

    values: Floats  #: soft maximum of every graph
    beliefs: Floats  #: of all factors, in the layout of the potentials; empty if not asked for
    memory: Memory  #: what the next call goes on from
    sweeps: int  #: over messages, the most that a graph needed; 0 if exact


@completed(ANSWER)
@dataclass(frozen=True, eq=False)
class Answer(Shown):
    """The result of `infer` for one graph."""

    query: Query
    method: str
    value: float
    lower: float
    upper: float
    exact: bool
    status: str
    ended: Ending = Ending.DONE
    converged: bool = True
    iterations: int = 0
    residual: float = 0.0
    marginals: Mapping[Hashable, Floats] | None = None
    factor_marginals: Mapping[int, Floats] | None = None
    assignment: Mapping[Hashable, int] | None = None
    k_best: list[tuple[float, Mapping[Hashable, int]]] | None = None
    samples: Ints | None = None
    messages: Floats | None = None
    bounds: Floats | None = None

    @classmethod
    def of(cls, same: dict[str, Any], own: Iterable[tuple[str, Any]]) -> Answer:
        """Return an answer from what all graphs of a batch share, and what is its own.

        Several times as fast as the constructor, which sets the fields of a frozen class one by
        one: that matters where thousands of answers are made.
        """
        answer = cls.__new__(cls)
        answer.__dict__.update(same)
        answer.__dict__.update(own)
        return answer

    @property
    def gap(self) -> float:
        """Difference between the bounds."""
        return self.upper - self.lower

    def __repr__(self) -> str:
        return (
            f"Answer({self.query} by {self.method}: value {self.value:.6g}, "
            f"{'exact' if self.exact else 'approximate'}; {self.status})"
        )
