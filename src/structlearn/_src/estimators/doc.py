"""What the docstrings of all estimators share, written once."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

Thing = TypeVar("Thing", bound=Any)

#: By the names that stand for them in docstrings.
_PIECES = {
    "{shared}": """\
loss
    Which loss; a choice of temperatures and cost, see the notes.
alpha
    Share of the log loss in ``loss="hybrid"``.
eps_y, eps_h
    Temperatures of outputs and of hidden variables, instead of those of the loss. Hidden
    variables are summed out at `eps_h` in prediction too.
cost
    What an error costs in losses with a margin: "hamming" counts wrong labels, "hamming-mean"
    takes their share of the example, "zero-one" is 1 for every labelling but the true one (for
    sequences without hidden variables); an array (classes,) says what an error costs by true label,
    an array (classes, classes) by true and given label.
C
    Weight of the losses against the penalty on the weights; infinity for no penalty at all.
l1_ratio
    Share of the absolute values in the penalty; the rest are squares.
class_weight
    None, "balanced", or a mapping from label to weight, 1 for labels that it does not name. An
    example counts by the mean weight of its labels.
solver
    "lbfgs", "owlqn" (for ``l1_ratio > 0``), "descent" (steepest, with line search),
    "frank-wolfe" (for the hinge on sequences), "sdca" (for smooth losses on sequences), "annealed"
    (for losses with kinks, smoothed ever less), "sgd",
    "adagrad" or "pegasos" (stochastic), a solver of `structlearn.solvers`, or "auto", which takes
    what suits the loss.
driver
    "subgradient" infers anew for every step; "cccp" keeps what labels imply about hidden variables
    for a whole minimisation; "paired" does `sweeps` sweeps of message passing between steps.
max_iter
    Limit on the number of iterations.
tol
    Relative tolerance of the objective at which fitting ends; None to go on to `max_iter`.
gradient_tol
    Norm of the gradient at which fitting ends too, for solvers that know it ("lbfgs", "owlqn",
    "descent"); not looked at if None.
init
    Where weights begin: "zeros", "random" (small numbers), or "auto": random where there are hidden
    variables, whose states could not be told apart at 0.
inference
    "exact", "bp" (belief propagation), "trw" (tree-reweighted messages: steady where factors are
    strong), or "auto": exact where that is quick, else "bp", and "trw" where what that claims turns
    out to be false, with an `InferenceWarning`.
sweeps
    Sweeps between steps of ``driver="paired"``.
warm_start
    Whether `fit` begins with the weights of the fit before, which needs the same features and
    labels.
random_state
    Seed of everything random: first weights where these are random, and the order of examples in
    stochastic solvers.
n_jobs
    Number of threads; all cores if None or -1. Results do not depend on it.
time_limit
    Seconds after which fitting ends with the best weights so far.
progress
    True shows a bar on standard error; a function is called with the fraction done and a few words
    after every iteration.
callbacks
    Each is called with an event after every iteration; one that returns True ends the fit.
checkpoint
    File in which the state of the fit is kept, so that a killed one goes on where it was.

Attributes
----------
classes_
    Labels, in the order of the states.
weights_
    All weights, in one array.
transitions_
    Weights of edges by what they join, where there are edges.
n_features_in_
    Number of features, without the intercept.
value_
    The objective at the weights.
history_
    Objective, gap and slope, iteration by iteration. Of stochastic solvers it has what they know on
    the way: losses met, or the objective at their newest weights instead of the average.
n_iter_
    Number of iterations.
converged_, status_
    Whether the fit converged, and how it went in one sentence.""",
    "{hidden}": """\
tied
    Whether all positions share their weights. Else each has its own, which needs examples that
    are all alike in their nodes and edges.
hidden
    None; "node" for a hidden state beside every output, linked to it alone; "layer" for hidden
    states that are linked to each other in place of the outputs.
hidden_states
    Number of states of hidden variables.""",
    "{features}": """\
features
    "dense": every feature has a weight for every label. "sparse": only the pairs of feature and
    label (and of labels) that occur in training have one, which needs tokens or sparse matrices
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
loss                `eps_y`     `eps_h`     cost    is
==================  ==========  ==========  ======  ==========================================
``"log"``           1           1           no      CRF; hidden CRF
``"hinge"``         0           0           yes     structured SVM; latent structured SVM
``"latent-hinge"``  0           0           yes     the same, by the name for hidden variables
``"marginal"``      0           1           yes     marginal structured SVM
``"eps"``           0.5         0.5         yes     the family between; give `eps_y`
``"hybrid"``        0           1           yes     `alpha` of log and the rest of marginal
``"perceptron"``    0           0           no      structured perceptron
==================  ==========  ==========  ======  ==========================================""",
    "{references}": """\
W. Ping, Q. Liu and A. Ihler, "Marginal structured SVM with hidden variables", 2014.
Q. Shi et al., "A hybrid loss for multiclass and structured prediction", 2014.""",
    "{steps}": """\
