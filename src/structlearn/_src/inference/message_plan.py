"""What message passing prepares once for a wiring and its temperatures."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints, offsets_of
from structlearn._src.common.threads import Scratch
from structlearn._src.common.vectors import filled
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference.base import Problem
from structlearn._src.inference.schedule import VisitingOrder, make_schedule, pack
from structlearn._src.kernels.graph.domain import Span
from structlearn._src.kernels.graph.message import MessageWorkspace
from structlearn._src.kernels.graph.schedule import BACK, FORTH, survey

_Numbers = TypeVar("_Numbers", Floats, Ints)
_WIDEST = 150.0  # nats between the entries of a table up to which linear messages are safe
_NEAR = _WIDEST / 2  # nats from 0 up to which tables need not even be scaled
_PARTS = 128  # of a graph that threads share: a few for every thread


class Parts(NamedTuple):
    """Ranges of graphs, or of a large one, for work that needs no order; chosen from graphs."""

    borders: Ints  #: (parts + 1, 3) where their variables, slots and factors begin
    graph_parts: Ints  #: (graphs + 1) into parts
    tables: Ints  #: (parts + 1) where their tables begin, as weights

    def sums(self, values: _Numbers) -> _Numbers:
        """Add up the values of the parts of every graph."""
        return np.add.reduceat(values, self.graph_parts[:-1]) if len(values) else values


class MessagePlan:
    """Made once for a wiring and its temperatures, and shared by all runs.

    Messages are tree-reweighted by `appearance`, the edge appearance probability of every factor.
    """

    def __init__(
        self, problem: Problem, appearance: Floats | None = None, n_jobs: int | None = None
    ) -> None:
        wiring = problem.wiring
        self.weights, self.ratios = _temperatures(problem, appearance, n_jobs)
        self.forests = wiring.forests(n_jobs)  #: which graphs have no cycle
        self.order = make_schedule(wiring, self.forests, n_jobs)
        self.shared = self.order.shared  #: graphs whose blocks threads share
        self.net = pack(wiring, self.order, n_jobs)
        self.parts = _parts(wiring, self.shared)
        self.borders = self.parts.borders[self.parts.graph_parts]  #: of graphs
        singles, states, arity, size = self._survey(wiring, n_jobs)
        #: Number of slots of every graph whose messages can change.
        self.moving = np.diff(self.borders[:, 1]) - self.parts.sums(singles)
        most = states.max(initial=1)
        size = size.max(initial=most)
        shapes = (int(arity.max(initial=1)), int(most)), (int(size),), (int(size),)
        #: Returns room for the messages of one thread.
        self.make_workspace = partial(make_workspace, shapes)
        self.workspaces = threads.Workspaces(self.make_workspace)
        #: Of graphs that threads share: what is visited at the same time in a sweep, and which way.
        self.rounds = {int(g): _rounds(self.order, int(g)) for g in self.shared}
        #: Whether nothing is maximised, so that messages may be kept as exponentials.
        self.warm = bool(self.weights.min(initial=1.0) > 0 and problem.eps.min(initial=1.0) > 0)
        plain = problem.uniform and appearance is None
        self.raises = not plain and bool((self.ratios != 1.0).any())  #: linear messages to powers
        # Messages are raised to the ratio of the temperatures of factor and variable.
        power = float(self.ratios.max(initial=1.0))
        near = _NEAR * float(self.weights.min(initial=1.0)) / power
        self.span = Span(near, _WIDEST, power)
        self.exponentials = Scratch(int(wiring.table_offsets[-1]))

    def _survey(self, wiring: Wiring, n_jobs: int | None) -> Ints:
        """Return a row for every fact about the parts."""
        found = np.empty((len(self.parts.tables) - 1, 4), np.int64)

        def work(first: int, last: int) -> None:
            survey(wiring, self.parts.borders, first, last, found)

        threads.over_items(work, self.parts.tables, "entries", n_jobs)
        return found.T


def make_workspace(shapes: tuple[tuple[int, ...], ...]) -> MessageWorkspace:
    """Return room for the messages of one thread."""
    return MessageWorkspace(*threads.worker_arrays(*shapes))


def _rounds(order: VisitingOrder, g: int) -> Ints:
    """(rounds, 3) First and last blocks of a graph: colours from the last to the first and back."""
    first, *others = range(*order.graph_colours[g : g + 2])
    ways = [(c, BACK) for c in reversed(others)]
    ways += [(first, BACK | FORTH), *((c, FORTH) for c in others)]
    borders = order.colour_offsets
    return np.array([(borders[colour], borders[colour + 1], way) for colour, way in ways])


def _parts(wiring: Wiring, shared: Ints) -> Parts:
    """Graphs that threads share have several parts, all others are one."""
    counts = np.ones(wiring.n_graphs, np.int64)
    counts[shared] = _PARTS
    graph_parts = offsets_of(counts)
    graphs = np.repeat(np.arange(wiring.n_graphs), counts)
    share = (np.arange(len(graphs)) - graph_parts[graphs]) / counts[graphs]

    def cut(borders: Ints) -> Ints:
        inside = (share * np.diff(borders)[graphs]).astype(np.int64)
        return np.append(borders[graphs] + inside, borders[-1])

    variables, factors = cut(wiring.graph_variables), cut(wiring.graph_factors)
    borders = np.stack([variables, wiring.scope_offsets[factors], factors], axis=1)
    return Parts(borders, graph_parts, wiring.table_offsets[factors])


def _temperatures(
    problem: Problem, appearance: Floats | None, n_jobs: int | None
) -> tuple[Floats, Floats]:
    """Weight of every factor and ratio of every slot.

    A factor that touches a hidden variable works at the hidden temperature: information between
    an output and a hidden variable counts in the entropy of the hidden ones given the outputs.
    Tree-reweighted factors work at the lowest temperature of their variables: with that, whichever
    of them hangs on the other in a forest, its entropy counts in a concave way, so that there is
    one best answer still.
    """
    wiring = problem.wiring
    ratios = filled(len(wiring.scopes), 1.0, n_jobs)
    uniform = problem.uniform
    usual = problem.temperature if uniform else problem.eps_hidden
    weights = filled(wiring.n_factors, usual, n_jobs)
    if not uniform:
        touched = np.zeros(wiring.n_factors, np.bool_)
        touched[wiring.slot_factors[problem.hidden[wiring.scopes]]] = True
        weights[~touched] = problem.eps_output
        if appearance is not None:
            weights[:] = np.inf
            np.minimum.at(weights, wiring.slot_factors, problem.eps[wiring.scopes])
        slot_weight, slot_eps = weights[wiring.slot_factors], problem.eps[wiring.scopes]
        differ = slot_weight != slot_eps
        with np.errstate(divide="ignore"):
            ratios[differ] = slot_weight[differ] / slot_eps[differ]
    if appearance is not None:
        share = np.where(wiring.arities > 1, appearance, 1.0)
        weights = weights * share
        ratios = ratios * share[wiring.slot_factors]
    return weights, ratios
