"""Samplers: tiny posteriors by enumeration, and chains that go on bit for bit.

Limits are in standard errors so many that a false alarm is rarer than once in 10^6 runs of hours.
"""

from __future__ import annotations

import warnings

import numpy as np

import naive
from campaign.base import expect
from campaign.batches import fine_grains
from franchise import path_probabilities
from geweke import HmmCase, MixtureCase, deviations
from structlearn import InfiniteHMM, InfiniteSVM, MaxMarginHMM, infer
from structlearn._src.sample.hinge import Hinge

SAMPLERS = 1
ERRORS = 12.0  # standard errors; of 40 batches, which have heavier tails than a normal
DRAWS = 2000


def check(rng: np.random.Generator) -> None:
    """Every kind of check once, on random cases."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact_draws(rng)
        gibbs(rng)
        prior_of_states(rng)
        resumption(rng)
        threads_of_chains(rng)
        if rng.random() < 0.3:
            keeps_the_prior(rng)


def _graph(rng: np.random.Generator) -> tuple[object, np.ndarray]:
    kind = str(rng.choice(["chain", "tree", "loopy"]))
    graph = naive.random_graph(rng, int(rng.integers(1, 5)), 3, 3, kind, 0.2, 0.3)
    table = naive.joint(graph)
    shares = np.exp(table - table.max())
    return graph, shares / shares.sum()


def exact_draws(rng: np.random.Generator) -> None:
    """Draws of exact methods are independent: counts of assignments against their probability."""
    graph, shares = _graph(rng)
    seed = int(rng.integers(2**32))
    draws = infer(graph, "samples", n_samples=DRAWS, random_state=seed, n_jobs=1).samples
    found = np.zeros(shares.shape)
    np.add.at(found, tuple(draws.T), 1.0 / DRAWS)
    # Bernstein's inequality: beyond this with a probability of at most 1e-12 each.
    most = np.sqrt(56.0 * shares * (1.0 - shares) / DRAWS) + 20.0 / DRAWS
    worst = (np.abs(found - shares) - most).max()
    expect(worst <= 0.0, f"draws of {graph.table(0) if graph.n_factors else graph} off by {worst}")
    expect(not (found[shares == 0.0]).any(), "an impossible draw")


def gibbs(rng: np.random.Generator) -> None:
    """Marginals by Gibbs sampling, where every conditional is positive and mixes at once."""
    graph = naive.random_graph(rng, int(rng.integers(1, 5)), 3, 3, "loopy", 0.0, 0.0)
    graph = graph.with_potentials(0.3 * graph.potentials)
    _, distribution = naive.value_and_distribution(graph)
    seed = int(rng.integers(2**32))
    options = {"n_samples": DRAWS, "burn_in": 100, "random_state": seed, "n_jobs": 1}
    found = infer(graph, "marginals", method="gibbs", **options).marginals
    for v in range(graph.n_variables):
        right = np.clip(naive.marginal(distribution, [v]), 0.0, 1.0)
        # Weak couplings: no more than ten draws count as one.
        most = ERRORS * np.sqrt(right * (1 - right) * 10 / DRAWS) + 0.02
        expect((np.abs(found[v] - right) <= most).all(), f"gibbs: {found[v]}, not {right}")


def prior_of_states(rng: np.random.Generator) -> None:
    """Data that say nothing leave the number of states at its prior, by restaurants."""
    alpha, gamma = (float(x) for x in rng.uniform(0.5, 3.0, 2))
    options = {
        "burn_in": 0, "n_draws": DRAWS, "n_start": 2, "random_state": int(rng.integers(2**32)), "n_jobs": 1, "n_chains": 1,
        "alpha0": alpha, "gamma0": gamma, "merge": False, "n_moves": int(rng.integers(0, 3)),
    }  # fmt: skip
    nothing = [np.array([[1.0], [np.nan]]), np.full((3, 1), np.nan)]
    fitted = InfiniteHMM(**options).fit(nothing)
    counts = fitted.traces()["n_states"][0]
    right = np.zeros(6)
    for path, p in path_probabilities(np.array([0, 2, 5]), alpha, gamma).items():
        right[max(path) + 1] += p
    _compare(np.eye(6)[counts], right, f"states at alpha={alpha} gamma={gamma}")


def _compare(rows: np.ndarray, right: np.ndarray, what: str) -> None:
    """Means of a chain against what they should be, by the spread of means of batches."""
    batches = rows[: len(rows) // 40 * 40].reshape(40, -1, rows.shape[1]).mean(axis=1)
    errors = batches.std(axis=0, ddof=1) / np.sqrt(40)
    off = np.abs(batches.mean(axis=0) - right)
    expect((off <= ERRORS * errors + 0.01).all(), f"{what}: {batches.mean(axis=0)}, not {right}")


def keeps_the_prior(rng: np.random.Generator) -> None:
    """Geweke's test from other seeds."""
    hinge = Hinge(0.4, 1.0, 0.8)
    cases = (HmmCase("points"), HmmCase("diagonal"), HmmCase("symbols"), MixtureCase(hinge, hinge))
    case = cases[int(rng.integers(len(cases)))]
    off = deviations(case, 800, 800, seed=int(rng.integers(2**32)))
    expect(np.abs(off).max() < ERRORS, f"{case}: off by {off} standard errors")


