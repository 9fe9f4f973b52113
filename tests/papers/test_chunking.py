"""Tables 1 and 2 and figure 3 of the hybrid loss, on small corpora."""

from __future__ import annotations

import json

import numpy as np
import pytest

from papers.base import Settings
from papers.experiments import chunking
from papers.experiments.chunking import Chunker, Split, compare, join, sureness, take
from papers.experiments.hybrid import Choice
from structlearn._src.solve.online import Online
from structlearn._src.text.columns import parse_columns

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


def test_tables(sentences):
    table, again = (
        compare("toy", columns_of(sentences), 2, Settings(), Cs=(1.0, 10.0)) for _ in range(2)
    )
    assert table == again
    keys = list(zip(table.column("portion"), table.column("loss"), strict=True))
    assert keys == [(share, loss) for share in (0.1, 1.0) for loss, _ in chunking.LEARNERS]
    assert all(
        0.0 <= cell.mean <= 100.0 for name in ("accuracy", "f1") for cell in table.column(name)
    )
    small, large = np.reshape([cell.mean for cell in table.column("accuracy")], (2, -1))
    assert (large > small).all()
    assert [bool(alpha) for alpha in table.column("alpha")[:5]] == [
        loss == "hybrid" for loss, _ in chunking.LEARNERS
    ]


@pytest.mark.data
def test_the_quick_version(data_folder):
    record = chunking.run(Settings(quick=True))
    scores, sure = record.tables
    assert min(cell.mean for cell in scores.column("f1")[5:]) > 88.0
    assert sure.column("sentences") == [77, 823]
    assert json.loads(json.dumps(record.plain()))["tables"][0]["rows"][1]["loss"] == "log"
