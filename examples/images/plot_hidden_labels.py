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

from structlearn import GridDisplay, GridLabeler

# %%
# Aerial images of farmland, made up: the plane is cut into fields of three crops, and each pixel is
# seen through noise as strong as the signal.
rng = np.random.default_rng(0)
shape, states = (12, 18), 3


def sow():
    """Cut a rectangle into fields, and sow a crop on each."""
    labels = np.zeros(shape, int)
    parts = [(slice(0, shape[0]), slice(0, shape[1]))]
    while parts:
        rows, columns = parts.pop()
        sides = rows.stop - rows.start, columns.stop - columns.start
        if max(sides) < 7:
            labels[rows, columns] = rng.integers(states)
            continue
        middle = rng.integers(3, max(sides) - 2)
        if sides[0] > sides[1]:
            cut = rows.start + middle
            parts += [(slice(rows.start, cut), columns), (slice(cut, rows.stop), columns)]
        else:
            cut = columns.start + middle
            parts += [(rows, slice(columns.start, cut)), (rows, slice(cut, columns.stop))]
    return labels


def draw(n):
    """Draw images and their labels."""
    labels = [sow() for _ in range(n)]
    return [np.eye(states)[y] + rng.normal(size=(*shape, states)) for y in labels], labels


def hide(labels, share):
    """Replace a share of the labels by -1."""
    return [np.where(rng.random(y.shape) < share, -1, y) for y in labels]


X, Y = draw(4)
X_test, Y_test = draw(10)

# %%
# Three ways to learn from what is left: each pixel alone, which can only use labelled pixels; a
# conditional random field, with hidden pixels summed out; and a marginal structured SVM, which
# wants a margin for the labelled pixels and sums out the others. Subgradient steps come close long
# before they converge; 20 of them do here, so the warning that this is too few is turned off. The
# grids are too wide for exact inference. Equal neighbours are frequent here, which is too strong a
# bond for belief propagation in the log loss: tree-reweighted messages take its place there.
warnings.simplefilter("ignore", ConvergenceWarning)
ways = {
    "each pixel alone": {"edges": "none"},
    "hidden CRF": {"edges": "potts", "inference": "trw"},
    "marginal SVM": {"edges": "potts", "inference": "bp", "loss": "marginal", "max_iter": 20},
}
shares = [0.0, 0.5, 0.9]
right = {name: [] for name in ways}
fits = {}
for share in shares:
    labels = hide(Y, share)
    for name, options in ways.items():
        labeler = GridLabeler(fit_intercept=False, random_state=0, **options)
        labeler.fit(X, labels)
        scores = [labeler.score([x], [y]) for x, y in zip(X_test, Y_test, strict=True)]
        right[name].append((np.mean(scores), np.std(scores) / np.sqrt(len(scores))))
        fits[name, share] = labeler
    learnt = fits["hidden CRF", share].transitions_[0, 0]
    print(f"{share:.0%} hidden: the bonus of equal neighbours is learnt as {learnt:.2f}")

# %%
# Pixels alone cannot do better than their noise allows. Neighbours pay even with one label in ten,
# because the hidden pixels between the labelled ones carry what neighbours say to each other. Bars
# are standard errors over the ten test images.
figure, axis = plt.subplots(layout="constrained")
for name, values in right.items():
    means, errors = 100 * np.transpose(values)
    axis.errorbar(100 * np.array(shares), means, errors, fmt="o-", capsize=3, label=name)
axis.set(xlabel="labels hidden in training, %", ylabel="test pixels right, %", ylim=(0, 100))
axis.set_title("Nine labels in ten can be missing")
axis.legend(loc="lower left")
plt.show()

# %%
# One test image. With so little to see in a single pixel, its neighbours decide, and the
# probabilities tell where they disagree.
crf = fits["hidden CRF", 0.9]
image = X_test[1]
figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
shares = np.exp(image) / np.exp(image).sum(axis=-1, keepdims=True)
colours = "#0072B2", "#E69F00", "#009E73"  # those of the displays
axes[0, 0].imshow(shares @ [to_rgb(colour) for colour in colours])
axes[0, 0].set(xticks=[], yticks=[], title="what is seen")
GridDisplay(Y_test[1]).plot(axes[0, 1], title="truth", legend=False)
predicted = f"from one label in ten: {crf.score([image], [Y_test[1]]):.0%} right"
GridDisplay.from_estimator(crf, image).plot(axes[1, 0], title=predicted, legend=False)
GridDisplay.from_estimator(crf, image, show="certainty").plot(axes[1, 1], title="how sure")
plt.show()

# sphinx_gallery_thumbnail_number = 2
