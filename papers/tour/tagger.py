"""A tagger learnt from made-up text: what is what in a list of references."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from papers.inside import Columns, parse_columns
from papers.pictures import new_figure
from papers.tour.base import Stop, prose, table
from structlearn import ChainDisplay, SequenceLabeler, TransitionDisplay

_N_TRAIN, _N_TEST = 60, 500
_HIDDEN = 0.5  # share of the labels that the last tagger does not get
#: Most words are in more than one list, and all numbers look alike.
_WORDS = {
    "author": ("stone", "rivers", "berg", "field", "wood"),
    "year": ("#",),
    "title": ("on", "the", "nature", "of", "cell", "growth", "stone", "field", "letters", "wood"),
    "journal": ("nature", "cell", "science", "letters", "growth", "field"),
    "volume": ("#",),
}
_MOST = {"author": 3, "year": 1, "title": 6, "journal": 2, "volume": 1}
_TEMPLATE = "U0:%x[0,0]\nB"
_SHOWN = "wood field # nature of growth cell letters #"
_TRUE = [*["author"] * 2, "year", *["title"] * 3, *["journal"] * 2, "volume"]

HEADING = "Learning to read references"


class _References(NamedTuple):
    columns: Columns
    labels: list[list[str]]


def run(rng: np.random.Generator) -> Stop:
    """Write references, learn from some of them, and read the rest."""
    train, test = _write(rng, _N_TRAIN), _write(rng, _N_TEST)
    gaps = [[x if rng.random() >= _HIDDEN else None for x in row] for row in train.labels]
    taggers = {
        "each word alone": _tagger(transitions="none").fit(*train),
        "a chain, log loss (CRF)": _tagger().fit(*train),
        "a chain, hinge (structured SVM)": _tagger(loss="hinge", tol=1e-2).fit(*train),
        "a CRF that got half of the labels": _tagger().fit(train.columns, gaps),
    }
    crf = taggers["a chain, log loss (CRF)"]
    lines = [
        *prose(
            f"{_N_TRAIN} references with authors, year, title, journal and volume, in the columns "
            "and with the kind of template that CRF++ users know. 'stone' is an author or a word "
            f"of a title, every number is '#'; neighbours must tell. Tested on {_N_TEST} others:"
        ),
        "",
        *table(
            ["labels right", "whole lines right"],
            {name: _judge(tagger, test) for name, tagger in taggers.items()},
        ),
        "",
        *prose(f"The CRF has {len(crf.weights_)} weights; {crf.status_}."),
    ]
    return Stop(HEADING, lines, {"tagger": lambda: _draw(crf)})


def _tagger(**options: Any) -> SequenceLabeler:
    return SequenceLabeler(template=_TEMPLATE, C=10.0, random_state=0, **options)


def _write(rng: np.random.Generator, n: int) -> _References:
    """Draw references; their words are columns, as a tagger reads them from a file."""
    lines = [_reference(rng) for _ in range(n)]
    return _References(_columns([words for words, _ in lines]), [labels for _, labels in lines])


def _columns(lines: list[list[str]]) -> Columns:
    return parse_columns("\n\n".join("\n".join(words) for words in lines).encode())


def _reference(rng: np.random.Generator) -> tuple[list[str], list[str]]:
    counts = {label: int(rng.integers(1, most + 1)) for label, most in _MOST.items()}
    labels = [label for label, count in counts.items() for _ in range(count)]
    return [str(rng.choice(_WORDS[label])) for label in labels], labels


def _judge(tagger: SequenceLabeler, test: _References) -> list[float]:
    """Shares of labels and of whole lines that are right."""
    pairs = zip(tagger.predict(test.columns), test.labels, strict=True)
    whole = np.mean([found.tolist() == true for found, true in pairs])
    return [tagger.score(*test), float(whole)]


def _draw(crf: SequenceLabeler) -> Any:
    words = _SHOWN.split()
    figure = new_figure(11.0, 4.4)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.6))
    order = [list(crf.classes_).index(label) for label in _MOST]  # as they follow each other
    weights = crf.transitions_[np.ix_(order, order)]
    display = TransitionDisplay(weights, state_names=list(_MOST))
    display.plot(left, title="Weights of transitions", legend=False)
    left.set(xlabel="next label", ylabel="label")
    columns = _columns([words])
    each = crf.classes_[crf.predict_marginals(columns)[0].argmax(axis=1)]
    shown = ChainDisplay.from_estimator(crf, columns, paths={"best of each": each, "truth": _TRUE})
    shown.paths = {"best path" if k == "predicted" else k: v for k, v in shown.paths.items()}
    shown.plot(right, title="Probabilities of labels, and which are chosen")
    right.set_xticks(range(len(words)), labels=words)
    return figure
