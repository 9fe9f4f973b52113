"""UAI files of models.

The text format of the UAI inference competitions [1]_: the word MARKOV or BAYES, the number of
variables, their numbers of states, the number of factors, one scope per factor, then one table
per factor: its size and its entries, the last variable of the scope fastest. Files hold plain
potentials, graphs hold their logarithms. Lines that start with ``c`` or ``#`` are comments.
Any file may be gzipped. Evidence and query variables are in `structlearn._src.files.uai_evidence`,
the competition's answers in `structlearn._src.files.uai_answer`.

References
----------
.. [1] V. Gogate, UAI 2016 inference evaluation, "UAI model format".
"""

from __future__ import annotations

import graphlib
import math
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints, locate, offsets_of
from structlearn._src.common.errors import EvidenceError, FormatError, GraphError
from structlearn._src.common.paths import PathLike, read_bytes, write_bytes
from structlearn._src.files.uai_evidence import read_evidence, shown
from structlearn._src.graph.build import FactorGraph, flat_potentials
from structlearn._src.graph.wiring import condition
from structlearn._src.kernels.text import numbers as text

KINDS = ("MARKOV", "BAYES")
_MOST_STATES = 2**31  # as in graphs
# Possessive: megabytes of comments must not be remembered line by line.
_HEADER = re.compile(rb"(?:[ \t]*(?:(?:c(?=\s)|#)[^\n]*)?\r?\n)*+[ \t]*(\S+)")


def read_uai(path: PathLike, evidence: PathLike | Mapping[int, int] | None = None) -> FactorGraph:
    """Read a model.

    Factors keep their order. A factor over no variables is a constant; its logarithm is added
    to the table of the first factor, or, if there is none, becomes a factor over the variable
    with the fewest states (over a new variable with one state, if there are no variables).

    Parameters
    ----------
    path
        A MARKOV or BAYES file. Both mean the product of the tables; it is not checked that the
        tables of a BAYES file are conditional probabilities of the last variable in their scope.
    evidence
        An evidence file, or a mapping from variables to states. Variables keep their numbers:
        every table is sliced at the observed states, and each observed variable gets its own
        factor that forbids its other states.

    Returns
    -------
    FactorGraph
        The graph, with variables named by their numbers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "two.uai"
    >>> _ = path.write_text("MARKOV  2  2 2  1  2 0 1  4  0.5 1 2 0")
    >>> read_uai(path).table(0)
    array([[-0.69314718,  0.        ],
           [ 0.69314718,        -inf]])
    """
    cards, arities, scopes, potentials = _Model(path).parts()
    try:
        graph = FactorGraph.from_arrays(cards, offsets_of(arities), scopes, potentials)
    except GraphError as error:
        raise FormatError(f"{path}: {error}") from None
    return graph if evidence is None else _observe(graph, evidence)


def write_uai(graph: FactorGraph, path: PathLike, kind: str = "MARKOV") -> None:
    """Write a model; the format does not store names and roles.

    Numbers are written so that they read back to the same float64.

    Parameters
    ----------
    graph
        The graph.
    path
        The file.
    kind
        ``"MARKOV"``, or ``"BAYES"`` for a Bayesian network: every variable is last in exactly one
        scope, that table sums to one over it (within 1e-5), and no variable is its own ancestor.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from structlearn import FactorGraph, read_uai, write_uai
    >>> graph = FactorGraph()
    >>> _ = graph.add_factor([graph.add_variable()], [0.0, 1.0])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "one.uai"
    >>> write_uai(graph, path)
    >>> read_uai(path).table(0)
    array([0., 1.])
    """
    checks.one_of("kind", kind, KINDS)
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        plain = np.exp(graph.potentials)
        lost = ~np.isclose(np.log(plain), graph.potentials, rtol=0, atol=1e-12)
    if lost.any():
        entry = int(np.argmax(lost))
        factor, _ = locate(graph.wiring.table_offsets, entry)
        raise FormatError(
            f"{path}: factor {factor} holds the log potential "
            f"{graph.potentials[entry]:.6g}, and the format needs its exponential, which is "
            f"outside of float64; subtract a constant from the table, or use -inf for zero"
        )
    if kind == "BAYES":
        _check_network(graph, plain, path)
    write_bytes(path, "\n".join(_lines(graph, plain, kind)).encode())


# ---- reading a model ---------------------------------------------------------------------


