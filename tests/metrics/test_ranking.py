"""Rankings and soft errors against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as oracle

from structlearn._src.common.errors import ArgumentError
from structlearn._src.metrics import ranking

# Few levels, so that there are ties.
CASES = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6)), min_size=2, max_size=40).filter(
    lambda rows: len({label for label, _ in rows}) == 2
)


@settings(deadline=None, derandomize=True)
@given(CASES)
def test_against_scikit_learn(rows):
    truth, scores = np.array(rows, float).T
    scores /= 6.0
    single = {n: m for n, m in ranking.METRICS.items() if n not in ranking.BLOCKWISE}
    found = {name: metric(truth, scores) for name, metric in single.items()}
    hard = scores >= 0.5
    assert found == pytest.approx(
        {
            "auroc": oracle.roc_auc_score(truth, scores),
            "aupr": oracle.average_precision_score(truth, scores),
            "aupr_negative": oracle.average_precision_score(1 - truth, -scores),
            "aupr_trapezoid": trapezoid(truth, scores),
            "mse": oracle.mean_squared_error(truth, scores),
            "rmse": oracle.mean_squared_error(truth, scores) ** 0.5,
            "mae": oracle.mean_absolute_error(truth, scores),
            "precision": oracle.precision_score(truth, hard, zero_division=0.0),
            "precision_negative": oracle.precision_score(1 - truth, ~hard, zero_division=0.0),
            "recall": oracle.recall_score(truth, hard, zero_division=0.0),
            "recall_negative": oracle.recall_score(1 - truth, ~hard, zero_division=0.0),
            "accuracy": oracle.accuracy_score(truth, hard),
            "f1": oracle.f1_score(truth, hard, zero_division=0.0),
        },
        abs=1e-12,
    )


def trapezoid(truth, scores):
    """The area under straight lines between the points of the curve, which starts at (0, 1)."""
    precision, recall, _ = oracle.precision_recall_curve(truth, scores)
    return oracle.auc(recall, precision)


def test_the_trapezoid_is_psl_s():
    found = ranking.METRICS["aupr_trapezoid"]([1, 0, 1, 0], [0.9, 0.8, 0.4, 0.3])
    assert found == pytest.approx(0.791667, abs=1e-6)  # of its AUCEvaluatorTest


@settings(deadline=None, derandomize=True)
@given(CASES, st.integers(1, 5))
def test_blocks_against_loops(rows, size):
    truth, scores = np.array(rows, float).T
    truth[::3] = np.nan
    blocks = np.arange(len(rows)) // size
    hits, ranks = [], []
    for block in np.unique(blocks):
        inside = [(s, t) for s, t, b in zip(scores, truth, blocks, strict=True) if b == block]
        best = [t for s, t in inside if s == max(inside)[0]]
        hits += [(s == max(inside)[0]) / len(best) for s, t in inside if t == 1]
        firsts = [s for s, t in inside if t == 1]
        if firsts:
            above = sum(s > max(firsts) for s, _ in inside)
            ties = sum(s == max(firsts) for s, _ in inside)
            ranks.append(1 / np.mean([above + 1 + k for k in range(ties)]))
    if not hits:
        with pytest.raises(ArgumentError, match="nothing to find"):
            ranking.categorical_accuracy(truth, scores, blocks)
        return
    assert ranking.categorical_accuracy(truth, scores, blocks) == pytest.approx(np.mean(hits))
    assert ranking.mean_reciprocal_rank(truth, scores, blocks) == pytest.approx(np.mean(ranks))


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8])
def test_thresholds_divide_truth_and_scores(threshold):
    rng = np.random.default_rng(5)
    truth, scores = rng.random((2, 50))
    true, given = truth >= threshold, scores >= threshold
    for name in ("precision", "recall", "f1", "accuracy"):
        expected = getattr(oracle, f"{name}_score")(true, given)
        assert ranking.METRICS[name](truth, scores, threshold=threshold) == pytest.approx(expected)


@pytest.mark.parametrize("truth", [[1, 1], [0, 0]], ids=["positive", "negative"])
def test_one_class_has_no_ranking(truth):
    with pytest.raises(ArgumentError, match="both classes"):
        ranking.auroc(truth, [0.1, 0.2])


@pytest.mark.parametrize(
    ("truth", "scores", "message"),
    [([1, 0], [0.1], "of one length"), ([1, 0], [0.1, np.nan], "finite"), ([], [], "not empty")],
    ids=["lengths", "nan", "nothing"],
)
def test_bad_input_is_named(truth, scores, message):
    for name, metric in ranking.METRICS.items():
        blocks = {"blocks": np.zeros(len(truth))} if name in ranking.BLOCKWISE else {}
        with pytest.raises(ArgumentError, match=message):
            metric(truth, scores, **blocks)
