"""The objective of sequences with its examples on a card."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from structlearn._src.common.arrays import Floats
from structlearn._src.common.watch import heed_time
from structlearn._src.cuda import chain_loss
from structlearn._src.cuda.fused_chain import MOST_STATES, CardChains, CardFound
from structlearn._src.cuda.gather import CardTerm
from structlearn._src.graph.batch import Sequences
from structlearn._src.learn.objective import BOTH, Hints, ValueGradient
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.learn.world import Memory

#: Share of a value that single precision cannot tell: potentials are rounded to 6e-8, and a loss is
#: the difference of two numbers that are tens of times as large.
_ERROR = 1e-6


def objection(objective: Any) -> str:
    """Return why an objective stays with the host, or an empty string."""
    if type(objective) is not StructuredObjective:
        return "it is no objective of sequences"
    if not isinstance(objective.examples.structure, Sequences):
        return "its examples are graphs"
    if objective.examples.structure.states > MOST_STATES:
        return f"there are more than {MOST_STATES} states"
    if objective.cost is not None and objective.cost.whole:
        return "the cost is no sum over positions"
    return ""


@dataclass(frozen=True, eq=False)
class CardObjective(StructuredObjective):
    """Penalty plus C times the losses of sequences, whose worlds are solved on a card.

    Features, labels and tables stay there; weights come and gradients go. Potentials and marginals
    are in single precision, values of sequences are added in double precision.
    """

    device: str = field(default="cuda", kw_only=True)
    elsewhere: ClassVar[bool] = True

    @classmethod
    def of(cls, objective: StructuredObjective, device: str) -> CardObjective:
        """Return the same objective on a card."""
        given = {f.name: getattr(objective, f.name) for f in fields(objective)}
        return cls(**given, device=device)

    @property
    def hints(self) -> Hints:
        """What it suggests to solvers: gains below single precision are none."""
        return super().hints._replace(error=_ERROR)

    def compare(
        self,
        weights: Any,
        memory: Memory = None,
        sides: tuple[bool, bool] = BOTH,
        counts: Floats | None = None,
    ) -> tuple[Floats, Any, Memory]:
        """Free less clamped values of every sequence, with the gradient by the tables."""
        if sides[0]:
            heed_time()
            factors = self._factors if counts is None else self._up(counts)
            batch = self._batch(weights)
            given = batch, self.loss, self.cost, sides[1], factors
            found, wrong = chain_loss.settle(chain_loss.solve(*given), *given)
            if not wrong:
                memory = self.begin() if memory is None else memory
                return found.values.cpu().numpy(), found, memory
        return super().compare(weights, memory, sides, counts)  # which says what is wrong

    def pull(self, gradient: Any) -> Floats:
        """Gradient by the weights."""
        if not isinstance(gradient, CardFound):
            return super().pull(gradient)
        found: Floats = self._pull(gradient).cpu().double().numpy()
        return found

    def value_gradient(self, weights: Any, memory: Memory = None) -> Any:
        """Return the objective and its gradient, on the card where the weights are there."""
        if not isinstance(weights, Tensor):
            return super().value_gradient(weights, memory)
        heed_time()
        batch = self._batch(weights)
        given = batch, self.loss, self.cost, True, self._factors
        found = chain_loss.solve(*given)
        gradient = self._pull(found).double() + self.penalty.ridge * weights
        loss = self._exact_factors @ found.values + 0.5 * self.penalty.ridge * (weights @ weights)
        value, flagged = torch.stack([loss, found.flags.any().to(loss)]).tolist()
        if flagged:  # seldom: potentials are so far apart that products of matrices lose paths
            host = super().value_gradient(weights.cpu().numpy(), memory)
            return host._replace(gradient=torch.from_numpy(host.gradient).to(weights))
        return ValueGradient(value, gradient, self.begin() if memory is None else memory)  # type: ignore[arg-type]

    # ---- on the card -----------------------------------------------------------------------

    def _pull(self, found: CardFound) -> Tensor:
        """Return the gradient by the weights, which stays on the card."""
        parts = []
        for terms, table in zip(self._terms, (found.by_scores, found.by_edges), strict=False):
            rows = table.reshape(-1, terms[0].term.size)
            parts += [term.pull(rows) for term in terms]
        return torch.cat(parts)

    def _up(self, array: Any) -> Tensor:
        """Take numbers to the card in single precision."""
        return torch.from_numpy(np.asarray(array)).to(self.device, torch.float32)

    @cached_property
    def _factors(self) -> Tensor:
        return self._up(self.C * self.example_weights)

    @cached_property
    def _exact_factors(self) -> Tensor:
        return torch.from_numpy(self.C * self.example_weights).to(self.device)

    @cached_property
    def _terms(self) -> list[list[CardTerm]]:
        """The terms of positions and of edges."""
        groups = zip(self.model.groups, self.examples.inputs, strict=True)
        return [
            [CardTerm(term, x, self.device) for term, x in zip(terms, features, strict=True)]
            for terms, features in groups
        ]

    @cached_property
    def _shape(self) -> dict[str, Any]:
        """What does not change of the batch: labels, lengths, where sequences begin."""
        sequences = self._sequences
        lengths = np.diff(sequences.offsets)
        order = np.argsort(-lengths, kind="stable")
        given = {
            "labels": self.examples.labels, "lengths": lengths, "order": order,
            "bases": sequences.offsets[:-1],
        }  # fmt: skip
        up = {name: torch.from_numpy(np.asarray(x)).to(self.device) for name, x in given.items()}
        ends = None
        if sequences.forbidden is not None:
            ends = tuple(
                self._up(np.where(never, -np.inf, 0.0))
                for never in (sequences.forbidden.first, sequences.forbidden.last)
            )
        return {**up, "ends": ends, "longest": int(lengths.max())}

    @property
    def _sequences(self) -> Sequences:
        assert isinstance(self.examples.structure, Sequences)
        return self.examples.structure

    def _batch(self, weights: Floats | Tensor) -> CardChains:
        """Return the sequences with their potentials at some weights."""
        up = weights.float() if isinstance(weights, Tensor) else self._up(weights)
        tables = []
        for terms, blocks in zip(self._terms, self.model.blocks, strict=True):
            each = [term.push(up[block]) for term, block in zip(terms, blocks, strict=True)]
            tables.append(sum(each[1:], each[0]))
        sequences = self._sequences
        states = sequences.states
        scores = tables[0].expand(sequences.n_variables, states).contiguous()
        edges = tables[1] if len(tables) > 1 else scores.new_zeros(1, states**2)
        edges = edges.reshape(-1, states, states)
        if sequences.forbidden is not None:
            edges = edges + self._up(np.where(sequences.forbidden.pairs, -np.inf, 0.0))
        edges = edges[0] if len(edges) == 1 else edges
        return CardChains(scores, edges.contiguous(), **self._shape)