Steps are stochastic, and their counters go on from call to call. All calls together
minimise what one `fit` to all their examples would; an example given twice counts twice.""",
    "{components}": """\
variance
    Prior variance of the weights of classifiers, on scaled features.
spread
    Expected variance of the features within a component, 1 being that of all rows.
strength
    Number of rows that the mean of all rows counts for in the mean of a component.
degrees
    Degrees of freedom of the covariances of components, at least as many as features;
    ``features + 2`` if None.""",
    "{sampling}": """\
burn_in, n_draws, thin
    Sweeps before the first draw, draws of every chain, and sweeps for each of them.
n_chains
    Number of independent chains, which run in threads and whose draws count together. A
    `MixingWarning` says that they do not agree, which one chain alone can hardly show.
warm_start
    Whether `fit` goes on with the chains of the fit before, up to as many draws as `n_draws` then
    says; needs the same data and parameters.
random_state
    Seed of everything random.
n_jobs
    Number of threads; all cores if None or -1. Draws do not depend on it.
time_limit
    Seconds after which sampling ends with the draws so far; a `BurnInWarning` says that there are
    none.
progress
    True shows a bar on standard error; a function is called with the fraction done and a few words
    after every sweep.""",
    "{draws}": """\
draws_, chains_
    All draws, and the chains with all that they need to go on; the `trace` of a chain has what
    every sweep did.
ended_, status_
    How sampling ended, and that in a word: "done", "time" or "interrupted".
settings_, data_signature_
    Parameters that define the model as they were in the fit, and which data chains belong to.""",
    "{inference}": """\
tol
    Gap at which inference stops, relative to the energy plus the least weight above 0.
max_iter
    Steps of ADMM in one inference.
n_jobs
    Number of threads; all cores if None or -1. Results do not depend on it.
time_limit
    Seconds after which `predict` and `fit` end with the best so far.
progress
    True shows a bar on standard error; a function is called with the fraction done and a few
    words.""",
    "{found}": """\
result_
    All about the last inference, which is made if there is none for these weights.
energy_, lower_bound_, gap_, violation_
    Of `result_`: the energy, a proven bound below that of any values, their distance, and by how
    much a hard constraint is missed at most.
value_, history_, n_iter_, converged_, status_, ended_
    How learning went, after `fit`.""",
    "{field_learning}": r"""driver
    "bilevel" lowers the squared error of the best values, whose derivative by the weights it
    knows, and keeps weights near the start where labels say little. The others lower how much more
    energy the labels need than the best values, as the papers do: "paired" is paired-dual learning,
    `sweeps` steps of ADMM between two weight steps from where they stood; "cccp" infers the latent
    variables, learns as if they were known, and repeats: expectation maximisation, so "em" means
    the same; "subgradient" infers to convergence before every weight step. "auto" is "bilevel", or
    "paired" where one of the options after `C` down to `eta` is given. (Formerly `learner`.)
solver
    What takes the weight steps: "auto" for the steps that `rule`, `step_size` and `average`
    describe, or a name or solver as for other estimators.
C
    Weight of the losses against the penalty.
sweeps
    Steps of ADMM for each weight step of "paired", in both worlds. (Formerly `steps`.)
warm_up
    Evaluations of "paired" before the first weight step.
inner_iter
    Weight steps of "cccp" for each estimate of the latent variables.
surrogate
    What stands for the entropy :math:`h` in the energies: "loss" draws labelled variables away from
    their labels, as structured support vector machines do; "entropy" draws all to one half, with
    which weights vanish where a quarter to three quarters of the labels hold; "none" makes the
    perceptron, whose best weights are 0.
strength
    Weight of the surrogate, in units of the mean weight at the start.
l1_ratio
    Share of the absolute values in the penalty; the rest are squares.
eta
    Step of ADMM; the mean weight if None.
max_iter
    Weight steps; bounds of "cccp".
tol
    As for other estimators; by default 0.01 for "bilevel", 1e-4 for the others.
callbacks, checkpoint, time_limit, progress
    As for other estimators; the last two are those of the field or model if not given.
rule
    How weight steps get shorter: "adagrad" finds a length for each weight; those of "root" fall as
    :math:`1 / \sqrt{t}`, and are divided by the number of a rule's hinges; or "decaying", "fixed",
    "pegasos".
step_size
    Length of the first weight step, in units of the mean weight at the start; rules other than
    "adagrad" multiply it by the gradient over the number of hinges. By default 0.3 for "adagrad",
    else 1.
average
    Share of the weight steps, the last ones, whose weights are averaged; 0 for none, which is the
    default of "bilevel"; that of the others is 0.5.""",
}


def documented(thing: Thing) -> Thing:
    """Put the shared pieces into the docstring of an estimator, or of a method."""
    text = inspect.cleandoc(thing.__doc__ or "")
    for name, piece in _PIECES.items():
        text = text.replace(name, piece)
    thing.__doc__ = text
    return thing
