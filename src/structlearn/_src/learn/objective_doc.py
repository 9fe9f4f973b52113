"""Sections of the docstrings of `Ability` and `Objective`, which `completed` adds."""

from __future__ import annotations

ABILITY = {
    "": """\
Examples
--------
>>> from structlearn import SequenceLabeler
>>> from structlearn.solvers import Ability
>>> objective = SequenceLabeler().objective([[["the"], ["cat"]]], [["D", "N"]])
>>> Ability.BATCHES in objective.abilities
True""",
}

OBJECTIVE = {
    "": """\
Examples
--------
A new objective defines a penalty, the number of weights, and losses with their gradient:

>>> import numpy as np
>>> from structlearn.losses import ElasticNet, Objective, ValueGradient
>>> from structlearn.solvers import Lbfgs, run
>>> class LeastSquares(Objective):
...     penalty = ElasticNet(strength=0.01)
...     n_weights = 2
...     convex = smooth = True
...
...     def loss_gradient(self, weights, memory=None):
...         gap = np.array([[1.0, 0.0], [1.0, 1.0]]) @ weights - [1.0, 3.0]
...         gradient = np.array([[1.0, 1.0], [0.0, 1.0]]) @ gap
...         return ValueGradient(0.5 * float(gap @ gap), gradient, memory)
>>> run(Lbfgs(), LeastSquares(), np.zeros(2)).weights.round(1)
array([1., 2.])""",
    "diagonal": """\
Parameters
----------
weights
    (weights,) The weights.

Returns
-------
array of shape (weights,) or None
    Estimates of the second derivatives; None where there is no estimate.

Examples
--------
>>> import numpy as np
>>> from structlearn import SequenceLabeler
>>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", None]]
>>> objective = SequenceLabeler().objective(X, Y)
>>> weights = np.zeros(objective.n_weights)
>>> curvature = objective.diagonal(weights)
>>> curvature is None or bool((curvature > 0.0).all())
True""",
    "begin": """\
Returns
-------
object
    State of inference that `value` and `value_gradient` accept; None if inference is exact.

Examples
--------
>>> import numpy as np
>>> from structlearn import SequenceLabeler
>>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", None]]
>>> objective = SequenceLabeler().objective(X, Y)
>>> weights = np.zeros(objective.n_weights)
>>> memory = objective.begin()
>>> objective.value(weights, memory) == objective.value(weights)
True""",
    "loss_gradient": """\
Parameters
----------
weights
    (weights,) The weights.
memory
    State of inference of an earlier evaluation, or None.

Returns
-------
ValueGradient
    Value, gradient of shape (weights,), and memory.

Examples
--------
>>> import numpy as np
>>> from structlearn import SequenceLabeler
>>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", None]]
>>> objective = SequenceLabeler().objective(X, Y)
>>> weights = np.zeros(objective.n_weights)
>>> round(objective.loss_gradient(weights).value, 4)  # log(4) + log(2)
2.0794""",
    "value_gradient": """\
Parameters
----------
weights
    (weights,) The weights.
memory
    State of inference of an earlier evaluation, or None.

Returns
-------
ValueGradient
    Value, gradient of shape (weights,), and memory.

Examples
--------
>>> import numpy as np
>>> from structlearn import SequenceLabeler
>>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", None]]
>>> objective = SequenceLabeler().objective(X, Y)
>>> weights = np.zeros(objective.n_weights)
>>> found = objective.value_gradient(weights)
>>> found.gradient.shape == weights.shape
True""",
    "loss_value": """\
Parameters
----------
weights
    (weights,) The weights.
memory
    State of inference of an earlier evaluation, or None.

Returns
-------
float
    The losses, without the penalty.

Examples
--------
>>> import numpy as np
>>> from structlearn import SequenceLabeler
>>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", None]]
>>> objective = SequenceLabeler().objective(X, Y)
>>> weights = np.zeros(objective.n_weights)
>>> round(objective.loss_value(weights), 4)  # log(4) + log(2)
2.0794""",
    "value": """\
Parameters
----------
weights
    (weights,) The weights.
memory
    State of inference of an earlier evaluation, or None.

Returns
-------
float
    Penalty plus C times the losses.

Examples
--------
>>> import numpy as np
>>> from structlearn import SequenceLabeler
>>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", None]]
>>> objective = SequenceLabeler().objective(X, Y)
>>> weights = np.zeros(objective.n_weights)
>>> objective.value(weights + 1.0) > objective.value(weights)
True""",
    "take": """\
Parameters
----------
which
    Indices of the examples.

Returns
-------
Objective
    Its losses are those of these examples; the penalty stays the same.

Examples
--------
>>> import numpy as np
>>> from structlearn import SequenceLabeler
>>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", None]]
>>> objective = SequenceLabeler().objective(X, Y)
>>> weights = np.zeros(objective.n_weights)
>>> round(objective.take(np.array([1])).loss_value(weights), 4)  # log(2)
0.6931""",
    "batch_gradient": """\
Parameters
----------
weights
    (weights,) The weights.
which
    Indices of the examples.

Returns
-------
ValueGradient
    Value, gradient of shape (weights,), and memory.

Examples
--------
>>> import numpy as np
>>> from structlearn import SequenceLabeler
>>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", None]]
>>> objective = SequenceLabeler().objective(X, Y)
>>> weights = np.zeros(objective.n_weights)
>>> round(objective.batch_gradient(weights, np.array([0])).value, 4)  # log(4)
1.3863""",
    "linearise": """\
Parameters
----------
weights
    (weights,) Where the bound touches.
memory
    State of inference of an earlier evaluation, or None.

Returns
-------
Objective
    The bound, which is convex.

Examples
--------
>>> import numpy as np
>>> from structlearn import SequenceLabeler
>>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", None]]
>>> objective = SequenceLabeler().objective(X, Y)
>>> weights = np.zeros(objective.n_weights)
>>> bound = objective.linearise(weights)
>>> objective.convex, bound.convex, bound.value(weights) - objective.value(weights) < 1e-9
(False, True, True)""",
    "softened": """\
Parameters
----------
eps
    Lowest temperature.

Returns
-------
Objective
    A smoothed objective, if `eps` is positive.

Examples
--------
>>> from structlearn import SequenceLabeler
>>> hinge = SequenceLabeler(loss="hinge").objective([[["the"], ["cat"]]], [["D", "N"]])
>>> hinge.smooth, hinge.softened(0.1).smooth
(False, True)""",
    "with_budget": """\
Parameters
----------
budget
    Largest number of sweeps of message passing, or of steps of ADMM, in one evaluation.

Returns
-------
Self
    The objective with the budget.

Examples
--------
The driver of paired learning calls it; estimators set the number of sweeps:

>>> from structlearn import GridLabeler
>>> image = [[0.9, 0.8], [0.1, 0.2]]
>>> labeler = GridLabeler(driver="paired", sweeps=2, max_iter=3, tol=None, inference="bp")
>>> labeler.fit([image], [[[1, 1], [0, 0]]]).n_iter_
3""",
    "warmed": """\
Parameters
----------
memory
    State of inference of an earlier evaluation.

Returns
-------
Self
    The objective that starts from it.

Examples
--------
>>> import numpy as np
>>> from structlearn import SequenceLabeler
>>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", None]]
>>> objective = SequenceLabeler().objective(X, Y)
>>> weights = np.zeros(objective.n_weights)
>>> memory = objective.value_gradient(weights).memory
>>> objective.warmed(memory).value(weights) == objective.value(weights)
True""",
}
