"""Column files that the workers of a cluster read: each a part, of which it keeps an objective.

Vocabularies, attributes and pairs that are seen are learnt by all workers at once, and add up. Then
all have the same model, and its losses add up as well.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import ArgumentError, FormatError, PlaceError
from structlearn._src.common.place import current
from structlearn._src.estimators.structured import streaming
from structlearn._src.estimators.structured.base import ModelPlan
from structlearn._src.estimators.structured.maker import Maker
from structlearn._src.estimators.structured.read_sequences import ColumnReader, graph_data
from structlearn._src.places.remote_objective import Remote, RemoteObjective, Shard
from structlearn._src.text.attribute_counts import AttributeCounts
from structlearn._src.text.attributes import Attributes
from structlearn._src.text.columns import Columns
from structlearn._src.text.labels import LabelCoder
from structlearn._src.text.partitions import ColumnFiles, find_columns, grown
from structlearn._src.text.rows import Rows
from structlearn._src.text.strings import Strings
from structlearn._src.text.template import Template

#: Solvers that a cluster can use, by their names.
SOLVERS = (
    "auto", "lbfgs", "owlqn", "descent", "annealed", "sgd", "adagrad", "pegasos", "sdca",
    "frank-wolfe",
)  # fmt: skip


# ---- on a worker -------------------------------------------------------------------------


class Vocabularies(NamedTuple):
    """Strings of every column; those of several parts add up."""

    columns: tuple[Strings, ...]

    def __add__(self, other: Vocabularies) -> Vocabularies:  # type: ignore[override]
        if not self.columns or not other.columns:
            return self if self.columns else other
        if len(self.columns) != len(other.columns):
            raise FormatError(
                f"parts of the files have {len(self.columns)} and {len(other.columns)} columns; "
                f"every token needs the same columns"
            )
        both = zip(self.columns, other.columns, strict=True)
        return Vocabularies(tuple(grown(*pair)[0] for pair in both))


class FileShard(Shard):
    """A part of some files, and the objective of the sequences in it once the plan is known."""

    def __init__(self, files: ColumnFiles, sizes: tuple[int, ...], make: Maker) -> None:
        self.files = files
        self.sizes = sizes
        self.make = make
        self.plan: ModelPlan | None = None
        self.first = 0
        self.views = {}
        self.memories = {}

    @cached_property
    def columns(self) -> Columns | None:
        """All columns; none where there are more parts than pieces of text."""
        try:
            if self.files.sizes != self.sizes:
                raise PlaceError(
                    f"the files {', '.join(map(str, self.files.paths))} have other sizes there "
                    f"than here: give all workers the same files"
                )
            stored = find_columns(self.files)
        except OSError as error:
            raise PlaceError(
                f"a file cannot be read there ({error}): put it where all workers find it under "
                f"the same path"
            ) from None
        return None if stored is None else stored.part(0, len(stored.offsets) - 1)

    def numbered(self, vocabularies: tuple[Strings, ...]) -> Columns:
        """Return all columns, numbered by vocabularies of all parts."""
        assert self.columns is not None
        return self.columns.known_by(vocabularies)

    def features(self, attributes: Attributes, coder: LabelCoder) -> tuple[Rows, Ints]:
        """Return the attributes of every token, and the labels."""
        columns = self.columns
        assert columns is not None
        words = columns._replace(ids=columns.ids[:, :-1], vocabularies=columns.vocabularies[:-1])
        numbers = coder.transform([np.array(columns.vocabularies[-1].list(), object)])
        return attributes.transform(words).unigram, numbers[columns.ids[:, -1]]

    @cached_property
    def objective(self) -> Any:  # type: ignore[override]
        """The objective of all sequences here."""
        assert self.plan is not None
        assert isinstance(self.plan.reader, ColumnReader)
        assert isinstance(self.plan.coder, LabelCoder)
        assert self.columns is not None
        rows, labels = self.features(self.plan.reader.attributes, self.plan.coder)
        data = graph_data(streaming.without_bigrams(rows), self.columns.offsets)
        return self.make(self.plan, self.plan.lay_out(data, labels))


def _vocabularies(shard: FileShard, _: Any) -> tuple[Any, ...]:
    columns = shard.columns
    if columns is None:
        return Vocabularies(()), [0]
    return Vocabularies(columns.vocabularies), [len(columns.offsets) - 1]


def _attributes(
    shard: FileShard, shared: tuple[Template, tuple[Strings, ...]]
) -> tuple[AttributeCounts]:
    template, vocabularies = shared
    columns = shard.numbered(vocabularies)
    words = columns._replace(ids=columns.ids[:, :-1], vocabularies=vocabularies[:-1])
    made = Attributes.over(template, vocabularies[:-1])
    return (AttributeCounts.of(made, made.learn(words).unigram),)


def _seen(shard: FileShard, shared: tuple[Attributes, LabelCoder]) -> tuple[Any, ...]:
    """Return which attributes have which labels, and which labels follow each other."""
    attributes, coder = shared
    rows, labels = shard.features(attributes, coder)
    states = len(coder.names)
    seen = np.zeros((len(attributes.unigram), states), np.bool_)
    seen[rows.columns, np.repeat(labels, np.diff(rows.offsets))] = True
    steps = np.zeros((states, states), np.bool_)
    later = np.ones(len(labels), np.bool_)
    assert shard.columns is not None
    later[shard.columns.offsets[:-1]] = False
    after = np.flatnonzero(later)
    steps[labels[after - 1], labels[after]] = True
    return seen, steps


def _plan(shard: FileShard, shared: tuple[ModelPlan, list[int]]) -> tuple[Any, ...]:
    """Make the objective; parts are known by their numbers."""
    assert shard.files.share is not None
    shard.plan, firsts = shared
    shard.first = firsts[shard.files.share[0]]
    return (shard.objective.n_examples,)


# ---- here --------------------------------------------------------------------------------


def read(maker: Maker, files: ColumnFiles) -> tuple[ModelPlan, RemoteObjective]:
    """Let all workers read their parts; return the plan, and the objective of all of them."""
    estimator = maker.estimator
    known: dict[str, Any] = {}

    def shard(i: int) -> FileShard:
        made = FileShard(files.part(i, parts), sizes, maker)
        made.plan = known.get("plan")
        made.first = known["firsts"][i] if known else 0
        return made

    place: Any = current()
    sizes = files.sizes
    parts = len(place.workers())
    while True:
        kept = place.spread(shard, parts)
        vocabularies, counts = kept.ask(_vocabularies, None)
        if all(counts) or parts == 1:
            break
        parts -= 1  # there is too little text for as many
    if not sum(counts):
        raise FormatError(f"{files.paths[0]}: no token was found in any file")
    attributes = _learn_attributes(estimator, kept, vocabularies.columns)
    coder = LabelCoder().fit([np.array(vocabularies.columns[-1].list(), object)])
    seen, steps = kept.ask(_seen, (attributes, coder))
    reader = ColumnReader(attributes)
    plan, small = streaming.make_plan(estimator, reader, coder, seen, steps)
    firsts = np.cumsum([0, *counts]).tolist()
    known.update(plan=plan, firsts=firsts)
    kept.ask(_plan, (plan, firsts))
    origin = maker(plan, small)
    return plan, RemoteObjective(origin, Remote(kept, firsts[:-1]), size=sum(counts))


def _learn_attributes(estimator: Any, kept: Any, vocabularies: tuple[Strings, ...]) -> Attributes:
    """Add up the attributes of all parts, and leave out those that are too rare."""
    template = streaming.check_template(estimator, len(vocabularies) - 1)
    if Attributes.over(template, vocabularies[:-1]).unigram.staged:
        raise ArgumentError(
            "a line of the template names so many cells that the files cannot be read in parts by "
            "a cluster; name fewer cells, or read the files by read_columns"
        )
    (found,) = kept.ask(_attributes, (template, vocabularies))
    made: Attributes = found.attributes(template, vocabularies[:-1], estimator.min_count)
    if not len(made.unigram):
        raise ArgumentError(
            f"no attribute occurs at least min_count={estimator.min_count} times; lower it"
        )
    return made
