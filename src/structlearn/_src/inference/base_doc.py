"""Sections of the docstrings of `Result`, `Inferer` and `Answer`, which `completed` adds."""

from __future__ import annotations

RESULT = {
    "": """\
Parameters
----------
value
    (graphs,) Values of the graphs, as in `Answer`.
exact
    Whether they are exact up to rounding.
lower, upper
    (graphs,) Bounds on the true values; infinite if None.
beliefs
    Marginals of all variables in one flat array, in the layout `belief_offsets` of the wiring.
factor_beliefs
    Marginals of all factors in one flat array, in the layout `table_offsets` of the wiring.
labels
    (variables,) State of every variable, -1 where the query leaves it open.
draws
    (samples, variables) Draws.
best
    Pairs of values (graphs,) and labels (variables,), best first, if several were asked for.
converged
    (graphs,) Whether an iterative method reached its tolerance.
apart
    (graphs,) Largest difference between the beliefs and those of runs from other starts.
iterations, residual
    (graphs,) Number of iterations, and the last change.
messages
    Messages from which a later call may start.
ended, status
    How the computation ended, and a sentence that describes it.

Examples
--------
>>> import numpy as np
>>> from structlearn.extend import Result
>>> found = Result(np.array([0.5]), exact=False, upper=np.array([0.7]), status="upper bound")
>>> found.upper - found.value
array([0.2])""",
    "exactly": """\
Parameters
----------
value
    (graphs,) Values of the graphs.
status
    A sentence that describes the computation.
**found
    Further fields of the result, such as `beliefs` or `labels`.

Returns
-------
Result
    The result, exact and converged.

Examples
--------
>>> import numpy as np
>>> from structlearn.extend import Result
>>> Result.exactly(np.array([0.5]), "all states enumerated").lower
array([0.5])""",
}

INFERER = {
    "": """\
Examples
--------
Of a graph without factors over more than one variable, every variable is a problem of its own:

>>> import numpy as np
>>> from structlearn import FactorGraph, infer
>>> from structlearn.extend import METHODS, Result
>>> class Independent:
...     name = "independent"
...
...     def refuses(self, problem, query, options):
...         alone = len(problem.wiring.scopes) == problem.wiring.n_factors
...         return "" if query == "partition" and alone else "it needs factors of one variable"
...
...     def run(self, problem, query, options):
...         wiring = problem.wiring
...         tables = np.split(problem.potentials, wiring.table_offsets[1:-1])
...         values = [np.log(np.exp(table).sum()) for table in tables]
...         return Result.exactly(np.array([sum(values)]), "a sum over variables")
>>> METHODS["independent"] = Independent()
>>> graph = FactorGraph()
>>> _ = graph.add_factor([graph.add_variable(states=3)], np.zeros(3))
>>> round(infer(graph, "partition", method="independent").value, 4)
1.0986
>>> del METHODS["independent"]""",
    "refuses": """\
Parameters
----------
problem
    The wiring of the graphs, their potentials, and the temperatures of the query.
query
    The query.
options
    Checked options of `infer`.

Returns
-------
str
    A sentence, or an empty string.

Examples
--------
The sentence is part of the error that `infer` raises:

>>> import numpy as np
>>> from structlearn import chain, infer
>>> graph = chain(np.zeros((2, 2)), np.eye(2))
>>> infer(graph, "samples", method="trw")  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
structlearn._src.common.errors.QueryError: method='trw' cannot be used here: ...""",
    "run": """\
Parameters
----------
problem
    The wiring of the graphs, their potentials, and the temperatures of the query.
query
    The query.
options
    Checked options of `infer`.

Returns
-------
Result
    Values, and what the query asks for.

Examples
--------
>>> from structlearn.extend import METHODS
>>> callable(METHODS["bp"].run)
True""",
}

ANSWER = {
    "": """\
Parameters
----------
query, method
    The query, and the method that answered it.
value
    The soft maximum at the query's temperatures: log Z for "partition", "marginals" and
    "samples", the score of the assignment for "map", the log of its weight with hidden
    variables summed out for "marginal_map".
lower, upper
    Bounds on the true value; equal to it if `exact`, infinite where nothing is known.
exact
    Whether the answer is exact up to rounding.
status
    One sentence that describes the outcome.
ended
    Whether the computation was completed, or ended by a limit, the time limit or Ctrl-C.
converged, iterations, residual
    How an iterative method ended.
marginals
    One array (states,) for every variable, by its name.
factor_marginals
    One array for every factor, by its index.
assignment
    State of every variable by its name; with "marginal_map" only of the outputs.
k_best
    Pairs of value and assignment, best first.
samples
    (samples, variables) Draws.
bounds
    (candidates, 3) Seconds, `lower` and `upper` after each candidate of the portfolio.
messages
    Messages that warm-start a later call (`start=`).

Attributes
----------
query, method
    The query, and the method that answered it.
value
    The soft maximum at the query's temperatures: log Z for "partition", "marginals" and
    "samples", the score of the assignment for "map", the log of its weight with hidden
    variables summed out for "marginal_map".
lower, upper
    Bounds on the true value; equal to it if `exact`, infinite where nothing is known.
exact
    Whether the answer is exact up to rounding.
ended
    Whether the computation was completed, or ended by a limit, the time limit or Ctrl-C.
status
    One sentence that describes the outcome.
marginals
    One array for every variable, by its name.
factor_marginals
    One array for every factor, by its index.
assignment
    State of every variable by its name; with "marginal_map" only of the outputs.
k_best
    Pairs of value and assignment, best first.
samples
    (samples, variables) Draws.
bounds
    (candidates, 3) Seconds, `lower` and `upper` after each candidate of the portfolio.
converged, iterations, residual, messages
    How an iterative method ended; `messages` warm-start a later call (`start=`).

Examples
--------
>>> import numpy as np
>>> from structlearn import chain, infer
>>> answer = infer(chain(np.log([[0.9, 0.1], [0.5, 0.5]]), np.eye(2)), "marginals")
>>> answer.exact, answer.method, answer.marginals[0].round(2)
(True, 'chain', array([0.9, 0.1]))""",
    "of": """\
Parameters
----------
same
    Fields that all answers of the batch have in common.
own
    Names and values of the other fields.

Returns
-------
Answer
    The answer.

Examples
--------
>>> import numpy as np
>>> from structlearn import Answer, chain, infer
>>> first = infer(chain(np.zeros((2, 2)), np.eye(2)), "partition")
>>> Answer.of(vars(first), [("status", "as before")]).status
'as before'""",
}
