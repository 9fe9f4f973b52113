"""Segmentation of noisy images of which many labels are hidden.

References
----------
W. Ping, Q. Liu and A. Ihler, "Marginal structured SVM with hidden variables", 2014, section 7.2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
from structlearn.report.pictures import new_figure, styled
from structlearn.reproduce.base import Estimate, Record, Settings, Table
from structlearn.reproduce.trio import TRIO, H, Learner
from structlearn.solve.lbfgs import Lbfgs
from structlearn.solve.loop import run as minimise

SHARES = (0.0, 0.5, 0.9, 0.98)
_IMAGES, _VARIANCE = 10, 5.0
_COOLING = (1.0, 0.5, 0.2, 0.1)  # temperatures in the place of 0, one after another
_EFFORT = Effort(method="trw", sweeps=20, tol=1e-4)
_STEPS, _START = 60, 0.1


def run(settings: Settings) -> Record:
    """Section 7.2 of the marginal SVM paper: what happens as labels of an image are hidden."""
    n = settings.count(full=3, quick=1)
    shares = (0.0, 0.5) if settings.quick else SHARES
    found = np.empty((len(shares), len(TRIO), n))
    for i, s in settings.each([*np.ndindex(n, len(shares))], "set of images"):
        found[s, :, i] = _trial(shares[s], [settings.seed, i], settings.quick)
    rows = [
        {"hidden (%)": round(100 * share)}
        | {learner.letter: Estimate.of(found[s, j]) for j, learner in enumerate(TRIO)}
        for s, share in enumerate(shares)
    ]
    notes = (
        f"All learners begin with the same small random weights, inputs centred, and take up to "
        f"{_steps(settings.quick)} steps of L-BFGS at each of the temperatures {_COOLING} in the "
        f"place of 0, one after another; H has none below 1. Most stages of M and L end at that "
        f"number, not at an optimum. Without hidden labels M and L are one learner.",
        f"Messages are tree-reweighted, {_EFFORT.sweeps} sweeps per step, which begin where they "
        f"stood: with plain messages training finds weights for which they end far from the "
        f"labels. M and L predict the best labelling, H the most probable label of each pixel.",
        "The truth (four quadrants and an ellipse) is invented: the paper shows it only as a "
        "picture. All pixels of new images are predicted.",
    )
    curves = {learner.letter: found[:, j].mean(axis=1) for j, learner in enumerate(TRIO)}
    return Record(
        "segmentation",
        "Noisy images with hidden labels: accuracy of all pixels (%)",
        (Table.of(f"{n} trials", rows),),
        notes,
        {"curves": lambda: _draw(shares, curves)},
    )


def _trial(share: float, seed: list[int], quick: bool) -> list[float]:
    """Accuracy of every learner on new images of the same truth."""
    truth = quadrants(6, 8) if quick else quadrants()
    train, test = np.random.SeedSequence(seed).spawn(2)
    images, labels = noisy_images(truth, _IMAGES, _VARIANCE, share, np.random.default_rng(train))
    new, _ = noisy_images(truth, _IMAGES, _VARIANCE, 0.0, np.random.default_rng(test))
    images, new = images - images.mean(), new - images.mean()
    steps = _steps(quick)
    return [_accuracy(learner, images, labels, new, truth, steps) for learner in TRIO]


def _steps(quick: bool) -> int:
    return _STEPS // 10 if quick else _STEPS


def _accuracy(
    learner: Learner, images: Any, labels: Any, new: Any, truth: Any, steps: int
) -> float:
    labeler = GridLabeler(loss=learner.loss, inference="bp")
    objective = labeler.objective(list(images), list(labels))
    objective = replace(objective, effort=_EFFORT)
    weights = np.random.default_rng(0).normal(0.0, _START, objective.n_weights)
    for temperature in _COOLING:
        now = objective.softened(temperature)
        weights = minimise(Lbfgs(), now, weights, max_iter=steps, tol=1e-6).weights
    unlabelled = np.zeros_like(truth)  # of all states there are, so that nothing is hidden
    test = labeler.objective(list(new), [unlabelled + k % 5 for k in range(len(new))]).examples
    assert isinstance(test.structure, Graphs)
    potentials = spread_out(test.structure, objective.model.push(weights, test.inputs))
    found = _predict(learner, test.structure.wiring, potentials)
    return 100.0 * float(np.mean(found.reshape(len(new), -1) == truth.ravel()))


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
