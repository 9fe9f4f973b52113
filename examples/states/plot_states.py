r"""
How many states are there?
==========================

A machine runs in phases that nobody has recorded, not even how many there are. An infinite hidden
Markov model,

.. math:: \beta \sim \mathrm{GEM}(\gamma_0), \quad \pi_k \sim \mathrm{DP}(\alpha_0, \beta), \quad
          z_t \sim \pi_{z_{t-1}}, \quad x_t \sim N(\mu_{z_t}, \Sigma_{z_t}) ,

draws their number with everything else.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from structlearn import ChainDisplay, InfiniteHMM, MaxMarginHMM

# %%
# Four phases in the plane, which overlap: without their order they could not be told apart well. In
# the middle of the first run the sensor fails for a while.
rng = np.random.default_rng(0)
centres = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [3.0, 3.0]])


def run(length):
    """Draw phases, each of which lasts 25 steps on average, and a noisy point for every step."""
    changes = rng.random(length) < 0.04
    phases = np.cumsum(changes * rng.integers(1, 4, length)) % 4
    return centres[phases] + rng.normal(size=(length, 2)), phases


(first, phases), (second, later) = run(300), run(300)
first[140:150] = np.nan

# %%
# Two chains, from twenty states at random each.
model = InfiniteHMM(n_chains=2, burn_in=500, n_draws=200, random_state=0).fit([first, second])
print(f"{model.n_states_} states, means")
print(model.means_.round(1))

# %%
# The numbers of states are arbitrary, so give each the colour of the phase that it goes with most
# often. The gap is filled from both of its sides.
found = np.concatenate(model.states_)
truth = np.concatenate([phases, later])
counts = np.zeros((found.max() + 1, 4))
np.add.at(counts, (found, truth), 1)
states, matched = linear_sum_assignment(-counts)
phase_of = np.arange(4, 4 + len(counts))
phase_of[states] = matched
print(f"{np.mean(phase_of[found] == truth):.1%} of the steps are in the right phase")
figure, axis = plt.subplots(figsize=(8, 2), layout="constrained")
paths = {"drawn state": phase_of[model.states_[0]], "true phase": phases}
ChainDisplay(paths=paths).plot(axis, title="first run")
plt.show()

# %%
# Do both chains tell the same? R-hat is near 1 where they do. What is furthest from that, and worth
# the fewest draws, would gain most from longer chains.
for name, row in model.diagnostics().items():
    worth = f"worth {row['effective_size']:.0f} draws"
    print(f"{name:<12} {row['mean']:9.2f}, R-hat {row['r_hat']:.2f}, {worth}")
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for i, chain in enumerate(model.chains_):
    states = np.array([info.n_states for info in chain.trace])
    axes[0].plot(states[: model.burn_in], label=f"chain {i}")
    kept = np.arange(model.burn_in, len(states))
    axes[1].step(kept, states[model.burn_in :], label=f"chain {i}")
axes[0].set(xlabel="sweep", ylabel="states", ylim=(0, None), title="before the first draw")
axes[1].set(xlabel="sweep", ylim=(2.5, 8.5), yticks=range(3, 9), title="draws that are kept")
axes[0].legend()
plt.show()

# %%
# Now there is a label whose rule depends on the phase: in two of them it says whether the second
# coordinate is above that of the centre, in the others whether it is below. A third of the labels
# is missing, and phases are as hidden as before.


def labels_of(points, phases):
    """Return the labels of a run, -1 where there is no point."""
    above = points[:, 1] > centres[phases, 1]
    labels = np.where(phases % 2 == 0, above, ~above).astype(int)
    return np.where(np.isnan(points[:, 1]), -1, labels)


y = labels_of(first, phases)
known = np.where(rng.random(len(y)) < 0.67, y, -1)
classifier = MaxMarginHMM(burn_in=100, n_draws=50, random_state=0).fit([first], [known])
right = classifier.score([second], [labels_of(second, later)])
print(f"{right:.1%} of the labels of the second run are right")

# sphinx_gallery_thumbnail_number = 1
