"""Time sweeps over hidden Markov models, ours or those of a peer; prints one JSON object.

Usage: python infinite_worker.py NAME STEPS SWEEPS
       python infinite_worker.py two NAME SEQUENCES STEPS SWEEPS REPEATS

NAME is InfiniteHMM or MaxMarginHMM, or a peer of `PEERS`, which runs in an environment of its own:
nothing of structlearn is imported for it. ``two`` takes turns with one thread and with two. Points
are drawn from 20 Gaussian states in 10 dimensions; labels, 8 of them, by a linear rule in each.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402

STATES, WIDTH, LABELS = 20, 10, 8
WARM = 40  # sweeps before those that count: compilation, and the way from a random start


def data(steps, seed=0):
    rng = np.random.default_rng(seed)
    means = 3.0 * rng.normal(size=(STATES, WIDTH))
    moves = rng.random(steps) >= 0.95
    since = np.maximum.accumulate(np.where(moves, np.arange(steps), 0))
    states = rng.integers(STATES, size=steps)[since]
    noise = rng.normal(size=(steps, WIDTH))
    rules = rng.normal(size=(STATES, LABELS, WIDTH))
    labels = np.einsum("tld,td->tl", rules[states], noise).argmax(1)
    return means[states] + noise, labels


def spent():
    return time.process_time(), time.perf_counter(), time.thread_time()


def ours(name, steps, sequences, sweeps, n_jobs):
    """CPU, wall and main thread's seconds of every sweep after the warm ones, and the states."""
    import structlearn

    marks = []
    model = getattr(structlearn, name)(
        n_start=STATES, n_chains=1, burn_in=WARM, n_draws=sweeps, random_state=0, n_jobs=n_jobs,
        progress=lambda *_: marks.append(spent()),
    )  # fmt: skip
    X, labels = data(steps * sequences)
    X, Y = np.split(X, sequences), np.split(labels, sequences)
    model.fit(X, Y) if name == "MaxMarginHMM" else model.fit(X)
    return np.diff(marks[WARM - 1 :], axis=0), int(model.n_states_)


def one(name, steps, sweeps):
    rows, states = ours(name, steps, 1, sweeps, 1)
    cpu, wall, _ = rows.mean(0)
    return {"cpu": cpu, "wall": wall, "least": rows[:, 0].min(), "states": states}


def two(name, sequences, steps, sweeps, repeats):
    """Least times of every sweep, with one thread and with two: the draws are the same."""
    from timing import once

    runs, others = {1: [], 2: []}, {1: [], 2: []}
    for _ in range(repeats):
        for n_jobs, found in runs.items():
            timing = once(ours, name, steps, sequences, sweeps, n_jobs)
            found.append(timing.result[0])
            others[n_jobs].append(timing.others / timing.wall)
    least = {n_jobs: np.min(found, axis=0).mean(0) for n_jobs, found in runs.items()}
    names = ("cpu", "wall", "serial")
    out = {n: dict(zip(names, map(float, row), strict=True)) for n, row in least.items()}
    return {"one": out[1], "two": out[2], "others": max(map(min, others.values()))}


def hmmlearn(X):
    from hmmlearn.hmm import GaussianHMM

    return _hmmlearn(GaussianHMM, X)


def hmmlearn_variational(X):
    from hmmlearn.vhmm import VariationalGaussianHMM

    return _hmmlearn(VariationalGaussianHMM, X)


def _hmmlearn(kind, X):
    model = kind(STATES, "full", n_iter=1, tol=-np.inf, random_state=0).fit(X)
    model.init_params = ""
    return lambda: model.fit(X)


def jax_moseq(X):
    import jax

    jax.config.update("jax_enable_x64", True)
    from jax_moseq.models import arhmm

    given = {"x": jax.numpy.asarray(X)[None], "mask": jax.numpy.ones((1, len(X)))}
    state = arhmm.init_model(
        given,
        trans_hypparams={"gamma": 1e3, "alpha": 5.7, "kappa": 10.0, "num_states": STATES},
        ar_hypparams={"latent_dim": WIDTH, "nlags": 1, "S_0_scale": 0.01, "K_0_scale": 10.0},
    )

    def step():
        nonlocal state
        state = arhmm.resample_model(given, **state)
        jax.block_until_ready(state["states"]["z"])

    return step


def pyhsmm(X):
    import pyhsmm as package
    from pyhsmm.basic.distributions import Gaussian

    prior = {"mu_0": np.zeros(WIDTH), "sigma_0": np.eye(WIDTH), "kappa_0": 0.25}
    emissions = [Gaussian(nu_0=WIDTH + 5, **prior) for _ in range(STATES)]
    model = package.models.WeakLimitStickyHDPHMM(
        kappa=10.0, alpha_a_0=1.0, alpha_b_0=0.25, gamma_a_0=1.0, gamma_b_0=0.25,
        init_state_concentration=1.0, obs_distns=emissions,
    )  # fmt: skip
    model.add_data(X)
    return model.resample_model


PEERS = {
    "jax-moseq": jax_moseq,
    "pyhsmm": pyhsmm,
    "hmmlearn": hmmlearn,
    "hmmlearn, variational": hmmlearn_variational,
}


def theirs(name, steps, sweeps):
    step = PEERS[name](data(steps)[0])
    step()  # compiles
    times = []
    for _ in range(sweeps):
        before = spent()
        step()
        times.append(np.subtract(spent(), before))
    cpu, wall, _ = np.mean(times, axis=0)
    return {"cpu": cpu, "wall": wall, "least": np.min(times, axis=0)[0]}


def main(name, *numbers):
    warnings.simplefilter("ignore")
    if name == "two":
        return two(numbers[0], *map(int, numbers[1:]))
    return (theirs if name in PEERS else one)(name, *map(int, numbers))


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:]), default=float))
