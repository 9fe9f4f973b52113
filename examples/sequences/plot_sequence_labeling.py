r"""
Label sequences: reading a recipe
=================================

What is what in "2 cloves of chopped garlic"? Words alone do not tell: *clove* is a unit here and
a spice elsewhere, *can* and *slice* are units and things, *cream* is a kind of cheese and a thing
of its own. Neighbours do tell. A conditional random field scores all labels of a line together,

.. math:: \theta(y) = \sum_t \langle w_{y_t}, x_t \rangle + \sum_t W_{y_t, y_{t+1}},

and learns both kinds of weights from examples.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from structlearn import ChainDisplay, HistoryDisplay, SequenceLabeler, TransitionDisplay

# %%
# A small grammar of ingredients. Some words are in two lists.
rng = np.random.default_rng(0)
words = {
    "amount": ["1", "2", "3", "half", "a"],
    "unit": ["cup", "clove", "can", "slice", "pinch", "spoon"],
    "of": ["of"],
    "kind": ["ground", "chopped", "sliced", "canned", "fresh", "cream"],
    "thing": ["clove", "pepper", "cream", "cheese", "can", "rice", "garlic", "ginger", "slice"],
}


def ingredient():
    """Draw one line and its labels."""
    chances = {"amount": 0.8, "unit": 0.7, "of": 0.3, "kind": 0.5, "thing": 1.0}
    labels = [label for label, chance in chances.items() if rng.random() < chance]
    labels += ["thing"] * (rng.random() < 0.3)
    return [str(rng.choice(words[label])) for label in labels], labels


def features(line):
    """Describe every word; a token is a list of attributes, or a dictionary."""
    return [[word, f"ends in {word[-2:]}"] for word in line]


train, test = ([ingredient() for _ in range(n)] for n in (60, 500))
X = [features(line) for line, _ in train]
Y = [labels for _, labels in train]
X_test = [features(line) for line, _ in test]
Y_test = [labels for _, labels in test]
print(" ".join(train[0][0]), "->", " ".join(train[0][1]))

# %%
# Every word by itself, and all words of a line together.
alone = SequenceLabeler(transitions="none", C=10.0).fit(X, Y)
together = SequenceLabeler(C=10.0).fit(X, Y)
print(f"each word alone: {alone.score(X_test, Y_test):.1%} right")
print(f"a chain:         {together.score(X_test, Y_test):.1%} right")
print(together.status_)

# %%
# What has it learnt? Largest weights of features, and the weights of transitions.
for name, label, weight in together.top_features(5):
    print(f"{weight:6.2f}  {name} -> {label}")
TransitionDisplay.from_estimator(together).plot(plt.figure(layout="constrained").subplots())
plt.show()

# %%
# Two lines that share their last two words. The probabilities of the labels show how sure the model
# is; `decode` gives the best labellings with their scores.
lines = ["2 can cream", "half cup fresh can cream"]
figure, axes = plt.subplots(2, figsize=(8, 6), layout="constrained")
for ax, line in zip(axes, lines, strict=True):
    ChainDisplay.from_estimator(together, features(line.split())).plot(ax, title=line)
    ax.set_xticks(range(len(line.split())), labels=line.split())
plt.show()
for score, labels in together.decode([features(lines[0].split())], k=3)[0]:
    print(f"{score:.2f}", *labels)

# %%
# Other losses are one word away. A structured SVM wants the right labels to win by as much as the
# others are wrong; the hybrid loss mixes it with the log loss.
for loss in ("log", "hinge", "hybrid"):
    fit = SequenceLabeler(loss=loss, C=10.0, tol=1e-3, random_state=0).fit(X, Y)
    print(f"{loss:7}{fit.score(X_test, Y_test):.1%} right; {fit.status_}")

# %%
# So are other solvers. All minimise the same objective; here that of the structured SVM. Only
# Frank-Wolfe knows how far from the optimum it is, by its duality gap. Stochastic steps may stall
# above the optimum, and then warn.
solvers = ("frank-wolfe", "adagrad", "pegasos")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    fits = {
        name: SequenceLabeler(loss="hinge", C=10.0, solver=name, tol=1e-3, random_state=0).fit(X, Y)
        for name in solvers
    }
figure, axis = plt.subplots(layout="constrained")
display = HistoryDisplay({name: fit.history_ for name, fit in fits.items()})
display.plot(axis, show="excess", against="iteration")
plt.show()

# %%
# Labels that nobody has given are None. What is known of a line still counts: the rest is summed
# over. Leaving out lines with gaps wastes most of the data.
gaps = [[label if rng.random() < 0.5 else None for label in labels] for labels in Y]
whole = [i for i, labels in enumerate(gaps) if None not in labels]
partial = SequenceLabeler(C=10.0, random_state=0).fit(X, gaps)
few = SequenceLabeler(C=10.0).fit([X[i] for i in whole], [Y[i] for i in whole])
print(f"half of the labels of all lines:    {partial.score(X_test, Y_test):.1%} right")
print(f"all labels of the {len(whole)} complete lines: {few.score(X_test, Y_test):.1%} right")

# sphinx_gallery_thumbnail_number = 2
