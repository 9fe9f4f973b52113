"""Rules over what a network says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from structlearn import RuleModel
from structlearn.errors import ArgumentError, AtomError, RuleError
from structlearn.torch import RuleLoss

RULES = """
1: Looks(A) -> Cat(A) ^2
2: Cat(A) -> Looks(A) ^2
0.7: Friend(A, B) & Cat(A) -> Cat(B) ^2
"""
PEOPLE = [("ann",), ("bob",), ("cem",), ("dea",)]
FRIENDS = [("ann", "bob", 1.0), ("bob", "ann", 0.5), ("cem", "dea", 1.0)]


def model():
    made = RuleModel(RULES).observe(Friend=FRIENDS).target(Looks=PEOPLE, Cat=PEOPLE)
    return made.truth(Cat=[("ann", 1.0), ("cem", 0.0)])


def test_values_are_those_of_the_model_with_observed_atoms():
    """Inputs of the layer mean what observed atoms mean."""
    values = torch.tensor([0.9, 0.4, 0.2, 0.6], dtype=torch.double)
    layer = RuleLoss(model(), "Looks").double()
    rows = [(*atom, float(v)) for atom, v in zip(layer.atoms("Looks"), values, strict=True)]
    plain = RuleModel(RULES).observe(Friend=FRIENDS, Looks=rows).target(Cat=PEOPLE)
    found = plain.predict(frame="dict")
    expected = dict(zip(found["argument1"], found["value"], strict=True))
    mine = dict(zip([a for (a,) in layer.atoms("Cat")], layer.predict(values, "Cat"), strict=True))
    for name, value in expected.items():
        assert mine[name].item() == pytest.approx(value, abs=1e-4)
    assert layer.predict(values)["Cat"].shape == (4,)


def test_gradients_by_what_the_network_says():
    layer = RuleLoss(model(), "Looks", tol=1e-10).double()
    values = torch.tensor([0.9, 0.4, 0.25, 0.6], dtype=torch.double, requires_grad=True)
    weights = torch.tensor([1.0, 2.0, 0.7], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(layer, (values, weights), eps=1e-5, atol=1e-3)


def test_rules_and_network_learn_together():
    torch.manual_seed(0)
    layer = RuleLoss(model(), ["Looks"])
    features = torch.tensor([[1.0, 0.0], [0.9, 0.2], [0.0, 1.0], [0.2, 0.8]])
    network = torch.nn.Linear(2, 1)
    optimiser = torch.optim.Adam([*network.parameters(), *layer.parameters()], lr=0.1)
    losses = []
    for _ in range(40):
        optimiser.zero_grad()
        loss = layer({"Looks": torch.sigmoid(network(features))[:, 0]})
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    found = layer.predict(torch.sigmoid(network(features))[:, 0], "Cat")
    assert (found > 0.5).tolist() == [True, True, False, False]
    learnt = layer.write_weights()
    np.testing.assert_allclose(
        learnt.weights_, layer.weights.detach().clamp(min=0).double(), rtol=1e-6
    )
    assert (learnt.weights_ != [1.0, 2.0, 0.7]).all()


def test_hard_rules_keep_their_weight():
    made = RuleModel("1: Looks(A) = Cat(A) ^2\nCat(A) <= 0.5 .").target(Looks=PEOPLE, Cat=PEOPLE)
    layer = RuleLoss(made.truth(Cat=[("ann", 0.5)]), "Looks")
    assert (layer.predict(torch.ones(4), "Cat") <= 0.5 + 1e-6).all()
    assert layer.write_weights().weights_.tolist()[1] == np.inf


@pytest.mark.parametrize("deep", ["Friend", "Knows", [], ["Looks", "Friend"]])
def test_predicates_without_targets_are_named(deep):
    with pytest.raises((ArgumentError, AtomError, RuleError), match=r"Friend|Knows|deep"):
        RuleLoss(model(), deep)


def test_bad_values_are_named():
    layer = RuleLoss(model(), "Looks")
    with pytest.raises(ArgumentError, match=r"values.*Looks"):
        layer({"Cat": torch.zeros(4)})
    with pytest.raises(ArgumentError, match="inputs"):
        layer(torch.zeros(3))
    with pytest.raises((ArgumentError, AtomError, RuleError), match="Fly"):
        layer.predict(torch.zeros(4), "Fly")


def several():
    """Two deep predicates with three and two atoms."""
    made = RuleModel("1: Looks(A) -> Cat(A) ^2\n1: Sounds(A) -> Cat(A) ^2")
    made = made.target(Looks=PEOPLE[:3], Sounds=PEOPLE[:2], Cat=PEOPLE[:3])
    return made.truth(Cat=[("ann", 1.0)])


def test_several_deep_predicates():
    layer = RuleLoss(several(), ["Looks", "sounds"])
    looks = torch.tensor([0.9, 0.1, 0.2])
    sounds = torch.tensor([0.3, 0.4])
    expected = layer(torch.cat([looks, sounds]))
    torch.testing.assert_close(layer({"SOUNDS": sounds, "Looks": looks}), expected)
    with pytest.raises(ArgumentError, match=r"Looks.*shape"):
        layer({"Looks": sounds, "Sounds": looks})  # five in all, but not in these places
    with pytest.raises(ArgumentError, match="values"):
        layer({"Looks": looks})
    with pytest.raises(ArgumentError, match="values"):
        layer({"Looks": looks, "Sounds": sounds, "Cat": looks})
    with pytest.raises(ArgumentError, match="values"):
        layer([0.0] * 5)
    with pytest.raises(ArgumentError, match="deep"):
        RuleLoss(several(), ["Looks", "looks"])
    with pytest.raises(ArgumentError, match="model"):
        RuleLoss(None, "Looks")


def test_what_the_model_is_given_later_does_not_count():
    made = model()
    layer = RuleLoss(made, "Looks")
    values = torch.tensor([0.9, 0.4, 0.2, 0.6])
    loss = layer(values)
    made.target(Looks=[("eva",)], Cat=[("eva",)])
    assert layer.atoms("Looks") == PEOPLE
    torch.testing.assert_close(layer(values), loss)
    assert layer.predict(values, "Cat").shape == (4,)
    made.split("0.7: Friend(A, B) & Cat(A) -> Cat(B) ^2", "A")
    with pytest.raises(ArgumentError, match="rules"):
        layer.write_weights()
