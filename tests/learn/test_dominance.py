"""Consistency of the hybrid loss, and how sure models are of whole labellings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import latent
import naive
from structlearn._src.common.errors import ArgumentError
from structlearn._src.graph.batch import Sequences
from structlearn._src.graph.wiring import HIDDEN
from structlearn._src.learn.dominance import (
    Dominance,
    alpha_bound,
    alpha_threshold,
    dominance,
)
from structlearn._src.learn.loss import make_cost, make_loss
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.learn.world import InferenceSettings
from structlearn._src.model.model import Examples, LinearModel
from structlearn._src.model.term import LinearTerm

STEADY = settings(max_examples=40, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**32 - 1)
_CLEAR = 1e-4  # difference of scores that the minimiser below surely resolves

# ---- consistency -------------------------------------------------------------------------


def risk(scores, chances, alpha):
    """Expected hybrid loss of the scores of all labels, as the paper writes it."""
    log = np.log(np.exp(scores - scores.max()).sum()) + scores.max() - scores
    rivals = np.array([np.delete(scores, y).max() for y in range(len(scores))])
    hinge = np.maximum(1.0 - (scores - rivals), 0.0)
    return float(chances @ (alpha * log + (1.0 - alpha) * hinge))


def best_scores(chances, alpha):
    """Scores that minimise the risk, the largest 0: a smooth problem once hinges are slacks."""
    k = len(chances)
    rows = [np.eye(2 * k)[k + y] for y in range(k)]
    rows += [
        np.eye(2 * k)[k + y] + np.eye(2 * k)[y] - np.eye(2 * k)[z]
        for y in range(k)
        for z in range(k)
        if z != y
    ]
    gradient, least = np.array(rows), np.repeat([0.0, 1.0], [k, k * (k - 1)])

    def value(both):
        scores, top = both[:k], both[:k].max()
        soft = np.exp(scores - top)
        log = top + np.log(soft.sum()) - chances @ scores
        gradient = np.concatenate([alpha * (soft / soft.sum() - chances), (1 - alpha) * chances])
        return alpha * log + (1 - alpha) * chances @ both[k:], gradient

    start = np.random.default_rng(0).normal(0.0, 0.1, k)
    found = minimize(
        value,
        np.concatenate([start, 1.5 + start.max() - start]),
        jac=True,
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda z: gradient @ z - least,
            "jac": lambda z: gradient,
        },
        options={"ftol": 1e-14, "maxiter": 500},
    )
    scores = found.x[:k]
    assert risk(scores, chances, alpha) == pytest.approx(found.fun, abs=1e-6)
    return scores - scores.max()


def aligned(chances, alpha):
    """Whether every best label of the minimiser is a most likely one."""
    top = best_scores(chances, alpha) > -_CLEAR
    return bool((chances[top] >= chances.max() - 1e-12).all())


def drawn(seed, k=None):
    rng = np.random.default_rng(seed)
    k = k or int(rng.integers(3, 6))
    return rng.dirichlet(np.full(k, rng.choice([1.0, 3.0, 10.0])))


@STEADY
@given(SEEDS, st.floats(0.03, 0.97))
def test_the_hybrid_loss_is_consistent_exactly_above_the_threshold(seed, alpha):
    chances = drawn(seed)
    threshold = alpha_threshold(chances)
    assume(abs(alpha - threshold) > 0.03)
    assume(np.diff(np.sort(chances))[-1] > 0.01)
    assert aligned(chances, alpha) == (alpha > threshold)


@STEADY
@given(SEEDS, st.floats(0.03, 0.5))
def test_theorem_1(seed, above):
    """Above its bound the loss is consistent, where no third label can join the tie."""
    chances = drawn(seed)
    bound = alpha_bound(chances)
    assume(alpha_threshold(chances) <= bound + 1e-9)
    assume(bound + above < 0.98)
    assert aligned(chances, bound + above)


def test_theorem_1_overlooks_ties_of_three_labels():
    chances = np.array([0.45, 0.275, 0.275])
    assert alpha_bound(chances) == 0.0
    assert alpha_threshold(chances) == pytest.approx(6 / 13)
    np.testing.assert_allclose(best_scores(chances, 0.1), 0.0, atol=1e-6)
    assert risk(np.zeros(3), chances, 0.1) < risk(np.array([0.05, 0, 0]), chances, 0.1)
    assert aligned(chances, 0.5)


def test_several_most_likely_labels():
    chances = np.array([0.2, 0.3, 0.3, 0.2])
    assert alpha_bound(chances) == pytest.approx(0.75)
    assert alpha_threshold(chances) == pytest.approx(0.8)
    assert not aligned(chances, 0.77)
    assert aligned(chances, 0.83)


@STEADY
@given(SEEDS)
def test_the_exact_threshold_is_never_below_the_bound(seed):
    chances = drawn(seed, k=np.random.default_rng(seed).integers(2, 9))
    assert 0.0 <= alpha_bound(chances) <= alpha_threshold(chances) + 1e-12
    assert alpha_threshold(chances) <= 1.0


@pytest.mark.parametrize("k", range(3, 11))
def test_the_hinge_alone_ends_in_a_tie_where_no_label_is_dominant(k):
    """Figure 1: one label 0.46, the others share 0.54; risk 1 at a tie, 1.08 at a margin."""
    chances = np.append(0.46, np.full(k - 1, 0.54 / (k - 1)))
    margin = np.append(1.0, np.zeros(k - 1))
    assert risk(np.zeros(k), chances, 0.0) == pytest.approx(1.0)
    assert risk(margin, chances, 0.0) == pytest.approx(1.08)
    if k < 7:
        np.testing.assert_allclose(best_scores(chances, 0.01), 0.0, atol=1e-3)
        assert best_scores(chances, 0.5)[1:].max() < -0.01
        assert best_scores(chances, 1.0)[1:].max() < -0.1
    assert 0.01 < alpha_threshold(chances) < 0.5


@STEADY
@given(SEEDS, st.floats(0.0, 1.0))
def test_the_objective_is_the_conditional_risk(seed, alpha):
    """One example per label, as heavy as the label is likely, and one score per label."""
    chances = drawn(seed)
    k = len(chances)
    examples = Examples(
        Sequences(np.arange(k + 1), k), ((np.ones((k, 1)),),), np.arange(k), chances
    )
    loss = make_loss("hybrid", eps_h=0.0, alpha=alpha)
    objective = StructuredObjective(
        LinearModel(((LinearTerm(1, k),),)), examples, loss, make_cost("hamming", k)
    )
    scores = np.random.default_rng(seed).normal(size=k)
    assert objective.loss_gradient(scores)[0] == pytest.approx(risk(scores, chances, alpha))


def test_bounds_by_hand():
    assert alpha_bound([0.4, 0.36, 0.24]) == pytest.approx(0.8)
    assert alpha_bound([0.3, 0.2, 0.2, 0.2, 0.1]) == pytest.approx(0.75)
    assert alpha_threshold([0.4, 0.36, 0.24]) == pytest.approx(0.8)
    for function in (alpha_bound, alpha_threshold):
        assert function([0.5, 0.3, 0.2]) == 0.0
        assert function([0.5, 0.5]) == 0.0
        assert function([1.0]) == 0.0
        assert function([0.0, 1.0]) == 0.0
        for k in range(2, 6):
            assert function(np.full(k, 1.0 / k)) == 0.0
        many = np.array([[[0.4, 0.36, 0.24], [0.6, 0.3, 0.1]]])
        np.testing.assert_allclose(function(many), [[0.8, 0.0]])
        assert np.ndim(function([0.4, 0.36, 0.24])) == 0


@pytest.mark.parametrize(
    "given_",
    [
        0.5,
        [],
        [0.5, 0.6],
        [-0.1, 1.1],
        [np.nan, 1.0],
        [[0.5, 0.5], [0.5, 0.4]],
        "half",
        [[0.5], [1, 2]],
    ],
)
@pytest.mark.parametrize("function", [alpha_bound, alpha_threshold])
def test_what_is_no_distribution_is_refused(function, given_):
    with pytest.raises(ArgumentError, match="probabilities"):
        function(given_)


# ---- fitted models -----------------------------------------------------------------------


def enumerated(case, weights, hidden):
    """Probability of the known labels and of the best outputs, by enumeration."""
    true, best = [], []
    for i, cards in enumerate(case.cards):
        table = case.scores(i, weights).reshape(cards)
        whole = naive.soft_max(table.ravel(), 1.0)
        labels = case.labels(i)
        known = naive.observed(table, {v: y for v, y in enumerate(labels) if y >= 0})
        true.append(np.exp(naive.soft_max(known.ravel(), 1.0) - whole))
        if (labels < 0).all():
            true[-1] = np.nan
        summed = np.exp(table - whole).sum(axis=tuple(np.flatnonzero(hidden[i])))
        best.append(np.max(summed))
    return np.array(true), np.array(best)


def roles(case):
    structure = case.examples.structure
    if isinstance(structure, Sequences):
        return [np.zeros(len(cards), bool) for cards in case.cards]
    return np.split(structure.wiring.roles == HIDDEN, structure.variables[1:-1])


@STEADY
@given(SEEDS, st.sampled_from(["graphs", "sequences", "barred"]), st.sampled_from([0.3, 2.0]))
def test_probabilities_of_labellings_are_those_of_enumeration(seed, kind, scale):
    case = (
        latent.graph_case(seed, "loopy")
        if kind == "graphs"
        else latent.sequence_case(seed, "both", hidden=0.3, bars=kind == "barred")
    )
    weights = scale * np.random.default_rng(seed).normal(size=case.model.n_weights)
    found = dominance(case.model, case.examples, weights)
    true, best = enumerated(case, weights, roles(case))
    np.testing.assert_allclose(found.true, true, rtol=1e-9)
    np.testing.assert_allclose(found.best, best, rtol=1e-9)
    assert found.count == (best < 0.5).sum()


def test_messages_estimate_what_they_cannot_sum():
    """On a tree of outputs alone nothing is lost; elsewhere probabilities stay probabilities."""
    for seed in range(5):
        tree = latent.graph_case(seed, "tree", hidden=0.0)
        weights = np.random.default_rng(seed).normal(size=tree.model.n_weights)
        effort = InferenceSettings("bp", tol=1e-10, sweeps=200)
        exact = dominance(tree.model, tree.examples, weights)
        rough = dominance(tree.model, tree.examples, weights, effort)
        np.testing.assert_allclose(rough.best, exact.best, rtol=1e-6)
        np.testing.assert_allclose(rough.true, exact.true, rtol=1e-6)
        case = latent.graph_case(seed, "loopy")
        weights = 3.0 * np.random.default_rng(seed).normal(size=case.model.n_weights)
        wild = dominance(case.model, case.examples, weights, effort)
        assert (wild.best <= 1.0).all()


def test_counts():
    found = Dominance(np.array([0.1, 0.5, 0.2, 0.9]), np.array([0.3, 0.5, 0.49, 0.9]))
    np.testing.assert_array_equal(found.dominant, [False, True, False, True])
    assert found.count == 2
    assert found.share == 0.5
