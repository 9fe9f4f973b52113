"""Text that the docstrings of all estimators share, written once."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

Thing = TypeVar("Thing", bound=Any)

#: By their placeholders in docstrings.
_PIECES = {
    "{shared}": """\
loss
    The loss, a choice of temperatures and cost; see the notes.
alpha
    Mixing weight of the log loss in ``loss="hybrid"``.
eps_y, eps_h
    Temperatures of outputs and of hidden variables, instead of the defaults of the loss. In
    prediction, hidden variables are summed out at `eps_h` too.
cost : str or array-like
    Cost of an error in losses with a margin. "hamming" counts wrong labels, "hamming-mean" is the
    fraction of wrong labels in the example, "zero-one" is 1 for every labelling but the true one
    (for sequences without hidden variables). An array (classes,) has a cost for each true label, an
    array (classes, classes) for each pair of true and predicted label.
C
    Weight of the losses relative to the penalty on the weights; infinity for no penalty.
l1_ratio
    Fraction of the penalty on absolute values; the rest is on squares.
class_weight : dict or str, optional
    None, "balanced", or a mapping from label to weight, with weight 1 for labels not in it. An
    example is weighted by the mean weight of its labels.
solver
    "lbfgs", "owlqn" (for ``l1_ratio > 0``), "descent" (steepest descent with line search),
    "frank-wolfe" (for the hinge loss on sequences), "sdca" (for smooth losses on sequences),
    "annealed" (for non-smooth losses, smoothed at decreasing temperatures), "sgd",
    "adagrad" or "pegasos" (stochastic), a solver from `structlearn.solvers`, or "auto", which
    chooses one that suits the loss.
driver
    "subgradient" repeats inference at every step; "cccp" fixes the posterior of the hidden
    variables given the labels for a whole minimisation; "paired" makes `sweeps` sweeps of message
    passing between steps.
max_iter
    Maximum number of iterations.
tol
    Relative tolerance of the objective at which fitting stops; None to continue to `max_iter`.
gradient_tol
    Gradient norm at which fitting also stops, for solvers that compute it ("lbfgs", "owlqn",
    "descent"); ignored if None.
init
    Initial weights: "zeros", "random" (small numbers), or "auto": random if there are hidden
    variables, whose states could not be distinguished at 0.
inference
    "exact", "bp" (belief propagation), "trw" (tree-reweighted belief propagation, stable where
    factors are strong), or "auto": exact where that is fast, otherwise "bp", and "trw" if the
    objective reported by "bp" turns out to be wrong, with an `InferenceWarning`.
sweeps
    Number of sweeps between the steps of ``driver="paired"``.
warm_start
    Whether `fit` starts from the weights of the previous fit, which requires the same features and
    labels.
random_state : int, Generator or RandomState, optional
    Random seed, for the initial weights if these are random, and for the order of examples in
    stochastic solvers.
n_jobs
    Number of threads; all cores if None or -1. Results do not depend on it, except that `Sdca` and
    `FrankWolfe` take other steps with fewer than 4 threads than with more, see `batch_size` there.
time_limit
    Seconds after which fitting stops and keeps the best weights so far.
progress
    True shows a bar on standard error; a function is called with the fraction done and a few words
    after every iteration.
callbacks
    Functions called with an event after every iteration; one that returns True ends the fit.
checkpoint : Checkpoint or path, optional
    File in which the state of the fit is saved, so that a killed fit can be resumed.

Attributes
----------
classes_
    Labels, in the order of the states.
weights_
    All weights, in one array.
transitions_
    Edge weights for each pair of labels, if there are edges.
n_features_in_
    Number of features, without the intercept.
value_
    The objective at the weights.
history_
    Objective, gap and gradient norm of every iteration. Stochastic solvers record what they know
    during the run: the losses encountered, or the objective at the current weights instead of the
    average.
n_iter_
    Number of iterations.
converged_, status_
    Whether the fit converged, and a sentence that describes the outcome.""",
    "{hidden}": """\
tied
    Whether all positions share their weights. Otherwise each has its own, which requires that all
    examples have the same nodes and edges.
hidden
    None; "node" for a hidden state at every output, linked only to that output; "layer" for hidden
    states that are linked to each other instead of the outputs.
hidden_states
    Number of states of each hidden variable.""",
    "{features}": """\
features
    "dense": every feature has a weight for every label. "sparse": only the pairs of feature and
    label (and of labels) that occur in training have one, which requires tokens or sparse matrices
    and saves most of the memory of text models.""",
    "{notes}": r"""The objective is

.. math:: \frac{1}{2} \|w\|^2 + C \sum_i c_i \ell_i(w)
          \qquad \text{with} \qquad
          \ell = \Phi(\theta + \Delta; \epsilon_y, \epsilon_h) -
          \Phi(\theta \text{ with } y \text{ clamped}; \epsilon_h) ,

where :math:`\Phi` is a soft maximum over the outputs at temperature :math:`\epsilon_y` of a soft
maximum over the hidden variables at :math:`\epsilon_h` (1 sums, 0 maximises). `C` is the C of
scikit-learn and CRF++'s ``-c``; CRFsuite's ``c2`` is 1 / (2 C).

==================  ==========  ==========  ======  ==========================================
loss                `eps_y`     `eps_h`     cost    model
==================  ==========  ==========  ======  ==========================================
``"log"``           1           1           no      CRF; hidden CRF
``"hinge"``         0           0           yes     structured SVM; latent structured SVM
``"latent-hinge"``  0           0           yes     the same; alias used with hidden variables
``"marginal"``      0           1           yes     marginal structured SVM
``"eps"``           0.5         0.5         yes     the family in between; set `eps_y`
``"hybrid"``        0           1           yes     `alpha` of log, the rest marginal
``"perceptron"``    0           0           no      structured perceptron
==================  ==========  ==========  ======  ==========================================""",
    "{references}": """\
