"""A neural tagger whose labels are partly missing, with four losses on top of one network.

CoNLL-2000, most labels hidden at random. The same BiLSTM is trained with

- softmax, on the tokens with a label;
- a CRF on the labelled tokens alone, "dropped": CRFs such as pytorch-crf's know no hidden labels,
  so that the tokens between them are dropped; ``structlearn.torch.CRF`` has its call and numbers;
- ``ChainLoss(loss="log")``: a CRF that sums hidden labels out;
- ``ChainLoss(loss="hybrid")``: half of it a margin.

Run ``python examples/layers/tagger.py --seeds 5``; it needs the data set, and takes minutes.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np
import torch
from torch import nn

from structlearn.datasets import load_conll2000
from structlearn.torch import CRF, ChainLoss

LOSSES = ("softmax", "dropped", "log", "hybrid")
WIDTH = 48  # of embeddings and of each direction of the LSTM


class Network(nn.Module):
    """Scores of all labels of every token."""

    def __init__(self, n_words, n_tags, n_labels):
        super().__init__()
        self.words = nn.Embedding(n_words, WIDTH)
        self.tags = nn.Embedding(n_tags, WIDTH // 2)
        self.lstm = nn.LSTM(WIDTH + WIDTH // 2, WIDTH, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * WIDTH, n_labels)

    def forward(self, words, tags):
        """Return (B, T, K)."""
        inputs = torch.cat([self.words(words), self.tags(tags)], -1)
        return self.out(self.lstm(inputs)[0])


def number(sentences, known):
    """Numbers of strings by a vocabulary, 0 for the unknown."""
    return [np.array([known.get(each, 0) for each in sentence]) for sentence in sentences]


def vocabulary(sentences, least=1):
    """Numbers, from 1, of what occurs often enough."""
    counts = Counter(each for sentence in sentences for each in sentence)
    return {
        each: i + 1 for i, each in enumerate(sorted(e for e, n in counts.items() if n >= least))
    }


def padded(arrays, fill):
    """(B, T) tensor of arrays of unequal lengths."""
    tensors = [torch.as_tensor(array) for array in arrays]
    return nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=fill)


def load(n_train, n_test):
    """Words, tags and labels as numbers, and the sizes of the three vocabularies."""
    parts = [(load_conll2000("train"), n_train), (load_conll2000("test"), n_test)]
    columns = [[part.labels(i)[:n] for i in range(3)] for part, n in parts]
    lower = [[[w.lower() for w in s] for s in part[0]] for part in columns]
    known = [vocabulary(lower[0], least=2), vocabulary(columns[0][1]), vocabulary(columns[0][2])]
    data = [
        (number(low, known[0]), number(part[1], known[1]), number(part[2], known[2]))
        for low, part in zip(lower, columns, strict=True)
    ]
    return data, [len(each) + 1 for each in known]


def dropped(scores, labels):
    """Scores and labels of the labelled tokens alone, one after another, with their mask."""
    kept = [labels[i] >= 0 for i in range(len(labels))]
    rows = [scores[i, keep] for i, keep in enumerate(kept) if keep.any()]
    gold = [labels[i, keep] for i, keep in enumerate(kept) if keep.any()]
    mask = padded([torch.ones_like(each, dtype=torch.bool) for each in gold], False)
    return nn.utils.rnn.pad_sequence(rows, batch_first=True), padded(gold, 0), mask


def make_loss(name, n_labels):
    """The layer, if the loss has one, and the loss of scores, labels (-1: hidden) and mask."""
    if name == "softmax":
        return None, lambda s, y, mask: nn.functional.cross_entropy(
            s[mask], y[mask], ignore_index=-1, reduction="sum"
        )
    if name == "dropped":
        layer = CRF(n_labels, batch_first=True)
        return layer, lambda s, y, mask: -layer(*dropped(s, torch.where(mask, y, -1)))
    layer = ChainLoss(n_labels, loss=name, reduction="sum")
    return layer, layer


def train(name, data, sizes, share, seed, epochs, device="cpu"):
    """Train on labels of which a share is kept, and return the accuracy on the test set."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    (words, tags, labels), test = data
    partly = [np.where(rng.random(len(y)) < share, y, -1) for y in labels]
    network = Network(*sizes).to(device)
    layer, loss = make_loss(name, sizes[2])
    if layer is not None:
        layer.to(device)
    parameters = [*network.parameters(), *(layer.parameters() if layer is not None else ())]
    optimiser = torch.optim.Adam(parameters, lr=5e-3)
    for _ in range(epochs):
        for batch in np.array_split(rng.permutation(len(words)), max(len(words) // 32, 1)):
            mask = padded([np.ones(len(words[i]), bool) for i in batch], False).to(device)
            scores = network(*(padded([x[i] for i in batch], 0).to(device) for x in (words, tags)))
            gold = padded([partly[i] for i in batch], -1).to(device)
            optimiser.zero_grad()
            (loss(scores, gold, mask) / len(batch)).backward()
            optimiser.step()
    return accuracy(network, layer, test, device)


@torch.no_grad()
def accuracy(network, layer, test, device):
    """Share of right labels."""
    words, tags, labels = test
    mask = padded([np.ones(len(w), bool) for w in words], False).to(device)
    scores = network(padded(words, 0).to(device), padded(tags, 0).to(device))
    found = scores.argmax(-1) if layer is None else padded_paths(layer.decode(scores, mask), mask)
    gold = padded(labels, 0).to(device)
    return float((found == gold)[mask & (gold > 0)].float().mean())


def padded_paths(paths, mask):
    """(B, T) tensor of decoded labels."""
    out = torch.zeros_like(mask, dtype=torch.long)
    out[mask] = torch.tensor([label for path in paths for label in path], device=mask.device)
    return out


def main(argv=None):
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.2, help="of the labels that are kept")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--losses", nargs="+", default=LOSSES, choices=LOSSES)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args(argv)
    seeds = range(args.first, args.first + args.seeds)
    data, sizes = load(args.sentences, max(args.sentences // 2, 1))
    print(f"accuracy, {args.sentences} sentences, {args.share:.0%} of the labels known")
    for name in args.losses:
        found = [train(name, data, sizes, args.share, s, args.epochs, args.device) for s in seeds]
        error = np.std(found, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else float("nan")
        print(f"{name:>8}  {np.mean(found):.4f} +- {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
