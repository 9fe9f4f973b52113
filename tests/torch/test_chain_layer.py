"""Losses of chains as a layer: against enumeration, differences, and other ways to call it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import naive
from layers import LOSSES, chain_pairs, loss_of, scores_of
from structlearn import SequenceLabeler
from structlearn._src.learn.loss import make_loss
from structlearn._src.torch.plain_chain import chain_losses
from structlearn.errors import ArgumentError, ImpossibleEvidenceError
from structlearn.torch import CRF, ChainLoss

MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0]]).bool()


def problem(seed, hidden=False, states=3):
    """Scores and labels of three sequences of lengths 4, 3 and 1."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(3, 4, states, dtype=torch.double, generator=generator)
    labels = torch.randint(states, (3, 4), generator=generator)
    if hidden:
        labels[torch.rand(3, 4, generator=generator) < 0.5] = -1
    return scores.requires_grad_(), labels


def layer(loss="log", states=3, seed=0, **options):
    torch.manual_seed(seed)
    made = ChainLoss(states, loss, reduction="none", **options).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_()
    return made


def by_enumeration(made, scores, labels, loss, **options):
    """Losses of the three sequences."""
    edges = made.transitions.detach().numpy()
    out = []
    for i, length in enumerate(MASK.sum(1).tolist()):
        nodes = scores[i, :length].detach().numpy().copy()
        nodes[0] += made.starts.detach().numpy()
        nodes[-1] += made.ends.detach().numpy()
        pairs = chain_pairs(length)
        found = loss_of(nodes, [edges] * len(pairs), pairs, labels[i, :length].tolist(), loss)
        out.append(found)
    return np.array(out)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_those_of_enumeration(loss, hidden):
    for seed in range(3):
        scores, labels = problem(seed, hidden)
        made = layer(loss, seed=seed)
        found = made(scores, labels, MASK).detach().numpy()
        np.testing.assert_allclose(found, by_enumeration(made, scores, labels, loss), atol=1e-9)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_those_of_the_plain_recursion(loss, hidden):
    """Values and gradients by compiled loops, and by PyTorch alone, which other devices use."""
    scores, labels = problem(7, hidden)
    made = layer(loss)
    inputs = scores, made.transitions, made.starts, made.ends
    counts = torch.tensor([1.0, 2.0, -3.0]).double()  # not all alike: worlds are solved again
    found = torch.autograd.grad(made(scores, labels, MASK) @ counts, inputs)
    ends = torch.zeros(3, 4, 3, dtype=torch.double)
    ends[0, 3] = ends[1, 2] = ends[2, 0] = 1.0
    nodes = scores + ends * made.ends
    nodes = torch.cat([nodes[:, :1] + made.starts, nodes[:, 1:]], 1)
    cost = np.ones((3, 3)) - np.eye(3)
    plain = chain_losses(nodes, made.transitions, labels, MASK, make_loss(loss), _cost(cost), BOTH)
    expected = torch.autograd.grad(plain @ counts, inputs)
    for mine, other in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-9, rtol=0)


BOTH = (True, True)


def _cost(matrix):
    from structlearn._src.learn.loss import Cost

    return Cost(matrix)


@pytest.mark.parametrize("loss", ["log", "eps"])
def test_first_and_second_derivatives(loss):
    scores, labels = problem(1, hidden=True)
    made = layer(loss)
    tables = torch.randn(3, 3, 3, 3, dtype=torch.double).requires_grad_()  # one for each edge

    def losses(scores, tables, transitions):
        return torch.func.functional_call(
            made, {"transitions": transitions}, (scores, labels, MASK, tables)
        )

    inputs = scores, tables, made.transitions.detach().requires_grad_()
    assert torch.autograd.gradcheck(losses, inputs)
    assert torch.autograd.gradgradcheck(losses, inputs)


@pytest.mark.parametrize("loss", ["marginal", "hybrid"])
def test_first_derivatives_at_two_temperatures(loss):
    scores, labels = problem(3, hidden=True)
    assert torch.autograd.gradcheck(lambda s: layer(loss)(s, labels, MASK), (scores,))


