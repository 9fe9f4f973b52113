"""Parameters of sklearn-crfsuite: the same objective, and nothing is dropped in silence."""

from __future__ import annotations

import math

import pytest

from structlearn import SequenceLabeler
from structlearn.errors import ArgumentError, IgnoredOptionWarning

X = [[["the"], ["cat"]], [["a"], ["dog"], ["sleeps"]], [["a"], ["cat"]]]
Y = [["D", "N"], ["D", "N", "V"], ["D", "N"]]


@pytest.mark.parametrize(
    ("c1", "c2"), [(0.0, 0.5), (0.0, 1.0), (0.1, 0.2), (1.0, 0.0), (0.0, 0.0), (0.3, None)]
)
def test_penalties_are_the_same(c1, c2):
    """C times (c1 |w|_1 + c2 |w|^2) is our penalty, for any weights."""
    made = SequenceLabeler.from_crfsuite(c1=c1, c2=c2)
    c2 = 1.0 if c2 is None else c2
    if c1 == c2 == 0.0:
        assert math.inf == made.C
        return
    absolute, squares = 0.7, 0.3
    theirs = c1 * absolute + c2 * squares
    ours = (1 - made.l1_ratio) / 2 * squares + made.l1_ratio * absolute
    assert ours / made.C == pytest.approx(theirs, rel=1e-12)
    assert made.solver == ("owlqn" if c1 else "lbfgs")


def test_names():
    made = SequenceLabeler.from_crfsuite(
        algorithm="l2sgd", c2=0.5, min_freq=1.5, max_iterations=7, delta=1e-3, verbose=True,
        all_possible_states=True, all_possible_transitions=True, random_state=3,
    )  # fmt: skip
    wanted = {
        "solver": "sgd", "C": 1.0, "min_count": 2, "max_iter": 7, "tol": 1e-3, "progress": True,
        "features": "dense", "random_state": 3,
    }  # fmt: skip
    assert {name: getattr(made, name) for name in wanted} == wanted
    plain = SequenceLabeler.from_crfsuite()
    assert (plain.features, plain.C, plain.solver) == ("sparse", 0.5, "lbfgs")
    assert SequenceLabeler.from_crfsuite(algorithm="ap").loss == "perceptron"


def test_what_is_made_can_be_fitted():
    made = SequenceLabeler.from_crfsuite(algorithm="lbfgs", c2=0.1, max_iterations=100)
    assert made.fit(X, Y).predict([[["the"], ["dog"]]])[0].tolist() == ["D", "N"]


def test_details_are_ignored_aloud():
    with pytest.warns(IgnoredOptionWarning, match=r"^period is a detail .* ignored$"):
        SequenceLabeler.from_crfsuite(period=5)
    with pytest.warns(IgnoredOptionWarning, match=r"epsilon, model_filename are .* save"):
        SequenceLabeler.from_crfsuite(model_filename="m", epsilon=1e-3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"algorithm": "pa"}, "algorithm='pa' is not available.*hinge"),
        ({"gamma": 1.0}, "'gamma', a parameter of pa or arow"),
        ({"algorithm": "lbgfs"}, "algorithm='lbgfs' is not known"),
        ({"all_possible_states": True}, "give the same for both"),
        ({"c2": -1.0}, "c2=-1.0 must lie in"),
        ({"max_iteration": 3}, "neither .*did you mean 'max_iterations'"),
    ],
)
def test_what_is_refused(given, words):
    with pytest.raises(ArgumentError, match=words):
        SequenceLabeler.from_crfsuite(**given)


@pytest.mark.parametrize(("c1", "c2", "every"), [(0.0, 0.5, False), (0.0, 0.2, True)])
def test_the_same_marginals_as_crfsuite(c1, c2, every):
    peer = pytest.importorskip("sklearn_crfsuite")
    given = {
        "c1": c1, "c2": c2, "all_possible_states": every, "all_possible_transitions": every,
        "max_iterations": 1000, "delta": 1e-9,
    }  # fmt: skip
    theirs = peer.CRF(**given, epsilon=1e-9).fit(X, Y).predict_marginals(X)
    made = SequenceLabeler.from_crfsuite(**given).fit(X, Y)
    for mine, other in zip(made.predict_marginals(X), theirs, strict=True):
        for row, wanted in zip(mine, other, strict=True):
            assert row.tolist() == pytest.approx([wanted[k] for k in made.classes_], abs=1e-4)
