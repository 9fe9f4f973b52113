r"""
Segment images when most labels are hidden
==========================================

Labelling every pixel of an image is dull work, so people label a few. A pixel without a label is
not left out: it is a hidden variable that links its neighbours,

.. math:: \theta(y) = \sum_i \langle w_{y_i}, x_i \rangle + J \sum_{i \sim j} [y_i = y_j],

and learning sums over what it may be. In the arrays of labels it is written -1; nothing else
changes.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb
from sklearn.exceptions import ConvergenceWarning

from structlearn import GridDisplay, GridLabeler, grid, infer

# %%
# Images whose truth is known: three labels drawn from a field in which equal neighbours get a bonus
# of 1, then blurred by noise as strong as the signal. So the best weights are known too: 1 for the
# bonus, and 1 for each label's own channel.
rng = np.random.default_rng(0)
shape, states, bonus = (12, 16), 3, 1.0


def draw(n):
    """Draw images and their labels."""
    field = grid(np.zeros((*shape, states)), bonus * np.eye(states))
    answer = infer(field, "samples", n_samples=n, method="gibbs", burn_in=300, random_state=rng)
    labels = answer.samples.reshape(n, *shape)
    return list(np.eye(states)[labels] + rng.normal(size=(n, *shape, states))), list(labels)


def hide(labels, share):
    """Replace a share of the labels by -1."""
    return [np.where(rng.random(y.shape) < share, -1, y) for y in labels]


X, Y = draw(6)
X_test, Y_test = draw(6)

# %%
# Three ways to learn from what is left: each pixel alone, which can only use labelled pixels; a
# conditional random field, with hidden pixels summed out; and a marginal structured SVM, which
# wants a margin for the labelled pixels and sums out the others. Subgradient steps come close long
# before they converge; 20 of them do here, so the warning that this is too few is turned off. The
# grids are too wide for exact inference, so do not look for a way: take belief propagation.
warnings.simplefilter("ignore", ConvergenceWarning)
ways = {
    "each pixel alone": {"edges": "none"},
    "hidden CRF": {"edges": "potts"},
    "marginal SVM": {"edges": "potts", "loss": "marginal", "max_iter": 20},
}
shares = [0.0, 0.5, 0.9]
right = {name: [] for name in ways}
fits = {}
for share in shares:
    labels = hide(Y, share)
    for name, options in ways.items():
        labeler = GridLabeler(fit_intercept=False, inference="bp", random_state=0, **options)
        labeler.fit(X, labels)
        right[name].append(labeler.score(X_test, Y_test))
        fits[name, share] = labeler
    learnt = fits["hidden CRF", share].transitions_[0, 0]
    print(f"{share:.0%} hidden: the bonus learnt by the hidden CRF is {learnt:.2f}")

# %%
# Pixels alone cannot do better than their noise allows. The bonus is found even from one label in
# ten, because the hidden pixels between the labelled ones carry what neighbours say to each other.
figure, axis = plt.subplots(layout="constrained")
for name, values in right.items():
    axis.plot([f"{share:.0%}" for share in shares], values, "o-", label=name)
axis.set(xlabel="labels hidden in training", ylabel="test pixels right")
axis.legend()
plt.show()

# %%
# One test image. With so little to see in a single pixel, its neighbours decide, and the
# probabilities tell where they disagree.
crf = fits["hidden CRF", 0.9]
image = X_test[0]
figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
shares = np.exp(image) / np.exp(image).sum(axis=-1, keepdims=True)
colours = "#0072B2", "#E69F00", "#009E73"  # those of the displays
axes[0, 0].imshow(shares @ [to_rgb(colour) for colour in colours])
axes[0, 0].set(xticks=[], yticks=[], title="what is seen")
GridDisplay(Y_test[0]).plot(axes[0, 1], title="truth", legend=False)
GridDisplay.from_estimator(crf, image).plot(axes[1, 0], title="predicted", legend=False)
GridDisplay.from_estimator(crf, image, show="certainty").plot(axes[1, 1], title="how sure")
plt.show()
