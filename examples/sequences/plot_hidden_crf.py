r"""
One label for a sequence: a hidden CRF
======================================

A hand moves up and then right, or right and then up, with pauses, at any speed. Both gestures have
the same positions on average; only the order tells them apart. A hidden conditional random field
puts a chain of hidden states under the label,

.. math:: \theta(y, h) = b_y + \sum_t \big( \langle v_{h_t}, x_t \rangle + B_{y, h_t} \big)
          + \sum_t A_{y, h_t, h_{t+1}},

and finds out by itself what the states should mean. Nobody labels them, not even in training.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from structlearn import ChainDisplay, MulticlassClassifier, SequenceClassifier, TransitionDisplay

# %%
# Each position is a noisy velocity in the plane.
rng = np.random.default_rng(0)
velocity = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])  # rest, up, right


def gesture(kind):
    """Draw one: rest, two moves, rest, each of random length."""
    moves = [1, 2] if kind == "up-right" else [2, 1]
    phases = np.repeat([0, *moves, 0], rng.integers([1, 2, 2, 1], [5, 6, 6, 5]))
    return velocity[phases] + 0.5 * rng.normal(size=(len(phases), 2)), phases


y = ["up-right", "right-up"] * 30
train = [gesture(kind) for kind in y]
y_test = ["up-right", "right-up"] * 200
test = [gesture(kind) for kind in y_test]
X, X_test = [x for x, _ in train], [x for x, _ in test]

# %%
# A classifier that sees the mean velocity knows nothing.
means, means_test = ([x.mean(axis=0) for x in part] for part in (X, X_test))
flat = MulticlassClassifier().fit(means, y)
print(f"mean velocity: {flat.score(means_test, y_test):.1%} right")

# %%
# Three hidden states, which every label links in its own way. With hidden variables the objective
# has more than one minimum, so try a few starts and keep the lowest.
fits = [SequenceClassifier(hidden_states=3, C=10.0, random_state=i).fit(X, y) for i in range(3)]
for fit in fits:
    print(f"objective {fit.value_:.2f}, {fit.score(X_test, y_test):.1%} right")
hidden_crf = min(fits, key=lambda fit: fit.value_)

# %%
# A marginal structured SVM has the same model and another loss: hidden states are summed, labels
# are maximised. A maximum has kinks, so it is reached through soft maxima at falling temperatures.
svm = SequenceClassifier(hidden_states=3, loss="marginal", C=1.0, random_state=0).fit(X, y)
print(f"marginal structured SVM: {svm.score(X_test, y_test):.1%} right; {svm.status_}")

# %%
# What do the hidden states mean? Their numbers are arbitrary, so name each after the phase that it
# goes with most often. Nobody has told the model about phases, and still it finds them.
states = hidden_crf.predict_hidden(X_test)
counts = np.zeros((3, 3))
for path, (_, phases) in zip(states, test, strict=True):
    np.add.at(counts, (path, phases), 1)
phase_of = linear_sum_assignment(-counts)[1]
agreement = counts[range(3), phase_of].sum() / counts.sum()
print(f"{agreement:.1%} of the positions are in the right phase")
names = ["rest", "up", "right"]
figure, axes = plt.subplots(2, figsize=(8, 3), layout="constrained")
for i, ax in enumerate(axes):
    paths = {"hidden state": phase_of[states[i]], "true phase": test[i][1]}
    ChainDisplay(paths=paths, state_names=names).plot(ax, title=y_test[i])
plt.show()

# %%
# Each label has weights of its own for pairs of neighbouring states: one likes the steps that the
# other avoids.
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
order = np.argsort(phase_of)
for table, label, ax in zip(hidden_crf.transitions_, hidden_crf.classes_, axes, strict=True):
    display = TransitionDisplay(table[np.ix_(order, order)], state_names=names)
    display.plot(ax, title=label, legend=False)
plt.show()
