"""Sections of the docstrings of `GridDisplay` and `ChainDisplay`, which `completed` adds."""

from __future__ import annotations

GRID_DISPLAY = {
    "from_answer": """\
Parameters
----------
answer
    Answer to "map", "marginal_map" or "marginals".
shape
    Rows and columns of the grid.
show
    ``"labels"``: the assignment, or for marginals the best state of each variable;
    ``"certainty"``: the probability of that state; a number: the probability of that state.
variables
    Variables, row by row; by default the first ones of the answer.
**looks
    `state_names` and `colours`, as for the class.

Returns
-------
GridDisplay
    The display, to be plotted by `plot`.

Examples
--------
>>> import numpy as np
>>> from structlearn import grid, infer, GridDisplay
>>> graph = grid(np.log([[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.3, 0.7]]]), np.eye(2))
>>> GridDisplay.from_answer(infer(graph, "map"), (2, 2)).values
array([[0, 1],
       [1, 1]])""",
    "from_estimator": """\
Parameters
----------
estimator : GridLabeler
    The fitted estimator.
image : array-like of shape (rows, columns, channels) or (rows, columns)
    One image.
show
    ``"labels"``: the prediction; ``"certainty"``: the largest probability of every pixel; a
    number: the probability of that class.
**looks
    `state_names`, by default the names of the classes, and `colours`, as for the class.

Returns
-------
GridDisplay
    The display, to be plotted by `plot`.

Examples
--------
>>> import numpy as np
>>> from structlearn import GridDisplay, GridLabeler
>>> image = np.array([[0.9, 0.8, 0.1], [0.7, 1.0, 0.2]])
>>> labeler = GridLabeler(C=10.0, edges="potts").fit([image], [(image > 0.5).astype(int)])
>>> GridDisplay.from_estimator(labeler, image).values
array([[1, 1, 0],
       [1, 1, 0]])""",
    "plot": """\
Parameters
----------
ax : matplotlib Axes, optional
    Where to plot; by default a new figure.
title
    Title of the plot.
legend
    Whether to add a colour bar.

Returns
-------
GridDisplay
    The display itself; `ax_` and `figure_` are the axes and the figure.

Examples
--------
>>> from structlearn import GridDisplay
>>> GridDisplay([[0, 1], [1, 1]]).plot(title="labels").ax_.get_title()
'labels'""",
}

CHAIN_DISPLAY = {
    "from_answer": """\
Parameters
----------
answer
    Answer to "marginals", "map" or "marginal_map".
variables
    Variables in order along the sequence; by default all in the answer.
paths
    Answers or arrays of states by name, shown as strips below; an answer without marginals
    becomes the first strip.
**looks
    `state_names` and `colours`, as for the class.

Returns
-------
ChainDisplay
    The display, to be plotted by `plot`.

Examples
--------
>>> import numpy as np
>>> from structlearn import chain, infer, ChainDisplay
>>> graph = chain(np.log([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]), np.eye(2))
>>> best = infer(graph, "map")
>>> ChainDisplay.from_answer(infer(graph), paths={"best": best}).paths
{'best': array([0, 1, 1])}""",
    "from_estimator": """\
Parameters
----------
estimator : SequenceLabeler
    The fitted estimator.
sequence : object
    One sequence in the form that the estimator takes; of text columns, the first sentence.
paths
    Labels along the sequence by name, for example the true labels, shown as strips below
    the prediction; None and -1 are left blank.
**looks
    `state_names`, by default the names of the classes, and `colours`, as for the class.

Returns
-------
ChainDisplay
    The display, to be plotted by `plot`.

Examples
--------
>>> from structlearn import SequenceLabeler, ChainDisplay
>>> X, Y = [[["a"], ["b"]], [["b"], ["b"]]], [["x", "y"], ["y", "y"]]
>>> labeler = SequenceLabeler().fit(X, Y)
>>> display = ChainDisplay.from_estimator(labeler, X[0], paths={"truth": Y[0]})
>>> list(display.paths)
['predicted', 'truth']""",
    "plot": """\
Parameters
----------
ax : matplotlib Axes, optional
    Where to plot; by default a new figure.
title
    Title of the plot.
legend
    Whether to add the names of the states on the right.

Returns
-------
ChainDisplay
    The display itself; `ax_` and `figure_` are the axes and the figure.

Examples
--------
>>> from structlearn import ChainDisplay
>>> ChainDisplay([[0.9, 0.1], [0.4, 0.6]]).plot(title="two positions").ax_.get_title()
'two positions'""",
}
