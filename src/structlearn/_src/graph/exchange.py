"""Graphs to and from networkx, which is an optional extra."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.errors import GraphError
from structlearn._src.graph.build import FactorGraph
from structlearn._src.graph.wiring import ROLES


def to_networkx(graph: FactorGraph) -> Any:
    """Return the bipartite factor graph as a `networkx.Graph`.

    Variables are nodes with their names and the attributes ``bipartite=0``, ``states`` and
    ``role``. Factor number f is the node ``("factor", f)`` (with underscores after the word if a
    variable has that name), with ``bipartite=1``, ``scope`` (names, in order) and
    ``table`` (log potentials, one axis per variable of the scope). Edges join factors to the
    variables in their scopes.

    Parameters
    ----------
    graph
        The factor graph.

    Returns
    -------
    networkx.Graph
        A new graph with one node for each variable and for each factor.

    Examples
    --------
    >>> import numpy as np
    >>> graph = FactorGraph()
    >>> _ = graph.add_variables(["rain", "wet"])
    >>> _ = graph.add_factor(["rain", "wet"], np.eye(2))
    >>> sorted(map(str, to_networkx(graph).neighbors(("factor", 0))))
    ['rain', 'wet']
    """
    networkx = _networkx()
    if not isinstance(graph, FactorGraph):
        raise GraphError(f"a {type(graph).__name__} was given; need a FactorGraph")
    names = graph.names
    out = networkx.Graph()
    for name, states, role in zip(names, graph.cards.tolist(), graph.roles, strict=True):
        if name is None:
            raise GraphError("a variable is named None, which networkx does not allow as a node")
        out.add_node(name, bipartite=0, states=states, role=ROLES[role])
    word = "factor"
    while any((word, f) in out for f in range(graph.n_factors)):
        word += "_"
    for f in range(graph.n_factors):
        scope = tuple(names[v] for v in graph.scope(f))
        out.add_node((word, f), bipartite=1, scope=scope, table=graph.table(f).copy())
        out.add_edges_from(((word, f), name) for name in scope)
    return out


def from_networkx(g: Any, *, states: int = 2, role: str = "output") -> FactorGraph:
    """Convert a networkx graph to a factor graph; nodes become variables, with their names.

    A graph in which some node has a ``scope`` is read as a bipartite factor graph in the form
    that `to_networkx` writes. Any other graph is read as pairwise:

    - node attributes, all optional: ``states``, ``role``, and ``potential``, the log potentials
      of the states;
    - edge attribute ``table``: log potentials, one axis per end. In an undirected graph axis 0
      belongs to the end that comes first in the graph's own order of nodes (the order in which
      they were added), in a directed graph to the source.

    Variables, and factors of each kind, are in the order of networkx; the factors of nodes come
    before those of edges.

    Parameters
    ----------
    g : networkx.Graph
        A `networkx.Graph`, `DiGraph`, `MultiGraph` or `MultiDiGraph`.
    states, role
        For nodes without these attributes; a node with a ``potential`` has as many states as that.

    Returns
    -------
    FactorGraph
        The factor graph.

    Examples
    --------
    >>> import networkx, numpy as np
    >>> g = networkx.path_graph(3)
    >>> networkx.set_edge_attributes(g, np.eye(2), "table")
    >>> from_networkx(g)
    FactorGraph(3 variables (3 output), 2 factors, largest arity 2)
    """
    networkx = _networkx()
    if not isinstance(g, networkx.Graph):
        raise GraphError(f"a networkx graph is needed, not a {type(g).__name__}")
    factors = {node: data for node, data in g.nodes(data=True) if "scope" in data}
    variables = {node: data for node, data in g.nodes(data=True) if "scope" not in data}
    graph = _with_variables(variables, states, role)
    for node, data in variables.items():
        if "potential" in data:
            graph.add_factor([node], data["potential"])
    if factors:
        _add_factors(graph, g, factors, networkx)
    else:
        _add_edges(graph, g)
    return graph


def _with_variables(nodes: dict[Hashable, Any], states: int, role: str) -> FactorGraph:
    cards = np.empty(len(nodes), np.int64)
    roles = {}
    for i, (node, data) in enumerate(nodes.items()):
        count = np.size(data["potential"]) if "potential" in data else states
        cards[i] = checks.integer(f"states of node {node!r}", data.get("states", count), low=1)
        roles[node] = checks.one_of(f"role of node {node!r}", data.get("role", role), ROLES)
    # Nodes 0, 1, 2, ... are no names of their own but what an unnamed variable is called.
    plain = all(type(node) is int and node == i for i, node in enumerate(nodes))
    graph = FactorGraph()
    graph.add_variables(len(nodes) if plain else list(nodes), cards)
    return graph.set_roles(roles)


def _add_factors(graph: FactorGraph, g: Any, factors: dict[Hashable, Any], networkx: Any) -> None:
    for u, v in g.edges():
        if u not in factors and v not in factors:
            raise GraphError(
                f"edge {u!r} - {v!r} joins two variables, but other nodes are factors; give it a "
                f"factor node of its own"
            )
    for node, data in factors.items():
        if "table" not in data:
            raise GraphError(f"factor node {node!r} has a scope but no table; it needs both")
        if set(networkx.all_neighbors(g, node)) != set(data["scope"]):
            raise GraphError(
                f"factor node {node!r} has the scope {data['scope']!r}, but its neighbours are "
                f"{list(networkx.all_neighbors(g, node))!r}; they must agree"
            )
        graph.add_factor(list(data["scope"]), data["table"])


def _add_edges(graph: FactorGraph, g: Any) -> None:
    for u, v, data in g.edges(data=True):
        if "table" not in data:
            raise GraphError(
                f"edge {u!r} - {v!r} has no table; set the attribute 'table' to an array of log "
                f"potentials, one axis per end"
            )
        backwards = not g.is_directed() and graph.variable_index(u) > graph.variable_index(v)
        graph.add_factor([v, u] if backwards else [u, v], data["table"])


def _networkx() -> Any:
    try:
        import networkx
    except ImportError:
        raise ImportError(
            "networkx is needed for this and is not installed; pip install structlearn[networkx]"
        ) from None
    return networkx
