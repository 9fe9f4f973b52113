"""Closed lists of words that users choose from, each written once.

Commands read them for their help, which must not wait for the library, and the library for its
checks. Where a word stands for a function or a class, the table that says which is beside these,
and `tests/common/test_names.py` sees to it that both have the same words. The words of inference
are in `inference/names.py`.
"""

from __future__ import annotations

# ---- structured estimators ---------------------------------------------------------------

LOSSES = ("log", "hinge", "latent-hinge", "marginal", "eps", "hybrid", "perceptron")
#: What papers call losses, in small letters, and how they are written here.
PAPERS_LOSSES = {
    "crf": 'loss="log"',
    "hcrf": 'loss="log"',
    "likelihood": 'loss="log"',
    "ssvm": 'loss="hinge"',
    "m3n": 'loss="hinge"',
    "max-margin": 'loss="hinge"',
    "lssvm": 'loss="latent-hinge"',
    "latent-svm": 'loss="latent-hinge"',
    "mssvm": 'loss="marginal"',
    "eps-extension": 'loss="eps"',
    "loss-augmented": 'loss="eps", eps_y=1',
    "softmax-margin": 'loss="eps", eps_y=1',
}
COSTS = ("hamming", "hamming-mean", "zero-one")
#: Where weights begin.
INITS = ("auto", "zeros", "random")
SOLVERS = (
    "auto", "lbfgs", "owlqn", "descent", "sdca", "frank-wolfe", "annealed", "sgd", "adagrad",
    "pegasos",
)  # fmt: skip
DRIVERS = ("subgradient", "cccp", "paired")
#: Which pairs of feature and label have weights.
SPACES = ("dense", "sparse")
HIDDEN = ("node", "layer")
EDGES = ("table", "symmetric", "potts", "features", "none")
TRANSITIONS = ("table", "features", "none")
#: How labels spell chunks.
SCHEMES = ("BIO", "BIOES", "IOB1")

# ---- rules and fields --------------------------------------------------------------------

#: Drivers again, and one that only fields have; the default first.
FIELD_DRIVERS = ("auto", "bilevel", "paired", "cccp", "subgradient")
#: Earlier names of drivers, and what they are called now.
OLD_DRIVERS = {"em": "cccp"}
SURROGATES = ("loss", "entropy", "none")
STEP_RULES = ("adagrad", "root", "decaying", "fixed", "pegasos")
METRICS = (
    "auroc", "aupr", "aupr_negative", "aupr_trapezoid", "mse", "rmse", "mae", "accuracy",
    "precision", "precision_negative", "recall", "recall_negative", "f1", "categorical", "mrr",
)  # fmt: skip
SPLITS = ("infer", "learn", "validation", "all")

# ---- all ---------------------------------------------------------------------------------

#: Parameters of estimators that concern the run alone, not what it finds.
RUN_ONLY = frozenset({"callbacks", "checkpoint", "n_jobs", "progress", "time_limit"})
