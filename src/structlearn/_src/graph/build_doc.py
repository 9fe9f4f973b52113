"""Sections of the docstrings of `FactorGraph`, which `completed` adds to its methods."""

from __future__ import annotations

GRAPH = {
    "from_arrays": """\
Parameters
----------
cards
    (variables,) Number of states of every variable.
scope_offsets
    (factors + 1,) Where the scope of each factor starts in `scopes`, and where the last one
    ends.
scopes
    (total arity,) Variables of all factors, one factor after the other.
potentials
    (total size,) Log potentials of all tables, one after the other, each in C order.
roles
    (variables,) 0 for outputs, 1 for hidden variables; by default all are outputs.
names
    Names of the variables; by default their indices.

Returns
-------
FactorGraph
    The graph.

Examples
--------
>>> import numpy as np
>>> offsets, scopes = np.array([0, 1, 3]), np.array([0, 0, 1])
>>> FactorGraph.from_arrays(np.array([2, 2]), offsets, scopes, np.zeros(2 + 4))
FactorGraph(2 variables (2 output), 2 factors, largest arity 2)""",
    "add_variable": """\
Parameters
----------
name
    Name by which factors, evidence and answers refer to it; by default its index.
states
    Number of states.
role
    "output" or "hidden".

Returns
-------
int
    Index of the variable.

Examples
--------
>>> graph = FactorGraph()
>>> graph.add_variable("rain", states=3), graph.add_variable("wet", role="hidden")
(0, 1)""",
    "add_variables": """\
Parameters
----------
names
    Names, or the number of variables, which are then named by their indices.
states
    Number of states, one for all or one for each.
role
    "output" or "hidden", for all of them.

Returns
-------
array of shape (variables,)
    Indices of the new variables.

Examples
--------
>>> graph = FactorGraph()
>>> graph.add_variables(["a", "b"], states=[2, 3])
array([0, 1])""",
    "variable_index": """\
Parameters
----------
name
    Name of a variable.

Returns
-------
int
    Its index, from 0.

Examples
--------
>>> graph = FactorGraph()
>>> _ = graph.add_variables(["rain", "wet"])
>>> graph.variable_index("wet")
1""",
    "set_roles": """\
Parameters
----------
roles
    New role, "output" or "hidden", by name of the variable.

Returns
-------
FactorGraph
    The graph itself.

Examples
--------
>>> graph = FactorGraph()
>>> _ = graph.add_variables(["rain", "wet"])
>>> graph.set_roles({"wet": "hidden"})
FactorGraph(2 variables (1 output, 1 hidden), 0 factors, largest arity 0)""",
    "add_factor": """\
Parameters
----------
scope
    Names of the variables.
table : array-like
    Log potentials, one axis per variable, in the order of `scope`.

Returns
-------
int
    Index of the factor.

Examples
--------
>>> import numpy as np
>>> graph = FactorGraph()
>>> _ = graph.add_variables(["rain", "wet"])
>>> graph.add_factor(["rain", "wet"], np.log([[0.9, 0.1], [0.2, 0.8]]))
0""",
    "add_factors": """\
Parameters
----------
scopes : array-like of shape (factors, arity)
    Variable indices.
tables : array-like
    One table for each factor, of shape (factors, states, ..., states), or one for all, of
    shape (states, ..., states).

Returns
-------
array of shape (factors,)
    Indices of the new factors.

Examples
--------
>>> import numpy as np
>>> graph = FactorGraph()
>>> _ = graph.add_variables(3)
>>> graph.add_factors([(0, 1), (1, 2)], np.eye(2))
array([0, 1])""",
    "with_potentials": """\
Parameters
----------
potentials : array-like of shape (total size,)
    Log potentials of all tables, in the layout of `potentials`.

Returns
-------
FactorGraph
    A new graph; this one does not change.

Examples
--------
>>> import numpy as np
>>> from structlearn import chain
>>> graph = chain(np.zeros((2, 2)), np.eye(2))
>>> graph.with_potentials(2.0 * graph.potentials).table(2)
array([[2., 0.],
       [0., 2.]])""",
    "table": """\
Parameters
----------
factor
    Index of the factor.

Returns
-------
array of shape (states, ..., states)
    One axis per variable of its scope; read-only.

Examples
--------
>>> import numpy as np
>>> from structlearn import chain
>>> chain([[0.0, 1.0], [0.0, 0.0]], np.eye(2)).table(0)
array([0., 1.])""",
    "scope": """\
Parameters
----------
factor
    Index of the factor.

Returns
-------
array of shape (arity,)
    Indices of the variables.

Examples
--------
>>> import numpy as np
>>> from structlearn import chain
>>> chain(np.zeros((2, 2)), np.eye(2)).scope(2)
array([0, 1])""",
    "score": """\
Parameters
----------
assignment : dict, or array-like of shape (variables,)
    State of every variable, by name or in order.

Returns
-------
float
    The score; its exponential is the unnormalised probability.

Examples
--------
>>> import numpy as np
>>> from structlearn import chain
>>> chain([[0.0, 1.0], [0.0, 0.5]], np.eye(2)).score([1, 1])
2.5""",
    "labels": """\
Parameters
----------
assignment : dict, or array-like of shape (variables,)
    States of some variables by name, or of all in order.

Returns
-------
array of shape (variables,)
    The states, -1 for variables that are not in the mapping.

Examples
--------
>>> graph = FactorGraph()
>>> _ = graph.add_variables(["rain", "wet"])
>>> graph.labels({"wet": 1})
array([-1,  1])""",
}
