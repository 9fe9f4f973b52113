"""What an inferer takes (Problem, Options) and gives (Result), and what users get (Answer)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Annotated, Any, Protocol, get_origin, get_type_hints

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.common.random import Seed, generator
from structlearn._src.common.watch import Ending, Progress, Watch
from structlearn._src.graph.wiring import HIDDEN, Wiring
from structlearn._src.inference.names import ASSIGNMENTS, Query

#: In which order messages are updated; `STEEPEST` is for single flips.
SCHEDULES = ("sequential", "flooding", "residual")
STEEPEST = "steepest"

#: Why methods refuse `k` > 1.
NO_K_BEST = "the k best assignments are found on chains only"


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
        return np.where(self.hidden, self.eps_hidden, self.eps_output)

    @property
    def uniform(self) -> bool:
        """Whether all variables share one temperature, so that their order does not matter."""
        eps = self.eps
        return len(eps) == 0 or bool((eps == eps[0]).all())

    @property
    def temperature(self) -> float:
        """The temperature of a uniform problem."""
        return float(self.eps[0]) if len(self.eps) else self.eps_output


#: Checks an argument, given its name, and returns it as it is to be used.
Check = Callable[[str, Any], Any]


def _at_least(low: int) -> Check:
    return lambda name, given: checks.integer(name, given, low=low)


def _if_given(check: Check) -> Check:
    return lambda name, given: None if given is None else check(name, given)


_number = partial(checks.number, low=0.0)
_share = partial(checks.number, low=0.0, high=1.0, open_high=True)
_schedule = partial(checks.one_of, allowed=(*SCHEDULES, STEEPEST))


def _messages(name: str, given: Any) -> Floats:
    return checks.potentials(given, name)


@dataclass(frozen=True, eq=False)
class Options:
    """Everything a user can turn, with its check; each inferer reads what concerns it.

    An option is a field here and an argument of `infer`.
    """

    max_iter: Annotated[int, _at_least(1)] = 500
    tol: Annotated[float, _number] = 1e-6
    damping: Annotated[float | None, _if_given(_share)] = None
    schedule: Annotated[str, _schedule] = "sequential"
    restarts: Annotated[int, _at_least(0)] = 1
    start: Annotated[Floats | None, _if_given(_messages)] = None
    max_table: Annotated[int, _at_least(1)] = 2**25  # 256 MB
    n_samples: Annotated[int, _at_least(1)] = 1000
    burn_in: Annotated[int, _at_least(0)] = 100
    k: Annotated[int, _at_least(1)] = 1
    n_jobs: Annotated[int | None, _if_given(_at_least(1))] = None
    factor_marginals: Annotated[bool, checks.boolean] = False
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    watch: Watch = field(default_factory=Watch)

    @classmethod
    def checked(
        cls,
        time_limit: float | None = None,
        progress: Progress | None = None,
        random_state: Seed = None,
        **given: Any,
    ) -> Options:
        """Check what a user gave; what is not given keeps its default."""
        hints = get_type_hints(cls, include_extras=True)
        check = {name: hint.__metadata__[0] for name, hint in hints.items() if _checked(hint)}
        for name in given:
            checks.one_of("option", name, tuple(check))
        if time_limit is not None:
            checks.number("time_limit", time_limit, low=0.0, open_low=True)
        values = {name: check[name](name, value) for name, value in given.items()}
        return cls(**values, rng=generator(random_state), watch=Watch(time_limit, progress))


def _checked(hint: Any) -> bool:
    return get_origin(hint) is Annotated


def _no_floats() -> Floats:
    return np.empty(0)


@dataclass(eq=False)
class Result:
    """What an inferer found; `value`, bounds and the like have one entry per graph.

    Beliefs, labels and draws are there for the queries that ask for them, and else empty.
    """

    value: Floats
    exact: bool
    lower: Floats | None = None
    upper: Floats | None = None
    beliefs: Floats = field(default_factory=_no_floats)  #: in the layout of `belief_offsets`
    factor_beliefs: Floats = field(default_factory=_no_floats)  #: in that of `table_offsets`
    #: state of every variable, -1 where the query leaves it open
    labels: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    draws: Ints = field(default_factory=lambda: np.empty((0, 0), np.int64))  #: (samples, variables)
    best: list[tuple[Floats, Ints]] | None = None  #: k best (value, labels), best first
    converged: Bools | None = None
    apart: Floats | None = None  #: how far runs from other starts ended from the beliefs
    iterations: Ints | None = None
    residual: Floats | None = None
    messages: Floats | None = None
    ended: Ending = Ending.DONE
    status: str = ""

    @classmethod
    def exactly(cls, value: Floats, status: str, **found: Any) -> Result:
        """What an exact method found."""
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
        uniforms = options.rng.random((options.n_samples, problem.wiring.n_variables))
        return {"draws": np.stack([decode(row) for row in uniforms])}
    return {}


def exceeds(new: Floats, old: Floats, tol: float) -> Bools:
    """Tell which values are above the old ones by more than rounding; any is above -inf."""
    size: Floats = np.abs(np.where(np.isfinite(old), old, 0.0))
    return np.asarray(new > old + tol * (1.0 + size))


def in_graphs(which: Bools) -> str:
    """Say how many of several graphs are meant; nothing if there is only one."""
    return f" in {which.sum()} of {len(which)} graphs" if len(which) > 1 else ""


class TooWide(str):
    """A refusal for want of memory or time, so that it is raised as `TooWideError`."""


class Inferer(Protocol):
    """One way to answer. `refuses` says in words why it cannot, or returns an empty string."""

    name: str

    def refuses(self, problem: Problem, query: Query, options: Options) -> str:
        """Say why this problem cannot be answered; empty if it can. Costs little."""
        ...

    def run(self, problem: Problem, query: Query, options: Options) -> Result:
        """Answer."""
        ...


@dataclass(frozen=True, eq=False)
class Answer:
    """What `infer` returns for one graph.

    Attributes
    ----------
    query, method
        What was asked and who answered.
    value
        The soft maximum at the query's temperatures: log Z for "partition", "marginals" and
        "samples", the score of the assignment for "map", the log of its summed-out weight for
        "marginal_map".
    lower, upper
        Bounds on the true value; equal to it if `exact`, infinite where nothing is known.
    exact
        Whether the answer is exact up to rounding.
    ended
        Whether all was done, or a limit, the clock or the keyboard came first.
    status
        One sentence on how it went.
    marginals
        Array of every variable, by its name.
    factor_marginals
        Array of every factor, by its index.
    assignment
        State of every variable by its name; with "marginal_map" of the outputs only.
    k_best
        Pairs of value and assignment, best first.
    samples
        (samples, variables) Draws.
    converged, iterations, residual, messages
        How an iterative method ended; `messages` warm-start a later call (`start=`).
    """

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

    @property
    def gap(self) -> float:
        """Distance between the bounds."""
        return self.upper - self.lower

    def __repr__(self) -> str:
        return (
            f"Answer({self.query} by {self.method}: value {self.value:.6g}, "
            f"{'exact' if self.exact else 'approximate'}; {self.status})"
        )
