"""What weights of hinge-loss fields are learnt from: a field, its labels and a surrogate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Bools, Floats, Ints, block_indices, offsets_of
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.memory import ArrayWriter, Store
from structlearn._src.common.names import SURROGATES
from structlearn._src.common.threads import split
from structlearn._src.field.hinges import HINGE, Hinges


@dataclass(frozen=True, eq=False)
class HingeExamples:
    """A field with its surrogate, and what is known about its variables and weights."""

    hinges: Hinges  #: forms, those of the surrogate last, in a group of their own
    weights: Floats  #: (groups) of all groups; those that are not learnt keep them
    learnt: Ints  #: groups whose weights are learnt, in ascending order
    labels: Floats  #: (variables) true values, NaN where a variable is hidden
    given: Bools  #: (variables) which have their true values in both worlds

    @property
    def hidden(self) -> Bools:
        """Which variables have no label."""
        return np.isnan(self.labels)

    def fill_in(self, weights: Floats) -> Floats:
        """Weights of all groups, the learnt ones being these."""
        whole = self.weights.copy()
        whole[self.learnt] = weights
        return whole

    def cut(self, n: int) -> list[HingeExamples]:
        """Cut the field into at most `n` parts that share no variable but given ones.

        Minimal energies and their hinges then add up. A connected field is one part.
        """
        component, sizes = self._components()
        ranges = split(offsets_of(sizes), n)
        return [self._part(component, first, last) for first, last in ranges]

    def _components(self) -> tuple[Ints, Ints]:
        """Which component every form belongs to, and how many entries each component has."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        h = self.hinges
        lengths = np.diff(h.offsets)
        forms = np.repeat(np.arange(h.n_forms), lengths)
        joined = ~self.given[h.variables]
        size = h.n_forms + h.n_variables
        ends = forms[joined], h.n_forms + h.variables[joined]
        links = coo_array((np.ones(len(ends[0]), np.int8), ends), (size, size))
        found = connected_components(links, directed=False)[1][: h.n_forms]
        component = np.unique(found, return_inverse=True)[1]
        return component, np.bincount(component, lengths).astype(np.int64)

    def _part(self, component: Ints, first: int, last: int) -> HingeExamples:
        forms = np.flatnonzero((component >= first) & (component < last))
        variables = np.unique(self.hinges.variables[block_indices(self.hinges.offsets, forms)])
        return replace(
            self,
            hinges=self.hinges.take(forms, variables),
            labels=self.labels[variables],
            given=self.given[variables],
        )


def make_field_examples(
    hinges: Hinges,
    labels: Any,
    *,
    weights: Any = None,
    learnt: Any = None,
    surrogate: str = "entropy",
    strength: float = 1.0,
    given: Any = None,
) -> HingeExamples:
    r"""Say what is known about a field, and add a surrogate for the entropy.

    A surrogate :math:`-h(y)` is made of hinges of a fixed weight, which both worlds have. Without
    one, weights of 0 are always optimal.

    ``"entropy"`` is :math:`y^2 + (1 - y)^2` of every variable, which draws them to one half.
    ``"loss"``, the choice of structured support vector machines, draws every labelled variable
    away from its label: :math:`-|y - \hat y|`, and where a label lies between 0 and 1 its convex
    envelope, which is linear. ``"none"`` makes the perceptron.

    `labels` (variables) are true values, NaN where a variable is hidden; `weights` (groups) those
    to begin with, 1 by default. `learnt` (groups) says which are learnt, by default those with
    hinges, and `given` (variables) which labelled variables are input: fixed in both worlds.

    References
    ----------
    S. Bach et al., "Paired-dual learning for fast training of latent variable hinge-loss MRFs",
    2015, section 3.1.
    """
    checks.one_of("surrogate", surrogate, SURROGATES)
    known = hinges.check_values("truth", labels, absent="hidden")
    ones = np.ones(hinges.n_groups) if weights is None else hinges.check_weights(weights)
    inputs = _mask("given", given, hinges.n_variables, False)
    bare = np.flatnonzero(inputs & np.isnan(known))
    if len(bare):
        raise ArgumentError(f"variable {bare[0]} is given, but has no label; give it one")
    if not (~np.isnan(known) & ~inputs).any():
        raise ArgumentError("no variable has a label to learn from; label some that are not given")
    return HingeExamples(
        _with_surrogate(hinges, known, inputs, surrogate),
        np.append(ones, checks.number("strength", strength, low=0.0)),
        np.flatnonzero(_mask("learnt", learnt, hinges.n_groups, True) & (hinges.sizes > 0)),
        known,
        inputs,
    )


# ---- surrogates --------------------------------------------------------------------------


def _with_surrogate(hinges: Hinges, labels: Floats, given: Bools, kind: str) -> Hinges:
    """Add the forms of a surrogate, each about one variable, in one more group."""
    if kind == "entropy":
        open_ = np.flatnonzero(~given)
        which = np.concatenate([open_, open_])
        power = 2
        up = np.repeat([True, False], len(open_))
        slopes = np.ones(len(which))
    else:
        pushed = (labels != 0.5) & ~np.isnan(labels) & ~given & (kind == "loss")
        which = np.flatnonzero(pushed)
        power = 1
        up = labels[which] > 0.5
        slopes = np.abs(2.0 * labels[which] - 1.0)
    return _append(hinges, which, np.where(up, slopes, -slopes), np.where(up, 0.0, slopes), power)


def _append(
    hinges: Hinges, variables: Ints, coefficients: Floats, constants: Floats, power: int
) -> Hinges:
    """Add hinges of one variable each as the last group."""
    n = len(variables)
    new = {
        "offsets": hinges.offsets[-1] + np.arange(1, n + 1),
        "variables": variables,
        "coefficients": coefficients,
        "constants": constants,
        "kinds": HINGE,
        "powers": power,
        "groups": hinges.n_groups,
    }
    parts = {name: np.broadcast_to(each, n) for name, each in new.items()}
    if hinges.store is not None:
        return _append_stored(hinges, hinges.store, parts)
    joined = {name: np.concatenate([getattr(hinges, name), new]) for name, new in parts.items()}
    return Hinges(**joined, n_variables=hinges.n_variables, n_groups=hinges.n_groups + 1)


def _append_stored(hinges: Hinges, store: Store, parts: dict[str, Any]) -> Hinges:
    """Do so where forms lie in a store; where there is nothing to add, their arrays stay."""
    arrays = {name: getattr(hinges, name) for name in parts}
    if len(parts["variables"]):
        for name, old in arrays.items():
            writer = ArrayWriter(store, old.dtype)
            piece = max(store.grain // old.itemsize, 1)
            for first in range(0, len(old), piece):
                writer.append(old[first : first + piece])
                store.release()
            writer.append(parts[name])
            arrays[name] = writer.finish()
    sizes = hinges.n_variables, hinges.n_groups + 1
    return Hinges.stored(store, arrays, *sizes)


def _mask(name: str, given: Any, size: int, default: bool) -> Bools:
    mask = np.full(size, default) if given is None else np.array(given)
    if mask.shape != (size,) or mask.dtype != np.bool_:
        raise ArgumentError(f"{name} must be a boolean array of shape ({size},)")
    return mask
