"""Tables 1 and 2 and figure 3 of the hybrid loss, on small corpora."""

from __future__ import annotations

import numpy as np
import pytest
from papers_toys import quick

from papers.base import Settings, Unit, Verdict
from papers.catalogue import EXPERIMENTS
from papers.experiments import chunking
from papers.experiments.chunking import Chunker, Split, join, outcome, sureness, take
from papers.experiments.hybrid import Choice
from papers.inside import parse_columns
from structlearn.solvers import Online

WORDS = {"the": "B", "red": "I", "cat": "I", "sees": "O"}


def text(sentences):
    return "".join("".join(f"{w} {w[0]} {t}\n" for w, t in s) + "\n" for s in sentences).encode()


def columns_of(sentences):
    return parse_columns(text(sentences))


def sentences_of(columns):
    cells = list(zip(*(columns.text(c) for c in range(columns.width)), strict=True))
    return [
        [(word, tag) for word, _, tag in cells[a:b]]
        for a, b in zip(columns.offsets[:-1], columns.offsets[1:], strict=True)
    ]


def random_sentences(rng, n):
    def sentence():
        return [(str(w), WORDS[w]) for w in rng.choice(list(WORDS), rng.integers(1, 6))]

    return [sentence() for _ in range(n)]


@pytest.fixture
def sentences():
    return random_sentences(np.random.default_rng(0), 50)


def test_take_and_join(sentences):
    columns = columns_of(sentences)
    which = np.array([7, 0, 31])
    assert sentences_of(take(columns, which)) == [sentences[i] for i in which]
    assert sentences_of(take(columns, which[:0])) == []
    others = [[("a", "X"), ("cat", "I")]], [[("dog", "Y")]]
    joined = join([columns, *map(columns_of, others)])
    assert sentences_of(joined) == sentences + others[0] + others[1]
    assert joined.vocabularies[2].list()[-2:] == ["X", "Y"]


def test_a_split_uses_every_sentence_once(sentences):
    split = Split.drawn(columns_of(sentences), np.random.default_rng(1))
    assert [len(part.offsets) - 1 for part in split] == [10, 20, 20]
    parts = [sentences_of(part) for part in split]
    all_of_them = [sentence for part in parts for sentence in part]
    assert sorted(all_of_them) == sorted(sentences)
    assert all_of_them != sentences
    portion = split.portion(0.3)
    assert sentences_of(portion.train) == parts[0][:3]
    assert portion.test is split.test
    assert len(split.portion(0.01).train.offsets) == 2


@pytest.mark.parametrize(("loss", "cost"), chunking.LEARNERS)
def test_every_learner_learns(sentences, loss, cost):
    columns = columns_of(sentences)
    chunker = Chunker.of(take(columns, np.arange(30)))
    weights = chunker.fit(Choice(loss, 10.0, 0.5), cost, Online(average=0.5, horizon=10), 10)
    scores = chunker.score(weights, chunker.read(take(columns, np.arange(30, 50))))
    assert scores.f1 > 0.95
    assert scores.n_tokens == columns.offsets[-1] - columns.offsets[30]


def test_sentences_with_many_labels_that_are_as_likely_have_no_dominant_labelling():
    vague = [[("red", tag)] for tag in "BIO"] * 10
    clear = [[("the", "B"), ("cat", "I")]] * 20
    found = sureness(columns_of(vague + clear), columns_of([*clear[:3], [("red", "Z")]]))
    assert found["train"].dominant.tolist() == [False] * 30 + [True] * 20
    assert found["train"].best[:30] == pytest.approx(np.full(30, 1 / 3), abs=0.05)
    assert found["test"].count == 1
    assert np.isnan(found["test"].true).tolist() == [False, False, False, True]


def test_what_is_best_in_the_validation_is_tested(sentences):
    split = Split.drawn(columns_of(sentences), np.random.default_rng(2))
    found = outcome(split, "log", "hamming", (1.0, 10.0))
    chunker = Chunker.of(split.train)
    f1 = []
    for C in (1.0, 10.0):
        weights = chunker.fit(Choice("log", C), "hamming", Online(average=0.5, horizon=10), 10)
        f1.append(chunker.score(weights, chunker.read(split.validation)).f1)
    assert (1.0, 10.0)[int(np.argmax(f1))] == found.choice.C


def test_every_learner_of_every_split_is_a_unit():
    units = EXPERIMENTS["chunking"].units(Settings())
    assert len(units) == (10 + 3) * 2 * len(chunking.LEARNERS)
    assert len({tuple(map(str, unit.values())) for unit in units}) == len(units)


def test_tables_from_units():
    units = EXPERIMENTS["chunking"].units(Settings(trials=2, quick=True))
    scores = dict.fromkeys(("accuracy", "precision", "recall"), 90.0) | {"C": 1.0, "alpha": 0.9}
    done = [
        Unit(unit, scores | {"f1": 80.0 + (unit["loss"] == "hybrid") + 0.1 * unit["seed"][1]})
        for unit in units
    ]
    report = chunking.report(done)
    (table,) = report.tables
    assert table.column("f1")[2].mean == pytest.approx(81.05)
    assert table.column("alpha")[:3] == ["", "", "0.9"]
    assert {claim.verdict for claim in report.claims} == {Verdict.HOLDS}


@pytest.mark.data
def test_the_quick_version(data_folder):
    done = quick(EXPERIMENTS["chunking"])
    (table,) = EXPERIMENTS["chunking"].report(done).tables
    assert min(cell.mean for cell in table.column("f1")[5:]) > 88.0


@pytest.mark.data
def test_sentences_without_a_dominant_labelling(data_folder):
    (table,) = EXPERIMENTS["dominance"].report(quick(EXPERIMENTS["dominance"])).tables
    assert table.column("sentences") == [77, 823]
