"""Designs: which graphs, which features and which weights a model has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.document import completed
from structlearn._src.common.errors import ArgumentError
from structlearn._src.graph.batch import Graphs, Sequences, assemble
from structlearn._src.graph.wiring import HIDDEN, OUTPUT
from structlearn._src.model.design_doc import PAIRWISE_DESIGN
from structlearn._src.model.model import EdgeSet, GraphData, Inputs, LinearModel, shift_edges
from structlearn._src.model.term import Features, LinearTerm, PairsTerm, Sparse, TableTerm, Term
from structlearn._src.text.labels import Forbidden

#: What a design makes of graph data: variables and factors; the variable of everything that may
#: have a label; the hidden variable beside every node, if there are any.
Structure = tuple[Sequences | Graphs, Ints | slice, Ints | None]

# ---- labels of nodes, which edges link -------------------------------------------------------


@completed(PAIRWISE_DESIGN)
@dataclass(frozen=True, eq=False)
class PairwiseDesign:
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
    edge_pattern
        Unless tied, the nodes that the edges of every example join, for every kind of edges.

    Examples
    --------
    >>> from structlearn.extend import GraphReader, PairwiseDesign
    >>> _, data = GraphReader.learn([([[1.0], [2.0], [3.0]], [[0, 1], [1, 2]])], False)
    >>> design = PairwiseDesign(edges="potts").fitted_to(data)
    >>> design.model(data, labels=np.array([0, 1, 1]), states=2).n_weights  # 2 of nodes, 1 of edges
    3
    """

    space: str = "dense"
    tied: bool = True
    edges: str = "table"
    hidden: str | None = None
    hidden_states: int = 2
    forbidden: Forbidden | None = None
    chain: bool = False
    size: int = 0
    edge_pattern: tuple[Ints, ...] = ()

    def fitted_to(self, data: GraphData) -> PairwiseDesign:
        """Return the choices with what they must remember of the training examples."""
        if self.tied:
            return self
        first = tuple(links.pairs[data.owners(links.pairs) == 0] for links in data.edge_sets)
        fitted = replace(self, size=int(data.sizes[0]), edge_pattern=first)
        fitted._check_alike(data)
        return fitted

    def links(self, data: GraphData) -> tuple[EdgeSet, ...]:
        """Return the kinds of edges that are used."""
        return () if self.edges == "none" else data.edge_sets

    def edge_states(self, states: int) -> int:
        """Return the number of states of the variables that edges link."""
        return self.hidden_states if self.hidden == "layer" else states

    def sizes(self, states: int, n_groups: int) -> tuple[int, ...]:
        """Return the number of entries of a table of every group of factors."""
        h = self.hidden_states
        linked = self.edge_states(states)
        beside = () if self.hidden is None else (h, states * h)
        return states, *[linked * linked] * (n_groups - 1 - len(beside)), *beside

    # ---- structure -----------------------------------------------------------------------

    def structure(self, data: GraphData, states: int) -> Structure:
        """Return variables and factors, and where labels belong among the variables."""
        if not self.tied:
            self._check_alike(data)
        if self.chain and self.hidden is None and data.hidden is None:
            return Sequences(data.offsets, states, self.forbidden), slice(None), None
        outputs, beside = self._variables(data)
        graphs = self._graphs(data, outputs, beside, states)
        return graphs, outputs, beside

    def _check_alike(self, data: GraphData) -> None:
        """Refuse examples that differ from the first, where its weights mean nothing."""
        other = np.flatnonzero(data.sizes != self.size)
        if len(other):
            raise ArgumentError(
                f"with tied=False all examples must be alike, but the first of training had "
                f"{self.size} nodes and example {other[0]} has {data.sizes[other[0]]}; use "
                f"tied=True, or examples of one size"
            )
        for links, pattern in zip(data.edge_sets, self.edge_pattern, strict=True):
            same = shift_edges([pattern] * data.n_examples, data.offsets)
            if not np.array_equal(links.pairs, same):
                raise ArgumentError(
                    "with tied=False all examples must be alike, but their edges differ; use "
                    "tied=True, or give the same edges in the same order for every example"
                )

    def _variables(self, data: GraphData) -> tuple[Ints, Ints | None]:
        """Nodes of an example come first, the hidden states beside them after all of them."""
        sizes = data.sizes
        if self.hidden is None:
            return np.arange(data.n_nodes), None
        outputs = np.repeat(2 * data.offsets[:-1], sizes) + data.positions
        return outputs, outputs + np.repeat(sizes, sizes)

    def _graphs(self, data: GraphData, outputs: Ints, beside: Ints | None, states: int) -> Graphs:
        n = data.n_nodes * (1 if beside is None else 2)
        cards = np.full(n, states)
        roles = np.full(n, OUTPUT)
        if data.hidden is not None:
            roles[outputs[data.hidden]] = HIDDEN
        linked = outputs if beside is None or self.hidden == "node" else beside
        pairs = [links.pairs for links in self.links(data)]
        scopes = [outputs[:, None], *(linked[rows] for rows in pairs)]
        if beside is not None:
            cards[beside] = self.hidden_states
            roles[beside] = HIDDEN
            scopes += [beside[:, None], np.stack([outputs, beside], axis=1)]
        borders = data.offsets * (n // max(data.n_nodes, 1))
        if self.forbidden is None:
            return assemble(cards, roles, borders, tuple(scopes))
        if self.hidden == "layer":  # the labels that may be forbidden have no factor yet
            scopes += [outputs[rows] for rows in pairs]
        graphs = assemble(cards, roles, borders, tuple(scopes))
        return _with_forbidden(
            graphs, Sequences(data.offsets, states, self.forbidden), self.hidden == "layer"
        )

    # ---- features ------------------------------------------------------------------------

    def inputs(self, data: GraphData) -> Inputs:
        """Return the features of every term of every group."""
        nodes = data.features
        alone = None
        if not self.tied:
            nodes, alone = (
                Sparse.by_position(x, data.positions, self.size) for x in (data.features, None)
            )
        edges = (self._edge_inputs(data, kind) for kind in range(len(self.links(data))))
        inputs: Inputs = ((nodes,), *edges)
        return inputs if self.hidden is None else (*inputs, (nodes,), (alone,))

    def _edge_inputs(self, data: GraphData, kind: int) -> tuple[Features, ...]:
        pairs, features = data.edge_sets[kind]
        given = (None,) * (self.edges != "features") + (features,) * (features is not None)
        if self.tied:
            return given
        place = data.edge_positions(pairs)
        count = len(self.edge_pattern[kind])
        return tuple(Sparse.by_position(x, place, count) for x in given)

    # ---- weights -------------------------------------------------------------------------

    def model(self, data: GraphData, labels: Ints, states: int) -> LinearModel:
        """Return the model: the terms of every group, and so the weights."""
        inputs = self.inputs(data)
        groups: list[tuple[Term, ...]] = [(self._term(inputs[0][0], labels, states),)]
        for links, features in zip(self.links(data), inputs[1:], strict=False):
            groups.append(self._edge_terms(links, features, labels, states))
        if self.hidden is not None:
            h = self.hidden_states
            (nodes,), (alone,) = inputs[-2:]
            pairs: Term = TableTerm(states * h) if self.tied else _linear(alone, states * h)
            groups += [(_linear(nodes, h),), (pairs,)]
        return LinearModel(tuple(groups))

    def _edge_terms(
        self, links: EdgeSet, features: tuple[Features, ...], labels: Ints, states: int
    ) -> tuple[Term, ...]:
        linked = self.edge_states(states)
        entries = None if self.hidden == "layer" else _entries(labels[links.pairs], states)
        terms: list[Term] = []
        if self.edges != "features":
            terms = [self._table(features[0], entries, linked)]
            features = features[1:]
        return (*terms, *(self._term(x, entries, linked * linked) for x in features))

    def _table(self, features: Features, entries: Ints | None, states: int) -> Term:
        if not self.tied:
            return _linear(features, states * states)
        if self.edges == "symmetric":
            return TableTerm.symmetric(states)
        if self.edges == "potts":
            return TableTerm.potts(states)
        if self.space == "sparse" and entries is not None:
            return _seen_table(entries, states * states)
        return TableTerm(states * states)

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
        return PairsTerm.seen(features, labels, size)

    def transitions(self, model: LinearModel, weights: Floats, states: int) -> Floats | None:
        """Return the weights of pairs of labels."""
        last = len(model.groups) - (0 if self.hidden is None else 2)
        if last == 1 or self.edges == "features":
            return None
        k = self.edge_states(states)
        blocks = model.blocks[1:last]
        pairs = [
            (terms[0], weights[block[0]])
            for terms, block in zip(model.groups[1:], blocks, strict=False)
        ]
        tables = np.concatenate([_tables(term, own).reshape(-1, k, k) for term, own in pairs])
        return tables[0] if len(tables) == 1 else tables


def _tables(term: Term, weights: Floats) -> Floats:
    return weights if isinstance(term, LinearTerm) else term.push(weights, None)


def _linear(features: Features, size: int) -> LinearTerm:
    assert features is not None
    return LinearTerm(features.shape[1], size)


def _entries(pairs: Ints, states: int) -> Ints:
    """Entry of the table of two variables that their labels use, -1 if one is not known."""
    return np.where((pairs >= 0).all(axis=1), pairs[:, 0] * states + pairs[:, 1], -1)


def _seen_table(entries: Ints, size: int) -> TableTerm:
    """Table with weights for the entries seen in training only."""
    seen = np.unique(entries[entries >= 0])
    ties = np.full(size, -1, np.int64)
    ties[seen] = np.arange(len(seen))
    return TableTerm(size, tuple(ties.tolist()))


def _with_forbidden(graphs: Graphs, sequences: Sequences, apart: bool) -> Graphs:
    """Forbid labels in graphs whose first groups are those of sequences.

    `apart` says that steps have factors of their own, the last group, which no weights reach.
    """
    plain = sequences.graphs()
    entries = graphs.entries
    assert plain.forbidden_potentials is not None
    potentials = np.zeros(int(graphs.wiring.table_offsets[-1]))
    for theirs, mine in zip(plain.entries, (entries[0], entries[-1 if apart else 1]), strict=True):
        potentials[mine] = plain.forbidden_potentials[theirs]
    groups = graphs.groups[:-1] if apart else graphs.groups
    return Graphs(graphs.wiring, groups, potentials)


# ---- one label for a whole sequence ----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class HiddenChainDesign:
    r"""The hidden conditional random field for sequences.

    .. math:: \theta(y, h) = b_y + \sum_t \big( \langle v_{h_t}, x_t \rangle + B_{y, h_t} \big)
              + \sum_t A_{y, h_t, h_{t+1}}

    Groups of factors are the hidden states, the pairs of label and hidden state, the triples of
    label and neighbouring hidden states, and the labels.

    References
    ----------
    A. Quattoni et al., "Hidden conditional random fields", 2007.
    """

    hidden_states: int
    hidden: ClassVar[str] = "layer"  # edges link hidden states, never labels
    forbidden: ClassVar[None] = None
    tied: ClassVar[bool] = True

    def structure(self, data: GraphData, states: int) -> Structure:
        """Return variables and factors; the label of a sequence comes before its states."""
        n = data.n_examples
        label = data.offsets[:-1] + np.arange(n)
        owner = np.repeat(np.arange(n), data.sizes)
        hidden = np.arange(data.n_nodes) + owner + 1
        pairs = data.edge_sets[0].pairs
        scopes = (
            hidden[:, None],
            np.stack([label[owner], hidden], axis=1),
            np.column_stack([label[owner[pairs[:, 0]]], hidden[pairs]]),
            label[:, None],
        )
        cards = np.full(n + data.n_nodes, self.hidden_states)
        roles = np.full(len(cards), HIDDEN)
        cards[label] = states
        roles[label] = OUTPUT
        borders = data.offsets + np.arange(n + 1)
        return assemble(cards, roles, borders, scopes), label, hidden

    def inputs(self, data: GraphData) -> Inputs:
        """Features of every term of every group."""
        return (data.features,), (None,), (None,), (None,)

    def model(self, data: GraphData, labels: Ints, states: int) -> LinearModel:
        """Choose the terms of every group."""
        hidden, *others = self.sizes(states, 4)
        return LinearModel(((_linear(data.features, hidden),), *((TableTerm(n),) for n in others)))

    def sizes(self, states: int, n_groups: int) -> tuple[int, ...]:
        """Entries of the tables of every group of factors."""
        h = self.hidden_states
        return h, states * h, states * h * h, states

    def transitions(self, model: LinearModel, weights: Floats, states: int) -> Floats | None:
        """Return the weights of neighbouring hidden states under every label."""
        h = self.hidden_states
        return weights[model.blocks[2][0]].reshape(states, h, h)
