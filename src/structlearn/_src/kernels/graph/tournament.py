"""A tournament tree: which of many numbers is largest, with changes in logarithmic time.

The tree is one array: node k has the children 2k and 2k + 1, node 1 is the root, and the leaves
take the second half. The largest number stands at the root.
"""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.jit import inner, kernel


@kernel
def new_tree(leaves):
    """A tree for `leaves` numbers, all minus infinity."""
    half = 1
    while half < leaves:
        half *= 2
    return np.full(2 * half, -np.inf)


@inner
def set_leaf(tree, leaf, value):
    """Give a leaf a new number, larger or smaller."""
    k = tree.size // 2 + leaf
    tree[k] = value
    k //= 2
    while k >= 1:
        best = max(tree[2 * k], tree[2 * k + 1])
        if tree[k] == best:
            break
        tree[k] = best
        k //= 2


@inner
def winner(tree):
    """The leaf with the largest number, the first of them if there are several."""
    k = 1
    half = tree.size // 2
    while k < half:
        k = 2 * k if tree[2 * k] == tree[k] else 2 * k + 1
    return k - half
