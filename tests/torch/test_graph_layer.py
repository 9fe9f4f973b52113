"""Losses of graphs and grids as layers: against enumeration, differences, estimators' worlds."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

from layers import LOSSES, loss_of
from structlearn.errors import ArgumentError, ImpossibleEvidenceError, QueryError
from structlearn.torch import ChainLoss, GraphLoss, GridLoss

EDGES = torch.tensor([[4, 5], [0, 1], [1, 2], [2, 0], [6, 5], [2, 3]])  # two graphs, mixed up
GRAPHS = torch.tensor([0, 0, 0, 0, 1, 1, 1])
LABELS = torch.tensor([0, -1, 1, 2, -1, 0, 2])


def layer(loss="log", **options):
    made = GraphLoss(3, loss, reduction="none", **options).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(0))
    return made


def scores_of(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(7, 3, dtype=torch.double, generator=generator).requires_grad_()


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_those_of_enumeration(loss, hidden):
    made = layer(loss, inference="exact")
    scores = scores_of()
    labels = LABELS if hidden else LABELS.clamp(min=0)
    tables = torch.randn(6, 3, 3, dtype=torch.double)
    found = made(scores, labels, EDGES, GRAPHS, tables)
    for g, nodes in enumerate([range(4), range(4, 7)]):
        own = [i for i, pair in enumerate(EDGES.tolist()) if pair[0] in nodes]
        pairs = [tuple(v - nodes[0] for v in EDGES[i].tolist()) for i in own]
        edges = [(tables[i] + made.transitions[0]).detach().numpy() for i in own]
        mine = scores[list(nodes)].detach().numpy()
        expected = loss_of(mine, edges, pairs, labels[list(nodes)].tolist(), loss)
        assert found[g].item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("loss", ["log", "eps", "marginal", "hybrid"])
def test_gradients(loss):
    made = layer(loss, inference="exact")
    tables = torch.randn(6, 3, 3, dtype=torch.double).requires_grad_()

    def losses(scores, tables, shared):
        own = {"transitions": shared}
        return torch.func.functional_call(made, own, (scores, LABELS, EDGES, GRAPHS, tables))

    shared = made.transitions.detach().requires_grad_()
    assert torch.autograd.gradcheck(losses, (scores_of(), tables, shared))


@pytest.mark.parametrize("loss", ["log", "hinge", "marginal", "eps", "hybrid"])
def test_hidden_states_are_summed_out(loss):
    """By enumeration of labels with the soft maximum of their hidden states."""
    made = layer(loss, hidden_states=2)
    eps = 1.0 if loss in ("log", "marginal", "hybrid") else 0.5
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(7, 3, 2, dtype=torch.double, generator=generator)
    scores[1, 2] = -torch.inf
    scores.requires_grad_()
    sums = scores.amax(2) if loss == "hinge" else eps * torch.logsumexp(scores / eps, 2)
    plain = layer(loss)
    plain.load_state_dict(made.state_dict())
    expected = plain(sums, LABELS, EDGES, GRAPHS)
    losses = made(scores, LABELS, EDGES, GRAPHS)
    torch.testing.assert_close(losses, expected)
    assert torch.equal(made.decode(scores, EDGES, GRAPHS), plain.decode(sums, EDGES, GRAPHS))
    (found,) = torch.autograd.grad(losses.sum(), scores)
    (by_sums,) = torch.autograd.grad(expected.sum(), sums)
    torch.testing.assert_close(found.sum(2)[:, :2], by_sums[:, :2])
    assert found[1, 2].eq(0.0).all()
    with pytest.raises(ArgumentError, match="scores"):
        made(scores[..., 0], LABELS, EDGES, GRAPHS)


def test_hidden_states_have_one_temperature():
    with pytest.raises(ArgumentError, match=r"hidden_states.*eps_h=0.5"):
        GridLoss(2, "hybrid", hidden_states=2, eps_h=0.5)
    with pytest.raises(ArgumentError, match="hidden_states"):
        GraphLoss(2, hidden_states=0)


def test_forbidden_pairs():
    """They are tables of minus infinity, in the direction of the edges."""
    never = torch.zeros(1, 3, 3, dtype=torch.double)
    never[0, 0, 1] = never[0, 2, 2] = -torch.inf
    labels = torch.tensor([0, -1, 1, 0, -1, 0, 2])
    made = layer(forbidden=[(0, 1), (2, 2)])
    expected = layer()(scores_of(), labels, EDGES, GRAPHS, never)
    torch.testing.assert_close(made(scores_of(), labels, EDGES, GRAPHS), expected)
    with pytest.raises(ImpossibleEvidenceError, match="graph 0"):
        made(scores_of(), torch.tensor([0, 1, -1, -1, -1, -1, -1]), EDGES, GRAPHS)
    assert list(made.state_dict()) == ["transitions"]
    grid = GridLoss(2, forbidden=[(0, 1)], inference="exact")
    best = grid.decode(torch.randn(1, 3, 4, 2, generator=torch.Generator().manual_seed(0)))[0]
    assert (best[:, 1:] <= best[:, :-1]).all()
    assert (best[1:] <= best[:-1]).all()
    for wrong in ([(0, 2)], "BIO", 3):
        with pytest.raises(ArgumentError, match=r"forbidden|BIO"):
            GridLoss(2, forbidden=wrong)


def test_a_path_is_a_chain():
    chain = ChainLoss(3, "hybrid").double()
    made = GraphLoss(3, "hybrid", transitions=False)
    scores = torch.randn(6, 3, dtype=torch.double)
    labels = torch.tensor([0, 1, -1, 2, 2, -1])
    nodes = scores.clone()
    nodes[0] += chain.starts.detach()
    nodes[-1] += chain.ends.detach()
    edges = torch.stack([torch.arange(5), torch.arange(1, 6)], 1)
    found = made(nodes, labels, edges, transitions=chain.transitions.detach()[None])
    torch.testing.assert_close(found, chain(scores[None], labels[None]).detach())
    assert (
        made.decode(nodes, edges, transitions=chain.transitions[None]).tolist()
        == (chain.decode(scores[None])[0])
    )
    torch.testing.assert_close(
        made.marginals(nodes, edges, transitions=chain.transitions[None]),
        chain.marginals(scores[None])[0].detach(),
    )


def test_messages_go_on_from_where_they_stood():
    """One sweep a call, from the memory of the call before, end where one long call does."""
    torch.manual_seed(0)
    scores = torch.randn(1, 6, 6, 2, dtype=torch.double)
    labels = torch.where(torch.rand(1, 6, 6) < 0.2, 1, -1)
    whole = GridLoss(2, inference="bp").double()
    paired = GridLoss(2, inference="bp", sweeps=1).double()
    with torch.no_grad():
        whole.transitions.copy_(0.8 * torch.eye(2))
    paired.load_state_dict(whole.state_dict())
    expected = whole(scores, labels)
    memory = paired.begin(labels)
    first = paired(scores, labels, memory=memory)
    for _ in range(60):
        last = paired(scores, labels, memory=memory)
    torch.testing.assert_close(last, expected, atol=1e-4, rtol=0)
    assert abs(first - expected) > 1e-4
    torch.testing.assert_close(paired(scores, labels), first)  # no memory: from the beginning


@pytest.mark.parametrize("loss", ["log", "marginal"])
def test_grids_are_graphs(loss):
    """Edges by direction, some pixels outside the mask."""
    torch.manual_seed(1)
    made = GridLoss(2, loss, neighbours=8, reduction="none").double()
    scores = torch.randn(2, 3, 3, 2, dtype=torch.double).requires_grad_()
    labels = torch.randint(-1, 2, (2, 3, 3))
    mask = torch.ones(2, 3, 3).bool()
    mask[1, :, 2] = False
    mask[1, 0, 0] = False
    found = made(scores, labels, mask)
    steps = [(0, 1), (1, 0), (1, 1), (1, -1)]
    for b in range(2):
        nodes = [tuple(p) for p in mask[b].nonzero().tolist()]
        pairs, tables = [], []
        for kind, (down, right) in enumerate(steps):
            for i, (r, c) in enumerate(nodes):
                if (r + down, c + right) in nodes:
                    pairs.append((i, nodes.index((r + down, c + right))))
                    tables.append(made.transitions[kind].detach().numpy())
        inside = mask[b]
        mine = scores[b][inside].detach().numpy()
        expected = loss_of(mine, tables, pairs, labels[b][inside].tolist(), loss)
        assert found[b].item() == pytest.approx(expected, abs=1e-9)
    if loss == "log":
        assert torch.autograd.gradcheck(lambda s: made(s, labels, mask), (scores,))
    decoded = made.decode(scores, mask)
    assert (decoded[~mask] == -1).all()
    assert (decoded[mask] >= 0).all()
    torch.testing.assert_close(made.marginals(scores, mask).sum(-1), mask.double())


def test_shared_tables_count_by_graph():
    """Graphs that count differently change the gradient of what they share."""
    made = layer()
    scores = scores_of()
    counts = torch.tensor([2.0, -1.0]).double()
    whole = torch.autograd.grad(made(scores, LABELS, EDGES, GRAPHS) @ counts, made.transitions)[0]
    parts = [
        torch.autograd.grad(made(scores, LABELS, EDGES, GRAPHS)[g], made.transitions)[0]
        for g in range(2)
    ]
    torch.testing.assert_close(whole, 2.0 * parts[0] - parts[1])


def test_learning_with_few_labels():
    """One label in four is enough for a net of a few weights to paint stripes."""
    torch.manual_seed(0)
    truth = (torch.arange(8) // 2 % 2).expand(4, 8, 8).clone()
    inputs = truth[..., None] + 0.7 * torch.randn(4, 8, 8, 1)
    labels = torch.where(torch.rand(4, 8, 8) < 0.25, truth, -1)
    network = torch.nn.Linear(1, 2)
    made = GridLoss(2, "marginal")
    optimiser = torch.optim.Adam([*network.parameters(), *made.parameters()], lr=0.1)
    losses = []
    for _ in range(40):
        optimiser.zero_grad()
        loss = made(network(inputs), labels)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    found = made.decode(network(inputs)) == truth
    alone = network(inputs).argmax(-1) == truth
    assert found.float().mean() > alone.float().mean()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"edges": torch.tensor([[0, 3]])}, "edges"),
        ({"edges": torch.tensor([[0, 0]])}, "edges"),
        ({"edges": torch.tensor([0, 1])}, "edges"),
        ({"labels": torch.tensor([0, 1, 2])}, "labels"),
        ({"labels": torch.tensor([0, 1])}, "labels"),
        ({"graphs": torch.tensor([1, 1, 1])}, "graphs"),
        ({"graphs": torch.tensor([0, 1, 1])}, "edges.*two graphs"),
        ({"scores": torch.zeros(3, 3)}, "scores"),
        ({"scores": torch.zeros(0, 2), "labels": torch.zeros(0).long()}, "scores"),
        ({"scores": torch.full((3, 2), torch.nan)}, "scores"),
        ({"transitions": torch.zeros(3, 2, 2)}, "transitions"),
        ({"transitions": torch.tensor(1.0)}, "transitions"),
        ({"transitions": torch.full((1, 2, 2), torch.nan)}, "transitions.*NaN"),
        ({"transitions": [1.0]}, "transitions.*tensor"),
        ({"labels": [0, 0, 0]}, "labels.*tensor"),
        ({"edges": [[0, 1]]}, "edges.*tensor"),
        ({"edges": None}, "edges must be a tensor"),
        ({"labels": None}, "labels must be a tensor"),
        ({"graphs": [0, 0, 0]}, "graphs.*tensor"),
        ({"scores": torch.zeros(3, 2, device="meta")}, "devices"),
        ({"edges": torch.zeros(1, 2, device="meta").long()}, "devices.*edges on meta"),
        ({"graphs": torch.zeros(3, device="meta").long()}, "devices.*graphs on meta"),
    ],
)
def test_bad_input_is_named(change, match):
    good = {
        "scores": torch.zeros(3, 2),
        "labels": torch.zeros(3, dtype=torch.long),
        "edges": torch.tensor([[0, 1], [1, 2]]),
    }
    with pytest.raises(ArgumentError, match=match):
        GraphLoss(2)(**(good | change))


def test_bad_grids_are_named():
    with pytest.raises(ArgumentError, match="labels must be a tensor"):
        GridLoss(2)(torch.zeros(1, 2, 2, 2), None)  # the loss of no labels would be 0
    with pytest.raises(ArgumentError, match="labels must be a tensor"):
        GridLoss(2).begin(None)
    with pytest.raises(ArgumentError, match="neighbours"):
        GridLoss(2, neighbours=6)
    with pytest.raises(ArgumentError, match="mask"):
        GridLoss(2)(torch.zeros(1, 2, 2, 2), torch.zeros(1, 2, 2).long(), torch.zeros(1, 2, 2))
    with pytest.raises(ArgumentError, match="scores"):
        GridLoss(2)(torch.zeros(0, 2, 2, 2), torch.zeros(0, 2, 2).long())
    with pytest.raises(ArgumentError, match="transitions"):
        GridLoss(2).decode(torch.zeros(1, 1, 4, 2), transitions=torch.zeros(3, 2, 2))
    for label in (2, -2):
        with pytest.raises(ArgumentError, match=f"labels.*label {label}"):
            GridLoss(2)(torch.zeros(1, 2, 2, 2), torch.full((1, 2, 2), label))
    with pytest.raises(ArgumentError, match=r"devices.*labels on meta"):
        GridLoss(2)(torch.zeros(1, 2, 2, 2), torch.zeros(1, 2, 2, device="meta").long())
    with pytest.raises(ArgumentError, match=r"devices.*mask on meta"):
        GridLoss(2).decode(torch.zeros(1, 2, 2, 2), torch.ones(1, 2, 2, device="meta"))
    with pytest.raises(ArgumentError, match=r"devices.*layer on meta"):
        GridLoss(2).to("meta").decode(torch.zeros(1, 2, 2, 2))
    with pytest.raises(ArgumentError, match="inference"):
        GridLoss(2, inference="magic")
    with pytest.raises(ArgumentError, match="sweeps"):
        GridLoss(2, sweeps=0)
    scores = torch.full((1, 2, 2, 2), -torch.inf)
    with pytest.raises(ImpossibleEvidenceError, match="graph 0"):
        GridLoss(2)(scores, torch.zeros(1, 2, 2).long())


def test_worlds_are_kept_for_batches_that_come_again():
    made = layer()
    scores = scores_of()
    first = made(scores, LABELS, EDGES, GRAPHS)
    again = made(scores, LABELS, EDGES, GRAPHS)
    other = made(scores, LABELS.clamp(min=0), EDGES, GRAPHS)
    np.testing.assert_array_equal(first.detach(), again.detach())
    assert (other != first).any()


@pytest.mark.parametrize("query", ["decode", "marginals"])
def test_queries_refuse_what_has_no_answer(query):
    ask = getattr(GraphLoss(2), query)
    edges = torch.tensor([[0, 1]])
    with pytest.raises(ArgumentError, match=r"scores.*node 1"):
        ask(torch.tensor([[0.0, 0.0], [torch.nan, 0.0]]), edges)
    graphs = torch.tensor([0, 0, 1])
    scores = torch.tensor([[0.0, 0.0], [0.0, 0.0], [-torch.inf, -torch.inf]])
    with pytest.raises(ImpossibleEvidenceError, match="graph 1"):
        ask(scores, edges, graphs)


def test_a_second_backward_pass_is_the_first():
    """Where messages stood is not moved on by solving again for graphs that count differently."""
    torch.manual_seed(0)
    made = GridLoss(3, inference="bp", sweeps=1, reduction="none").double()
    torch.nn.init.normal_(made.transitions)
    scores = torch.randn(2, 4, 4, 3, dtype=torch.double)
    labels = torch.where(torch.rand(2, 4, 4) < 0.3, 1, -1)
    memory = made.begin(labels)
    made(scores, labels, memory=memory)
    total = made(scores, labels, memory=memory) @ torch.tensor([1.0, 2.0]).double()
    first = torch.autograd.grad(total, made.transitions, retain_graph=True)[0]
    torch.testing.assert_close(torch.autograd.grad(total, made.transitions)[0], first)


@pytest.mark.parametrize("made", [GridLoss(2), GridLoss(2, inference="bp", sweeps=1)])
def test_second_derivatives_are_refused_and_not_wrong(made):
    x = torch.randn(1, 2, 2, 2, requires_grad=True)
    loss = made(x**2, torch.zeros(1, 2, 2).long())
    by_x = torch.autograd.grad(loss, x, create_graph=True)[0]
    torch.testing.assert_close(by_x, torch.autograd.grad(loss, x)[0])
    with pytest.raises(QueryError, match="first derivatives"):
        by_x.square().sum().backward()


def test_changes_of_a_layer_count():
    """What was planned for other options is not used again."""
    made = layer(inference="bp", sweeps=1)
    scores = scores_of()
    short = made(scores, LABELS, EDGES, GRAPHS)
    made.sweeps = None
    made.inference = "exact"
    exact = made(scores, LABELS, EDGES, GRAPHS)
    torch.testing.assert_close(exact, layer(inference="exact")(scores, LABELS, EDGES, GRAPHS))
    assert (exact != short).any()


def test_copies_are_small_and_give_the_same():
    made = layer("marginal")
    bare = len(pickle.dumps(made))
    expected = made(scores_of(), LABELS, EDGES, GRAPHS)
    assert len(pickle.dumps(made)) == bare  # what was planned stays behind
    for copied in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        torch.testing.assert_close(copied(scores_of(), LABELS, EDGES, GRAPHS), expected)


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 3, 2)])
@pytest.mark.parametrize("neighbours", [4, 8])
def test_tables_of_the_edges_that_leave_a_pixel(shape, neighbours):
    """A row of three pixels has as many edges as there are kinds, which must not be mixed up."""
    torch.manual_seed(0)
    made = GridLoss(2, neighbours=neighbours, reduction="none").double()
    scores = torch.randn(*shape, 2, dtype=torch.double)
    labels = torch.randint(-1, 2, shape)
    kinds = neighbours // 2
    tables = torch.randn(*shape, kinds, 2, 2, dtype=torch.double)
    found = made(scores, labels, None, tables)
    steps = [(0, 1), (1, 0), (1, 1), (1, -1)][:kinds]
    for b in range(shape[0]):
        nodes = [(r, c) for r in range(shape[1]) for c in range(shape[2])]
        pairs, edges = [], []
        for i, (r, c) in enumerate(nodes):
            for kind, (down, right) in enumerate(steps):
                if (r + down, c + right) in nodes:
                    pairs.append((i, nodes.index((r + down, c + right))))
                    edges.append((tables[b, r, c, kind] + made.transitions[kind]).detach().numpy())
        mine = scores[b].flatten(0, 1).numpy()
        expected = loss_of(mine, edges, pairs, labels[b].flatten().tolist(), "log")
        assert found[b].item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # PyTorch's own, while it traces
def test_compiled_layers():
    made = layer()
    asked = scores_of(), EDGES, GRAPHS
    compiled = torch.compile(made.decode, backend="aot_eager")
    assert (compiled(*asked) == made.decode(*asked)).all()
