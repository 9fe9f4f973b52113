"""A segmentation network that sees one label in ten.

Images of three materials in noise, made here. The same small convolution network is trained with
softmax on the labelled pixels, and with ``GridLoss``, which also learns how pixels beside each
other agree and treats the other labels as hidden: as a CRF (``"log"``) and as a marginal
structured SVM.

Run ``python examples/layers/segmentation.py --seeds 5``; it takes minutes on a CPU.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from torch import nn

from structlearn.torch import GridLoss

CLASSES = 3
LOSSES = ("softmax", "log", "marginal")


def images(n, size, noise, rng):
    """Noisy images (n, 1, size, size) and their labels."""
    smooth = [
        [gaussian_filter(rng.normal(size=(size, size)), 3) for _ in range(CLASSES)]
        for _ in range(n)
    ]
    labels = np.array([np.argmax(fields, axis=0) for fields in smooth])
    pixels = labels - 1.0 + noise * rng.normal(size=labels.shape)
    return torch.tensor(pixels[:, None], dtype=torch.float32), torch.tensor(labels)


def make_network():
    """Scores of three classes at every pixel, from 5 x 5 pixels around it."""
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, CLASSES, 3, padding=1)
    )


def train(name, seed, n=24, size=12, noise=1.5, share=0.1, steps=60):
    """Train with one loss, and return the accuracy on new images."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    X, Y = images(n, size, noise, rng)
    partly = torch.where(torch.rand(Y.shape) < share, Y, -1)
    network = make_network()
    layer = None if name == "softmax" else GridLoss(CLASSES, loss=name, inference="trw")
    parameters = [*network.parameters(), *(layer.parameters() if layer is not None else ())]
    optimiser = torch.optim.Adam(parameters, lr=2e-2)
    for _ in range(steps):
        optimiser.zero_grad()
        scores = network(X)
        if layer is None:
            loss = nn.functional.cross_entropy(scores, partly, ignore_index=-1)
        else:
            loss = layer(scores.movedim(1, -1), partly)
        loss.backward()
        optimiser.step()
    return accuracy(network, layer, *images(n, size, noise, rng))


@torch.no_grad()
def accuracy(network, layer, X, Y):
    """Share of right pixels, each by its most likely label."""
    scores = network(X)
    if layer is None:
        return float((scores.argmax(1) == Y).float().mean())
    return float((layer.marginals(scores.movedim(1, -1)).argmax(-1) == Y).float().mean())


def main(argv=None):
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--losses", nargs="+", default=LOSSES, choices=LOSSES)
    args = parser.parse_args(argv)
    seeds = range(args.first, args.first + args.seeds)
    print("accuracy of pixels, one label in ten known")
    for name in args.losses:
        found = [train(name, seed, steps=args.steps) for seed in seeds]
        error = np.std(found, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else float("nan")
        print(f"{name:>9}  {np.mean(found):.4f} +- {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
