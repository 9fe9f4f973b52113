"""Every linear map against its dense matrix, and `pull` as the adjoint of `push`."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structlearn._src.common import threads
from structlearn._src.common.errors import ArgumentError
from structlearn._src.model.model import LinearModel
from structlearn._src.model.term import LinearTerm, PairsTerm, Sparse, TableTerm, take_rows
from structlearn._src.text.rows import Rows, from_dense

STEADY = settings(max_examples=40, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**32 - 1)


def features(rng, n=None, width=None, binary=None):
    """A sparse array of features; sometimes of zeros and ones only, sometimes without rows."""
    n = int(rng.integers(0, 9)) if n is None else n
    width = int(rng.integers(1, 6)) if width is None else width
    x = np.where(rng.random((n, width)) < 0.5, rng.normal(size=(n, width)), 0.0)
    return (x != 0).astype(float) if (rng.random() < 0.5 if binary is None else binary) else x


def adjoint(term, x, n, seed):
    """<push(w), m> = <w, pull(m)> for random w and m of the shapes that belong together."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=term.n_weights)
    tables = term.push(weights, x)
    assert tables.shape in ((n, term.size), (1, term.size))
    marginals = rng.normal(size=tables.shape)
    pulled = term.pull(marginals, x)
    assert pulled.shape == weights.shape
    assert pulled.dtype == np.float64
    assert (tables * marginals).sum() == pytest.approx(weights @ pulled, rel=1e-10, abs=1e-10)


@STEADY
@given(SEEDS)
def test_linear_is_a_product_for_arrays_and_for_sparse_rows(seed):
    rng = np.random.default_rng(seed)
    x = features(rng)
    term = LinearTerm(x.shape[1], int(rng.integers(1, 5)))
    weights = rng.normal(size=(x.shape[1], term.size))
    marginals = rng.normal(size=(len(x), term.size))
    for given_ in (x, Sparse(from_dense(x)), np.asfortranarray(x), x.astype(np.float32)):
        tol = 1e-6 if getattr(given_, "dtype", 0) == np.float32 else 1e-11
        pushed = term.push(weights.ravel(), given_)
        np.testing.assert_allclose(pushed, x @ weights, rtol=tol, atol=tol)
        pulled = term.pull(marginals, given_)
        np.testing.assert_allclose(pulled, (x.T @ marginals).ravel(), rtol=tol, atol=tol)
    adjoint(term, x, len(x), seed)
    adjoint(term, Sparse(from_dense(x)), len(x), seed)


@STEADY
@given(SEEDS)
def test_pairs_are_linear_with_the_other_weights_at_zero(seed):
    rng = np.random.default_rng(seed)
    x, size = features(rng), int(rng.integers(1, 5))
    labels = rng.integers(-1, size, len(x))
    sparse = Sparse(from_dense(x))
    pairs = PairsTerm.seen(sparse, labels, size)
    seen = np.zeros((x.shape[1], size), bool)
    for row, label in zip(x, labels, strict=True):
        if label >= 0:
            seen[row != 0, label] = True
    states = [
        pairs.states[a:b].tolist() for a, b in zip(pairs.offsets, pairs.offsets[1:], strict=False)
    ]
    assert states == [np.flatnonzero(row).tolist() for row in seen]
    assert pairs.n_weights == seen.sum()
    weights = np.zeros(seen.shape)
    weights[seen] = rng.normal(size=pairs.n_weights)
    marginals = rng.normal(size=(len(x), size))
    np.testing.assert_allclose(pairs.push(weights[seen], sparse), x @ weights, atol=1e-12)
    np.testing.assert_allclose(
        pairs.pull(marginals, sparse), (x.T @ marginals)[seen], rtol=1e-11, atol=1e-12
    )
    adjoint(pairs, sparse, len(x), seed)


def test_pairs_hold_for_other_rows_than_those_they_were_seen_in():
    rng = np.random.default_rng(4)
    x, y = features(rng, 6, 4), features(rng, 9, 4)
    pairs = PairsTerm.seen(Sparse(from_dense(x)), rng.integers(0, 3, 6), 3)
    adjoint(pairs, Sparse(from_dense(y)), 9, 0)


@STEADY
@given(SEEDS)
def test_tables_share_weights_as_their_ties_say(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 7))
    ties = rng.integers(-1, 4, size)
    term = TableTerm(size, tuple(int(t) for t in ties))
    assert term.n_weights == ties.max() + 1
    weights = rng.normal(size=term.n_weights)
    expected = [0.0 if t < 0 else weights[t] for t in ties]
    np.testing.assert_array_equal(term.push(weights, None), [expected])
    adjoint(term, None, 1, seed)
    adjoint(TableTerm(size), None, 1, seed)
    # Marginals of many factors come back summed.
    marginals = rng.normal(size=(5, size))
    np.testing.assert_allclose(
        term.pull(marginals, None), term.pull(marginals.sum(axis=0, keepdims=True), None)
    )


@pytest.mark.parametrize("states", [1, 2, 4])
def test_symmetric_and_potts_tables(states):
    rng = np.random.default_rng(states)
    both = TableTerm.symmetric(states)
    assert both.n_weights == states * (states + 1) // 2
    table = both.push(rng.normal(size=both.n_weights), None).reshape(states, states)
    np.testing.assert_array_equal(table, table.T)
    assert len(np.unique(table)) == both.n_weights
    equal = TableTerm.potts(states).push(np.array([1.5]), None).reshape(states, states)
    np.testing.assert_array_equal(equal, 1.5 * np.eye(states))
    adjoint(both, None, 1, 0)
    adjoint(TableTerm.potts(states), None, 1, 0)


