"""Pictures of answers: labels and marginals on grids and chains, and how messages come to rest.

Displays follow scikit-learn's: a class method takes what there is to show, `plot` draws it into
given axes or into a new figure, and `ax_` and `figure_` hold what was drawn. Figures are made
without pyplot, so nothing opens a window and nothing must be closed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from structlearn.common import checks
from structlearn.common.checks import Floats, Ints
from structlearn.common.errors import ArgumentError, QueryError
from structlearn.graph.build import FactorGraph
from structlearn.inference.answer import Assignment, Marginals
from structlearn.inference.base import QUERIES, Answer, Problem
from structlearn.inference.messenger import SCHEDULES, Messenger

#: Okabe and Ito's colours, which people who see few colours can tell apart.
PALETTE = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000",
)  # fmt: skip
_SURE = "cividis"
_STRIP = 0.14  # height of one strip below the marginals of a chain, whose height is 1


def new_figure(width: float = 6.4, height: float = 4.0) -> Any:
    """Return an empty figure that makes room for everything in it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "pictures need matplotlib, which is not installed: pip install structlearn[plot]"
        ) from None
    figure: Any = Figure(figsize=(width, height), dpi=120, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
    return figure


def state_colours(n_states: int, colours: str | Sequence[Any] | None = None) -> list[Any]:
    """One colour per state: by default `PALETTE`, or a colour map by name, or a list."""
    import matplotlib

    if colours is None:
        colours = PALETTE if n_states <= len(PALETTE) else "viridis"
    if isinstance(colours, str):
        chosen = matplotlib.colormaps[colours](np.linspace(0.0, 1.0, max(n_states, 2)))
        return [tuple(c) for c in chosen[:n_states]]
    if len(colours) < n_states:
        raise ArgumentError(f"{len(colours)} colours were given for {n_states} states")
    return list(colours[:n_states])


class GridDisplay:
    """Labels or probabilities on a grid.

    Parameters
    ----------
    values : array (rows, columns)
        States, -1 where there is none; or probabilities, if `kind` is "probability".
    kind : "labels" or "probability"
    n_states : int, optional
        By default as many as there are names, or one more than the largest state.
    state_names : list of str, optional
    colours : str or list, optional
        See `state_colours`.
    """

    def __init__(
        self,
        values: Any,
        *,
        kind: str = "labels",
        n_states: int | None = None,
        state_names: Sequence[str] | None = None,
        colours: str | Sequence[Any] | None = None,
    ) -> None:
        self.values = np.asarray(values)
        if self.values.ndim != 2:
            raise ArgumentError(f"values has shape {self.values.shape}; need (rows, columns)")
        self.kind = checks.one_of("kind", kind, ("labels", "probability"))
        found = int(self.values.max(initial=0)) + 1 if kind == "labels" else 0
        self.n_states = max(found, len(state_names or ())) if n_states is None else n_states
        self.state_names, self.colours = _names(state_names, self.n_states), colours

    @classmethod
    def from_answer(
        cls,
        answer: Answer,
        shape: tuple[int, int],
        *,
        show: str | int = "labels",
        variables: Sequence[Hashable] | None = None,
        state_names: Sequence[str] | None = None,
        colours: str | Sequence[Any] | None = None,
    ) -> GridDisplay:
        """Show an answer about a grid.

        Parameters
        ----------
        answer : Answer
            To "map", "marginal_map" or "marginals".
        shape : (rows, columns)
        show : str or int
            ``"labels"``: the assignment, or of marginals the best state of each; ``"certainty"``:
            the probability of that state; a number: the probability of that state.
        variables : list of names, optional
            Row by row; by default the first ones of the answer.
        """
        rows, columns = shape
        if show == "labels" and answer.assignment is not None:
            labels = _labels(answer, variables, rows * columns).reshape(shape)
            return cls(labels, state_names=state_names, colours=colours)
        beliefs = _beliefs(answer, variables, rows * columns)
        n_states = beliefs.shape[1]
        if show == "labels":
            values, kind = beliefs.argmax(axis=1), "labels"
        else:
            kind = "probability"
            values = (
                beliefs.max(axis=1) if show == "certainty" else beliefs[:, _state(show, n_states)]
            )
        return cls(
            values.reshape(shape),
            kind=kind,
            n_states=n_states,
            state_names=state_names,
            colours=colours,
        )

    def plot(self, ax: Any = None, *, title: str | None = None, legend: bool = True) -> GridDisplay:
        """Draw, with a bar of colours beside it if `legend`."""
        self.ax_ = new_figure().subplots() if ax is None else ax
        self.figure_ = self.ax_.figure
        image = self._labels() if self.kind == "labels" else self._probabilities()
        self.ax_.set(xticks=[], yticks=[], title=title or "")
        if legend:
            bar = self.figure_.colorbar(image, ax=self.ax_, shrink=0.85)
            if self.kind == "labels":
                bar.set_ticks(range(self.n_states), labels=self.state_names)
                bar.ax.tick_params(length=0)
            else:
                bar.set_label("probability")
        return self

    def _labels(self) -> Any:
        from matplotlib.colors import ListedColormap

        known = np.ma.masked_less(self.values, 0)  # type: ignore[no-untyped-call]
        table = ListedColormap(state_colours(self.n_states, self.colours))
        limits = {"vmin": -0.5, "vmax": self.n_states - 0.5}
        return self.ax_.imshow(known, cmap=table, interpolation="nearest", **limits)

    def _probabilities(self) -> Any:
        return self.ax_.imshow(self.values, cmap=_SURE, vmin=0, vmax=1, interpolation="nearest")


class ChainDisplay:
    """Marginals along a sequence as stacked areas, and below them paths as strips of colour.

    Parameters
    ----------
    marginals : array (positions, states), or None for strips only
    paths : mapping from a name to the states along the sequence
    state_names : list of str, optional
    colours : str or list, optional
        See `state_colours`.
    """

    def __init__(
        self,
        marginals: Any = None,
        *,
        paths: Mapping[str, Any] | None = None,
        state_names: Sequence[str] | None = None,
        colours: str | Sequence[Any] | None = None,
    ) -> None:
        self.marginals = None if marginals is None else np.asarray(marginals, float)
        self.paths = {name: np.asarray(path, np.int64) for name, path in (paths or {}).items()}
        lengths = {len(path) for path in self.paths.values()}
        if self.marginals is not None:
            lengths.add(len(self.marginals))
        if len(lengths) != 1:
            raise ArgumentError(f"marginals and paths have lengths {sorted(lengths)}; need one")
        self.length = lengths.pop()
        self.n_states = max(
            [len(state_names or ()), *(int(p.max(initial=0)) + 1 for p in self.paths.values())]
            + ([] if self.marginals is None else [self.marginals.shape[1]])
        )
        self.state_names, self.colours = _names(state_names, self.n_states), colours

    @classmethod
    def from_answer(
        cls,
        answer: Answer,
        *,
        variables: Sequence[Hashable] | None = None,
        paths: Mapping[str, Any] | None = None,
        state_names: Sequence[str] | None = None,
        colours: str | Sequence[Any] | None = None,
    ) -> ChainDisplay:
        """Show an answer about a chain.

        Parameters
        ----------
        answer : Answer
            To "marginals", "map" or "marginal_map".
        variables : list of names, optional
            In order along the sequence; by default all that the answer speaks of.
        paths : mapping from a name to an Answer or an array of states
            Shown as strips below; an answer without marginals becomes the first strip.
        """
        given: dict[str, Any] = {}
        beliefs = None
        if answer.marginals is not None:
            beliefs = _beliefs(answer, variables)
        else:
            given[answer.query.replace("_", " ")] = answer
        states = {
            name: _labels(path, variables) if isinstance(path, Answer) else path
            for name, path in {**given, **(paths or {})}.items()
        }
        return cls(beliefs, paths=states, state_names=state_names, colours=colours)

    def plot(
        self, ax: Any = None, *, title: str | None = None, legend: bool = True
    ) -> ChainDisplay:
        """Draw, with the names of the states on the right if `legend`."""
        height = 3.2 if self.marginals is not None else max(1.2, 0.24 * self.n_states)
        self.ax_ = new_figure(8.0, height).subplots() if ax is None else ax
        self.figure_ = self.ax_.figure
        colours = state_colours(self.n_states, self.colours)
        ticks: list[tuple[float, str]] = []
        if self.marginals is not None:
            self._areas(colours)
            ticks = [(0.0, "0%"), (0.5, "50%"), (1.0, "100%")]
        ticks += self._strips(colours)
        self.ax_.set_yticks([at for at, _ in ticks], labels=[text for _, text in ticks])
        low = -_STRIP * len(self.paths) - 0.04 * bool(self.paths)
        self.ax_.set(xlim=(-0.5, self.length - 0.5), ylim=(low, 1.0 if ticks[0][0] == 0 else 0.0))
        self.ax_.set(title=title or "")
        for side in ("top", "right", "left", "bottom"):
            self.ax_.spines[side].set_visible(False)
        if legend:
            self._legend(colours)
        return self

    def _areas(self, colours: list[Any]) -> None:
        assert self.marginals is not None
        # Every position gets its full width, also the first and the last.
        edges = np.repeat(np.arange(self.length + 1) - 0.5, 2)[1:-1]
        heights = np.repeat(np.cumsum(self.marginals, axis=1), 2, axis=0)
        below = np.zeros(len(edges))
        for k in range(heights.shape[1]):
            self.ax_.fill_between(edges, below, heights[:, k], color=colours[k], linewidth=0)
            below = heights[:, k]

    def _strips(self, colours: list[Any]) -> list[tuple[float, str]]:
        from matplotlib.colors import to_rgba

        shades = np.array([to_rgba(c) for c in colours] + [to_rgba("white")])
        ticks = []
        for row, (name, path) in enumerate(self.paths.items()):
            top = -0.04 - _STRIP * row
            box = (-0.5, self.length - 0.5, top - 0.85 * _STRIP, top)
            self.ax_.imshow(shades[path][None], extent=box, aspect="auto", interpolation="nearest")
            ticks.append((top - 0.42 * _STRIP, name))
        return ticks

    def _legend(self, colours: list[Any]) -> None:
        from matplotlib.patches import Patch

        handles = [Patch(color=c, label=n) for c, n in zip(colours, self.state_names, strict=True)]
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
        self.ax_.legend(handles=handles[::-1], frameon=False, borderaxespad=0.0, **place)


class ConvergenceDisplay:
    """Largest change of a message, sweep by sweep.

    Parameters
    ----------
    traces : mapping from a name to the largest change after each sweep
    tol : float, optional
        Drawn as a line: where the messages count as being at rest.
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
        """Pass messages on a graph by each schedule and watch them."""
        checks.one_of("query", query, tuple(QUERIES))
        problem = Problem(graph.wiring, graph.potentials, *QUERIES[query])
        runs = {s: Messenger(problem, schedule=s, damping=damping) for s in schedules}
        return cls({s: list(_changes(run, sweeps, tol)) for s, run in runs.items()}, tol)

    def plot(self, ax: Any = None, *, title: str | None = None) -> ConvergenceDisplay:
        """Draw, one line for each trace."""
        self.ax_ = new_figure().subplots() if ax is None else ax
        self.figure_ = self.ax_.figure
        styles = cycle(zip(PALETTE, ("-", "--", "-.", ":") * 2, strict=True))
        for (name, trace), (colour, style) in zip(self.traces.items(), styles, strict=False):
            shown = np.where(trace > 0, trace, np.nan)  # zero has no place on this axis
            steps = np.arange(1, len(trace) + 1)
            self.ax_.plot(steps, shown, style, color=colour, label=name, linewidth=1.8)
        if self.tol:
            self.ax_.axhline(self.tol, color="0.5", linewidth=1, label=f"at rest ({self.tol:g})")
        self.ax_.set(yscale="log", xlabel="sweep", ylabel="largest change", title=title or "")
        self.ax_.grid(color="0.9")
        self.ax_.legend(frameon=False)
        return self


def _changes(messenger: Messenger, sweeps: int, tol: float) -> Iterator[float]:
    for _ in range(sweeps):
        messenger.run(1, tol)
        yield float(messenger.residual[0])
        if messenger.done.all():
            return


def _beliefs(
    answer: Answer, variables: Sequence[Hashable] | None, count: int | None = None
) -> Floats:
    """Marginals (variables, states) of the named variables, or of the first `count`."""
    found = answer.marginals
    if found is None:
        raise QueryError(f"an answer to {answer.query!r} has no marginals; ask for 'marginals'")
    _check_count(len(found) if variables is None else len(variables), count, variables)
    if isinstance(found, Marginals) and variables is None:
        return found.array()[:count]
    names = list(found)[:count] if variables is None else variables
    return np.array([found[name] for name in names])


def _labels(answer: Answer, variables: Sequence[Hashable] | None, count: int | None = None) -> Ints:
    """States of the named variables, or of the first `count`."""
    found = answer.assignment
    if found is None:
        raise QueryError(f"an answer to {answer.query!r} has no assignment; ask for 'map'")
    _check_count(len(found) if variables is None else len(variables), count, variables)
    if variables is None and isinstance(found, Assignment):
        return found.array[found.array >= 0][:count]
    return np.array([found[name] for name in (variables or list(found))])


def _check_count(given: int, wanted: int | None, variables: object) -> None:
    if wanted is not None and (given < wanted or (variables is not None and given != wanted)):
        raise ArgumentError(f"there are {given} variables for {wanted} places of the grid")


def _state(show: str | int, n_states: int) -> int:
    if isinstance(show, str) or not 0 <= show < n_states:
        raise ArgumentError(
            f"show={show!r} is not known; choose 'labels', 'certainty' or a state from 0 to "
            f"{n_states - 1}"
        )
    return show


def _names(names: Sequence[str] | None, n_states: int) -> list[str]:
    if names is None:
        return [str(k) for k in range(n_states)]
    if len(names) < n_states:
        raise ArgumentError(f"{len(names)} state names were given for {n_states} states")
    return list(names[:n_states])
