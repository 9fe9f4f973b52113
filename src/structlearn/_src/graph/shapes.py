"""Builders for the usual shapes: chain, tree, grid, hidden chain, hidden grid, any edge list.

Every builder takes log potentials. `nodes` has one row per variable, `edges` tables are either
one table for all edges or one per edge; axis 0 of an edge table belongs to the first variable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import GraphError
from structlearn._src.graph.build import FactorGraph


def pairwise(nodes: Any, edges: Any, tables: Any) -> FactorGraph:
    """Graph with any list of edges.

    Parameters
    ----------
    nodes : array-like of shape (n, states)
        (n, states) Log potentials of every variable.
    edges : array-like of shape (m, 2)
        (m, 2) Pairs of variables.
    tables : array-like
        (m, states, states) One for each edge, or (states, states) for all.

    Returns
    -------
    FactorGraph
        The graph, with variables named by their indices.

    Examples
    --------
    >>> import numpy as np
    >>> pairwise(np.zeros((3, 2)), [(0, 1), (1, 2), (2, 0)], np.eye(2))
    FactorGraph(3 variables (3 output), 6 factors, largest arity 2)
    """
    nodes = _node_rows(nodes)
    graph = FactorGraph()
    graph.add_variables(len(nodes), nodes.shape[1])
    graph.add_factors(np.arange(len(nodes))[:, None], nodes)
    graph.add_factors(checks.indices("edges", edges, width=2), tables)
    return graph


def chain(nodes: Any, tables: Any) -> FactorGraph:
    """Chain of variables.

    Parameters
    ----------
    nodes : array-like of shape (n, states)
        Log potentials of every variable.
    tables : array-like
        Log potentials of neighbours: an array (n - 1, states, states), or (states, states) for all.

    Returns
    -------
    FactorGraph
        The graph, with variables named by their indices.

    Examples
    --------
    >>> import numpy as np
    >>> from structlearn import chain, infer
    >>> graph = chain(np.log([[0.9, 0.1], [0.4, 0.6], [0.4, 0.6]]), 2.0 * np.eye(2))
    >>> dict(infer(graph, "map").assignment)
    {0: 0, 1: 0, 2: 0}
    """
    nodes = _node_rows(nodes)
    return pairwise(nodes, chain_edges(len(nodes)), tables)


def tree(nodes: Any, parents: Any, tables: Any) -> FactorGraph:
    """Tree, or forest of several trees.

    Parameters
    ----------
    nodes : array-like of shape (n, states)
        Log potentials of every variable.
    parents : array-like of shape (n,)
        The parent of every node, -1 for roots.
    tables : array-like
        Log potentials (edges, states, states) in the order of the nodes that have a parent, or
        (states, states) for all; axis 0 belongs to the parent.

    Returns
    -------
    FactorGraph
        The graph, with variables named by their indices.

    Examples
    --------
    >>> import numpy as np
    >>> from structlearn import infer, tree
    >>> graph = tree([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]], [-1, 0, 0], np.eye(2))
    >>> dict(infer(graph, "map").assignment)
    {0: 1, 1: 1, 2: 1}
    """
    nodes = _node_rows(nodes)
    above = checks.indices("parents", parents)
    if above.shape != (len(nodes),):
        raise GraphError(f"{above.size} parents were given for {len(nodes)} nodes")
    child = np.flatnonzero(above >= 0)
    graph = pairwise(nodes, np.stack([above[child], child], axis=1), tables)
    if not graph.wiring.forests()[0]:
        raise GraphError("the parents form a cycle; a tree must lead every node to a root")
    return graph


def grid(nodes: Any, tables: Any, neighbours: int = 4) -> FactorGraph:
    """Image grid.

    Parameters
    ----------
    nodes : array-like of shape (rows, columns, states)
        Log potentials; variables are numbered row by row.
    tables : array-like
        Log potentials (edges, states, states) in the order of `grid_edges`, or (states, states) for
        all.
    neighbours
        4 or 8.

    Returns
    -------
    FactorGraph
        The graph, with variables named by their indices.

    Examples
    --------
    >>> import numpy as np
    >>> from structlearn import grid, infer
    >>> image = np.array([[0.9, 0.8, 0.2], [0.7, 0.4, 0.1]])
    >>> graph = grid(np.log(np.stack([1.0 - image, image], axis=-1)), 0.5 * np.eye(2))
    >>> infer(graph, "map").assignment.array.reshape(2, 3)
    array([[1, 1, 0],
           [1, 1, 0]])
    """
    nodes = checks.potentials(nodes, "nodes")
    if nodes.ndim != 3:
        raise GraphError(f"nodes has shape {nodes.shape}; a grid needs (rows, columns, states)")
    rows, columns, states = nodes.shape
    return pairwise(nodes.reshape(-1, states), grid_edges(rows, columns, neighbours), tables)


def hidden_chain(outputs: Any, hidden: Any, transitions: Any, emissions: Any) -> FactorGraph:
    """Chain of hidden variables, each with one output.

    Outputs have the indices 0 to n - 1, and their hidden variables n to 2n - 1.

    Parameters
    ----------
    outputs : array-like of shape (n, output states)
        Log potentials of the outputs.
    hidden : array-like of shape (n, hidden states)
        Log potentials of the hidden variables.
    transitions : array-like
        Log potentials (n - 1, hidden states, hidden states) of neighbouring hidden variables, or
        one table for all.
    emissions : array-like
        Log potentials (n, output states, hidden states) of an output and its hidden variable, or
        one table for all.

    Returns
    -------
    FactorGraph
        The graph, with variables named by their indices.

    Examples
    --------
    >>> import numpy as np
    >>> from structlearn import hidden_chain
    >>> hidden_chain(np.zeros((4, 2)), np.zeros((4, 3)), np.eye(3), np.zeros((2, 3)))
    FactorGraph(8 variables (4 output, 4 hidden), 15 factors, largest arity 2)
    """
    return _layered(outputs, hidden, chain_edges(len(_node_rows(hidden))), transitions, emissions)


def hidden_grid(
    outputs: Any, hidden: Any, tables: Any, emissions: Any, neighbours: int = 4
) -> FactorGraph:
    """Grid of hidden variables, each with one output.

    Outputs are numbered first, row by row, and then their hidden variables.

    Parameters
    ----------
    outputs : array-like of shape (rows, columns, output states)
        Log potentials of the outputs.
    hidden : array-like of shape (rows, columns, hidden states)
        Log potentials of the hidden variables.
    tables : array-like
        Log potentials of neighbouring hidden variables, as in `grid`.
    emissions : array-like
        Log potentials (rows * columns, output states, hidden states) of an output and its hidden
        variable, or one table for all.
    neighbours
        4 or 8.

    Returns
    -------
    FactorGraph
        The graph, with variables named by their indices.

    Examples
    --------
    >>> import numpy as np
    >>> from structlearn import hidden_grid
    >>> hidden_grid(np.zeros((2, 2, 2)), np.zeros((2, 2, 3)), np.eye(3), np.zeros((2, 3)))
    FactorGraph(8 variables (4 output, 4 hidden), 16 factors, largest arity 2)
    """
    outputs = checks.potentials(outputs, "outputs")
    hidden = checks.potentials(hidden, "hidden")
    if outputs.ndim != 3 or hidden.ndim != 3 or outputs.shape[:2] != hidden.shape[:2]:
        raise GraphError(
            f"outputs and hidden have shapes {outputs.shape} and {hidden.shape}; "
            f"need (rows, columns, states) with the same rows and columns"
        )
    rows, columns, states = hidden.shape
    edges = grid_edges(rows, columns, neighbours)
    flat = outputs.reshape(-1, outputs.shape[2])
    return _layered(flat, hidden.reshape(-1, states), edges, tables, emissions)


def chain_edges(n: int) -> Ints:
    """Edges 0-1, 1-2, ... of a chain of `n` variables."""
    return np.stack([np.arange(max(n - 1, 0)), np.arange(1, max(n, 1))], axis=1)


def grid_edges(rows: int, columns: int, neighbours: int = 4) -> Ints:
    """Edges of a grid whose nodes are numbered row by row.

    Parameters
    ----------
    rows, columns
        Size of the grid.
    neighbours
        4, or 8 for diagonal edges too.

    Returns
    -------
    array of shape (edges, 2)
        Horizontal edges come first, then vertical ones, then those of the two diagonals.

    Examples
    --------
    >>> from structlearn import grid_edges
    >>> grid_edges(2, 2).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    if neighbours not in (4, 8):
        raise GraphError(f"neighbours={neighbours!r}: a grid has 4 or 8")
    at = np.arange(rows * columns).reshape(rows, columns)
    pairs = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
    if neighbours == 8:
        pairs += [(at[:-1, :-1], at[1:, 1:]), (at[:-1, 1:], at[1:, :-1])]
    return np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])


def _layered(outputs: Any, hidden: Any, edges: Ints, tables: Any, emissions: Any) -> FactorGraph:
    outputs, hidden = _node_rows(outputs), _node_rows(hidden)
    n = len(outputs)
    if len(hidden) != n:
        raise GraphError(f"{n} outputs but {len(hidden)} hidden variables; need one for each")
    graph = FactorGraph()
    graph.add_variables(n, outputs.shape[1])
    graph.add_variables(n, hidden.shape[1], role="hidden")
    graph.add_factors(np.arange(n)[:, None], outputs)
    graph.add_factors(np.arange(n, 2 * n)[:, None], hidden)
    graph.add_factors(edges + n, tables)
    graph.add_factors(np.stack([np.arange(n), np.arange(n, 2 * n)], axis=1), emissions)
    return graph


def _node_rows(nodes: Any) -> Floats:
    rows = checks.potentials(nodes, "nodes")
    if rows.ndim != 2 or 0 in rows.shape:
        raise GraphError(f"nodes has shape {rows.shape}; need (variables, states), both at least 1")
    return rows
