"""Derivatives of chains by other routes: higher order, forward mode, transforms, compilation."""

from __future__ import annotations

import pytest
import torch

from structlearn.torch import ChainLoss

# PyTorch's own, in forward mode.
FORWARD = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")

MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0]]).bool()


def layer(loss="log", **options):
    torch.manual_seed(0)
    made = ChainLoss(3, loss, reduction="none", **options).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_()
    return made


def problem():
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(3, 4, 3, dtype=torch.double, generator=generator)
    labels = torch.randint(-1, 3, (3, 4), generator=generator)
    return scores, labels


def second(made, scores, labels):
    """Gradient, and gradient of its square, by scores and transitions."""
    inputs = scores.clone().requires_grad_(), made.transitions
    first = torch.autograd.grad(
        made(inputs[0], labels, MASK).sum(), inputs, create_graph=True, materialize_grads=True
    )
    total = sum(part.square().sum() for part in first)
    return *first, *torch.autograd.grad(total, inputs)


@pytest.mark.parametrize("outside", [99, -100])
@pytest.mark.parametrize("loss", ["eps", "marginal"])
def test_what_lies_outside_the_mask_does_not_count(loss, outside):
    """Any label and any score may stand there, for second derivatives too."""
    scores, labels = problem()
    made = layer(loss)
    expected = second(made, scores, labels)
    found = second(
        made,
        torch.where(MASK[..., None], scores, torch.nan),
        torch.where(MASK, labels, outside),
    )
    for mine, other in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, other)


@FORWARD
def test_hessians_and_forward_mode():
    scores, labels = problem()
    made = layer()

    def total(scores):
        return made(scores, labels, MASK).sum()

    expected = torch.autograd.functional.hessian(total, scores)
    torch.testing.assert_close(torch.func.hessian(total)(scores), expected)
    torch.testing.assert_close(torch.func.jacrev(torch.func.jacrev(total))(scores), expected)
    torch.testing.assert_close(torch.func.jacfwd(total)(scores), torch.func.grad(total)(scores))


@FORWARD
@pytest.mark.parametrize("query", ["marginals", "entropy", "log_partition"])
def test_transforms_of_queries(query):
    scores, _ = problem()
    asked = getattr(layer(), query)

    def total(scores):
        return asked(scores, MASK).square().sum()

    several = torch.stack([scores, 2.0 * scores])
    each = torch.stack([asked(s, MASK) for s in several])
    torch.testing.assert_close(torch.func.vmap(lambda s: asked(s, MASK))(several), each)
    own = scores.clone().requires_grad_()
    expected = torch.autograd.grad(total(own), own)[0]
    torch.testing.assert_close(torch.func.grad(total)(scores), expected)
    torch.testing.assert_close(torch.func.jacfwd(total)(scores), expected)
    with torch.inference_mode():
        torch.testing.assert_close(asked(scores, MASK), each[0].detach())


def test_transforms_of_parameters():
    """Jacobians of all losses by what they share."""
    scores, labels = problem()
    made = layer("marginal")
    own = {name: p.detach() for name, p in made.named_parameters()}

    def losses(parameters):
        return torch.func.functional_call(made, parameters, (scores, labels, MASK))

    found = torch.func.jacrev(losses)(own)
    for i in range(3):
        rows = torch.autograd.grad(made(scores, labels, MASK)[i], list(made.parameters()))
        for name, row in zip(own, rows, strict=True):
            torch.testing.assert_close(found[name][i], row)


def test_tables_for_each_of_no_edges():
    """Single positions with tables for each edge, of which there are none."""
    scores, labels = problem()
    made = layer()
    single = made(scores[:, :1], labels[:, :1])
    none = torch.zeros(3, 0, 3, 3, dtype=torch.double)
    torch.testing.assert_close(made(scores[:, :1], labels[:, :1], None, none), single)
    first = torch.tensor([[1, 0, 0, 0]] * 3).bool()
    every = torch.randn(3, 3, 3, 3, dtype=torch.double)
    torch.testing.assert_close(made(scores, labels, first, every), single)
    mapped = torch.func.vmap(made)(scores[None, :, :1], labels[None, :, :1])
    torch.testing.assert_close(mapped[0], single)
    assert (made.entropy(scores[:, :1]) > 0).all()


def test_second_route_keeps_the_precision_of_the_first():
    """At a large temperature values are large and gradients are not."""
    scores, labels = problem()
    made = layer("eps", eps_y=1.0, eps_h=1e6).float()
    own = scores.float().requires_grad_()
    first = torch.autograd.grad(made(own, labels, MASK).sum(), own)[0]
    again = torch.autograd.grad(made(own, labels, MASK).sum(), own, create_graph=True)[0]
    torch.testing.assert_close(first, again, atol=1e-4, rtol=0)


def test_hidden_states_in_each_part_of_a_loss():
    """A hybrid sums hidden states at temperature 1 in its log loss, whatever `eps_h` is."""
    _, labels = problem()
    scores = torch.randn(3, 4, 3, 2, dtype=torch.double)
    log, hinge, hybrid = (
        layer(loss, hidden_states=2, **options)(scores, labels, MASK)
        for loss, options in [
            ("log", {}),
            ("latent-hinge", {}),
            ("hybrid", {"eps_h": 0.0, "alpha": 0.25}),
        ]
    )
    torch.testing.assert_close(hybrid, 0.25 * log + 0.75 * hinge)


def test_half_precision_is_widened_before_anything_is_added():
    _, labels = problem()
    scores = torch.randn(3, 4, 3, 2).bfloat16()
    made = layer(hidden_states=2).float()
    torch.testing.assert_close(made(scores, labels, MASK), made(scores.float(), labels, MASK))


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # PyTorch's own, while it traces
def test_compiled_queries():
    scores, _ = problem()
    made = layer()
    assert torch.compile(made.decode, backend="aot_eager")(scores, MASK) == made.decode(
        scores, MASK
    )
    found = torch.compile(made.marginals, backend="aot_eager")(scores, MASK)
    torch.testing.assert_close(found, made.marginals(scores, MASK))
