"""Paired-dual steps of layers of fields: some steps of ADMM in a call, from where it stood."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import hinge_fields
from host_card import on_card
from structlearn import RuleModel
from structlearn.errors import ArgumentError
from structlearn.torch import FieldLoss, RuleLoss

NAN = float("nan")
RULES = "1: Sees(A) -> Cat(A) ^2\n0.5: Cat(A) & Friend(A, B) -> Cat(B) ^2\n0.2: !Cat(A) ^2"


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def layers(seed, steps, **options):
    """The same layer with certified minima and with steps, and what they are called with."""
    rng = np.random.default_rng(seed)
    field = hinge_fields.random_field(rng, n=8, m=24)
    exact = FieldLoss(field, inputs=[0, 5], tol=1e-9, **options).double()
    paired = FieldLoss(field, inputs=[0, 5], steps=steps, **options).double()
    labels = torch.tensor([NAN, 1.0, 0.0, NAN, 1.0, NAN, 0.0, NAN])
    inputs = torch.from_numpy(rng.uniform(0.2, 0.8, 2)).requires_grad_()
    return exact, paired, labels, inputs


def gradients(layer, *given, **more):
    layer.zero_grad()
    given[1].grad = None
    loss = layer(*given, **more)
    loss.backward()
    return loss.item(), layer.weights.grad.clone(), given[1].grad.clone()


@pytest.mark.parametrize("surrogate", ["none", "entropy", "loss"])
def test_calls_end_at_the_certified_loss_and_gradients(surrogate):
    exact, paired, labels, inputs = layers(1, 50, surrogate=surrogate)
    memory = paired.begin(labels, inputs.detach())
    for _ in range(30):
        found = gradients(paired, labels, inputs, memory=memory)
    wanted = gradients(exact, labels, inputs)
    assert found[0] == pytest.approx(wanted[0], abs=1e-4)
    assert found[1].numpy() == pytest.approx(wanted[1].numpy(), abs=1e-3)
    assert found[2].numpy() == pytest.approx(wanted[2].numpy(), abs=1e-3)


def test_memory_carries_on():
    _, twice, labels, inputs = layers(2, 3)
    _, once, _, _ = layers(2, 6)
    memory = twice.begin(labels, inputs.detach())
    first = twice(labels, inputs, memory=memory).item()
    second = twice(labels, inputs, memory=memory).item()
    assert second == once(labels, inputs, memory=once.begin(labels, inputs.detach())).item()
    assert first != second
    assert twice(labels, inputs).item() == first  # without memory it begins anew
    # Other inputs go on from the same memory.
    with torch.no_grad():
        inputs += 0.1
    assert np.isfinite(twice(labels, inputs, memory=memory).item())
    states = copy.deepcopy(memory)
    assert [int(state.iterations) for state in states] == [9, 9]


def test_cards_take_the_same_steps():
    _, paired, labels, inputs = layers(3, 4)
    memory = paired.begin(labels, inputs.detach())
    wanted = gradients(paired, labels, inputs, memory=memory)
    with on_card():
        memory = paired.begin(labels, inputs.detach())
        found = gradients(paired, labels, inputs, memory=memory)
    assert found[0] == pytest.approx(wanted[0], abs=1e-4)
    assert found[1].numpy() == pytest.approx(wanted[1].numpy(), abs=1e-4)
    assert found[2].numpy() == pytest.approx(wanted[2].numpy(), abs=1e-4)
    with pytest.raises(ArgumentError, match="does not fit"):
        paired(labels, inputs, memory=memory)  # of the card


def test_memories_that_do_not_belong_are_refused():
    exact, paired, labels, inputs = layers(4, 2)
    memory = paired.begin(labels)
    with pytest.raises(ArgumentError, match="layers with steps"):
        exact(labels, inputs, memory=memory)
    with pytest.raises(ArgumentError, match="does not fit"):
        paired(labels, inputs, memory=memory[:1])
    with pytest.raises(ArgumentError, match="steps"):
        FieldLoss(paired.hinges, steps=0)


def test_networks_and_rules_learn_by_paired_steps():
    model = RuleModel(RULES).observe(Friend=[("a", "b"), ("b", "c")])
    names = [("a",), ("b",), ("c",)]
    model = model.target(Sees=names).target(Cat=names)
    model = model.truth(Cat=[("a", 1.0), ("b", 1.0), ("c", 0.0)])
    layer = RuleLoss(model, "Sees", steps=2)
    certified = RuleLoss(model, "Sees")
    score = torch.zeros(3, requires_grad=True)
    optimiser = torch.optim.Adam([score, layer.weights], lr=0.05)
    memory = layer.begin()
    before = certified(torch.sigmoid(score), layer.weights).item()
    for _ in range(60):
        optimiser.zero_grad()
        layer(torch.sigmoid(score), memory=memory).backward()
        optimiser.step()
        layer.weights.data.clamp_(min=0.0)
    assert certified(torch.sigmoid(score), layer.weights).item() < 0.8 * before
    assert score[0] > score[2]
