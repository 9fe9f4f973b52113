"""Every public function, class and method says what it takes and returns, and shows it.

Docstrings have the sections of numpydoc. The type of a parameter stands beside its name or in the
signature; arrays that are returned have their shapes; examples run in `tests/test_docs.py`.
"""

from __future__ import annotations

import doctest
import functools
import importlib
import inspect
import re
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import pytest

import structlearn

ROOT = Path(__file__).parents[1]
#: Doors whose modules need an extra that need not be installed.
OPTIONAL = ("torch",)
DOORS = sorted(path.stem for path in (ROOT / "src/structlearn").glob("[a-z]*.py"))
#: Things whose examples are shown and not run, and why.
NOT_RUN = {
    "datasets.data_path": "needs a folder of data",
    "datasets.fetch_uai": "downloads a file",
    "datasets.load_basenp": "downloads a file",
    "datasets.load_conll2000": "downloads a file",
    "datasets.load_ocr": "needs a folder of data",
    "errors.PlaceError": "needs a place that cannot be reached",
}

_HEADING = re.compile(r"^(\S.*)\n-{3,}$", re.MULTILINE)
_ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: ?: ?(.+))?$", re.MULTILINE)
_FIELD = re.compile(r"^    (\w+): .*#: ?\S|^    #: ?\S.*\n(?:    #: .*\n)*    (\w+):", re.MULTILINE)
_ARRAY = re.compile(r"Floats|Ints|Bools|NDArray|ndarray|Tensor")


class Thing(NamedTuple):
    """A function, class or method that users can reach."""

    name: str  # as users write it
    value: object
    kind: str  # function, class or method
    bound: bool = False  # whether its first parameter is the object itself


# ---- what is public ----------------------------------------------------------------------


def names():
    """Public names, with their door before a dot."""
    found = sorted({*structlearn.__all__} - {"__version__", *DOORS})
    for door in DOORS:
        try:
            module = importlib.import_module(f"structlearn.{door}")
        except ImportError:
            assert door in OPTIONAL
            continue
        found += [f"{door}.{name}" for name in module.__all__]
    return found


def value_of(public):
    return functools.reduce(getattr, public.split("."), structlearn)


def methods_of(of, public):
    """Methods that the library itself defines; a function as default of a field is none."""
    for name in dir(of):
        stored = inspect.getattr_static(of, name)
        if name.startswith("_") or isinstance(stored, property | functools.cached_property):
            continue
        value = getattr(of, name)
        own = (getattr(value, "__module__", "") or "").startswith("structlearn")
        if own and inspect.isroutine(value) and name not in getattr(of, "__dataclass_fields__", {}):
            yield Thing(f"{public}.{name}", value, "method", inspect.isfunction(stored))


def things():
    """Whatever is public and can be called; what several classes share is there once."""
    found = {}
    for public in names():
        value = value_of(public)
        if inspect.isclass(value):
            found.setdefault(id(value), Thing(public, value, "class"))
            for method in methods_of(value, public):
                code = inspect.unwrap(getattr(method.value, "__func__", method.value))
                found.setdefault((id(code), inspect.getdoc(method.value)), method)
        elif callable(value):
            found.setdefault(id(value), Thing(public, value, "function"))
    return list(found.values())


# ---- what is said ------------------------------------------------------------------------


def sections_of(text):
    """Bodies of the sections of a docstring by their headings; what stands first by ""."""
    heads = list(_HEADING.finditer(text))
    ends = [*(head.start() for head in heads), len(text)]
    bodies = {head[1]: text[head.end() : end] for head, end in zip(heads, ends[1:], strict=True)}
    return {"": text[: ends[0]], **bodies}


def entries_of(body):
    """Names in a section of parameters, each with the type that stands beside it."""
    found = ((entry[1].split(","), entry[2]) for entry in _ENTRY.finditer(body))
    return {name.strip(" *"): kind for group, kind in found for name in group}


def fields_of(of):
    """Fields with a comment that says what they are, which the reference shows."""
    own = [each for each in of.__mro__ if each.__module__.startswith("structlearn")]
    source = "".join(inspect.getsource(each) for each in own)
    return {name for pair in _FIELD.findall(source) for name in pair if name}


