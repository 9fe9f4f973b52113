"""Infinite models in files: their chains, with all that draws know of states or components."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints, cut, offsets_of
from structlearn._src.common.errors import FormatError
from structlearn._src.estimators.bayesian.infinite_hmm import InfiniteHMM, StateChain
from structlearn._src.estimators.bayesian.infinite_svm import MixtureClassifier
from structlearn._src.estimators.bayesian.max_margin_hmm import MaxMarginHMM
from structlearn._src.estimators.storage import Family
from structlearn._src.files import file_checks
from structlearn._src.files.codec import Codec
from structlearn._src.sample.hdp import Process, count_transitions
from structlearn._src.sample.hmm import HmmInfo, HmmState
from structlearn._src.sample.mixture import MixtureDraw, MixtureInfo, MixtureState
from structlearn._src.sample.priors import NormalWishart
from structlearn._src.sample.runner import MarkovChain

_HERE = "structlearn._src.estimators.bayesian"
_CLOSE = 1e-6  # how far sums of probabilities may be from 1, by rounding
GAUSSIANS = {"normal-wishart": Codec("structlearn._src.sample.priors:NormalWishart")}
_LEARNT = (
    "n_features_in_", "feature_names_in_", "classes_", "centre_", "scale_", "prior_", "coder_",
    "per_sequence_", "offsets_", "status_", "settings_", "data_signature_",
)  # fmt: skip

Shapes = list[list[tuple[int, ...]]]

# ---- chains: the states of all sweeps that were kept lie in few arrays -------------------


def pack_partitions(partitions: Sequence[Ints]) -> NDArray[Any]:
    """Return partitions of the same things as one array of the smallest whole numbers."""
    stack = np.stack(partitions)
    return stack.astype(np.min_scalar_type(int(stack.max())))


def unpack_partitions(what: str, given: Any) -> tuple[Ints, list[int]]:
    """Return partitions, each of whose groups must have a member, and how many groups each has."""
    if not isinstance(given, np.ndarray) or given.dtype.kind != "u" or given.ndim != 2:
        raise FormatError(f"{what} must be whole numbers (draws, positions)")
    if 0 in given.shape or given.max() >= given.shape[1]:
        raise FormatError(f"{what} are out of range")
    numbers = given.astype(np.int64)
    counts = [np.bincount(row) for row in numbers]
    if not all(each.all() for each in counts):
        raise FormatError(f"some of {what} never occur")
    return numbers, [len(each) for each in counts]


def unpack_floats(
    what: str,
    given: Any,
    sizes: Sequence[int],
    shape: tuple[int, ...] = (),
    *,
    least: float = -np.inf,
) -> list[Floats]:
    """Return pieces that lie in one array one after another: each a size, then the same shape."""
    stack = file_checks.floats(what, given, (sum(sizes), *shape), least=least)
    return cut(stack, offsets_of(sizes))


def unpack_concentrations(what: str, given: Any, n: int) -> list[float]:
    """Return one concentration for each of so many states of chains."""
    return file_checks.floats(f"the concentrations {what}", given, (n,), above=0.0).tolist()


def states_of(chains: Sequence[MarkovChain[Any]]) -> list[Any]:
    """Return all draws of all chains, each chain followed by the state that it is in."""
    return [state for chain in chains for state in (*chain.draws, chain.state)]


def pack_chains(chains: Sequence[MarkovChain[Any]], info: Any) -> dict[str, Any]:
    """Return what is to be kept of chains apart from their states."""
    told = [record for chain in chains for record in chain.trace]
    return {
        "n_draws": [len(chain.draws) for chain in chains],
        "n_sweeps": [chain.sweeps for chain in chains],
        "streams": [chain.rng.bit_generator.state for chain in chains],
        "trace": {name: np.array([getattr(each, name) for each in told]) for name in info._fields},
    }


def unpack_chains(given: dict[str, Any], info: Any, states: list[Any]) -> list[MarkovChain[Any]]:
    """Return chains from what was kept of them, and from their states."""
    columns = [given["trace"][name] for name in info._fields]
    if any(column.ndim != 1 or column.dtype.kind not in "fi" for column in columns):
        raise FormatError("what sweeps told must be numbers")
    told = [info(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    own = _by_chain("states", [n + 1 for n in given["n_draws"]], states)
    traces = _by_chain("sweeps", given["n_sweeps"], told)
    chains = []
    for (*draws, last), trace, stream in zip(own, traces, given["streams"], strict=True):
        rng = np.random.default_rng(0)
        rng.bit_generator.state = stream
        chains.append(MarkovChain(last, rng, trace, draws))
    return chains


def _by_chain(what: str, sizes: Any, items: list[Any]) -> list[list[Any]]:
    """Return the items of every chain, of which all together must have them all."""
    offsets = offsets_of(checks.integer(f"number of {what}", n) for n in sizes)
    if len(offsets) < 2 or offsets[-1] != len(items):
        raise FormatError(f"there are not as many {what} as chains have")
    return cut(items, offsets)


# ---- what an estimator must be like ------------------------------------------------------


def check_settings(model: Any) -> Any:
    """Return an estimator with the parameters of its fit; these must be valid, and so those now."""
    if not isinstance(model.settings_, dict) or model.settings_.keys() != model._settings().keys():
        raise FormatError("the parameters of the fit do not fit")
    if not isinstance(getattr(model, "status_", ""), str):
        raise FormatError("status_ must be a text")
    model._check()
    fitted = model._with_fitted_params()
    fitted._check()
    return fitted


def check_same_data(model: Any, signature: dict[str, Any]) -> None:
    """Refuse chains that claim to belong to data of another form than they have themselves."""
    if model.data_signature_ | signature != model.data_signature_:
        raise FormatError("the chains belong to other data")


def check_scale(model: Any) -> int:
    """Return the number of features of a model, whose means and deviations must fit to it."""
    D = len(model.centre_)
    file_checks.floats("the means of features", model.centre_, (D,))
    file_checks.floats("the deviations of features", model.scale_, (D,), above=0.0)
    if checks.integer("n_features_in_", getattr(model, "n_features_in_", D), low=1) != D:
        raise FormatError("there are not as many features as their means")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and (names.shape != (D,) or not all(isinstance(n, str) for n in names)):
        raise FormatError("the names of features do not fit")
    return D


def check_names(what: str, names: Any, least: int = 2) -> int:
    """Return how many classes or symbols there are, which must be so many at least."""
    if not isinstance(names, np.ndarray) or names.ndim != 1 or len(names) < least:
        raise FormatError(f"there must be {least} {what} or more")
    return len(names)


def check_wishart(what: str, given: Any, stack: tuple[int, ...], width: int) -> NormalWishart:
    """Return distributions of Gaussians, with scale matrices that are positive definite."""
    if not isinstance(given, NormalWishart):
        raise FormatError(f"{what} must be distributions of Gaussians")
    mean, strength, degrees, scale = _arrays(given)
    file_checks.floats(f"the means of {what}", mean, (*stack, width))
    file_checks.floats(f"the strength of {what}", strength, stack, above=0.0)
    file_checks.floats(f"the degrees of {what}", degrees, stack, above=width - 1.0)
    file_checks.floats(f"the scales of {what}", scale, (*stack, width, width))
    np.linalg.cholesky(scale)
    return given


def _arrays(stack: NormalWishart) -> list[Floats]:
    return [np.asarray(getattr(stack, field.name)) for field in fields(stack)]


# ---- chains of states --------------------------------------------------------------------


def _chain_state(model: StateChain) -> dict[str, Any]:
    states = states_of(model.chains_)
    processes = zip(*(state.process for state in states), strict=True)
    parts = zip(*(state.parameters for state in states), strict=True)
    return {
        "chains": pack_chains(model.chains_, HmmInfo),
        "states": {
            "paths": pack_partitions([state.states for state in states]),
            **{
                name: np.concatenate([*map(np.ravel, values)])
                for name, values in zip(Process._fields, processes, strict=True)
            },
            "parameters": [
                [np.concatenate(arrays) for arrays in zip(*part, strict=True)] for part in parts
            ],
        },
    }


def _restore_chains(model: StateChain, given: dict[str, Any]) -> None:
    """Refuse what would lead compiled code astray; set chains, draws and their summary."""
    fitted = check_settings(model)
    stack = given["states"]
    paths, sizes = unpack_partitions("the states", stack["paths"])
    file_checks.offsets("sequences", model.offsets_, paths.shape[1])
    if not np.diff(model.offsets_).all():
        raise FormatError("some sequences are empty")
    check_same_data(model, model._data_signature())
    shapes = _shapes(fitted, stack["parameters"])
    parts = _parts(stack["parameters"], sizes, shapes)
    states = [*map(HmmState, paths, _processes(stack, sizes), parts)]
    for state in states:
        _check_path(state, model.offsets_)
    model.chains_ = unpack_chains(given["chains"], HmmInfo, states)
    model._sum_up()


def _parts(parameters: Sequence[Any], sizes: list[int], shapes: Shapes) -> Iterator[Any]:
    """Yield the parameters of every state of chains, emission by emission."""
    parts = []
    for arrays, own in zip(parameters, shapes, strict=True):
        pairs = zip(arrays, own, strict=True)
        columns = [unpack_floats("the parameters", a, sizes, shape) for a, shape in pairs]
        parts.append(zip(*columns, strict=True))
    return zip(*parts, strict=True)


def _processes(stack: dict[str, Any], sizes: list[int]) -> Iterator[Process]:
    alpha = unpack_concentrations("alpha", stack["alpha"], len(sizes))
    gamma = unpack_concentrations("gamma", stack["gamma"], len(sizes))
    wide = [size + 1 for size in sizes]  # one more for all states that are not there
    sticks = unpack_floats("the sticks", stack["sticks"], wide, least=0.0)
    rows = unpack_floats("the transitions", stack["rows"], [n * n for n in wide], least=0.0)
    squares = [own.reshape(n, n) for own, n in zip(rows, wide, strict=True)]
    return map(Process, alpha, gamma, sticks, squares)


def _shapes(model: StateChain, parameters: Sequence[Any]) -> Shapes:
    """Return the shapes of what a state has, part by part."""
    if isinstance(model, InfiniteHMM) and model.emission == "categorical":
        return [[(check_names("symbols", model.coder_.names, 1),)]]
    D = check_scale(model)
    shapes: Shapes = []
    model._prior()  # checks what depends on the number of features
    if not isinstance(model, MaxMarginHMM) or model.likelihood:
        shapes.append([(D,), (D, D if model.covariance == "full" else 1), ()])
        if not (parameters[0][1][:, :, 0] > 0.0).all():
            raise FormatError("the covariances of states are not positive definite")
    if isinstance(model, MaxMarginHMM):
        checks.boolean("per_sequence_", model.per_sequence_)
        shapes.append([(check_names("classes", model.coder_.names), D + 1)])
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


# ---- mixtures ----------------------------------------------------------------------------


def _mixture_state(model: MixtureClassifier) -> dict[str, Any]:
    states = states_of(model.chains_)
    known = [_arrays(draw.after) for draw in model.draws_]
    return {
        "chains": pack_chains(model.chains_, MixtureInfo),
        "states": {
            "assigned": pack_partitions([state.assigned for state in states]),
            "weights": np.concatenate([state.weights for state in states]),
            "concentration": np.array([state.concentration for state in states]),
        },
        "after": NormalWishart(*map(np.concatenate, zip(*known, strict=True))),
    }


def _restore_mixture(model: MixtureClassifier, given: dict[str, Any]) -> None:
    """Refuse what would lead compiled code astray; set chains and draws."""
    check_settings(model)
    D = check_scale(model)
    L = check_names("classes", model.classes_)
    check_wishart("the prior", model.prior_, (), D)
    stack = given["states"]
    assigned, sizes = unpack_partitions("the components", stack["assigned"])
    weights = unpack_floats("the weights", stack["weights"], sizes, (L, D + 1))
    alpha = unpack_concentrations("alpha", stack["concentration"], len(sizes))
    states = [*map(MixtureState.of, assigned, weights, alpha)]
    check_same_data(model, model._data_signature(assigned.shape[1]))
    model.chains_ = unpack_chains(given["chains"], MixtureInfo, states)
    model.draws_ = _draws(model._drawn(), given["after"], D)


def _draws(states: Sequence[MixtureState], after: Any, width: int) -> list[MixtureDraw]:
    """Return draws: the sizes of their components follow from the rows that these have."""
    counts = [np.bincount(state.assigned) for state in states]
    sizes = [len(own) for own in counts]
    known = _arrays(check_wishart("the components", after, (sum(sizes),), width))
    columns = [unpack_floats("them", array, sizes, array.shape[1:]) for array in known]
    return [
        MixtureDraw(own, NormalWishart(*part), state.weights, state.concentration)
        for own, part, state in zip(counts, zip(*columns, strict=True), states, strict=True)
    ]


_chains = partial(
    Family, fitted_attribute="draws_", learnt=_LEARNT, renamed={"data_signature_": "given_"}
)
#: Families of mixtures of classifiers, by paths of their classes.
mixture_family = partial(
    _chains, restore=_restore_mixture, extra_state=_mixture_state, records=GAUSSIANS
)
FAMILIES = (
    _chains(
        {
            "infinite-hmm": f"{_HERE}.infinite_hmm:InfiniteHMM",
            "max-margin-hmm": f"{_HERE}.max_margin_hmm:MaxMarginHMM",
        },
        restore=_restore_chains,
        extra_state=_chain_state,
    ),
    mixture_family({"infinite-svm": f"{_HERE}.infinite_svm:InfiniteSVM"}, absent={"n_moves": 0}),
)
