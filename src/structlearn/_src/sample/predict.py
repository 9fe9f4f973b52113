"""What draws say of sequences: probabilities of states, densities, and votes for labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.inference.chain_batch import Chains
from structlearn._src.sample.hmm import HmmModel, HmmState, log_densities
from structlearn._src.sample.label_emission import LabelEmission


def chains_of(model: HmmModel, draw: HmmState, logs: Floats) -> Chains:
    """Return the sequences as chains over the states of a draw, given log densities.

    The mass of states that a draw does not have is shared out among those that it has.
    """
    rows = draw.process.rows[:, :-1]
    with np.errstate(divide="ignore"):
        tables = np.log(rows / rows.sum(1, keepdims=True))
    nodes = logs.copy()
    nodes[model.offsets[:-1]] += tables[0]
    return Chains(nodes, np.ascontiguousarray(tables[None, 1:]), model.offsets, model.n_jobs)


def state_marginals(model: HmmModel, draw: HmmState) -> tuple[Floats, Floats]:
    """Log density of every sequence, and probabilities of states (positions, states)."""
    values, beliefs, _ = chains_of(model, draw, log_densities(model, draw)).marginals()
    return values, beliefs


def weighted_votes(
    model: HmmModel, labelled: LabelEmission, draws: Sequence[tuple[HmmState, Floats]]
) -> Floats:
    """Return the shares of labels (positions, labels), voted for by states as likely as they are.

    The model has no emission of labels, whose weights come with the draws.
    """
    votes = np.zeros((model.n_positions, labelled.n_labels))
    for draw, weights in draws:
        _, beliefs = state_marginals(model, draw)
        chosen = _best_labels(labelled.features, weights)
        for y in range(labelled.n_labels):
            votes[:, y] += (beliefs * (chosen == y)).sum(1)
    return votes / votes.sum(1, keepdims=True)


def iterated_votes(
    model: HmmModel,
    labelled: LabelEmission,
    draws: Sequence[tuple[HmmState, Floats]],
    n_rounds: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the shares of labels by the paper's loop: states given labels, labels given states.

    For every draw, states are drawn without labels first, and then `n_rounds` times given the
    labels that the states before gave; the last labels are its vote.
    """
    votes = np.zeros((model.n_positions, labelled.n_labels))
    everywhere = np.arange(model.n_positions)
    for draw, weights in draws:
        logs = log_densities(model, draw)
        chosen = _best_labels(labelled.features, weights)
        labels = np.full(model.n_positions, -1)
        for _ in range(n_rounds + 1):
            biased = logs.copy()
            given = labelled.relabelled(labels)
            given.add_log_densities((weights,), 0, model.n_positions, biased)
            states = chains_of(model, draw, biased).draw(1, rng)[0]
            labels = chosen[everywhere, states]
        votes[everywhere, labels] += 1.0
    return votes / len(draws)


def _best_labels(features: Floats, weights: Floats) -> Ints:
    """Return the label with the highest score of every position in every state."""
    n_states, n_labels, width = weights.shape
    scores = features @ weights.reshape(-1, width).T
    return scores.reshape(-1, n_states, n_labels).argmax(2)
