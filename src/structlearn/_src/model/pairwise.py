"""Models over nodes and edges: which graphs, which features and which weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.graph.batch import Graphs, Sequences, assemble
from structlearn._src.graph.wiring import HIDDEN as HIDDEN_ROLE
from structlearn._src.graph.wiring import OUTPUT
from structlearn._src.model.features import Features, Sparse, by_position
from structlearn._src.model.graph_data import Layers, Links, Shape
from structlearn._src.model.model import Inputs, Model
from structlearn._src.model.term import Linear, Pairs, Table, Term, potts, symmetric
from structlearn._src.text.labels import Forbidden

EDGES = ("table", "symmetric", "potts", "features", "none")
HIDDEN = ("node", "layer")
SPACES = ("dense", "sparse")


class Design(Protocol):
    """Turns shapes into structures, features and a model."""

    def structure(self, shape: Shape, states: int) -> tuple[Sequences | Graphs, Layers]:
        """Return variables and factors, and where labels belong among the variables."""
        ...

    def inputs(self, shape: Shape) -> Inputs:
        """Features of every term of every group of factors."""
        ...

    def model(self, shape: Shape, labels: Ints, states: int) -> Model:
        """Choose the terms of every group of factors."""
        ...

    def sizes(self, states: int, n_groups: int) -> tuple[int, ...]:
        """Entries of the tables of every group of factors."""
        ...

    def transitions(self, model: Model, weights: Floats, states: int) -> Floats | None:
        """Weights of edges by what they join, None if there are none."""
        ...


@dataclass(frozen=True, eq=False)
class Choices:
    """What a user chose about a model over nodes and edges.

    Groups of factors are the nodes, every kind of edges, and with hidden states beside the nodes,
    these and the pairs of node and hidden state.

    Parameters
    ----------
    space
        "dense": every feature has a weight for every label; "sparse": only the pairs seen in
        training have, which needs sparse features.
    tied
        Whether all positions share their weights.
    edges
        "table" has a weight for every pair of labels, "symmetric" for every unordered pair,
        "potts" one for being equal; each beside the weights of edge features, if there are any.
        "features" has these alone, and "none" leaves out the edges.
    hidden
        None, or hidden states beside the nodes: with "node" edges link the nodes, with "layer"
        they link the hidden states.
    hidden_states
        How many.
    forbidden
        Labels and transitions that are forbidden in sequences.
    chain
        Whether nodes form sequences, which have faster code.
    size
        Unless tied, the number of nodes of every example.
    joined
        Unless tied, the nodes that the edges of every example join, for every kind of edges.
    """

    space: str = "dense"
    tied: bool = True
    edges: str = "table"
    hidden: str | None = None
    hidden_states: int = 2
    forbidden: Forbidden | None = None
    chain: bool = False
    size: int = 0
    joined: tuple[Ints, ...] = ()

    def seeing(self, shape: Shape) -> Choices:
        """Return the choices with what they must remember of the training examples."""
        if self.tied:
            return self
        return replace(self, size=_size(shape), joined=_joined(shape))

    def links(self, shape: Shape) -> tuple[Links, ...]:
        """Kinds of edges that are used."""
        return () if self.edges == "none" else shape.links

    def linked(self, states: int) -> int:
        """Number of states of what edges link."""
        return self.hidden_states if self.hidden == "layer" else states

    def sizes(self, states: int, n_groups: int) -> tuple[int, ...]:
        """Entries of the tables of every group of factors."""
        h, linked = self.hidden_states, self.linked(states)
        beside = () if self.hidden is None else (h, states * h)
        return states, *[linked * linked] * (n_groups - 1 - len(beside)), *beside

    # ---- structure -----------------------------------------------------------------------

    def structure(self, shape: Shape, states: int) -> tuple[Sequences | Graphs, Layers]:
        """Return variables and factors, and where labels belong among the variables."""
        if not self.tied:
            self._check_alike(shape)
        if self.chain and self.hidden is None and shape.hidden is None:
            return Sequences(shape.offsets, states, self.forbidden), Layers()
        outputs, beside = self._variables(shape)
        graphs = self._graphs(shape, outputs, beside, states)
        return graphs, Layers(outputs, beside)

    def _check_alike(self, shape: Shape) -> None:
        """Refuse examples that differ from those of training, whose weights mean nothing there."""
        if _size(shape) != self.size:
            raise ArgumentError(
                f"with tied=False all examples must be alike: training examples had "
                f"{self.size} nodes, and one with {shape.sizes[0]} was given"
            )
        if not all(map(np.array_equal, _joined(shape), self.joined)):
            raise ArgumentError(
                "with tied=False all examples must be alike, but their edges are not those of the "
                "training examples; give the same edges in the same order"
            )

    def _variables(self, shape: Shape) -> tuple[Ints, Ints | None]:
        """Nodes of an example come first, the hidden states beside them after all of them."""
        sizes = shape.sizes
        if self.hidden is None:
            return np.arange(shape.n_nodes), None
        outputs = np.repeat(2 * shape.offsets[:-1], sizes) + shape.positions
        return outputs, outputs + np.repeat(sizes, sizes)

    def _graphs(self, shape: Shape, outputs: Ints, beside: Ints | None, states: int) -> Graphs:
        n = shape.n_nodes * (1 if beside is None else 2)
        cards, roles = np.full(n, states), np.full(n, OUTPUT)
        if shape.hidden is not None:
            roles[outputs[shape.hidden]] = HIDDEN_ROLE
        linked = outputs if beside is None or self.hidden == "node" else beside
        pairs = [links.pairs for links in self.links(shape)]
        scopes = [outputs[:, None], *(linked[rows] for rows in pairs)]
        if beside is not None:
            cards[beside], roles[beside] = self.hidden_states, HIDDEN_ROLE
            scopes += [beside[:, None], np.stack([outputs, beside], axis=1)]
        borders = shape.offsets * (n // max(shape.n_nodes, 1))
        if self.forbidden is None:
            return assemble(cards, roles, borders, tuple(scopes))
        if self.hidden == "layer":  # what they speak of has no factor yet
            scopes += [outputs[rows] for rows in pairs]
        graphs = assemble(cards, roles, borders, tuple(scopes))
        return _barred(
            graphs, Sequences(shape.offsets, states, self.forbidden), self.hidden == "layer"
        )

    # ---- features ------------------------------------------------------------------------

    def inputs(self, shape: Shape) -> Inputs:
        """Features of every term of every group."""
        nodes, alone = shape.features, None
        if not self.tied:
            nodes, alone = (
                by_position(x, shape.positions, self.size) for x in (shape.features, None)
            )
        edges = (self._edge_inputs(shape, kind) for kind in range(len(self.links(shape))))
        inputs: Inputs = ((nodes,), *edges)
        return inputs if self.hidden is None else (*inputs, (nodes,), (alone,))

    def _edge_inputs(self, shape: Shape, kind: int) -> tuple[Features, ...]:
        pairs, features = shape.links[kind]
        given = (None,) * (self.edges != "features") + (features,) * (features is not None)
        if self.tied:
            return given
        place, count = shape.edge_positions(pairs), len(self.joined[kind])
        return tuple(by_position(x, place, count) for x in given)

    # ---- weights -------------------------------------------------------------------------

    def model(self, shape: Shape, labels: Ints, states: int) -> Model:
        """Choose the terms of every group."""
        inputs = self.inputs(shape)
        groups: list[tuple[Term, ...]] = [(self._term(inputs[0][0], labels, states),)]
        for links, features in zip(self.links(shape), inputs[1:], strict=False):
            groups.append(self._edge_terms(links, features, labels, states))
        if self.hidden is not None:
            h = self.hidden_states
            (nodes,), (alone,) = inputs[-2:]
            pairs: Term = Table(states * h) if self.tied else _linear(alone, states * h)
            groups += [(_linear(nodes, h),), (pairs,)]
        return Model(tuple(groups))

    def _edge_terms(
        self, links: Links, features: tuple[Features, ...], labels: Ints, states: int
    ) -> tuple[Term, ...]:
        linked = self.linked(states)
        entries = None if self.hidden == "layer" else _entries(labels[links.pairs], states)
        terms: list[Term] = []
        if self.edges != "features":
            terms, features = [self._table(features[0], entries, linked)], features[1:]
        return (*terms, *(self._term(x, entries, linked * linked) for x in features))

    def _table(self, features: Features, entries: Ints | None, states: int) -> Term:
        if not self.tied:
            return _linear(features, states * states)
        if self.edges == "symmetric":
            return symmetric(states)
        if self.edges == "potts":
            return potts(states)
        if self.space == "sparse" and entries is not None:
            return _seen_table(entries, states * states)
        return Table(states * states)

    def _term(self, features: Features, labels: Ints | None, size: int) -> Term:
        """Return the weights of features for the entries of a table, of which `labels` are seen."""
        if self.space == "dense" or labels is None:
            return _linear(features, size)
        if not isinstance(features, Sparse):
            raise ArgumentError(
                "features='sparse' keeps weights only for pairs of feature and label seen in "
                "training, which needs sparse features: give tokens or SciPy sparse matrices, or "
                "use features='dense'"
            )
        return Pairs.seen(features, labels, size)

    def transitions(self, model: Model, weights: Floats, states: int) -> Floats | None:
        """Return tables (states, states), one for each kind of edges, or each edge, if many."""
        last = len(model.groups) - (0 if self.hidden is None else 2)
        if last == 1 or self.edges == "features":
            return None
        k, blocks = self.linked(states), model.blocks[1:last]
        pairs = [
            (terms[0], weights[block[0]])
            for terms, block in zip(model.groups[1:], blocks, strict=False)
        ]
        tables = np.concatenate([_tables(term, own).reshape(-1, k, k) for term, own in pairs])
        return tables[0] if len(tables) == 1 else tables


def _tables(term: Term, weights: Floats) -> Floats:
    return weights if isinstance(term, Linear) else term.push(weights, None)


def _linear(features: Features, size: int) -> Linear:
    assert features is not None
    return Linear(features.shape[1], size)


def _entries(pairs: Ints, states: int) -> Ints:
    """Entry of the table of two variables that their labels use, -1 if one is not known."""
    return np.where((pairs >= 0).all(axis=1), pairs[:, 0] * states + pairs[:, 1], -1)


def _seen_table(entries: Ints, size: int) -> Table:
    """Table with weights for the entries seen in training only."""
    seen = np.unique(entries[entries >= 0])
    ties = np.full(size, -1, np.int64)
    ties[seen] = np.arange(len(seen))
    return Table(size, tuple(ties.tolist()))


def _barred(graphs: Graphs, sequences: Sequences, apart: bool) -> Graphs:
    """Forbid labels in graphs whose first groups are those of sequences.

    `apart` says that steps have factors of their own, the last group, which no weights reach.
    """
    plain, entries = sequences.graphs(), graphs.entries
    assert plain.forbidden_potentials is not None
    never = np.zeros(int(graphs.wiring.table_offsets[-1]))
    for theirs, mine in zip(plain.entries, (entries[0], entries[-1 if apart else 1]), strict=True):
        never[mine] = plain.forbidden_potentials[theirs]
    groups = graphs.groups[:-1] if apart else graphs.groups
    return Graphs(graphs.wiring, groups, never)


def _size(shape: Shape) -> int:
    """Return the number of nodes that every example has."""
    size = int(shape.sizes[0])
    other = np.flatnonzero(shape.sizes != size)
    if len(other):
        raise ArgumentError(
            f"with tied=False all examples must be alike, but example 0 has {size} nodes and "
            f"example {other[0]} has {shape.sizes[other[0]]}; use tied=True, or examples of one "
            f"size"
        )
    return size


def _joined(shape: Shape) -> tuple[Ints, ...]:
    """Return the edges that every example has, of every kind."""
    return tuple(_edges_each(shape, links.pairs) for links in shape.links)


def _edges_each(shape: Shape, pairs: Ints) -> Ints:
    n = shape.n_examples
    each = len(pairs) // n
    local = pairs - shape.offsets[shape.owners(pairs)][:, None]
    if each * n != len(pairs) or (local.reshape(n, each, 2) != local[:each]).any():
        raise ArgumentError(
            "with tied=False all examples must be alike, but their edges differ; use tied=True, or "
            "give the same edges in the same order for every example"
        )
    return local[:each]
