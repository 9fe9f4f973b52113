r"""Two learners for chains in which outputs and hidden cells alternate: M3E and ModLat.

Given the outputs, hidden cells of such a chain do not depend on each other: each joins the output
before it and the one behind it. So whatever is done with them leaves a chain of outputs, on which
maxima are exact.

References
----------
K. Miller et al., "Max-margin min-entropy models", 2012.
P. Kumar, B. Packer and D. Koller, "Modeling latent variable uncertainty for loss-based learning",
2012.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from papers.arrays import Floats, Ints
from papers.inside import Chains, Examples, LinearModel, Tables
from structlearn.losses import ElasticNet, Objective, ValueGradient


class Cells(NamedTuple):
    """Tables of chains of the same length, outputs and hidden cells in turn."""

    nodes: Floats  #: (chains, cells, states)
    edges: Floats  #: (chains, cells - 1, states, states)

    @classmethod
    def of(cls, model: LinearModel, weights: Floats, examples: Examples) -> Cells:
        """Tables at some weights; a chain that ends with a hidden cell gets a mute output."""
        tables = model.push(weights, examples.inputs, 1)
        n, states = examples.n_examples, tables[0].shape[1]
        nodes = tables[0].reshape(n, -1, states)
        edges = tables[1].reshape(n, -1, states, states)
        missing = 1 - nodes.shape[1] % 2
        return cls(
            np.pad(nodes, ((0, 0), (0, missing), (0, 0))),
            np.pad(edges, ((0, 0), (0, missing), (0, 0), (0, 0))),
        )

    @property
    def joint(self) -> Floats:
        """(chains, hidden, states, states, states) Output before, hidden cell, output behind."""
        before = self.edges[:, ::2, :, :, None]
        behind = self.edges[:, 1::2, None, :, :]
        return before + self.nodes[:, 1::2, None, :, None] + behind

    def given(self, outputs: Ints) -> Floats:
        """(chains, hidden, states) Scores of hidden cells between these outputs."""
        return beside(self.joint, outputs)


def beside(joint: Floats, outputs: Ints) -> Floats:
    """(chains, hidden, states) What a joint table has for these outputs."""
    which = np.ogrid[: joint.shape[0], : joint.shape[1]]
    return joint[which[0], which[1], outputs[:, :-1], :, outputs[:, 1:]]


def outputs_of(examples: Examples) -> Ints:
    """(chains, outputs) Labels of the outputs; the mute one has label 0."""
    labels = examples.labels.reshape(examples.n_examples, -1)
    return np.pad(labels, ((0, 0), (0, 1 - labels.shape[1] % 2)))[:, ::2]


def best_outputs(nodes: Floats, pairs: Floats) -> tuple[Floats, Ints]:
    """Best score of every chain of outputs, and their labels (chains, outputs)."""
    n, length, states = nodes.shape
    chains = Chains(
        np.ascontiguousarray(nodes.reshape(-1, states)),
        np.ascontiguousarray(pairs.reshape(-1, states, states)),
        np.arange(n + 1) * length,
        n_jobs=1,
    )
    values, labels = chains.best()
    return values, labels.reshape(n, length)


def costs(outputs: Ints, states: int, cells: int) -> Floats:
    """(chains, outputs, states) 1 for every wrong label; a mute output costs nothing."""
    out = 1.0 - np.eye(states)[outputs]
    out[:, (cells + 1) // 2 :] = 0.0
    return out


def to_weights(
    model: LinearModel, examples: Examples, outputs: Ints, hidden: Floats, counted: bool = True
) -> Floats:
    """Gradient by the weights from the outputs and from what hidden cells are expected to be.

    Without `counted`, what only depends on the outputs is left out.
    """
    n, _, states = hidden.shape
    sure = np.eye(states)[outputs]
    nodes = np.zeros((n, 2 * hidden.shape[1] + 1, states))
    nodes[:, ::2] = sure if counted else 0.0
    nodes[:, 1::2] = hidden
    edges = np.zeros((n, nodes.shape[1] - 1, states, states))
    edges[:, ::2] = sure[:, :-1, :, None] * hidden[:, :, None, :]
    edges[:, 1::2] = hidden[:, :, :, None] * sure[:, 1:, None, :]
    cells = len(examples.labels) // n
    tables: Tables = (
        np.ascontiguousarray(nodes[:, :cells].reshape(-1, states)),
        np.ascontiguousarray(edges[:, : cells - 1].reshape(-1, states**2)),
    )
    return model.pull(tables, examples.inputs, 1)


# ---- M3E ---------------------------------------------------------------------------------


class Share(NamedTuple):
    """How much of a score is a soft maximum over the hidden cells at some temperature."""

    amount: float
    eps: float

    def scores(self, joint: Floats) -> Floats:
        """(chains, hidden, states, states) This share of the scores of pairs of outputs."""
        if self.eps == 0.0:
            return self.amount * joint.max(axis=3)
        return self.amount * self.eps * logsumexp(joint / self.eps, axis=3)

    def expected(self, scores: Floats) -> Floats:
        """Return this share of what hidden cells are expected to be, given their scores."""
        if self.eps == 0.0:
            return self.amount * np.eye(scores.shape[-1])[scores.argmax(axis=-1)]
        return self.amount * softmax(scores / self.eps, axis=-1)


def renyi(alpha: float) -> tuple[Share, ...]:
    r"""Score of outputs whose hidden cells have little Rényi entropy of order `alpha` above 1.

    .. math:: -H_\alpha(y) = \log p(y) - H_\alpha(h \mid y)
              = \frac{\alpha}{\alpha - 1} \Phi_{1/\alpha}(y) - \frac{1}{\alpha - 1} \Phi_1(y)
              - \log Z, \qquad \Phi_\epsilon(y) = \epsilon \log \sum_h e^{\theta(y, h) / \epsilon}

    An infinite `alpha` leaves :math:`\Phi_0`, the latent structured SVM.
    """
    if np.isinf(alpha):
        return (Share(1.0, 0.0),)
    return Share(alpha / (alpha - 1.0), 1.0 / alpha), Share(-1.0 / (alpha - 1.0), 1.0)


class MinEntropy(Objective):
    r"""The margin of M3E: outputs compete by scores that uncertain hidden cells lower.

    .. math:: \tfrac{1}{2} \|w\|^2 + \sum_i \max_y \big( \Delta(y_i, y) - H_\alpha(y) \big)
              + H_\alpha(y_i)
    """

    def __init__(self, model: LinearModel, examples: Examples, shares: tuple[Share, ...]) -> None:
        self.model = model
        self.examples = examples
        self.shares = shares
        self.penalty = ElasticNet()
        self.states = _states(model)
        self.labels = outputs_of(examples)

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.model.n_weights

    def loss_gradient(self, weights: Floats, memory: object = None) -> ValueGradient:
        """Losses of all chains, and their gradient."""
        examples = self.examples
        cells = Cells.of(self.model, weights, examples)
        joint = cells.joint
        pairs = self._pairs(joint)
        nodes = cells.nodes[:, ::2]
        length = len(examples.labels) // examples.n_examples
        free, found = best_outputs(nodes + costs(self.labels, self.states, length), pairs)
        clamped = _score(nodes, pairs, self.labels)
        gradient = self._gradient(joint, found) - self._gradient(joint, self.labels)
        return ValueGradient(float((free - clamped).sum()), gradient, None)

    def _pairs(self, joint: Floats) -> Floats:
        """(chains, hidden, states, states) Scores of neighbouring outputs."""
        found: Floats = np.sum([share.scores(joint) for share in self.shares], axis=0)
        return found

    def _gradient(self, joint: Floats, outputs: Ints) -> Floats:
        scores = beside(joint, outputs)
        hidden = np.sum([share.expected(scores) for share in self.shares], axis=0)
        return to_weights(self.model, self.examples, outputs, hidden)

    def predict(self, weights: Floats, examples: Examples) -> Ints:
        """(chains, outputs) Outputs with the best score."""
        cells = Cells.of(self.model, weights, examples)
        return best_outputs(cells.nodes[:, ::2], self._pairs(cells.joint))[1]


def _states(model: LinearModel) -> int:
    return model.groups[0][0].size


def _score(nodes: Floats, pairs: Floats, outputs: Ints) -> Floats:
    """Score of the outputs of every chain."""
    which = np.ogrid[: outputs.shape[0], : outputs.shape[1]]
    alone = nodes[which[0], which[1], outputs].sum(axis=1)
    between = pairs[which[0], which[1][:, :-1], outputs[:, :-1], outputs[:, 1:]]
    return alone + between.sum(axis=1)


# ---- ModLat ------------------------------------------------------------------------------


class Delta(Objective):
    r"""The margin of ModLat for the weights that predict, given what hidden cells may be.

    .. math:: \tfrac{1}{2} \|w\|^2 + \sum_i \max_{y, h} \big( \theta(y, h) + \Delta(y_i, y)
              + \delta_i(h) \big) - \max_h \big( \theta(y_i, h) - \delta_i(h) \big)

    with :math:`\delta_i(h) = \sum_k 1 - p_{ik}(h_k)`, the expected number of hidden cells that
    differ.
    """

    def __init__(self, model: LinearModel, examples: Examples, likely: Floats) -> None:
        self.model = model
        self.examples = examples
        self.penalty = ElasticNet()
        self.states = _states(model)
        self.labels = outputs_of(examples)
        self.apart = 1.0 - likely

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.model.n_weights

    def loss_gradient(self, weights: Floats, memory: object = None) -> ValueGradient:
        """Losses of all chains, and their gradient."""
        examples = self.examples
        cells = Cells.of(self.model, weights, examples)
        away = self.apart[:, :, None, :, None]
        nodes = cells.nodes[:, ::2]
        length = len(examples.labels) // examples.n_examples
        push = costs(self.labels, self.states, length)
        free, found = best_outputs(nodes + push, (cells.joint + away).max(axis=3))
        clamped = _score(nodes, (cells.joint - away).max(axis=3), self.labels)
        gradient = self._gradient(cells.given(found) + self.apart, found)
        gradient -= self._gradient(cells.given(self.labels) - self.apart, self.labels)
        return ValueGradient(float((free - clamped).sum()), gradient, None)

    def _gradient(self, scores: Floats, outputs: Ints) -> Floats:
        hidden = np.eye(self.states)[scores.argmax(axis=-1)]
        return to_weights(self.model, self.examples, outputs, hidden)


class Conditional(Objective):
    r"""The dissimilarity of ModLat for the weights that say what hidden cells may be.

    .. math:: \tfrac{1}{2} \|u\|^2 + \sum_{ik} 1 - p_{ik}(\hat h_{ik})
              - \beta \sum_{ik} \Big( 1 - \sum_s p_{ik}(s)^2 \Big),
              \qquad p_{ik}(h) \propto e^{\theta_u(y_i, h)}

    with the hidden cells :math:`\hat h` that the other weights predict.
    """

    smooth = True

    def __init__(
        self, model: LinearModel, examples: Examples, predicted: Ints, beta: float
    ) -> None:
        self.model = model
        self.examples = examples
        self.penalty = ElasticNet()
        self.beta = beta
        self.states = _states(model)
        self.labels = outputs_of(examples)
        self.predicted = np.eye(self.states)[predicted]

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.model.n_weights

    def likely(self, weights: Floats) -> Floats:
        """(chains, hidden, states) Probabilities of hidden cells given the outputs."""
        cells = Cells.of(self.model, weights, self.examples)
        return softmax(cells.given(self.labels), axis=-1)

    def loss_gradient(self, weights: Floats, memory: object = None) -> ValueGradient:
        """Dissimilarity of all hidden cells, and its gradient."""
        p = self.likely(weights)
        met = (p * self.predicted).sum(axis=-1, keepdims=True)
        squares = (p * p).sum(axis=-1, keepdims=True)
        value = (1.0 - met).sum() - self.beta * (1.0 - squares).sum()
        by_score = p * (met - self.predicted) + 2.0 * self.beta * p * (p - squares)
        gradient = to_weights(self.model, self.examples, self.labels, by_score, counted=False)
        return ValueGradient(float(value), gradient, None)


def predict_jointly(model: LinearModel, weights: Floats, examples: Examples) -> tuple[Ints, Ints]:
    """(chains, outputs) and (chains, hidden): best labels of all cells together."""
    cells = Cells.of(model, weights, examples)
    _, outputs = best_outputs(cells.nodes[:, ::2], cells.joint.max(axis=3))
    return outputs, cells.given(outputs).argmax(axis=-1)
