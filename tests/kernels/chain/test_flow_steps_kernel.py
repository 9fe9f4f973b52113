"""Steps among the links at hand, against steps among all paths through them."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from chain_objectives import KINDS, Dense, chains
from structlearn._src.solve import flows
from structlearn._src.solve.flow_round import Round
from structlearn._src.solve.frank_wolfe import FrankWolfe

SMALL = {"n": 5, "longest": 5, "loss": "hinge", "C": 0.4}


class Flow:
    """The state of a solver between its parts."""

    def __init__(self, objective, **options):
        self.objective = objective
        self.dense = Dense(objective)
        self.state = FrankWolfe(**options).start(
            objective, np.zeros(objective.n_weights), np.random.default_rng(0)
        )

    def run(self, order, *rules, search=False):
        flows.make_room(self.objective.chain_arrays, self.state)
        run = Round(self.objective.chain_arrays, self.state, 2)
        loss = run.search(order) if search else 0.0
        run.take_steps(order, list(rules))
        run.end()
        return loss

    def links(self, c):
        """Share of every link (position, state before, state) of a sequence."""
        first = self.state["starts"][c]
        own = slice(first, first + self.state["counts"][c])
        places, states = np.divmod(self.state["ends"][own], self.dense.states)
        every = zip(
            places, self.state["befores"][own], states, self.state["shares"][own], strict=True
        )
        return {(int(t), int(r), int(s)): float(share) for t, r, s, share in every}

    def change(self, c):
        """What moves of links of a sequence do to weights and to the cost."""
        a, b = self.dense.cuts[c]
        costs = self.dense.potentials(c, np.zeros(self.objective.n_weights))[3]
        factor = self.objective.chain_arrays.loss_weights[c]

        def change(moves):
            nodes, steps = np.zeros((b - a, self.dense.states)), np.zeros((self.dense.states,) * 2)
            cost = 0.0
            for (t, r, s), x in moves.items():
                nodes[t, s] += x
                cost += x * costs[t, s]
                if t:
                    steps[r, s] += x
            return factor * self.dense.pull(c, nodes, steps), factor * cost

        return change

    @property
    def dual(self):
        return self.state["losses"].sum() - 0.5 * self.state["weights"] @ self.state["weights"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pairwise", [False, True])
def test_steps_are_those_among_all_paths_of_a_stretch(kind, pairwise):
    flow = Flow(chains(**SMALL | KINDS[kind]))
    rng = np.random.default_rng(1)
    moved = 0
    for turn in range(4):
        flow.run(rng.permutation(5), (False, 1.0), (True, 1.3), search=True)
        flow.run(np.arange(5), search=True)
        for c in rng.permutation(5):
            given = flow.links(c), flow.state["weights"].copy(), pairwise, 1.0 + 0.3 * (turn % 2)
            expected, weights, cost = naive.stretch_steps(*given, flow.change(c))
            before = flow.state["losses"].copy()
            flow.run(np.array([c]), given[2:])
            assert flow.links(c) == pytest.approx(expected, abs=1e-10)
            np.testing.assert_allclose(flow.state["weights"], weights, atol=1e-10)
            assert flow.state["losses"][c] - before[c] == pytest.approx(cost, abs=1e-10)
            moved += expected != given[0]
    assert moved > 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_finds_the_losses_and_adds_best_labellings(kind):
    flow = Flow(chains(**SMALL | KINDS[kind]))
    order = np.array([3, 1, 0, 4, 2])
    for _ in range(3):
        flow.run(order, (False, 1.0), search=True)
    before = [flow.links(c) for c in range(5)]
    weights = flow.state["weights"]
    found = flow.run(order, search=True)
    expected = 0.0
    for c, old in enumerate(before):
        scores, edges, labels, costs = flow.dense.potentials(c, weights)
        factor = flow.objective.chain_arrays.loss_weights[c]
        expected += factor * naive.chain_loss(scores, edges, labels, 0.0, costs)[0]
        new = flow.links(c)
        assert {link for link in new if new[link] > 0.0} == {k for k in old if old[k] > 1e-13}
        every = naive.assignments([flow.dense.states] * len(labels))
        best = max(every, key=lambda y: naive.path_score(scores + costs, edges, y))
        path = {(t, best[t - 1] if t else -1, s) for t, s in enumerate(best)}
        assert factor == 0.0 or path <= set(new)
    assert found == pytest.approx(expected)


def test_a_search_leaves_no_link_whose_state_before_is_gone():
    """Two links of too little share each end in a state, and one of their sum leaves it."""
    flow = Flow(chains(**SMALL | {"longest": 3}))
    K, first = flow.dense.states, flow.dense.cuts[1][0]
    one, two, three = flow.dense.data.labels[first : first + 3]
    other = (two + 1) % K
    begun = one, (one + 1) % K
    links = [(0, s, -1, 0.5) for s in begun]
    links += [(1, s, r, x) for r in begun for s, x in ((other, 0.5), (two, 0.8e-13))]
    links += [(2, three, other, 1.0), (2, three, two, 1.6e-13)]
    columns = zip(*sorted((t * K + s, r, x) for t, s, r, x in links), strict=True)
    flows.make_room(flow.objective.chain_arrays, flow.state)
    place = flow.state["starts"][1] + np.arange(len(links))
    for name, column in zip(("ends", "befores", "shares"), columns, strict=True):
        flow.state[name][place] = column
    flow.state["counts"][1] = len(links)
    flow.run(np.array([1]), search=True)
    found = flow.links(1)
    ends = {(t, s) for t, _, s in found}
    assert all((t - 1, r) in ends for t, r, _ in found if t)
    assert (1, one, two) not in found


@pytest.mark.parametrize("kind", ["dense", "sparse", "pairs", "bars", "mean"])
@pytest.mark.parametrize("pairwise", [False, True])
def test_steps_of_batches_raise_the_dual_and_keep_a_flow(kind, pairwise):
    """Also those that were found for weights of long ago, whatever the size of the batch."""
    flow = Flow(chains(**SMALL | KINDS[kind] | {"n": 30, "C": 3.0}), batch_size=30)
    rng = np.random.default_rng(2)
    for _ in range(6):
        before = flow.dual
        flow.run(rng.permutation(30), (pairwise, 1.0), (pairwise, 1.9), search=True)
        assert flow.dual > before
    for c, (a, b) in enumerate(flow.dense.cuts):
        coming, leaving = np.zeros((2, b - a, flow.dense.states))
        for (t, r, s), share in flow.links(c).items():
            assert share >= 0.0
            coming[t, s] += share
            if t:
                leaving[t - 1, r] += share
        np.testing.assert_allclose(coming.sum(axis=1), 1.0, atol=1e-9)
        np.testing.assert_allclose(coming[:-1], leaving[:-1], atol=1e-9)


def test_shares_that_rounding_left_below_zero_let_no_step_go_too_far():
    """A step in a batch may go back: not beyond a share of 0, nor forth where the dual falls."""
    flow = Flow(chains(**SMALL | {"n": 30, "C": 3.0}), batch_size=30)
    rng = np.random.default_rng(2)
    for _ in range(6):
        flow.run(rng.permutation(30), (False, 1.0), search=True)
        shares = flow.state["shares"]
        shares[shares < 1e-13] = -1e-18
        before = flow.dual
        flow.run(rng.permutation(30), (False, 1.0), (False, 1.9))
        assert flow.dual >= before
        assert all(share >= -1e-15 for c in range(30) for share in flow.links(c).values())
