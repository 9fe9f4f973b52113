"""Segmentation of noisy images of which many labels are hidden.

References
----------
W. Ping, Q. Liu and A. Ihler, "Marginal structured SVM with hidden variables", 2014, section 7.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.arrays import Floats, Ints
from papers.base import Claim, Estimate, Experiment, Report, Settings, Table, Units
from papers.data.synthetic import noisy_images, quadrants
from papers.documents import MARGINAL_SVM
from papers.experiments.grids import Training, make_examples, make_model, outputs
from papers.experiments.trio import TRIO
from papers.experiments.uncertainty import by
from papers.inside import Examples
from papers.pictures import new_figure, styled

SHARES = (0.1, 0.3, 0.5, 0.7, 0.9, 0.95)
_IMAGES, _VARIANCE, _STATES, _START = 10, 5.0, 5, 0.1
_OUTER, _INNER, _STEP, _SWEEPS = 10, 30, 1.0, 10


def units(settings: Settings) -> list[dict[str, Any]]:
    """One set of images with one share of hidden labels, for one learner."""
    shares = (0.1, 0.9) if settings.quick else SHARES
    return [
        {"share": share, "seed": [settings.seed, i], "learner": t.letter, "quick": settings.quick}
        for share in shares
        for i in range(settings.count(5, 2))
        for t in TRIO
    ]


def accuracy(share: float, seed: list[int], learner: str, quick: bool) -> dict[str, float]:
    """Percentage of the nodes with a label that are right in new images."""
    truth = quadrants(6, 8) if quick else quadrants()
    known, unknown = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2))
    images, labels = noisy_images(truth, _IMAGES, _VARIANCE, share, known)
    new, new_labels = noisy_images(truth, _IMAGES, _VARIANCE, share, unknown)
    middle = float(images.mean())
    model = make_model(2, _STATES)
    start = np.random.default_rng(seed).normal(0.0, _START, model.n_weights)
    training = Training(2 if quick else _OUTER, 10 if quick else _INNER, _STEP, _SWEEPS)
    which = next(each for each in TRIO if each.letter == learner)
    weights = training.weights(which, model, _examples(images - middle, labels), start)
    test = _examples(new - middle, new_labels)
    found = outputs(which, model, weights, test)
    return {learner: 100.0 * float((found == test.labels)[test.labels >= 0].mean())}


def _examples(images: Floats, labels: Ints) -> Examples:
    features = np.stack([images.ravel(), np.ones(images.size)], axis=1)
    return make_examples([images.shape[1:]] * len(images), features, labels.ravel(), _STATES)


def report(done: Units) -> Report:
    """Accuracies by the share of hidden labels."""
    found = gathered(done, "share")
    rows = []
    for share, each in found.items():
        row: dict[str, Any] = {"hidden (%)": round(100 * share)}
        row |= {name: Estimate.of(values) for name, values in each.items()}
        row |= {f"M - {name}": Estimate.of(each["M"] - each[name]) for name in "LH"}
        rows.append(row)
    leads = {
        name: np.mean([each["M"] - each[name] for each in found.values()], axis=0) for name in "LH"
    }
    least, most = found[min(found)], found[max(found)]
    fall = (least["L"] - most["L"]) - (least["M"] - most["M"])
    claims = (
        Claim.above("MSSVM is more accurate than LSSVM over all shares", leads["L"]),
        Claim.above("MSSVM is more accurate than HCRF over all shares", leads["H"]),
        Claim.above("LSSVM loses more than MSSVM as labels are hidden", fall),
    )
    heading = f"Accuracy of the nodes with a label (%), {len(least['M'])} trials"
    return Report((Table.of(heading, rows),), claims)


def gathered(done: Units, key: str) -> dict[float, dict[str, Floats]]:
    """Accuracies by level and learner, from units of one learner each."""
    found: dict[float, dict[str, Floats]] = {}
    for name in dict.fromkeys(unit.given["learner"] for unit in done):
        own = [unit for unit in done if unit.given["learner"] == name]
        for level, each in by(own, key).items():
            found.setdefault(level, {}).update(each)
    return found


def _draw(done: Units) -> Any:
    found = gathered(done, "share")
    axes = new_figure().subplots()
    curves = {t.letter: [each[t.letter].mean() for each in found.values()] for t in TRIO}
    for name, curve, style in styled(curves):
        axes.plot([100 * share for share in found], curve, label=name, **style)
    axes.set(xlabel="hidden labels (%)", ylabel="accuracy (%)")
    axes.legend(frameon=False)
    return axes.figure


EXPERIMENTS = (
    Experiment(
        "segmentation",
        MARGINAL_SVM,
        "figure 4",
        "What happens to the accuracy of segmentations as labels of the images are hidden?",
        ("MSSVM", "LSSVM", "HCRF"),
        units,
        accuracy,
        report,
        {"curves": _draw},
        (
            f"CCCP: {_OUTER} bounds, each with {_INNER} steps of AdaGrad of size {_STEP:g}, the "
            "last quarter of them averaged; plain steps, as printed, would take thousands. Inputs "
            "are centred, and all learners begin with the same small random weights. Messages "
            f"take {_SWEEPS} sweeps: plain ones for MSSVM (mixed) and LSSVM, tree-reweighted ones "
            "for HCRF, whose objective plain ones get wrong. This, and the numbers of steps, were "
            "chosen on other images of another size. Sweeps are few so that all shares and trials "
            "take an hour of one core; whether more would change the order was not tried.",
            "Readings: noise of variance 5, a constant feature added, a table of edges to the "
            "right and one down. The same share of labels is hidden in new images, and the nodes "
            "with a label are scored: M and H sum over the others. The truth (four quadrants and "
            "an ellipse) is invented: the paper shows it only as a picture.",
        ),
        version=2,
    ),
)
