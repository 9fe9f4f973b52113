"""What an inferer takes (Problem, Options) and gives (Result), and what users get (Answer)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.common.watch import Watch
from structlearn._src.graph.wiring import HIDDEN, Wiring

#: What can be asked, and the temperatures (outputs, hidden) that the question implies.
QUERIES = {
    "partition": (1.0, 1.0),
    "marginals": (1.0, 1.0),
    "map": (0.0, 0.0),
    "marginal_map": (0.0, 1.0),
    "samples": (1.0, 1.0),
}


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


@dataclass(frozen=True, eq=False)
class Options:
    """Everything a user can turn; each inferer reads what concerns it."""

    max_iter: int = 500
    tol: float = 1e-6
    damping: float | None = None
    schedule: str = "sequential"
    restarts: int = 1
    start: Floats | None = None
    max_table: int = 2**25
    n_samples: int = 1000
    burn_in: int = 100
    k: int = 1
    n_jobs: int | None = None
    factor_marginals: bool = False
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    watch: Watch = field(default_factory=Watch)


@dataclass(eq=False)
class Result:
    """What an inferer found; `value`, bounds and the like have one entry per graph."""

    value: Floats
    exact: bool
    lower: Floats | None = None
    upper: Floats | None = None
    beliefs: Floats | None = None  #: flat, in the layout of `wiring.belief_offsets`
    factor_beliefs: Floats | None = None  #: flat, in the layout of `wiring.table_offsets`
    labels: Ints | None = None  #: state of every variable, -1 where the query leaves it open
    draws: Ints | None = None  #: (samples, variables)
    best: list[tuple[Floats, Ints]] | None = None  #: k best (value, labels), best first
    converged: Bools | None = None
    iterations: Ints | None = None
    residual: Floats | None = None
    messages: Floats | None = None
    status: str = ""


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

    def refuses(self, problem: Problem, query: str, options: Options) -> str:
        """Say why this problem cannot be answered; empty if it can. Costs little."""
        ...

    def run(self, problem: Problem, query: str, options: Options) -> Result:
        """Answer."""
        ...


@dataclass(frozen=True, eq=False)
class Answer:
    """What `infer` returns for one graph.

    Attributes
    ----------
    query, method : str
        What was asked and who answered.
    value : float
        The soft maximum at the query's temperatures: log Z for "partition", "marginals" and
        "samples", the score of the assignment for "map", the log of its summed-out weight for
        "marginal_map".
    lower, upper : float
        Bounds on the true value; equal to it if `exact`, infinite where nothing is known.
    exact : bool
        Whether the answer is exact up to rounding.
    status : str
        One sentence on how it went.
    marginals : mapping from variable name to array, or None
    factor_marginals : mapping from factor index to array, or None
    assignment : mapping from variable name to state, or None
        For "map" all variables, for "marginal_map" the outputs only.
    k_best : list of (value, assignment), or None
    samples : integer array (samples, variables), or None
    converged, iterations, residual, messages
        How an iterative method ended; `messages` warm-start a later call (`start=`).
    """

    query: str
    method: str
    value: float
    lower: float
    upper: float
    exact: bool
    status: str
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
