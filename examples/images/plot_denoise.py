r"""
A noisy image, cleaned on a grid
================================

Every pixel is a variable with two states. Its own factor says how likely the noisy value is under
either state, and a factor between neighbours says that they are usually equal:

.. math:: \theta(x) = \sum_i \log p(\text{pixel}_i \mid x_i) + \sum_{i \sim j} J \, [x_i = x_j].

This is the model of Besag, "On the statistical analysis of dirty pictures" (1986). The grid is far
too wide for elimination, so ``method="auto"`` takes approximate methods, and every answer says how
far it can be trusted.
"""

import matplotlib.pyplot as plt
import numpy as np

from structlearn import ConvergenceDisplay, GridDisplay, grid, infer

# %%
# A clean picture, and what a bad camera makes of it: Gaussian noise as strong as the contrast.
rng = np.random.default_rng(0)
row, column = np.mgrid[:48, :64]
disc = (row - 24) ** 2 + (column - 20) ** 2 < 15**2
bar = (np.abs(row - column + 20) < 5) & (column > 38)
clean = (disc | bar).astype(int)
noisy = clean + rng.normal(0.0, 1.0, clean.shape)

# %%
# Log potentials: the log density of each pixel under state 0 and state 1, and a reward for equal
# neighbours.
nodes = -0.5 * (noisy[..., None] - np.array([0.0, 1.0])) ** 2
graph = grid(nodes, 1.0 * np.eye(2))
print(graph)

# %%
# Each pixel alone is the maximum of its own factor. The marginals come from belief propagation,
# and the most probable image from a portfolio of methods that also bounds the best possible score
# from above. Where the bound meets the score, the image is proved to be the best one.
alone = nodes.argmax(axis=-1)
marginals = infer(graph, "marginals", random_state=0)
best = infer(graph, "map", random_state=0)
print(marginals)
print(best)
print(f"the best image scores at least {best.lower:.2f} and at most {best.upper:.2f}")

# %%
# ICM changes one pixel at a time while that helps. It is quick, and stops at the first image that
# no single change improves.
icm = infer(graph, "map", method="icm")
print(icm)


# %%
# The marginals show where the model is unsure: along the edges.
def draw(axis, title, labels):
    """Show an image and how far it is from the clean one."""
    wrong = (labels != clean).mean()
    GridDisplay(labels, colours="gray").plot(
        axis, title=f"{title}: {wrong:.1%} wrong", legend=False
    )


figure, axes = plt.subplots(2, 3, figsize=(9, 5), layout="constrained")
axes[0, 0].imshow(noisy, cmap="gray")
axes[0, 0].set(xticks=[], yticks=[], title="noisy")
draw(axes[0, 1], "each pixel alone", alone)
draw(axes[0, 2], "ICM", icm.assignment.array.reshape(clean.shape))
draw(axes[1, 0], "MAP", best.assignment.array.reshape(clean.shape))
draw(axes[1, 1], "best of each marginal", GridDisplay.from_answer(marginals, clean.shape).values)
certainty = GridDisplay.from_answer(marginals, clean.shape, show="certainty")
certainty.plot(axes[1, 2], title="how sure")
plt.show()

# %%
# Belief propagation repeats a message update until nothing moves. The order of the updates
# decides how long that takes: one after the other (the default), all at once, or always the one
# that would change most.
figure, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
ConvergenceDisplay.from_graph(graph, sweeps=60).plot(axis)
plt.show()