def resumption(rng: np.random.Generator) -> None:
    """A chain that goes on is the chain that never stopped."""
    X = [rng.normal(size=(int(n), 2)) for n in rng.integers(2, 6, 3)]
    labels = [rng.integers(0, 2, len(x)) for x in X]
    labels[0][:2] = 0, 1
    rows, y = rng.normal(size=(12, 2)), np.arange(12) % 2
    seed = int(rng.integers(2**32))
    kinds = ((InfiniteHMM, (X,)), (MaxMarginHMM, (X, labels)), (InfiniteSVM, (rows, y)))
    make, data = kinds[int(rng.integers(3))]
    options = {"burn_in": 2, "random_state": seed, "n_jobs": int(rng.integers(1, 3))}
    whole = make(**options, n_draws=6).fit(*data)
    part = make(**options, n_draws=2, warm_start=True).fit(*data)
    part.set_params(n_draws=6).fit(*data)
    one, two = whole.traces(), part.traces()
    for name, values in one.items():
        expect(
            np.array_equal(values, two[name]), f"{make.__name__}: {name} {values} and {two[name]}"
        )
    expect(all(map(np.array_equal, whole.predict(data[0]), part.predict(data[0]))), make.__name__)


def threads_of_chains(rng: np.random.Generator) -> None:
    """The number of threads changes no draw, also where moves are tried ahead."""
    lengths = rng.integers(1, 12, int(rng.integers(2, 6)))
    X = [rng.normal(size=(int(n), 2)) + 3.0 * rng.integers(0, 3, (int(n), 1)) for n in lengths]
    labels = [rng.integers(0, 2, len(x)) for x in X]
    labels[0][:1], labels[1][:1] = 0, 1
    gaps = [np.where(rng.random((len(x), 1)) < 0.2, np.nan, x) for x in X]
    gaps[0][0] = 0.0, 1.0
    words = [rng.choice(["a", "b", "c"], len(x)).tolist() for x in X]
    rows, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    kinds = (
        (InfiniteHMM, (X,)),
        (InfiniteHMM, (gaps,)),
        (InfiniteHMM, (words,)),
        (InfiniteHMM, (X, labels)),
        (MaxMarginHMM, (X, labels)),
        (MaxMarginHMM, (gaps, labels)),
        (InfiniteSVM, (rows, y)),
    )
    make, data = kinds[int(rng.integers(len(kinds)))]
    options = {"burn_in": 3, "n_draws": 3, "n_chains": int(rng.integers(1, 3))}
    options["random_state"] = int(rng.integers(2**32))
    if make is not InfiniteSVM:
        options |= {"n_moves": int(rng.integers(0, 20)), "merge": bool(rng.random() < 0.5)}
        options["covariance"] = str(rng.choice(["full", "diagonal"]))
        options |= {"emission": "categorical"} if data[0] is words else {}
    found = []
    with fine_grains(rng):
        for n_jobs in (1, 2, int(rng.integers(3, 8))):
            fitted = make(**options, n_jobs=n_jobs).fit(*data)
            found.append([*fitted.traces().values(), *fitted.predict(data[0])])
    for other in found[1:]:
        expect(all(map(np.array_equal, found[0], other)), f"threads: {make.__name__} {options} {X}")