def is_plain(thing):
    """Whether users catch it, compare with it or write their own, but never make it."""
    of = thing.value
    return inspect.isclass(of) and (
        issubclass(of, Exception | Enum) or getattr(of, "_is_protocol", False)
    )


def untold(thing, sections):
    """Parameters that are not described, or have no type."""
    if is_plain(thing):
        return
    taken = list(inspect.signature(thing.value).parameters.values())[thing.bound :]
    entries = entries_of(sections.get("Parameters", "") + sections.get("Attributes", ""))
    if thing.kind == "class":
        entries = dict.fromkeys(fields_of(thing.value)) | entries
    further = set(entries) - {each.name for each in taken}  # which may describe keywords
    for each in taken:
        many = each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        typed = entries.get(each.name) or each.annotation not in ("Any", each.empty)
        if each.name not in entries and not (many and further):
            yield f"{each.name} is not described"
        elif not typed and not many:
            yield f"{each.name} has no type"


def unreturned(thing, sections):
    """Say what is wrong about the result."""
    if thing.kind == "class":
        return
    returned = inspect.signature(thing.value).return_annotation
    if returned in (None, "None"):
        return
    body = sections.get("Returns", sections.get("Yields", "")).strip("\n")
    if not re.match(r"\S.*\n    \S", body):
        yield "what it returns is not described by a type and a sentence"
    elif _ARRAY.search(str(returned)) and not re.search(r"\(.*\)", body):
        yield "what it returns has no shape"


def unshown(thing, sections):
    """Say what is wrong about the example; warnings need none."""
    if inspect.isclass(thing.value) and issubclass(thing.value, Warning):
        return
    shown = doctest.DocTestParser().get_examples(sections.get("Examples", ""))
    run = [each for each in shown if not each.options.get(doctest.SKIP)]
    if not shown:
        yield "there is no example"
    elif all(each.source.startswith(("import", "from")) for each in run) != (thing.name in NOT_RUN):
        yield "an example is not run: list it with the reason, or run it"


def missing(thing):
    """Return what the docstring of a thing lacks."""
    sections = sections_of(inspect.getdoc(thing.value) or "")
    summary = sections[""].strip().split("\n\n")[0]
    lacks = [] if summary.endswith((".", ":")) else ["there is no sentence at the beginning"]
    return lacks + [
        words for check in (untold, unreturned, unshown) for words in check(thing, sections)
    ]


# ---- tests -------------------------------------------------------------------------------

THINGS = things()


@pytest.mark.parametrize("thing", THINGS, ids=lambda thing: thing.name)
def test_docstrings_are_complete(thing):
    assert missing(thing) == []


def test_all_were_found():
    kinds = [thing.kind for thing in THINGS]
    assert kinds.count("method") > 150
    assert kinds.count("class") > 70
    assert {"SequenceLabeler.decode", "FactorGraph.add_factor", "solvers.Lbfgs.step"} <= {
        thing.name for thing in THINGS
    }


def test_the_reference_does_not_speak_of_private_modules():
    for thing in THINGS:
        said = re.sub(r"^Traceback.*?^\S*Error", "", inspect.getdoc(thing.value), flags=re.S | re.M)
        assert "_src" not in said, thing.name


def half_told(values: structlearn.losses.ElasticNet, other):
    """Do something.

    Parameters
    ----------
    values
        The values.
    other
        What has no type.
    """


def whole(values: int) -> list[int]:
    """Do something.

    Parameters
    ----------
    values
        The values.

    Returns
    -------
    list of int
        The result.

    Examples
    --------
    >>> 1 + 1
    2
    """


def test_what_is_missing_is_seen():
    assert missing(Thing("whole", whole, "function")) == []
    assert missing(Thing("half_told", half_told, "function")) == [
        "other has no type",
        "what it returns is not described by a type and a sentence",
        "there is no example",
    ]
    assert missing(Thing("names", names, "function"))[-1] == "there is no example"
