"""What message passing prepares once for a wiring and its temperatures."""

from __future__ import annotations

from functools import partial

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.threads import Scratch
from structlearn._src.inference.base import Problem
from structlearn._src.inference.layout import lay_out
from structlearn._src.inference.schedule import VisitingOrder
from structlearn._src.kernels.graph.domain import Span
from structlearn._src.kernels.graph.message import MessageWorkspace
from structlearn._src.kernels.graph.schedule import BACK, FORTH

_WIDEST = 150.0  # nats between the entries of a table up to which linear messages are safe
_NEAR = _WIDEST / 2  # nats from 0 up to which tables need not even be scaled


class MessagePlan:
    """Made once for a wiring and its temperatures, and shared by all runs.

    Messages are tree-reweighted by `appearance`, the edge appearance probability of every factor.
    """

    def __init__(
        self, problem: Problem, appearance: Floats | None = None, n_jobs: int | None = None
    ) -> None:
        wiring = problem.wiring
        usual = problem.temperature if problem.uniform else problem.eps_hidden
        layout = lay_out(wiring, usual, n_jobs)
        self.forests = layout.forests  #: which graphs have no cycle
        self.order = layout.order
        self.shared = self.order.shared  #: graphs whose blocks threads share
        self.net = layout.net
        self.parts = layout.parts
        self.borders = self.parts.borders[self.parts.graph_parts]  #: of graphs
        singles, states, arity, size = layout.facts.T
        #: Number of slots of every graph whose messages can change.
        self.moving = np.diff(self.borders[:, 1]) - self.parts.sums(singles)
        most = states.max(initial=1)
        size = size.max(initial=most)
        shapes = (int(arity.max(initial=1)), int(most)), (int(size),), (int(size),)
        #: Returns room for the messages of one thread.
        self.make_workspace = partial(make_workspace, shapes)
        self.workspaces = threads.Workspaces(self.make_workspace)
        #: Ranges of graphs, for one call of a kernel after the other: for some sweeps, or for all.
        self.tasks = threads.calls_of(wiring.graph_tables, "few graphs")
        self.runs = threads.calls_of(wiring.graph_tables, "whole graphs")
        #: The same of parts, and of factors.
        some = len(self.shared) > 0
        self.readings = threads.calls_of(self.parts.tables, "few graphs") if some else self.tasks
        self.pieces = threads.calls_of(wiring.table_offsets, "entries")
        #: Of graphs that threads share: what is visited at the same time in a sweep, and which way.
        self.rounds = {int(g): _rounds(self.order, int(g)) for g in self.shared}
        self.weights, self.ratios = layout.weights, layout.ratios
        plain = problem.uniform and appearance is None
        coldest, lowest, power = _bounds(problem) if plain else self._temper(problem, appearance)
        #: Whether nothing is maximised, so that messages may be kept as exponentials.
        self.warm = lowest > 0 and coldest > 0
        self.raises = not plain and bool((self.ratios != 1.0).any())  #: linear messages to powers
        # Messages are raised to the ratio of the temperatures of factor and variable.
        self.span = Span(_NEAR * lowest / power, _WIDEST, power)
        self.exponentials = Scratch(int(wiring.table_offsets[-1]))

    def _temper(self, problem: Problem, appearance: Floats | None) -> tuple[float, float, float]:
        """Weigh factors and slots; returns the coldest variable, lowest weight, highest ratio.

        A factor that touches a hidden variable works at the hidden temperature: information between
        an output and a hidden variable counts in the entropy of the hidden ones given the outputs.
        Tree-reweighted factors work at the lowest temperature of their variables: with that,
        whichever of them hangs on the other in a forest, its entropy counts in a concave way, so
        that there is one best answer still.
        """
        wiring = problem.wiring
        weights, ratios = self.weights, self.ratios
        if not problem.uniform:
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
            weights *= share
            ratios *= share[wiring.slot_factors]
        numbers = problem.eps.min(initial=1.0), weights.min(initial=1.0), ratios.max(initial=1.0)
        coldest, lowest, power = map(float, numbers)
        return coldest, lowest, power


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


def _bounds(problem: Problem) -> tuple[float, float, float]:
    """The same where all have one temperature: at most 1."""
    temperature = min(problem.temperature, 1.0)
    wiring = problem.wiring
    coldest, lowest = (temperature if n else 1.0 for n in (wiring.n_variables, wiring.n_factors))
    return coldest, lowest, 1.0