@STEADY
@given(SEEDS, st.sampled_from(["array", "sparse", "none"]))
def test_by_position_gives_every_position_its_own_weights(seed, kind):
    rng = np.random.default_rng(seed)
    x = features(rng)
    positions = int(rng.integers(1, 4))
    where = rng.integers(0, positions, len(x))
    if kind == "none":
        x = np.ones((len(x), 1))
    given_ = {"array": x, "sparse": Sparse(from_dense(x)), "none": None}[kind]
    wide = Sparse.by_position(given_, where, positions)
    dense = np.zeros((len(x), positions, x.shape[1]))
    dense[np.arange(len(x)), where] = x
    term = LinearTerm(positions * x.shape[1], 2)
    assert wide.shape == (len(x), term.n_features)
    weights = rng.normal(size=term.n_weights)
    expected = dense.reshape(len(x), term.n_features) @ weights.reshape(-1, 2)
    np.testing.assert_allclose(term.push(weights, wide), expected, atol=1e-12)
    adjoint(term, wide, len(x), seed)


def test_too_many_columns_by_position_are_refused():
    wide = Rows(np.array([0, 1]), np.zeros(1, np.int32), np.empty(0), 70_000)
    with pytest.raises(ArgumentError, match="70000 features at each of 70000 positions"):
        Sparse.by_position(Sparse(wide), np.array([0]), 70_000)


def test_rows_can_be_taken():
    rng = np.random.default_rng(2)
    x, which = features(rng, 6, 3), np.array([4, 0, 4])
    assert take_rows(None, which) is None
    np.testing.assert_array_equal(take_rows(x, which), x[which])
    taken = take_rows(Sparse(from_dense(x)), which)
    weights = rng.normal(size=6)
    np.testing.assert_allclose(
        LinearTerm(3, 2).push(weights, taken), x[which] @ weights.reshape(3, 2), atol=1e-12
    )


@pytest.mark.parametrize("method", ["push", "pull"])
def test_features_that_do_not_fit_are_refused(method):
    """Above all sparse ones: kernels do not look whether a column exists."""
    x = np.ones((4, 3))
    argument = {"push": np.ones(4), "pull": np.ones((4, 2))}[method]
    for wrong in (None, x, Sparse(from_dense(x))):
        with pytest.raises(ArgumentError, match="weights need features with 2 columns"):
            getattr(LinearTerm(2, 2), method)(argument, wrong)
    pairs = PairsTerm.seen(Sparse(from_dense(x[:, :2])), np.zeros(4, np.int64), 2)
    argument = np.ones(pairs.n_weights) if method == "push" else argument
    for wrong in (None, x[:, :2], Sparse(from_dense(x))):
        with pytest.raises(ArgumentError, match="weights need sparse features with 2 columns"):
            getattr(pairs, method)(argument, wrong)


# ---- models ------------------------------------------------------------------------------


def random_model(rng):
    """Two groups, each a sum of several terms, one with a single row."""
    n, m, size = int(rng.integers(1, 6)), int(rng.integers(1, 6)), int(rng.integers(2, 5))
    x, y = features(rng, n, 3), features(rng, m, 2, binary=True)
    sparse = Sparse(from_dense(y))
    pairs = PairsTerm.seen(sparse, rng.integers(0, size, m), size)
    groups = (
        (LinearTerm(3, size), TableTerm(size, (0,) * size)),
        (LinearTerm(2, size), pairs, TableTerm(size)),
        (TableTerm(4), TableTerm.potts(2)),
    )
    return LinearModel(groups), ((x, None), (y, sparse, None), (None, None))


@STEADY
@given(SEEDS)
def test_a_model_is_the_sum_of_its_terms_and_has_an_adjoint(seed):
    rng = np.random.default_rng(seed)
    model, inputs = random_model(rng)
    weights = rng.normal(size=model.n_weights)
    tables = model.push(weights, inputs)
    assert [len(t) for t in tables] == [len(inputs[0][0]), len(inputs[1][0]), 1]
    start = 0
    for terms, xs, table in zip(model.groups, inputs, tables, strict=True):
        total = np.zeros_like(table)
        for term, x in zip(terms, xs, strict=True):
            total += term.push(weights[start : start + term.n_weights], x)
            start += term.n_weights
        np.testing.assert_allclose(table, total)
    assert start == model.n_weights
    marginals = tuple(rng.normal(size=table.shape) for table in tables)
    product = sum((t * m).sum() for t, m in zip(tables, marginals, strict=True))
    assert product == pytest.approx(weights @ model.pull(marginals, inputs), rel=1e-10)


def test_blocks_lie_one_after_the_other():
    model, _ = random_model(np.random.default_rng(1))
    flat = [block for group in model.blocks for block in group]
    assert flat[0].start == 0
    assert flat[-1].stop == model.n_weights
    assert all(a.stop == b.start for a, b in itertools.pairwise(flat))
    assert LinearModel(()).n_weights == 0
    assert LinearModel(()).push(np.zeros(0), ()) == ()
    assert LinearModel(()).pull((), ()).shape == (0,)


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setitem(threads.GRAIN, "features", 16)
    rng = np.random.default_rng(0)
    x = Sparse(from_dense(features(rng, 200, 30, binary=False)))
    pairs = PairsTerm.seen(x, rng.integers(0, 3, 200), 3)
    marginals = rng.normal(size=(200, 3))
    for term in (LinearTerm(30, 3), pairs):
        weights = rng.normal(size=term.n_weights)
        for first, second in (
            (term.push(weights, x, n_jobs) for n_jobs in (1, 3)),
            (term.pull(marginals, x, n_jobs) for n_jobs in (1, 3)),
        ):
            np.testing.assert_array_equal(first, second)
