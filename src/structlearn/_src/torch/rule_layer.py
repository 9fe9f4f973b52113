"""Rules over what a network says: truth values of a predicate that come from a module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.fields.rule_model import RuleModel
from structlearn._src.learn.world import Memory
from structlearn._src.torch.field_layer import FieldLoss
from structlearn._src.torch.table_worlds import array, check_given


class RuleLoss(nn.Module):
    r"""Loss of a rule model in which a network computes the truth values of some predicates.

    The atoms of these *deep* predicates are targets of the model and inputs of the layer. The loss
    is the energy of the known truth of the other targets minus the minimal energy (`FieldLoss` has
    the equation). It is differentiable with respect to the inputs and the weights of the rules, so
    rules and network are trained together.

    Parameters
    ----------
    model
        The rules with their atoms: observed ones, targets, and the truth of some targets. Atoms
        that are added to the model later have no effect on the layer.
    deep
        Names of the predicates whose values a network computes; their atoms are targets of the
        model.
    surrogate, strength, tol, n_jobs, steps
        As in `FieldLoss`; with `steps`, rules and network are trained by paired-dual learning.

    Attributes
    ----------
    weights
        Parameter, one number for each rule; those of hard rules have no meaning.

    References
    ----------
    C. Pryor et al., "NeuPSL: neural probabilistic soft logic", IJCAI 2023.

    Examples
    --------
    >>> import torch
    >>> from structlearn import RuleModel
    >>> model = RuleModel("1: Sees(A) -> Cat(A) ^2\n0.5: Cat(A) & Friend(A, B) -> Cat(B) ^2")
    >>> model = model.observe(Friend=[("a", "b")]).target(Sees=[("a",), ("b",)])
    >>> model = model.target(Cat=[("a",), ("b",)]).truth(Cat=[("a", 1.0), ("b", 1.0)])
    >>> layer = RuleLoss(model, "Sees")
    >>> layer.atoms("Sees")
    [('a',), ('b',)]
    >>> values = torch.tensor([0.9, 0.2], requires_grad=True)
    >>> layer(values).backward()
    >>> values.grad.shape
    torch.Size([2])
    """

    def __init__(
        self,
        model: RuleModel,
        deep: str | Sequence[str],
        *,
        surrogate: str = "loss",
        strength: float = 1.0,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        steps: int | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(model, RuleModel):
            raise ArgumentError(f"model must be a RuleModel; a {type(model).__name__} was given")
        self.model = model
        named = (deep,) if isinstance(deep, str) else tuple(deep)
        self.deep = tuple(model.tables.relation(name).name for name in named)
        if not self.deep:
            raise ArgumentError("deep names no predicate; name those whose values a network gives")
        if len(set(self.deep)) < len(self.deep):
            raise ArgumentError(f"deep names a predicate twice: {', '.join(named)}")
        # Kept here, as the model may be given more atoms later.
        relations = model.tables.relations.values()
        found = {r.name: model.tables.arguments(r.name) for r in relations if r.n_free}
        self._places = {name: places for name, (places, _) in found.items()}
        self._atoms = {name: list(zip(*atoms, strict=True)) for name, (_, atoms) in found.items()}
        places = np.concatenate([self._find(name) for name in self.deep])
        self._labels = model.tables.labels()
        self._labels[places] = np.nan
        grounding = model.grounding_
        self._field = FieldLoss(
            grounding.hinges, inputs=places, weights=grounding.weights, surrogate=surrogate,
            strength=strength, tol=tol, n_jobs=n_jobs, steps=steps,
        )  # fmt: skip

    @property
    def weights(self) -> Any:
        """The weights of the rules, a parameter."""
        return self._field.weights

    def atoms(self, predicate: str) -> list[tuple[Any, ...]]:
        """Return the arguments of a predicate's targets, in the order of their values.

        Parameters
        ----------
        predicate
            Name of the predicate.

        Returns
        -------
        list of tuples
            Arguments of every atom.

        Examples
        --------
        >>> import torch
        >>> from structlearn import RuleModel
        >>> rules = ["1: Sees(A) -> Cat(A) ^2", "1: !Cat(A) ^2"]
        >>> model = RuleModel(rules).target(Sees=[("a",), ("b",)])
        >>> model = model.target(Cat=[("a",), ("b",)]).truth(Cat=[("a", 1.0)])
        >>> RuleLoss(model, "Sees").atoms("Sees")
        [('a',), ('b',)]
        """
        self._find(predicate)
        return list(self._atoms[self.model.tables.relation(predicate).name])

    @torch.compiler.disable
    def forward(
        self,
        values: Tensor | Mapping[str, Tensor],
        weights: Tensor | None = None,
        memory: Memory = None,
    ) -> Tensor:
        """Return the loss for truth values in [0, 1] of the deep atoms.

        Parameters
        ----------
        values
            One for each deep atom, in the order of `atoms`. Of several predicates, a mapping from
            their names, or all in one tensor, in the order of `deep`.
        weights
            (rules) Weights, instead of those of the layer.
        memory
            Result of `begin`, for layers with `steps`: the state of ADMM, which is updated in
            place.

        Returns
        -------
        Tensor of shape ()
            The loss.

        Examples
        --------
        >>> import torch
        >>> from structlearn import RuleModel
        >>> rules = ["1: Sees(A) -> Cat(A) ^2", "1: !Cat(A) ^2"]
        >>> model = RuleModel(rules).target(Sees=[("a",), ("b",)])
        >>> model = model.target(Cat=[("a",), ("b",)]).truth(Cat=[("a", 1.0)])
        >>> layer = RuleLoss(model, "Sees", surrogate="none")
        >>> round(layer(torch.tensor([0.9, 0.2])).item(), 2)
        0.6
        """
        labels = torch.from_numpy(self._labels)
        return self._field(labels, self._inputs(values), weights, memory)

    def begin(self, values: Tensor | Mapping[str, Tensor] | None = None) -> Memory:
        """Return the memory of a layer with `steps` before the first call.

        Parameters
        ----------
        values
            Truth values of the deep atoms, as in the call; 0.5 by default.

        Returns
        -------
        tuple
            State of ADMM, which calls of the layer update in place.

        Examples
        --------
        >>> import torch
        >>> from structlearn import RuleModel
        >>> rules = ["1: Sees(A) -> Cat(A) ^2", "1: !Cat(A) ^2"]
        >>> model = RuleModel(rules).target(Sees=[("a",), ("b",)])
        >>> model = model.target(Cat=[("a",), ("b",)]).truth(Cat=[("a", 1.0)])
        >>> layer = RuleLoss(model, "Sees", steps=2)
        >>> memory = layer.begin()
        >>> layer(torch.tensor([0.9, 0.2]), memory=memory).shape
        torch.Size([])
        """
        inputs = None if values is None else self._inputs(values).detach()
        return self._field.begin(torch.from_numpy(self._labels), inputs)

    def predict(
        self, values: Tensor | Mapping[str, Tensor], predicate: str | None = None
    ) -> Tensor | dict[str, Tensor]:
        """Return the inferred values of the targets.

        Parameters
        ----------
        values
            Truth values of the deep atoms, as in the call.
        predicate
            Name of a predicate; by default all that are not deep.

        Returns
        -------
        Tensor of shape (atoms,) or dict
            Values in the order of `atoms`; without `predicate` a dictionary of them by predicate.

        Examples
        --------
        >>> import torch
        >>> from structlearn import RuleModel
        >>> rules = ["1: Sees(A) -> Cat(A) ^2", "1: !Cat(A) ^2"]
        >>> model = RuleModel(rules).target(Sees=[("a",), ("b",)])
        >>> model = model.target(Cat=[("a",), ("b",)]).truth(Cat=[("a", 1.0)])
        >>> RuleLoss(model, "Sees").predict(torch.tensor([0.9, 0.2]), "Cat").round(decimals=2)
        tensor([0.4500, 0.1000])
        """
        found = self._field.predict(self._inputs(values).detach())
        if predicate is not None:
            return found[torch.from_numpy(self._find(predicate))]
        return {
            name: found[torch.from_numpy(places)]
            for name, places in self._places.items()
            if name not in self.deep
        }

    def write_weights(self) -> RuleModel:
        """Set the weights of the model to those of the layer, and return the model.

        Returns
        -------
        RuleModel
            The model that the layer was made from.

        Examples
        --------
        >>> import torch
        >>> from structlearn import RuleModel
        >>> rules = ["1: Sees(A) -> Cat(A) ^2", "1: !Cat(A) ^2"]
        >>> model = RuleModel(rules).target(Sees=[("a",), ("b",)])
        >>> model = model.target(Cat=[("a",), ("b",)]).truth(Cat=[("a", 1.0)])
        >>> layer = RuleLoss(model, "Sees")
        >>> _ = layer.weights.data.mul_(2.0)
        >>> layer.write_weights().weights_
        array([2., 2.])
        """
        learnt = array(self.weights.detach().clamp(min=0.0))
        if learnt.shape != self.model.weights_.shape:
            raise ArgumentError(
                f"the model has {len(self.model.weights_)} rules now and the layer "
                f"{len(learnt)}: make the layer after changes of the rules"
            )
        self.model.weights_ = np.where(np.isinf(self.model.weights_), np.inf, learnt)
        return self.model

    def _find(self, predicate: str) -> Ints:
        """Return the numbers of a predicate's targets."""
        name = self.model.tables.relation(predicate).name
        if name not in self._places:
            raise ArgumentError(
                f"{name} has no targets; give its atoms by target(...), without values: targets "
                f"are of {', '.join(self._places)}"
            )
        return self._places[name]

    def _inputs(self, values: Tensor | Mapping[str, Tensor]) -> Tensor:
        """Return the values of all deep atoms in one tensor."""
        if not isinstance(values, Mapping):
            check_given(values=values)
            return values
        given = {self.model.tables.relation(name).name: part for name, part in values.items()}
        if set(given) != set(self.deep):
            raise ArgumentError(
                f"values has the predicates {', '.join(given)}; those of {', '.join(self.deep)} "
                f"are needed"
            )
        check_given(**given)
        for name, part in given.items():
            if tuple(part.shape) != self._places[name].shape:
                raise ArgumentError(
                    f"values of {name} have shape {tuple(part.shape)}; one for each of its "
                    f"{len(self._places[name])} atoms is needed"
                )
        return torch.cat([given[name] for name in self.deep])
