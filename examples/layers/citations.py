"""Topics of papers by a graph network, by rules, and by both learnt together.

The citations and topics are those of Cora; that copy has no words, so that the features of a paper
are made here: its topic in noise. A graph network reads the features of a paper and of what it
cites. The rules say that a paper and what it cites share their topic, and spread the labels that
are known. ``RuleLoss`` learns the weights of the rules and the network at once: the labelled papers
are cut into folds, and each fold in turn is what the rules have to find from the others.

Run ``python examples/layers/citations.py --seeds 5``; it needs the data set, and takes minutes.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np
import torch
from torch import nn

from structlearn import RuleModel
from structlearn.datasets import data_path
from structlearn.torch import RuleLoss

RULES = """
1: Text(P, C) = Topic(P, C) ^2
1: Cites(P, Q) & Topic(P, C) -> Topic(Q, C) ^2
1: Cites(Q, P) & Topic(P, C) -> Topic(Q, C) ^2
Topic(P, +C) = 1 .
"""


def load(n):
    """Topics of some papers that cite each other, and the citations among them, as numbers."""
    folder = data_path("psl", "cora", "infer")
    rows = [row for name in ("obs", "truth") for row in table(folder / f"hasCat_{name}.txt")]
    topic = {paper: label for paper, label, value in rows if float(value) > 0.5}
    links = [(a, b) for a, b, *_ in table(folder / "link_obs.txt") if a in topic and b in topic]
    papers = {paper: i for i, paper in enumerate(reached(links, n))}
    edges = {(papers[a], papers[b]) for a, b in links if a in papers and b in papers and a != b}
    _, labels = np.unique([topic[paper] for paper in papers], return_inverse=True)
    return labels, sorted(edges)


def table(path):
    """Rows of a text file."""
    return [line.split() for line in path.read_text().splitlines()]


def reached(links, n):
    """The first papers that a search along citations finds, from the one with the most."""
    beside = defaultdict(set)
    for a, b in links:
        beside[a].add(b)
        beside[b].add(a)
    found = dict.fromkeys([max(sorted(beside), key=lambda paper: len(beside[paper]))])
    for paper in (queue := list(found)):
        new = [each for each in sorted(beside[paper]) if each not in found]
        found.update(dict.fromkeys(new))
        queue += new
        if len(found) >= n:
            break
    return list(found)[:n]


class Network(nn.Module):
    """Probabilities of topics from the features of a paper and the mean of its neighbours'."""

    def __init__(self, width, n_topics):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Dropout(0.2), nn.Linear(2 * width, 32), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(32, n_topics),
        )  # fmt: skip

    def forward(self, features, spread):
        """Return (papers, topics), rows of log probabilities."""
        return self.layers(torch.cat([features, spread @ features], 1)).log_softmax(1)


def neighbours(edges, n):
    """(n, n) matrix that takes the mean over cited and citing papers."""
    matrix = torch.zeros(n, n)
    for a, b in edges:
        matrix[a, b] = matrix[b, a] = 1.0
    return matrix / matrix.sum(1, keepdim=True).clamp(min=1.0)


def rule_model(labels, edges, seen, asked=None, rules=RULES):
    """The rules with what is seen of the topics, and the truth of what they are asked for."""
    pairs = [(str(p), str(c)) for p in range(len(labels)) for c in range(labels.max() + 1)]

    def topics(which):
        return [(p, c, float(labels[int(p)] == int(c))) for p, c in pairs if which[int(p)]]

    model = RuleModel(rules)
    model.observe(Cites=[(str(a), str(b)) for a, b in edges], Topic=topics(seen))
    model.target(Topic=[pair for pair in pairs if not seen[int(pair[0])]])
    if "Text" in rules:
        model.target(Text=pairs)
    if asked is not None:
        model.truth(Topic=topics(asked))
    return model


def trial(seed, n=1000, share=0.1, noise=0.7, steps=20):
    """Accuracy on papers without a label: network, rules, both."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    labels, edges = load(n)
    n_topics = int(labels.max()) + 1
    known = rng.random(len(labels)) < share
    features = np.eye(n_topics)[labels] + noise * rng.normal(size=(len(labels), n_topics))
    X = torch.tensor(features, dtype=torch.float32)
    spread = neighbours(edges, len(labels))
    network = Network(n_topics, n_topics)
    gold = torch.tensor(np.where(known, labels, -1))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2, weight_decay=1e-3)
    learn(optimiser, lambda _: supervised(network(X, spread), gold), 200)
    network.eval()
    alone = network(X, spread).argmax(1).numpy()
    folds = np.array_split(rng.permutation(np.flatnonzero(known)), 4)
    return (
        float((alone == labels)[~known].mean()),
        rules_alone(labels, edges, known),
        together(network, X, spread, labels, edges, known, folds, steps),
    )


def supervised(found, gold):
    """Log loss of the papers with a label."""
    return nn.functional.nll_loss(found, gold, ignore_index=-1)


def learn(optimiser, loss, steps, after=lambda: None):
    """Take steps on a loss that knows their numbers."""
    for i in range(steps):
        optimiser.zero_grad()
        loss(i).backward()
        optimiser.step()
        after()


def rules_alone(labels, edges, known):
    """Spread the known topics along citations."""
    model = rule_model(labels, edges, known, rules="\n".join(RULES.strip().splitlines()[1:]))
    found = model.predict("Topic", frame="dict")["value"].reshape(-1, labels.max() + 1)
    return float((found.argmax(1) == labels[~known]).mean())


def together(network, X, spread, labels, edges, known, folds, steps):
    """Go on with network and rules at once, then predict with all that is known."""
    parts = []
    for fold in folds:
        asked = np.isin(np.arange(len(labels)), fold)
        seen = known & ~asked
        layer = RuleLoss(rule_model(labels, edges, seen, asked), "Text")
        parts.append((layer, torch.tensor(np.where(seen, labels, -1)), len(fold)))
    final = RuleLoss(rule_model(labels, edges, known), "Text")
    weights = nn.Parameter(final.weights.detach().clone())
    weights.data[0] = 0.3  # what a network says of papers it has not seen is less sure

    def loss(i):
        layer, gold, asked = parts[i % len(parts)]
        found = network(X, spread)
        return supervised(found, gold) + layer(found.exp().reshape(-1), weights) / asked

    network.train()
    optimiser = torch.optim.Adam([*network.parameters(), weights], lr=1e-2)
    learn(optimiser, loss, steps, lambda: weights.data.clamp_(min=0.0))
    network.eval()
    with torch.no_grad():
        final.weights.copy_(weights)
        values = network(X, spread).exp().reshape(-1)
        found = final.predict(values, "Topic").reshape(int((~known).sum()), -1)
    return float((found.argmax(1).numpy() == labels[~known]).mean())


def main(argv=None):
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--papers", type=int, default=1000)
    parser.add_argument("--noise", type=float, default=0.7, help="in the features of papers")
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args(argv)
    seeds = range(args.first, args.first + args.seeds)
    options = {"noise": args.noise, "steps": args.steps}
    found = np.array([trial(seed, args.papers, **options) for seed in seeds])
    print(f"accuracy on unlabelled papers, one of {args.papers} in ten has a label")
    for name, column in zip(("network", "rules", "both"), found.T, strict=True):
        error = np.std(column, ddof=1) / np.sqrt(len(column)) if len(column) > 1 else float("nan")
        print(f"{name:>8}  {column.mean():.4f} +- {error:.4f}")


if __name__ == "__main__":
    main()
