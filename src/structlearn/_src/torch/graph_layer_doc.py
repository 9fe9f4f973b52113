"""Sections of the docstrings of `GraphLoss`, which `completed` adds."""

from __future__ import annotations

GRAPH_LOSS = {
    "forward": """\
Parameters
----------
scores
    (N, K) of all labels at all nodes.
labels
    (N,) From 0 to K - 1, or -1 where the label is not known.
edges
    (E, 2) Pairs of nodes.
graphs
    (N,) Which graph each node belongs to, in rising order; one graph by default.
transitions
    (1, K, K) or (E, K, K) Tables to add to that of the layer.
memory
    Result of `begin`: the state of message passing, which is updated in place.

Returns
-------
Tensor
    The loss, a scalar, or an array of shape (graphs,) with ``reduction="none"``.

Examples
--------
>>> import torch
>>> layer = GraphLoss(2, transitions=False)
>>> scores = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
>>> edges = torch.tensor([[0, 1]])
>>> round(layer(scores, torch.tensor([0, 1]), edges).item(), 3)
0.362""",
    "begin": """\
Parameters
----------
labels
    (N,) Labels, -1 where they are unknown.
edges
    (E, 2) Pairs of nodes.
graphs
    (N,) Which graph each node belongs to, in rising order; one graph by default.

Returns
-------
tuple
    State of message passing, which calls of the layer update in place.

Examples
--------
>>> import torch
>>> layer = GraphLoss(2, transitions=False)
>>> scores = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
>>> edges = torch.tensor([[0, 1]])
>>> memory = layer.begin(torch.tensor([0, -1]), edges)
>>> layer(scores, torch.tensor([0, -1]), edges, memory=memory).shape
torch.Size([])""",
    "decode": """\
Parameters
----------
scores
    (N, K) Scores of all labels at all nodes.
edges
    (E, 2) Pairs of nodes.
graphs
    (N,) Which graph each node belongs to, in rising order; one graph by default.
transitions
    (1, K, K) or (E, K, K) Tables to add to that of the layer.

Returns
-------
Tensor of shape (N,)
    One label for every node.

Examples
--------
>>> import torch
>>> layer = GraphLoss(2, transitions=False)
>>> scores = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
>>> edges = torch.tensor([[0, 1]])
>>> layer.decode(scores, edges)
tensor([0, 1])""",
    "marginals": """\
Parameters
----------
scores
    (N, K) Scores of all labels at all nodes.
edges
    (E, 2) Pairs of nodes.
graphs
    (N,) Which graph each node belongs to, in rising order; one graph by default.
transitions
    (1, K, K) or (E, K, K) Tables to add to that of the layer.

Returns
-------
Tensor of shape (N, K)
    Probabilities; not differentiable.

Examples
--------
>>> import torch
>>> layer = GraphLoss(2, transitions=False)
>>> scores = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
>>> edges = torch.tensor([[0, 1]])
>>> layer.marginals(scores, edges).round(decimals=3)
tensor([[0.7310, 0.2690],
        [0.0470, 0.9530]])""",
    "entropy": """\
Parameters
----------
scores
    (N, K) Scores of all labels at all nodes.
edges
    (E, 2) Pairs of nodes.
graphs
    (N,) Which graph each node belongs to, in rising order; one graph by default.
transitions
    (1, K, K) or (E, K, K) Tables to add to that of the layer.

Returns
-------
Tensor of shape (graphs,)
    Entropies in nats. Exact and differentiable once where inference is exact: on forests, and on
    graphs with cycles unless messages are passed. Those give the Bethe entropy of their beliefs,
    or with ``inference="trw"`` the tree-reweighted one: estimates, whose gradient is refused.

Examples
--------
>>> import torch
>>> layer = GraphLoss(2, transitions=False)
>>> scores = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
>>> edges = torch.tensor([[0, 1]])
>>> layer.entropy(0.0 * scores, edges).round(decimals=3)  # log(4), of 4 labellings
tensor([1.3860])""",
    "k_best": """\
Parameters
----------
scores
    (N, K) Scores of all labels at all nodes.
edges
    (E, 2) Pairs of nodes.
k
    Number of labellings of each graph.
graphs
    (N,) Which graph each node belongs to, in rising order; one graph by default.
transitions
    (1, K, K) or (E, K, K) Tables to add to that of the layer.

Returns
-------
tuple of Tensors of shapes (graphs, k) and (k, N)
    Scores, minus infinity where a graph has fewer possible labellings; and labels, best first, -1
    where there are none.

Raises
------
QueryError
    If a graph has cycles and ``inference`` is "bp" or "trw": messages do not rank labellings.
TooWideError
    If a graph is too wide for elimination, or k too large for memory.

Examples
--------
>>> import torch
>>> layer = GraphLoss(2, transitions=False)
>>> scores = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
>>> edges = torch.tensor([[0, 1]])
>>> layer.k_best(scores, edges, 2)
(tensor([[4., 3.]]), tensor([[0, 1],
        [1, 1]]))""",
    "sample": """\
Parameters
----------
scores
    (N, K) Scores of all labels at all nodes.
edges
    (E, 2) Pairs of nodes.
n
    Number of draws.
graphs
    (N,) Which graph each node belongs to, in rising order; one graph by default.
transitions
    (1, K, K) or (E, K, K) Tables to add to that of the layer.
generator
    Generator of the seed; the default one of PyTorch if None.

Returns
-------
Tensor of shape (n, N)
    Labels.

Raises
------
QueryError
    If a graph has cycles and ``inference`` is "bp" or "trw": messages give no exact draws.
TooWideError
    If a graph is too wide for elimination.

Examples
--------
>>> import torch
>>> layer = GraphLoss(2, transitions=False)
>>> scores = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
>>> edges = torch.tensor([[0, 1]])
>>> layer.sample(scores, edges, n=5, generator=torch.Generator().manual_seed(0)).shape
torch.Size([5, 2])""",
}
