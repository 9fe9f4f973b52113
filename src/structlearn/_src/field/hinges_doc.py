"""Sections of the docstrings of `Hinges`, which `completed` adds to its methods."""

from __future__ import annotations

HINGES = {
    "stored": """\
Parameters
----------
store
    The store, which releases memory after each piece.
arrays
    Arrays by name: the parameters of the class from `offsets` to `groups`.
n_variables, n_groups
    Number of variables and of weights.

Returns
-------
Hinges
    The forms.

Examples
--------
A `RuleModel` with a small ``memory_limit`` makes such forms:

>>> from types import SimpleNamespace
>>> from structlearn import HingeField
>>> from structlearn.fields import Hinges
>>> forms = HingeField([[1.0], [-1.0]], [0.0, 1.0]).hinges
>>> store = SimpleNamespace(release=lambda: None)
>>> Hinges.stored(store, vars(forms), n_variables=1, n_groups=1).n_forms
2""",
    "piece": """\
Parameters
----------
first, last
    The range, from `first` up to `last`, which is not included.

Returns
-------
Hinges
    The forms of the range, over all variables and with all groups.

Examples
--------
>>> from structlearn import HingeField
>>> HingeField([[1.0], [-1.0], [2.0]], [0.0, 1.0, -1.0]).hinges.piece(1, 3).n_forms
2""",
    "take": """\
Parameters
----------
forms
    Indices of the forms.
variables
    Indices of the variables, which are numbered from 0 in this order; all that the forms
    contain must be among them.

Returns
-------
Hinges
    The chosen forms, with all groups.

Examples
--------
>>> import numpy as np
>>> from structlearn import HingeField
>>> A, b = [[1.0, 0.0], [-1.0, 0.5]], [0.0, 1.0]  # y0, and 1 - y0 + y1 / 2
>>> forms = HingeField(A, b, powers=2, groups=[0, 1], weights=[1, 3]).hinges
>>> y = np.array([0.25, 0.5])
>>> forms.take(np.array([0]), np.array([0])).n_variables
1""",
    "values": """\
Parameters
----------
y
    (variables,) Values in [0, 1].

Returns
-------
array of shape (forms,)
    Values of the linear forms.

Examples
--------
>>> import numpy as np
>>> from structlearn import HingeField
>>> A, b = [[1.0, 0.0], [-1.0, 0.5]], [0.0, 1.0]  # y0, and 1 - y0 + y1 / 2
>>> forms = HingeField(A, b, powers=2, groups=[0, 1], weights=[1, 3]).hinges
>>> y = np.array([0.25, 0.5])
>>> forms.values(y)
array([0.25, 1.  ])""",
    "add_up": """\
Parameters
----------
entries
    (entries,) One number for each pair of form and variable, in the order of `variables`.

Returns
-------
array of shape (forms,)
    The sums.

Examples
--------
>>> import numpy as np
>>> from structlearn import HingeField
>>> A, b = [[1.0, 0.0], [-1.0, 0.5]], [0.0, 1.0]  # y0, and 1 - y0 + y1 / 2
>>> forms = HingeField(A, b, powers=2, groups=[0, 1], weights=[1, 3]).hinges
>>> y = np.array([0.25, 0.5])
>>> forms.add_up(np.ones(3))  # the number of variables in each form
array([1., 2.])""",
    "hinges": """\
Parameters
----------
y
    (variables,) Values in [0, 1].

Returns
-------
array of shape (groups,)
    The derivative of the energy with respect to the weights.

Examples
--------
>>> import numpy as np
>>> from structlearn import HingeField
>>> A, b = [[1.0, 0.0], [-1.0, 0.5]], [0.0, 1.0]  # y0, and 1 - y0 + y1 / 2
>>> forms = HingeField(A, b, powers=2, groups=[0, 1], weights=[1, 3]).hinges
>>> y = np.array([0.25, 0.5])
>>> forms.hinges(y)
array([0.0625, 1.    ])""",
    "sum_hinges": """\
Parameters
----------
values
    (forms,) Values of the forms.

Returns
-------
array of shape (groups,)
    The sums.

Examples
--------
>>> import numpy as np
>>> from structlearn import HingeField
>>> A, b = [[1.0, 0.0], [-1.0, 0.5]], [0.0, 1.0]  # y0, and 1 - y0 + y1 / 2
>>> forms = HingeField(A, b, powers=2, groups=[0, 1], weights=[1, 3]).hinges
>>> y = np.array([0.25, 0.5])
>>> forms.sum_hinges(np.array([2.0, -1.0]))
array([4., 0.])""",
    "energy": """\
Parameters
----------
y
    (variables,) Values in [0, 1].
weights
    (groups,) Weights, at least 0.

Returns
-------
float
    The energy.

Examples
--------
>>> import numpy as np
>>> from structlearn import HingeField
>>> A, b = [[1.0, 0.0], [-1.0, 0.5]], [0.0, 1.0]  # y0, and 1 - y0 + y1 / 2
>>> forms = HingeField(A, b, powers=2, groups=[0, 1], weights=[1, 3]).hinges
>>> y = np.array([0.25, 0.5])
>>> forms.energy(y, np.array([1.0, 3.0]))
3.0625""",
    "violations": """\
Parameters
----------
y
    (variables,) Values in [0, 1].

Returns
-------
array of shape (forms,)
    By how much a hard form is violated; 0 for hinges.

Examples
--------
>>> import numpy as np
>>> from structlearn import HingeField
>>> forms = HingeField([[1.0, 1.0]], -1.0, kinds="<=").hinges  # y0 + y1 <= 1
>>> forms.violations(np.array([1.0, 0.25]))
array([0.25])""",
    "check_values": """\
Parameters
----------
name
    Name of the argument, for the error.
given : array-like of shape (variables,)
    Values in [0, 1].
absent
    What NaN means, if it is allowed; by default it is not.

Returns
-------
array of shape (variables,)
    The values.

Examples
--------
>>> import numpy as np
>>> from structlearn import HingeField
>>> A, b = [[1.0, 0.0], [-1.0, 0.5]], [0.0, 1.0]  # y0, and 1 - y0 + y1 / 2
>>> forms = HingeField(A, b, powers=2, groups=[0, 1], weights=[1, 3]).hinges
>>> y = np.array([0.25, 0.5])
>>> forms.check_values("truth", [0.5, float("nan")], absent="latent")
array([0.5, nan])""",
    "check_weights": """\
Parameters
----------
weights : array-like of shape (groups,)
    Weights, at least 0.

Returns
-------
array of shape (groups,)
    The weights.

Examples
--------
>>> import numpy as np
>>> from structlearn import HingeField
>>> A, b = [[1.0, 0.0], [-1.0, 0.5]], [0.0, 1.0]  # y0, and 1 - y0 + y1 / 2
>>> forms = HingeField(A, b, powers=2, groups=[0, 1], weights=[1, 3]).hinges
>>> y = np.array([0.25, 0.5])
>>> forms.check_weights([1, 3])
array([1., 3.])""",
    "check_fixed": """\
Parameters
----------
fixed : dict, array-like of shape (variables,), pair of arrays or None
    Values by variable; or one per variable, NaN where it is free; or variables and their values.

Returns
-------
tuple of arrays of shape (fixed,)
    The variables that are given, and their values.

Examples
--------
>>> from structlearn import HingeField
>>> forms = HingeField([[1.0, 1.0]], -1.0).hinges
>>> forms.check_fixed({1: 0.5})
(array([1]), array([0.5]))""",
    "given_values": """\
Parameters
----------
fixed : dict, array-like of shape (variables,), pair of arrays or None
    Values by variable; or one per variable, NaN where it is free; or variables and their values.

Returns
-------
array of shape (variables,)
    The values.

Examples
--------
>>> from structlearn import HingeField
>>> forms = HingeField([[1.0, 1.0]], -1.0).hinges
>>> forms.given_values({1: 0.5})
array([nan, 0.5])""",
}
