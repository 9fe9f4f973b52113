"""The hybrid loss without structure: figures 1 and 2 of its paper.

References
----------
Q. Shi et al., "A hybrid loss for multiclass and structured prediction", 2014, section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from papers.arrays import Floats, Ints
from papers.base import Claim, Estimate, Experiment, Report, Settings, Table, Units
from papers.documents import HYBRID_LOSS
from papers.inside import (
    Examples,
    InferenceSettings,
    LinearModel,
    LinearTerm,
    Sequences,
    StructuredObjective,
    make_cost,
    make_loss,
)
from papers.pictures import PALETTE, new_figure, styled
from structlearn.losses import alpha_threshold
from structlearn.solvers import FrankWolfe, Lbfgs, Solver
from structlearn.solvers import run as minimise

LOSSES = ("hinge", "log", "hybrid")
ALPHAS = (0.1, 0.5, 0.9, 0.99, 0.999)  # the paper chooses values "very close to 1"
#: Weights of the penalty against the mean loss of m examples: C is 1 / (penalty * m).
PENALTIES = (10.0, 1.0, 0.1, 0.01)

_BEST = 0.46  # probability of the best label in figure 1
_FIRM = 100.0  # C at which the penalty no longer matters there
_TIE = 0.01  # scores that differ by less, of a margin of 1, are tied

_CLASSES, _WIDTH, _CONSTANT = 5, 100, 10.0
_FLAT = np.array([0.4, 0.15, 0.15, 0.15, 0.15])
_RHOS = tuple(np.arange(1, 11) / 10)
_SIZES = (30, 60, 100, 300, 600, 1000)
_VAGUE = np.resize([1.0, -1.0], _WIDTH)  # the input without a dominant label
_HELD_OUT = 1000  # examples to choose by, and as many to test on

_SMOOTH = 0.01  # temperature at which L-BFGS gets over the kinks of the hinge
_PAIRS = (("hybrid", "hinge"), ("hybrid", "log"), ("log", "hinge"))


class Choice(NamedTuple):
    """A loss, and what is chosen by validation."""

    loss: str
    C: float
    alpha: float = 0.0

    def objective(
        self,
        model: LinearModel,
        examples: Examples,
        cost: str = "hamming",
        eps_y: float | None = None,
    ) -> StructuredObjective:
        """Return what is minimised; `eps_y` smooths the hinge."""
        structure = examples.structure
        assert isinstance(structure, Sequences)
        loss = make_loss(self.loss, None if self.loss == "log" else eps_y, alpha=self.alpha)
        costs = make_cost(cost, structure.states)
        settings = InferenceSettings(n_jobs=1)
        return StructuredObjective(model, examples, loss, costs, self.C, settings=settings)


def choices(loss: str, Cs: Iterable[float], alphas: Sequence[float] = ALPHAS) -> list[Choice]:
    """All that is tried for a loss; only the hybrid has shares to try."""
    shares = alphas if loss == "hybrid" else (0.0,)
    return [Choice(loss, C, alpha) for C, alpha in product(Cs, shares)]


class Sample(NamedTuple):
    """Examples with one label each."""

    inputs: Floats
    labels: Ints


def fit(
    choice: Choice, sample: Sample, counts: Floats | None = None, exact: bool = False
) -> Floats:
    """Return the weights (features, classes) that minimise the losses of single labels.

    Parameters
    ----------
    counts
        (examples,) How much each counts.
    exact
        Minimise the hinge itself, on its dual, instead of smoothing its kinks.
    """
    n, width = sample.inputs.shape
    classes = int(sample.labels.max()) + 1
    structure = Sequences(np.arange(n + 1), classes)
    counts = np.ones(n) if counts is None else counts
    examples = Examples(structure, ((sample.inputs,),), sample.labels, counts)
    model = LinearModel(((LinearTerm(width, classes),),))
    objective = choice.objective(model, examples, eps_y=None if exact else _SMOOTH)
    solver: Solver = FrankWolfe() if exact else Lbfgs()
    rng = np.random.default_rng(0)
    found = minimise(solver, objective, np.zeros(model.n_weights), max_iter=1000, rng=rng)
    return found.weights.reshape(width, classes)


# ---- figure 1 ----------------------------------------------------------------------------


_FIGURE_1 = f"Error where one label has probability {_BEST} and the others share the rest"


def without_dominance(labels: int) -> dict[str, Any]:
    """One input whose best label has a probability below one half: which losses find it.

    The losses are weighted by the probabilities, as if all of the population was seen.
    """
    k = labels
    probabilities = np.append(_BEST, np.full(k - 1, (1.0 - _BEST) / (k - 1)))
    sample = Sample(np.ones((k, 2)), np.arange(k))
    scores = {}
    for loss in LOSSES:
        exact = loss == "hinge"  # smoothing would break its ties
        weights = fit(Choice(loss, _FIRM, 0.5), sample, probabilities, exact=exact)
        scores[loss] = sample.inputs[0] @ weights
    row = {"labels": k, "threshold of alpha": float(alpha_threshold(probabilities))}
    row["spread of hinge scores"] = float(np.ptp(scores["hinge"]))
    return row | {loss: error(scores[loss], probabilities) for loss in LOSSES}


def error(scores: Floats, probabilities: Floats) -> float:
    """Probability of an error if one of the tied best labels is drawn."""
    best = scores >= scores.max() - _TIE
    return 1.0 - float(probabilities[best].mean())


# ---- figure 2 ----------------------------------------------------------------------------


def draw(n: int, rho: float, rng: np.random.Generator) -> Sample:
    """Draw examples, of which a share `rho` has no dominant label.

    These are all the same input. Class ``y`` of the others has inputs around ``2 + y``, counted
    from 0. All class means lie on one line through 0, so that without a constant feature no
    weights could tell the classes apart; the fixed input, which the paper does not give, is not on
    that line.
    """
    labels = rng.integers(_CLASSES, size=n)
    inputs = rng.normal((2.0 + labels)[:, None], 0.6, (n, _WIDTH))
    flat = rng.random(n) < rho
    inputs[flat] = _VAGUE
    labels[flat] = rng.choice(_CLASSES, flat.sum(), p=_FLAT)
    return Sample(np.hstack([inputs, np.full((n, 1), _CONSTANT)]), labels)


@dataclass(frozen=True)
class Mixture:
    """One data set of figure 2, to train on, to choose by, and to test on."""

    train: Sample
    validation: Sample
    test: Sample

    @classmethod
    def drawn(cls, m: int, rho: float, rng: np.random.Generator) -> Mixture:
        """Draw all three."""
        return cls(*(draw(n, rho, rng) for n in (m, _HELD_OUT, _HELD_OUT)))

    def accuracy(self, loss: str, penalties: Iterable[float] = PENALTIES) -> tuple[float, Choice]:
        """Accuracy in the test with what was best in the validation, and what that was."""
        m = len(self.train.labels)
        tried = choices(loss, [1.0 / (penalty * m) for penalty in penalties])
        fits = [fit(choice, self.train) for choice in tried]
        best = int(np.argmax([_accuracy(weights, self.validation) for weights in fits]))
        return _accuracy(fits[best], self.test), tried[best]


def _accuracy(weights: Floats, sample: Sample) -> float:
    return float(((sample.inputs @ weights).argmax(axis=1) == sample.labels).mean())


def mixtures(done: Units) -> Table:
    """Accuracies of the losses on data sets with and without dominant labels."""
    rows = []
    for unit in done:
        row = {"rho": float(unit.given["rho"]), "m": int(unit.given["m"])}
        rows.append(row | {name: unit.found[name] for name in (*LOSSES, "alpha")})
    return Table.of("Accuracy where a share rho of m examples has no dominant label", rows)


def duels(accuracies: Table) -> Table:
    """Count on how many data sets each loss beats another."""
    rows = []
    for a, b in _PAIRS:
        gains = np.subtract(accuracies.column(a), accuracies.column(b))
        row = {"pair": f"{a} against {b}", "wins": int((gains > 0).sum())}
        row |= {"losses": int((gains < 0).sum()), "ties": int((gains == 0).sum())}
        rows.append(row | {"mean gain (%)": Estimate.of(100.0 * gains)})
    return Table.of("Data sets on which one loss beats another", rows)


# ---- the experiments ---------------------------------------------------------------------


def label_units(settings: Settings) -> list[dict[str, Any]]:
    """One number of labels each."""
    return [{"labels": k} for k in ((3, 10) if settings.quick else range(3, 11))]


def figure_1(done: Units) -> Report:
    """Errors of the losses by the number of labels."""
    table = Table.of(_FIGURE_1, [unit.found for unit in done])
    right = 1.0 - _BEST
    tied = [1.0 - 1.0 / unit.found["labels"] for unit in done]
    kept = [abs(unit.found[loss] - right) < 1e-6 for unit in done for loss in ("log", "hybrid")]
    drawn = np.allclose(table.column("hinge"), tied, atol=1e-6)
    return Report(
        (table,),
        (
            Claim.that(
                "log and hybrid find the best label for any number of labels",
                all(kept),
                f"error {right:g}",
            ),
            Claim.that(
                "the error of the hinge grows with the labels",
                bool(drawn),
                "its scores are tied; 1 - 1/k where ties are broken at random",
            ),
        ),
    )


def mixture_units(settings: Settings) -> list[dict[str, Any]]:
    """One data set each: all 60 cells, several draws."""
    cells = [(0.1, 30), (0.9, 30)] if settings.quick else list(product(_RHOS, _SIZES))
    return [
        {"rho": float(rho), "m": m, "seed": [settings.seed, i, j], "quick": settings.quick}
        for i in range(settings.count(3, 1))
        for j, (rho, m) in enumerate(cells)
    ]


def mixture_work(rho: float, m: int, seed: list[int], quick: bool) -> dict[str, Any]:
    """Accuracies of the three losses, and the chosen alpha."""
    mixture = Mixture.drawn(m, rho, np.random.default_rng(seed))
    penalties = (10.0, 1.0) if quick else PENALTIES
    found = {loss: mixture.accuracy(loss, penalties) for loss in LOSSES}
    chosen = found["hybrid"][1].alpha
    return {loss: accuracy for loss, (accuracy, _) in found.items()} | {"alpha": chosen}


def figure_2(done: Units) -> Report:
    """Accuracies by cell, and who beats whom."""
    each = mixtures(done)
    gains = {(a, b): np.subtract(each.column(a), each.column(b)) for a, b in _PAIRS}
    return Report(
        (duels(each), _by_cell(each)),
        (
            Claim.above("the hybrid beats the hinge", 100.0 * gains["hybrid", "hinge"]),
            Claim.above("the hybrid beats the log loss", 100.0 * gains["hybrid", "log"]),
            Claim.level(
                "log and hinge are level (lead of log, up to 1 point)",
                100.0 * gains["log", "hinge"],
                within=1.0,
            ),
            alpha_claim(each.column("alpha")),
        ),
    )


def alpha_claim(chosen: Sequence[float]) -> Claim:
    """Judge how close to 1 the values of alpha are that validation has chosen."""
    near = sum(alpha >= 0.9 for alpha in chosen)
    return Claim.that(
        "the chosen alpha is very close to 1 (0.9 or more in most cases)",
        near > 0.5 * len(chosen),
        f"0.9 or more in {near} of {len(chosen)}",
    )


def _by_cell(each: Table) -> Table:
    """Mean accuracies of every cell."""
    rows = []
    for rho, m in dict.fromkeys(zip(each.column("rho"), each.column("m"), strict=True)):
        here = [i for i, row in enumerate(each.rows) if row[:2] == (rho, m)]
        row: dict[str, Any] = {"rho": rho, "m": m}
        for name in LOSSES:
            row[name] = Estimate.of(100.0 * np.array(each.column(name))[here])
        row["alpha"] = " ".join(f"{each.column('alpha')[i]:g}" for i in here)
        rows.append(row)
    return Table.of("Accuracy (%) where a share rho of m examples has no dominant label", rows)


def _draw_errors(done: Units) -> Any:
    axes = new_figure().subplots()
    curves = {loss: [unit.found[loss] for unit in done] for loss in LOSSES}
    for loss, errors, style in styled(curves):
        axes.plot([unit.found["labels"] for unit in done], errors, label=loss, **style)
    axes.set(xlabel="labels", ylabel="error")
    axes.legend(frameon=False)
    return axes.figure


def _draw_pairs(done: Units) -> Any:
    table = mixtures(done)
    figure = new_figure(9.0, 3.2)
    for axes, (a, b) in zip(figure.subplots(1, 3), _PAIRS, strict=True):
        axes.plot(table.column(b), table.column(a), "o", color=PALETTE[0], markersize=3)
        axes.axline((0.5, 0.5), slope=1.0, color=PALETTE[-1], linewidth=1)
        axes.set(xlabel=b, ylabel=a)
    return figure


EXPERIMENTS = (
    Experiment(
        "consistency",
        HYBRID_LOSS,
        "figure 1",
        "Which losses find the best label where no label is dominant?",
        LOSSES,
        label_units,
        without_dominance,
        figure_1,
        {"errors": _draw_errors},
        ("alpha is 0.5; the losses are weighted by the probabilities, nothing is drawn.",),
    ),
    Experiment(
        "mixtures",
        HYBRID_LOSS,
        "figure 2",
        "Which loss is best as more of the examples have no dominant label?",
        LOSSES,
        mixture_units,
        mixture_work,
        figure_2,
        {"pairs": _draw_pairs},
        (
            f"The penalty and alpha, of {', '.join(f'{a:g}' for a in ALPHAS)}, are chosen on the "
            "validation set; the hybrid has that many times more settings to choose from.",
            "Inputs have a constant feature of 10, without which no loss separates the classes.",
            "The hinge is smoothed at a temperature of 0.01, which also breaks its ties towards "
            "likelier labels. The paper runs L-BFGS on the hinge itself, which stops at kinks.",
            "One point is our reading of 'level', and 0.9 that of 'very close to 1'.",
        ),
    ),
)
