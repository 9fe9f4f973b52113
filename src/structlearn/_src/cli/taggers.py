"""What the commands around taggers share: column files in, labels out, how good they are."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from structlearn._src.common.errors import ArgumentError, FormatError, QueryError

if TYPE_CHECKING:
    from structlearn._src.common.arrays import Floats, Ints
    from structlearn._src.estimators.structured.sequence import SequenceLabeler
    from structlearn._src.metrics.chunks import ChunkScores
    from structlearn._src.text.columns import Columns
    from structlearn._src.text.template import Template

_BLOCK = 2**17  # tokens labelled at a time, so that memory does not grow with the file


class Text(NamedTuple):
    """A column file: its name, its bytes, and what they say."""

    name: str
    data: bytes
    columns: Columns


def add_text(parser: Any) -> None:
    """Add the file that `read_text` reads."""
    told = (
        "one token per line, a blank line after sentences; may be gzipped; by default, or for -, "
        "standard input"
    )
    parser.add_argument("file", metavar="FILE", nargs="?", type=Path, help=told)


def read_text(path: Path | None) -> Text:
    """Read a column file; None, and ``-``, stand for standard input."""
    from structlearn._src.common.paths import read_bytes
    from structlearn._src.text.columns import parse_columns

    if path is None or str(path) == "-":
        name = "standard input"
        data = sys.stdin.buffer.read()
    else:
        name = str(path)
        data = read_bytes(path)
    return Text(name, data, parse_columns(data, name))


# ---- columns -----------------------------------------------------------------------------


def counts(columns: Columns) -> str:
    """Say how large a file is."""
    return f"{len(columns.offsets) - 1:,} sentences, {len(columns.ends):,} tokens"


def without_last(columns: Columns) -> Columns:
    """Leave out the last column, which holds the labels."""
    return columns._replace(ids=columns.ids[:, :-1], vocabularies=columns.vocabularies[:-1])


def gold_labels(columns: Columns) -> list[Any]:
    """Return the labels in the last column, one array per sentence."""
    import numpy as np

    from structlearn._src.common.arrays import cut

    names = np.array(columns.vocabularies[-1].list(), object)
    return cut(names[columns.ids[:, -1]], columns.offsets)


def as_examples(columns: Columns) -> tuple[Columns, list[Any]]:
    """Return what a tagger reads, and the labels, of a file that has both."""
    return without_last(columns), gold_labels(columns)


def check_columns(text: Text, template: Template, labelled: bool) -> None:
    """Refuse a file that lacks a column that the template names, or the labels."""
    from structlearn._src.text.template import check_width

    width = text.columns.width
    if labelled and width < 2:
        raise FormatError(
            f"{text.name}: there is only one column, but the last column must hold the labels and "
            f"those before it what the template names; add the missing column"
        )
    try:
        check_width(template, width - labelled)
    except FormatError as error:
        hint = "; the last column, which holds the labels, does not count" if labelled else ""
        raise FormatError(f"{text.name}: {error}{hint}") from None


def blocks(columns: Columns) -> Iterator[Columns]:
    """Cut a file into runs of whole sentences."""
    from structlearn._src.common.threads import split

    offsets = columns.offsets
    for first, last in split(offsets, 1 + int(offsets[-1]) // _BLOCK):
        start, stop = offsets[first], offsets[last]
        yield columns._replace(
            ids=columns.ids[start:stop],
            offsets=offsets[first : last + 1] - start,
            ends=columns.ends[start:stop],
        )


# ---- taggers -----------------------------------------------------------------------------


class ColumnTagger:
    """A sequence labeler that was trained on columns."""

    def __init__(self, labeler: SequenceLabeler, name: str) -> None:
        from structlearn._src.estimators.structured.read_sequences import ColumnReader

        reader = labeler.plan_.reader
        if not isinstance(reader, ColumnReader):
            raise ArgumentError(
                f"{name}: the model was not trained on columns with a template, so that it cannot "
                f"label column files; use it from Python, or train one with 'structlearn train'"
            )
        self.labeler = labeler
        self.template = reader.attributes.template
        self.names: list[str] = labeler.classes_.tolist()
        self._numbers = {name: number for number, name in enumerate(self.names)}

    @classmethod
    def load(cls, path: Path, threads: int | None = None) -> ColumnTagger:
        """Read a model file; label with so many threads."""
        from structlearn._src.estimators.storage import load
        from structlearn._src.estimators.structured.sequence import SequenceLabeler

        labeler = load(path)
        if not isinstance(labeler, SequenceLabeler):
            raise ArgumentError(
                f"{path}: the model is a {type(labeler).__name__}, but labelling column files "
                f"needs a SequenceLabeler"
            )
        labeler.n_jobs = threads
        return cls(labeler, str(path))

    def numbers(self, sequences: Sequence[Any]) -> Ints:
        """Return the number of every label of many sequences, one after another."""
        import numpy as np

        flat = np.concatenate(sequences).tolist()
        try:
            return np.fromiter(map(self._numbers.__getitem__, flat), np.int64, len(flat))
        except KeyError:
            raise QueryError(
                "some sentence has no labelling at all that the model does not forbid; train a "
                "model that forbids less"
            ) from None

    def predict(self, columns: Columns) -> Ints:
        """Return the number of the label of every token."""
        return self.numbers([y for part in blocks(columns) for y in self.labeler.predict(part)])

    def marginals(self, columns: Columns) -> Floats:
        """Return the probability of every label of every token."""
        import numpy as np

        rows = (self.labeler.predict_marginals(part) for part in blocks(columns))
        return np.concatenate([row for part in rows for row in part])

    def k_best(self, columns: Columns, k: int) -> list[list[tuple[float, Any]]]:
        """Return scores and labels of the best labellings of every sentence."""
        return [best for part in blocks(columns) for best in self.labeler.decode(part, k)]


# ---- how good ----------------------------------------------------------------------------


class Scores(NamedTuple):
    """How good labels are, and whether they are those of chunks."""

    chunks: ChunkScores
    chunked: bool


def compare(gold: Columns, predicted: Ints, names: Sequence[str]) -> Scores:
    """Compare the last column of a file with labels given as numbers of `names`."""
    import numpy as np

    from structlearn._src.metrics.chunks import chunk_scores, has_chunks

    all_names = list(dict.fromkeys([*gold.vocabularies[-1].list(), *names]))
    number = {name: i for i, name in enumerate(all_names)}
    guessed = np.array([number[name] for name in names])[predicted]
    scores = chunk_scores(gold.ids[:, -1], guessed, gold.offsets, all_names)
    return Scores(scores, has_chunks(all_names))


def in_short(scores: Scores) -> str:
    """Return accuracy and F1 in a few words."""
    f1 = f", F1 {100 * scores.chunks.f1:.2f}" if scores.chunked else ""
    return f"accuracy {100 * scores.chunks.accuracy:.2f} %{f1}"


def in_full(scores: Scores) -> str:
    """Return what conlleval prints if these are labels of chunks, else the accuracy alone."""
    found = scores.chunks
    if scores.chunked:
        return found.report()
    return (
        f"processed {found.n_tokens} tokens; correct: {found.n_right}.\n"
        f"accuracy: {100 * found.accuracy:6.2f}%\n"
    )
