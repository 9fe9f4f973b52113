r"""Messages between pairs of variables on a device, colour by colour.

The update is that of `kernels.graph.message`, in the log domain and in double precision,

.. math:: n_{i f} = r B_i - \lambda_{f i}, \qquad
          \lambda_{f j}(x_j) = w_f \log \sum_{x_i} \exp \frac{\theta_f + n_{i f}}{w_f},

for all messages to the variables of one colour at once; no factor holds two of them. Messages,
tables and beliefs lie as in a wiring. A state that some message rules out has an infinite message;
beliefs then count how often, so that any one message can be taken out again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from structlearn._src.common.arrays import Floats, Ints, block_indices
from structlearn._src.cuda.forms import upload
from structlearn._src.cuda.slices import by_kernel
from structlearn._src.graph.wiring import Wiring

_NEAR = 75.0  # nats from 0 up to which exponentials of tables are safe, as in the messenger
_TIE = 1e-9  # relative: closer states share the maximum, as in kernels.graph.message
MOST_STATES = 64  # of a variable, at most, in a kernel: a table must fit into registers


class Colour(NamedTuple):
    """Variables of one colour, and the messages to them from pairs, variable by variable."""

    variables: Tensor  #: (variables)
    offsets: Tensor  #: (variables + 1) into the messages below
    owners: Tensor  #: (messages) the variable, by its place in `variables`
    messages: Tensor  #: (messages) where the message is
    backward: Tensor  #: (messages) where the factor's other message is
    senders: Tensor  #: (messages) the other variable
    tables: Tensor  #: (messages) where the factor's table is
    strides: Tensor  #: (messages, 2) step of the sender and of the receiver in the table
    weights: Tensor  #: (messages) temperature of the factor
    ratios: Tensor  #: (messages) weight over temperature of the sender
    most: int  #: messages of a variable

    def for_indices(self) -> Colour:
        """Return the same with whole numbers as wide as indices are."""
        parts: list[Any] = list(self)
        return Colour._make(
            part if isinstance(part, int) or part.is_floating_point() else part.long()
            for part in parts
        )


class PairPlan:
    """Where messages of a pairwise wiring go, by colour."""

    def __init__(
        self, wiring: Wiring, weights: Any, ratios: Any, colours: Ints, device: torch.device
    ) -> None:
        self.device = device
        self.states = int(wiring.cards.max(initial=1))
        self.even = bool((wiring.cards == self.states).all())  # all have as many states
        largest = max(int(wiring.table_offsets[-1]), int(wiring.message_offsets[-1]))
        # Half as wide where that is enough: numbers of places are much of what is read.
        self._whole: Any = np.int32 if largest < 2**31 else np.int64
        self.cards = self._upload(wiring.cards)
        self.starts = self._upload(wiring.belief_offsets[:-1])  # of beliefs
        self.graphs = self._upload(wiring.variable_graphs)
        self.n_graphs = wiring.n_graphs
        pairs = wiring.arities[wiring.slot_factors] == 2
        # The slots of a pair follow each other.
        first = wiring.scope_offsets[wiring.slot_factors]
        other = 2 * first + 1 - np.arange(len(wiring.scopes))
        common = pairs, other, weights, ratios
        self.colours = [
            self._colour(wiring, np.flatnonzero(colours == c), *common)
            for c in range(int(colours.max(initial=-1)) + 1)
        ]
        self._all_slots(wiring, pairs)
        used = np.flatnonzero(pairs)
        each = weights[wiring.slot_factors[used]]
        self.cold = bool((each == 0).all())  # whether all factors maximise
        self.mixed = bool(np.isinf(ratios[used]).any())  # whether some senders maximise over sums
        self.common = _common(each, ratios[used])
        self._least = float(each.min(initial=np.inf)) if len(each) else 0.0
        self._table_weights: Tensor | None = None
        if len(each) and self._least > 0.0 and (each != self._least).any():
            sizes = np.diff(wiring.table_offsets)
            positive = np.where(weights > 0, weights, 1.0)
            self._table_weights = upload(np.repeat(positive, sizes), device)

    def _colour(
        self, wiring: Wiring, variables: Ints, pairs: Any, other: Ints, weights: Any, ratios: Any
    ) -> Colour:
        slots = wiring.slots[block_indices(wiring.slot_offsets, variables)]
        owners = np.repeat(np.arange(len(variables)), np.diff(wiring.slot_offsets)[variables])
        kept = pairs[slots]
        slots = slots[kept]
        owners = owners[kept]
        counts = np.bincount(owners, minlength=len(variables))
        back = other[slots]
        factors = wiring.slot_factors[slots]
        arrays = (
            variables, np.concatenate([[0], np.cumsum(counts)]), owners,
            wiring.message_offsets[slots], wiring.message_offsets[back], wiring.scopes[back],
            wiring.table_offsets[factors],
            np.stack([wiring.strides[back], wiring.strides[slots]], axis=1),
            weights[factors], ratios[back],
        )  # fmt: skip
        tensors: list[Any] = [self._upload(a) for a in arrays]
        parts: tuple[Any, ...] = (*tensors, int(counts.max(initial=0)))
        return Colour._make(parts)

    def _upload(self, array: Any) -> Tensor:
        whole = array.dtype.kind in "iu"
        return upload(array.astype(self._whole) if whole else array, self.device)

    def prepare(self, potentials: Floats) -> PairTables:
        """Return the tables, and where that is safe their exponentials, which are quicker."""
        tables = upload(potentials, self.device)
        barring = bool(torch.isneginf(tables).any())
        weight = self._least
        far = float(tables.abs().max()) if len(tables) and not barring else torch.inf
        if not weight > 0.0 or far > _NEAR * weight:
            return PairTables(tables, None, barring)
        if self._table_weights is None:
            return PairTables(tables, torch.exp(tables / weight), barring)
        return PairTables(tables, torch.exp(tables / self._table_weights), barring)

    def _all_slots(self, wiring: Wiring, pairs: Any) -> None:
        """Entries of all messages, and the entry of the belief that each belongs to."""
        lengths = wiring.cards[wiring.scopes]
        starts = wiring.belief_offsets[wiring.scopes]
        offset = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        self.belief_of_entry = upload(np.repeat(starts, lengths) + offset, self.device)
        self.of_pairs = upload(np.repeat(pairs, lengths), self.device)
        self.n_beliefs = int(wiring.belief_offsets[-1])


def _common(weights: Floats, ratios: Floats) -> tuple[float, float] | None:
    """Return the one weight and ratio of all pairs, or none: they differ, or need 64 bits."""
    if len(weights) == 0:
        return (1.0, 1.0)
    weight, ratio = float(weights[0]), float(ratios[0])
    same = (weights == weight).all() and (ratios == ratio).all()
    exact = float(np.float32(weight)) == weight and float(np.float32(ratio)) == ratio
    return (weight, ratio) if same and exact else None


class PairTables(NamedTuple):
    """Log potentials of all factors, and their exponentials where messages may use them."""

    potentials: Tensor
    exponentials: Tensor | None
    barring: bool  #: whether anything is ruled out

    @property
    def linear(self) -> bool:
        """Whether there are exponentials."""
        return self.exponentials is not None

    @property
    def chosen(self) -> Tensor:
        """Return the exponentials, if there are any."""
        return self.potentials if self.exponentials is None else self.exponentials


class Beliefs(NamedTuple):
    """Sums of the finite messages to every state, and how many are infinite."""

    finite: Tensor
    barred: Tensor  #: int32


def combine(plan: PairPlan, messages: Tensor) -> tuple[Beliefs, Beliefs]:
    """Add up the messages of factors of one variable, and all of them."""
    single = _add_up(plan, messages, ~plan.of_pairs)
    pairs = _add_up(plan, messages, plan.of_pairs)
    return single, Beliefs(single.finite + pairs.finite, single.barred + pairs.barred)


def _add_up(plan: PairPlan, messages: Tensor, which: Tensor) -> Beliefs:
    out = torch.isneginf(messages)
    finite = messages.new_zeros(plan.n_beliefs)
    finite.index_add_(0, plan.belief_of_entry, torch.where(which & ~out, messages, 0.0))
    barred = torch.zeros(plan.n_beliefs, dtype=torch.int32, device=messages.device)
    barred.index_add_(0, plan.belief_of_entry, (which & out).to(torch.int32))
    return Beliefs(finite, barred)


def sweep(
    plan: PairPlan, tables: PairTables, messages: Tensor, single: Beliefs, beliefs: Beliefs,
    active: Tensor, damping: float,
) -> Tensor:  # fmt: skip
    """Update all messages once, colour by colour, in place; return the change at every variable.

    Only variables whose graph is `active` change.
    """
    change = messages.new_zeros(len(plan.cards))
    for colour in plan.colours:
        if len(colour.messages):
            update = _by_kernel if by_kernel(messages) and plan.states <= MOST_STATES else _plainly
            update(plan, colour, tables, messages, single, beliefs, active, damping, change)
    return change


def _by_kernel(*given: Any) -> None:
    from structlearn._src.cuda import pair_kernel

    pair_kernel.update(*given)


def _plainly(
    plan: PairPlan, colour: Colour, tables: PairTables, messages: Tensor, single: Beliefs,
    beliefs: Beliefs, active: Tensor, damping: float, change: Tensor,
) -> None:  # fmt: skip
    """Update the messages to the variables of one colour, all in the log domain."""
    c = colour.for_indices()
    states = torch.arange(plan.states, device=plan.device)
    receivers = c.variables[c.owners]
    sent = states < plan.cards[c.senders][:, None]
    received = states < plan.cards[receivers][:, None]
    outgoing = _outgoing(plan, c, messages, beliefs, sent, states)
    steps = c.strides[:, :, None] * states
    places = c.tables[:, None, None] + steps[:, 0, :, None] + steps[:, 1, None, :]
    inside = sent[:, :, None] & received[:, None, :]
    theta = torch.where(inside, tables.potentials[torch.where(inside, places, 0)], -torch.inf)
    theta = theta + outgoing[:, :, None]
    weights = c.weights[:, None]
    new = theta.amax(1)
    shift = torch.where(torch.isneginf(new), 0.0, new)
    warm = weights > 0
    scaled = (theta - shift[:, None]) / torch.where(warm, weights, 1.0)[:, None]
    soft = torch.where(warm, weights * scaled.exp().sum(1).log(), 0.0)
    new = torch.where(torch.isneginf(new), new, new + soft)
    top = new.amax(1, keepdim=True)
    possible = torch.isfinite(top)
    where = c.messages[:, None] + torch.where(received, states, 0)
    old = messages[where]
    value = new - torch.where(possible, top, 0.0)
    blend = torch.isfinite(old) & torch.isfinite(value)
    value = torch.where(blend, value + damping * (old - value), value)
    value = torch.where(possible & active[plan.graphs[receivers]][:, None], value, old)
    moved = _change(value, old, weights)
    moved = torch.where(possible, moved, torch.inf)  # what is impossible never rests
    moved = torch.where(received & active[plan.graphs[receivers]][:, None], moved, 0.0).amax(1)
    messages[where[received]] = value[received]
    change.scatter_reduce_(0, receivers, moved, "amax")
    _renew(plan, c, single, beliefs, value, received, receivers, states)


def _outgoing(
    plan: PairPlan, c: Colour, messages: Tensor, beliefs: Beliefs, sent: Tensor, states: Tensor
) -> Tensor:
    """What senders tell the factors."""
    at = plan.starts[c.senders][:, None] + torch.where(sent, states, 0)
    message = messages[c.backward[:, None] + torch.where(sent, states, 0)]
    out = torch.isneginf(message)
    finite = beliefs.finite[at]
    barred = beliefs.barred[at]
    ratios = c.ratios[:, None]
    mixed = torch.isinf(ratios)
    told = torch.where(mixed, 1.0, ratios) * finite - torch.where(out, 0.0, message)
    told = torch.where(barred > out, -torch.inf, told)
    full = torch.where((barred > 0) | ~sent, -torch.inf, finite)
    top = full.amax(1, keepdim=True)
    kept = (full >= top - _TIE * (1.0 + top.abs())) & ~out
    told = torch.where(mixed, torch.where(kept, -message, -torch.inf), told)
    return torch.where(sent, told, -torch.inf)


def _change(value: Tensor, old: Tensor, weights: Tensor) -> Tensor:
    """Distance of messages, as in `kernels.graph.message.update`."""
    warm = weights > 0
    safe = torch.where(warm, weights, 1.0)
    soft = ((value / safe).exp() - (old / safe).exp()).abs()
    cold = torch.where(value == old, 0.0, (value - old).abs().clamp(max=1e30))
    return torch.where(warm, soft, cold)


def _renew(
    plan: PairPlan, c: Colour, single: Beliefs, beliefs: Beliefs, value: Tensor, received: Tensor,
    receivers: Tensor, states: Tensor,
) -> None:  # fmt: skip
    """Add up the messages to the variables of one colour."""
    own = states < plan.cards[c.variables][:, None]
    all_of_them = (plan.starts[c.variables][:, None] + states)[own]
    at = (plan.starts[receivers][:, None] + states)[received]
    come = value[received]
    out = torch.isneginf(come)
    for to, base, new in (
        (beliefs.finite, single.finite, torch.where(out, 0.0, come)),
        (beliefs.barred, single.barred, out.to(torch.int32)),
    ):
        to[all_of_them] = base[all_of_them]
        to.index_add_(0, at, new)
