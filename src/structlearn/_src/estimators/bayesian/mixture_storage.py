"""Mixtures of classifiers in files: their chains, and what draws know of their components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from structlearn._src.estimators.bayesian import file_checks as expect
from structlearn._src.estimators.bayesian.infinite_svm import InfiniteSVM, MixtureClassifier
from structlearn._src.estimators.bayesian.partitions import (
    narrow,
    split,
    stack_chains,
    states_of,
    unstack_chains,
    widen,
)
from structlearn._src.estimators.codec import Family, Kinds, record
from structlearn._src.sample.mixture import MixtureDraw, MixtureInfo, MixtureState
from structlearn._src.sample.normal_wishart import NormalWishart

_LEARNT = (
    "n_features_in_", "feature_names_in_", "classes_", "centre_", "scale_", "prior_", "status_",
    "settings_",
)  # fmt: skip


def _others(model: MixtureClassifier) -> dict[str, Any]:
    return {
        "given_": model.data_signature_,  # its name in files
        "chains": stack_chains(model.chains_, MixtureInfo),
        "states": _stack(states_of(model.chains_)),
        "after": _joined([draw.after for draw in model.draws_]),
    }


def _recall(model: MixtureClassifier, given: dict[str, Any]) -> None:
    """Refuse what would lead compiled code astray; set chains and draws."""
    expect.settings(model)
    expect.text("status_", model.status_)
    D, L = expect.scale(model), expect.class_array(model.classes_)
    expect.wishart("the prior", model.prior_, (), D)
    states = _unstack(given["states"], (L, D + 1))
    model.data_signature_ = given["given_"]
    expect.given(model, model._data_signature(len(states[0].assigned)))
    model.chains_ = unstack_chains(given["chains"], MixtureInfo, states)
    model.draws_ = _draws(model._drawn(), given["after"], D)


def _stack(states: Sequence[MixtureState]) -> dict[str, Any]:
    return {
        "assigned": narrow([state.assigned for state in states]),
        "weights": np.concatenate([state.weights for state in states]),
        "concentration": np.array([state.concentration for state in states]),
    }


def _unstack(stack: dict[str, Any], shape: tuple[int, int]) -> list[MixtureState]:
    parted = widen("the components", stack["assigned"])
    weights = expect.floats("the weights", stack["weights"], (parted.total, *shape))
    n = len(parted.sizes)
    alpha = expect.floats("the concentrations", stack["concentration"], (n,), above=0.0)
    each = parted.numbers, split(weights, parted.sizes), alpha.tolist()
    return [MixtureState(*state) for state in zip(*each, strict=True)]


def _draws(states: Sequence[MixtureState], after: Any, width: int) -> list[MixtureDraw]:
    """Return draws: the sizes of their components follow from the rows that these have."""
    counts = [np.bincount(state.assigned) for state in states]
    sizes = [len(own) for own in counts]
    known = expect.wishart("the components", after, (sum(sizes),), width)
    return [
        MixtureDraw(own, part, state.weights, state.concentration)
        for own, part, state in zip(counts, _parts(known, sizes), states, strict=True)
    ]


def _joined(stacks: Sequence[NormalWishart]) -> NormalWishart:
    arrays = [(each.mean, each.strength, each.degrees, each.scale) for each in stacks]
    return NormalWishart(*(np.concatenate(column) for column in zip(*arrays, strict=True)))


def _parts(stack: NormalWishart, sizes: Sequence[int]) -> list[NormalWishart]:
    arrays = stack.mean, stack.strength, stack.degrees, stack.scale
    columns = (split(np.asarray(array), sizes) for array in arrays)
    return [NormalWishart(*part) for part in zip(*columns, strict=True)]


def mixture_kinds(estimators: Mapping[str, type]) -> Kinds:
    """Return the kinds of mixtures, whose classifiers may be those of another package."""
    family = Family("draws_", _LEARNT, _others, _recall)
    return Kinds(family, estimators, {"normal-wishart": record(NormalWishart)})


KINDS = mixture_kinds({"infinite-svm": InfiniteSVM})
