"""Curves: how messages come to rest, how fits went, how sure models are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.history import History
from structlearn._src.display.pictures import draw_lines
from structlearn._src.graph.build import FactorGraph
from structlearn._src.inference.base import SCHEDULES, Problem
from structlearn._src.inference.messenger import Messenger
from structlearn._src.inference.names import Query
from structlearn._src.learn.dominance import Dominance

_SHOWN = {
    "value": "objective",
    "excess": "objective above the lowest",
    "gap": "duality gap",
    "gradient": "gradient norm",
}
_AGAINST = ("seconds", "iteration")


class ConvergenceDisplay:
    """Largest change of a message in every sweep.

    Parameters
    ----------
    traces
        Largest change after each sweep, by name.
    tol
        Drawn as a line: the change below which messages count as converged.

    Examples
    --------
    >>> from structlearn import ConvergenceDisplay
    >>> display = ConvergenceDisplay({"flooding": [1.0, 0.1, 1e-7]}, tol=1e-6).plot()
    >>> display.ax_.get_xlabel()
    'sweep'
    """

    def __init__(self, traces: Mapping[str, Any], tol: float | None = None) -> None:
        self.traces = {name: np.asarray(trace, float) for name, trace in traces.items()}
        self.tol = tol

    @classmethod
    def from_graph(
        cls,
        graph: FactorGraph,
        query: str = "marginals",
        *,
        schedules: Sequence[str] = SCHEDULES,
        sweeps: int = 100,
        tol: float = 1e-6,
        damping: float = 0.0,
    ) -> ConvergenceDisplay:
        """Run message passing on a graph with each schedule and record it.

        Parameters
        ----------
        graph
            The graph.
        query
            Query whose messages are passed, as in `infer`.
        schedules
            Schedules to compare: "sequential", "flooding", "residual".
        sweeps
            Maximum number of sweeps.
        tol
            Largest change at which messages have converged.
        damping
            Fraction of the old message that is kept.

        Returns
        -------
        ConvergenceDisplay
            The display, to be plotted by `plot`.

        Examples
        --------
        >>> import numpy as np
        >>> from structlearn import grid, ConvergenceDisplay
        >>> graph = grid(np.log([[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.3, 0.7]]]), np.eye(2))
        >>> display = ConvergenceDisplay.from_graph(graph, schedules=["flooding"])
        >>> bool(display.traces["flooding"][-1] <= display.tol)
        True
        """
        asked = Query(checks.one_of("query", query, tuple(Query)))
        problem = Problem(graph.wiring, graph.potentials, *asked.temperatures)
        runs = {s: Messenger(problem, schedule=s, damping=damping) for s in schedules}
        return cls({s: list(_changes(run, sweeps, tol)) for s, run in runs.items()}, tol)

    def plot(self, ax: Any = None, *, title: str | None = None) -> ConvergenceDisplay:
        """Plot one line for each trace.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to plot; by default a new figure.
        title
            Title of the plot.

        Returns
        -------
        ConvergenceDisplay
            The display itself; `ax_` and `figure_` are the axes and the figure.

        Examples
        --------
        >>> from structlearn import ConvergenceDisplay
        >>> ConvergenceDisplay({"flooding": [1.0, 0.1]}).plot().ax_.get_ylabel()
        'largest change'
        """
        lines = {
            name: (np.arange(1, len(trace) + 1), np.where(trace > 0, trace, np.nan))
            for name, trace in self.traces.items()  # zero has no place on this axis
        }
        rest = self.tol or 0.0
        words = {"xlabel": "sweep", "ylabel": "largest change", "title": title or ""}
        self.ax_ = draw_lines(ax, lines, rest, f"tolerance {rest:g}", yscale="log", **words)
        self.figure_ = self.ax_.figure
        return self


def _changes(messenger: Messenger, sweeps: int, tol: float) -> Iterator[float]:
    for _ in range(sweeps):
        messenger.run(1, tol)
        yield float(messenger.residual[0])
        if messenger.done.all():
            return


class HistoryDisplay:
    """Progress of fits: objective, gap or gradient norm against time or iterations.

    Parameters
    ----------
    histories
        The attribute ``history_`` of a fitted estimator, or of several by name.
    optimum
        The lowest known value; by default the lowest of all histories.

    Examples
    --------
    >>> from structlearn import SequenceLabeler
    >>> X, Y = [[["a"], ["b"]], [["b"], ["b"]]], [["x", "y"], ["y", "y"]]
    >>> fits = {C: SequenceLabeler(C=C).fit(X, Y) for C in (0.1, 1.0)}
    >>> display = HistoryDisplay({f"C = {C}": fit.history_ for C, fit in fits.items()})
    >>> display.plot(against="iteration").ax_.get_ylabel()
    'objective'
    """

    def __init__(
        self, histories: Mapping[str, History] | History, optimum: float | None = None
    ) -> None:
        named = {"fit": histories} if isinstance(histories, History) else histories
        self.histories = dict(named)
        if not self.histories:
            raise ArgumentError("histories is empty; at least one is needed")
        self.optimum = optimum

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, name: str | None = None, optimum: float | None = None
    ) -> HistoryDisplay:
        """Show the history of one estimator.

        Parameters
        ----------
        estimator : object
            A fitted estimator with the attribute ``history_``.
        name
            Name of the line; by default the name of the class.
        optimum
            The lowest known value; by default the lowest of the history.

        Returns
        -------
        HistoryDisplay
            The display, to be plotted by `plot`.

        Examples
        --------
        >>> from structlearn import SequenceLabeler, HistoryDisplay
        >>> X, Y = [[["a"], ["b"]], [["b"], ["b"]]], [["x", "y"], ["y", "y"]]
        >>> labeler = SequenceLabeler().fit(X, Y)
        >>> list(HistoryDisplay.from_estimator(labeler).histories)
        ['SequenceLabeler']
        """
        return cls({name or type(estimator).__name__: estimator.history_}, optimum)

    def plot(
        self,
        ax: Any = None,
        *,
        show: str = "value",
        against: str = "seconds",
        title: str | None = None,
    ) -> HistoryDisplay:
        """Plot one line for each history.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to plot; by default a new figure.
        show
            ``"value"``, the objective; ``"excess"``, its distance to the optimum; ``"gap"``, a
            bound on that; ``"gradient"``, its norm (formerly ``"slope"``).
        against
            ``"seconds"`` or ``"iteration"``.
        title
            Title of the plot.

        Returns
        -------
        HistoryDisplay
            The display itself; `ax_` and `figure_` are the axes and the figure.

        Examples
        --------
        >>> from structlearn import SequenceLabeler, HistoryDisplay
        >>> X, Y = [[["a"], ["b"]], [["b"], ["b"]]], [["x", "y"], ["y", "y"]]
        >>> labeler = SequenceLabeler().fit(X, Y)
        >>> display = HistoryDisplay.from_estimator(labeler)
        >>> display.plot(show="gradient", against="iteration").ax_.get_ylabel()
        'gradient norm'
        """
        show = "gradient" if show == "slope" else checks.one_of("show", show, tuple(_SHOWN))
        checks.one_of("against", against, _AGAINST)
        lines = {name: self._line(name, show, against) for name in self.histories}
        words = {"xlabel": against, "ylabel": _SHOWN[show], "title": title or ""}
        scale = "linear" if show == "value" else "log"
        self.ax_ = draw_lines(ax, lines, 0.0, "", yscale=scale, **words)
        self.figure_ = self.ax_.figure
        return self

    def _line(self, name: str, show: str, against: str) -> tuple[Floats, Floats]:
        history = self.histories[name]
        x = np.asarray(getattr(history, against), np.float64)
        y = history.value - self._lowest() if show == "excess" else getattr(history, show)
        known = np.isfinite(y) if show == "value" else np.isfinite(y) & (y > 0)
        if not known.any():
            raise ArgumentError(
                f"the history {name!r} has no {_SHOWN[show]}; show something else, or use a "
                f"solver that reports it"
            )
        if against == "seconds" and not x.any():
            raise ArgumentError(
                f"the history {name!r} has no times, which are not saved with a model; use "
                f"against='iteration'"
            )
        return x[known], y[known]

    def _lowest(self) -> float:
        if self.optimum is not None:
            return self.optimum
        values = np.concatenate([history.value for history in self.histories.values()])
        return float(np.nanmin(values, initial=np.inf))


class DominanceDisplay:
    """Probabilities that a model assigns to whole labellings, sorted in increasing order.

    Below one half no labelling is dominant, and the hinge loss need not be consistent.

    Parameters
    ----------
    dominance
        Result of `dominance` for labelled examples.

    References
    ----------
    Q. Shi et al., "A hybrid loss for multiclass and structured prediction", 2014, figure 3.

    Examples
    --------
    >>> from structlearn import SequenceLabeler, DominanceDisplay
    >>> X, Y = [[["a"], ["b"]], [["b"], ["b"]]], [["x", "y"], ["y", "y"]]
    >>> labeler = SequenceLabeler().fit(X, Y)
    >>> DominanceDisplay(labeler.dominance(X, Y)).plot().ax_.get_xlabel()
    'examples'
    """

    def __init__(self, dominance: Dominance) -> None:
        self.dominance = dominance

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, Y: Any) -> DominanceDisplay:
        """Show the probabilities that a fitted estimator assigns to labelled examples.

        Parameters
        ----------
        estimator : object
            A fitted estimator with a method `dominance`.
        X, Y : list
            Examples and their labels, as in its `fit`.

        Returns
        -------
        DominanceDisplay
            The display, to be plotted by `plot`.

        Examples
        --------
        >>> from structlearn import SequenceLabeler, DominanceDisplay
        >>> X, Y = [[["a"], ["b"]], [["b"], ["b"]]], [["x", "y"], ["y", "y"]]
        >>> labeler = SequenceLabeler().fit(X, Y)
        >>> DominanceDisplay.from_estimator(labeler, X, Y).dominance.best.shape
        (2,)
        """
        return cls(estimator.dominance(X, Y))

    def plot(self, ax: Any = None, *, title: str | None = None) -> DominanceDisplay:
        """Plot one line for the true labellings and one for the most likely ones.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to plot; by default a new figure.
        title
            Title of the plot.

        Returns
        -------
        DominanceDisplay
            The display itself; `ax_` and `figure_` are the axes and the figure.

        Examples
        --------
        >>> from structlearn import SequenceLabeler, DominanceDisplay
        >>> X, Y = [[["a"], ["b"]], [["b"], ["b"]]], [["x", "y"], ["y", "y"]]
        >>> labeler = SequenceLabeler().fit(X, Y)
        >>> display = DominanceDisplay.from_estimator(labeler, X, Y)
        >>> display.plot(title="dominance").ax_.get_title()
        'dominance'
        """
        known = self.dominance
        lines = {"likeliest labelling": _rising(known.best), "true labelling": _rising(known.true)}
        told = f"{known.count} of {len(known.best)} without a dominant labelling"
        words = {"xlabel": "examples", "ylabel": "probability", "title": title or told}
        self.ax_ = draw_lines(ax, lines, 0.5, "one half", ylim=(0, 1), **words)
        self.figure_ = self.ax_.figure
        return self


def _rising(given: Floats) -> tuple[Any, Floats]:
    """Known values in rising order, and their ranks."""
    known = np.sort(given[~np.isnan(given)])
    return np.arange(1, len(known) + 1), known
