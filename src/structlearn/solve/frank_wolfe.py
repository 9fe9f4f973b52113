"""Block-coordinate Frank-Wolfe for the structured hinge on sequences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structlearn.common import checks
from structlearn.common.checks import Floats, Ints
from structlearn.graph.wiring import offsets
from structlearn.kernels.frank_wolfe import Desk, Dual, Primal, frank_wolfe
from structlearn.objective.base import Objective
from structlearn.solve import sequences
from structlearn.solve.base import Report, State, draw_seed, stream
from structlearn.solve.sequences import Flat

_REFRESH = 10  # passes after which all gaps are seen anew
_PATHS = 4  # paths that a list of counts gets room for at a time


@dataclass(frozen=True)
class FrankWolfe:
    r"""Steps on the dual of the hinge, one sequence at a time, each as long as is best.

    .. math:: \min_w \tfrac{1}{2} \|w\|^2 + C \sum_i c_i \max_y
              \big[\Delta_i(y) - \langle w, \psi_i(y) \rangle \big]
              \;=\; \max_\alpha \sum_i \ell_i(\alpha_i) - \tfrac{1}{2} \|w(\alpha)\|^2,

    with :math:`\psi_i(y) = \phi_i(y_i) - \phi_i(y)`, :math:`\ell_i(\alpha_i) = C c_i
    E_{\alpha_i} \Delta_i` and :math:`w(\alpha) = \sum_i C c_i E_{\alpha_i} \psi_i`. It needs no step
    size, the dual never falls, and the gap bounds how far the answer can be from the optimum. The
    answer is an average in which the weights after step :math:`k` count by :math:`k^2`. It always
    begins at weights of 0.

    Parameters
    ----------
    sampling
        Draw sequences in proportion to their last known gap instead of taking them in turn.
    evaluate
        Passes between two looks at objective and gap, each of which costs about half a pass.

    References
    ----------
    S. Lacoste-Julien, M. Jaggi, M. Schmidt and P. Pletscher, "Block-coordinate Frank-Wolfe
    optimization for structural SVMs", 2013, algorithm 4.
    A. Osokin et al., "Minding the gaps for block Frank-Wolfe optimization of structured SVMs",
    2016, section 3.1.
    """

    sampling: bool = False
    evaluate: int = 5
    name: ClassVar[str] = "frank-wolfe"

    def __post_init__(self) -> None:
        checks.whole("evaluate", self.evaluate, low=1)

    def refuses(self, objective: Objective) -> str:
        """Refuse all but the hinge on sequences with the squares as penalty."""
        if why := sequences.refuses(objective):
            return why
        (part, *more) = getattr(objective, "loss").parts
        if more or part.eps_y > 0.0:
            return "it minimises the hinge only: use loss='hinge'"
        if not objective.penalty.smooth:
            return "it needs the squares alone as penalty: set l1_ratio=0"
        return ""

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Begin where every labelling is the true one, with weights of 0."""
        flat = sequences.flatten(objective)
        starts, codes, shares = _true_counts(flat)
        n = objective.n_examples
        state: State = {"seed": draw_seed(rng), "iteration": 0, "steps": 0}
        state |= {"starts": starts[:-1], "counts": np.diff(starts), "codes": codes}
        state |= {"shares": shares, "losses": np.zeros(n), "gaps": np.full(n, np.inf)}
        state |= {name: np.zeros(len(weights)) for name in ("weights", "lag", "average")}
        return state

    def step(self, objective: Objective, state: State) -> Report:
        """Go through all examples once."""
        flat = sequences.flatten(objective)
        state["iteration"] += 1
        order = self._order(state)
        _make_room(flat, state, order)
        _pass(flat, state, order)
        state["steps"] += len(order)
        steps = float(state["steps"])
        past = steps * (steps + 1.0) * (2.0 * steps + 1.0) / 6.0
        state["average"] = state["weights"] - state["lag"] / past
        if state["iteration"] % self.evaluate:
            return Report()
        value = objective.value(state["average"])
        return Report(value, gap=max(value - dual_value(state), 0.0))

    def _order(self, state: State) -> Ints:
        rng, gaps = stream(state, state["iteration"]), state["gaps"]
        if not self.sampling or state["iteration"] % _REFRESH == 1 or not (gaps > 0.0).any():
            return rng.permutation(len(gaps))
        weights = gaps.clip(0.0)
        return rng.choice(len(gaps), len(gaps), p=weights / weights.sum())


def dual_value(state: State) -> float:
    """Return the dual objective, a lower bound on every value."""
    weights = state["weights"]
    return float(state["losses"].sum() - 0.5 * (weights @ weights))


def _pass(flat: Flat, state: State, order: Ints) -> None:
    """Take one step for every sequence in `order`."""
    K, n = flat.states, flat.n_node_weights
    size = K * K + flat.longest * K
    scores = np.empty(size)
    scores[: K * K] = flat.edges(state["weights"])
    edges, nodes = scores[: K * K].reshape(1, K, K), scores[K * K :].reshape(-1, K)
    edge_lag = np.where(flat.data.learnt, state["lag"][flat.ties], 0.0)
    frank_wolfe(
        order,
        flat.data,
        flat.parts[0].added,
        flat.by,
        Primal(state["weights"][:n], state["lag"][:n], edges, edge_lag),
        Dual(*(state[name] for name in Dual._fields)),
        Desk(
            scores,
            nodes,
            np.empty_like(nodes),
            np.empty(len(nodes), np.int64),
            np.zeros(size, np.int64),
            np.empty(size),
            np.zeros(n),
        ),
        state["steps"],
    )
    flat.set_edges(state["weights"], scores[: K * K])
    flat.set_edges(state["lag"], edge_lag)


def _true_counts(flat: Flat) -> tuple[Ints, Ints, Floats]:
    """Where the list of every sequence begins, and codes and shares for its true labels."""
    data, K = flat.data, flat.states
    borders, labels = data.offsets, data.labels
    owner = np.repeat(np.arange(len(borders) - 1), np.diff(borders))
    place = np.arange(len(labels)) - borders[owner]
    inner = np.flatnonzero(place > 0)
    steps = labels[inner - 1] * K + labels[inner]
    size = K * K + flat.longest * K
    keys = np.concatenate(
        [
            (owner[inner] * size + steps)[data.learnt[steps]],
            owner * size + K * K + place * K + labels,
        ]
    )
    found, counts = np.unique(keys, return_counts=True)
    starts = np.searchsorted(found, size * np.arange(len(borders)))
    return starts, found % size, counts.astype(np.float64)


def _make_room(flat: Flat, state: State, order: Ints) -> None:
    """See that every list of counts has room for the paths that `order` may add."""
    counts, starts = state["counts"], state["starts"]
    lengths = np.diff(flat.data.offsets)
    most = flat.states**2 + lengths * flat.states
    path = 2 * lengths - 1
    need = np.minimum(counts + np.bincount(order, minlength=len(counts)) * path, most)
    room = np.diff(starts, append=len(state["codes"]))
    if (need <= room).all():
        return
    borders = offsets(np.minimum(np.maximum(need, counts + _PATHS * path), most))
    source, target = _places(starts, counts), _places(borders[:-1], counts)
    for name in ("codes", "shares"):
        array = np.zeros(int(borders[-1]), state[name].dtype)
        array[target] = state[name][source]
        state[name] = array
    state["starts"] = borders[:-1]


def _places(starts: Ints, counts: Ints) -> Ints:
    """Return the indices of all entries of all lists."""
    ends = np.cumsum(counts)
    return np.arange(counts.sum()) + np.repeat(starts - ends + counts, counts)
