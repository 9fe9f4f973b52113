"""The hybrid loss on text: tables 1 and 2 and figure 3 of its paper.

References
----------
Q. Shi et al., "A hybrid loss for multiclass and structured prediction", 2014, sections 5.1 and 5.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from papers.arrays import Floats, Ints, block_indices, offsets_of
from papers.base import Claim, Estimate, Experiment, Report, Settings, Table, Units
from papers.documents import HYBRID_LOSS
from papers.experiments.hybrid import Choice, choices
from papers.inside import (
    Attributes,
    ChunkScores,
    Columns,
    Dominance,
    Examples,
    InferenceSettings,
    LinearModel,
    LinearTerm,
    Options,
    Rows,
    Sequences,
    Sparse,
    Strings,
    TableTerm,
    decode,
    dominance,
    fit_transform,
    parse_template,
)
from papers.pictures import new_figure, styled
from structlearn.datasets import load_basenp, load_conll2000
from structlearn.metrics import chunk_scores
from structlearn.solvers import Online, Sdca, Solver
from structlearn.solvers import run as minimise

_CS = (0.1, 1.0, 10.0)
_PORTIONS = (0.1, 1.0)
_SHARES = (0.2, 0.4)  # of sentences to train on and to test on; all others are for validation
_PASSES = 10
_TOL = 1e-4  # at which the CRF of figure 3 has converged

#: Rows of the tables: a loss, and its task cost.
LEARNERS = (
    ("hinge", "hamming-mean"),
    ("log", "hamming"),
    ("hybrid", "hamming-mean"),
    ("hinge", "hamming"),
    ("hybrid", "hamming"),
)


# ---- sentences ---------------------------------------------------------------------------


def take(columns: Columns, which: Ints) -> Columns:
    """Return some of the sentences, in the order of `which`."""
    tokens = block_indices(columns.offsets, which)
    offsets = offsets_of(np.diff(columns.offsets)[which])
    return columns._replace(ids=columns.ids[tokens], offsets=offsets, ends=columns.ends[tokens])


def join(parts: Sequence[Columns]) -> Columns:
    """Return the sentences of all parts; where in the text they ended is then meaningless."""
    vocabularies = tuple(
        Strings.of(list(dict.fromkeys(s for strings in column for s in strings.list())))
        for column in zip(*(part.vocabularies for part in parts), strict=True)
    )
    ids = np.concatenate([part.known_by(vocabularies).ids for part in parts])
    offsets = offsets_of(np.concatenate([np.diff(part.offsets) for part in parts]))
    return Columns(ids, offsets, vocabularies, np.concatenate([part.ends for part in parts]))


class Split(NamedTuple):
    """Sentences to train on, to test on, and to choose by."""

    train: Columns
    test: Columns
    validation: Columns

    @classmethod
    def drawn(cls, columns: Columns, rng: np.random.Generator) -> Split:
        """Split at random."""
        n = len(columns.offsets) - 1
        cuts = np.rint(np.cumsum(_SHARES) * n).astype(int)
        train, test, validation = np.split(rng.permutation(n), cuts)
        return cls(take(columns, train), take(columns, test), take(columns, validation))

    def portion(self, share: float) -> Split:
        """Keep only the first sentences to train on."""
        n = max(round(share * (len(self.train.offsets) - 1)), 1)
        return self._replace(train=take(self.train, np.arange(n)))


# ---- learning ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Chunker:
    """A chain over attributes made by CRF++'s template for chunking, with all pairs of labels.

    Labels are those of the last column.
    """

    attributes: Attributes
    model: LinearModel
    train: Examples
    names: tuple[str, ...]

    @classmethod
    def of(cls, columns: Columns) -> Chunker:
        """Learn the attributes of sentences to train on."""
        names = tuple(columns.vocabularies[-1].list())
        attributes, expanded = fit_transform(columns, parse_template(), 1, 1)
        states = len(names)
        nodes = LinearTerm(expanded.unigram.n_columns, states)
        model = LinearModel(((nodes,), (TableTerm(states * states),)))
        return cls(attributes, model, _examples(columns, expanded.unigram, states), names)

    def read(self, columns: Columns) -> Examples:
        """Return other sentences, by the attributes that are known."""
        return _examples(columns, self.attributes.transform(columns, 1).unigram, len(self.names))

    def fit(self, choice: Choice, cost: str, solver: Solver, passes: int) -> Floats:
        """Return the weights after so many passes, or as soon as they have converged."""
        objective = choice.objective(self.model, self.train, cost)
        start = np.zeros(self.model.n_weights)
        rng = np.random.default_rng(0)
        tol = _TOL if isinstance(solver, Sdca) else None
        return minimise(solver, objective, start, max_iter=passes, tol=tol, rng=rng).weights

    def score(self, weights: Floats, examples: Examples) -> ChunkScores:
        """Compare the most likely labels with the true ones."""
        structure = examples.structure
        tables = self.model.push(weights, examples.inputs, 1)
        found = decode.best(structure, tables, 1.0, Options(n_jobs=1))
        return chunk_scores(examples.labels, found, structure.variables, self.names)


def _examples(columns: Columns, attributes: Rows, states: int) -> Examples:
    labels = columns.ids[:, -1].astype(np.int64)
    inputs = (Sparse(attributes),), (None,)
    ones = np.ones(len(columns.offsets) - 1)
    return Examples(Sequences(columns.offsets, states), inputs, labels, ones)


# ---- tables 1 and 2 ----------------------------------------------------------------------


class Outcome(NamedTuple):
    """What was best for a learner in the validation, and its scores in the test."""

    choice: Choice
    scores: ChunkScores


def corpora(name: str) -> tuple[Columns, Columns]:
    """Return the official training and test sentences."""
    load = {"BaseNP": load_basenp, "CoNLL-2000": load_conll2000}[name]
    return load("train"), load("test")


def chosen(
    corpus: str, share: float, loss: str, cost: str, seed: list[int], quick: bool
) -> dict[str, Any]:
    """Scores in the test of what was best in the validation, on one random split."""
    split = Split.drawn(join(corpora(corpus)), np.random.default_rng(seed)).portion(share)
    best = outcome(split, loss, cost, (1.0,) if quick else _CS)
    names = ("accuracy", "precision", "recall", "f1")
    scores = {name: 100.0 * getattr(best.scores, name) for name in names}
    return scores | {"C": best.choice.C, "alpha": best.choice.alpha}


def outcome(split: Split, loss: str, cost: str, Cs: Sequence[float]) -> Outcome:
    """Try all settings of a loss."""
    chunker = Chunker.of(split.train)
    validation, test = chunker.read(split.validation), chunker.read(split.test)
    best = None
    for choice in choices(loss, Cs):
        weights = chunker.fit(choice, cost, Online(average=0.5, horizon=_PASSES), _PASSES)
        f1 = chunker.score(weights, validation).f1
        if best is None or f1 > best[0]:
            best = f1, choice, weights
    assert best is not None
    return Outcome(best[1], chunker.score(best[2], test))


def units(settings: Settings) -> list[dict[str, Any]]:
    """One learner on one split each."""
    splits = {"BaseNP": settings.count(10, 1)}
    if not settings.quick:
        splits["CoNLL-2000"] = settings.count(3, 1)
    return [
        {"corpus": corpus, "share": share, "loss": loss, "cost": cost,
         "seed": [settings.seed, i], "quick": settings.quick}
        for corpus, n in splits.items()
        for i in range(n)
        for share in _PORTIONS
        for loss, cost in LEARNERS
    ]  # fmt: skip


def report(done: Units) -> Report:
    """Scores of every corpus by portion and loss, beside the paper's."""
    tables = []
    claims = []
    for corpus in dict.fromkeys(unit.given["corpus"] for unit in done):
        own = [unit for unit in done if unit.given["corpus"] == corpus]
        rows = [
            _row(corpus, share, loss, cost, _cell(own, share, loss, cost))
            for share in _PORTIONS
            for loss, cost in LEARNERS
        ]
        tables.append(Table.of(f"{corpus}: percent right in the test", rows))
        claims += [
            Claim.above(
                f"the F1 of the hybrid is above that of the {name}, {corpus}, portion {share:g}",
                _f1(own, share, "hybrid", "hamming-mean") - _f1(own, share, name, cost),
            )
            for share in _PORTIONS
            for name, cost in (("hinge", "hamming-mean"), ("log", "hamming"))
        ]
    return Report(tuple(tables), tuple(claims))


