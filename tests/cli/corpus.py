"""Small column files, and slow and obvious versions of what taggers do with them."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np

LABELS = ["B", "I", "O"]
TEMPLATE = "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,1]\nU02:%x[1,1]\nB\n"
_MACRO = re.compile(r"%x\[(-?\d+),(\d+)\]")


def sentences(seed, n=12):
    """Sentences of (word, tag, label), whose labels depend on the tags and on luck."""
    rng = np.random.default_rng(seed)
    return [_sentence(rng) for _ in range(n)]


def _sentence(rng):
    out, before = [], "O"
    for _ in range(rng.integers(1, 6)):
        tag = str(rng.choice(["D", "N", "V"]))
        word = tag.lower() + str(rng.integers(4))
        label = {"D": "B", "N": "B" if before == "O" else "I", "V": "O"}[tag]
        if rng.random() < 0.15:
            label = str(rng.choice(["B", "O"]))
        out.append((word, tag, label))
        before = label
    return out


def text_of(corpus, width=3, separator=" "):
    """The column file of sentences, their first `width` columns."""
    blocks = ["".join(f"{separator.join(token[:width])}\n" for token in s) for s in corpus]
    return "\n".join(blocks) + "\n"


def write(path, corpus, **options):
    path.write_text(text_of(corpus, **options), encoding="utf-8")
    return path


def attributes(sentence, template=TEMPLATE):
    """For every token the attributes that CRF++ would make, row by row."""
    rows = [row for row in template.splitlines() if row.startswith("U")]
    return [[_fill(row, sentence, t) for row in rows] for t in range(len(sentence))]


def _fill(row, sentence, t):
    def cell(macro):
        place, column = t + int(macro[1]), int(macro[2])
        if place < 0:
            return f"_B{place}"
        if place >= len(sentence):
            return f"_B+{place - len(sentence) + 1}"
        return sentence[place][column]

    return _MACRO.sub(cell, row)


class Naive:
    """A tagger as dictionaries of weights, and all its labellings by enumeration."""

    def __init__(self, features, transitions):
        self.features, self.transitions = features, transitions

    @classmethod
    def of(cls, labeler):
        """Read the weights of a labeler with sparse features."""
        plan, weights = labeler.plan_, labeler.weights_
        (nodes,), (table,) = plan.model.groups
        names, labels = plan.reader.names(), plan.classes.tolist()
        features = {}
        for d, name in enumerate(names):
            for i in range(nodes.offsets[d], nodes.offsets[d + 1]):
                features[name, labels[nodes.states[i]]] = weights[i]
        ties = [i for i, tie in enumerate(table.ties) if tie >= 0]
        rest = weights[nodes.n_weights :]
        pairs = [(labels[i // len(labels)], labels[i % len(labels)]) for i in ties]
        return cls(features, dict(zip(pairs, rest.tolist(), strict=True)))

    def score(self, sentence, labels):
        """The weights that a labelling uses, summed."""
        total = sum(
            self.features.get((name, label), 0.0)
            for names, label in zip(attributes(sentence), labels, strict=True)
            for name in names
        )
        return total + sum(self.transitions.get(pair, 0.0) for pair in itertools.pairwise(labels))

    def ranked(self, sentence):
        """All labellings with their scores, best first."""
        every = itertools.product(LABELS, repeat=len(sentence))
        scored = [(self.score(sentence, labels), labels) for labels in every]
        return sorted(scored, key=lambda pair: -pair[0])

    def log_z(self, sentence):
        scores = np.array([score for score, _ in self.ranked(sentence)])
        return float(scores[0] + np.log(np.exp(scores - scores[0]).sum()))

    def marginal(self, sentence, t, label):
        """Probability of a label at one token."""
        log_z = self.log_z(sentence)
        return sum(math.exp(s - log_z) for s, labels in self.ranked(sentence) if labels[t] == label)

    def objective(self, corpus, C=1.0):
        """Half the squared weights, and C times minus the log likelihood."""
        squares = sum(w * w for part in (self.features, self.transitions) for w in part.values())
        losses = sum(self.log_z(s) - self.score(s, [token[2] for token in s]) for s in corpus)
        return 0.5 * squares + C * losses
