"""Messages on a card: the update of the host, at any temperatures, and all that rests on it."""

from __future__ import annotations

import numpy as np
import pytest

from host_card import interpreted, needs_triton, on_card
from structlearn import GridLabeler, grid, infer, infer_many
from structlearn._src.graph.batch import assemble
from structlearn._src.inference.base import Problem
from structlearn._src.inference.messenger import Messenger, make_messenger

torch = pytest.importorskip("torch")
TEMPERATURES = [(1.0, 1.0), (0.0, 0.0), (0.3, 0.3), (0.2, 1.0)]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def loopy(seed, eps=(1.0, 1.0), even=True, barred=0.0, graphs=1, scale=0.7):
    """Graphs of twelve variables with cycles, odd ones too; roles at random."""
    rng = np.random.default_rng(seed)
    n = 12 * graphs
    at = np.arange(n).reshape(graphs, 3, 4)
    pairs = [(at[:, :, :-1], at[:, :, 1:]), (at[:, 1:], at[:, :-1]), (at[:, 0, 0], at[:, 1, 1])]
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])
    edges = edges[np.argsort(edges[:, 0] // 12, kind="stable")]
    cards = np.full(n, 3) if even else rng.integers(2, 5, n)
    starts = np.arange(0, n + 1, 12)
    wiring = assemble(cards, rng.integers(0, 2, n), starts, (np.arange(n)[:, None], edges)).wiring
    potentials = scale * rng.normal(size=int(wiring.table_offsets[-1]))
    potentials[rng.random(len(potentials)) < barred] = -np.inf
    return Problem(wiring, potentials, *eps)


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("eps", TEMPERATURES)
def test_messages_rest_where_those_of_the_host_rest(eps, even):
    problem = loopy(3, eps, even)
    host = Messenger(problem, damping=0.3)
    host.run(2000, 1e-11)
    assert host.done.all()
    with on_card():
        card = make_messenger(problem, damping=0.3)
        assert type(card) is not Messenger
        card.run(2000, 1e-11)
    assert card.done.all()
    assert card.beliefs()[0] == pytest.approx(host.beliefs()[0], abs=1e-7)
    assert card.value()[0] == pytest.approx(host.value()[0], abs=1e-7)


def test_the_card_passes_messages_wherever_it_is_asked_to():
    """Several graphs, outside of the place: not one after the other on the host."""
    problem = loopy(5, graphs=3)
    host = Messenger(problem)
    host.run(2000, 1e-11)
    with on_card():
        card = make_messenger(problem)
    card.run(2000, 1e-11)
    assert card.done.all()
    assert card.beliefs()[0] == pytest.approx(host.beliefs()[0], abs=1e-7)
    assert card.value()[0] == pytest.approx(host.value()[0], abs=1e-7)


@pytest.mark.parametrize("eps", [(1.0, 1.0), (0.0, 0.0), (0.0, 1.0)])
def test_what_is_at_rest_on_the_host_stays_so(eps):
    """Also where states are ruled out, and outputs are maximised over sums."""
    for seed in range(6):
        problem = loopy(seed, eps, barred=0.08)
        host = Messenger(problem)
        # In the log domain, as on cards: where nothing is left to choose, exponentials may say
        # something else about states that are out.
        host._prepared = lambda host=host: host.potentials
        if host.run(300, 1e-11).early or not host.done.all():
            continue
        with on_card():
            card = make_messenger(problem, start=host.messages)
            card.run(1, 1e-9)
        assert card.residual.max() <= 1e-9
        gone = np.isneginf(host.messages)
        assert (np.isneginf(card.messages) == gone).all()
        assert card.messages[~gone] == pytest.approx(host.messages[~gone], abs=1e-8)


def test_graphs_end_one_by_one():
    problem = loopy(5, graphs=3)
    with on_card():
        card = make_messenger(problem)
        card.done[1] = True
        before = card.messages.copy()
        card.run(3, 0.0)
    assert card.iterations.tolist() == [3, 0, 3]
    moved = card.messages != before
    slots = problem.wiring.message_offsets[problem.wiring.scope_offsets]
    of_graph = slots[problem.wiring.graph_factors]
    assert not moved[of_graph[1] : of_graph[2]].any()
    assert moved[: of_graph[1]].any()


@needs_triton
def test_the_kernel_of_triton_gives_the_messages_of_pytorch():
    interpreted("import sys, test_card_messages\ntest_card_messages.compare_kernel()\n")


def compare_kernel():
    """Sweep twice with PyTorch and twice in Triton's interpreter, from the same messages."""
    from structlearn._src.cuda import pairwise

    for eps, even, barred in [
        ((1.0, 1.0), True, 0.0), ((0.0, 1.0), False, 0.1), ((0.3, 0.3), False, 0.0),
        ((0.0, 0.0), True, 0.1),
    ]:  # fmt: skip
        problem = loopy(7, eps, even, barred)
        found = []
        for most in (0, 64):
            pairwise.MOST_STATES = most
            with on_card():
                card = make_messenger(problem, damping=0.2)
                card.run(2, 0.0)
            found.append((np.exp(card.messages), card.residual))
        assert found[1][0] == pytest.approx(found[0][0], abs=1e-7)
        assert found[1][1] == pytest.approx(found[0][1], abs=1e-6)


def test_answers_are_those_of_threads():
    rng = np.random.default_rng(2)
    graphs = [grid(rng.normal(size=(5, 6, 3)), 0.6 * np.eye(3)) for _ in range(2)]
    for query in ("marginals", "partition", "map"):
        wanted = infer_many(graphs, query, method="bp", random_state=0)
        with on_card():
            found = infer_many(graphs, query, method="bp", random_state=0)
            one = infer(graphs[0], query, method="bp", random_state=0)
        for ours, theirs in zip(found, wanted, strict=True):
            assert ours.value == pytest.approx(theirs.value, abs=1e-4)
        assert one.value == pytest.approx(wanted[0].value, abs=1e-4)


@pytest.mark.filterwarnings("ignore:stopped at max_iter")
def test_labelers_of_grids_learn_there():
    rng = np.random.default_rng(0)
    truth = [(rng.random((4, 4)) > 0.5).astype(int) for _ in range(3)]
    images = [y[..., None] + 0.5 * rng.normal(size=(4, 4, 1)) for y in truth]
    settings = {"loss": "log", "inference": "bp", "max_iter": 5}
    host = GridLabeler(**settings).fit(images, truth)
    with on_card():
        card = GridLabeler(**settings).fit(images, truth)
        labels = card.predict(images)
    assert card.value_ == pytest.approx(host.value_, rel=1e-4)
    assert all((a == b).all() for a, b in zip(labels, host.predict(images), strict=True))
