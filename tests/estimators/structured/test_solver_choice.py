"""Which solver estimators take, and what their docstrings say."""

from __future__ import annotations

import dataclasses

import pytest
from naive_model import sequences

from structlearn import (
    GraphLabeler,
    GridLabeler,
    MulticlassClassifier,
    SequenceClassifier,
    SequenceLabeler,
)
from structlearn._src.common.errors import ArgumentError
from structlearn._src.learn.loss import NAMED
from structlearn._src.solve.drivers import Annealed
from structlearn._src.solve.frank_wolfe import FrankWolfe
from structlearn._src.solve.lbfgs import Lbfgs, Owlqn
from structlearn._src.solve.online import Online
from structlearn._src.solve.pick import SOLVERS, choose, choose_online
from structlearn._src.solve.stochastic import Stochastic

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

KINDS = [GraphLabeler, GridLabeler, MulticlassClassifier, SequenceClassifier, SequenceLabeler]


def short_sequences(n=6, hidden=False):
    X, Y = sequences(n, length=3, width=2)
    if hidden:
        Y[0][0] = -1
    return X, Y


@pytest.mark.parametrize(
    ("options", "data", "kind"),
    [
        ({}, {}, Lbfgs),
        ({"l1_ratio": 0.5}, {}, Owlqn),
        ({"loss": "hinge"}, {}, FrankWolfe),
        ({"loss": "hinge"}, {"hidden": True}, Annealed),
        ({"loss": "hinge", "l1_ratio": 0.5}, {}, Annealed),
        ({"loss": "hybrid"}, {}, Annealed),
        ({"loss": "hybrid"}, {"n": 5000}, Online),
        ({"loss": "eps"}, {"hidden": True}, Lbfgs),
        ({"hidden": "node", "loss": "marginal"}, {}, Annealed),
        ({"loss": "perceptron"}, {}, Online),
    ],
)
def test_auto(options, data, kind):
    labeler = SequenceLabeler(**options)
    solver = choose("auto", "subgradient", labeler.objective(*short_sequences(**data)))
    assert isinstance(solver, kind)
    assert solver.patience == (50 if kind in (Stochastic, Online) else 5)


def test_online_where_it_can():
    whole = SequenceLabeler().objective(*short_sequences())
    assert isinstance(choose_online("auto", whole), Online)
    partial = SequenceLabeler().objective(*short_sequences(hidden=True))
    assert choose_online("sgd", partial) == Stochastic("decaying", batch_size=4, average=0.5)
    assert choose_online(Stochastic(batch_size=7), whole).batch_size == 7
    with pytest.raises(ArgumentError, match="a few examples at a time"):
        choose_online(Stochastic(), whole)


@pytest.mark.parametrize("solver", [*SOLVERS])
def test_every_solver_reaches_the_optimum(solver):
    X, Y = short_sequences(12)
    loss = "hinge" if solver == "frank-wolfe" else "log"
    options = {"loss": loss, "random_state": 0, "C": 0.3, "max_iter": 300}
    labeler = SequenceLabeler(solver=solver, tol=1e-7, **options).fit(X, Y)
    best = SequenceLabeler(tol=1e-9, **options).fit(X, Y)
    value = [m.objective(X, Y) for m in (labeler, best)]
    a, b = (F.value(m.weights_) for F, m in zip(value, (labeler, best), strict=True))
    assert a == pytest.approx(b, rel=0.02)


def test_solver_that_does_not_suit():
    with pytest.raises(ArgumentError, match=r"frank-wolfe.*hinge"):
        SequenceLabeler(solver="frank-wolfe").fit(*short_sequences())


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_is_documented(kind):
    text = kind.__doc__.split("Parameters\n----------\n")[1].split("\nAttributes\n")[0]
    heads = [line for line in text.splitlines() if line and not line.startswith(" ")]
    named = [name.strip() for line in heads for name in line.split(" : ")[0].split(",")]
    assert sorted(named) == sorted(field.name for field in dataclasses.fields(kind))
    assert all(f'``"{loss}"``' in kind.__doc__ for loss in NAMED)
    assert all(f'"{solver}"' in text for solver in SOLVERS)
    assert "{" not in text
