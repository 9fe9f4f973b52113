"""Segmentation of noisy images of which many labels are hidden.

References
----------
W. Ping, Q. Liu and A. Ihler, "Marginal structured SVM with hidden variables", 2014, section 7.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from papers.base import Estimate, Record, Settings, Table, whole
from papers.data.synthetic import noisy_images, quadrants
from papers.documents import MARGINAL_SVM
from papers.experiments.trio import HIDDEN_CRF, LATENT, MARGINAL, Learner
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.display.pictures import new_figure, styled
from structlearn._src.estimators.structured.graph import GridLabeler
from structlearn._src.graph.batch import Graphs, tables_to_potentials
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference.base import Options, Problem, best_states
from structlearn._src.inference.names import Query
from structlearn._src.inference.trw import TreeReweighted
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.learn.world import InferenceSettings
from structlearn._src.solve.base import Solver
from structlearn._src.solve.lbfgs import Lbfgs
from structlearn._src.solve.loop import run as minimise
from structlearn._src.solve.stochastic import Stochastic

SHARES = (0.0, 0.5, 0.9, 0.95)
_IMAGES, _NEW, _VARIANCE, _START = 10, 60, 5.0, 0.1
_COOLING, _STEPS, _SWEEPS = (1.0, 0.5, 0.2, 0.1), 60, 20  # L-BFGS, at each temperature
_SIZES, _SHORT, _FEWER = (1.0, 0.5, 0.3, 0.1), 300, 4  # AdaGrad: steps of each size, their sweeps


class Rival(NamedTuple):
    """A learner, and whether its maxima stay maxima, or are softened and then cooled."""

    learner: Learner
    hard: bool = False


RIVALS = {
    "M": Rival(MARGINAL),
    "L": Rival(LATENT, hard=True),
    "L cooled": Rival(LATENT),
    "H": Rival(HIDDEN_CRF),
}
_OTHERS = {name: j for j, name in enumerate(RIVALS) if name in ("L", "H")}


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
        | {f"M - {name}": Estimate.of(found[s, 0] - found[s, j]) for name, j in _OTHERS.items()}
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
    part = _part(quick)
    return (
        f"All begin with the same small random weights, inputs centred; the paper uses CCCP. L "
        f"maximises over all labels and learns from what is decoded from its messages, by "
        f"{_SHORT // part} steps of AdaGrad of each of the "
        f"sizes {_SIZES}, the last quarter of each averaged. The others are smooth: up to "
        f"{_STEPS // part} steps of L-BFGS at each of the temperatures {_COOLING}, which no "
        f"temperature of the loss falls below. So the maximum of M is softened and ends at "
        f"{_COOLING[-1]:g}, while it sums over hidden labels at 1; 'L cooled' softens its maximum "
        f"over hidden labels too, begins as M does, and is M where none is hidden.",
        f"Messages are tree-reweighted, up to {_SWEEPS} sweeps of each world per value for L-BFGS, "
        f"{_FEWER} for AdaGrad, which begin where those of the step before ended: with "
        f"plain messages objectives become negative. M and L predict the best labelling; H, unlike "
        f"in the paper, the most probable label of each pixel, as its best labelling often has a "
        f"quadrant wrong.",
        f"Readings: noise of variance {_VARIANCE:g}, a constant feature added, one table of edges "
        f"to the right and down, no label of new images given. The truth (four quadrants and an "
        f"ellipse) is invented: the paper shows it only as a picture. All pixels of {_NEW} new "
        f"images are predicted, not of ten as in the paper, whose mean one lost quadrant moves "
        f"by two points.",
    )


def _trial(share: float, seed: list[int], quick: bool) -> list[float]:
    """Accuracy of every rival on new images of the same truth."""
    truth = quadrants(6, 8) if quick else quadrants()
    known, unknown = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2))
    images, labels = noisy_images(truth, _IMAGES, _VARIANCE, share, known)
    new, _ = noisy_images(truth, _NEW, _VARIANCE, 0.0, unknown)
    images, new = images - images.mean(), new - images.mean()
    part = _part(quick)
    return [accuracy(rival, images, labels, new, truth, part) for rival in RIVALS.values()]


def _part(quick: bool) -> int:
    """Return which part of the steps are taken."""
    return 30 if quick else 1


def accuracy(rival: Rival, images: Any, labels: Any, new: Any, truth: Any, part: int) -> float:
    """Percentage of the pixels of new images that are right after learning from others."""
    labeler = GridLabeler(loss=rival.learner.loss)
    objective = labeler.objective(list(images), list(labels))
    weights = train(rival, objective, part)
    test = labeler.objective(list(new), [truth] * len(new)).examples
    assert isinstance(test.structure, Graphs)
    potentials = tables_to_potentials(test.structure, objective.model.push(weights, test.inputs))
    found = predict(rival.learner, test.structure.wiring, potentials)
    return 100.0 * float(np.mean(found.reshape(len(new), -1) == truth.ravel()))


def train(rival: Rival, objective: StructuredObjective, part: int) -> Floats:
    """Return the weights after all stages."""
    effort = InferenceSettings(method="trw", sweeps=_FEWER if rival.hard else _SWEEPS, tol=1e-4)
    weights = np.random.default_rng(0).normal(0.0, _START, objective.n_weights)
    for solver, steps, temperature in _stages(rival, part):
        now = replace(objective, settings=effort).softened(temperature)
        weights = minimise(solver, now, weights, max_iter=steps, tol=None).weights
    return weights


def _stages(rival: Rival, part: int) -> Iterator[tuple[Solver, int, float]]:
    """Solvers, one after another, with their numbers of steps and the least temperatures."""
    if rival.hard:
        steps = _SHORT // part
        for size in _SIZES:
            yield Stochastic("adagrad", size, average=0.25, horizon=steps), steps, 0.0
    else:
        for temperature in _COOLING:
            yield Lbfgs(), _STEPS // part, temperature


def predict(learner: Learner, wiring: Wiring, potentials: Floats) -> Ints:
    """Return the most probable label of each pixel for H, and the best labelling for others."""
    query = Query.MARGINALS if learner is HIDDEN_CRF else Query.MAP
    problem = Problem(wiring, potentials, *query.temperatures)
    result = TreeReweighted().run(problem, query, Options(rng=np.random.default_rng(0)))
    return result.labels if query is Query.MAP else best_states(wiring, result.beliefs)


def _draw(shares: tuple[float, ...], curves: dict[str, Any]) -> Any:
    axes = new_figure().subplots()
    for name, curve, style in styled(curves, axes):
        axes.plot([100 * share for share in shares], curve, label=name, **style)
    axes.set(xlabel="hidden labels (%)", ylabel="accuracy (%)")
    axes.legend(frameon=False)
    return axes.figure


EXPERIMENTS = (
    whole("segmentation", MARGINAL_SVM, "figure 4", run, ("MSSVM", "LSSVM", "HCRF"), ()),
)