def _cell(done: Units, share: float, loss: str, cost: str) -> Units:
    key = {"share": share, "loss": loss, "cost": cost}
    found = [unit for unit in done if all(unit.given[name] == key[name] for name in key)]
    return sorted(found, key=lambda unit: unit.given["seed"])


def _f1(done: Units, share: float, loss: str, cost: str) -> Floats:
    return np.array([unit.found["f1"] for unit in _cell(done, share, loss, cost)])


def _row(corpus: str, share: float, loss: str, cost: str, cell: Units) -> dict[str, Any]:
    row: dict[str, Any] = {"portion": share, "loss": loss, "cost": "" if loss == "log" else cost}
    for name in ("accuracy", "precision", "recall", "f1"):
        row[name] = Estimate.of([unit.found[name] for unit in cell])
    row["paper's f1"] = PAPER[corpus][share][loss]
    row["C"] = _listed(unit.found["C"] for unit in cell)
    alphas = _listed(unit.found["alpha"] for unit in cell)
    return row | {"alpha": alphas if loss == "hybrid" else ""}


def _listed(values: Iterable[float]) -> str:
    """Name all values, in rising order."""
    return " ".join(f"{value:g}" for value in sorted(set(values)))


# ---- figure 3 ----------------------------------------------------------------------------


