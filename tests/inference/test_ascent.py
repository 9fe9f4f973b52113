import numpy as np
import pytest

import naive
from structlearn._src.graph.wiring import condition
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.icm import climb
from structlearn._src.inference.order import cutset, find_order
from structlearn._src.inference.portfolio import ascend_by_blocks


def _grid(rng, side, states=2):
    from structlearn import grid

    edges = 2 * side * (side - 1)
    nodes = rng.normal(0, 1, (side, side, states))
    return grid(nodes, rng.normal(0, 2, (edges, states, states)))


@pytest.mark.parametrize("limit", [8, 64, 512])
def test_what_a_cutset_leaves_has_small_tables(limit):
    rng = np.random.default_rng(0)
    for _ in range(10):
        wiring = _grid(rng, 8).wiring
        cut = cutset(wiring, limit, rng)
        rest = condition(wiring, np.zeros(wiring.table_offsets[-1]), np.where(cut, 0, -1)).wiring
        order = find_order(rest, np.zeros(rest.n_variables, np.bool_))
        # The second search is greedy anew: it may do a little worse than the one that cut.
        assert order.largest <= 4 * limit
        assert cut.any()
        assert not cut.all()


def test_nothing_is_cut_from_a_narrow_graph():
    wiring = _grid(np.random.default_rng(1), 4).wiring
    assert not cutset(wiring, 2**12, np.random.default_rng(0)).any()


def test_cutsets_differ_from_round_to_round():
    wiring = _grid(np.random.default_rng(1), 10).wiring
    rng = np.random.default_rng(0)
    assert len({cutset(wiring, 2**5, rng).tobytes() for _ in range(5)}) > 1


def test_block_ascent_never_lowers_the_score_and_finds_optima_that_flips_miss():
    rng = np.random.default_rng(2)
    stuck = found = 0
    for _ in range(20):
        graph = _grid(rng, 4)
        best, _ = naive.value_and_distribution(graph, 0.0, 0.0)
        labels = climb(graph.wiring, graph.potentials, rng.integers(graph.cards)).labels
        start = graph.score(labels)
        problem = Problem(graph.wiring, graph.potentials, 0.0, 0.0)
        value = graph.score(ascend_by_blocks(problem, labels, 8, Options(rng=rng)))
        assert value >= start
        stuck += start < best - 1e-9
        found += value > best - 1e-9
    assert stuck >= 10  # flips alone rarely get there
    assert found >= 18
