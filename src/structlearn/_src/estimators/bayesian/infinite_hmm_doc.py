"""Sections of the docstrings of `InfiniteHMM`, which `completed` adds."""

from __future__ import annotations

INFINITE_HMM = {
    "fit": """\
Parameters
----------
X : list of arrays, or array
    Arrays of shape (steps, features), with rows of NaN for missing steps; for symbols, a
    list of sequences, with None or -1 for missing symbols. A single array or frame, or an
    array of shape (sequences, steps, features), is accepted too.
y : object
    Ignored.
lengths : array-like of int, optional
    If X is a single array, the lengths of the sequences in it.

Returns
-------
Self
    The fitted model.

Examples
--------
>>> X = [["a", "a", "b", "b"], ["b", "b", "a"]]
>>> model = InfiniteHMM(emission="categorical", burn_in=5, n_draws=3, random_state=0).fit(X)
>>> model.symbols_.tolist()
['a', 'b']""",
    "predict": """\
Parameters
----------
X : list of arrays, or array
    Sequences, as in `fit`.
lengths : array-like of int, optional
    As in `fit`.

Returns
-------
list of arrays of shape (steps,)
    One state for every step.

Examples
--------
>>> import numpy as np
>>> X = np.repeat([[0.0], [5.0], [0.0], [5.0]], 5, axis=0)
>>> model = InfiniteHMM(burn_in=20, n_draws=3, random_state=0).fit(X)
>>> model.predict([[[0.1], [0.2], [5.1], [4.9]]])
[array([0, 0, 1, 1])]""",
    "predict_proba": """\
Parameters
----------
X : list of arrays, or array
    Sequences, as in `fit`.
lengths : array-like of int, optional
    As in `fit`.

Returns
-------
list of arrays of shape (steps, states)
    Probabilities of the states of every step.

Examples
--------
>>> X = [["a", "a", "b", "b"], ["b", "b", "a"]]
>>> model = InfiniteHMM(emission="categorical", burn_in=5, n_draws=3, random_state=0).fit(X)
>>> [p.shape == (2, model.n_states_) for p in model.predict_proba([["a", "b"]])]
[True]""",
    "score": """\
Parameters
----------
X : list of arrays, or array
    Sequences, as in `fit`.
y : object
    Ignored.
lengths : array-like of int, optional
    As in `fit`.

Returns
-------
float
    Natural logarithm of the density, divided by the number of steps that are not missing.

Examples
--------
>>> X = [["a", "a", "b", "b", "a", "a", "b", "b"]]
>>> model = InfiniteHMM(emission="categorical", burn_in=5, n_draws=3, random_state=0).fit(X)
>>> model.score([["a", "b"]]) < 0.0  # the logarithm of a probability
np.True_""",
}
