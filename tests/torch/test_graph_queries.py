"""k best, draws and entropies of graphs and grids as layers: against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from layers import chain_pairs, scores_of
from structlearn.errors import (
    ArgumentError,
    ImpossibleEvidenceError,
    InferenceWarning,
    QueryError,
    TooWideError,
)
from structlearn.torch import ChainLoss, GraphLoss, GridLoss

GRAPHS = torch.tensor([0, 0, 0, 0, 1, 1, 1])
#: By name: edges of two graphs of four and three nodes, given in any order.
SHAPES = {
    "paths": [[4, 5], [0, 1], [1, 2], [5, 6], [2, 3]],
    "trees": [[4, 5], [0, 1], [2, 0], [6, 4], [0, 3]],
    "forests": [[4, 5], [0, 1]],
    "loops": [[4, 5], [0, 1], [1, 2], [2, 0], [6, 5], [2, 3], [4, 6]],
    "doubled": [[4, 5], [0, 1], [1, 0], [1, 2], [5, 4]],
}
shapes = pytest.mark.parametrize("shape", SHAPES)


class Case:
    """Two graphs with tables, and all scores of each by enumeration."""

    def __init__(self, shape, seed=0, scale=1.0, **options):
        generator = torch.Generator().manual_seed(seed)
        self.edges = torch.tensor(SHAPES[shape])
        self.layer = GraphLoss(3, **options).double()
        with torch.no_grad():
            self.layer.transitions.normal_(generator=generator)
        sizes = (7, 3), (len(self.edges), 3, 3)
        self.scores, self.tables = (
            scale * torch.randn(*size, dtype=torch.double, generator=generator) for size in sizes
        )

    def ask(self, query, *number, **more):
        ask = getattr(self.layer, query)
        return ask(self.scores, self.edges, *number, GRAPHS, self.tables, **more)

    def enumerated(self):
        """Scores of all labellings of each graph, in the order of `labellings`."""
        for nodes in (range(4), range(4, 7)):
            own = [i for i, pair in enumerate(self.edges.tolist()) if pair[0] in nodes]
            pairs = [tuple(v - nodes[0] for v in self.edges[i].tolist()) for i in own]
            tables = [(self.tables[i] + self.layer.transitions[0]).detach().numpy() for i in own]
            yield nodes, scores_of(self.scores[list(nodes)].numpy(), tables, pairs)


def labellings(n, states=3):
    return np.array(list(itertools.product(range(states), repeat=n)))


def probabilities(scores):
    p = np.exp(scores - scores.max())
    return p / p.sum()


def entropy_of(scores):
    p = probabilities(scores)
    return -(p[p > 0] * np.log(p[p > 0])).sum()


# ---- k best --------------------------------------------------------------------------------


@shapes
@pytest.mark.parametrize("k", [1, 2, 30])
@pytest.mark.parametrize("inference", ["auto", "exact"])
def test_k_best_against_sorted_enumeration(shape, k, inference):
    case = Case(shape, inference=inference)
    values, labels = case.ask("k_best", k)
    assert values.shape == (2, k)
    assert labels.shape == (k, 7)
    for g, (nodes, scores) in enumerate(case.enumerated()):
        best = np.argsort(-scores)[:k]
        there = min(k, len(scores))
        np.testing.assert_allclose(values[g, :there], scores[best], atol=1e-9)
        assert (values[g, there:] == -torch.inf).all()
        found = labels[:, list(nodes)].numpy()
        assert (found[:there] == labellings(len(nodes))[best]).all()
        assert (found[there:] == -1).all()


@pytest.mark.parametrize("shape", ["trees", "loops"])
def test_k_best_with_ties_are_different_and_rank_alike(shape):
    case = Case(shape)
    case.scores = case.scores.round()
    case.tables = torch.zeros_like(case.tables)
    with torch.no_grad():
        case.layer.transitions.zero_()
    values, labels = case.ask("k_best", 27)
    for g, (nodes, scores) in enumerate(case.enumerated()):
        np.testing.assert_allclose(values[g], np.sort(scores)[::-1][:27], atol=1e-9)
        found = [tuple(row) for row in labels[:, list(nodes)].tolist()]
        assert len(set(found)) == 27
        at = [list(map(tuple, labellings(len(nodes)))).index(row) for row in found]
        np.testing.assert_allclose(scores[at], values[g], atol=1e-9)
    again = case.ask("k_best", 27)
    assert (again[1] == labels).all()


@pytest.mark.parametrize("tied", [False, True])
def test_k_best_of_a_path_are_those_of_a_chain(tied):
    torch.manual_seed(0)
    chain = ChainLoss(3, transitions=False)
    scores = torch.zeros(5, 3) if tied else torch.randn(5, 3)
    table = torch.zeros(3, 3) if tied else torch.randn(3, 3)
    edges = torch.tensor(chain_pairs(5))
    values, paths = chain.k_best(scores[None], 12, transitions=table)
    mine = GraphLoss(3, transitions=False).k_best(scores, edges, 12, transitions=table[None])
    torch.testing.assert_close(mine[0], values)
    assert mine[1].tolist() == paths[0]
    images = GridLoss(3, transitions=False)
    both = torch.stack([table, torch.zeros(3, 3)])
    of_grid = images.k_best(scores[None, None], 12, transitions=both)
    torch.testing.assert_close(of_grid[0], values)
    assert of_grid[1][:, 0, 0].tolist() == paths[0]


def test_k_best_leave_out_what_is_ruled_out():
    scores = torch.zeros(3, 2)
    scores[0, 1] = scores[2, 0] = -torch.inf
    edges = torch.tensor([[0, 1], [1, 2], [2, 0]])
    values, labels = GraphLoss(2, transitions=False).k_best(scores, edges, 4)
    assert values.tolist() == [[0.0, 0.0, -torch.inf, -torch.inf]]
    assert sorted(labels[:2].tolist()) == [[0, 0, 1], [0, 1, 1]]
    assert (labels[2:] == -1).all()


# ---- draws ---------------------------------------------------------------------------------


@shapes
def test_draws_follow_the_distribution(shape):
    """Chi-square over all labellings of each graph that are expected often enough."""
    case = Case(shape, scale=0.5)
    n = 20_000
    drawn = case.ask("sample", n, generator=torch.Generator().manual_seed(3))
    assert drawn.shape == (n, 7)
    for nodes, scores in case.enumerated():
        powers = 3 ** np.arange(len(nodes))[::-1]
        counts = np.bincount(drawn[:, list(nodes)].numpy() @ powers, minlength=len(scores))
        expected = n * probabilities(scores)
        often = expected > 5
        assert often.sum() > 10
        cells = [np.append(each[often], each[~often].sum()) for each in (counts, expected)]
        kept = cells[1] > 0  # there need not be rare ones
        assert chisquare(*(each[kept] for each in cells)).pvalue > 1e-3
    again = case.ask("sample", n, generator=torch.Generator().manual_seed(3))
    assert (again == drawn).all()
    other = case.ask("sample", n, generator=torch.Generator().manual_seed(4))
    assert (other != drawn).any()


def test_draws_of_grids_keep_to_the_mask():
    torch.manual_seed(0)
    made = GridLoss(2, neighbours=8)
    scores = torch.randn(2, 3, 3, 2)
    mask = torch.ones(2, 3, 3).bool()
    mask[1, :, 2] = False
    drawn = made.sample(scores, 4000, mask, generator=torch.Generator().manual_seed(0))
    assert drawn.shape == (4000, 2, 3, 3)
    assert (drawn[:, ~mask] == -1).all()
    often = (drawn == 1).double().mean(0)
    exact = made.marginals(scores, mask)[..., 1].double()
    # Five standard deviations of a frequency over 4,000 draws, at most.
    torch.testing.assert_close(often, exact, atol=5 * 0.5 / 4000**0.5, rtol=0)


# ---- entropies -----------------------------------------------------------------------------


@shapes
@pytest.mark.parametrize("inference", ["auto", "exact"])
def test_entropies_against_enumeration(shape, inference):
    case = Case(shape, inference=inference)
    found = case.ask("entropy")
    for g, (_, scores) in enumerate(case.enumerated()):
        assert found[g].item() == pytest.approx(entropy_of(scores), abs=1e-10)


@pytest.mark.parametrize("inference", ["exact", "bp", "trw"])
def test_numbers_added_to_all_scores_change_no_entropy(inference):
    case = Case("loops", inference=inference)
    right = case.ask("entropy")
    case.scores = case.scores + 1e9
    case.tables = case.tables - 1e9
    torch.testing.assert_close(case.ask("entropy"), right, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("inference", ["bp", "trw"])
def test_entropies_of_forests_are_exact_whatever_messages_do(inference):
    case = Case("trees", inference=inference)
    right = Case("trees").ask("entropy")
    torch.testing.assert_close(case.ask("entropy"), right)
    case.tables.requires_grad_()
    case.ask("entropy").sum().backward()
    assert case.tables.grad.isfinite().all()


@pytest.mark.parametrize("inference", ["bp", "trw"])
def test_entropies_of_forests_are_exact_beside_graphs_with_cycles(inference):
    case = Case("paths", inference=inference)
    case.scores.requires_grad_()
    right = torch.autograd.grad(case.ask("entropy")[1], case.scores)[0]
    case.edges = torch.cat([case.edges, torch.tensor([[3, 0]])])  # the first path becomes a ring
    case.tables = torch.cat([case.tables, case.tables[:1]])
    both = case.ask("entropy")
    torch.testing.assert_close(torch.autograd.grad(both[1], case.scores)[0], right)
    with pytest.raises(QueryError, match="graph 0 is an estimate"):
        case.ask("entropy").sum().backward()


@shapes
def test_gradients_of_entropies(shape):
    """By scores, tables of edges, and the shared table, for graphs that count differently."""
    case = Case(shape)

    def entropies(scores, tables, shared):
        own = {"transitions": shared}
        asked = scores, case.edges, GRAPHS, tables
        return torch.func.functional_call(_Entropy(case.layer), _prefixed(own), asked)

    inputs = case.scores, case.tables, case.layer.transitions.detach()
    assert torch.autograd.gradcheck(entropies, [t.clone().requires_grad_() for t in inputs])


class _Entropy(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, *asked):
        return self.layer.entropy(*asked)


def _prefixed(parameters):
    return {f"layer.{name}": value for name, value in parameters.items()}


def test_gradients_of_entropies_of_grids():
    torch.manual_seed(0)
    made = GridLoss(2, neighbours=8).double()
    scores = torch.randn(2, 3, 3, 2, dtype=torch.double, requires_grad=True)
    mask = torch.rand(2, 3, 3) < 0.8
    assert torch.autograd.gradcheck(lambda s: made.entropy(s, mask), (scores,))
    made.entropy(scores, mask)[0].backward()
    assert (scores.grad[1] == 0).all()
    assert (made.transitions.grad != 0).any()


def test_what_is_ruled_out_has_no_entropy_and_no_gradient():
    scores = torch.zeros(3, 2, dtype=torch.double)
    scores[0, 1] = -torch.inf
    scores.requires_grad_()
    edges = torch.tensor([[0, 1], [1, 2], [2, 0]])
    found = GraphLoss(2, transitions=False).entropy(scores, edges)
    assert found.item() == pytest.approx(np.log(4))
    found.backward()
    assert scores.grad.isfinite().all()


def test_second_derivatives_of_entropies_are_refused():
    case = Case("loops")
    case.scores.requires_grad_()
    by = torch.autograd.grad(case.ask("entropy").sum(), case.scores, create_graph=True)[0]
    with pytest.raises(QueryError, match="first derivatives"):
        by.square().sum().backward()


def test_the_entropy_of_messages_is_that_of_bethe_and_has_no_gradient():
    """Beliefs of a single loop without fields are uniform, its Bethe entropy is a closed form."""
    n, strength = 8, 0.5
    edges = torch.tensor([*chain_pairs(n), (n - 1, 0)])
    scores = torch.zeros(n, 2, dtype=torch.double, requires_grad=True)
    table = strength * torch.eye(2, dtype=torch.double)[None]
    made = GraphLoss(2, transitions=False, inference="bp")
    found = made.entropy(scores, edges, transitions=table)
    pair = probabilities(np.array([strength, 0.0, 0.0, strength]))
    bethe = n * (-(pair * np.log(pair)).sum()) - n * np.log(2)  # edges, less nodes once
    assert found.item() == pytest.approx(bethe, abs=1e-6)
    exact = GraphLoss(2, transitions=False, inference="exact")
    assert found.item() != pytest.approx(exact.entropy(scores, edges, None, table).item(), abs=1e-6)
    other = GraphLoss(2, transitions=False, inference="trw")
    assert other.entropy(scores, edges, None, table).item() != pytest.approx(bethe, abs=1e-6)
    nothing = other.entropy(scores, edges, None, 0.0 * table)
    assert nothing.item() == pytest.approx(n * np.log(2), abs=1e-6)
    with pytest.raises(QueryError, match=r"no gradient.*inference='exact'"):
        found.backward()


def test_entropies_that_cannot_be_trusted_are_told():
    """A frustrated grid at low temperature: messages do not settle."""
    torch.manual_seed(0)
    made = GridLoss(2, transitions=False, inference="bp")
    signs = torch.randint(2, (1, 8, 8, 2, 1, 1)) * 2.0 - 1.0
    with pytest.warns(InferenceWarning, match="unreliable"):
        made.entropy(0.3 * torch.randn(1, 8, 8, 2), transitions=6.0 * signs * torch.eye(2))


# ---- what is refused -----------------------------------------------------------------------


@pytest.mark.parametrize("inference", ["bp", "trw"])
@pytest.mark.parametrize("query", ["k_best", "sample"])
def test_messages_give_no_draws_and_no_ranks(query, inference):
    case = Case("loops", inference=inference)
    with pytest.raises(QueryError, match=f"graph 0 has a cycle.*'{inference}'.*inference='auto'"):
        case.ask(query, 2)
    of_forest = Case("trees", inference=inference).ask(query, 2)
    assert len(of_forest) == 2


@pytest.mark.parametrize("query", ["k_best", "sample"])
def test_grids_too_wide_are_refused(query):
    with pytest.raises(TooWideError, match=r"graph 0.*narrower"):
        getattr(GridLoss(4), query)(torch.zeros(1, 30, 30, 4), 2)
    with pytest.raises(TooWideError, match="table"):
        GridLoss(4, inference="exact").entropy(torch.zeros(1, 30, 30, 4))


def test_more_labellings_than_memory_holds():
    with pytest.raises(TooWideError, match="lower k"):
        GridLoss(2).k_best(torch.zeros(1, 5, 9, 2), 10**8)
    with pytest.raises(TooWideError, match="lower k"):  # more than there are
        GridLoss(2).k_best(torch.zeros(1, 2, 2, 2), 10**9)


@pytest.mark.parametrize("n", [10**12, 10**19, 10**400])
def test_more_draws_than_memory_holds(n):
    edges = torch.tensor([[0, 1]])
    with pytest.raises(TooWideError, match=rf"{n} draws need {4 * n} numbers.*ask for fewer"):
        GridLoss(2).sample(torch.zeros(1, 2, 2, 2), n)
    with pytest.raises(TooWideError, match=rf"{n} draws need {2 * n} numbers.*ask for fewer"):
        GraphLoss(2).sample(torch.zeros(2, 2), edges, n)
    with pytest.raises(TooWideError, match=rf"{n} draws need {6 * n} numbers.*ask for fewer"):
        ChainLoss(2).sample(torch.zeros(2, 3, 2), n)
    with pytest.raises(TooWideError, match=rf"k={n} best .*ask for fewer"):
        ChainLoss(2).k_best(torch.zeros(2, 3, 2), n)


@pytest.mark.parametrize("layer", [ChainLoss, GridLoss])
def test_a_seed_in_the_place_of_a_generator_is_named(layer):
    scores = torch.zeros(1, 2, 2) if layer is ChainLoss else torch.zeros(1, 2, 2, 2)
    with pytest.raises(ArgumentError, match=r"generator=3 must be a torch\.Generator"):
        layer(2).sample(scores, generator=3)


@pytest.mark.parametrize("query", ["k_best", "sample"])
@pytest.mark.parametrize("number", [0, -1, 1.5, "two"])
def test_bad_numbers_are_named(query, number):
    with pytest.raises(ArgumentError, match=r"^n=|^k="):
        getattr(GridLoss(2), query)(torch.zeros(1, 2, 2, 2), number)
    with pytest.raises(ArgumentError, match=r"^n=|^k="):
        getattr(GraphLoss(2), query)(torch.zeros(2, 2), torch.tensor([[0, 1]]), number)


@pytest.mark.parametrize("query", ["k_best", "sample", "entropy"])
@pytest.mark.parametrize("shape", ["trees", "loops"])
def test_graphs_without_a_labelling_are_named(query, shape):
    case = Case(shape)
    number = () if query == "entropy" else (2,)
    case.scores[5] = -torch.inf
    with pytest.raises(ImpossibleEvidenceError, match="graph 1"):
        case.ask(query, *number)
    case.scores[1, 1] = torch.nan
    with pytest.raises(ArgumentError, match="scores: node 1"):
        case.ask(query, *number)


def test_a_batch_that_memory_does_not_hold_at_once(monkeypatch):
    """Graphs one after the other give what all of them together give."""
    case = Case("loops")
    values, labels = case.ask("k_best", 5)
    refuse_batches(monkeypatch)
    alone = case.ask("k_best", 5)
    torch.testing.assert_close(alone[0], values)
    assert (alone[1] == labels).all()
    assert case.ask("sample", 3).shape == (3, 7)


def refuse_batches(monkeypatch):
    from structlearn.extend import METHODS

    for name in ("chain", "tree", "junction_tree"):
        method = METHODS[name]
        refuses = method.refuses

        def only_one(problem, query, options, refuses=refuses):
            many = problem.wiring.n_graphs > 1
            return "too many" if many else refuses(problem, query, options)

        monkeypatch.setattr(method, "refuses", only_one)