@pytest.mark.parametrize("loss", ["log", "eps"])
def test_the_optimum_of_an_estimator_is_one_of_the_layer(loss):
    """The same objective, of double precision, and no gradient where the estimator ended."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(2, 7, 12)
    X = [rng.normal(size=(length, 3)) for length in lengths]
    y = [rng.integers(0, 3, length) for length in lengths]
    model = SequenceLabeler(loss=loss, C=0.7, solver="lbfgs", tol=1e-14, gradient_tol=1e-9)
    model.fit(X, y)
    made = ChainLoss(3, loss, transitions=False, reduction="sum").double()
    weights = torch.from_numpy(model.weights_).requires_grad_()
    features = torch.nn.utils.rnn.pad_sequence(list(map(torch.tensor, X)), batch_first=True)
    labels = torch.nn.utils.rnn.pad_sequence(list(map(torch.tensor, y)), batch_first=True)
    mask = torch.arange(features.shape[1]) < torch.tensor(lengths)[:, None]
    scores = features @ weights[:9].view(3, 3)
    value = 0.7 * made(scores, labels, mask, weights[9:].view(3, 3)) + 0.5 * weights.square().sum()
    assert value.item() == pytest.approx(model.value_, rel=1e-10)
    (gradient,) = torch.autograd.grad(value, weights)
    assert gradient.abs().max() < 1e-6


def test_hidden_states_are_summed_out():
    scores = torch.randn(2, 3, 2, 4, dtype=torch.double).requires_grad_()
    labels = torch.tensor([[0, 1, 1], [1, -1, 0]])
    for loss, eps in [("log", 1.0), ("latent-hinge", 0.0), ("marginal", 1.0)]:
        made = layer(loss, states=2, hidden_states=4)
        summed = scores.logsumexp(3) if eps else scores.amax(3)
        plain = layer(loss, states=2)
        torch.testing.assert_close(made(scores, labels), plain(summed, labels))
    with pytest.raises(ArgumentError, match="hidden states"):
        made(scores[:, :, :1], labels)


# ---- queries -------------------------------------------------------------------------------


def paths_of(made, scores, i):
    """All paths of one sequence, and their scores."""
    length = int(MASK[i].sum())
    nodes = scores[i, :length].detach().numpy().copy()
    nodes[0] += made.starts.detach().numpy()
    nodes[-1] += made.ends.detach().numpy()
    edges = [made.transitions.detach().numpy()] * (length - 1)
    every = list(itertools.product(range(3), repeat=length))
    return every, scores_of(nodes, edges, chain_pairs(length))


@pytest.mark.parametrize("loss", ["log", "hinge", "hybrid"])
def test_labels_without_hidden_states_that_are_possible(loss):
    """They count as ruled out, and their gradient is 0."""
    torch.manual_seed(4)
    made = ChainLoss(3, loss, hidden_states=2)
    scores = torch.randn(2, 3, 3, 2)
    scores[0, 1, 2] = scores[1, 0, 1, 0] = -torch.inf
    far = scores.clamp(min=-1e4).requires_grad_()
    scores.requires_grad_()
    labels = torch.tensor([[0, -1, 1], [1, 2, 0]])
    losses = made(scores, labels), made(far, labels)
    torch.testing.assert_close(*losses)
    grads = [torch.autograd.grad(one, [x, *made.parameters()]) for one, x in
             zip(losses, (scores, far), strict=True)]  # fmt: skip
    torch.testing.assert_close(*grads)
    with pytest.raises(ImpossibleEvidenceError, match="sequence 0"):
        made(scores, torch.tensor([[0, 2, 1], [1, 2, 0]]))


def test_best_paths():
    scores, _ = problem(11)
    made = layer()
    decoded = made.decode(scores, MASK)
    values, best = made.k_best(scores, 4, MASK)
    for i in range(3):
        every, totals = paths_of(made, scores, i)
        order = np.argsort(-totals)[:4]
        assert decoded[i] == list(every[order[0]])
        assert best[i] == [list(every[j]) for j in order]
        np.testing.assert_allclose(values[i, : len(order)].numpy(), totals[order])
    assert len(best[2]) == 3  # a single position has no fourth path
    assert values[2, 3] == -torch.inf


def test_numbers_added_to_all_scores_change_no_entropy():
    made = layer()
    generator = torch.Generator().manual_seed(0)
    scores, tables = (
        torch.randn(*size, dtype=torch.double, generator=generator)
        for size in [(2, 5, 3), (2, 4, 3, 3)]
    )
    right = made.entropy(scores, transitions=tables)
    found = made.entropy(scores + 1e9, transitions=tables - 1e9)
    torch.testing.assert_close(found, right, rtol=0.0, atol=1e-5)


def test_marginals_entropy_and_log_partition():
    scores, _ = problem(12)
    made = layer()
    marginals = made.marginals(scores, MASK)
    entropy = made.entropy(scores, MASK)
    for i in range(3):
        every, totals = paths_of(made, scores, i)
        value = naive.soft_max(totals, 1.0)
        p = np.exp(totals - value)
        assert made.log_partition(scores, MASK)[i].item() == pytest.approx(value)
        assert entropy[i].item() == pytest.approx(-(p * np.log(p)).sum())
        for t in range(len(every[0])):
            mine = [p[[path[t] == s for path in every]].sum() for s in range(3)]
            np.testing.assert_allclose(marginals[i, t].detach().numpy(), mine)
    assert (marginals[~MASK] == 0).all()
    assert torch.autograd.gradcheck(lambda s: made.entropy(s, MASK), (scores,))
    assert torch.autograd.gradcheck(lambda s: made.marginals(s, MASK), (scores,))


def test_marginals_without_gradients():
    scores, _ = problem(13)
    made = layer()
    with torch.no_grad():
        found = made.marginals(scores, MASK)
        entropy = made.entropy(scores, MASK)
    assert not found.requires_grad
    torch.testing.assert_close(found, made.marginals(scores, MASK).detach())
    torch.testing.assert_close(entropy, made.entropy(scores, MASK).detach())


def test_draws_are_from_the_distribution():
    scores, _ = problem(14)
    made = layer()
    generator = torch.Generator().manual_seed(0)
    drawn = made.sample(scores, 4000, MASK, generator=generator)
    assert drawn.shape == (4000, 3, 4)
    assert (drawn[:, ~MASK] == -1).all()
    marginals = made.marginals(scores, MASK).detach()
    for i, t in MASK.nonzero().tolist():
        shares = torch.bincount(drawn[:, i, t], minlength=3) / 4000
        # Three states of 24 positions: five standard errors.
        torch.testing.assert_close(shares.double(), marginals[i, t], atol=0.04, rtol=0)
    again = made.sample(scores, 4000, MASK, generator=torch.Generator().manual_seed(0))
    assert (drawn == again).all()


@pytest.mark.parametrize("forbidden", ["BIO", [("O", "I")]])
def test_forbidden_transitions(forbidden):
    scores, _ = problem(15)
    made = layer(forbidden=forbidden, names=["B", "I", "O"])
    paths = made.decode(scores, MASK)
    assert not any((2, 1) in itertools.pairwise(path) for path in paths)
    if forbidden == "BIO":
        assert all(path[0] != 1 for path in paths)
    labels = torch.tensor([[0, 2, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    with pytest.raises(ImpossibleEvidenceError, match="sequence 0"):
        made(scores, labels, MASK)
    assert torch.isfinite(made(scores, labels.clamp(max=0), MASK)).all()
    assert "_never_pairs" not in made.state_dict()


# ---- ways to call it -----------------------------------------------------------------------


def test_batches_of_batches():
    made = layer()
    scores = torch.randn(5, 3, 4, 3, dtype=torch.double)
    labels = torch.randint(3, (5, 3, 4))
    found = torch.func.vmap(lambda s, y: made(s, y, MASK))(scores, labels)
    each = [made(s, y, MASK) for s, y in zip(scores, labels, strict=True)]
    torch.testing.assert_close(found, torch.stack(each))

    def total(scores, labels):
        return made(scores, labels, MASK).sum()

    found = torch.func.vmap(torch.func.grad(total))(scores, labels)
    for s, y, mine in zip(scores, labels, found, strict=True):
        own = s.clone().requires_grad_()
        torch.testing.assert_close(mine, torch.autograd.grad(total(own, y), own)[0])


def test_single_precision_and_autocast():
    scores, labels = problem(21)
    made = layer()
    single = ChainLoss(3, reduction="none")
    single.load_state_dict(made.state_dict())
    torch.testing.assert_close(
        single(scores.float(), labels, MASK), made(scores, labels, MASK).float()
    )
    network = torch.nn.Linear(8, 3)
    inputs = torch.randn(3, 4, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = network(inputs)
        assert half.dtype == torch.bfloat16
        loss = single(half, labels, MASK)
    assert loss.dtype == torch.float32
    loss.sum().backward()
    assert torch.isfinite(network.weight.grad).all()


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # PyTorch's own, while it traces
def test_compiled_layers():
    scores, labels = problem(22)
    made = layer()
    compiled = torch.compile(made, backend="eager")
    torch.testing.assert_close(compiled(scores, labels, MASK), made(scores, labels, MASK))


def test_reductions_and_states():
    scores, labels = problem(23)
    made = layer()
    losses = made(scores, labels, MASK)
    for reduction, expected in [("sum", losses.sum()), ("mean", losses.mean())]:
        other = ChainLoss(3, reduction=reduction).double()
        other.load_state_dict(made.state_dict())
        torch.testing.assert_close(other(scores, labels, MASK), expected)
    assert set(made.state_dict()) == {"transitions", "starts", "ends"}
    assert not list(ChainLoss(3, transitions=False).parameters())


@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_labels_of_all_types(kind):
    """Numbers of a byte hold neither -1 nor 200, with which labels are compared."""
    torch.manual_seed(0)
    made = ChainLoss(200)
    scores = torch.randn(2, 3, 200)
    labels = torch.randint(100, (2, 3))
    assert made(scores, labels.to(kind)) == made(scores, labels)
    if kind != torch.uint8:
        labels[0, 1] = -1
        assert made(scores, labels.to(kind)) == made(scores, labels)


def test_tables_of_the_call():
    scores, labels = problem(24)
    made = layer()
    bare = ChainLoss(3, transitions=False, reduction="none")
    ends = torch.zeros_like(scores)
    ends[0, 3] = ends[1, 2] = ends[2, 0] = made.ends.detach()
    nodes = scores + ends
    nodes[:, 0] = nodes[:, 0] + made.starts.detach()
    torch.testing.assert_close(
        bare(nodes, labels, MASK, made.transitions), made(scores, labels, MASK)
    )
    each = made.transitions.expand(3, 3, 3, 3)
    torch.testing.assert_close(bare(nodes, labels, MASK, each), made(scores, labels, MASK))


def test_a_single_position():
    made = layer()
    scores = torch.randn(2, 1, 3, dtype=torch.double).requires_grad_()
    labels = torch.tensor([[0], [-1]])
    losses = made(scores, labels)
    logits = scores[:, 0] + made.starts + made.ends
    expected = torch.nn.functional.cross_entropy(logits[:1], labels[0])
    torch.testing.assert_close(losses, torch.stack([expected, torch.zeros_like(expected)]))
    assert made.decode(scores) == [[int(row.argmax())] for row in logits]


# ---- the call of pytorch-crf ---------------------------------------------------------------


@pytest.mark.parametrize("batch_first", [False, True])
def test_crf_has_the_likelihood_of_the_chain(batch_first):
    scores, labels = problem(31)
    made = layer()
    crf = CRF(3, batch_first=batch_first).double()
    names = {"transitions": "transitions", "starts": "start_transitions", "ends": "end_transitions"}
    crf.load_state_dict({names[name]: t for name, t in made.state_dict().items()})
    turned = (lambda t: t) if batch_first else (lambda t: t.transpose(0, 1))
    inputs = [turned(t) for t in (scores, labels, MASK)]
    losses = made(scores, labels, MASK)
    torch.testing.assert_close(crf(*inputs), -losses.sum())
    torch.testing.assert_close(crf(*inputs, reduction="none"), -losses)
    torch.testing.assert_close(crf(*inputs, reduction="mean"), -losses.mean())
    torch.testing.assert_close(crf(*inputs, reduction="token_mean"), -losses.sum() / 8)
    assert crf.decode(inputs[0], inputs[2]) == made.decode(scores, MASK)
    with pytest.raises(ArgumentError, match="tags"):
        crf(inputs[0], torch.full_like(inputs[1], -1), inputs[2])


# ---- input that is refused -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"mask": torch.tensor([[1, 0, 1, 1]] * 3)}, "mask.*hole"),
        ({"mask": torch.tensor([[0, 0, 0, 0]] * 3)}, "mask.*no position"),
        ({"mask": torch.tensor([[0, 1, 1, 1]] * 3)}, "mask.*hole"),
        ({"mask": torch.ones(3, 5)}, "mask"),
        ({"labels": torch.full((3, 4), 3)}, "labels.*label 3"),
        ({"labels": torch.full((3, 4), -2)}, "labels"),
        ({"labels": torch.zeros(3, 4)}, "labels"),
        ({"labels": torch.zeros(3, 3, dtype=torch.long)}, "labels"),
        ({"scores": torch.zeros(3, 4, 2)}, "scores"),
        ({"scores": torch.zeros(3, 4, 3, dtype=torch.long)}, "scores"),
        ({"scores": torch.zeros(0, 4, 3)}, "scores"),
        ({"scores": torch.full((3, 4, 3), torch.nan)}, "scores.*NaN"),
        ({"scores": torch.full((3, 4, 3), torch.inf)}, "scores"),
        ({"transitions": torch.zeros(2, 2)}, "transitions"),
        ({"transitions": torch.full((3, 3), torch.nan)}, "transitions.*NaN"),
        ({"transitions": torch.full((3, 3, 3, 3), torch.inf)}, "transitions.*infinity"),
        ({"transitions": [[0.0] * 3] * 3}, "transitions.*tensor"),
        ({"labels": [[0] * 4] * 3}, "labels.*tensor"),
        ({"labels": torch.zeros(3, 4).bool()}, "labels"),
        ({"labels": None}, "labels must be a tensor"),
        ({"transitions": torch.zeros(3, 3, dtype=torch.cfloat)}, "transitions is complex"),
        ({"scores": torch.zeros(3, 4, 3).to_sparse()}, "scores is sparse"),
        ({"mask": [[1] * 4] * 3}, "mask.*tensor"),
        ({"scores": torch.zeros(3, 4, 3, device="meta")}, "devices"),
        ({"labels": torch.zeros(3, 4, device="meta").long()}, "devices.*labels on meta"),
        ({"mask": torch.ones(3, 4, device="meta").bool()}, "devices.*mask on meta"),
        ({"transitions": torch.zeros(3, 3, device="meta")}, "devices.*transitions on meta"),
    ],
)
def test_bad_input_is_named(change, match):
    good = {"scores": torch.zeros(3, 4, 3), "labels": torch.zeros(3, 4, dtype=torch.long)}
    with pytest.raises(ArgumentError, match=match):
        ChainLoss(3)(**(good | change))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("labels", [[[0, 1, 0]] * 2, [[0, -1, 1]] * 2])
def test_no_loss_has_a_value_without_a_path(loss, labels):
    scores = torch.zeros(2, 3, 2)
    scores[1, 1] = -torch.inf
    with pytest.raises(ImpossibleEvidenceError, match="sequence 1"):
        ChainLoss(2, loss)(scores, torch.tensor(labels))


@pytest.mark.parametrize("query", ["decode", "marginals", "entropy", "sample", "log_partition"])
def test_queries_need_masks_without_holes(query):
    with pytest.raises(ArgumentError, match=r"mask: sequence 1 has a hole"):
        getattr(ChainLoss(2), query)(
            torch.zeros(2, 3, 2), mask=torch.tensor([[1, 1, 0], [1, 0, 1]])
        )
    with pytest.raises(ArgumentError, match=r"mask: sequence 1 has a hole"):
        ChainLoss(2).k_best(torch.zeros(2, 3, 2), 2, torch.tensor([[1, 1, 0], [1, 0, 1]]))


def test_a_layer_elsewhere_is_named():
    with pytest.raises(ArgumentError, match=r"devices.*layer on meta"):
        ChainLoss(2).to("meta").decode(torch.zeros(1, 3, 2))


def test_tensors_without_numbers_are_refused():
    scores, labels = torch.zeros(1, 3, 2, device="meta"), torch.zeros(1, 3, device="meta").long()
    with pytest.raises(ArgumentError, match="meta"):
        ChainLoss(2).to("meta")(scores, labels)


def test_scores_that_leave_no_path():
    scores = torch.zeros(2, 3, 2)
    scores[1, 1] = -torch.inf
    with pytest.raises(ImpossibleEvidenceError, match="sequence 1"):
        ChainLoss(2)(scores, torch.full((2, 3), -1))
    with pytest.raises(ImpossibleEvidenceError, match="sequence 1"):
        ChainLoss(2).log_partition(scores)
    for query in ("decode", "marginals", "entropy", "sample"):
        with pytest.raises(ImpossibleEvidenceError, match="sequence 1"):
            getattr(ChainLoss(2), query)(scores)
    with pytest.raises(ImpossibleEvidenceError, match="sequence 1"):
        ChainLoss(2).k_best(scores, 2)


@pytest.mark.parametrize(
    "options",
    [
        {"n_labels": 0},
        {"loss": "log-loss"},
        {"alpha": 2.0},
        {"eps_y": -1.0},
        {"cost": "zero"},
        {"reduction": "all"},
        {"transitions": "yes"},
        {"hidden_states": 0},
        {"forbidden": [(0, 3)]},
        {"names": 3},
        {"forbidden": "BIO", "names": ["B"]},
    ],
)
def test_bad_options_are_named(options):
    with pytest.raises(ArgumentError, match=next(iter(options)) if len(options) < 2 else "names"):
        ChainLoss(**({"n_labels": 3} | options))


def test_a_cost_of_whole_labellings_has_first_derivatives_only():
    layer = ChainLoss(3, loss="eps", eps_y=0.5, eps_h=0.5, cost="zero-one").double()
    scores = torch.randn(2, 4, 3, dtype=torch.double, requires_grad=True)
    labels = torch.randint(3, (2, 4))
    loss = layer(scores, labels)
    (first,) = torch.autograd.grad(loss, scores, retain_graph=True)
    assert first.isfinite().all()
    with pytest.raises(ArgumentError, match="cost='zero-one'"):
        torch.autograd.grad(loss, scores, create_graph=True)
