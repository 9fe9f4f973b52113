"""Estimators with chains of hidden states in files: their chains, with all paths and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import FormatError
from structlearn._src.estimators.bayesian import file_checks as expect
from structlearn._src.estimators.bayesian.infinite_hmm import InfiniteHMM
from structlearn._src.estimators.bayesian.max_margin_hmm import MaxMarginHMM
from structlearn._src.estimators.bayesian.partitions import (
    Parted,
    narrow,
    split,
    stack_chains,
    states_of,
    unstack_chains,
    widen,
)
from structlearn._src.estimators.bayesian.state_chain import StateChain
from structlearn._src.estimators.codec import Family, Kinds
from structlearn._src.sample.hdp import Process, count_transitions
from structlearn._src.sample.hmm import HmmInfo, HmmState
from structlearn._src.text.labels import LabelCoder

_LEARNT = (
    "n_features_in_", "centre_", "scale_", "coder_", "per_sequence_", "offsets_", "status_",
    "settings_",
)  # fmt: skip
_CLOSE = 1e-6  # how far sums of probabilities may be from 1

Shapes = list[list[tuple[int, ...]]]


def _others(model: StateChain) -> dict[str, Any]:
    return {
        "given_": model.data_signature_,  # its name in files
        "chains": stack_chains(model.chains_, HmmInfo),
        "states": _stack(states_of(model.chains_)),
    }


def _recall(model: StateChain, given: dict[str, Any]) -> None:
    """Refuse what would lead compiled code astray; set chains, draws and their summary."""
    fitted = expect.settings(model)
    expect.text("status_", model.status_)
    stack = given["states"]
    paths = widen("the states", stack["paths"])
    expect.offsets("sequences", model.offsets_, paths.numbers.shape[1])
    if not np.diff(model.offsets_).all():
        raise FormatError("some sequences are empty")
    model.data_signature_ = given["given_"]
    expect.given(model, model._data_signature())
    shapes = _shapes(fitted, stack["parameters"])
    states = _unstack(stack, paths, shapes)
    for state in states:
        _check_path(state, model.offsets_)
    model.chains_ = unstack_chains(given["chains"], HmmInfo, states)
    model._sum_up()


# ---- states ------------------------------------------------------------------------------


def _stack(states: Sequence[HmmState]) -> dict[str, Any]:
    processes = [state.process for state in states]
    parts = zip(*(state.parameters for state in states), strict=True)
    return {
        "paths": narrow([state.states for state in states]),
        "alpha": np.array([process.alpha for process in processes]),
        "gamma": np.array([process.gamma for process in processes]),
        "sticks": np.concatenate([process.sticks for process in processes]),
        "rows": np.concatenate([process.rows.ravel() for process in processes]),
        "parameters": [
            [np.concatenate(arrays) for arrays in zip(*part, strict=True)] for part in parts
        ],
    }


def _unstack(stack: dict[str, Any], paths: Parted, shapes: Shapes) -> list[HmmState]:
    processes = _processes(stack, paths)
    parts = [
        [
            split(expect.floats("the parameters", array, (paths.total, *shape)), paths.sizes)
            for array, shape in zip(arrays, own, strict=True)
        ]
        for arrays, own in zip(stack["parameters"], shapes, strict=True)
    ]
    return [
        HmmState(numbers, process, tuple(tuple(array[i] for array in arrays) for arrays in parts))
        for i, (numbers, process) in enumerate(zip(paths.numbers, processes, strict=True))
    ]


def _processes(stack: dict[str, Any], paths: Parted) -> list[Process]:
    n, wide = len(paths.sizes), [size + 1 for size in paths.sizes]
    alpha = expect.floats("the concentrations alpha", stack["alpha"], (n,), above=0.0)
    gamma = expect.floats("the concentrations gamma", stack["gamma"], (n,), above=0.0)
    squares = [size**2 for size in wide]
    sticks = split(_weights("the sticks", stack["sticks"], sum(wide)), wide)
    rows = split(_weights("the transitions", stack["rows"], sum(squares)), squares)
    return [
        Process(a, g, own, row.reshape(size, size))
        for a, g, own, row, size in zip(
            alpha.tolist(), gamma.tolist(), sticks, rows, wide, strict=True
        )
    ]


def _weights(what: str, given: Any, n: int) -> Floats:
    found = expect.floats(what, given, (n,))
    if (found < 0.0).any():
        raise FormatError(f"some of {what} are below 0")
    return found


# ---- does it fit together? ---------------------------------------------------------------


def _shapes(model: StateChain, parameters: Sequence[Sequence[NDArray[Any]]]) -> Shapes:
    """Return the shapes of what a state has, part by part."""
    if isinstance(model, InfiniteHMM) and model.emission == "categorical":
        if not isinstance(model.coder_, LabelCoder) or not len(model.coder_.names):
            raise FormatError("there are no symbols")
        return [[(len(model.coder_.names),)]]
    D, shapes = expect.scale(model), []
    model._prior()  # checks what depends on the number of features
    if not isinstance(model, MaxMarginHMM) or model.likelihood:
        shapes.append([(D,), (D, D if model.covariance == "full" else 1), ()])
        if not (parameters[0][1][:, :, 0] > 0.0).all():
            raise FormatError("the covariances of states are not positive definite")
    if isinstance(model, MaxMarginHMM):
        checks.boolean("per_sequence_", model.per_sequence_)
        shapes.append([(expect.classes(model), D + 1)])
    return shapes


def _check_path(state: HmmState, offsets: Ints) -> None:
    """Refuse transitions that do not sum to 1, and paths that they do not allow."""
    process = state.process
    sums = np.append(process.rows.sum(axis=1), process.sticks.sum())
    if (np.abs(sums - 1.0) > _CLOSE).any():
        raise FormatError("the probabilities of states do not sum to 1")
    taken = count_transitions(state.states, offsets, state.n_states) > 0
    if not process.rows[:, :-1][taken].all():
        raise FormatError("some path has a transition of probability 0")


KINDS = Kinds(
    Family("draws_", _LEARNT, _others, _recall),
    {"infinite-hmm": InfiniteHMM, "max-margin-hmm": MaxMarginHMM},
    {},
)
