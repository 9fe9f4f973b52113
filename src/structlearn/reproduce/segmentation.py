"""Segmentation of noisy images of which many labels are hidden.

References
----------
W. Ping, Q. Liu and A. Ihler, "Marginal structured SVM with hidden variables", 2014, section 7.2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from structlearn.common.checks import Floats, Ints
from structlearn.data.synthetic import noisy_images, quadrants
from structlearn.estimators.grid import GridLabeler
from structlearn.graph.batch import Graphs
from structlearn.graph.wiring import Wiring
from structlearn.inference.base import Options, Problem
from structlearn.inference.loopy import best_states
from structlearn.inference.trw import TreeReweighted
from structlearn.objective.graph_world import Effort, spread_out
from structlearn.objective.objective import StructuredObjective
from structlearn.report.pictures import new_figure, styled
from structlearn.reproduce.base import Estimate, Record, Settings, Table
from structlearn.reproduce.trio import H, L, Learner, M
from structlearn.solve.loop import run as minimise
from structlearn.solve.stochastic import Stochastic

SHARES = (0.0, 0.5, 0.9, 0.95)
_IMAGES, _NEW, _VARIANCE = 10, 60, 5.0
_STAGES = ((600, 1.0), (300, 0.3), (300, 0.1))  # steps of AdaGrad, and the size of each stage's
_EFFORT = Effort(method="trw", sweeps=4, tol=1e-4)
_START = 0.1


class Rival(NamedTuple):
    """A learner, and the temperature in the place of 0 for each stage of its training."""

    learner: Learner
    temperatures: tuple[float, float, float]


_COOLING, _NONE = (1.0, 0.5, 0.1), (0.0, 0.0, 0.0)
RIVALS = {
    "M": Rival(M, _COOLING),
    "L": Rival(L, _NONE),
    "L cooled": Rival(L, _COOLING),
    "H": Rival(H, _NONE),
}


def run(settings: Settings) -> Record:
    """Section 7.2 of the marginal SVM paper: what happens as labels of an image are hidden."""
    n = settings.count(full=3, quick=1)
    shares = (0.0, 0.5) if settings.quick else SHARES
    found = np.empty((len(shares), len(RIVALS), n))
    for i, s in settings.each([*np.ndindex(n, len(shares))], "set of images"):
        found[s, :, i] = _trial(shares[s], [settings.seed, i], settings.quick)
    rows = [
        {"hidden (%)": round(100 * share)}
        | {name: Estimate.of(found[s, j]) for j, name in enumerate(RIVALS)}
        for s, share in enumerate(shares)
    ]
    curves = {name: found[:, j].mean(axis=1) for j, name in enumerate(RIVALS)}
    return Record(
        "segmentation",
        "Noisy images with hidden labels: accuracy of all pixels (%)",
        (Table.of(f"{n} trials", rows),),
        _notes(settings.quick),
        {"curves": lambda: _draw(shares, curves)},
    )


def _notes(quick: bool) -> tuple[str, ...]:
    stages = ", ".join(f"{steps} of size {size:g}" for steps, size in _stages(quick))
    return (
        f"All begin with the same small random weights, inputs centred, and take the same steps "
        f"of AdaGrad ({stages}), the last quarter of each stage averaged. M sums over hidden "
        f"labels; its maximum over the others has the temperatures {_COOLING} in the place of 0, "
        f"one in each stage. L maximises over all labels, at 0, and learns from what is decoded "
        f"from its messages; 'L cooled' has the temperatures of M, so that it nearly sums over "
        f"hidden labels at first, and is M where none is hidden.",
        f"Messages are tree-reweighted, {_EFFORT.sweeps} sweeps per step, which begin where they "
        f"stood: with plain messages training finds weights for which they end far from the "
        f"labels. M and L predict the best labelling, H the most probable label of each pixel.",
        f"The truth (four quadrants and an ellipse) is invented: the paper shows it only as a "
        f"picture. All pixels of {_NEW} new images are predicted, not of ten as in the paper: "
        f"a learner may get a whole quadrant of an image wrong, which moves the mean of ten by "
        f"points.",
    )


def _trial(share: float, seed: list[int], quick: bool) -> list[float]:
    """Accuracy of every rival on new images of the same truth."""
    truth = quadrants(6, 8) if quick else quadrants()
    train, test = np.random.SeedSequence(seed).spawn(2)
    images, labels = noisy_images(truth, _IMAGES, _VARIANCE, share, np.random.default_rng(train))
    new, _ = noisy_images(truth, _NEW, _VARIANCE, 0.0, np.random.default_rng(test))
    images, new = images - images.mean(), new - images.mean()
    stages = _stages(quick)
    return [_accuracy(rival, images, labels, new, truth, stages) for rival in RIVALS.values()]


def _stages(quick: bool) -> list[tuple[int, float]]:
    return [(steps // 50 if quick else steps, size) for steps, size in _STAGES]


def _accuracy(
    rival: Rival, images: Any, labels: Any, new: Any, truth: Any, stages: list[tuple[int, float]]
) -> float:
    labeler = GridLabeler(loss=rival.learner.loss, inference="bp")
    objective = labeler.objective(list(images), list(labels))
    objective = replace(objective, effort=_EFFORT)
    weights = _train(rival, objective, stages)
    unlabelled = np.zeros_like(truth)  # of all states there are, so that nothing is hidden
    test = labeler.objective(list(new), [unlabelled + k % 5 for k in range(len(new))]).examples
    assert isinstance(test.structure, Graphs)
    potentials = spread_out(test.structure, objective.model.push(weights, test.inputs))
    found = _predict(rival.learner, test.structure.wiring, potentials)
    return 100.0 * float(np.mean(found.reshape(len(new), -1) == truth.ravel()))


def _train(rival: Rival, objective: StructuredObjective, stages: list[tuple[int, float]]) -> Floats:
    """Return the weights after all stages."""
    weights = np.random.default_rng(0).normal(0.0, _START, objective.n_weights)
    for (steps, size), temperature in zip(stages, rival.temperatures, strict=True):
        solver = Stochastic(rule="adagrad", step_size=size, average=0.25, horizon=steps)
        now = objective.softened(temperature)
        weights = minimise(solver, now, weights, max_iter=steps, tol=None).weights
    return weights


def _predict(learner: Learner, wiring: Wiring, potentials: Floats) -> Ints:
    """Return labels by the messages that training used."""
    eps, query = (1.0, "marginals") if learner is H else (0.0, "map")
    problem, options = Problem(wiring, potentials, eps, eps), Options()
    result = TreeReweighted().run(problem, query, options)
    if result.beliefs is not None:
        return best_states(problem, result.beliefs)
    assert result.labels is not None
    return result.labels


def _draw(shares: tuple[float, ...], curves: dict[str, Any]) -> Any:
    axes = new_figure().subplots()
    for name, curve, style in styled(curves, axes):
        axes.plot([100 * share for share in shares], curve, label=name, **style)
    axes.set(xlabel="hidden labels (%)", ylabel="accuracy (%)")
    axes.legend(frameon=False)
    return axes.figure
