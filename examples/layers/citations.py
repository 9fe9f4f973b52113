"""Topics of papers by a graph network, by rules, and by both learnt together.

The citations and topics are those of Cora; that copy has no words, so that the features of a paper
are made here: its topic in much noise. A graph network reads the features of a paper and of what it
cites. The rules say that a paper and what it cites share their topic; ``RuleLoss`` learns their
weights and the network at once, from a few labelled papers.

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
        self.layers = nn.Sequential(nn.Linear(2 * width, 32), nn.ReLU(), nn.Linear(32, n_topics))

    def forward(self, features, spread):
        """Return (papers, topics), rows of log probabilities."""
        return self.layers(torch.cat([features, spread @ features], 1)).log_softmax(1)


def neighbours(edges, n):
    """(n, n) matrix that takes the mean over cited and citing papers."""
    matrix = torch.zeros(n, n)
    for a, b in edges:
        matrix[a, b] = matrix[b, a] = 1.0
    return matrix / matrix.sum(1, keepdim=True).clamp(min=1.0)


def rule_model(labels, edges, known):
    """The rules with their atoms; the truth of the known papers alone."""
    pairs = [(str(p), str(c)) for p in range(len(labels)) for c in range(labels.max() + 1)]
    model = RuleModel(RULES)
    model.observe(Cites=[(str(a), str(b)) for a, b in edges])
    model.target(Text=pairs, Topic=pairs)
    told = [(p, c, float(labels[int(p)] == int(c))) for p, c in pairs if known[int(p)]]
    model.truth(Topic=told)
    return model


def trial(seed, n=300, share=0.1, noise=2.0, steps=40):
    """Accuracy on papers without a label: network, rules, both."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    labels, edges = load(n)
    n_topics = int(labels.max()) + 1
    known = rng.random(len(labels)) < share
    features = np.eye(n_topics)[labels] + noise * rng.normal(size=(len(labels), n_topics))
    X = torch.tensor(features, dtype=torch.float32)
    spread = neighbours(edges, len(labels))
    gold = torch.tensor(np.where(known, labels, -1))
    open_ = torch.tensor(~known)
    network = Network(n_topics, n_topics)
    learn(
        network.parameters(),
        lambda: nn.functional.nll_loss(network(X, spread), gold, ignore_index=-1),
        100,
    )
    truth = torch.tensor(labels)
    alone = float((network(X, spread).argmax(1) == truth)[open_].float().mean())
    return (
        alone,
        rules_alone(labels, edges, known),
        together(network, X, spread, labels, edges, known, gold, steps),
    )


def learn(parameters, loss, steps, after=lambda: None):
    """Take steps of Adam."""
    optimiser = torch.optim.Adam(parameters, lr=1e-2)
    for _ in range(steps):
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()
        after()


def rules_alone(labels, edges, known):
    """Spread the known topics along citations."""
    pairs = [(str(p), str(c)) for p in range(len(labels)) for c in range(labels.max() + 1)]
    model = RuleModel("\n".join(RULES.strip().splitlines()[1:]))
    told = [(p, c, float(labels[int(p)] == int(c))) for p, c in pairs if known[int(p)]]
    model.observe(Cites=[(str(a), str(b)) for a, b in edges], Topic=told)
    model.target(Topic=[pair for pair in pairs if not known[int(pair[0])]])
    found = model.predict("Topic", frame="dict")["value"].reshape(-1, labels.max() + 1)
    return float((found.argmax(1) == labels[~known]).mean())


def together(network, X, spread, labels, edges, known, gold, steps):
    """Go on with network and rules at once."""
    layer = RuleLoss(rule_model(labels, edges, known), "Text")

    def values():
        return network(X, spread).exp().reshape(-1)

    def loss():
        supervised = nn.functional.nll_loss(network(X, spread), gold, ignore_index=-1)
        return supervised + layer(values()) / int(known.sum())

    learn(
        [*network.parameters(), *layer.parameters()],
        loss,
        steps,
        lambda: layer.weights.data.clamp_(min=0.0),
    )
    with torch.no_grad():
        found = layer.predict(values(), "Topic").reshape(len(labels), -1)
    return float((found.argmax(1).numpy() == labels)[~known].mean())


def main(argv=None):
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--papers", type=int, default=300)
    parser.add_argument("--steps", type=int, default=40)
    args = parser.parse_args(argv)
    found = np.array([trial(seed, args.papers, steps=args.steps) for seed in range(args.seeds)])
    print(f"accuracy on unlabelled papers, one of {args.papers} in ten has a label")
    for name, column in zip(("network", "rules", "both"), found.T, strict=True):
        error = np.std(column, ddof=1) / np.sqrt(len(column)) if len(column) > 1 else float("nan")
        print(f"{name:>8}  {column.mean():.4f} +- {error:.4f}")


if __name__ == "__main__":
    main()
