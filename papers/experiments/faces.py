"""The lower half of a face from the upper, through six hidden states.

References
----------
S. Bach et al., "Paired-dual learning for fast training of latent variable hinge-loss MRFs", 2015,
section 4, which lists its potentials in an appendix that we have not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from papers.arrays import Floats, Ints
from papers.base import Experiment, Settings, Units
from papers.data.faces import HALF, Faces, blocks
from papers.documents import PAIRED_DUAL
from papers.experiments import duals
from papers.experiments.duals import BASELINES, FINEST, LEARNERS, Course, Measure
from papers.inside import (
    HINGE,
    Consensus,
    FieldObjective,
    InferenceSettings,
    NonNegative,
    make_field_examples,
)
from papers.pictures import new_figure
from structlearn.fields import Hinges

_STATES = 6
_RIDGE = 0.01
_SHOWN = 5  # faces in the picture
_SMALL = 2  # pixels on a side that become one there
_LEVELS = 101  # shades tried for what a state stands for
_SPLITS = 5
_MEASURE = Measure("MSE", sign=-1.0, slack=20.0, axis="1200 to 1800")
_COURSE = Course(updates=200, warm_up=10)
_QUICK = Course(updates=20, warm_up=10, sizes=(0.3,), points=4)
_SETTINGS = InferenceSettings(tol=1e-4, step=1.0, relaxation=1.6)
_STEPS = 10_000  # of ADMM, at most, for a prediction


# ---- potentials --------------------------------------------------------------------------


class Block(NamedTuple):
    """Forms of one kind, with groups of their own."""

    variables: Ints  #: (images, forms, arity)
    coefficients: Any  #: the same for all of them, or an array
    constants: Any  #: the same, or (images, forms)
    groups: Ints  #: (forms)


@dataclass(frozen=True, eq=False)
class Field:
    """Hinges between inputs, states and outputs of some images; variables image by image.

    For every state and input, and every state and output, there are four squared hinges with
    weights of their own: high or low, one implies that the other is high or low. Neighbouring
    states prefer to agree, and every output has an average to learn.
    """

    inputs: Floats
    n_outputs: int

    @property
    def variables(self) -> Ints:
        """(images, outputs + states)."""
        n = len(self.inputs), self.n_outputs + _STATES
        return np.arange(n[0] * n[1]).reshape(n)

    @cached_property
    def parts(self) -> list[Block]:
        """All forms, in the order of their groups."""
        kinds = self._from_inputs(), self._to_outputs(), self._averages(), self._neighbours()
        found, first = [], 0
        for block in chain(*kinds):
            found.append(block._replace(groups=first + block.groups))
            first += int(block.groups.max()) + 1
        return found

    @cached_property
    def hinges(self) -> Hinges:
        """The field."""
        shapes = [block.variables.shape for block in self.parts]
        arities = np.concatenate([np.full(n * m, k) for n, m, k in shapes])
        total = len(arities)

        def spread(name: str, width: int) -> Any:
            wide = (
                np.broadcast_to(getattr(block, name), shape[: width + 1])
                for block, shape in zip(self.parts, shapes, strict=True)
            )
            return np.concatenate([array.ravel() for array in wide])

        return Hinges(
            np.append(0, np.cumsum(arities)),
            spread("variables", 2),
            spread("coefficients", 2),
            spread("constants", 1),
            np.full(total, HINGE),
            np.full(total, 2),
            spread("groups", 1),
            self.variables.size,
            int(self.parts[-1].groups.max()) + 1,
        )

    def labels(self, outputs: Floats) -> Floats:
        """True values of the outputs; the states are hidden."""
        known = np.full(self.variables.shape, np.nan)
        known[:, : self.n_outputs] = outputs
        return known.ravel()

    def _from_inputs(self) -> Iterator[Block]:
        n = self.inputs.shape[1]
        states = np.repeat(self.variables[:, self.n_outputs :], n, axis=1)[:, :, None]
        x = np.tile(self.inputs, (1, _STATES))
        for sign, constants in ((-1, x), (-1, 1 - x), (1, -x), (1, x - 1)):
            yield Block(states, sign, constants, np.arange(n * _STATES))

    def _to_outputs(self) -> Iterator[Block]:
        n, every = self.n_outputs, self.variables
        states = np.repeat(every[:, n:], n, axis=1)
        pairs = np.stack([states, np.tile(every[:, :n], (1, _STATES))], axis=2)
        for state, output, constant in ((1, -1, 0), (1, 1, -1), (-1, -1, 1), (-1, 1, 0)):
            yield Block(pairs, [state, output], constant, np.arange(n * _STATES))

    def _averages(self) -> Iterator[Block]:
        outputs = self.variables[:, : self.n_outputs, None]
        for sign, constant in ((-1, 1), (1, 0)):
            yield Block(outputs, sign, constant, np.arange(self.n_outputs))

    def _neighbours(self) -> Iterator[Block]:
        states = self.variables[:, self.n_outputs :]
        pairs = np.stack([states[:, :-1], states[:, 1:]], axis=2)
        both = np.concatenate([pairs, pairs[:, :, ::-1]], axis=1)
        yield Block(both, [1, -1], 0, np.tile(np.arange(_STATES - 1), 2))


# ---- learning ----------------------------------------------------------------------------


def start(faces: Faces, field_: Field, rng: np.random.Generator) -> Floats:
    """Weights to begin with: states are the main directions of the upper halves.

    States that begin alike would stay so.
    """
    weights = np.full(field_.hinges.n_groups, 0.01)
    raw = blocks(faces.train[:, :HALF], faces.size_in)
    directions = np.linalg.svd(raw - raw.mean(axis=0))[2][:_STATES]
    directions /= np.abs(directions).max(axis=1, keepdims=True)
    up, down = (
        np.hstack([np.maximum(d, 0.0), np.zeros_like(d)]) for d in (directions, -directions)
    )
    signs = (up, down, up, down)
    for i, block in enumerate(field_.parts):
        if i < 4:
            weights[block.groups] = 1.5 * signs[i].ravel()
        elif i < 8:
            weights[block.groups] = rng.uniform(0.0, 0.3, len(block.groups))
        elif i < 10:
            weights[block.groups] = 1.0
    return weights


class Completer:
    """Completes the faces of the test by some weights, and measures the error."""

    def __init__(self, faces: Faces) -> None:
        self.faces = faces
        self.field = Field(faces.inputs(faces.test), faces.outputs(faces.test).shape[1])
        labels = self.field.labels(faces.outputs(faces.test))
        self.examples = make_field_examples(self.field.hinges, labels)
        self.world = Consensus(
            self.examples.hinges, step=_SETTINGS.step, relaxation=_SETTINGS.relaxation
        )
        self.state = self.world.begin(self.examples.weights)

    def halves(self, weights: Floats) -> Floats:
        """Lower halves."""
        tol = _SETTINGS.tol * np.sqrt(len(self.examples.hinges.variables))
        self.world.run(self.examples.fill_in(weights), self.state, _STEPS, tol)
        found = self.state.consensus.reshape(self.field.variables.shape)
        return self.faces.complete(found[:, : self.field.n_outputs])

    def __call__(self, weights: Floats) -> float:
        """Mean squared error."""
        return self.faces.error(self.halves(weights))


def objective_of(faces: Faces, rng: np.random.Generator) -> FieldObjective:
    """Return the objective of learning; the surrogate is that of the paper, and stays in tests."""
    outputs = faces.outputs(faces.train)
    made = Field(faces.inputs(faces.train), outputs.shape[1])
    known = make_field_examples(made.hinges, made.labels(outputs), weights=start(faces, made, rng))
    return FieldObjective(known, 1.0, NonNegative(strength=_RIDGE), _SETTINGS)


# ---- what states stand for ---------------------------------------------------------------


def archetypes(field_: Field, weights: Floats) -> Floats:
    """(states, outputs) The best outputs where one state is on and all others are off.

    Given the states, outputs no longer depend on each other, so a fine grid finds each.
    """
    values = np.linspace(0.0, 1.0, _LEVELS)
    near = [weights[block.groups].reshape(-1, field_.n_outputs) for block in field_.parts[4:10]]
    found = []
    for on in np.eye(_STATES):
        z = on[:, None, None]
        hinges = (z - values, z + values - 1.0, 1.0 - z - values, values - z)
        energy = sum(
            np.einsum(
                "kj,kjv->jv", w, np.broadcast_to(np.maximum(h, 0.0) ** 2, (*w.shape, _LEVELS))
            )
            for w, h in zip(near[:4], hinges, strict=True)
        )
        energy = energy + near[4].T * (1.0 - values) ** 2 + near[5].T * values**2
        found.append(values[np.argmin(energy, axis=1)])
    return np.array(found)


# ---- the experiment ----------------------------------------------------------------------


def units(settings: Settings) -> list[dict[str, Any]]:
    """Return one unit for each split and learner."""
    return [
        {"fold": split, "learner": learner, "seed": settings.seed, "quick": settings.quick}
        for split in range(settings.count(_SPLITS, 1))
        for learner in (*LEARNERS, BASELINES)
    ]


def work(fold: int, learner: str, seed: int, quick: bool) -> dict[str, Any]:
    """Learn to complete the faces of one split."""
    faces = Faces.olivetti([seed, fold], **({"size_in": 16, "size_out": 8} if quick else {}))
    if learner == BASELINES:
        return {"scores": faces.baselines()}
    completer = Completer(faces)
    objective = objective_of(faces, np.random.default_rng([seed, fold]))
    course = _QUICK if quick else _COURSE
    path = course.learn(learner, objective)
    found = path.curve(objective, completer, course.points)
    if fold == 0 and learner == FINEST:
        found |= _shown(completer, path.weights[-1])
    return found


def _shown(completer: Completer, weights: Floats) -> dict[str, Any]:
    """Some completed faces in small, whole columns above each other, and all states."""
    faces = completer.faces
    halves = completer.halves(weights)
    which = np.arange(0, len(halves), len(halves) // _SHOWN)[:_SHOWN]
    whole = np.concatenate([faces.test[:, :HALF], halves], axis=1)[which]
    shades = [255.0 * blocks(images, _SMALL) for images in (faces.test[which], whole)]
    small = [each.astype(int) for each in shades]
    states = archetypes(completer.field, completer.examples.fill_in(weights))
    return {"true": small[0], "completed": small[1], "states": states}


def draw_faces(done: Units) -> Any:
    """Draw true faces above completed ones."""
    found = next(duals.of_learner(done, FINEST)).found
    rows = [np.reshape(found[key], (_SHOWN, 64 // _SMALL, -1)) for key in ("true", "completed")]
    axes = new_figure(8.0, 2.6).subplots()
    axes.imshow(np.vstack([np.hstack(list(images)) for images in rows]), cmap="gray")
    axes.set_axis_off()
    return axes.figure


def draw_states(done: Units) -> Any:
    """Draw the lower half of a face that every hidden state stands for."""
    states = np.array(next(duals.of_learner(done, FINEST)).found["states"])
    side = round(np.sqrt(states.shape[1] / 2))  # lower halves are twice as wide as high
    figure = new_figure(9.0, 1.4)
    for k, (axes, state) in enumerate(zip(figure.subplots(1, _STATES), states, strict=True)):
        axes.imshow(state.reshape(side, 2 * side), cmap="gray", vmin=0.0, vmax=1.0)
        axes.set(title=f"state {k + 1}", xticks=[], yticks=[])
    return figure


EXPERIMENTS = (
    Experiment(
        "faces",
        PAIRED_DUAL,
        "figure 1, row 3",
        "How many steps of ADMM does it take to learn six hidden states that complete faces?",
        LEARNERS,
        units,
        work,
        partial(duals.report, measure=_MEASURE),
        {
            "curves": partial(duals.draw, measure=_MEASURE.name),
            "faces": draw_faces,
            "states": draw_states,
        },
        (
            *duals.READINGS,
            f"{_COURSE.updates} steps after 10 evaluations without; inference to 1e-4, with "
            "relaxation 1.6. The surrogate is that of the entropy, and stays in tests.",
            "The field knows blocks of pixels: means over 4 by 4 of both halves, those of the "
            "upper stretched and rounded; details within blocks are those of the mean face. The "
            "paper has potentials for all pixels, which it lists in an appendix that we have not "
            "seen.",
            f"{_SPLITS} splits; the paper has one.",
        ),
        ("olivetti",),
        version=2,
    ),
)
