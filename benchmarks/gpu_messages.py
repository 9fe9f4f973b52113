"""Message sweeps on a card: equal to the host's answers first, then messages per second.

Usage: python benchmarks/gpu_messages.py [--side 1000] [--states 5]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from benchmarks.gpu_fields import attempt, median_ms, note
from structlearn._src.cuda import pairwise
from structlearn._src.graph.batch import assemble
from structlearn._src.graph.wiring import OUTPUT
from structlearn._src.inference.base import Problem
from structlearn._src.inference.messenger import Messenger


def grid(side, states, seed=0, coupling=0.5):
    """A grid with normal scores and an attractive table with noise of its own for each edge."""
    rng = np.random.default_rng(seed)
    n = side * side
    at = np.arange(n).reshape(side, side)
    right = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], axis=1)
    down = np.stack([at[:-1].ravel(), at[1:].ravel()], axis=1)
    scopes = np.arange(n)[:, None], np.concatenate([right, down])
    graphs = assemble(np.full(n, states), np.full(n, OUTPUT), np.array([0, n]), scopes)
    wiring = graphs.wiring
    potentials = rng.normal(size=int(wiring.table_offsets[-1]))
    pairs = np.repeat(wiring.arities == 2, np.diff(wiring.table_offsets))
    potentials[pairs] *= 0.2
    diagonal = np.tile(np.eye(states).ravel() * coupling, len(scopes[1]))
    potentials[pairs] += diagonal
    row, column = np.divmod(np.arange(n), side)
    return wiring, potentials, (row + column) % 2


class Sweeps:
    """The state of messages on a device."""

    def __init__(self, problem, colours, device="cuda"):
        messenger = Messenger(problem)
        plan = messenger.plan
        begin = time.perf_counter()
        self.plan = pairwise.PairPlan(
            problem.wiring, plan.weights, plan.ratios, colours, torch.device(device)
        )
        self.tables = self.plan.prepare(problem.potentials)
        self.messages = torch.from_numpy(messenger.messages.copy()).to(device)
        self.single, self.beliefs = pairwise.combine(self.plan, self.messages)
        self.active = torch.ones(problem.wiring.n_graphs, dtype=torch.bool, device=device)
        self.layout = time.perf_counter() - begin

    def sweep(self, damping=0.0):
        return pairwise.sweep(
            self.plan, self.tables, self.messages, self.single, self.beliefs, self.active, damping,
        )  # fmt: skip


def check(side, states, eps):
    """Compare beliefs at rest with those of the host."""
    wiring, potentials, colours = grid(side, states, 1)
    problem = Problem(wiring, potentials, eps, eps)
    damping = 0.0 if eps else 0.5
    host = Messenger(problem, damping=damping)
    host.run(1000, 1e-10)
    card = Sweeps(problem, colours)
    for _ in range(400):
        change = card.sweep(damping)
    host.messages, ours = card.messages.cpu().numpy(), host.messages
    host_beliefs = host.beliefs()[0]
    host.messages = ours
    gap = np.abs(host_beliefs - host.beliefs()[0]).max()
    note(
        f"check {side} x {side}, {states} states, eps {eps}: beliefs differ by {gap:.1e}; "
        f"last change {float(change.max()):.1e}, host {host.residual.max():.1e}"
    )


def rate(side, states, eps, label=""):
    wiring, potentials, colours = grid(side, states)
    problem = Problem(wiring, potentials, eps, eps)
    card = Sweeps(problem, colours)
    count = sum(len(c.messages) for c in card.plan.colours)
    took = median_ms(card.sweep)
    note(
        f"{label}{side} x {side}, {states} states, eps {eps}: sweep of {count} messages "
        f"{took:.3f} ms = {count / took / 1e6:.2f}e9 messages/s; layout {card.layout:.2f} s"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--side", type=int, default=1000)
    parser.add_argument("--states", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    if args.quick:
        attempt("rate", lambda: rate(args.side, args.states, 1.0))
        attempt("check", lambda: check(60, args.states, 1.0))
        attempt("max", lambda: rate(args.side, args.states, 0.0))
        return
    for eps in (1.0, 0.0, 0.3):
        attempt("check", lambda eps=eps: check(60, args.states, eps))
    from structlearn._src.cuda import pair_kernel

    for entries in (256, 512, 1024, 2048):
        pair_kernel.ENTRIES = entries
        attempt("rate", lambda e=entries: rate(args.side, args.states, 1.0, f"[{e}] "))
    pair_kernel.ENTRIES = 1024
    attempt("max", lambda: rate(args.side, args.states, 0.0))
    attempt("wide", lambda: rate(300, 21, 1.0))
    pairwise.MOST_STATES = 0
    attempt("plain", lambda: rate(args.side, args.states, 1.0, "plain torch "))
    note("done")


if __name__ == "__main__":
    main()
