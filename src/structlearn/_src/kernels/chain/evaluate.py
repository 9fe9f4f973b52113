"""Losses of many labelled sequences and their gradient, in one pass over their features."""

from __future__ import annotations

from structlearn._src.kernels.chain.sequence import loss_alone, loss_and_errors
from structlearn._src.kernels.chain.split import load_potentials, pull_split
from structlearn._src.kernels.jit import lean


@lean
def evaluate(data, layout, parts, factors, primal, first, last, losses, slope, errors, work):
    """Losses of the sequences from `first` to `last`, without their weights.

    Their gradients times `factors` are added to `slope`; none where its table is empty. A sequence
    stays in the cache from its features to its gradient.
    """
    K = errors.edges.shape[0]
    for c in range(first, last):
        begin, n = data.offsets[c], data.offsets[c + 1] - data.offsets[c]
        load_potentials(data, layout, begin, n, primal, errors)
        if slope.table.size == 0:
            losses[c] = loss_alone(data, c, parts, errors, work)
            continue
        losses[c] = loss_and_errors(data, c, parts, errors, work)
        factor = factors[c]
        for t in range(n):
            for s in range(K):
                errors.nodes[t, s] *= factor
            pull_split(layout, begin + t, errors.nodes[t], slope)
        for r in range(K if n > 1 else 0):
            for s in range(K):
                slope.table[r, s] += factor * errors.steps[r, s]
