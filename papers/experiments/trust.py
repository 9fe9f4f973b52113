"""Who trusts whom, with hidden traits of users: learning by paired duals, EM and subgradients.

References
----------
S. Bach et al., "Paired-dual learning for fast training of latent variable hinge-loss MRFs", 2015,
section 4. B. Huang et al., "A flexible framework for probabilistic models of social trust", 2013.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score

from papers.arrays import Bools, Floats, Ints
from papers.base import Experiment, Settings
from papers.documents import PAIRED_DUAL
from papers.experiments import duals
from papers.experiments.duals import BASELINES, LEARNERS, Course, Measure
from papers.inside import (
    AtomTables,
    Consensus,
    FieldObjective,
    Grounding,
    InferenceSettings,
    NonNegative,
    Program,
    ground,
    make_field_examples,
)
from structlearn import RuleModel
from structlearn.datasets import data_path
from structlearn.rules import parse

_FOLDS = 8
_SETTINGS = InferenceSettings(tol=1e-4)
_STEPS = 10_000  # of ADMM, at most, for a prediction
_FINE = 1e-5  # tolerance of predictions
_RIDGE = 0.003  # for every link with a label
_MEASURE = Measure("AuPR of distrust")
_COURSE, _QUICK = Course(), Course(updates=20, sizes=(0.3,), points=4)


# ---- rules -------------------------------------------------------------------------------


def rules() -> Program:
    """Structural balance, reciprocity, a prior, and how open and how worthy of trust users are."""
    return parse("\n".join(f"1.0: {text} ^2" for text in (*_triads(), *_pairs())))


def _triads() -> Iterator[str]:
    """Friends of friends are friends, enemies of enemies too, whoever trusts whom."""
    for first, second in product(("A, B", "B, A"), ("B, C", "C, B")):
        for one, other in product(("", "!"), repeat=2):
            head = "" if one == other else "!"
            yield (
                f"Knows({first}) & Knows({second}) & Knows(A, C) & (A != B) & (B != C) & (A != C) "
                f"& {one}Trusts({first}) & {other}Trusts({second}) -> {head}Trusts(A, C)"
            )


def _pairs() -> list[str]:
    bodies = (
        "Knows(B, A) & (A != B) & Trusts(A, B) -> Trusts(B, A)",
        "Knows(B, A) & (A != B) & !Trusts(A, B) -> !Trusts(B, A)",
        "Prior('0') -> Trusts(A, B)",
        "Trusts(A, B) -> Prior('0')",
        "Trusting(A) -> Trusts(A, B)",
        "Trusts(A, B) -> Trusting(A)",
        "Trustworthy(B) -> Trusts(A, B)",
        "Trusts(A, B) -> Trustworthy(B)",
        "Trusting(A) & Trustworthy(B) -> Trusts(A, B)",
    )
    return [f"Knows(A, B) & {body}" for body in bodies]


# ---- Epinions ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Network:
    """Signed links between users, and the fold of each."""

    links: Ints  # (links, 2)
    trust: Floats  # (links) 0 or 1
    folds: Ints

    @classmethod
    def epinions(cls, seed: Any) -> Network:
        """Return 8,675 links among 2,000 users, 8 % of them of distrust, folds drawn at random."""
        rows = np.loadtxt(data_path("epinions", "trust.csv"), np.int64, delimiter=",", skiprows=1)
        folds = np.random.default_rng(seed).permutation(len(rows)) % _FOLDS
        return cls(rows[:, :2], rows[:, 2].astype(float), folds)

    def field(self, present: Bools, open_: Bools) -> Grounding:
        """Ground the rules on the links that are present; the open ones are to be found."""
        tables = AtomTables(
            {"Knows": 2, "Trusts": 2, "Prior": 1, "Trusting": 1, "Trustworthy": 1}, n_jobs=1
        )
        seen = present & ~open_
        asked = present & open_
        tables.observe("Knows", self.links[present].tolist())
        tables.observe("Trusts", self._valued(seen))
        tables.observe("Prior", [("0", float(self.trust[seen].mean()))])
        tables.target("Trusts", self.links[asked].tolist())
        tables.truth("Trusts", self._valued(asked))
        for trait, users in zip(("Trusting", "Trustworthy"), self.links[present].T, strict=True):
            tables.target(trait, np.unique(users)[:, None].tolist())
        return ground(rules(), tables)

    def split(self, fold: int) -> tuple[Grounding, Grounding]:
        """Return the fields to learn from, by the fold before, and to test on.

        When learning, the links of the fold are not there at all.
        """
        held = self.folds == fold
        learn = self.field(~held, self.folds == (fold - 1) % _FOLDS)
        return learn, self.field(np.ones_like(held), held)

    def means(self, fold: int) -> float:
        """Score of a baseline: the source's mean trust plus the target's, each with the prior."""
        held = self.folds == fold
        prior = self.trust[~held].mean()
        total = np.zeros(int(held.sum()))
        for column in self.links.T:
            n = column.max() + 1
            counts = np.bincount(column[~held], minlength=n)
            sums = np.bincount(column[~held], self.trust[~held], minlength=n)
            total += ((sums + prior) / (counts + 1.0))[column[held]]
        return average_precision(self.trust[held], total, negative=True)

    def _valued(self, which: Bools) -> list[Any]:
        links, trust = self.links[which].tolist(), self.trust[which].tolist()
        return [(*link, value) for link, value in zip(links, trust, strict=True)]


def _folds(settings: Settings) -> list[dict[str, Any]]:
    return [
        {"fold": fold, "learner": learner, "seed": settings.seed, "quick": settings.quick}
        for fold in range(min(settings.count(_FOLDS, 1), _FOLDS))
        for learner in (*LEARNERS, BASELINES)
    ]


def epinions(fold: int, learner: str, seed: int, quick: bool) -> dict[str, Any]:
    """Learn from one fold of Epinions and predict another."""
    network = Network.epinions(seed)
    if learner == BASELINES:
        return {"scores": {"source mean + target mean": network.means(fold)}}
    learn, test = network.split(fold)
    objective = objective_of(learn)
    return _curve(learner, objective, Judge(objective, test), quick)


# ---- Bitcoin OTC -------------------------------------------------------------------------


def bitcoin(fold: int, learner: str, quick: bool) -> dict[str, Any]:
    """Learn Bitcoin OTC with hidden traits, from the files of a program."""
    path = data_path("psl", "bitcoin-otc-trust", "model-latent.json")
    learn, test = (
        RuleModel.from_file(path, split=split, n_jobs=1).grounding_ for split in ("learn", "infer")
    )
    objective = objective_of(learn, learnt=learn.weights >= 1.0)
    judge = Judge(objective, test)
    if learner == BASELINES:
        return {"scores": {"all weights as in the file": judge(objective.start)}}
    return _curve(learner, objective, judge, quick)


def _one_fold(settings: Settings) -> list[dict[str, Any]]:
    return [
        {"fold": 0, "learner": learner, "quick": settings.quick}
        for learner in (*LEARNERS, BASELINES)
    ]


# ---- both --------------------------------------------------------------------------------


def _curve(
    learner: str, objective: FieldObjective, score: duals.Score, quick: bool
) -> dict[str, Any]:
    course = _QUICK if quick else _COURSE
    return course.learn(learner, objective).curve(objective, score, course.points)


def objective_of(grounding: Grounding, learnt: Any = None) -> FieldObjective:
    """Return the objective of a ground program with labels."""
    labels = grounding.tables.labels()
    examples = make_field_examples(
        grounding.hinges, labels, weights=grounding.weights, learnt=learnt, surrogate="loss"
    )
    strength = _RIDGE * float((~examples.hidden).sum())
    return FieldObjective(examples, penalty=NonNegative(strength=strength), settings=_SETTINGS)


class Judge:
    """AuPR on another field of the same rules, without surrogate; if `negative`, of low values."""

    def __init__(self, objective: FieldObjective, test: Grounding, negative: bool = True) -> None:
        self.negative = negative
        self.examples = objective.examples
        self.labels = test.tables.labels()
        self.known = ~np.isnan(self.labels)
        self.world = Consensus(test.hinges)
        self.state = self.world.begin(test.weights)
        self.tol = _FINE * np.sqrt(len(test.hinges.variables))

    def __call__(self, weights: Floats) -> float:
        """Predict, and compare with the truth."""
        whole = self.examples.fill_in(weights)[:-1]  # without the surrogate
        self.world.run(whole, self.state, _STEPS, self.tol)
        predicted = self.state.consensus[self.known]
        return average_precision(self.labels[self.known], predicted, negative=self.negative)


def average_precision(truth: Floats, scores: Floats, negative: bool = False) -> float:
    """AuPR without interpolation of what is true, or if `negative` of what is not."""
    sign = -1.0 if negative else 1.0
    return float(average_precision_score((truth >= 0.5) != negative, sign * scores))


_PICTURES = {"curves": partial(duals.draw, measure=_MEASURE.name)}
EXPERIMENTS = (
    Experiment(
        "epinions",
        PAIRED_DUAL,
        "figure 1, row 2",
        "How many steps of ADMM does it take to learn hidden traits that predict distrust?",
        LEARNERS,
        _folds,
        epinions,
        partial(duals.report, measure=_MEASURE._replace(axis="0 to 0.6")),
        _PICTURES,
        (
            *duals.READINGS,
            f"Inference to 1e-4; ridge {_RIDGE} per label.",
            "The paper does not say what its surrogate is here; this one is that of latent "
            "structured support vector machines, section 3.1.",
        ),
        ("epinions",),
    ),
    Experiment(
        "bitcoin",
        PAIRED_DUAL,
        "beside figure 1, row 2",
        "Does it need as few steps on Bitcoin OTC, which has one split?",
        LEARNERS,
        _one_fold,
        bitcoin,
        partial(duals.report, measure=_MEASURE),
        _PICTURES,
        (*duals.READINGS, "The weak priors on traits, of weight 0.1, are not learnt."),
        ("psl",),
    ),
)
