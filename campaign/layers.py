"""Layers over graphs, grids and chains: k best, draws, entropies and marginals, by enumeration."""

from __future__ import annotations

import itertools
import warnings

import numpy as np

from campaign.base import expect

LAYERS = 10
DRAWS = 500
SIZES = (1.0, 1.0, 1.0, 0.0, 30.0)  # of tables; without any, all labellings tie
MOST = {1: 9, 2: 9, 3: 6}  # pixels in the mask, by the number of labels


class Case:
    """Some graphs with tables and labels ruled out, and the scores of all their labellings."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.states = int(rng.integers(1, 4))
        self.sizes = rng.integers(1, 5, int(rng.integers(1, 4)))
        first = np.append(0, np.cumsum(self.sizes))
        scale = float(rng.choice(SIZES))
        self.nodes = scale * rng.normal(size=(first[-1], self.states))
        if rng.random() < 0.3:
            self.nodes[rng.random(self.nodes.shape) < 0.15] = -np.inf
        if rng.random() < 0.3:
            self.nodes = np.round(self.nodes)
        pairs = [
            (first[g] + a, first[g] + b)
            for g, n in enumerate(self.sizes)
            for a, b in itertools.permutations(range(n), 2)
            if rng.random() < 0.35
        ]
        self.edges = np.array(pairs, np.int64).reshape(-1, 2)[rng.permutation(len(pairs))]
        self.tables = scale * rng.normal(size=(len(pairs), self.states, self.states))
        if rng.random() < 0.3:
            self.tables[rng.random(self.tables.shape) < 0.1] = -np.inf
        self.graphs = np.repeat(np.arange(len(self.sizes)), self.sizes)
        self.first = first

    def answers(self, layers, inference, k, by, seed):
        """What can be asked of a layer, and how answers are turned into those about graphs."""
        import torch

        from structlearn.torch import GraphLoss

        layer = layers(GraphLoss, self.states, inference=inference)
        scores, tables = (torch.tensor(x, requires_grad=True) for x in (self.nodes, self.tables))
        given = scores, torch.tensor(self.edges)
        more = torch.tensor(self.graphs), tables
        asks = {
            "k_best": lambda: layer.k_best(*given, k, *more),
            "sample": lambda: layer.sample(*given, DRAWS, *more, generator=seed),
            "entropy": lambda: layer.entropy(*given, *more),
            "marginals": lambda: layer.marginals(*given, *more),
            "slopes": lambda: torch.autograd.grad(
                layer.entropy(*given, *more) @ torch.tensor(by), (scores, tables)
            ),
        }
        return asks, dict

    def enumerated(self, g: int) -> tuple[np.ndarray, np.ndarray]:
        """All labellings of a graph, and their scores."""
        own = range(*self.first[g : g + 2])
        rows = np.array(list(itertools.product(range(self.states), repeat=len(own))))
        scores = sum(self.nodes[v, rows[:, i]] for i, v in enumerate(own))
        for (a, b), table in zip(self.edges, self.tables, strict=True):
            if a in own:
                scores = scores + table[rows[:, a - own[0]], rows[:, b - own[0]]]
        return rows, scores

    def told(self) -> str:
        """What is needed to build the case again."""
        parts = self.sizes, self.nodes, self.edges, self.tables
        return " ".join(str(part.tolist()) for part in parts)


class MaskedCase(Case):
    """Graphs that come as arrays with a mask: scores and tables of their own, `inside` and `own`."""

    def answers(self, layers, inference, k, by, seed):
        """What can be asked of a layer, and how answers are turned into those about graphs."""
        import torch

        layer = self.layer(layers, inference)
        scores, tables = (torch.tensor(x, requires_grad=True) for x in (self.scores, self.own))
        more = torch.tensor(self.inside), tables
        asks = {
            "k_best": lambda: layer.k_best(scores, k, *more),
            "sample": lambda: layer.sample(scores, DRAWS, *more, generator=seed),
            "entropy": lambda: layer.entropy(scores, *more),
            "marginals": lambda: layer.marginals(scores, *more),
            "slopes": lambda: torch.autograd.grad(
                layer.entropy(scores, *more) @ torch.tensor(by), (scores, tables), allow_unused=True
            ),
        }
        return asks, self._flat


class GridCase(MaskedCase):
    """Images with masks, as the same graphs."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.states = int(rng.integers(1, 4))
        n, rows, columns = (int(x) for x in rng.integers(1, 4, 3))
        self.eight = bool(rng.random() < 0.5)
        scale = float(rng.choice(SIZES))
        self.inside = rng.random((n, rows, columns)) < rng.choice([0.5, 1.0])
        self.inside[np.arange(n), 0, 0] = True
        for image in self.inside:  # enumeration takes so many
            image.ravel()[np.flatnonzero(image)[MOST[self.states] :]] = False
        self.scores = scale * rng.normal(size=(*self.inside.shape, self.states))
        self.scores[rng.random(self.scores.shape) < rng.choice([0.0, 0.0, 0.1])] = -np.inf
        kinds = 4 if self.eight else 2
        shape = (*self.inside.shape, kinds, self.states, self.states)
        self.own = scale * rng.normal(size=shape)
        numbers = np.where(self.inside, np.cumsum(self.inside).reshape(self.inside.shape) - 1, -1)
        self.starts, pairs = [], []
        for at in zip(*np.nonzero(self.inside), strict=True):
            for kind, (down, right) in enumerate(((0, 1), (1, 0), (1, 1), (1, -1))[:kinds]):
                other = (at[0], at[1] + down, at[2] + right)
                if other[1] < rows and 0 <= other[2] < columns and self.inside[other]:
                    self.starts.append((*at, kind))
                    pairs.append((numbers[at], numbers[other]))
        self.sizes = self.inside.sum(axis=(1, 2))
        self.first = np.append(0, np.cumsum(self.sizes))
        self.nodes = self.scores[self.inside]
        self.edges = np.array(pairs, np.int64).reshape(-1, 2)
        self.tables = np.array([self.own[at] for at in self.starts]).reshape(-1, *shape[4:])

    def layer(self, layers, inference):
        """A layer for such images."""
        from structlearn.torch import GridLoss

        near = 8 if self.eight else 4
        return layers(GridLoss, self.states, inference=inference, neighbours=near)

    def _flat(self, found):
        """Answers about pixels as those about nodes."""
        values, labels = found["k_best"]
        for each in (labels, found["sample"]):
            expect((each[:, ~self.inside] == -1).all(), "labels outside the mask:", self.told())
        expect((found["marginals"][~self.inside] == 0.0).all(), "outside:", self.told())
        nodes, edges = found["slopes"]
        edges = np.zeros(self.own.shape) if edges is None else edges
        at = tuple(np.array(self.starts, np.int64).reshape(-1, 4).T)
        return found | {
            "k_best": (values, labels[:, self.inside]),
            "sample": found["sample"][:, self.inside],
            "marginals": found["marginals"][self.inside],
            "slopes": (nodes[self.inside], edges[at]),
        }