W. Ping, Q. Liu and A. Ihler, "Marginal structured SVM with hidden variables", 2014.
Q. Shi et al., "A hybrid loss for multiclass and structured prediction", 2014.""",
    "{names}": """\
Returns
-------
list of str
    One name for each feature.

Examples
--------
>>> from structlearn.extend import GraphReader
>>> tokens = [["the"], ["cat"]]
>>> reader, _ = GraphReader.learn([(tokens, [[0, 1]])], intercept=False)
>>> reader.names()
['the', 'cat']""",
    "{steps}": """\
Steps are stochastic, and their counters continue from call to call. Together, the calls minimise
the objective that one `fit` to all their examples would; an example given twice counts twice.""",
    "{components}": """\
variance
    Prior variance of the weights of classifiers, on scaled features.
spread
    Expected variance of the features within a component, relative to the variance of all rows.
strength
    Weight of the prior mean, the mean of all rows, as an equivalent number of rows.
degrees
    Degrees of freedom of the covariances of components, at least the number of features;
    ``features + 2`` if None.""",
    "{sampling}": """\
burn_in, n_draws, thin
    Sweeps before the first draw, draws kept per chain, and sweeps per draw.
n_chains
    Number of independent chains, which run in threads and whose draws are pooled. A
    `MixingWarning` reports that they disagree, which a single chain can hardly show.
warm_start
    Whether `fit` continues the chains of the previous fit up to the new `n_draws`; requires the
    same data and parameters.
random_state : int, Generator or RandomState, optional
    Random seed.
n_jobs
    Number of threads; all cores if None or -1. Draws do not depend on it.
time_limit
    Seconds after which sampling stops with the draws so far; a `BurnInWarning` reports that there
    are none.
progress
    True shows a bar on standard error; a function is called with the fraction done and a few words
    after every sweep.""",
    "{draws}": """\
draws_, chains_
    All draws, and the chains with everything needed to continue them; the `trace` of a chain
    records every sweep.
ended_, status_
    How sampling ended, as a value and as a word: "done", "time" or "interrupted".
settings_, data_signature_
    The parameters that define the model, as they were in the fit, and a signature of the data.""",
    "{inference}": """\
tol
    Gap at which inference stops, relative to the energy plus the smallest positive weight.
max_iter
    Maximum number of ADMM steps in one inference.
n_jobs
    Number of threads; all cores if None or -1. Results do not depend on it.
time_limit
    Seconds after which `predict` and `fit` stop with the best result so far.
progress
    True shows a bar on standard error; a function is called with the fraction done and a few
    words.""",
    "{found}": """\
result_
    Result of the last inference, which is run if there is none for the current weights.
energy_, lower_bound_, gap_, violation_
    From `result_`: the energy, a proved lower bound on the energy, their difference, and the
    largest violation of a hard constraint.
value_, history_, n_iter_, converged_, status_, ended_
    Outcome of learning, after `fit`.""",
    "{field_learning}": r"""driver
    "bilevel" minimises the squared error of the inferred values, using their exact derivative with
    respect to the weights, and keeps weights near their initial values where labels carry little
    information. The others minimise the difference in energy between the labels and the inferred
    values, as in the papers: "paired" is paired-dual learning, with `sweeps` warm-started steps of
    ADMM between two weight updates; "cccp" alternately infers the latent variables and learns as if
    they were known, which is expectation maximisation, so "em" means the same; "subgradient" infers
    to convergence before every weight update. "auto" is "bilevel", or "paired" if one of the
    options from `sweeps` to `eta` is given. (Formerly `learner`.)
solver
    Solver for the weight updates: "auto" for the steps described by `rule`, `step_size` and
    `average`, or a name or solver as for other estimators.
C
    Weight of the losses relative to the penalty.
sweeps
    ADMM steps for each weight update of "paired", in both worlds. (Formerly `steps`.)
warm_up
    Evaluations of "paired" before the first weight update.
inner_iter
    Weight updates of "cccp" for each estimate of the latent variables.
surrogate
    Replacement for the entropy :math:`h` in the energies: "loss" pushes labelled variables away
    from their labels, as structured support vector machines do; "entropy" pulls all values to one
    half, which makes weights vanish if a quarter to three quarters of the labels hold; "none" gives
    the perceptron, whose optimal weights are 0.
strength
    Weight of the surrogate, in units of the mean initial weight.
l1_ratio
    Fraction of the penalty on absolute values; the rest is on squares.
eta
    Step size of ADMM; the mean weight if None.
max_iter
    Maximum number of weight updates, or of bounds for "cccp".
tol
    As for other estimators; by default 0.01 for "bilevel", 1e-4 for the others.
callbacks, checkpoint, time_limit, progress
    As for other estimators; the last two default to those of the field or model.
rule
    How step lengths decrease: "adagrad" adapts a length for each weight; "root" steps decrease as
    :math:`1 / \sqrt{t}` and are divided by the number of a rule's hinges; or "decaying", "fixed",
    "pegasos".
step_size
    Length of the first weight update, in units of the mean initial weight; rules other than
    "adagrad" multiply it by the gradient over the number of hinges. By default 0.3 for "adagrad",
    otherwise 1.
average
    Fraction of the weight updates, at the end, whose weights are averaged; 0 for none, the default
    of "bilevel"; the default of the others is 0.5.""",
}


def documented(thing: Thing) -> Thing:
    """Insert the shared text into the docstring of an estimator or of a method."""
    text = inspect.cleandoc(thing.__doc__ or "")
    for name, piece in _PIECES.items():
        text = text.replace(name, piece)
    thing.__doc__ = text
    return thing
