r"""
Marginal MAP against joint MAP
==============================

With hidden variables :math:`h` there are two readings of "the best outputs :math:`y`":

.. math:: \text{joint MAP: the } y \text{ in }
          \operatorname*{argmax}_{y, h} \theta(y, h), \qquad
          \text{marginal MAP: } \operatorname*{argmax}_y \log \sum_h \exp \theta(y, h).

The first names the outputs of the single best *explanation*, the second the outputs that are most
probable whatever the explanation. They part when one output has a single strong explanation and
another has many weak ones.
"""

import matplotlib.pyplot as plt
import numpy as np

from structlearn import hidden_chain, infer_many

# %%
# Hidden chains: 8 outputs with 2 states, each tied to its own hidden variable with 6 states, and
# the hidden variables linked to a chain. `strength` scales the random potentials.
rng = np.random.default_rng(0)
n, states = 8, 6


def random_chain(strength):
    """Draw one hidden chain."""
    return hidden_chain(
        0.1 * rng.normal(size=(n, 2)),
        strength * rng.normal(size=(n, states)),
        strength * rng.normal(size=(n - 1, states, states)),
        strength * rng.normal(size=(n, 2, states)),
    )


# %%
# To compare the two answers fairly, score both by what we want: the probability of the outputs
# with the hidden variables summed out. Given the outputs as evidence, ``"partition"`` is just
# that sum, :math:`\log \sum_h \exp \theta(y, h)`.
def outputs_of(answers):
    """Return the outputs alone, as evidence."""
    return [{v: answer.assignment[v] for v in range(n)} for answer in answers]


def mean(numbers):
    """Return the mean of some numbers and its standard error."""
    return np.mean(numbers), np.std(numbers) / np.sqrt(len(numbers))


strengths = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0])
wrong, times = [], []  # means, with their standard errors
for strength in strengths:
    graphs = [random_chain(strength) for _ in range(400)]
    best = infer_many(graphs, "marginal_map")
    joint = outputs_of(infer_many(graphs, "map"))
    value = np.array([a.value for a in best])
    reached = np.array([a.value for a in infer_many(graphs, "partition", evidence=joint)])
    wrong.append(mean([a != b for a, b in zip(joint, outputs_of(best), strict=True)]))
    times.append(mean(np.exp(value - reached)))
print(best[0])

# %%
# All answers are exact here: ``"marginal_map"`` eliminates the hidden variables first. When
# potentials are weak there are many explanations of about the same weight, and the best single
# one says little about the outputs; when they are strong, one explanation carries nearly all the
# weight and the two questions have the same answer. Bars are standard errors over 400 graphs.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
share, error = 100 * np.transpose(wrong)
left.errorbar(strengths, share, error, fmt="o-", capsize=3)
left.set(xlabel="strength of the potentials", ylabel="graphs, %", ylim=(0, 100))
left.set_title("Joint MAP has other outputs")
factor, error = np.transpose(times)
right.errorbar(strengths, factor, error, fmt="o-", capsize=3)
right.set(xlabel="strength of the potentials", ylabel="times as probable", ylim=(1, None))
right.set_title("How much better marginal MAP is")
plt.show()