class _Model:
    """The numbers of one file, and where they stand in it."""

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        self._data = read_bytes(path)
        header = _HEADER.match(self._data)
        if header is None:
            raise FormatError(f"{path}: the file is empty; need MARKOV or BAYES and a model")
        if header[1] not in (b"MARKOV", b"BAYES"):
            raise self._error_at(header.start(1), "a UAI model starts with MARKOV or BAYES, not {}")
        self._start = header.end()
        self._values = self._numbers()

    def _numbers(self) -> Floats:
        data = np.frombuffer(self._data, np.uint8)
        at = self._start
        count = 0
        values = np.empty((len(data) - at) // 2 + 1)
        slow = np.empty((2**16, 3), np.int64)
        while at < len(data):
            at, count, n_slow, fine = text.numbers(data, at, values, count, slow)
            rows = slow[:n_slow]
            values[rows[:, 0]] = [float(self._data[a:b]) for _, a, b in rows.tolist()]
            if not fine:
                raise self._error_at(at, "{} is not a number")
        return values[:count]

    def parts(self) -> tuple[Ints, Ints, Ints, Floats]:
        """Numbers of states, arities, scopes and log potentials; the constants are folded in."""
        cards, at = self._cards()
        arities, scopes, at = self._scopes(len(cards), at)
        sizes, potentials = self._tables(cards, arities, scopes, at)
        if len(arities) and arities.min() == 0:
            return _absorb_constants(cards, arities, scopes, sizes, potentials)
        return cards, arities, scopes, potentials

    def _cards(self) -> tuple[Ints, int]:
        end = 1 + self._count(0, "variables")
        cards = self._values[1:end]
        bad = (cards < 1) | (cards > _MOST_STATES) | (cards != np.floor(cards))
        if bad.any():
            variable = int(np.argmax(bad))
            raise self._error(
                1 + variable,
                f"variable {variable} has {{}} states; need a whole number from 1 to 2**31",
            )
        return cards.astype(np.int64), end

    def _scopes(self, n_variables: int, at: int) -> tuple[Ints, Ints, int]:
        starts = np.empty(self._count(at, "factors") + 1, np.int64)
        wrong, factor, end = text.scopes(self._values, at + 1, n_variables, starts)
        if wrong:
            words = {
                text.ENDED: "the file ends inside the scopes",
                text.ARITY: "a scope starts with a whole number of at least 0, not {}",
                text.VARIABLE: f"{{}} is no variable; they are 0 to {n_variables - 1}",
                text.TWICE: "variable {} occurs twice in its scope",
            }
            raise self._error(end, f"factor {factor}: {words[wrong]}")
        scopes = np.delete(self._values[at + 1 : end], starts[:-1] - (at + 1))
        return np.diff(starts) - 1, scopes.astype(np.int64), end

    def _tables(self, cards: Ints, arities: Ints, scopes: Ints, at: int) -> tuple[Ints, Floats]:
        borders = offsets_of(arities)
        sizes = np.empty(len(arities), np.int64)
        wrong, factor, end = text.tables(self._values, at, cards, borders, scopes, sizes)
        if wrong:
            scope = scopes[borders[factor] : borders[factor + 1]].tolist()
            size = math.prod(cards[scope].tolist())
            words = {
                text.ENDED: f"the file ends inside the tables; this one has {size} entries",
                text.SIZE: f"a table over variables {scope} has {size} entries, not {{}}",
                text.POTENTIAL: "{} is no potential; need a finite number of at least 0",
            }
            raise self._error(end, f"factor {factor}: {words[wrong]}")
        if end < len(self._values):
            raise self._error(end, "{} follows the last table")
        with np.errstate(divide="ignore"):
            return sizes, np.log(self._values[: sizes.sum()])

    def _count(self, at: int, things: str) -> int:
        """Return how many `things` follow position `at`; each takes one number or more."""
        left = len(self._values) - at - 1
        if left < 0:
            raise self._error(at, f"the file ends before the number of {things}")
        count = self._values[at]
        if count < 0 or count != np.floor(count):
            raise self._error(at, f"the number of {things} must be whole and at least 0, not {{}}")
        if count > left:
            raise self._error(len(self._values), f"the file ends, but has {count:.0f} {things}")
        return int(count)

    def _error(self, position: int, words: str) -> FormatError:
        """Word an error at a number, which takes the place of {} in `words`."""
        offset = text.locate(np.frombuffer(self._data, np.uint8), self._start, position)
        return self._error_at(offset, words)

    def _error_at(self, offset: int, words: str) -> FormatError:
        line = 1 + self._data.count(b"\n", 0, min(offset, len(self._data.rstrip())))
        word = self._data[offset : offset + 100].split(maxsplit=1)[:1]
        told = words.replace("{}", shown(word[0])) if word else words
        return FormatError(f"{self.path}, line {line}: {told}")


def _absorb_constants(
    cards: Ints, arities: Ints, scopes: Ints, sizes: Ints, potentials: Floats
) -> tuple[Ints, Ints, Ints, Floats]:
    """Move the factors over no variables, which are constants, into the first of the others."""
    inside = np.repeat(arities == 0, sizes)
    constant = potentials[inside].sum()
    potentials = potentials[~inside]
    sizes = sizes[arities > 0]
    arities = arities[arities > 0]
    if not len(arities) and constant != 0:
        cards = cards if len(cards) else np.ones(1, np.int64)
        carrier = int(np.argmin(cards))
        arities = np.ones(1, np.int64)
        scopes = np.array([carrier])
        sizes = cards[[carrier]]
        potentials = np.zeros(sizes[0])
    if len(arities):
        potentials[: sizes[0]] += constant
    return cards, arities, scopes, potentials


def _observe(graph: FactorGraph, evidence: PathLike | Mapping[int, int]) -> FactorGraph:
    """Slice all tables at the observed states; tie each observed variable to its state."""
    given = evidence if isinstance(evidence, Mapping) else read_evidence(evidence)
    try:
        fixed = graph.labels(given)
    except EvidenceError as error:
        if isinstance(evidence, Mapping):
            raise
        raise FormatError(f"{evidence}: {error}") from None
    observed = np.flatnonzero(fixed >= 0)
    if not len(observed):
        return graph
    rest = condition(graph.wiring, flat_potentials(graph), fixed)
    starts = offsets_of(graph.cards[observed])
    certain = np.full(starts[-1], -np.inf)
    certain[starts[:-1] + fixed[observed]] = 0.0
    certain[fixed[observed[0]]] += rest.constant[0]
    arities = np.concatenate([rest.wiring.arities, np.ones(len(observed), np.int64)])
    scopes = np.concatenate([rest.variables[rest.wiring.scopes], observed])
    potentials = np.concatenate([rest.potentials, certain])
    return FactorGraph.from_arrays(graph.cards, offsets_of(arities), scopes, potentials)


# ---- writing a model ---------------------------------------------------------------------


def _lines(graph: FactorGraph, plain: Floats, kind: str) -> Iterator[str]:
    wiring = graph.wiring
    yield from (kind, str(graph.n_variables), " ".join(map(str, graph.cards.tolist())))
    yield str(graph.n_factors)
    scopes = wiring.scopes.tolist()
    ends = wiring.scope_offsets.tolist()
    for a, b in pairwise(ends):
        yield " ".join(map(str, [b - a, *scopes[a:b]]))
    cards = graph.cards.tolist()
    for end, (a, b) in zip(ends[1:], pairwise(wiring.table_offsets.tolist()), strict=True):
        yield f"\n{b - a}"
        entries = list(map(repr, plain[a:b].tolist()))
        row = cards[scopes[end - 1]]
        for k in range(0, b - a, row):
            yield " ".join(entries[k : k + row])
    yield ""


def _check_network(graph: FactorGraph, plain: Floats, path: PathLike) -> None:
    wiring = graph.wiring
    children = wiring.scopes[wiring.scope_offsets[1:] - 1]
    tables = np.bincount(children, minlength=graph.n_variables)
    if (tables != 1).any():
        odd = int(np.argmax(tables != 1))
        raise FormatError(
            f"{path}: in a Bayesian network every variable is last in the scope of one factor, but "
            f"variable {odd} in {tables[odd]}; write it as kind='MARKOV'"
        )
    states = graph.cards[children]
    rows = offsets_of(np.repeat(states, np.diff(wiring.table_offsets) // states))[:-1]
    sums = np.add.reduceat(plain, rows) if len(rows) else plain
    worst = int(np.argmax(np.abs(sums - 1))) if len(rows) else 0
    if len(rows) and abs(sums[worst] - 1) > 1e-5:
        factor, _ = locate(wiring.table_offsets, rows[worst])
        raise FormatError(
            f"{path}: the table of factor {factor} sums to {sums[worst]:.6g} over its last "
            f"variable; a conditional probability sums to 1: normalise it, or write it as "
            f"kind='MARKOV'"
        )
    _check_no_cycle(graph, path)


def _check_no_cycle(graph: FactorGraph, path: PathLike) -> None:
    parents = {}
    for f in range(graph.n_factors):
        *above, child = graph.scope(f).tolist()
        parents[child] = above
    try:
        graphlib.TopologicalSorter(parents).prepare()
    except graphlib.CycleError as error:
        raise FormatError(
            f"{path}: variables {error.args[1]} are each other's ancestors, which cannot be in a "
            f"Bayesian network; write it as kind='MARKOV'"
        ) from None