class ChainCase(MaskedCase):
    """Sequences of some lengths, as the same graphs."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.states = int(rng.integers(1, 4))
        self.sizes = rng.integers(1, 6, int(rng.integers(1, 4)))
        longest = int(self.sizes.max()) + int(rng.integers(0, 2))
        scale = float(rng.choice(SIZES))
        self.inside = np.arange(longest) < self.sizes[:, None]
        self.scores = scale * rng.normal(size=(*self.inside.shape, self.states))
        self.scores[rng.random(self.scores.shape) < rng.choice([0.0, 0.0, 0.1])] = -np.inf
        self.own = scale * rng.normal(size=(len(self.sizes), longest - 1, self.states, self.states))
        self.own[rng.random(self.own.shape) < rng.choice([0.0, 0.0, 0.1])] = -np.inf
        self.first = np.append(0, np.cumsum(self.sizes))
        self.nodes = self.scores[self.inside]
        later = np.setdiff1d(np.arange(1, self.first[-1]), self.first)
        self.edges = np.stack([later - 1, later], axis=1)
        self.tables = self.own[self.inside[:, 1:]]

    def layer(self, layers, inference):
        """A layer for such sequences, whose inference is always exact."""
        from structlearn.torch import ChainLoss

        return layers(ChainLoss, self.states)

    def _flat(self, found):
        """Answers about positions as those about nodes."""
        values, paths = found["k_best"]
        labels = np.full((values.shape[1], len(self.nodes)), -1)
        for b, ranked in enumerate(paths):
            for r, path in enumerate(ranked):
                labels[r, self.first[b] : self.first[b + 1]] = path
        expect((found["sample"][:, ~self.inside] == -1).all(), "labels outside:", self.told())
        nodes, edges = found["slopes"]
        return found | {
            "k_best": (values, labels),
            "sample": found["sample"][:, self.inside],
            "marginals": found["marginals"][self.inside],
            "slopes": (nodes[self.inside], edges[self.inside[:, 1:]]),
        }


class Layers:
    """Layers that all cases of one call use, so that what they keep is used again."""

    def __init__(self) -> None:
        self.made = {}

    def __call__(self, kind, states, **options):
        key = (kind, states, *options.items())
        if key not in self.made:
            self.made[key] = kind(states, transitions=False, **options).double()
        return self.made[key]


KINDS = (Case, GridCase, ChainCase)


def check(rng: np.random.Generator) -> None:
    """Some batches of graphs and grids, some of them again."""
    layers = Layers()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [KINDS[int(rng.integers(3))](rng) for _ in range(LAYERS)]
        for which in [*range(LAYERS), *rng.integers(LAYERS, size=2)]:
            compare(cases[which], rng, layers)


def compare(case: Case, rng: np.random.Generator, layers: Layers) -> None:
    """Ask a layer everything, and compare."""
    import torch

    from structlearn.errors import ImpossibleEvidenceError

    inference = str(rng.choice(["auto", "exact"]))
    k = int(rng.integers(1, 12))
    found = [case.enumerated(g) for g in range(len(case.sizes))]
    told = f"{inference} k={k} {case.told()}"
    by = rng.normal(size=len(case.sizes))
    seed = torch.Generator().manual_seed(int(rng.integers(2**32)))
    asks, flat = case.answers(layers, inference, k, by, seed)
    if any(scores.max() == -np.inf for _, scores in found):
        for name, ask in asks.items():
            try:
                ask()
            except ImpossibleEvidenceError:
                continue
            expect(False, f"{name} of nothing possible:", told)
        return
    answers = flat({name: _plain(ask()) for name, ask in asks.items()})
    size = 1.0 + np.abs(case.nodes[np.isfinite(case.nodes)]).max(initial=0.0)
    for g, (rows, scores) in enumerate(found):
        own = slice(*case.first[g : g + 2])
        p = np.exp(scores - scores.max())
        p /= p.sum()
        slopes = by[g] * _slopes(scores, p)
        judge_slopes(case, own, rows, slopes, answers["slopes"], 1e-7 * size**2, told)
        judge_k_best(*answers["k_best"], g, own, rows, scores, 1e-9 * size, told)
        judge_draws(answers["sample"][:, own], rows, p, told)
        entropy = -(p[p > 0] * np.log(p[p > 0])).sum()
        mine = answers["entropy"][g]
        expect(abs(mine - entropy) <= 1e-8 * size, f"entropy {mine}, not {entropy}:", told)
        for i, row in enumerate(answers["marginals"][own]):
            right = np.bincount(rows[:, i], p, case.states)
            expect(np.allclose(row, right, atol=1e-8), f"marginals {row}, not {right}:", told)


def _plain(answer):
    """Arrays in the place of tensors; lists and what is missing stay."""
    if isinstance(answer, tuple):
        return tuple(map(_plain, answer))
    return answer.detach().numpy() if hasattr(answer, "detach") else answer


def _slopes(scores, p):
    """Gradient of the entropy by the scores of all labellings: their mean score less their own."""
    mean = (p[p > 0] * scores[p > 0]).sum()
    return np.where(p > 0, p * (mean - np.where(p > 0, scores, 0.0)), 0.0)


def judge_slopes(case, own, rows, slopes, found, close, told):
    """Gradients of entropies by nodes and tables are sums of those by labellings."""
    for i, v in enumerate(range(own.start, own.stop)):
        right = np.bincount(rows[:, i], slopes, case.states)
        mine = found[0][v]
        expect(np.allclose(mine, right, rtol=0.0, atol=close), f"slope {mine}, not {right}:", told)
    for e, (a, b) in enumerate(case.edges - own.start):
        if 0 <= a < rows.shape[1]:
            right = np.zeros((case.states, case.states))
            np.add.at(right, (rows[:, a], rows[:, b]), slopes)
            mine = found[1][e]
            expect(np.allclose(mine, right, rtol=0.0, atol=close), f"{mine}, not {right}:", told)


def judge_k_best(values, labels, g, own, rows, scores, close, told):
    """The k best are the k best, all different, and the rest is empty."""
    right = np.sort(scores[scores > -np.inf])[::-1][: len(labels)]
    n = len(right)
    expect(np.allclose(values[g, :n], right, rtol=0.0, atol=close), values[g], right, told)
    expect((values[g, n:] == -np.inf).all() and (labels[n:, own] == -1).all(), "more:", told)
    paths = [tuple(row) for row in labels[:n, own].tolist()]
    expect(len(set(paths)) == n, "the same labelling twice:", told)
    places = {tuple(row): i for i, row in enumerate(rows.tolist())}
    mine = scores[[places[path] for path in paths]]
    expect(np.allclose(mine, values[g, :n], rtol=0.0, atol=close), "scores:", mine, told)


def judge_draws(drawn, rows, p, told):
    """Counts of labellings are what their probabilities allow, by Bernstein's inequality."""
    places = {tuple(row): i for i, row in enumerate(rows.tolist())}
    found = np.bincount([places[tuple(row)] for row in drawn.tolist()], minlength=len(rows))
    most = np.sqrt(56.0 * p * (1.0 - p) / DRAWS) + 20.0 / DRAWS
    expect((np.abs(found / DRAWS - p) <= most).all(), "draws:", found, p, told)
    expect(not found[p == 0.0].any(), "an impossible draw:", told)
