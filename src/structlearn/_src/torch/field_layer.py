"""Hinge-loss fields as a layer: least energies that are differentiable by weights and inputs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.document import completed
from structlearn._src.common.errors import ArgumentError, UncertifiedWarning, warn
from structlearn._src.common.names import SURROGATES
from structlearn._src.field.admm import HingeResult, solve_map
from structlearn._src.field.consensus import Consensus, make_consensus
from structlearn._src.field.examples import make_field_examples
from structlearn._src.field.hinges import Hinges
from structlearn._src.learn.world import Memory, check_fits
from structlearn._src.places.cuda import Cuda
from structlearn._src.places.on import on
from structlearn._src.torch.field_layer_doc import FIELD_LOSS
from structlearn._src.torch.table_worlds import (
    FirstOrder,
    array,
    at_least_single,
    check_given,
    check_tensors,
    tensor_like,
)

_KINK = 1e-6  # forms this near to 0 are at the kink of their hinge, where multipliers decide


@dataclass(frozen=True, eq=False)
class _Problem:
    """One minimisation: a field, some of whose variables are fixed."""

    hinges: Hinges
    fixed: Ints
    tol: float
    n_jobs: int | None

    def solve(self, weights: Floats, values: Floats) -> HingeResult:
        """Minimise the energy with these values of what is fixed."""
        found = solve_map(
            self.hinges, weights, fixed=(self.fixed, values), tol=self.tol, n_jobs=self.n_jobs
        )
        if not found.converged:
            warn(
                f"inference ended before tol={self.tol:g} ({found.status}): its energy is not "
                f"certified to be least; a larger tol asks for less",
                UncertifiedWarning,
            )
        return found

    def consensus(self, values: Floats) -> Consensus:
        """Return plain ADMM with these values of what is fixed."""
        return make_consensus(self.hinges, fixed=(self.fixed, values), n_jobs=self.n_jobs)

    def forces(self, weights: Floats, found: HingeResult) -> Floats:
        r"""Derivative of the least energy by the constant of every form.

        By the envelope theorem it is that of the energy at the minimum,
        :math:`w p \max(l, 0)^{p-1}`; at the kink of a linear hinge and for hard forms it is the
        multiplier.
        """
        hinges = self.hinges
        each = weights[hinges.groups]
        forms = hinges.values(found.y)
        linear = np.where(forms > 0.0, each, 0.0)
        at_kink = (hinges.powers == 1) & (np.abs(forms) < _KINK)
        linear = np.where(at_kink, np.clip(found.multipliers, 0.0, each), linear)
        squared = 2.0 * each * np.maximum(forms, 0.0)
        soft = np.where(hinges.powers == 2, squared, linear)
        return np.where(hinges.hard, found.multipliers, soft)

    def by_values(self, forces: Floats) -> Floats:
        """Derivative of an energy by the values of what is fixed, given that by constants."""
        hinges = self.hinges
        lengths = np.diff(hinges.offsets)
        pulls = np.repeat(forces, lengths) * hinges.coefficients
        summed = np.bincount(hinges.variables, pulls, hinges.n_variables)
        return summed[self.fixed].astype(np.float64)


class LeastEnergy(torch.autograd.Function):
    """The least energy of a field, as a function of its weights and of fixed values."""

    @staticmethod
    def forward(ctx: Any, problem: _Problem, weights: Tensor, values: Tensor) -> Tensor:
        """Return the energy, a scalar."""
        strengths = array(weights)
        with _beside(values):
            found = problem.solve(strengths, array(values))
        ctx.save_for_backward(weights, values)
        ctx.by_weights = tensor_like(found.hinges, weights)
        by_values = problem.by_values(problem.forces(strengths, found))
        ctx.by_values = tensor_like(by_values, values)
        return tensor_like(np.array(found.energy), weights)

    @staticmethod
    def backward(ctx: Any, factor: Tensor) -> Any:
        """Sums of hinges, and pulls on the fixed values."""
        return None, *_pulls(ctx, factor)


class PairedEnergy(torch.autograd.Function):
    r"""The energy of local copies after steps of ADMM, whose variables then count as constants.

    Where ADMM is at rest it is the least energy. Copies minimise :math:`w \phi_i(v_i)` plus terms
    without the constant of the form, whose derivative hence is the multiplier.
    """

    @staticmethod
    def forward(
        ctx: Any, problem: _Problem, state: Any, steps: int, weights: Tensor, values: Tensor
    ) -> Tensor:
        """Take the steps, which bring the state up to date, and return the energy, a scalar."""
        strengths = array(weights)
        with _beside(values):
            consensus = problem.consensus(array(values))
            check_fits(consensus.fits(state))
            consensus.hold(state)
            consensus.run(strengths, state, steps)
            multipliers = consensus.arrays(consensus.snapshot(state))[1]
        ctx.save_for_backward(weights, values)
        ctx.by_weights = tensor_like(state.hinges.copy(), weights)
        ctx.by_values = tensor_like(problem.by_values(multipliers), values)
        return tensor_like(np.array(strengths @ state.hinges), weights)

    @staticmethod
    def backward(ctx: Any, factor: Tensor) -> Any:
        """Sums of hinges, and pulls on the fixed values."""
        return None, None, None, *_pulls(ctx, factor)


def _pulls(ctx: Any, factor: Tensor) -> list[Tensor]:
    """Return the gradients by weights and values, which were found with the energy."""
    found = (ctx.by_weights, ctx.by_values)
    return [FirstOrder.apply(factor * by, *ctx.saved_tensors) for by in found]


def _beside(values: Tensor) -> AbstractContextManager[Any]:
    """Solve what is about tensors on a card there, and all else at the current place."""
    return on(Cuda(str(values.device))) if values.is_cuda else nullcontext()


def _least_energy(problem: _Problem, weights: Tensor, values: Tensor) -> Tensor:
    """Return the energy in double precision: losses are small differences of large energies."""
    energy: Tensor = LeastEnergy.apply(problem, weights.double(), values.double())
    return energy


@completed(FIELD_LOSS)
class FieldLoss(nn.Module):
    r"""Energy of the labels of a hinge-loss field minus the minimal energy of all values.

    With inputs :math:`x` (truth values that a network may have computed), weights :math:`w \ge 0`,
    labels :math:`\hat y` and hidden variables :math:`z`,

    .. math:: \ell(w, x) = \min_z \, [w^\top \phi(x, \hat y, z) - h(\hat y, z)]
              - \min_{y, z} \, [w^\top \phi(x, y, z) - h(y, z)]

    with a surrogate :math:`h` of the entropy. Both minima are certified. Gradients with respect to
    the weights are sums of hinges; those with respect to the inputs follow from the multipliers
    (envelope theorem). Labels are constants, without gradients.

    Parameters
    ----------
    hinges
        The field; observed atoms are variables too.
    inputs : array-like of int
        Numbers of the variables whose values are given in the call; none by default.
    weights : array-like of shape (groups,), optional
        (groups) Initial weights, 1 by default. They are a parameter of the layer. Weights below 0
        count as 0 and have no gradient, so they could not grow again: call
        ``layer.weights.data.clamp_(min=0)`` after each step of an optimiser.
    surrogate
        "loss", "entropy" or "none", as in `HingeField.fit`.
    strength
        Weight of the surrogate.
    tol
        Relative gap of the minimisations.
    n_jobs
        Number of threads; all cores by default.
    steps
        Number of steps of ADMM per call, which continue from the `memory` that is passed:
        paired-dual learning. The loss is computed from the local copies, and gradients treat the
        variables of ADMM as constants. By default both minima are certified.

    Notes
    -----
    Problems whose tensors are on a GPU are solved there, others at the place of ``structlearn.on``.

    References
    ----------
    S. Bach et al., "Paired-dual learning for fast training of latent variable hinge-loss MRFs",
    2015, equation 4.

    Examples
    --------
    A target that follows an input, and is drawn to 0:

    >>> import torch
    >>> from structlearn.fields import Hinges
    >>> field = Hinges(
    ...     offsets=[0, 2, 3], variables=[0, 1, 1], coefficients=[1.0, -1.0, 1.0],
    ...     constants=[0.0, 0.0], kinds=[0, 0], powers=[2, 2], groups=[0, 1], n_variables=2,
    ...     n_groups=2,
    ... )
    >>> layer = FieldLoss(field, inputs=[0], surrogate="none")
    >>> x = torch.tensor([0.5], requires_grad=True)
    >>> layer(torch.tensor([float("nan"), 1.0]), x).backward()
    >>> x.grad
    tensor([-0.5000])
    """

    def __init__(
        self,
        hinges: Hinges,
        *,
        inputs: Any = (),
        weights: Any = None,
        surrogate: str = "loss",
        strength: float = 1.0,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        steps: int | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(hinges, Hinges):
            raise ArgumentError(f"hinges must be Hinges; a {type(hinges).__name__} was given")
        self.hinges = hinges
        self.inputs = checks.indices("inputs", inputs).reshape(-1)
        if ((self.inputs < 0) | (self.inputs >= hinges.n_variables)).any():
            raise ArgumentError(f"inputs: variables are 0 to {hinges.n_variables - 1}")
        if len(np.unique(self.inputs)) < len(self.inputs):
            raise ArgumentError("inputs: a variable is named twice")
        self.surrogate = checks.one_of("surrogate", surrogate, SURROGATES)
        self.strength = checks.number("strength", strength, low=0.0)
        self.tol = checks.number("tol", tol, low=0.0)
        self.n_jobs = n_jobs
        self.steps = None if steps is None else checks.integer("steps", steps, low=1)
        start = np.ones(hinges.n_groups) if weights is None else hinges.check_weights(weights)
        self.weights = nn.Parameter(torch.from_numpy(start).to(torch.get_default_dtype()))

    @torch.compiler.disable
    def forward(
        self,
        labels: Tensor,
        inputs: Tensor | None = None,
        weights: Tensor | None = None,
        memory: Memory = None,
    ) -> Tensor:
        """Return the loss, at least 0 up to the tolerance."""
        x = self._checked(inputs)
        free, clamped, values = self._worlds(labels, x)
        strengths = self._weights(weights, x)
        all_weights = torch.cat([strengths, strengths.new_tensor([self.strength])])
        if self.steps is None:
            if memory is not None:
                raise ArgumentError("memory is for layers with steps=...; leave it out here")
            loss = _least_energy(clamped, all_weights, values) - _least_energy(free, all_weights, x)
            return loss.to(x.dtype)
        states = self._begin(free, clamped, x, values) if memory is None else memory
        check_fits(isinstance(states, tuple) and len(states) == 2)
        given = self.steps, all_weights.double()
        loss = PairedEnergy.apply(clamped, states[1], *given, values.double())
        loss = loss - PairedEnergy.apply(free, states[0], *given, x.double())
        return loss.to(x.dtype)

    def begin(self, labels: Tensor, inputs: Tensor | None = None) -> Memory:
        """Return the memory of a layer with `steps` before the first call for these labels."""
        x = self.weights.new_full((len(self.inputs),), 0.5) if inputs is None else inputs
        x = self._checked(x)
        free, clamped, values = self._worlds(labels, x)
        return self._begin(free, clamped, x, values)

    def _begin(self, free: _Problem, clamped: _Problem, x: Tensor, values: Tensor) -> Memory:
        weights = np.append(array(self.weights.detach().clamp(min=0.0)), self.strength)
        with _beside(x):
            return tuple(
                problem.consensus(array(given)).begin(weights)
                for problem, given in ((free, x), (clamped, values))
            )

    def _worlds(self, labels: Tensor, x: Tensor) -> tuple[_Problem, _Problem, Tensor]:
        """Return the free and the clamped minimisation, and all values that the latter fixes."""
        known = self._known(labels)
        given = np.zeros(self.hinges.n_variables, np.bool_)
        given[self.inputs] = True
        known[self.inputs] = array(x)
        examples = make_field_examples(
            self.hinges, known, surrogate=self.surrogate, strength=self.strength, given=given
        )
        both, values = self._fixed(known, x)
        free = _Problem(examples.hinges, self.inputs, self.tol, self.n_jobs)
        return free, _Problem(examples.hinges, both, self.tol, self.n_jobs), values

    def _fixed(self, known: Floats, x: Tensor) -> tuple[Ints, Tensor]:
        """Return which variables are inputs or have labels, and their values."""
        labelled = np.setdiff1d(np.flatnonzero(~np.isnan(known)), self.inputs)
        return np.concatenate([self.inputs, labelled]), torch.cat(
            [x, torch.from_numpy(known[labelled]).to(x)]
        )

    @torch.compiler.disable
    def energy(
        self,
        inputs: Tensor | None = None,
        weights: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> Tensor:
        """Return the least energy given the inputs, differentiable by inputs and weights."""
        x = self._checked(inputs)
        known = np.full(self.hinges.n_variables, np.nan) if labels is None else self._known(labels)
        fixed, values = self._fixed(self.hinges.check_values("labels", known, absent="hidden"), x)
        problem = _Problem(self.hinges, fixed, self.tol, self.n_jobs)
        return _least_energy(problem, self._weights(weights, x), values).to(x.dtype)

    @torch.compiler.disable
    def predict(self, inputs: Tensor | None = None, weights: Tensor | None = None) -> Tensor:
        """Return the best values (variables) given the inputs."""
        x = self._checked(inputs)
        problem = _Problem(self.hinges, self.inputs, self.tol, self.n_jobs)
        with _beside(x):
            found = problem.solve(array(self._weights(weights, x)), array(x))
        return tensor_like(found.y, x)

    def _known(self, labels: Tensor) -> Floats:
        """Return the labels as an array of its own."""
        check_given(labels=labels)
        known = array(labels).astype(np.float64)
        if known.shape != (self.hinges.n_variables,):
            raise ArgumentError(
                f"labels of shape {known.shape} were given for {self.hinges.n_variables} variables"
            )
        return known

    def _checked(self, inputs: Tensor | None) -> Tensor:
        """Return the values of the inputs, in single precision or better."""
        check_tensors(inputs=inputs)
        x = self.weights.new_zeros(0) if inputs is None else at_least_single(inputs)
        if x.shape != (len(self.inputs),) or not x.is_floating_point():
            raise ArgumentError(
                f"inputs of shape {tuple(x.shape)} and type {x.dtype} were given; "
                f"{len(self.inputs)} floating-point numbers are needed"
            )
        if not bool(((x >= 0.0) & (x <= 1.0)).all()):
            raise ArgumentError("inputs must be truth values in [0, 1]; apply a sigmoid first")
        return x

    def _weights(self, weights: Tensor | None, like: Tensor) -> Tensor:
        check_tensors(weights=weights)
        mine = self.weights if weights is None else weights
        if mine.shape != (self.hinges.n_groups,):
            raise ArgumentError(
                f"weights of shape {tuple(mine.shape)} were given for {self.hinges.n_groups} groups"
            )
        return mine.clamp(min=0.0).to(like.device, torch.double)
