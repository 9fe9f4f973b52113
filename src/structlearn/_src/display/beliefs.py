"""Labels and marginals, on grids and along chains."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.document import completed
from structlearn._src.common.errors import ArgumentError, QueryError
from structlearn._src.display.beliefs_doc import CHAIN_DISPLAY, GRID_DISPLAY
from structlearn._src.display.pictures import new_figure, numbers_of, state_colours, state_titles
from structlearn._src.inference.answer import Marginals
from structlearn._src.inference.base import Answer
from structlearn._src.text.columns import Columns

_SURE = "cividis"
_STRIP = 0.14  # height of one strip below the marginals of a chain, whose height is 1


@completed(GRID_DISPLAY)
class GridDisplay:
    """Labels or probabilities on a grid.

    Parameters
    ----------
    values : array-like of shape (rows, columns)
        (rows, columns) States, -1 where there is none; or probabilities.
    kind
        "labels" or "probability".
    n_states
        Number of states; by default the number of names, or one more than the largest state.
    state_names
        Names of the states; by default their numbers.
    colours
        Colours of the states: a list, or the name of a colour map.

    Examples
    --------
    >>> from structlearn import GridDisplay
    >>> display = GridDisplay([[0, 1], [1, 1]], state_names=["sky", "house"]).plot(title="labels")
    >>> display.ax_.get_title()
    'labels'
    """

    def __init__(
        self,
        values: Any,
        *,
        kind: str = "labels",
        n_states: int | None = None,
        state_names: Sequence[Any] | None = None,
        colours: str | Sequence[Any] | None = None,
    ) -> None:
        self.values = np.asarray(values)
        if self.values.ndim != 2:
            raise ArgumentError(f"values has shape {self.values.shape}; need (rows, columns)")
        self.kind = checks.one_of("kind", kind, ("labels", "probability"))
        found = int(self.values.max(initial=0)) + 1 if kind == "labels" else 0
        self.n_states = max(found, _count(state_names)) if n_states is None else n_states
        self.state_names = state_titles(state_names, self.n_states)
        self.colours = colours
        self._lowest = 0.0  # probability that the scale begins with

    @classmethod
    def from_answer(
        cls,
        answer: Answer,
        shape: tuple[int, int],
        *,
        show: str | int = "labels",
        variables: Sequence[Hashable] | None = None,
        **looks: Any,
    ) -> GridDisplay:
        """Show an answer for a grid."""
        which = variables, shape[0] * shape[1]
        if show == "labels" and answer.assignment is not None:
            return cls(_found(answer, "assignment", *which).reshape(shape), **looks)
        beliefs = _found(answer, "marginals", *which)
        looks["n_states"] = beliefs.shape[1]
        if show == "labels":
            return cls(beliefs.argmax(axis=1).reshape(shape), **looks)
        return cls._of_beliefs(beliefs.reshape(*shape, -1), show, looks)

    @classmethod
    def from_estimator(
        cls, estimator: Any, image: Any, *, show: str | int = "labels", **looks: Any
    ) -> GridDisplay:
        """Show the prediction of a fitted estimator for one image."""
        looks.setdefault("state_names", estimator.classes_)
        if show == "labels":
            return cls(numbers_of(estimator.predict([image])[0], estimator.classes_), **looks)
        (beliefs,) = estimator.predict_marginals([image])
        return cls._of_beliefs(beliefs, show, looks)

    @classmethod
    def _of_beliefs(cls, beliefs: Floats, show: str | int, looks: dict[str, Any]) -> GridDisplay:
        """Show probabilities; the largest of n is never below 1 / n, where its scale begins."""
        display = cls(_probabilities(beliefs, show), kind="probability", **looks)
        if show == "certainty":
            display._lowest = 1.0 / beliefs.shape[-1]
        return display

    def plot(self, ax: Any = None, *, title: str | None = None, legend: bool = True) -> GridDisplay:
        """Plot the grid."""
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
        limits = {"vmin": self._lowest, "vmax": 1.0}
        return self.ax_.imshow(self.values, cmap=_SURE, interpolation="nearest", **limits)


@completed(CHAIN_DISPLAY)
class ChainDisplay:
    """Marginals along a sequence as stacked areas, with paths as strips of colour below.

    Parameters
    ----------
    marginals : array-like of shape (positions, states), optional
        (positions, states) Probabilities, or None for strips only.
    paths
        States along the sequence, by the name of each strip.
    state_names
        Names of the states; by default their numbers.
    colours
        Colours of the states: a list, or the name of a colour map.

    Examples
    --------
    >>> from structlearn import ChainDisplay
    >>> display = ChainDisplay([[0.9, 0.1], [0.4, 0.6]], paths={"truth": [0, 1]})
    >>> display.plot(title="two positions").ax_.get_title()
    'two positions'
    """

    def __init__(
        self,
        marginals: Any = None,
        *,
        paths: Mapping[str, Any] | None = None,
        state_names: Sequence[Any] | None = None,
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
            [_count(state_names), *(int(p.max(initial=0)) + 1 for p in self.paths.values())]
            + ([] if self.marginals is None else [self.marginals.shape[1]])
        )
        self.state_names = state_titles(state_names, self.n_states)
        self.colours = colours

    @classmethod
    def from_answer(
        cls,
        answer: Answer,
        *,
        variables: Sequence[Hashable] | None = None,
        paths: Mapping[str, Any] | None = None,
        **looks: Any,
    ) -> ChainDisplay:
        """Show an answer for a chain."""
        given = dict(paths or {})
        beliefs = None
        if answer.marginals is not None:
            beliefs = _found(answer, "marginals", variables)
        else:
            given = {answer.query.replace("_", " "): answer, **given}
        states = {
            name: _found(path, "assignment", variables) if isinstance(path, Answer) else path
            for name, path in given.items()
        }
        return cls(beliefs, paths=states, **looks)

    @classmethod
    def from_estimator(
        cls, estimator: Any, sequence: Any, *, paths: Mapping[str, Any] | None = None, **looks: Any
    ) -> ChainDisplay:
        """Show the prediction of a fitted estimator for one sequence."""
        X = sequence if isinstance(sequence, Columns) else [sequence]
        looks.setdefault("state_names", estimator.classes_)
        beliefs = estimator.predict_marginals(X)[0]
        given = {"predicted": estimator.predict(X)[0], **(paths or {})}
        states = {name: numbers_of(path, estimator.classes_) for name, path in given.items()}
        return cls(beliefs, paths=states, **looks)

    def plot(
        self, ax: Any = None, *, title: str | None = None, legend: bool = True
    ) -> ChainDisplay:
        """Plot the sequence."""
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


def _found(
    answer: Answer, what: str, variables: Sequence[Hashable] | None, count: int | None = None
) -> Any:
    """Marginals, or states, of the named variables or of the first `count`."""
    found = getattr(answer, what)
    if found is None:
        query = "map" if what == "assignment" else what
        raise QueryError(f"an answer to {answer.query!r} has no {what}; ask for {query!r}")
    names = list(found if variables is None else variables)
    given = len(names)
    if count is not None and (given < count or (variables is not None and given > count)):
        raise ArgumentError(f"there are {given} variables for {count} places of the grid")
    if variables is None and isinstance(found, Marginals):
        return found.array()[:count]  # padded where variables have fewer states
    return np.array([found[name] for name in names[:count]])


def _probabilities(beliefs: Floats, show: str | int) -> Floats:
    """Probability of the best state, or of a given one, of every variable."""
    if show == "certainty":
        return np.asarray(beliefs.max(axis=-1))
    n_states = beliefs.shape[-1]
    if isinstance(show, str) or not 0 <= show < n_states:
        raise ArgumentError(
            f"show={show!r} is not known; choose 'labels', 'certainty' or a state from 0 to "
            f"{n_states - 1}"
        )
    return np.asarray(beliefs[..., show])


def _count(names: Sequence[Any] | None) -> int:
    return 0 if names is None else len(names)
