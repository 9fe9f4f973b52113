"""Hinge-loss fields on a card: products, steps of ADMM, certified solutions, learning."""

from __future__ import annotations

import numpy as np
import pytest

import hinge_fields
from host_card import WEIGHTS, compare_steps, hub_field, interpreted, needs_triton, on_card
from structlearn import HingeField, RuleModel, on
from structlearn._src.field.admm import solve_map
from structlearn._src.field.consensus import Consensus, make_consensus
from structlearn._src.field.examples import make_field_examples
from structlearn._src.learn.field_objective import FieldObjective
from structlearn._src.learn.world import Budget, fill, leaves
from structlearn.errors import ArgumentError, InfeasibleError, PlaceError

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def some_fixed(rng, field):
    fixed = np.full(field.n_variables, np.nan)
    fixed[rng.integers(1, field.n_variables, 20)] = rng.random(20)
    return fixed


@pytest.mark.parametrize("hub", [False, True])
@pytest.mark.parametrize("signs", [False, True])
def test_products_are_those_of_the_matrix(signs, hub):
    from structlearn._src.cuda import slices
    from structlearn._src.cuda.forms import FieldTensors

    rng = np.random.default_rng(signs + 2 * hub)
    field = hub_field(rng, signs=signs, hub=hub)
    fixed = some_fixed(rng, field)
    t = FieldTensors(field, fixed, 1.0, "cpu")
    assert len(t.by_form.pieces) == len(t.by_variable.pieces) == hub  # rows that are too long
    whole = hinge_fields.dense(field)
    matrix = np.where(np.isnan(fixed), whole, 0.0)
    y, mu = rng.random(field.n_variables), rng.random(field.n_forms)
    point = t.by_form.vector(torch.double)
    point[: t.n_variables] = t.spread_variables(torch.from_numpy(y))
    proof = t.by_variable.vector(torch.double)
    proof[: t.n_forms] = t.spread_forms(torch.from_numpy(mu))
    products = slices.multiply(t.by_form, point)[t.form_places]
    assert products.numpy() == pytest.approx(matrix @ y)
    pulls = slices.multiply(t.by_variable, proof)[t.variable_places]
    assert pulls.numpy() == pytest.approx(matrix.T @ mu)
    squares = slices.multiply(t.by_variable, proof, squares=True)[t.variable_places]
    assert squares.numpy() == pytest.approx((matrix**2).T @ mu)
    constants = field.constants + whole @ np.nan_to_num(fixed)
    assert t.constants[t.form_places].numpy() == pytest.approx(constants)


@pytest.mark.parametrize("hub", [False, True])
@pytest.mark.parametrize("signs", [False, True])
def test_steps_are_those_of_the_host(signs, hub):
    rng = np.random.default_rng(4 + signs + 2 * hub)
    field = hub_field(rng, signs=signs, hub=hub, hard=True)
    compare_steps(field, {1: 0.25} if hub else None)


def test_single_precision_is_near():
    field = hub_field(np.random.default_rng(9), signs=False)
    compare_steps(field, None, dtype=torch.float32, close=1e-3)


@needs_triton
def test_kernels_of_triton_take_the_same_steps():
    interpreted(
        "from host_card import compare_steps, hub_field\n"
        "for signs in (False, True):\n"
        "    rng = np.random.default_rng(signs)\n"
        "    field = hub_field(rng, 200, signs=signs, hub=signs, hard=True)\n"
        # Numbers in the arguments of a kernel, such as the step, are of single precision.
        "    compare_steps(field, None, close=1e-5)\n"
    )


def test_groups_that_are_many_need_no_slices_of_their_own(monkeypatch):
    from structlearn._src.cuda import forms

    monkeypatch.setattr(forms, "_RUNS", 2)
    compare_steps(hub_field(np.random.default_rng(3), hard=True), None)


@pytest.mark.parametrize("hard", [False, True])
def test_solutions_are_certified_and_optimal(hard):
    rng = np.random.default_rng(hard)
    for _ in range(3):
        field = hinge_fields.random_field(rng, hard=hard)
        weights = rng.random(field.n_groups)
        fixed = np.full(field.n_variables, np.nan)
        fixed[5] = 0.3
        with on_card():
            found = solve_map(field, weights, fixed=fixed)
        best = hinge_fields.least_energy(field, weights, fixed)[0]
        assert found.converged
        assert found.energy == pytest.approx(best, rel=1e-5, abs=1e-5)
        assert found.lower <= best + 1e-7
        assert found.y[5] == 0.3
        # The host proves the same from the same multipliers.
        host = Consensus(field, fixed=fixed)
        state = host.begin(weights, found.y, found.multipliers)
        again = host.appraise(weights, state)
        assert again.energy == pytest.approx(found.energy, rel=1e-12)
        assert again.lower <= found.lower + 1e-9
        assert again.hinges == pytest.approx(found.hinges)


