"""Small objectives whose optima can be found in other ways."""

from __future__ import annotations

import copy

import numpy as np
from scipy.special import expit, logsumexp, softmax

from structlearn._src.learn.loss import ElasticNet
from structlearn._src.learn.objective import Ability, Objective, ValueGradient


class Toy(Objective):
    """Penalty plus the losses that a subclass defines."""

    convex = True
    abilities = frozenset({Ability.BATCHES})
    n_weights = 0
    n_examples = 0

    def __init__(self, n_weights, n_examples, l1_ratio=0.0):
        self.n_weights = n_weights
        self.n_examples = n_examples
        self.penalty = ElasticNet(l1_ratio)
        self.calls = 0

    def losses(self, weights, which):
        """Loss of every example in `which`, and the sum of their gradients."""
        raise NotImplementedError

    def loss_gradient(self, weights, memory=None, which=slice(None)):
        self.calls += 1
        losses, gradient = self.losses(weights, which)
        return ValueGradient(float(losses.sum()), gradient, memory)

    def batch_gradient(self, weights, which):
        return self.loss_gradient(weights, which=which)


class Quadratic(Toy):
    """Half of squared distances of linear measurements, scaled badly on purpose."""

    smooth = True

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

    smooth = True

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
    abilities = frozenset({Ability.BATCHES, Ability.LINEARISE})

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

    def linearise(self, weights, memory=None):
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
    """A logistic loss whose inference moves half way to the margins in every sweep."""

    abilities = frozenset({Ability.RESUME})

    def __init__(self, *args, budget=None, warm=None, **kw):
        super().__init__(*args, **kw)
        self.budget = budget
        self.warm = warm
        self.rough_calls = 0

    def begin(self):
        return (np.zeros(self.n_examples) if self.warm is None else self.warm[0].copy(),)

    def with_budget(self, budget):
        return self._with(budget=budget.sweeps)

    def warmed(self, memory):
        return self._with(warm=memory)

    def _with(self, **changes):
        other = copy.copy(self)
        vars(other).update(changes)
        return other

    def loss_gradient(self, weights, memory=None, which=slice(None)):
        if self.budget is None:
            return super().loss_gradient(weights, memory, which)
        (reached,) = memory = self.begin() if memory is None else memory
        margin = self.y * (self.x @ weights)
        reached += (1 - 0.5**self.budget) * (margin - reached)
        gradient = -self.C * (self.y * expit(-reached)) @ self.x
        return ValueGradient(float(self.C * np.logaddexp(0, -reached).sum()), gradient, memory)


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
    gradient = toy.loss_gradient(weights)[1] + (1.0 - l1) * weights
    breach = np.where(weights == 0, np.abs(gradient) - l1, np.abs(gradient + l1 * np.sign(weights)))
    return max(breach.max(), 0.0)
