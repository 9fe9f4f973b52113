"""From the tables of groups to the potentials of graphs and chains, and back."""

from __future__ import annotations

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.graph.batch import Graphs, Sequences
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference.chain_batch import Chains
from structlearn._src.model.model import Tables


def tables_to_potentials(graphs: Graphs, tables: Tables) -> Floats:
    """Flat potentials from the tables of every group."""
    potentials = np.zeros(int(graphs.wiring.table_offsets[-1]))
    for entries, table in zip(graphs.entries, tables, strict=True):
        if len(entries):
            potentials[entries] = table
    return potentials


def potentials_to_tables(graphs: Graphs, values: Floats, like: Tables) -> Tables:
    """Adjoint of `tables_to_potentials`: tables that factors share get the sum of their values."""
    out = []
    for entries, table in zip(graphs.entries, like, strict=True):
        rows = values[entries] if len(entries) else np.zeros((0, table.shape[1]))
        out.append(rows if len(table) == len(rows) else rows.sum(axis=0, keepdims=True))
    return tuple(out)


def point_mass(wiring: Wiring, labels: Ints) -> tuple[Floats, Floats]:
    """Beliefs of variables and of factors that are sure of the labels; zeros where one is -1."""
    known = labels >= 0
    steps = wiring.strides * labels[wiring.scopes]
    entry = np.bincount(wiring.slot_factors, steps, wiring.n_factors).astype(np.int64)
    whole = np.ones(wiring.n_factors, np.bool_)
    whole[wiring.slot_factors[~known[wiring.scopes]]] = False
    factors = np.zeros(int(wiring.table_offsets[-1]))
    factors[(wiring.table_offsets[:-1] + entry)[whole]] = 1.0
    return sure_beliefs(wiring, labels), factors


def sure_beliefs(wiring: Wiring, labels: Ints) -> Floats:
    """Those of variables alone."""
    known = labels >= 0
    beliefs = np.zeros(int(wiring.belief_offsets[-1]))
    beliefs[(wiring.belief_offsets[:-1] + labels)[known]] = 1.0
    return beliefs


def best_states(wiring: Wiring, beliefs: Floats) -> Ints:
    """State of largest belief of every variable, the first of several."""
    starts = wiring.belief_offsets[:-1]
    sizes = wiring.cards
    top = np.repeat(np.maximum.reduceat(beliefs, starts), sizes) if len(starts) else beliefs
    state = np.arange(len(beliefs)) - np.repeat(starts, sizes)
    hits = np.where(beliefs >= top, state, len(beliefs))
    return np.minimum.reduceat(hits, starts) if len(starts) else np.empty(0, np.int64)


def normalise(blocks: Floats, offsets: Ints) -> Floats:
    """Divide every block of a flat array by its sum, unless that is 0."""
    if not len(blocks):
        return blocks
    sums: Floats = np.add.reduceat(blocks, offsets[:-1])
    return blocks / np.repeat(np.where(sums > 0, sums, 1.0), np.diff(offsets))


def tables_to_chains(
    sequences: Sequences, tables: Tables, added: Floats | None, eps: float, n_jobs: int | None
) -> Chains:
    """Return the chains of all sequences, potentials divided by the temperature unless it is 0.

    `added` (positions, states) is added to the potentials of the positions, the ends that are
    forbidden included (see `forbid_ends`).
    """
    n = sequences.n_variables
    states = sequences.states
    nodes = tables[0] if len(tables[0]) == n else np.repeat(tables[0], n, axis=0)
    edges = tables[1] if len(tables) > 1 else np.zeros(states * states)
    edges = edges.reshape(-1, states, states)
    if added is not None:
        nodes = nodes + added
    if sequences.forbidden is not None:
        edges = np.where(sequences.forbidden.pairs, -np.inf, edges)
    if eps not in (0.0, 1.0):
        nodes = nodes / eps
        edges = edges / eps
    return Chains(nodes, edges, sequences.offsets, n_jobs)


def clamp_labels(labels: Ints, states: int) -> Floats:
    """Potentials that leave only the label of every position, where there is one."""
    out = np.where(labels[:, None] == np.arange(states), 0.0, -np.inf)
    out[labels < 0] = 0.0
    return out


def forbid_ends(sequences: Sequences, added: Floats | None) -> Floats:
    """Forbid the states that must not begin or end a sequence."""
    forbidden = sequences.forbidden
    offsets = sequences.offsets
    assert forbidden is not None
    out = np.zeros((int(offsets[-1]), sequences.states)) if added is None else added.copy()
    out[offsets[:-1]] = np.where(forbidden.first, -np.inf, out[offsets[:-1]])
    out[offsets[1:] - 1] = np.where(forbidden.last, -np.inf, out[offsets[1:] - 1])
    return out
