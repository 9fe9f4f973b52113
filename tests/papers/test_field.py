"""Simulated fields as examples: graphs, features and weights against what they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from papers.data.synthetic import HiddenField, chessboard, neighbours
from papers.experiments.convergence import wavering
from papers.experiments.field import AVERAGED, WAYS, make_examples, make_graphs, make_model
from papers.experiments.trio import HIDDEN_CRF, LATENT, MARGINAL, TRIO
from papers.inside import HIDDEN
from structlearn import grid_edges


def test_neighbours_are_the_edges_of_a_grid_with_vertical_ones_first():
    edges = neighbours(3, 4)
    assert {tuple(edge) for edge in edges} == {tuple(edge) for edge in grid_edges(3, 4)}
    assert (np.diff(edges[: 2 * 4]) == 4).all()
    assert (np.diff(edges[2 * 4 :]) == 1).all()
    assert neighbours(5, 1).tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]


def test_every_example_has_the_same_grid():
    graphs = make_graphs((2, 3), 4, 3)
    wiring = graphs.wiring
    assert graphs.n_examples == 3
    assert (wiring.cards == 4).all()
    np.testing.assert_array_equal(wiring.roles == HIDDEN, np.tile(chessboard(2, 3), 3))
    nodes, edges = graphs.groups
    assert len(nodes) == 3 * 6
    scopes = [
        wiring.scopes[wiring.scope_offsets[f] : wiring.scope_offsets[f + 1]].tolist() for f in edges
    ]
    wanted = [(6 * i + neighbours(2, 3)).tolist() for i in range(3)]
    assert scopes == [edge for example in wanted for edge in example]
    assert make_graphs((2, 3), 4, 3) is graphs  # so that elimination is planned once


@pytest.mark.parametrize("shape", [(4, 1), (2, 2)])
def test_scores_of_examples_are_those_of_the_field(shape):
    """The model with the potentials for weights gives every cell and edge its potential."""
    field = HiddenField.draw(*shape, states=3, random_state=0)
    inputs, cells = field.sample(5, random_state=1)
    model = make_model(field)
    nodes = np.concatenate([field.sight, field.cells[:, None]], axis=1)
    weights = np.concatenate([nodes.ravel(), field.pairs.ravel()])
    assert len(weights) == model.n_weights
    by_cell, by_edge = model.push(weights, make_examples(field, inputs, cells).inputs, 1)
    n = cells.shape[1]
    seen = field.sight[np.arange(n), inputs] + field.cells
    np.testing.assert_allclose(by_cell.reshape(5, n, 3), seen)
    np.testing.assert_allclose(
        by_edge.reshape(5, *field.pairs.shape),
        np.broadcast_to(field.pairs, (5, *field.pairs.shape)),
    )


def test_only_outputs_have_labels():
    field = HiddenField.draw(3, 3, states=2, random_state=0)
    inputs, cells = field.sample(4, random_state=1)
    labels = make_examples(field, inputs, cells).labels.reshape(4, 9)
    assert (labels[:, field.hidden] == -1).all()
    np.testing.assert_array_equal(labels[:, ~field.hidden], cells[:, ~field.hidden])


def test_the_three_learners():
    assert [learner.letter for learner in TRIO] == ["M", "L", "H"]
    assert [learner.joint for learner in (MARGINAL, LATENT, HIDDEN_CRF)] == [False, True, False]
    assert len({learner.loss for learner in TRIO}) == 3


@pytest.mark.parametrize("how", WAYS)
def test_latent_machines_take_shorter_steps_where_the_paper_says_so(how):
    solver, steps = WAYS[how](MARGINAL)
    other, more = WAYS[how](LATENT)
    assert steps > 0
    assert more >= steps
    assert (other == solver) == (how == AVERAGED)


def test_wavering_is_the_mean_change_in_the_second_half():
    still = np.full((1, 9), 4.0)
    turning = np.array([[9.0, 1, 5, 2, 2, 4, 2, 4, 2]])
    assert wavering(still) == pytest.approx([0.0])
    assert wavering(turning) == pytest.approx([100.0 * 2.0 / 2.8])
