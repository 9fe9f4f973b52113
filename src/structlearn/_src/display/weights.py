"""What was learnt: the weights of transitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Bools, Floats
from structlearn._src.common.errors import ArgumentError
from structlearn._src.display.pictures import new_figure, state_titles

_MOST = 12  # states up to which every cell has room for its number


class TransitionDisplay:
    """Transition weights, as a coloured table.

    Parameters
    ----------
    weights : array-like of shape (states, states)
        (states, states) Weights, with the first of the two states in rows.
    state_names
        Names of the states; by default their numbers.
    forbidden : array-like of bool of shape (states, states), optional
        (states, states) Transitions that are ruled out; they are crossed out.

    Examples
    --------
    >>> from structlearn import SequenceLabeler
    >>> X, Y = [[["a"], ["b"]], [["b"], ["b"]]], [["x", "y"], ["y", "y"]]
    >>> display = TransitionDisplay.from_estimator(SequenceLabeler().fit(X, Y)).plot()
    >>> display.state_names
    ['x', 'y']
    """

    _words = ("next", "state")  # of the axes

    def __init__(
        self, weights: Any, *, state_names: Sequence[Any] | None = None, forbidden: Any = None
    ) -> None:
        self.weights: Floats = np.asarray(weights, np.float64)
        n = len(self.weights) if self.weights.ndim else 0
        if self.weights.shape != (n, n):
            raise ArgumentError(f"weights has shape {self.weights.shape}; need (states, states)")
        self.state_names = state_titles(state_names, n)
        self.forbidden: Bools = np.zeros((n, n), np.bool_)
        if forbidden is not None:
            self.forbidden = np.asarray(forbidden, np.bool_).reshape(n, n)

    @classmethod
    def from_estimator(cls, estimator: Any, *, which: int | None = None) -> TransitionDisplay:
        """Show the edge weights of a fitted estimator.

        Parameters
        ----------
        estimator : object
            A fitted estimator with the attribute ``transitions_``.
        which
            Index of the table, if there are several kinds of edges, positions or classes.

        Returns
        -------
        TransitionDisplay
            The display, to be plotted by `plot`.

        Examples
        --------
        >>> from structlearn import SequenceLabeler, TransitionDisplay
        >>> X, Y = [[["a"], ["b"]], [["b"], ["b"]]], [["x", "y"], ["y", "y"]]
        >>> labeler = SequenceLabeler().fit(X, Y)
        >>> TransitionDisplay.from_estimator(labeler).weights.shape
        (2, 2)
        """
        tables = estimator.transitions_
        classes = estimator.classes_
        if tables.ndim == 3:
            if which is None or not 0 <= which < len(tables):
                raise ArgumentError(
                    f"which={which!r} was given, but there are {len(tables)} tables of "
                    f"transitions; choose one from 0 to {len(tables) - 1}"
                )
            tables = tables[which]
        design = estimator.plan_.design
        over_labels = design.hidden != "layer"
        forbidden = design.forbidden if over_labels else None
        display = cls(
            tables,
            state_names=classes if over_labels else None,
            forbidden=None if forbidden is None else forbidden.pairs,
        )
        display._words = (
            ("next label", "label") if over_labels else ("next hidden state", "hidden state")
        )
        return display

    def plot(
        self, ax: Any = None, *, title: str | None = None, legend: bool = True
    ) -> TransitionDisplay:
        """Plot the table.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to plot; by default a new figure.
        title
            Title of the plot.
        legend
            Whether to add a colour bar.

        Returns
        -------
        TransitionDisplay
            The display itself; `ax_` and `figure_` are the axes and the figure.

        Examples
        --------
        >>> from structlearn import TransitionDisplay
        >>> TransitionDisplay([[1.0, -1.0], [0.0, 0.5]]).plot().ax_.get_ylabel()
        'state'
        """
        self.ax_ = new_figure(5.6, 4.6).subplots() if ax is None else ax
        self.figure_ = self.ax_.figure
        shown = np.where(self.forbidden, np.nan, self.weights)
        high = float(np.nanmax(np.abs(shown), initial=0.0)) or 1.0
        image = self.ax_.imshow(shown, cmap="RdBu_r", vmin=-high, vmax=high)
        places = range(len(self.state_names))
        self.ax_.set_xticks(places, labels=self.state_names, rotation=90)
        self.ax_.set_yticks(places, labels=self.state_names)
        self.ax_.set(xlabel=self._words[0], ylabel=self._words[1], title=title or "")
        self._write(0.6 * high)
        if legend:
            self.figure_.colorbar(image, ax=self.ax_, shrink=0.85).set_label("weight")
        return self

    def _write(self, strong: float) -> None:
        """Put a number into every cell if there is room, and a cross where there is no weight."""
        small = len(self.weights) <= _MOST
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8}
        for (row, column), weight in np.ndenumerate(self.weights):
            if self.forbidden[row, column]:
                self.ax_.text(column, row, "\u00d7", color="0.5", **style)
            elif small:
                colour = "white" if abs(weight) > strong else "black"
                self.ax_.text(column, row, f"{weight:.1f}", color=colour, **style)
