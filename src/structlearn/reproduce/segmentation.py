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
from structlearn.solve.loop import run as minimise
from structlearn.solve.stochastic import Stochastic

SHARES = (0.0, 0.5, 0.9)
_IMAGES, _VARIANCE = 10, 5.0
_SOFT = 0.5  # temperature in place of 0, at which messages come to rest
_EFFORT = Effort(method="trw", sweeps=4, tol=1e-3)
_STEP, _STEPS, _ROUNDS, _START = 1.0, 600, 2, 0.1


def run(settings: Settings) -> Record:
    """Section 7.2 of the marginal SVM paper: what happens as labels of an image are hidden."""
    n = settings.count(full=3, quick=1)
    shares = (0.0, 0.5) if settings.quick else SHARES
    found = np.empty((len(shares), len(TRIO), n))
    for i, seed in settings.repeat(n):
        for s, share in enumerate(shares):
            found[s, :, i] = _trial(share, seed, settings.quick)
    rows = [
        {"hidden (%)": round(100 * share)}
        | {learner.letter: Estimate.of(found[s, j]) for j, learner in enumerate(TRIO)}
        for s, share in enumerate(shares)
    ]
    notes = (
        f"All learners take {_ROUNDS} rounds of {_STEPS} steps of AdaGrad from the same small "
        f"random weights, inputs centred, with {_EFFORT.sweeps} sweeps of tree-reweighted messages "
        f"per step, which begin where they stood: with plain messages training finds weights for "
        f"which they end far from the labels.",
        f"Maxima in training are soft ones at temperature {_SOFT:g}, so that without hidden labels "
        f"M and L are one learner. M and L predict the best labelling, H the most probable label "
        f"of each pixel.",
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
    steps = _STEPS // 10 if quick else _STEPS
    return [_accuracy(learner, images, labels, new, truth, steps) for learner in TRIO]


def _accuracy(
    learner: Learner, images: Any, labels: Any, new: Any, truth: Any, steps: int
) -> float:
    labeler = GridLabeler(loss=learner.loss, inference="bp")
    objective = labeler.objective(list(images), list(labels))
    objective = replace(objective, effort=_EFFORT).softened(_SOFT)
    weights = np.random.default_rng(0).normal(0.0, _START, objective.n_weights)
    solver = Stochastic(rule="adagrad", step_size=_STEP, average=0.25, horizon=steps)
    for _ in range(_ROUNDS):  # a new round forgets the large slopes met at the start of the last
        weights = minimise(solver, objective, weights, max_iter=steps, tol=None).weights
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
