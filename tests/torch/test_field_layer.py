"""Hinge-loss fields as a layer: differences, the estimators' objective, and learning through it."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest
import torch

import naive
from structlearn._src.field.examples import make_field_examples
from structlearn._src.learn.field_objective import FieldObjective
from structlearn._src.learn.world import InferenceSettings
from structlearn.errors import ArgumentError, InfeasibleError, QueryError
from structlearn.fields import Hinges, solve_map
from structlearn.torch import FieldLoss

NAN = float("nan")


def random_field(seed):
    """A field with hard forms, its weights, and labels of half of the variables."""
    rng = np.random.default_rng(seed)
    parts, weights = naive.hinge_field(rng)
    while parts["n_variables"] < 3:
        parts, weights = naive.hinge_field(rng)
    return Hinges(**parts), weights, rng


def make(seed, surrogate="none"):
    field, weights, rng = random_field(seed)
    inputs = np.sort(rng.choice(field.n_variables, 2, replace=False))
    layer = FieldLoss(field, inputs=inputs, weights=weights, surrogate=surrogate, tol=1e-10)
    labels = np.where(rng.random(field.n_variables) < 0.5, rng.random(field.n_variables), NAN)
    open_ = np.setdiff1d(np.arange(field.n_variables), inputs)
    labels[open_[0]] = 1.0
    return layer.double(), torch.from_numpy(labels), inputs, rng


def soft(field):
    """The same field without its hard forms, so that any input is possible."""
    keep = np.flatnonzero(~field.hard)
    return field.take(keep, np.arange(field.n_variables))


@pytest.mark.parametrize("surrogate", ["none", "loss", "entropy"])
def test_gradients_by_inputs_and_weights(surrogate):
    checked = 0
    for seed in range(12):
        layer, labels, inputs, rng = make(seed, surrogate)
        layer.hinges = soft(layer.hinges)
        x = torch.from_numpy(rng.uniform(0.2, 0.8, len(inputs))).requires_grad_()
        w = (0.2 + layer.weights.detach()).requires_grad_()
        loss = layer(labels, x, w)
        assert loss.item() >= -1e-8
        call = functools.partial(layer, labels)
        assert torch.autograd.gradcheck(call, (x, w), eps=1e-5, atol=2e-3, rtol=1e-3)
        checked += len(inputs)
    assert checked >= 12


def test_hard_forms_pull_on_inputs():
    """y >= x, and y is drawn to 0: the energy is x squared, through the multiplier alone."""
    field = Hinges(
        offsets=[0, 2, 3], variables=[0, 1, 1], coefficients=[1.0, -1.0, 1.0],
        constants=[0.0, 0.0], kinds=[1, 0], powers=[1, 2], groups=[0, 0], n_variables=2, n_groups=1,
    )  # fmt: skip
    layer = FieldLoss(field, inputs=[0], tol=1e-12).double()
    x = torch.tensor([0.3], dtype=torch.double, requires_grad=True)
    energy = layer.energy(x)
    energy.backward()
    assert energy.item() == pytest.approx(0.09, abs=1e-6)
    assert x.grad.item() == pytest.approx(0.6, abs=1e-4)
    torch.testing.assert_close(layer.predict(x)[1], x.detach()[0], atol=1e-6, rtol=0)


@pytest.mark.parametrize("surrogate", ["loss", "entropy"])
def test_the_loss_is_that_of_the_estimators(surrogate):
    field, weights, rng = random_field(3)
    field = soft(field)
    labels = np.where(
        rng.random(field.n_variables) < 0.7, rng.integers(0, 2, field.n_variables), NAN
    )
    labels[0] = 1.0
    examples = make_field_examples(field, labels, weights=weights, surrogate=surrogate)
    exact = FieldObjective(examples, settings=InferenceSettings(tol=1e-9, sweeps=200_000))
    layer = FieldLoss(field, weights=weights, surrogate=surrogate, tol=1e-10).double()
    with torch.no_grad():
        layer.weights.copy_(torch.from_numpy(weights))
    loss = layer(torch.from_numpy(labels))
    loss.backward()
    value, gradient, _ = exact.loss_gradient(weights[examples.learnt])
    assert loss.item() == pytest.approx(value, abs=1e-5)
    mine = layer.weights.grad.numpy()[examples.learnt]
    np.testing.assert_allclose(mine, gradient, atol=1e-3)


def test_energies_are_least():
    for seed in range(5):
        layer, _, inputs, rng = make(seed)
        layer.hinges = soft(layer.hinges)
        x = torch.from_numpy(rng.random(len(inputs)))
        found = solve_map(layer.hinges, layer.weights.detach().numpy(), fixed=(inputs, x.numpy()))
        assert layer.energy(x).item() == pytest.approx(found.energy, abs=1e-5)
        assert layer.predict(x).shape == (layer.hinges.n_variables,)


def test_a_loss_is_the_difference_of_two_energies():
    """The clamped energy and the least one, each with its own gradients."""
    for seed in range(5):
        layer, labels, inputs, rng = make(seed, "none")
        layer.hinges = soft(layer.hinges)
        x = torch.from_numpy(rng.uniform(0.2, 0.8, len(inputs))).requires_grad_()
        w = (0.2 + layer.weights.detach()).requires_grad_()
        clamped = layer.energy(x, w, labels)
        apart = clamped - layer.energy(x, w)
        loss = layer(labels, x, w)
        torch.testing.assert_close(apart, loss, atol=1e-5, rtol=0.0)
        found = torch.autograd.grad(apart, (x, w), retain_graph=True)
        for mine, other in zip(found, torch.autograd.grad(loss, (x, w)), strict=True):
            torch.testing.assert_close(mine, other, atol=2e-3, rtol=1e-3)
        call = functools.partial(layer.energy, labels=labels)
        assert torch.autograd.gradcheck(call, (x, w), eps=1e-5, atol=2e-3, rtol=1e-3)
        known = np.flatnonzero(~np.isnan(labels.numpy()))
        fixed = np.concatenate([inputs, np.setdiff1d(known, inputs)])
        values = np.concatenate([x.detach().numpy(), labels.numpy()[fixed[len(inputs) :]]])
        weights = w.detach().numpy()
        found = solve_map(layer.hinges, weights, fixed=(fixed, values))
        assert clamped.item() == pytest.approx(found.energy, abs=1e-5)
    with pytest.raises(ArgumentError, match=r"labels\["):
        layer.energy(x, w, torch.full_like(labels, 2.0))


def test_a_network_learns_through_a_field():
    """Targets equal what a network says, and only targets have labels."""
    torch.manual_seed(0)
    n = 20
    field = Hinges(
        offsets=np.arange(0, 4 * n + 1, 2), variables=np.tile([[0, 1]], (2 * n, 1)).ravel()
        + 2 * np.repeat(np.arange(n), 4), coefficients=np.tile([1.0, -1.0, -1.0, 1.0], n),
        constants=np.zeros(2 * n), kinds=np.zeros(2 * n), powers=np.full(2 * n, 2),
        groups=np.zeros(2 * n), n_variables=2 * n, n_groups=1,
    )  # fmt: skip
    layer = FieldLoss(field, inputs=np.arange(0, 2 * n, 2), surrogate="none")
    features = torch.randn(n, 3)
    truth = (features[:, 0] > 0).float()
    labels = torch.full((2 * n,), NAN)
    labels[1::2] = truth
    network = torch.nn.Linear(3, 1)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.2)
    for _ in range(60):
        optimiser.zero_grad()
        layer(labels, torch.sigmoid(network(features))[:, 0]).backward()
        optimiser.step()
    found = layer.predict(torch.sigmoid(network(features))[:, 0].detach())[1::2]
    assert ((found > 0.5) == (truth > 0.5)).float().mean() >= 0.95


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"inputs": torch.tensor([0.5, 0.5])}, "inputs"),
        ({"inputs": torch.tensor([1.5])}, "inputs.*0, 1"),
        ({"inputs": torch.tensor([1])}, "inputs"),
        ({"labels": torch.tensor([1.0])}, "labels"),
        ({"weights": torch.ones(3)}, "weights"),
        ({"labels": torch.tensor([NAN, NAN])}, "label"),
        ({"labels": torch.zeros(2, device="meta")}, "labels.*meta"),
        ({"inputs": torch.zeros(1, device="meta")}, "inputs.*meta"),
    ],
)
def test_bad_input_is_named(change, match):
    field = Hinges(
        offsets=[0, 2], variables=[0, 1], coefficients=[1.0, -1.0], constants=[0.0], kinds=[0],
        powers=[2], groups=[0], n_variables=2, n_groups=1,
    )  # fmt: skip
    good = {"labels": torch.tensor([NAN, 1.0]), "inputs": torch.tensor([0.5])}
    with pytest.raises(ArgumentError, match=match):
        FieldLoss(field, inputs=[0])(**(good | change))
    with pytest.raises(ArgumentError, match="inputs"):
        FieldLoss(field, inputs=[2])
    with pytest.raises(ArgumentError, match="inputs"):
        FieldLoss(field, inputs=[-1])
    with pytest.raises(ArgumentError, match="inputs"):
        FieldLoss(field, inputs=[0, 0])
    with pytest.raises(ArgumentError, match="surrogate"):
        FieldLoss(field, surrogate="no")


def test_small_losses_of_large_energies():
    """The difference is taken in double precision, whatever the inputs have."""
    n = 2000
    field = Hinges(
        offsets=np.arange(2 * n + 1), variables=np.repeat(np.arange(n), 2),
        coefficients=np.tile([1.0, -1.0], n), constants=np.tile([0.0, 1.0], n),
        kinds=np.zeros(2 * n), powers=np.full(2 * n, 2), groups=np.zeros(2 * n), n_variables=n,
        n_groups=1,
    )  # fmt: skip
    labels = torch.full((n,), NAN)
    labels[0] = 0.501
    loss = FieldLoss(field, weights=[1e3], surrogate="none")(labels)
    assert loss.shape == ()
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(2.0 * 1e3 * 0.001**2, rel=1e-2)


def follows():
    """Return a field whose target follows its input, and is drawn to 0."""
    return Hinges(
        offsets=[0, 2, 3], variables=[0, 1, 1], coefficients=[1.0, -1.0, 1.0],
        constants=[0.0, 0.0], kinds=[0, 0], powers=[2, 2], groups=[0, 1], n_variables=2, n_groups=2,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # PyTorch's own, while it traces
def test_compiled_copied_and_half_precision():
    layer = FieldLoss(follows(), inputs=[0])
    labels = torch.tensor([NAN, 1.0])
    x = torch.tensor([0.5])
    expected = layer(labels, x)
    torch.testing.assert_close(torch.compile(layer, backend="aot_eager")(labels, x), expected)
    torch.testing.assert_close(copy.deepcopy(layer)(labels, x), expected)
    torch.testing.assert_close(layer(labels, x.bfloat16()), expected)


@pytest.mark.parametrize(
    "change", [{"labels": [1.0]}, {"labels": None}, {"inputs": [0.5]}, {"weights": [1.0, 1.0]}]
)
def test_what_is_no_tensor_is_named(change):
    good = {"labels": torch.tensor([NAN, 1.0]), "inputs": torch.tensor([0.5])}
    with pytest.raises(ArgumentError, match=next(iter(change))):
        FieldLoss(follows(), inputs=[0])(**(good | change))
    with pytest.raises(ArgumentError, match="hinges"):
        FieldLoss(None)


def test_inputs_that_hard_forms_rule_out():
    """x <= y <= 0.2: no y for x = 0.9, and a label of 1 is impossible."""
    field = Hinges(
        offsets=[0, 2, 3], variables=[0, 1, 1], coefficients=[1.0, -1.0, 1.0],
        constants=[0.0, -0.2], kinds=[1, 1], powers=[1, 1], groups=[0, 0], n_variables=2,
        n_groups=1,
    )  # fmt: skip
    layer = FieldLoss(field, inputs=[0])
    with pytest.raises(InfeasibleError):
        layer.energy(torch.tensor([0.9]))
    with pytest.raises(InfeasibleError):
        layer(torch.tensor([NAN, 1.0]), torch.tensor([0.1]))


@pytest.mark.parametrize("steps", [None, 3])
def test_second_derivatives_are_refused_and_not_wrong(steps):
    field = Hinges(
        offsets=[0, 2], variables=[0, 1], coefficients=[1.0, -1.0], constants=[0.0], kinds=[0],
        powers=[2], groups=[0], n_variables=2, n_groups=1,
    )  # fmt: skip
    layer = FieldLoss(field, inputs=[0], steps=steps)
    x = torch.tensor([0.5], requires_grad=True)
    loss = layer(torch.tensor([NAN, 0.0]), x**2)
    by_x = torch.autograd.grad(loss, x, create_graph=True)[0]
    with pytest.raises(QueryError, match="first derivatives"):
        by_x.square().sum().backward()