def test_larger_fields_end_where_the_host_ends():
    rng = np.random.default_rng(7)
    field = hub_field(rng, 600, 300, signs=False)
    host = solve_map(field, WEIGHTS, tol=1e-5)
    with on_card():
        card = solve_map(field, WEIGHTS, tol=1e-5)
        warm = solve_map(field, 1.1 * WEIGHTS, start=card, tol=1e-5)
    assert card.converged
    assert warm.converged
    assert warm.iterations < card.iterations
    assert abs(card.energy - host.energy) <= card.gap + host.gap
    assert card.lower <= host.energy


def test_contradictions_are_proved():
    field = hub_field(np.random.default_rng(0), 30, hard=True)
    matrix = hinge_fields.dense(field)
    broken = int(np.flatnonzero((matrix != 0).any(axis=1) & field.hard)[0])
    fixed = np.full(field.n_variables, np.nan)
    which = np.flatnonzero(matrix[broken])
    fixed[which] = 0.5 + 0.5 * np.sign(matrix[broken, which])
    moved = np.where(np.arange(field.n_forms) == broken, 1.0, field.constants)
    field = type(field)(**{**vars_of(field), "constants": moved})
    with on_card(), pytest.raises(InfeasibleError) as found:
        make_consensus(field, fixed=fixed)
    assert broken in found.value.forms


def vars_of(field):
    from dataclasses import fields

    return {each.name: getattr(field, each.name) for each in fields(field)}


# ---- learning ------------------------------------------------------------------------------


def objective_of(rng):
    field = hinge_fields.random_field(rng, n=8, m=20)
    labels = (rng.random(8) > 0.5).astype(float)
    labels[::3] = np.nan
    return FieldObjective(make_field_examples(field, labels))


@pytest.mark.parametrize("sweeps", [None, 2])
def test_objectives_have_the_same_values_and_gradients(sweeps):
    host = objective_of(np.random.default_rng(1))
    weights = host.start
    if sweeps:
        host = host.with_budget(Budget(sweeps))
    wanted = host.loss_gradient(weights, host.begin())
    with on_card():
        card = objective_of(np.random.default_rng(1))
        if sweeps:
            card = card.with_budget(Budget(sweeps))
        found = card.loss_gradient(weights, card.begin())
    assert found.value == pytest.approx(wanted.value, abs=2e-3)
    assert found.gradient == pytest.approx(wanted.gradient, abs=5e-3)


def test_memories_on_a_card_go_through_checkpoints():
    with on_card():
        objective = objective_of(np.random.default_rng(2)).with_budget(Budget(3))
        memory = objective.begin()
        objective.loss_gradient(objective.start, memory)
        kept = {path: np.array(array) for path, array in leaves(memory)}
        wanted = objective.loss_gradient(objective.start, memory)[:2]
        other = objective.begin()
        fill(other, kept)
        found = objective.loss_gradient(objective.start, other)[:2]
        assert found[0] == wanted[0]
        assert (found[1] == wanted[1]).all()
        of_the_host = Consensus(objective.examples.hinges).begin(objective.examples.weights)
        with pytest.raises(ArgumentError, match="does not fit"):
            objective.loss_gradient(objective.start, of_the_host)


@pytest.mark.filterwarnings("ignore:stopped at max_iter")
@pytest.mark.parametrize("driver", ["bilevel", "paired"])
def test_estimators_learn_there(driver):
    rng = np.random.default_rng(5)
    field = hinge_fields.random_field(rng, n=8, m=24)
    labels = (rng.random(8) > 0.5).astype(float)
    options = {"driver": driver, "max_iter": 8}
    host = HingeField.of(field).fit(labels, **options)
    with on_card():
        card = HingeField.of(field).fit(labels, **options)
        energy = card.map().energy
    assert card.weights_ == pytest.approx(host.weights_, rel=0.02, abs=0.02)
    assert energy == pytest.approx(solve_map(field, card.weights_).energy, abs=1e-5)


@pytest.mark.filterwarnings("ignore:stopped at max_iter")
def test_rule_models_predict_and_learn_there():
    def model():
        rules = "1: Near(A, B) & Cat(A) -> Cat(B) ^2\n0.4: !Cat(A) ^2\n0.7: Seen(A) -> Cat(A)"
        made = RuleModel(rules).observe(Near=[("a", "b"), ("b", "c")], Seen=[("a", 0.9)])
        return made.target(Cat=[("a",), ("b",), ("c",)])

    truth = {"Cat": [("a", 1.0), ("b", 1.0), ("c", 0.0)]}
    wanted = model().predict("Cat", frame="dict")
    host = model().truth(**truth).fit(driver="paired", max_iter=5)
    with on_card():
        found = model().predict("Cat", frame="dict")
        card = model().truth(**truth).fit(driver="paired", max_iter=5)
    assert found["value"] == pytest.approx(wanted["value"], abs=1e-3)
    assert card.weights_ == pytest.approx(host.weights_, abs=1e-3)


# ---- what is refused ------------------------------------------------------------------------


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card")
def test_without_a_card_nothing_begins():
    with pytest.raises(PlaceError, match="says that there is none"), on("cuda"):
        pytest.fail("the block was entered")


def test_a_full_card_is_named():
    with pytest.raises(PlaceError, match=r"too little memory for this \(tried"), on_card():
        raise torch.OutOfMemoryError("tried to allocate 7 GB\nmore words")
