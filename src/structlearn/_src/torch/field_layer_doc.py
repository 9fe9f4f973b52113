"""Sections of the docstrings of `FieldLoss`, which `completed` adds."""

from __future__ import annotations

FIELD_LOSS = {
    "forward": """\
Parameters
----------
labels
    (variables) True values in [0, 1], NaN where a variable is hidden; those of inputs do
    not matter.
inputs
    (inputs) Values in [0, 1] of the variables that are given.
weights
    (groups) Weights, instead of those of the layer; negative ones count as 0.
memory
    Result of `begin` for the same labels: the state of ADMM, which is updated in place. For
    layers with `steps`, which start afresh without it.

Returns
-------
Tensor of shape ()
    The loss.

Examples
--------
>>> import torch
>>> from structlearn.fields import Hinges
>>> field = Hinges(
...     offsets=[0, 2, 3], variables=[0, 1, 1], coefficients=[1.0, -1.0, 1.0],
...     constants=[0.0, 0.0], kinds=[0, 0], powers=[2, 2], groups=[0, 1], n_variables=2,
...     n_groups=2,
... )
>>> layer = FieldLoss(field, inputs=[0], surrogate="none")
>>> round(layer(torch.tensor([float("nan"), 1.0]), torch.tensor([0.5])).item(), 3)
0.875""",
    "begin": """\
Parameters
----------
labels
    (variables,) True values, NaN where a variable is hidden.
inputs
    (inputs,) Values of the variables that are given; 0.5 by default.

Returns
-------
tuple
    State of ADMM, which calls of the layer update in place.

Examples
--------
>>> import torch
>>> from structlearn.fields import Hinges
>>> field = Hinges(
...     offsets=[0, 2, 3], variables=[0, 1, 1], coefficients=[1.0, -1.0, 1.0],
...     constants=[0.0, 0.0], kinds=[0, 0], powers=[2, 2], groups=[0, 1], n_variables=2,
...     n_groups=2,
... )
>>> layer = FieldLoss(field, inputs=[0], steps=2)
>>> labels = torch.tensor([float("nan"), 1.0])
>>> memory = layer.begin(labels)
>>> layer(labels, torch.tensor([0.5]), memory=memory).shape
torch.Size([])""",
    "energy": """\
Parameters
----------
inputs
    (inputs,) Values of the variables that are given.
weights
    (groups,) Instead of those of the layer; negative ones count as 0.
labels
    (variables,) Values of other variables, NaN where a variable is free: the clamped energy. With
    ``surrogate="none"`` the loss is this energy minus that without labels.

Returns
-------
Tensor of shape ()
    The energy.

Examples
--------
>>> import torch
>>> from structlearn.fields import Hinges
>>> field = Hinges(
...     offsets=[0, 2, 3], variables=[0, 1, 1], coefficients=[1.0, -1.0, 1.0],
...     constants=[0.0, 0.0], kinds=[0, 0], powers=[2, 2], groups=[0, 1], n_variables=2,
...     n_groups=2,
... )
>>> round(FieldLoss(field, inputs=[0]).energy(torch.tensor([0.5])).item(), 3)
0.125""",
    "predict": """\
Parameters
----------
inputs
    (inputs,) Values of the variables that are given.
weights
    (groups,) Instead of those of the layer; negative ones count as 0.

Returns
-------
Tensor of shape (variables,)
    Values in [0, 1].

Examples
--------
>>> import torch
>>> from structlearn.fields import Hinges
>>> field = Hinges(
...     offsets=[0, 2, 3], variables=[0, 1, 1], coefficients=[1.0, -1.0, 1.0],
...     constants=[0.0, 0.0], kinds=[0, 0], powers=[2, 2], groups=[0, 1], n_variables=2,
...     n_groups=2,
... )
>>> FieldLoss(field, inputs=[0]).predict(torch.tensor([0.5])).round(decimals=2)
tensor([0.5000, 0.2500])""",
}
