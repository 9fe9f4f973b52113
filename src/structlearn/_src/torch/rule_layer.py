"""Rules over what a network says: truth values of a predicate that come from a module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.fields.rule_model import RuleModel
from structlearn._src.torch.field_layer import FieldLoss


class RuleLoss(nn.Module):
    r"""Loss of a rule model in which a network gives the truth values of some predicates.

    The atoms of these *deep* predicates are targets of the model, like those that are to be found;
    here they are inputs. The loss says how much more energy the known truth of the other targets
    needs than the best of all values, and is differentiable by the inputs and by the weights of
    the rules, so that rules and network learn together (`FieldLoss` has the equation).

    Parameters
    ----------
    model
        The rules with their atoms: observed ones, targets, and the truth of some targets.
    deep
        Predicates whose values a network gives, by name; their atoms are targets of the model.
    surrogate, strength, tol, n_jobs
        As in `FieldLoss`.

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
    ) -> None:
        super().__init__()
        self.model = model
        self.deep = (deep,) if isinstance(deep, str) else tuple(deep)
        if not self.deep:
            raise ArgumentError("deep names no predicate; name those whose values a network gives")
        self._places = {name: model.tables.arguments(name)[0] for name in self._targets()}
        places = np.concatenate([self._find(name) for name in self.deep])
        self._labels = model.tables.labels()
        self._labels[places] = np.nan
        grounding = model.grounding_
        self._field = FieldLoss(
            grounding.hinges, inputs=places, weights=grounding.weights, surrogate=surrogate,
            strength=strength, tol=tol, n_jobs=n_jobs,
        )  # fmt: skip

    def _targets(self) -> list[str]:
        """Names of the predicates that have targets."""
        relations = self.model.tables.relations.values()
        return [relation.name for relation in relations if relation.n_free]

    @property
    def weights(self) -> Any:
        """The weights of the rules, a parameter."""
        return self._field.weights

    def atoms(self, predicate: str) -> list[tuple[Any, ...]]:
        """Return the arguments of a predicate's targets, in the order of their values."""
        self._find(predicate)
        return list(zip(*self.model.tables.arguments(predicate)[1], strict=True))

    def forward(
        self, values: torch.Tensor | Mapping[str, torch.Tensor], weights: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the loss for truth values in [0, 1] of the deep atoms.

        Parameters
        ----------
        values
            One for each deep atom, in the order of `atoms`; by predicate where there are several.
        weights
            (rules) In the place of those of the layer.
        """
        return self._field(torch.from_numpy(self._labels), self._inputs(values), weights)

    def predict(
        self, values: torch.Tensor | Mapping[str, torch.Tensor], predicate: str | None = None
    ) -> torch.Tensor | dict[str, torch.Tensor]:
        """Return the best values of the targets of a predicate, or of all that are not deep."""
        found = self._field.predict(self._inputs(values).detach())
        if predicate is not None:
            return found[torch.from_numpy(self._find(predicate))]
        deep = {self.model.tables.relation(name).name for name in self.deep}
        return {
            name: found[torch.from_numpy(places)]
            for name, places in self._places.items()
            if name not in deep
        }

    def write_weights(self) -> RuleModel:
        """Give the model the weights of the layer, and return it."""
        learnt = self.weights.detach().clamp(min=0.0).double().numpy()
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

    def _inputs(self, values: torch.Tensor | Mapping[str, torch.Tensor]) -> torch.Tensor:
        if isinstance(values, torch.Tensor):
            return values
        missing = [name for name in self.deep if name not in values]
        if missing:
            raise ArgumentError(f"values has none for the deep predicate {missing[0]!r}")
        return torch.cat([values[name] for name in self.deep])
