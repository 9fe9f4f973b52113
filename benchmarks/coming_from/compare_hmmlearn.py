"""One series by hmmlearn and by structlearn: a fixed model's answers, and the number of states.

Run ``pip install hmmlearn``, then ``python benchmarks/coming_from/compare_hmmlearn.py``. The first
four figures are of one model, fitted by hmmlearn and asked as a chain here. The others compare the
best of hmmlearn's models with 1 to 6 states, by BIC, with an infinite model of the same rows. Each
of hmmlearn's models is the best of ten starts: one start often ends in a local optimum.
"""

from __future__ import annotations

import logging

import numpy as np
from comparison import Figure, conclude
from hmmlearn.hmm import GaussianHMM
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

from structlearn import InfiniteHMM, chain, infer

LEVEL = np.repeat([0, 1, 2, 0, 2, 1], 40)
X = np.array([0.0, 4.0, 8.0])[LEVEL][:, None] + np.random.default_rng(0).normal(size=(240, 1))


def as_chain(hmm: GaussianHMM):
    """Return hmmlearn's model of these rows as a factor graph."""
    pairs = zip(hmm.means_, hmm.covars_, strict=True)
    nodes = np.column_stack([multivariate_normal(m, c).logpdf(X) for m, c in pairs])
    with np.errstate(divide="ignore"):
        nodes[0] += np.log(hmm.startprob_)
        return chain(nodes, np.log(hmm.transmat_))


def fixed_model(hmm: GaussianHMM) -> list[Figure]:
    graph = as_chain(hmm)
    log_likelihood, posteriors = hmm.score_samples(X)
    marginals = infer(graph, "marginals").marginals.flat.reshape(posteriors.shape)
    best, path = hmm.decode(X)
    answer = infer(graph, "map")
    same = np.mean([answer.assignment[t] == path[t] for t in range(len(X))])
    value = infer(graph, "partition").value
    return [
        Figure("log likelihood", log_likelihood, value, 1e-9, relative=True),
        Figure("posteriors, largest gap", 0.0, float(np.abs(marginals - posteriors).max()), 1e-9),
        Figure("score of the best path", best, answer.value, 1e-9, relative=True),
        Figure("share of equal states on it", 1.0, float(same), 0.0),
    ]


def number_of_states(models: list[GaussianHMM]) -> list[Figure]:
    hmm = min(models, key=lambda model: model.bic(X))
    infinite = InfiniteHMM(burn_in=100, n_draws=50, random_state=0).fit(X)
    means = [np.sort(model.means_.ravel()) for model in (hmm, infinite)]
    paths = hmm.predict(X), infinite.states_[0]
    rand = [adjusted_rand_score(LEVEL, path) for path in paths]
    rows = [Figure("number of states", hmm.n_components, infinite.n_states_, 0.0)]
    for i, (theirs, ours) in enumerate(zip(*means, strict=True)):
        rows.append(Figure(f"mean of state {i}", theirs, ours, 0.1))
    return [*rows, Figure("adjusted Rand index to the truth", *rand, 0.02)]


def best_of_starts(n_states: int, starts: int = 10) -> GaussianHMM:
    models = [GaussianHMM(n_states, "full", n_iter=200, random_state=i) for i in range(starts)]
    return max((model.fit(X) for model in models), key=lambda model: model.score(X))


if __name__ == "__main__":
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)  # steps below rounding, at the end of EM
    fitted = [best_of_starts(k) for k in range(1, 7)]
    conclude("hmmlearn", fixed_model(fitted[2]) + number_of_states(fitted))
