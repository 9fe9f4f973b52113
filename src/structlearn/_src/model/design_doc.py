"""Sections of the docstrings of `PairwiseDesign`, which `completed` adds to its methods."""

from __future__ import annotations

PAIRWISE_DESIGN = {
    "fitted_to": """\
Parameters
----------
data
    Nodes, edges and features of examples.

Returns
-------
PairwiseDesign
    The design itself if positions share their weights, otherwise one that knows their
    number.

Examples
--------
>>> from structlearn.extend import GraphReader, PairwiseDesign
>>> _, data = GraphReader.learn([([[1.0], [2.0], [3.0]], [[0, 1], [1, 2]])], False)
>>> PairwiseDesign(tied=False).fitted_to(data).size
3""",
    "links": """\
Parameters
----------
data
    Nodes, edges and features of examples.

Returns
-------
tuple of EdgeSet
    Records with `pairs` of shape (edges, 2) and `features`.

Examples
--------
>>> from structlearn.extend import GraphReader, PairwiseDesign
>>> _, data = GraphReader.learn([([[1.0], [2.0], [3.0]], [[0, 1], [1, 2]])], False)
>>> len(PairwiseDesign().links(data)), len(PairwiseDesign(edges="none").links(data))
(1, 0)""",
    "edge_states": """\
Parameters
----------
states
    Number of labels.

Returns
-------
int
    The number of labels, or of hidden states if edges link these.

Examples
--------
>>> from structlearn.extend import PairwiseDesign
>>> PairwiseDesign(hidden="layer", hidden_states=3).edge_states(2)
3""",
    "sizes": """\
Parameters
----------
states
    Number of labels.
n_groups
    Number of groups.

Returns
-------
tuple of int
    One number for each group.

Examples
--------
>>> from structlearn.extend import PairwiseDesign
>>> PairwiseDesign().sizes(states=3, n_groups=2)
(3, 9)""",
    "structure": """\
Parameters
----------
data
    Nodes, edges and features of examples.
states
    Number of labels.

Returns
-------
tuple (structure, outputs, hidden)
    The structure; the variables of the nodes, as an array of shape (nodes,) or a slice; and
    those of the hidden states beside them, or None.

Examples
--------
>>> from structlearn.extend import GraphReader, PairwiseDesign
>>> _, data = GraphReader.learn([([[1.0], [2.0], [3.0]], [[0, 1], [1, 2]])], False)
>>> structure, outputs, hidden = PairwiseDesign(hidden="node").structure(data, states=2)
>>> outputs, hidden
(array([0, 1, 2]), array([3, 4, 5]))""",
    "inputs": """\
Parameters
----------
data
    Nodes, edges and features of examples.

Returns
-------
tuple of tuples
    Features, arrays or sparse rows, by group and term; None where a term has none.

Examples
--------
>>> from structlearn.extend import GraphReader, PairwiseDesign
>>> _, data = GraphReader.learn([([[1.0], [2.0], [3.0]], [[0, 1], [1, 2]])], False)
>>> nodes, edges = PairwiseDesign().inputs(data)
>>> nodes[0].shape, edges[0] is None
((3, 1), True)""",
    "model": """\
Parameters
----------
data
    Nodes, edges and features of examples.
labels
    (nodes,) Labels, -1 where they are unknown.
states
    Number of labels.

Returns
-------
LinearModel
    The linear map from weights to tables.

Examples
--------
>>> from structlearn.extend import GraphReader, PairwiseDesign
>>> _, data = GraphReader.learn([([[1.0], [2.0], [3.0]], [[0, 1], [1, 2]])], False)
>>> PairwiseDesign().model(data, np.array([0, 1, 1]), states=2).n_weights  # 2 + 4
6""",
    "transitions": """\
Parameters
----------
model
    The model, from `model`.
weights
    (weights,) Its weights.
states
    Number of labels.

Returns
-------
array of shape (states, states) or None
    One table; an array of shape (tables, states, states) if there are several kinds of
    edges, or one table for each edge; None if edges have no such weights.

Examples
--------
>>> from structlearn.extend import GraphReader, PairwiseDesign
>>> _, data = GraphReader.learn([([[1.0], [2.0], [3.0]], [[0, 1], [1, 2]])], False)
>>> design = PairwiseDesign()
>>> model = design.model(data, np.array([0, 1, 1]), states=2)
>>> design.transitions(model, np.arange(6.0), states=2)
array([[2., 3.],
       [4., 5.]])""",
}
