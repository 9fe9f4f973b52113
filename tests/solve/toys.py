"""Small objectives whose optima can be found in other ways."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logsumexp, softmax

from structlearn._src.learn.penalty import ElasticNet


class Toy:
    """Penalty plus the losses that a subclass defines."""

    convex = True

    def __init__(self, n_weights, n_examples, l1_ratio=0.0):
        self.n_weights, self.n_examples = n_weights, n_examples
        self.penalty = ElasticNet(l1_ratio)
        self.calls = 0

    def losses(self, weights, which):
        """Loss of every example in `which`, and the sum of their slopes."""
        raise NotImplementedError

    def loss_slope(self, weights, which=None):
        self.calls += 1
        losses, slope = self.losses(weights, slice(None) if which is None else which)
        return float(losses.sum()), slope

    def value(self, weights):
        return self.loss_slope(weights)[0] + self.penalty.value(weights)

    def value_slope(self, weights):
        loss, slope = self.loss_slope(weights)
        return loss + self.penalty.value(weights), slope + self.penalty.slope(weights)


class Quadratic(Toy):
    """Half of squared distances of linear measurements, scaled badly on purpose."""

    def __init__(self, seed=0, n=40, d=8, spread=100.0, **kw):
        super().__init__(d, n, **kw)
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(n, d)) * np.geomspace(1, spread, d)
        self.y = rng.normal(size=n)

    def losses(self, weights, which):
        miss = self.x[which] @ weights - self.y[which]
        return 0.5 * miss**2, miss @ self.x[which]

    def optimum(self):
        return np.linalg.solve(self.x.T @ self.x + np.eye(self.n_weights), self.x.T @ self.y)


class Logistic(Toy):
    """C times the log loss of labels -1 and 1."""

    def __init__(self, seed=0, n=60, d=6, C=1.0, spread=1.0, **kw):
        super().__init__(d, n, **kw)
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(n, d)) * np.geomspace(1, spread, d)
        self.y = np.where(self.x[:, 0] / self.x[:, 0].std() + rng.normal(size=n) > 0, 1.0, -1.0)
        self.C = C

    def losses(self, weights, which):
        x, y = self.x[which], self.y[which]
        margin = y * (x @ weights)
        return self.C * np.logaddexp(0, -margin), -self.C * (y * expit(-margin)) @ x


class Preconditioned(Logistic):
    """The same with a diagonal for L-BFGS, which counts how often it is asked for."""

    asked = 0

    def diagonal(self, weights):
        self.asked += 1
        return 1.0 + 0.25 * self.C * (self.x**2).sum(axis=0)


class Kinks(Toy):
    """C times the sum of maxima of linear functions: a multiclass hinge."""

    def __init__(self, seed=0, n=30, d=3, pieces=3, C=1.0, **kw):
        super().__init__(d, n, **kw)
        rng = np.random.default_rng(seed)
        self.a, self.b = rng.normal(size=(n, pieces, d)), rng.random((n, pieces))
        self.a[:, 0], self.b[:, 0] = 0.0, 0.0  # the truth: losses are never negative
        self.C = C

    def losses(self, weights, which):
        a, scores = self.a[which], self.a[which] @ weights + self.b[which]
        top = scores.argmax(axis=1)
        rows = np.arange(len(top))
        return self.C * scores[rows, top], self.C * a[rows, top].sum(axis=0)


class Hidden(Toy):
    """Two worlds: scores of (y, h) at temperature 1, y seen and h not."""

    convex = False

    def __init__(self, seed=0, n=25, d=4, labels=2, states=3, C=2.0):
        super().__init__(d, n)
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(n, labels * states, d))
        self.seen = np.zeros((n, labels * states), bool)
        for i, y in enumerate(rng.integers(labels, size=n)):
            self.seen[i, y * states : (y + 1) * states] = True
        self.C = C

    def world(self, weights, seen, which):
        """Values of some examples, and their expected features."""
        scores = np.where(seen[which], self.x[which] @ weights, -np.inf)
        expected = np.einsum("nk,nkd->nd", softmax(scores, axis=1), self.x[which])
        return logsumexp(scores, axis=1), expected

    def losses(self, weights, which):
        free, up = self.world(weights, np.ones_like(self.seen), which)
        clamped, down = self.world(weights, self.seen, which)
        return self.C * (free - clamped), self.C * (up - down).sum(axis=0)

    def linearise(self, weights):
        return Tangent(self, weights)


class Tangent(Toy):
    """What CCCP minimises."""

    def __init__(self, whole, weights):
        super().__init__(whole.n_weights, whole.n_examples)
        self.whole, self.touch = whole, weights.copy()
        self.clamped, self.down = whole.world(weights, whole.seen, slice(None))

    def losses(self, weights, which):
        free, up = self.whole.world(weights, np.ones_like(self.whole.seen), which)
        down = self.down[which]
        low = self.clamped[which] + down @ (weights - self.touch)
        return self.whole.C * (free - low), self.whole.C * (up - down).sum(axis=0)


class Slow(Logistic):
    """A logistic loss whose `paired` inference lags: it moves half way to the truth each time."""

    def paired(self, sweeps):
        return Lagging(self, sweeps)


class Lagging(Toy):
    """Worlds that keep their messages: here, the margins they have got to."""

    def __init__(self, whole, sweeps):
        super().__init__(whole.n_weights, whole.n_examples)
        self.whole, self.sweeps, self.reached = whole, sweeps, np.zeros(whole.n_examples)

    def messages(self):
        return self.reached

    def recall(self, messages):
        self.reached = messages

    def losses(self, weights, which):
        whole = self.whole
        margin = whole.y * (whole.x @ weights)
        self.reached = self.reached + (1 - 0.5**self.sweeps) * (margin - self.reached)
        slope = -whole.C * (whole.y * expit(-self.reached)) @ whole.x
        return whole.C * np.logaddexp(0, -self.reached), slope


def smallest_kinks(toy):
    """Optimum of `Kinks` as a quadratic program, by scipy."""
    from scipy.optimize import LinearConstraint, minimize

    n, k, d = toy.a.shape
    rows = np.zeros((n * k, d + n))
    rows[:, :d] = -toy.a.reshape(n * k, d)
    rows[np.arange(n * k), d + np.repeat(np.arange(n), k)] = 1.0
    found = minimize(
        lambda z: 0.5 * z[:d] @ z[:d] + toy.C * z[d:].sum(),
        np.concatenate([np.zeros(d), toy.b.max(axis=1)]),
        jac=lambda z: np.concatenate([z[:d], np.full(n, toy.C)]),
        constraints=[LinearConstraint(rows, toy.b.ravel(), np.inf)],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return found.x[:d], found.fun


def kuhn_tucker(toy, weights):
    """Largest breach of the conditions that hold at the optimum of a convex toy, and only there."""
    l1 = toy.penalty.l1_ratio
    slope = toy.loss_slope(weights)[1] + (1.0 - l1) * weights
    breach = np.where(weights == 0, np.abs(slope) - l1, np.abs(slope + l1 * np.sign(weights)))
    return max(breach.max(), 0.0)
