"""Stochastic dual coordinate ascent for smooth losses on sequences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structlearn.common.checks import Floats
from structlearn.kernels.marginal import Slate
from structlearn.kernels.sdca import Memory, Primal, ascend
from structlearn.objective.base import Objective
from structlearn.objective.objective import StructuredObjective
from structlearn.solve import sequences
from structlearn.solve.base import Report, State, draw_seed, stream
from structlearn.solve.sequences import Flat

_MOST = 2.0  # by which factor steps change at most from one pass to the next


@dataclass(frozen=True)
class Sdca:
    name: ClassVar[str] = "sdca"

    def refuses(self, objective: Objective) -> str:
        """Refuse all but smooth losses on sequences with squares as penalty."""
        if why := sequences.refuses(objective):
            return why
        assert isinstance(objective, StructuredObjective)
        if len(objective.loss.parts) > 1 or objective.loss.parts[0].eps_y == 0.0:
            return "it needs a smooth loss of one part: use loss='log', or eps_y above 0"
        if not objective.penalty.smooth:
            return "it needs squares alone as penalty: use l1_ratio=0"
        return ""

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        flat = sequences.flatten(objective)
        K, n = flat.states, objective.n_examples
        learnt = n if flat.data.learnt.any() else 0
        return {
            "seed": draw_seed(rng),
            "iteration": 0,
            "weights": weights,
            "rest": weights.copy() if weights.any() else np.empty(0),
            "curvature": 1.0,
            "dual": 0.0,
            "nodes": np.zeros((len(flat.data.labels), K), np.float32),
            "edges": np.zeros((learnt, K, K), np.float32),
            "bounds": np.zeros(n),
        }

    def step(self, objective: Objective, state: State) -> Report:
        assert isinstance(objective, StructuredObjective)
        flat, part = sequences.flatten(objective), objective.loss.parts[0]
        state["iteration"] += 1
        order = stream(state, state["iteration"]).permutation(objective.n_examples)
        weights, n = state["weights"], flat.n_node_weights
        if "base" not in state: state["base"]=_curvatures(flat)/part.eps_y
        steps = 1.0 / (1.0 + state["curvature"]*state["base"])
        primal = Primal(weights[:n], flat.table(weights), np.empty((flat.longest, flat.states)))
        memory = Memory(*(state[name] for name in Memory._fields))
        costly = part.costly and objective.cost is not None
        met, gain = ascend(
            order, flat.data, part.eps_y, costly, flat.by, steps, primal, memory, _slate(flat)
        )
        flat.set_table(weights, primal.table)
        square = 0.5 * float(weights @ weights)
        dual = float(flat.by @ state["bounds"]) - square
        loss = gain - (dual - state["dual"])
        state["info"]=(gain,loss,dual,gain/(2*loss) if loss else 0., steps.mean())
        state["dual"] = dual
        return Report(met + square, exact=False)


def _curvatures(flat):
    d=flat.data
    v=np.ones(len(d.columns)) if not len(d.values) else d.values
    sq=np.add.reduceat(np.append(v*v,0),d.rows[:-1])*(np.diff(d.rows)>0)
    per=np.maximum.reduceat(sq,d.offsets[:-1])
    return flat.by*0.5*per


def _slate(flat: Flat) -> Slate:
    n, K = flat.longest, flat.states
    soft, tables, bits = np.empty(n * K), np.empty((2, K, K)), np.empty(max(n, K) * K)
    return Slate(
        nodes=np.empty((n, K)), edges=np.empty((1, K, K)), soft=soft.reshape(n, K), pairs=np.empty((K, K)),
        alpha=np.empty((n, K)), later=np.empty((n + 1, K)), tables=tables, tops=np.empty(n), scales=np.empty(n),
        flat_soft=soft, flat_table=tables[0].ravel(), bits=bits, integers=bits.view(np.int64), labels=np.empty(n, np.int64),
    )
