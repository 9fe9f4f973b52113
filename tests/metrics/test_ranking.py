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
    found = {name: metric(truth, scores) for name, metric in ranking.METRICS.items()}
    hard = scores >= 0.5
    assert found == pytest.approx(
        {
            "auroc": oracle.roc_auc_score(truth, scores),
            "aupr": oracle.average_precision_score(truth, scores),
            "aupr_negative": oracle.average_precision_score(1 - truth, -scores),
            "mse": oracle.mean_squared_error(truth, scores),
            "accuracy": oracle.accuracy_score(truth, hard),
            "f1": oracle.f1_score(truth, hard, zero_division=0.0),
        },
        abs=1e-12,
    )


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
    for metric in ranking.METRICS.values():
        with pytest.raises(ArgumentError, match=message):
            metric(truth, scores)
