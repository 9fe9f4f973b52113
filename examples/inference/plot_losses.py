r"""
Log, hinge and hybrid loss where no label is dominant
=====================================================

Three losses for one model: the log loss of conditional random fields, the hinge of support vector
machines, and the hybrid :math:`\alpha \cdot \text{log} + (1 - \alpha) \cdot \text{hinge}`. With
enough data the log loss always finds the most likely label. The hinge need not, where no label has
a probability of at least one half: it may be happiest with a tie. How much log loss does a hybrid
need to avoid that?
"""

import matplotlib.pyplot as plt
import numpy as np

from structlearn import DominanceDisplay, MulticlassClassifier
from structlearn.losses import alpha_bound, alpha_threshold

# %%
# A single input and three labels, with the probabilities as weights of the examples and next to no
# penalty. By how much does the most likely label win? The hinge has kinks; a temperature of 0.001
# for the labels rounds them off, so that the optimum is found exactly.
X = np.ones((3, 1))
y = [0, 1, 2]


def margin(probabilities, alpha):
    """Return the score of label 0 less the best of the others."""
    model = MulticlassClassifier(
        loss="hybrid", alpha=alpha, eps_y=1e-3, C=1e5, fit_intercept=False, tol=1e-8
    )
    scores = model.fit(X, y, sample_weight=probabilities).decision_function(X[:1])[0]
    return scores[0] - max(scores[1:])


# %%
# Up to some share of the log loss the minimum is a tie, above it the likely label wins. Theorem 1
# of Shi et al. (2014) gives a bound on this share. Where two labels tie at the top the bound is
# sharp, as for the first distribution. The second has three labels in the tie, a case that the
# proof leaves out: the bound says 0, but the true threshold is 0.46.
alphas = np.linspace(0.0, 1.0, 41)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
for ax, probabilities in zip(axes, ([0.4, 0.36, 0.24], [0.45, 0.275, 0.275]), strict=True):
    ax.plot(alphas, [margin(probabilities, alpha) for alpha in alphas])
    bound = float(alpha_bound(probabilities))
    threshold = float(alpha_threshold(probabilities))
    ax.axvline(bound, color="C1", linestyle="--", label=f"theorem 1 says {bound:.2f}")
    ax.axvline(threshold, color="C2", linestyle=":", label=f"the truth is {threshold:.2f}")
    ax.set(xlabel="share of the log loss", title=f"probabilities {probabilities}")
    ax.legend(title="the likeliest label wins from", loc="upper left", frameon=True)
axes[0].set_ylabel("margin of the likeliest label")
plt.show()

# %%
# Now data that are drawn. In four of five regions one label has a probability of 0.8; in the last
# one label has 0.4 and the four others 0.15 each. Inputs are indicators of the region. How many out
# of 20 training sets lead to the right label in the last region?
rng = np.random.default_rng(0)
tables = np.full((5, 5), 0.05) + 0.75 * np.eye(5)
tables[4] = [0.15, 0.15, 0.15, 0.4, 0.15]


def draw(n):
    """Draw regions and labels."""
    region = rng.integers(5, size=n)
    return np.eye(5)[region], (rng.random((n, 1)) > tables[region].cumsum(axis=1)).sum(axis=1)


ways = {
    "hinge": {"loss": "hinge"},
    "hinge, a little warm": {"loss": "hinge", "eps_y": 1e-3},
    "hybrid": {"loss": "hybrid", "alpha": 0.6},
    "log": {"loss": "log"},
}
right, margins = ({name: [] for name in ways} for _ in range(2))
for _ in range(20):
    X, y = draw(600)
    for name, options in ways.items():
        model = MulticlassClassifier(fit_intercept=False, random_state=0, **options).fit(X, y)
        scores = model.decision_function(np.eye(5)[4:])[0]
        right[name].append(scores.argmax() == 3)
        margins[name].append(scores[3] - np.delete(scores, 3).max())
for name in ways:
    print(f"{name:22}{sum(right[name]):3} of 20, margin {np.mean(margins[name]):8.5f}")
print(f"here a hybrid needs at least {alpha_threshold(tables[4]):.2f} of the log loss")

# %%
# The hinge ties all five labels, and rounding decides. The smallest temperature breaks the tie the
# right way, but with a margin that any noise would swamp; only a good share of the log loss makes
# the label win clearly.

# %%
# Whether such inputs are there can be asked of a model that was fitted with the log loss: for how
# many examples has no label a probability of at least one half?
model = MulticlassClassifier(fit_intercept=False).fit(X, y)
figure, axis = plt.subplots(layout="constrained")
display = DominanceDisplay.from_estimator(model, X, y).plot(axis)
print(f"{display.dominance.share:.1%} of the examples have no dominant label")
plt.show()

# sphinx_gallery_thumbnail_number = 2
