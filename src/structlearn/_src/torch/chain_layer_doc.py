"""Sections of the docstrings of `ChainLoss`, which `completed` adds to its methods."""

from __future__ import annotations

CHAIN_LOSS = {
    "reset_parameters": """\
Examples
--------
>>> layer = ChainLoss(3)
>>> layer.reset_parameters()
>>> bool((layer.transitions.abs() <= 0.1).all())
True""",
    "extra_repr": """\
Returns
-------
str
    Its main parameters.

Examples
--------
>>> ChainLoss(3).extra_repr()
"n_labels=3, reduction='mean'"
""",
    "forward": """\
Parameters
----------
scores
    (B, T, K) of all labels at all positions; minus infinity rules a label out.
labels
    (B, T) From 0 to K - 1, or -1 where the label is not known.
mask
    (B, T) Which positions count: those in front. All by default.
transitions
    (K, K) or (B, T - 1, K, K) Tables to add to those of the layer.

Returns
-------
Tensor
    The loss, a scalar, or an array of shape (B,) with ``reduction="none"``.

Examples
--------
>>> import torch
>>> layer = ChainLoss(2, transitions=False)
>>> scores = torch.tensor([[[1.0, 0.0], [0.0, 3.0]]])
>>> round(layer(scores, torch.tensor([[0, 1]])).item(), 3)
0.362""",
    "log_partition": """\
Parameters
----------
scores
    (B, T, K) Scores of all labels at all positions, as in the call of the layer.
mask
    (B, T) Which positions count: those in front. All by default.
transitions
    (K, K) or (B, T - 1, K, K) Tables to add to those of the layer.

Returns
-------
Tensor of shape (B,)
    The log of the sum of the exponentials of the scores of all paths; differentiable.

Examples
--------
>>> import torch
>>> layer = ChainLoss(2, transitions=False)
>>> scores = torch.tensor([[[1.0, 0.0], [0.0, 3.0]]])
>>> layer.log_partition(scores).round(decimals=3)
tensor([4.3620])""",
    "marginals": """\
Parameters
----------
scores
    (B, T, K) Scores of all labels at all positions, as in the call of the layer.
mask
    (B, T) Which positions count: those in front. All by default.
transitions
    (K, K) or (B, T - 1, K, K) Tables to add to those of the layer.

Returns
-------
Tensor of shape (B, T, K)
    Probabilities, 0 outside the mask.

Examples
--------
>>> import torch
>>> layer = ChainLoss(2, transitions=False)
>>> scores = torch.tensor([[[1.0, 0.0], [0.0, 3.0]]])
>>> layer.marginals(scores).round(decimals=3)
tensor([[[0.7310, 0.2690],
         [0.0470, 0.9530]]])""",
    "entropy": """\
Parameters
----------
scores
    (B, T, K) Scores of all labels at all positions, as in the call of the layer.
mask
    (B, T) Which positions count: those in front. All by default.
transitions
    (K, K) or (B, T - 1, K, K) Tables to add to those of the layer.

Returns
-------
Tensor of shape (B,)
    Entropies in nats.

Examples
--------
>>> import torch
>>> layer = ChainLoss(2, transitions=False)
>>> scores = torch.tensor([[[1.0, 0.0], [0.0, 3.0]]])
>>> layer.entropy(0.0 * scores).round(decimals=3)  # log(4), of 4 paths
tensor([1.3860])""",
    "decode": """\
Parameters
----------
scores
    (B, T, K) Scores of all labels at all positions, as in the call of the layer.
mask
    (B, T) Which positions count: those in front. All by default.
transitions
    (K, K) or (B, T - 1, K, K) Tables to add to those of the layer.

Returns
-------
list of lists of int
    Labels, as many as the mask has positions.

Examples
--------
>>> import torch
>>> layer = ChainLoss(2, transitions=False)
>>> scores = torch.tensor([[[1.0, 0.0], [0.0, 3.0]]])
>>> layer.decode(scores)
[[0, 1]]""",
    "k_best": """\
Parameters
----------
scores
    (B, T, K) Scores of all labels at all positions, as in the call of the layer.
k
    Number of paths for each sequence.
mask
    (B, T) Which positions count: those in front. All by default.
transitions
    (K, K) or (B, T - 1, K, K) Tables to add to those of the layer.

Returns
-------
tuple of a Tensor of shape (B, k) and a list
    Scores, minus infinity where there are fewer paths; and for every sequence a list of its
    paths, best first.

Examples
--------
>>> import torch
>>> layer = ChainLoss(2, transitions=False)
>>> scores = torch.tensor([[[1.0, 0.0], [0.0, 3.0]]])
>>> layer.k_best(scores, 2)
(tensor([[4., 3.]]), [[[0, 1], [1, 1]]])""",
    "sample": """\
Parameters
----------
scores
    (B, T, K) Scores of all labels at all positions, as in the call of the layer.
n
    Number of draws.
mask
    (B, T) Which positions count: those in front. All by default.
transitions
    (K, K) or (B, T - 1, K, K) Tables to add to those of the layer.
generator
    Generator of the seed; the default one of PyTorch if None.

Returns
-------
Tensor of shape (n, B, T)
    Labels, -1 outside the mask.

Examples
--------
>>> import torch
>>> layer = ChainLoss(2, transitions=False)
>>> scores = torch.tensor([[[1.0, 0.0], [0.0, 3.0]]])
>>> layer.sample(scores, n=5, generator=torch.Generator().manual_seed(0)).shape
torch.Size([5, 1, 2])""",
}