def sureness(train: Columns, test: Columns, passes: int = 100) -> dict[str, Dominance]:
    """Train a CRF, and tell how sure it is of whole sentences it was trained on and of others."""
    known = train.vocabularies
    chunker = Chunker.of(train)
    weights = chunker.fit(Choice("log", 1.0), "hamming", Sdca(), passes)
    parts = {"train": chunker.train, "test": chunker.read(test.known_by([None] * 2 + [known[-1]]))}
    return {
        name: dominance(chunker.model, part, weights, InferenceSettings(n_jobs=1))
        for name, part in parts.items()
    }


def sure_units(settings: Settings) -> list[dict[str, Any]]:
    """Everything at once: one CRF."""
    return [{"corpus": "BaseNP" if settings.quick else "CoNLL-2000"}]


def sure_work(corpus: str) -> dict[str, Any]:
    """Probabilities of the likeliest and of the true labelling of every sentence, in order."""
    return {
        name: {
            "sentences": len(each.best),
            "without": each.count,
            "best": np.sort(each.best)[:: max(len(each.best) // 400, 1)],
            "true": np.sort(each.true)[:: max(len(each.true) // 400, 1)],
        }
        for name, each in sureness(*corpora(corpus)).items()
    }


def sure_report(done: Units) -> Report:
    """How many sentences have no dominant labelling."""
    (unit,) = done
    rows = []
    for name, each in unit.found.items():
        share = each["without"] / each["sentences"]
        row = {"part": name, "sentences": each["sentences"]}
        row |= {"without dominant labelling": each["without"], "share": round(share, 3)}
        rows.append(row | {"paper's share": round(_SURE[name], 3)})
    heading = f"{unit.given['corpus']}, official split: sentences without a dominant labelling"
    many = min(row["share"] for row in rows)
    claim = Claim.that(
        "many sentences have no dominant labelling (our reading: more than 10 % of either part)",
        many > 0.1,
        f"at least {many:.1%}",
    )
    return Report((Table.of(heading, rows),), (claim,))


def _draw(done: Units) -> Any:
    figure = new_figure(8.0, 3.2)
    for axes, (name, each) in zip(figure.subplots(1, 2), done[0].found.items(), strict=True):
        for which, values, style in styled({k: each[k] for k in ("true", "best")}):
            axes.plot(np.linspace(0.0, 1.0, len(values)), values, label=which, **style)
        axes.axhline(0.5, color="0.5", linewidth=1, linestyle=":")
        axes.set(title=name, xlabel="share of sentences", ylabel="probability of the labelling")
    return figure


# ---- the experiments ---------------------------------------------------------------------

#: F1 that the paper prints, by portion.
PAPER = {
    "BaseNP": {
        0.1: {"hinge": 73.77, "log": 80.01, "hybrid": 80.15},
        1.0: {"hinge": 87.94, "log": 89.48, "hybrid": 89.55},
    },
    "CoNLL-2000": {
        0.1: {"hinge": 85.41, "log": 87.02, "hybrid": 87.05},
        1.0: {"hinge": 91.30, "log": 92.15, "hybrid": 92.17},
    },
}
_SURE = {"train": 2000 / 8936, "test": 700 / 2012}  # without a dominant labelling in the paper

EXPERIMENTS = (
    Experiment(
        "chunking",
        HYBRID_LOSS,
        "tables 1 and 2",
        "Which loss finds chunks best, from few and from many sentences?",
        ("hinge", "log", "hybrid"),
        units,
        chosen,
        report,
        readings=(
            "Sentences are split at random, 20 % to train on, 40 % to test on, 40 % to choose C "
            "and alpha by, of which the hybrid has more to choose from.",
            "Weights are the average of the last half of 10 passes of stochastic gradient steps.",
            "The paper does not say which cost it uses on text; claims are judged with errors "
            "divided by the length of the sentence.",
        ),
        data=("basenp", "conll2000"),
    ),
    Experiment(
        "dominance",
        HYBRID_LOSS,
        "figure 3",
        "How many sentences have no labelling with a probability of one half?",
        ("CRF",),
        sure_units,
        sure_work,
        sure_report,
        {"probabilities": _draw},
        data=("basenp", "conll2000"),
    ),
)
