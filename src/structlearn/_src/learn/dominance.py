"""Dominant labels: when the hybrid loss is consistent, and where a model is sure of nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.graph.batch import Graphs, Sequences
from structlearn._src.graph.wiring import HIDDEN
from structlearn._src.inference.chain_batch import clamp_labels
from structlearn._src.learn.structured_world import ChainWorld, GraphWorld
from structlearn._src.learn.world import InferenceSettings, World
from structlearn._src.model.model import Examples, LinearModel, Tables

_DOMINANT = 0.5  # a probability that at most one label can be above
_TIE = 1e-12  # difference of probabilities up to which two labels are equally likely
_ONE = 1e-6  # how far probabilities may be from summing to 1


def alpha_bound(probabilities: Any) -> Floats:
    r"""Mixing weight of the log loss above which the hybrid loss is consistent, by theorem 1.

    .. math:: \alpha > 1 - \frac{D_\text{max} - D_\text{next}}{1 - 2 D_\text{max}}

    with the probabilities of the most likely labels and of the next one below them. It is 0 if
    some label has a probability of at least 1/2, or if all are equally likely, so that no
    label is wrong.

    Parameters
    ----------
    probabilities : array-like of shape (..., labels)
        (..., labels) Distributions of the label.

    Returns
    -------
    array (...)
        A number for a single distribution.

    See Also
    --------
    alpha_threshold : The exact threshold. The proof of the theorem has two labels tied at the
        top; if three or more can tie, the bound is too low.

    References
    ----------
    Q. Shi et al., "A hybrid loss for multiclass and structured prediction", 2014, theorem 1.

    Examples
    --------
    >>> float(alpha_bound([0.4, 0.36, 0.24]).round(3))
    0.8
    """
    ranks = _ranks(probabilities)
    top, _, below = _top(ranks)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = 1.0 - (top - below) / (1.0 - 2.0 * top)
    return _where_open(ranks, np.maximum(bound, 0.0))


def alpha_threshold(probabilities: Any) -> Floats:
    r"""Mixing weight of the log loss above which, and only above which, hybrid is consistent.

    With the labels in decreasing order of probability and :math:`S_m = D_1 + \dots + D_m`,

    .. math:: \max_{m \ge 2} \frac{m (1 - 2 D_1) - 1 + S_m}{m (1 - D_1) - 1}

    or, if :math:`t \ge 2` labels are most likely, :math:`1 - t (D_\text{max} - D_\text{next})`.

    Parameters
    ----------
    probabilities : array-like of shape (..., labels)
        (..., labels) Distributions of the label.

    Returns
    -------
    array (...)
        A number for a single distribution.

    Notes
    -----
    Scores that minimise the conditional risk and still have a wrong label among the best must
    have all most likely labels there too, else swapping two scores would lower the risk. Setting
    the subgradient to 0 shows that the labels at the top are those above the level :math:`s` with
    :math:`\sum_y \max(D_y - s, 0) = 1 - \alpha`, and that they stay tied exactly if
    :math:`D_\text{max} - s \le (1 - \alpha) (1 - D_\text{max})`. Two labels at the top give
    `alpha_bound`.

    Examples
    --------
    >>> three = [0.45, 0.275, 0.275]
    >>> float(alpha_threshold(three).round(3)), float(alpha_bound(three))
    (0.462, 0.0)
    """
    ranks = _ranks(probabilities)
    top, ties, below = _top(ranks)
    m = np.arange(2, ranks.shape[-1] + 1)
    first, sums = ranks[..., :1], np.cumsum(ranks, axis=-1)[..., 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        each = (m * (1.0 - 2.0 * first) - 1.0 + sums) / (m * (1.0 - first) - 1.0)
    threshold = np.where(ties > 1, 1.0 - ties * (top - below), each.max(axis=-1, initial=0.0))
    return _where_open(ranks, threshold)


def _ranks(probabilities: Any) -> Floats:
    """Return the probabilities in falling order."""
    try:
        given = np.asarray(probabilities, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.zeros(0)
    if given.ndim == 0 or given.size == 0:
        raise ArgumentError(
            "probabilities must be an array of numbers of shape (..., labels) with at least one "
            "label"
        )
    sums = given.sum(axis=-1)
    if not ((given >= 0.0).all() and (np.abs(sums - 1.0) <= _ONE).all()):
        raise ArgumentError(
            f"probabilities reach from {given.min():g} to {given.max():g}, with sums from "
            f"{sums.min():g} to {sums.max():g}; they must not be negative, and sum to 1 over the "
            f"last axis"
        )
    return -np.sort(-given, axis=-1)


def _top(ranks: Floats) -> tuple[Floats, Ints, Floats]:
    """Largest probability, how many labels have it, and the largest of the others."""
    top = ranks[..., 0]
    ties = (ranks >= top[..., None] - _TIE).sum(axis=-1)
    place = np.minimum(ties, ranks.shape[-1] - 1)[..., None]
    return top, ties, np.take_along_axis(ranks, place, axis=-1)[..., 0]


def _where_open(ranks: Floats, values: Floats) -> Floats:
    """Keep the values where neither a label is dominant nor all are equal, with 0 elsewhere."""
    top, last = ranks[..., 0], ranks[..., -1]
    out: Floats = np.where((top >= _DOMINANT) | (top - last <= _TIE), 0.0, values)[()]
    return out


@dataclass(frozen=True, eq=False)
class Dominance:
    """Probabilities that a model assigns to whole labellings.

    For an example without labels, the probability of the true labelling is NaN.

    References
    ----------
    Q. Shi et al., "A hybrid loss for multiclass and structured prediction", 2014, figure 3.
    """

    true: Floats  #: (examples,) probability of the true labels, hidden variables summed out
    best: Floats  #: (examples,) probability of the most likely labels of all outputs

    @property
    def dominant(self) -> Bools:
        """Return for every example whether some labelling has a probability of at least 1/2."""
        return np.asarray(self.best >= _DOMINANT)

    @property
    def count(self) -> int:
        """Number of examples without a dominant labelling."""
        return int((~self.dominant).sum())

    @property
    def share(self) -> float:
        """Fraction of the examples without a dominant labelling."""
        return self.count / max(len(self.best), 1)


def dominance(
    model: LinearModel,
    examples: Examples,
    weights: Floats,
    settings: InferenceSettings | None = None,
) -> Dominance:
    r"""Probabilities of the true and of the most likely labels of every example.

    .. math:: p(y) = \frac{\sum_h \exp \theta(y, h)}{\sum_{y', h} \exp \theta(y', h)}

    by a `model` with these `weights` for these `examples`. Exact for sequences and where `settings`
    allows exact inference; by belief propagation both are estimates. Unknown labels of outputs
    count as hidden in the true labels only.
    """
    settings = settings or InferenceSettings()
    structure = examples.structure
    tables = model.push(weights, examples.inputs, settings.n_jobs)
    ones = np.ones(structure.n_examples)
    worlds = _worlds(structure, examples.labels, settings)
    whole, true, best = (world.solve(tables, ones, world.begin())[0] for world in worlds)
    known = np.logical_or.reduceat(examples.labels >= 0, structure.variables[:-1])
    return Dominance(np.where(known, _probability(true, whole), np.nan), _probability(best, whole))


def _probability(part: Floats, whole: Floats) -> Floats:
    return np.exp(np.minimum(part - whole, 0.0))  # approximate values can be the wrong way round


def _worlds(
    structure: Sequences | Graphs, labels: Ints, settings: InferenceSettings
) -> list[World[Tables]]:
    """Return the worlds of all labels, of the known ones, and of the most likely ones."""
    if isinstance(structure, Sequences):
        fixed = clamp_labels(labels, structure.states)
        each = (1.0, None), (1.0, fixed), (0.0, None)
        return [ChainWorld(structure, eps, added, settings.n_jobs) for eps, added in each]
    outputs = np.where(structure.wiring.roles == HIDDEN, -1, 0)
    return [
        GraphWorld(structure, outputs, 1.0, 1.0, clamped=False, settings=settings),
        GraphWorld(structure, labels, 1.0, 1.0, clamped=True, settings=settings),
        GraphWorld(structure, outputs, 0.0, 1.0, clamped=False, settings=settings),
    ]
